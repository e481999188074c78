"""Axes of size 1 that are dropped and put back, or kept and dropped."""

from __future__ import annotations

import numpy as np

from optimizer.ir import Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.known import axes_of, constant_of, ints_of, rank_of, readers_of, shape_of
from passes.permutable import REDUCTIONS

REDUCTION = P.one_of(*sorted(REDUCTIONS), "ArgMax", "ArgMin")(
    "x", P.maybe(P.const("axes")), name="reduce"
).once()


@graph_optimizer(P.Unsqueeze(REDUCTION, P.maybe(P.const("put_back")), name="view"), tag="E0")
def keep_reduced_axes(m: Match, rw: Rewriter) -> Value:
    """Unsqueeze(ReduceMean(x, axes, keepdims=0), axes) -> ReduceMean(x, axes, keepdims=1)"""
    m.require(not m.reduce.attr("keepdims", 1), "the axes are kept already")
    return _reduced(m, rw, rank_of(m, m.x), keepdims=1)


@graph_optimizer(P.Squeeze(REDUCTION, P.maybe(P.const("dropped")), name="view"), tag="E0")
def drop_reduced_axes(m: Match, rw: Rewriter) -> Value:
    """Squeeze(ReduceMean(x, axes, keepdims=1), axes) -> ReduceMean(x, axes, keepdims=0)"""
    m.require(m.reduce.attr("keepdims", 1), "the axes are dropped already")
    return _reduced(m, rw, rank_of(m, m.x), keepdims=0)


@graph_optimizer(
    P.one_of("Flatten", "Reshape")(
        P.one_of("ReduceMean", "ReduceMax", "ReduceMin", "ReduceSum", "ReduceL2")(
            "x", P.maybe("axes"), name="reduce"
        ).once(),
        P.rest("target"),
    ),
    tag="E0",
)
def drop_axes_at_once(m: Match, rw: Rewriter) -> Value:
    """Flatten(ReduceMean(x, axes)) -> ReduceMean(x, axes, keepdims=0), where it drops the reduced axes"""
    m.require(m.reduce.attr("keepdims", 1), "an axis is dropped")
    shape = shape_of(m, m.reduce.value())
    axes = ints_of(m, m.reduce, "axes", 1)
    m.require(axes, "all axes are reduced")
    reduced = {axis % len(shape) for axis in axes or ()}
    left = tuple(dim for axis, dim in enumerate(shape) if axis not in reduced)
    m.require(left == shape_of(m, m.root.value()), "the result has another shape")
    attributes = {**m.reduce.attributes, "keepdims": 0}
    made: Value = getattr(rw.op, m.reduce.op_type)(m.x, m.axes, **attributes)
    return made


def _reduced(m: Match, rw: Rewriter, rank: int, keepdims: int) -> Value:
    if m.reduce.op_type.startswith("Arg"):
        axes: tuple[int, ...] | None = (m.reduce.attr("axis", 0) % rank,)
    else:
        axes = axes_of(m, m.reduce, 1, rank)
    m.require(axes, "the reduction is not over given axes")
    m.require(axes == axes_of(m, m.view, 1, rank), "the axes are others")
    attributes = {**m.reduce.attributes, "keepdims": keepdims}
    made: Value = getattr(rw.op, m.reduce.op_type)(m.x, m.axes, **attributes)
    return made


@graph_optimizer(
    P.Unsqueeze(P.Gather("x", "index", name="gather").once(), P.maybe("axes"), name="view"),
    constants="index",
    tag="E0",
)
def keep_gathered_axis(m: Match, rw: Rewriter) -> Value:
    """Unsqueeze(Gather(x, 3), axis) -> Gather(x, [3])"""
    index, rank = constant_of(m, m.index), rank_of(m, m.x)
    m.require(not index.shape, "the index is no scalar")
    axis = m.gather.attr("axis", 0) % rank
    m.require(axes_of(m, m.view, 1, rank) == (axis,), "the axes are others")
    return rw.op.Gather(m.x, rw.const(index.array.reshape(1)), axis=axis)


@graph_optimizer(
    P.Squeeze(P.Gather("x", "index", name="gather").once(), P.maybe("axes"), name="view"),
    constants="index",
    tag="E0",
)
def drop_gathered_axis(m: Match, rw: Rewriter) -> Value:
    """Squeeze(Gather(x, [3]), axis) -> Gather(x, 3)"""
    index, rank = constant_of(m, m.index), rank_of(m, m.x)
    m.require(index.shape == (1,), "the index is not one number")
    axis = m.gather.attr("axis", 0) % rank
    m.require(axes_of(m, m.view, 1, rank) == (axis,), "the axes are others")
    return rw.op.Gather(m.x, rw.const(index.array.reshape(())), axis=axis)


@graph_optimizer(
    P.Squeeze(
        P.Slice("x", "start", "end", "along", P.maybe("step"), name="slice").once(),
        P.maybe("axes"),
        name="view",
    ),
    constants="start end along",
    tag="E0",
)
def replace_squeezed_slice_by_gather(m: Match, rw: Rewriter) -> Value:
    """Squeeze(Slice(x, [3], [4], [axis]), axis) -> Gather(x, 3)

    Where the index is beyond the end both fail.
    """
    rank = rank_of(m, m.x)
    start, end, along = (constant_of(m, v).array for v in (m.start, m.end, m.along))
    m.require(start.size == end.size == along.size == 1, "it cuts several axes")
    step = 1 if m.step is None else int(constant_of(m, m.step).array.reshape(()))
    first, last, axis = int(start[0]), int(end[0]), int(along[0]) % rank
    one = last >= 2**31 - 1 if first == -1 else last == first + 1
    m.require(step == 1 and one, "it does not cut out one element")
    m.require(axes_of(m, m.view, 1, rank) == (axis,), "the axes are others")
    return rw.op.Gather(m.x, rw.const(np.array(first, np.int64)), axis=axis)


@graph_optimizer(P.Squeeze("part", P.maybe("axes"), name="view"), tag="E0")
def replace_squeezed_split_by_gather(m: Match, rw: Rewriter) -> Value:
    """Squeeze(Split(x)[i], axis) -> Gather(x, i)

    Where every part that is read is one element along the axis and squeezed, so that Split dies.
    """
    split = m.producer(m.part)
    if split is None or split.op_type != "Split" or split.inputs[0] is None:
        m.refuse("no part of a Split")
    m.require(not any(a.reference for a in split.attributes.values()), "no part of a Split")
    rank = rank_of(m, m.part)
    axis = split.attr("axis", 0) % rank
    parts = [split.value(output) for output in range(len(split.outputs))]
    m.require(all(shape_of(m, part)[axis] == 1 for part in parts), "a part is not one element")
    for part in parts:
        for reader, _ in readers_of(m, part):
            squeezed = reader.op_type == "Squeeze" and axes_of(m, reader, 1, rank) == (axis,)
            m.require(squeezed, "a part is read with its axis")
    return rw.op.Gather(split.inputs[0], rw.const(np.array(m.part.output, np.int64)), axis=axis)


@graph_optimizer(
    P.one_of("ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum")(
        P.one_of("ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum")(
            "x", P.maybe(P.const("inner_axes")), name="inner"
        ).once(),
        P.maybe(P.const("outer_axes")),
        name="outer",
    ),
    tag="E2",
)
def merge_reductions(m: Match, rw: Rewriter) -> Value:
    """ReduceMean(ReduceMean(x, [3]), [2]) -> ReduceMean(x, [2, 3]), and the other reductions likewise"""
    m.require(m.inner.op_type == m.outer.op_type, "they reduce in different ways")
    rank = rank_of(m, m.x)
    first = axes_of(m, m.inner, 1, rank)
    keeps = m.inner.attr("keepdims", 1)
    m.require(first and keeps == m.outer.attr("keepdims", 1), "one keeps its axes and one does not")
    assert first is not None
    left = list(range(rank)) if keeps else [axis for axis in range(rank) if axis not in first]
    m.require(left, "nothing is left to reduce")
    second = axes_of(m, m.outer, 1, len(left))
    m.require(second, "the reduction is not over given axes")
    axes = sorted({*first, *(left[axis] for axis in second or ())})
    attributes = {name: value for name, value in m.inner.attributes.items() if name != "axes"}
    if m.inner_axes is None:
        made: Value = getattr(rw.op, m.inner.op_type)(m.x, **{**attributes, "axes": axes})
    else:
        made = getattr(rw.op, m.inner.op_type)(m.x, rw.const(np.array(axes, np.int64)), **attributes)
    return made
