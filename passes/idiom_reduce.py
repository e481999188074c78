"""Reductions spelled out in several operators."""

from __future__ import annotations

import math
from typing import Any

from optimizer.ir import DType, Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.known import FLOATS, axes_of, ints_of, known_sizes, rank_of, shape_of
from passes.moments import divides_by

SUM = P.ReduceSum("x", P.maybe("axes"), name="sum").once()


@graph_optimizer(
    P.any_of(P.Mul(SUM, "k", name="step").commutes(), P.Div(SUM, "k", name="step")), constants="k", tag="E2"
)
def fuse_mean(m: Match, rw: Rewriter) -> Value:
    """ReduceSum(x) / n -> ReduceMean(x), of n numbers at a time"""
    m.require(m.dtype(m.x) in FLOATS, "not a float")
    shape = shape_of(m, m.x)
    axes = axes_of(m, m.sum, 1, len(shape))
    sizes = known_sizes(shape[axis] for axis in axes or ())
    if not sizes or 0 in sizes:
        m.refuse("how many numbers are added up is not known")
    k = m.f64(m.k)
    m.require(k.size == 1 and k.ndim <= rank_of(m, m.sum.value()), "it is not divided by one number")
    divides = divides_by(m.step, float(k.reshape(())), math.prod(sizes))
    m.require(divides, "it is divided by another number")
    return _reduced(m, rw, "ReduceMean", m.sum)


def _reduced(m: Match, rw: Rewriter, op_type: str, like: Any) -> Value:
    """Another reduction over the same axes; these are an input of ReduceSum from opset 13, of all from 18."""
    kept = {name: value for name, value in like.attributes.items() if name == "keepdims"}
    if m.opset() >= 18:
        reduced: Value = getattr(rw.op, op_type)(m.x, like.input(1), **kept)
        return reduced
    axes = ints_of(m, like, "axes", 1)
    m.require(axes is None or axes, "it may run over no axis")
    made: Value = getattr(rw.op, op_type)(m.x, axes=axes, **kept)
    return made


SQUARES = P.any_of(P.Mul("x", "x").once(), P.Pow("x", P.scalar(2.0)).once())


@graph_optimizer(
    P.any_of(
        P.ReduceSum(P.any_of(SQUARES, P.Abs("x", name="abs").once()), P.maybe("axes"), name="sum"),
        P.Sqrt(P.ReduceSumSquare("x", P.maybe("axes"), name="sum").once(), name="rooted"),
        P.Log(P.ReduceSum(P.Exp("x").once(), P.maybe("axes"), name="sum").once(), name="log"),
    ),
    tag="E2",
)
def fuse_reduction(m: Match, rw: Rewriter) -> Value:
    """ReduceSum(x * x) -> ReduceSumSquare(x), and likewise ReduceL1, ReduceL2, ReduceLogSumExp

    Fewer nodes, but slower on common runtimes.
    """
    m.require(m.ctx.settings.objective == "nodes", "it would be slower")
    m.require(m.dtype(m.x) in (DType.FLOAT, DType.DOUBLE), "not float32 or float64")
    m.require(not m.sum.attr("noop_with_empty_axes", 0), "it may run over no axis")
    kind = "ReduceSumSquare"
    for name, fused in (("abs", "ReduceL1"), ("rooted", "ReduceL2"), ("log", "ReduceLogSumExp")):
        kind = fused if hasattr(m, name) else kind
    return _reduced(m, rw, kind, m.sum)


@graph_optimizer(
    P.Div("x", P.one_of("ReduceL1", "ReduceL2")("x", P.maybe("axes"), name="norm").once()), tag="E3"
)
def fuse_lpnormalization(m: Match, rw: Rewriter) -> Value:
    """x / ReduceL2(x) -> LpNormalization(x)

    Rows of zeros stay zeros, and are not divided by 0.
    """
    m.require(m.dtype(m.x) in (DType.FLOAT, DType.DOUBLE), "not float32 or float64")
    rank = rank_of(m, m.x)
    axes = axes_of(m, m.norm, 1, rank)
    m.require(m.norm.attr("keepdims", 1), "an axis is dropped")
    m.require(axes is not None and len(axes) == 1, "it does not run over one axis")
    assert axes is not None
    fast = axes[0] == rank - 1 or m.ctx.settings.objective == "nodes"
    m.require(fast, "it would be slower")
    return rw.op.LpNormalization(m.x, axis=axes[0] - rank, p=1 if m.norm.op_type == "ReduceL1" else 2)


# -------------------------------------------------------------------- the one largest


@graph_optimizer(P.TopK("x", "k", name="top"), constants="k", tag="E1")
def replace_top_1_by_reduction(m: Match, rw: Rewriter) -> list[Value | None]:
    """TopK(x, 1) -> ReduceMax(x), or ArgMax(x), where only one of the two is read"""
    k = m.array(m.k)
    assert k is not None
    m.require(k.size == 1 and k.reshape(()) == 1, "several are asked for")
    m.require(m.top.attr("largest", 1), "the smallest is asked for")
    m.require(m.dtype(m.x) in (DType.FLOAT, DType.INT32, DType.INT64), "not float32, int32 or int64")
    rank = rank_of(m, m.x)
    axis = m.top.attr("axis", -1) % rank
    m.require(shape_of(m, m.x)[axis].bounds[0] >= 1, "there may be none")
    used = [m.graph.has_uses(m.top.value(i)) for i in range(len(m.top.outputs))]
    m.require(sum(used) == 1, "both are read")
    if not used[0]:
        return [None, rw.op.ArgMax(m.x, axis=axis)]
    if m.opset() < 18:
        return [rw.op.ReduceMax(m.x, axes=[axis])]
    return [rw.op.ReduceMax(m.x, rw.const([axis]))]
