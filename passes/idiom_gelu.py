"""Gelu spelled out, with Erf or Tanh, and the spelling that runtimes recognise."""

from __future__ import annotations

import math

from optimizer.ir import DType, Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.contrib import MICROSOFT, import_domain
from passes.idiom_activation import ONE, products
from passes.known import ROUNDED, rank_of, readers_of

HALF = P.scalar(0.5)
BY_ROOT_2 = P.any_of(
    P.Div("x", P.scalar(math.sqrt(2), ROUNDED)).once(),
    P.Mul("x", P.scalar(math.sqrt(0.5), ROUNDED)).commutes().once(),
)
ONE_PLUS_ERF = P.Add(P.Erf(BY_ROOT_2).once(), ONE).commutes().once()
HALF_AND_HALF_ERF = P.Add(P.Mul(P.Erf(BY_ROOT_2).once(), HALF).commutes().once(), HALF).commutes().once()

CUBE = P.any_of(
    P.Pow("x", P.scalar(3.0)).once(),
    P.Mul(P.Mul("x", "x").once(), "x").commutes().once(),
    P.Mul(P.Pow("x", P.scalar(2.0)).once(), "x").commutes().once(),
)
CUBIC = P.Add("x", P.Mul(CUBE, P.scalar(0.044715, ROUNDED)).commutes().once()).commutes().once()
ROOT_2_BY_PI = math.sqrt(2 / math.pi)
SQUARE = P.any_of(P.Mul("x", "x").once(), P.Pow("x", P.scalar(2.0)).once())
FACTOR = P.Add(P.Mul(SQUARE, P.scalar(0.044715, ROUNDED)).commutes().once(), ONE).commutes().once()
ANGLE = P.any_of(
    P.Mul(CUBIC, P.scalar(ROOT_2_BY_PI, ROUNDED)).commutes().once(),
    *(
        P.Mul(P.Mul(p, q).commutes().once(), r).commutes().once()
        for p, q, r in (
            ("x", FACTOR, P.scalar(ROOT_2_BY_PI, ROUNDED)),
            ("x", P.scalar(ROOT_2_BY_PI, ROUNDED), FACTOR),
            (FACTOR, P.scalar(ROOT_2_BY_PI, ROUNDED), "x"),
        )
    ),
    P.Mul(
        "x",
        P.Add(
            P.Mul(SQUARE, P.scalar(0.044715 * ROOT_2_BY_PI, ROUNDED)).commutes().once(),
            P.scalar(ROOT_2_BY_PI, ROUNDED),
        )
        .commutes()
        .once(),
    )
    .commutes()
    .once(),
)
ONE_PLUS_TANH = P.Add(P.Tanh(ANGLE).once(), ONE).commutes().once()


@graph_optimizer(
    P.any_of(
        *products("x", ONE_PLUS_ERF, HALF),
        P.Mul("x", P.Div(ONE_PLUS_ERF, P.scalar(2.0)).once()).commutes(),
        P.Mul(P.Div("x", P.scalar(2.0)).once(), ONE_PLUS_ERF).commutes(),
        P.Div(P.Mul("x", ONE_PLUS_ERF).commutes().once(), P.scalar(2.0)),
        P.Mul("x", HALF_AND_HALF_ERF).commutes(),
    ),
    tag="E2",
)
def fuse_gelu(m: Match, rw: Rewriter) -> Value:
    """0.5 * x * (1 + Erf(x / sqrt(2))) -> Gelu(x)"""
    return _gelu(m, rw, "none")


@graph_optimizer(P.any_of(*products("x", ONE_PLUS_TANH, HALF)), tag="E2")
def fuse_gelu_tanh(m: Match, rw: Rewriter) -> Value:
    """0.5 * x * (1 + Tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) -> Gelu(x, approximate=tanh)"""
    return _gelu(m, rw, "tanh")


def _gelu(m: Match, rw: Rewriter, approximate: str) -> Value:
    m.require(rank_of(m, m.x) == rank_of(m, m.root.value()), "the constants raise the rank")
    m.require(m.dtype(m.x) in (DType.FLOAT, DType.FLOAT16), "not float32 or float16")
    if m.opset() >= 20:
        return rw.op.Gelu(m.x, approximate=approximate)
    m.require(m.ctx.settings.target == "onnxruntime", "Gelu needs opset 20")
    m.require(import_domain(m.ctx, m, MICROSOFT, 1), "the model imports another version of com.microsoft")
    operator = rw.op.Gelu if approximate == "none" else rw.op.FastGelu
    return operator(m.x, domain=MICROSOFT)


@graph_optimizer(
    P.Erf(P.Mul("x", P.scalar(math.sqrt(0.5), ROUNDED, name="factor")).commutes().once()), tag="E2"
)
def respell_gelu_argument(m: Match, rw: Rewriter) -> Value:
    """Erf(x * sqrt(1/2)) -> Erf(x / sqrt(2))

    The spelling of Gelu that runtimes recognise, where the opset has no operator for it.
    """
    m.require(m.opset() < 20, "the opset has Gelu")
    ends = [r for r, _ in readers_of(m, m.root.value())]
    m.require(len(ends) == 1 and ends[0].op_type == "Add", "not inside Gelu")
    return rw.op.Erf(rw.op.Div(m.x, rw.const(math.sqrt(2), like=m.x)))
