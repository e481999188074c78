"""Transposes merged with each other, or made into the Reshape that they are."""

from __future__ import annotations

import numpy as np

from optimizer.ir import Node, Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.known import axes_of, rank_of, shape_of
from passes.target import reshape_target


@graph_optimizer(P.Transpose(P.Transpose("x", name="first"), name="second"), tag="E0")
def merge_transposes(m: Match, rw: Rewriter) -> Value:
    """Transpose(Transpose(x, p), q) -> Transpose(x, p[q]), or x itself"""
    rank = rank_of(m, m.x)
    first, second = _perm(m.first, rank), _perm(m.second, rank)
    perm = [first[axis] for axis in second]
    x: Value = m.x
    return x if perm == sorted(perm) else rw.op.Transpose(x, perm=perm)


@graph_optimizer(P.Transpose("x", name="transpose"), tag="E0")
def replace_transpose_by_reshape(m: Match, rw: Rewriter) -> Value:
    """Transpose(x) -> Reshape(x), where only axes of size 1 change their places"""
    shape = shape_of(m, m.x)
    perm = _perm(m.transpose, len(shape))
    moved = [axis for axis in perm if shape[axis] != 1]
    m.require(perm != sorted(perm), "it does nothing")
    m.require(moved == sorted(moved), "it moves data")
    target = reshape_target(m, shape, [shape[axis] for axis in perm], None)
    return rw.op.Reshape(m.x, rw.const(np.array(target, np.int64)))


@graph_optimizer(
    P.one_of(
        "ReduceL1",
        "ReduceL2",
        "ReduceLogSum",
        "ReduceLogSumExp",
        "ReduceMax",
        "ReduceMean",
        "ReduceMin",
        "ReduceProd",
        "ReduceSum",
        "ReduceSumSquare",
    )(P.Transpose("x", name="transpose").once(), P.maybe("axes"), name="reduce"),
    tag="E2",
)
def fold_transpose_into_reduction(m: Match, rw: Rewriter) -> Value:
    """ReduceMean(Transpose(x, p), axes) -> ReduceMean(x, p[axes])

    Where what is left keeps its order: the axes are dropped, or no other one moved.
    """
    rank = rank_of(m, m.x)
    perm, axes = _perm(m.transpose, rank), axes_of(m, m.reduce, 1, rank)
    if not axes:
        m.refuse("it runs over all axes, or over none")
    inner = sorted(perm[axis] for axis in axes)
    if m.reduce.attr("keepdims", 1):
        kept_alike = all(perm[a] == a for a in range(rank) if a not in axes) and tuple(inner) == axes
        m.require(kept_alike, "what is left is permuted")
    else:
        left = [perm[axis] for axis in range(rank) if axis not in axes]
        m.require(left == sorted(left), "what is left is permuted")
    attributes = dict(m.reduce.attributes)
    if m.axes is None:
        made: Value = getattr(rw.op, m.reduce.op_type)(m.x, **{**attributes, "axes": inner})
    else:
        made = getattr(rw.op, m.reduce.op_type)(m.x, rw.const(np.array(inner, np.int64)), **attributes)
    return made


def _perm(transpose: Node, rank: int) -> list[int]:
    return list(transpose.attr("perm", range(rank)[::-1]))
