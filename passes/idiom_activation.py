"""Activation functions spelled out in several operators become the one operator that they are."""

from __future__ import annotations

from optimizer.ir import DType, Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from optimizer.rewrite.pattern import AnyOf, Op, Term
from passes.affine import Affine, affine_of, elementwise_step, once
from passes.known import FLOATS, ROUNDED, as_stored, rank_of

SIXTH = P.scalar(1 / 6, ROUNDED)
SIX = P.scalar(6.0, ROUNDED)
ONE = P.scalar(1.0)


def clamped(inner: Term | str, low: float, high: float) -> AnyOf:
    """The ways to spell Clip(inner, low, high), each with a single use."""
    lo, hi = P.scalar(low, ROUNDED), P.scalar(high, ROUNDED)
    spellings = [
        P.Clip(inner, lo, hi),
        P.Clip(inner, min=low, max=high),
        P.Min(P.Max(inner, lo).commutes().once(), hi).commutes(),
        P.Max(P.Min(inner, hi).commutes().once(), lo).commutes(),
    ]
    if low == 0:
        spellings.append(P.Min(P.Relu(inner).once(), hi).commutes())
    return P.any_of(*(spelling.once() for spelling in spellings))


def products(*factors: Term | str) -> tuple[Op, ...]:
    """Every way to multiply three terms in two steps, the inner step with a single use."""
    a, b, c = factors
    return tuple(
        P.Mul(P.Mul(p, q).commutes().once(), r).commutes() for p, q, r in ((a, b, c), (a, c, b), (b, c, a))
    )


# -------------------------------------------------------------------- HardSwish and HardSigmoid

RELU6_OF_X_PLUS_3 = clamped(P.Add("x", P.scalar(3.0, ROUNDED)).commutes().once(), 0.0, 6.0)


@graph_optimizer(
    P.any_of(
        *products("x", RELU6_OF_X_PLUS_3, SIXTH),
        P.Div(P.Mul("x", RELU6_OF_X_PLUS_3).commutes().once(), SIX),
        P.Mul("x", P.Div(RELU6_OF_X_PLUS_3, SIX).once()).commutes(),
        P.Mul(P.Div("x", SIX).once(), RELU6_OF_X_PLUS_3).commutes(),
    ),
    tag="E2",
)
def fuse_hardswish(m: Match, rw: Rewriter) -> Value:
    """x * Clip(x + 3, 0, 6) / 6 -> HardSwish(x), or x * HardSigmoid(x) before opset 14"""
    _require_same_rank(m)
    _require_float(m)
    if m.opset() >= 14:
        return rw.op.HardSwish(m.x)
    return rw.op.Mul(m.x, rw.op.HardSigmoid(m.x, alpha=as_stored(1 / 6), beta=0.5))


@graph_optimizer(P.Mul("x", P.HardSigmoid("x", name="gate").once()).commutes(), tag="E2")
def fuse_hardswish_of_gate(m: Match, rw: Rewriter) -> Value:
    """x * HardSigmoid(x, alpha=1/6, beta=1/2) -> HardSwish(x)"""
    m.require(m.opset() >= 14, "HardSwish needs opset 14")
    alpha, beta = m.gate.attr("alpha", 0.2), m.gate.attr("beta", 0.5)
    m.require(abs(alpha - 1 / 6) <= ROUNDED and beta == 0.5, "another slope or offset")
    _require_float(m)
    return rw.op.HardSwish(m.x)


@graph_optimizer(
    P.any_of(P.Div(RELU6_OF_X_PLUS_3, SIX), P.Mul(RELU6_OF_X_PLUS_3, SIXTH).commutes()), tag="E2"
)
def fuse_hardsigmoid_of_relu6(m: Match, rw: Rewriter) -> Value:
    """Clip(x + 3, 0, 6) / 6 -> HardSigmoid(x, alpha=1/6, beta=1/2)"""
    _require_same_rank(m)
    _require_float(m)
    return rw.op.HardSigmoid(m.x, alpha=as_stored(1 / 6), beta=0.5)


@graph_optimizer(
    P.any_of(
        *(
            spelling
            for spelling in clamped(
                once(elementwise_step(once(elementwise_step("x", "first")), "second")), 0.0, 1.0
            ).terms
            if isinstance(spelling, Op)
        )
    ),
    tag="E2",
)
def fuse_hardsigmoid(m: Match, rw: Rewriter) -> Value:
    """Clip(x * a + b, 0, 1) -> HardSigmoid(x, alpha=a, beta=b)"""
    _require_same_rank(m)
    _require_float(m)
    first = affine_of(m, m.first, m.x, 0)
    whole: Affine = affine_of(m, m.second, m.first.value(), 0).after(first)
    m.require(whole.scale.size == 1 and whole.shift.size == 1, "the constants are not scalars")
    return rw.op.HardSigmoid(m.x, alpha=as_stored(whole.scale.item()), beta=as_stored(whole.shift.item()))


# -------------------------------------------------------------------- Sigmoid, Softsign, Softplus

EXP_OF_MINUS_X = P.Exp(P.Neg("x").once()).once()
ONE_PLUS_EXP = P.Add(EXP_OF_MINUS_X, ONE).commutes().once()


@graph_optimizer(P.any_of(P.Div(ONE, ONE_PLUS_EXP), P.Reciprocal(ONE_PLUS_EXP)), tag="E2")
def fuse_sigmoid(m: Match, rw: Rewriter) -> Value:
    """1 / (1 + Exp(-x)) -> Sigmoid(x)"""
    _require_same_rank(m)
    return rw.op.Sigmoid(m.x)


@graph_optimizer(P.Div("x", P.Add(P.Abs("x").once(), ONE).commutes().once()), tag="E2")
def fuse_softsign(m: Match, rw: Rewriter) -> Value:
    """x / (1 + Abs(x)) -> Softsign(x)"""
    _require_same_rank(m)
    return rw.op.Softsign(m.x)


@graph_optimizer(P.Log(P.Add(P.Exp("x").once(), ONE).commutes().once()), tag="E2")
def fuse_softplus(m: Match, rw: Rewriter) -> Value:
    """Log(1 + Exp(x)) -> Softplus(x)

    Fewer nodes, but slower on common runtimes: an alternative.
    """
    _require_same_rank(m)
    return rw.op.Softplus(m.x)


# -------------------------------------------------------------------- Relu and its relatives

ZERO = P.scalar(0.0)


@graph_optimizer(
    P.any_of(
        P.Max("x", ZERO).commutes(),
        P.Clip("x", ZERO),
        P.Clip("x", min=0.0, max=None),
        P.Where(P.one_of("Greater", "GreaterOrEqual")("x", ZERO).once(), "x", ZERO),
        P.Where(P.one_of("Less", "LessOrEqual")("x", ZERO).once(), ZERO, "x"),
    ),
    tag="E1",
)
def fuse_relu(m: Match, rw: Rewriter) -> Value:
    """Max(x, 0), Clip(x, 0), Where(x > 0, x, 0) -> Relu(x)"""
    _require_same_rank(m)
    m.require(m.dtype(m.x) in FLOATS, "not a float")
    return rw.op.Relu(m.x)


@graph_optimizer(
    P.any_of(
        P.Max("x", P.Mul("x", P.const("a")).commutes().once()).commutes(),
        P.Sub(P.Relu("x").once(), P.Mul(P.Relu(P.Neg("x").once()).once(), P.const("a")).commutes().once()),
        P.Where(
            P.one_of("Greater", "GreaterOrEqual")("x", ZERO).once(),
            "x",
            P.Mul("x", P.const("a")).commutes().once(),
        ),
        P.PRelu("x", P.const("a")),
    ),
    tag="E1",
)
def fuse_leakyrelu(m: Match, rw: Rewriter) -> Value:
    """Max(x, a * x), Where(x > 0, x, a * x), PRelu(x, a) -> LeakyRelu(x, alpha=a), for one number a"""
    _require_same_rank(m)
    m.require(m.dtype(m.x) in (DType.FLOAT, DType.FLOAT16), "not float32 or float16")
    slopes = m.f64(m.a)
    m.require(slopes.ndim <= rank_of(m, m.x), "the constants raise the rank")  # PRelu is inferred like x
    m.require(slopes.size and (slopes == slopes.flat[0]).all(), "the slopes differ")
    m.require(m.root.op_type == "PRelu" or slopes.size == 1, "the slope may change the shape")
    slope = float(slopes.flat[0])
    m.require(m.root.op_type != "Max" or 0 <= slope <= 1, "the larger one depends on the slope")
    return rw.op.LeakyRelu(m.x, alpha=as_stored(slope))


# -------------------------------------------------------------------- what they all need


def _require_same_rank(m: Match) -> None:
    """One-element constants may still raise the rank, and then the result is not shaped like x."""
    m.require(rank_of(m, m.x) == rank_of(m, m.root.value()), "the constants raise the rank")


def _require_float(m: Match) -> None:
    m.require(m.dtype(m.x) in (DType.FLOAT, DType.FLOAT16), "not float32 or float16")
