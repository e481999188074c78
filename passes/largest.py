"""The place of the largest, ArgMax, ArgMin and TopK, without what keeps the order of the elements."""

from __future__ import annotations

import numpy as np

from optimizer.analysis.proofs import NON_NEGATIVE
from optimizer.ir import Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.known import FLOATS, rank_of


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
    m.require(m.dtype(m.x) in FLOATS, "not a float")
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


@graph_optimizer(
    P.any_of(
        P.ArgMax(P.one_of("Softmax", "LogSoftmax")("x", name="inner"), name="pick"),
        P.ArgMin(P.LogSoftmax("x", name="inner"), name="pick"),
    ),
    tag="E2",
)
def drop_softmax_before_argmax(m: Match, rw: Rewriter) -> Value:
    """ArgMax(Softmax(x)) -> ArgMax(x), along the same axis

    Elements that only rounding made equal are told apart then. Not the smallest of a Softmax, nor what
    is behind Sigmoid: these are equal, 0 or 1, for numbers that are far apart.
    """
    rank = rank_of(m, m.x)
    m.require(m.opset() >= 13, "Softmax flattens before opset 13")
    same = m.inner.attr("axis", -1) % rank == m.pick.attr("axis", 0) % rank
    m.require(same, "the softmax runs over another axis")
    made: Value = getattr(rw.op, m.pick.op_type)(m.x, **m.pick.attributes)
    return made
