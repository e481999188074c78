"""Logic in more words than it needs: truth compared with truth, choices of true and false, negations."""

from __future__ import annotations

import numpy as np

from optimizer.analysis.proofs import NON_NEGATIVE
from optimizer.ir import DType, Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.known import constant_of


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


# -------------------------------------------------------------------- where one number is as good as another


@graph_optimizer(
    P.any_of(
        P.ArgMax(P.one_of("Mul", "Div")("x", P.const("k"), name="step"), name="pick"),
        P.ArgMax(P.one_of("Add", "Sub")("x", P.const("k"), name="step"), name="pick"),
        P.ArgMax(
            P.one_of("Exp", "Sqrt", "Log", "Sigmoid", "Tanh", "Softplus")("x", name="step"), name="pick"
        ),
    ),
    tag="E3",
)
def drop_monotone_before_argmax(m: Match, rw: Rewriter) -> Value:
    """ArgMax(Sigmoid(x)) -> ArgMax(x), and of other functions that grow, as x * 2, likewise

    Elements that the function rounds to the same number are told apart then.
    """
    m.require(m.same_shape(m.x, m.root.inputs[0] or m.x), "a constant stretches the operand")
    m.require(m.dtype(m.x) in (DType.FLOAT, DType.DOUBLE, DType.FLOAT16), "not a float")
    if hasattr(m, "k"):
        k = m.f64(m.k)
        m.require(k.size == 1 and np.isfinite(k).all(), "it is not one number")
        m.require(m.step.op_type in ("Add", "Sub") or k.flat[0] > 0, "the order is turned around")
    if m.step.op_type in ("Sqrt", "Log"):
        m.require(m.fact(m.x, NON_NEGATIVE), "it may be negative, and NaN then")
    made: Value = rw.op.ArgMax(m.x, **m.pick.attributes)
    return made


@graph_optimizer(P.TopK(P.one_of("Softmax", "LogSoftmax")("x", name="inner"), "k", name="top"), tag="E2")
def drop_softmax_before_topk(m: Match, rw: Rewriter) -> list[Value | None]:
    """TopK(Softmax(x), k) -> TopK(x, k), along the same axis, where only the places are read"""
    m.require(not m.graph.has_uses(m.top.value(0)), "the numbers are read")
    m.require(m.opset() >= 13, "Softmax flattens before opset 13")
    rank = len(m.shape(m.x) or ())
    same = rank and m.inner.attr("axis", -1) % rank == m.top.attr("axis", -1) % rank
    m.require(same, "the softmax runs over another axis")
    m.require(m.top.attr("largest", 1), "the smallest are asked for")
    made = rw.op.TopK(m.x, m.k, outputs=2, **m.top.attributes)
    return [None, made[1]]


@graph_optimizer(P.one_of("Softmax", "LogSoftmax")("x", name="softmax"), tag="E1")
def fold_softmax_of_one(m: Match, rw: Rewriter) -> Value:
    """Softmax(x) -> 1, and LogSoftmax(x) -> 0, over an axis of size 1"""
    m.require(m.opset() >= 13, "Softmax flattens before opset 13")
    sizes, dtype = m.static_shape(m.x), m.dtype(m.x)
    if sizes is None or dtype is None:
        return m.refuse("the shape is not known")
    m.require(sizes and sizes[m.softmax.attr("axis", -1)] == 1, "there is more than one")
    filled = np.full(sizes, float(m.softmax.op_type == "Softmax"))
    m.require(m.ctx.may_grow(filled.size * dtype.bits // 8), "the growth budget is used up")
    return rw.const(filled, like=dtype)
