"""Logic in more words than it needs: neutral elements, negations, comparisons with truth, idle choices."""

from __future__ import annotations

from optimizer.analysis import broadcasts_to
from optimizer.ir import DType, Value
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


@graph_optimizer(P.one_of("And", "Or")("x", "x"), tag="E0")
def drop_repeated_truth(m: Match, rw: Rewriter) -> Value:
    """x and x -> x, and x or x likewise"""
    return m.x


@graph_optimizer(
    P.any_of(
        P.Equal(P.Cast("c").once(), P.const("k"), name="compared").commutes(),
        P.Equal("c", P.const("k"), name="compared").commutes(),
    ),
    tag="E0",
)
def drop_comparison_with_truth(m: Match, rw: Rewriter) -> Value:
    """c == true -> c, and c == false -> not c, and numbers that were cast from truth likewise"""
    m.require(m.dtype(m.c) is DType.BOOL, "not of truth values")
    m.require(m.same_shape(m.c, m.root.value()), "the other operand is broadcast")
    compared = constant_of(m, m.k).array
    m.require(compared.size and (compared == compared.flat[0]).all(), "it is compared with several")
    wanted = float(compared.flat[0])
    m.require(wanted in (0, 1), "it is compared with another number")
    return m.c if wanted else rw.op.Not(m.c)


@graph_optimizer(P.Where("c", "a", "b"), constants="a b", tag="E0")
def drop_choice_of_truth(m: Match, rw: Rewriter) -> Value:
    """Where(c, true, false) -> c, and Where(c, false, true) -> not c"""
    m.require(m.dtype(m.a) is DType.BOOL, "not of truth values")
    m.require(m.same_shape(m.c, m.root.value()), "the other operand is broadcast")
    a, b = (constant_of(m, v).array for v in (m.a, m.b))
    differ = a.size and b.size and (a == a.flat[0]).all() and (b != a.flat[0]).all()
    m.require(differ, "it is no choice between true and false")
    return m.c if a.flat[0] else rw.op.Not(m.c)


@graph_optimizer(P.one_of("And", "Or")(P.Not("a").once(), P.Not("b").once(), name="both"), tag="E0")
def negate_once(m: Match, rw: Rewriter) -> Value:
    """not a and not b -> not (a or b), and not a or not b -> not (a and b)"""
    other = rw.op.Or if m.both.op_type == "And" else rw.op.And
    return rw.op.Not(other(m.a, m.b))


@graph_optimizer(
    P.any_of(
        P.Where("c", P.Where("c", "a", "dropped").once(), "b"),
        P.Where("c", "a", P.Where("c", "dropped", "b").once()),
    ),
    tag="E1",
)
def choose_once(m: Match, rw: Rewriter) -> Value:
    """Where(c, Where(c, a, x), b) -> Where(c, a, b), and Where(c, a, Where(c, x, b)) likewise"""
    result = rw.op.Where(m.c, m.a, m.b)
    parts = [shape for v in (m.c, m.a, m.b) if (shape := m.shape(v)) is not None]
    m.require(
        len(parts) == 3 and any(p == m.shape(m.root.value()) for p in parts), "a part may stretch the result"
    )
    return result
