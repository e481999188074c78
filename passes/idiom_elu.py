"""Activations by exponentials spelled out, or one by way of another."""

from __future__ import annotations

import numpy as np

from optimizer.ir import DType, Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.idiom_activation import EXP_OF_MINUS_X, ONE, ZERO
from passes.known import ROUNDED, as_stored, rank_of

POSITIVE = P.one_of("Greater", "GreaterOrEqual")("x", ZERO).once()
NEGATIVE = P.one_of("Less", "LessOrEqual")("x", ZERO).once()
EXP_MINUS_1 = P.any_of(
    P.Sub(P.Exp("x").once(), ONE).once(), P.Add(P.Exp("x").once(), P.scalar(-1.0)).commutes().once()
)
BELOW = P.any_of(EXP_MINUS_1, P.Mul(EXP_MINUS_1, P.const("alpha")).commutes().once())


@graph_optimizer(P.any_of(P.Where(POSITIVE, "x", BELOW), P.Where(NEGATIVE, BELOW, "x")), tag="E2")
def fuse_elu(m: Match, rw: Rewriter) -> Value:
    """Where(x > 0, x, alpha * (Exp(x) - 1)) -> Elu(x, alpha)"""
    _require_float32_of_same_rank(m)
    return rw.op.Elu(m.x, alpha=_number(m, "alpha", 1.0))


@graph_optimizer(P.Mul(P.Elu("x", name="elu").once(), "gamma").commutes(), constants="gamma", tag="E2")
def fuse_selu(m: Match, rw: Rewriter) -> Value:
    """Elu(x, alpha) * gamma -> Selu(x, alpha, gamma)"""
    _require_float32_of_same_rank(m)
    gamma = _number(m, "gamma", 1.0)
    m.require(gamma > 0, "the factor is not positive")
    return rw.op.Selu(m.x, alpha=m.elu.attr("alpha", 1.0), gamma=gamma)


SCALED = P.one_of("Mul", "Div")("x", P.const("inner"), name="scaled").once()


@graph_optimizer(
    P.any_of(
        P.Mul(P.Elu(SCALED, name="elu").once(), "outer").commutes(),
        P.Selu(SCALED, name="elu"),
    ),
    constants="outer",
    tag="E2",
)
def fuse_celu(m: Match, rw: Rewriter) -> Value:
    """alpha * Elu(x / alpha) -> Celu(x, alpha)"""
    m.require(m.opset() >= 12, "Celu needs opset 12")
    _require_float32_of_same_rank(m)
    inner = _number(m, "inner", 1.0)
    outer = _number(m, "outer", float(m.elu.attr("gamma", 1.0)))
    product = outer / inner if m.scaled.op_type == "Div" and inner else outer * inner
    m.require(abs(product - 1) < ROUNDED and m.elu.attr("alpha", 1.0) == 1, "the factors do not cancel")
    m.require(outer > 0, "the factors are negative")
    return rw.op.Celu(m.x, alpha=as_stored(outer))


@graph_optimizer(
    P.any_of(
        P.Where(P.Greater("x", P.const("alpha")).once(), "x", ZERO),
        P.Where(P.LessOrEqual("x", P.const("alpha")).once(), ZERO, "x"),
        P.Mul("x", P.Cast(P.Greater("x", P.const("alpha")).once()).once()).commutes(),
    ),
    tag="E1",
)
def fuse_thresholdedrelu(m: Match, rw: Rewriter) -> Value:
    """Where(x > alpha, x, 0) -> ThresholdedRelu(x, alpha)"""
    m.require(m.opset() >= 10, "ThresholdedRelu needs opset 10")
    _require_float32_of_same_rank(m)
    alpha = m.f64(m.alpha)
    m.require(alpha.size == 1, "the constants are not scalars")
    return rw.op.ThresholdedRelu(m.x, alpha=as_stored(float(alpha.reshape(()))))


@graph_optimizer(P.Mul("x", P.Tanh(P.Softplus("x").once()).once()).commutes(), tag="E2")
def fuse_mish(m: Match, rw: Rewriter) -> Value:
    """x * Tanh(Softplus(x)) -> Mish(x)"""
    m.require(m.opset() >= 18, "Mish needs opset 18")
    _require_float32_of_same_rank(m)
    return rw.op.Mish(m.x)


# -------------------------------------------------------------------- Sigmoid and Tanh


@graph_optimizer(
    P.any_of(
        P.Div("x", P.Add(EXP_OF_MINUS_X, ONE).commutes().once()),
        P.Mul("x", P.Reciprocal(P.Add(EXP_OF_MINUS_X, ONE).commutes().once()).once()).commutes(),
    ),
    tag="E2",
)
def fuse_silu(m: Match, rw: Rewriter) -> Value:
    """x / (1 + Exp(-x)) -> x * Sigmoid(x)"""
    _require_float32_of_same_rank(m)
    return rw.op.Mul(m.x, rw.op.Sigmoid(m.x))


@graph_optimizer(
    P.Mul("x", P.Sigmoid("x").once()).commutes(),
    tag="E2",
)
def fuse_swish(m: Match, rw: Rewriter) -> Value:
    """x * Sigmoid(x) -> Swish(x)

    Fewer nodes, but slower on common runtimes.
    """
    m.require(m.ctx.settings.objective == "nodes", "it would be slower")
    m.require(m.opset() >= 24, "Swish needs opset 24")
    _require_float32_of_same_rank(m)
    return rw.op.Swish(m.x)


TWICE = P.any_of(P.Mul("x", P.scalar(2.0)).commutes().once(), P.Add("x", "x").once())
HALF_OF_X = P.any_of(P.Mul("x", P.scalar(0.5)).commutes().once(), P.Div("x", P.scalar(2.0)).once())
DOUBLED = P.Mul(P.Sigmoid(TWICE).once(), P.scalar(2.0)).commutes().once()


@graph_optimizer(P.any_of(P.Sub(DOUBLED, ONE), P.Add(DOUBLED, P.scalar(-1.0)).commutes()), tag="E2")
def fuse_tanh(m: Match, rw: Rewriter) -> Value:
    """2 * Sigmoid(2 * x) - 1 -> Tanh(x)"""
    _require_float32_of_same_rank(m)
    return rw.op.Tanh(m.x)


ONE_PLUS_TANH = P.Add(P.Tanh(HALF_OF_X).once(), ONE).commutes().once()
HALF_TANH = P.Mul(P.Tanh(HALF_OF_X).once(), P.scalar(0.5)).commutes().once()


@graph_optimizer(
    P.any_of(
        P.Mul(ONE_PLUS_TANH, P.scalar(0.5)).commutes(),
        P.Div(ONE_PLUS_TANH, P.scalar(2.0)),
        P.Add(HALF_TANH, P.scalar(0.5)).commutes(),
    ),
    tag="E2",
)
def fuse_sigmoid_of_tanh(m: Match, rw: Rewriter) -> Value:
    """(1 + Tanh(x / 2)) / 2 -> Sigmoid(x)"""
    _require_float32_of_same_rank(m)
    return rw.op.Sigmoid(m.x)


# -------------------------------------------------------------------- what they all need


def _number(m: Match, name: str, absent: float) -> float:
    """A one-element constant of the pattern, or what stands for it where the spelling has none."""
    if not hasattr(m, name):
        return absent
    array = m.f64(getattr(m, name))
    m.require(array.size == 1, "the constants are not scalars")
    m.require(np.isfinite(array).all(), "a constant is not finite")
    return as_stored(float(array.reshape(())))


def _require_float32_of_same_rank(m: Match) -> None:
    m.require(m.dtype(m.x) is DType.FLOAT, "not float32")
    m.require(rank_of(m, m.x) == rank_of(m, m.root.value()), "the constants raise the rank")
