"""Logic: neutral elements, negated comparisons, and choices that are no choice."""

from __future__ import annotations

from optimizer.analysis import broadcasts_to
from optimizer.ir import Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.known import constant_of

_OPPOSITE = {
    "Less": "GreaterOrEqual",
    "Greater": "LessOrEqual",
    "LessOrEqual": "Greater",
    "GreaterOrEqual": "Less",
}
_NEUTRAL = {"And": True, "Or": False, "Xor": False}


@graph_optimizer(P.one_of("And", "Or", "Xor")("x", "unit").commutes(), constants="unit", tag="E0")
def drop_neutral_truth(m: Match, rw: Rewriter) -> Value:
    """x and true -> x, and x or false, x xor false likewise"""
    unit = constant_of(m, m.unit)
    m.require(unit.size, "the operand is not neutral")
    m.require((unit.array == _NEUTRAL[m.root.op_type]).all(), "the operand is not neutral")
    m.require(not unit.shape or broadcasts_to(m.shape(m.unit), m.shape(m.x)), "the other is broadcast")
    return m.x


@graph_optimizer(P.Not(P.one_of(*_OPPOSITE)("a", "b", name="compared").once()), tag="E0")
def negate_comparison(m: Match, rw: Rewriter) -> Value:
    """not (a < b) -> a >= b, and the other comparisons likewise

    Of integers: a comparison with NaN is false, and so is its opposite.
    """
    dtype = m.dtype(m.a)
    m.require(dtype is not None and dtype.is_integer, "an operand may be NaN")
    opposite = _OPPOSITE[m.compared.op_type]
    m.require(m.opset() >= 12 or "Or" not in opposite, "the opset has no such comparison")
    return getattr(rw.op, opposite)(m.a, m.b)


@graph_optimizer(P.Where(P.Not("c").once(), "a", "b"), tag="E1")
def swap_negated_choice(m: Match, rw: Rewriter) -> Value:
    """Where(not c, a, b) -> Where(c, b, a)

    Runtimes may make Where of sums with masked zeros, in which the sign of -0 is lost.
    """
    return rw.op.Where(m.c, m.b, m.a)


@graph_optimizer(P.Where("c", "a", "b"), constants="c", tag="E1")
def choose_constantly(m: Match, rw: Rewriter) -> Value:
    """Where(true, a, b) -> a, and Where(false, a, b) -> b"""
    chosen = constant_of(m, m.c).array
    m.require(chosen.size and (chosen.all() or not chosen.any()), "the condition differs by element")
    taken = m.a if chosen.all() else m.b
    m.require(m.same_shape(taken, m.root.value()), "what is chosen may be broadcast")
    return taken


@graph_optimizer(P.Where("c", "a", "a"), tag="E1")
def drop_equal_choice(m: Match, rw: Rewriter) -> Value:
    """Where(c, a, a) -> a"""
    m.require(m.same_shape(m.a, m.root.value()), "what is chosen may be broadcast")
    return m.a
