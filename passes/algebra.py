"""Sums and products: what terms have in common is factored out, signs cancel, constants come together."""

from __future__ import annotations

import numpy as np

from optimizer.analysis import broadcasts_to
from optimizer.ir import Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.affine import require_room
from passes.known import FLOATS, constant_of, rank_of


@graph_optimizer(
    P.any_of(
        P.one_of("Add", "Sub")(
            P.Mul("x", P.const("a"), name="left").commutes().once(),
            P.Mul("x", P.const("b"), name="right").commutes().once(),
        ),
        P.one_of("Add", "Sub")(P.Mul("x", P.const("a"), name="left").commutes().once(), "x"),
        P.one_of("Add", "Sub")("x", P.Mul("x", P.const("b"), name="right").commutes().once()),
    ),
    tag="E2",
)
def add_like_terms(m: Match, rw: Rewriter) -> Value:
    """x * a + x * b -> x * (a + b), and x * a - x, x + x * b likewise"""
    m.require(m.dtype(m.x) in FLOATS, "not a float")
    m.require(m.opset() >= 7, "elementwise operators broadcast differently before opset 7")
    a, b = (m.f64(getattr(m, name)) if hasattr(m, name) else np.ones(()) for name in "ab")
    factor = a + b if m.root.op_type == "Add" else a - b
    m.require(np.isfinite(factor).all(), "a constant is not finite")
    m.require(factor.size <= max(a.size, b.size), "the constant would be larger")
    return rw.op.Mul(m.x, rw.const(factor, like=m.x))


@graph_optimizer(
    P.any_of(
        P.one_of("Add", "Sub")(
            P.Mul("x", "f").commutes().once(), P.Mul("z", "f").commutes().once(), name="sum"
        ),
        P.one_of("Add", "Sub")(P.Div("x", "f").once(), P.Div("z", "f", name="quotient").once(), name="sum"),
    ),
    tag="E2",
)
def factor_out(m: Match, rw: Rewriter) -> Value:
    """x * f + z * f -> (x + z) * f, and x / f - z / f -> (x - z) / f"""
    m.require(m.dtype(m.x) in FLOATS, "not a float")
    m.require(m.tensor(m.x) is None and m.tensor(m.z) is None, "a term is constant")
    m.require(m.same_shape(m.x, m.z), "the terms are broadcast")
    total = getattr(rw.op, m.sum.op_type)(m.x, m.z)
    made: Value = rw.op.Div(total, m.f) if hasattr(m, "quotient") else rw.op.Mul(total, m.f)
    return made


@graph_optimizer(
    P.any_of(
        P.one_of("Add", "Sub")(P.MatMul("x", "w").once(), P.MatMul("x", "v").once(), name="sum"),
        P.one_of("Add", "Sub")(P.MatMul("x", "w").once(), P.MatMul("z", "w").once(), name="sum"),
    ),
    constants="w",
    tag="E2",
)
def add_products(m: Match, rw: Rewriter) -> Value:
    """MatMul(x, v) + MatMul(x, w) -> MatMul(x, v + w), and MatMul(x, w) + MatMul(z, w) -> MatMul(x + z, w)"""
    m.require(m.dtype(m.x) in FLOATS, "not a float")
    if hasattr(m, "z"):
        m.require(m.same_shape(m.x, m.z), "the terms are broadcast")
        total = getattr(rw.op, m.sum.op_type)(m.x, m.z)
        return rw.op.MatMul(total, m.w)
    v, w = constant_of(m, m.v), constant_of(m, m.w)
    m.require(v.shape == w.shape, "the terms are broadcast")
    require_room(m, m.w)
    sign = 1 if m.sum.op_type == "Add" else -1
    return rw.op.MatMul(m.x, rw.const(m.f64(m.w) + sign * m.f64(m.v), like=m.w))


# -------------------------------------------------------------------- constants come together


@graph_optimizer(
    P.any_of(
        P.Add(
            P.Add(P.Add("x", P.const("a"), name="first").commutes().once(), "z").commutes().once(),
            P.const("b"),
        ).commutes(),
        P.Mul(
            P.Mul(P.Mul("x", P.const("a"), name="first").commutes().once(), "z").commutes().once(),
            P.const("b"),
        ).commutes(),
        P.Add(
            P.Add("x", P.const("a"), name="first").commutes().once(),
            P.Add("z", P.const("b")).commutes().once(),
        ),
        P.Mul(
            P.Mul("x", P.const("a"), name="first").commutes().once(),
            P.Mul("z", P.const("b")).commutes().once(),
        ),
    ),
    tag="E2",
)
def join_constants(m: Match, rw: Rewriter) -> Value:
    """((x + a) + z) + b -> (x + z) + (a + b), and of products, and of (x + a) + (z + b) likewise"""
    m.require(m.dtype(m.x) in FLOATS, "not a float")
    m.require(m.tensor(m.z) is None and m.tensor(m.x) is None, "a term is constant")
    small = all(broadcasts_to(m.shape(c), m.shape(m.x)) for c in (m.a, m.b))
    m.require(small, "a constant stretches what it is added to")
    m.require(m.same_shape(m.x, m.z), "the terms are broadcast")
    a, b = m.f64(m.a), m.f64(m.b)
    with np.errstate(over="ignore", invalid="ignore"):
        both = a + b if m.root.op_type == "Add" else a * b
    m.require(np.isfinite(both).all(), "a constant is not finite")
    m.require(both.size <= max(a.size, b.size), "the constant would be larger")
    combine = getattr(rw.op, m.root.op_type)
    made: Value = combine(combine(m.x, m.z), rw.const(both, like=m.x))
    return made


# -------------------------------------------------------------------- signs and inverses


@graph_optimizer(
    P.any_of(
        P.Abs(P.Neg("x").once()),
        P.Mul(P.Neg("x", name="left"), P.Neg("z", name="right")),
        P.Div(P.Neg("x", name="left"), P.Neg("z", name="right")),
        P.Mul(P.Abs("x", name="left"), P.Abs("x", name="right")),
    ),
    tag="E1",
)
def drop_signs(m: Match, rw: Rewriter) -> Value:
    """-x * -z -> x * z, and |-x| -> |x|, |x| * |x| -> x * x likewise"""
    m.require(m.dtype(m.x) in FLOATS, "not a float")
    if m.root.op_type == "Abs":
        return rw.op.Abs(m.x)
    readers = {use.node for node in (m.left, m.right) for use in m.graph.uses(node.value())}
    m.require(readers == {m.root.id}, "the signed values have other readers")
    other = m.z if hasattr(m, "z") else m.x
    made: Value = getattr(rw.op, m.root.op_type)(m.x, other)
    return made


@graph_optimizer(P.Neg(P.Sub("a", "b").once()), tag="E1")
def swap_negated_difference(m: Match, rw: Rewriter) -> Value:
    """-(a - b) -> b - a"""
    m.require(m.dtype(m.a) in FLOATS, "not a float")
    return rw.op.Sub(m.b, m.a)


@graph_optimizer(
    P.any_of(
        P.Reciprocal(P.Reciprocal("x", name="inner").once()),
        P.Reciprocal(P.Div("a", "b", name="inner").once()),
        P.Div(P.scalar(1.0, name="one"), P.Div("a", "b", name="inner").once()),
    ),
    tag="E2",
)
def invert_quotient(m: Match, rw: Rewriter) -> Value:
    """1 / (a / b) -> b / a, and 1 / (1 / x) -> x"""
    m.require(rank_of(m, m.inner.value()) == rank_of(m, m.root.value()), "the constants raise the rank")
    if m.inner.op_type == "Reciprocal":
        value: Value = m.x
        return value
    m.require(m.dtype(m.a) in FLOATS, "not a float")
    return rw.op.Div(m.b, m.a)


@graph_optimizer(P.Sqrt(P.any_of(P.Mul("x", "x").once(), P.Pow("x", P.scalar(2.0)).once())), tag="E2")
def replace_root_of_square(m: Match, rw: Rewriter) -> Value:
    """Sqrt(x * x) -> |x|"""
    m.require(rank_of(m, m.x) == rank_of(m, m.root.value()), "the constants raise the rank")
    return rw.op.Abs(m.x)


@graph_optimizer(P.one_of("Max", "Min")(P.rest("parts", least=2), name="outer"), tag="E1")
def merge_extrema(m: Match, rw: Rewriter) -> Value:
    """Max(Max(a, b), c) -> Max(a, b, c), and of Min likewise"""
    m.require(m.opset() >= 8, "Max does not broadcast before opset 8")
    parts: list[Value | None] = []
    for part in m.parts:
        inner = m.producer(part)
        same = inner is not None and inner.op == m.outer.op and m.single_use(part)
        parts.extend(inner.inputs if inner is not None and same and not m.ctx.is_kept(inner) else [part])
    m.require(len(parts) > len(m.parts), "no operand is of the same kind")
    m.require(sum(m.tensor(v) is not None for v in parts) < 2, "clamps merge in another way")
    made: Value = getattr(rw.op, m.outer.op_type)(*parts)
    return made
