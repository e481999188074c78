"""Slices, counted from either end, forwards or backwards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from optimizer.analysis.computed import maximum, minimum
from optimizer.analysis.context import InferContext, fresh_shape, normal_axis
from optimizer.analysis.dims import Dim
from optimizer.analysis.fact import UNKNOWN, Fact
from optimizer.analysis.registry import infer

__all__ = ["slice_length", "span_of_slice"]

END = 2**31 - 1
"""From here on, a bound of a slice is past the end of any axis."""


@infer("Slice")
def slice_by_attributes(context: InferContext) -> Fact:
    """Before opset 10."""
    starts, ends = context.attr("starts", ()), context.attr("ends", ())
    axes = list(context.attr("axes", range(len(starts))))
    cuts = [(Dim.of(start), Dim.of(end), 1) for start, end in zip(starts, ends, strict=True)]
    return _slice(context, axes, cuts)


@infer("Slice", since=10)
def slice_by_inputs(context: InferContext) -> Fact:
    """Starts, ends, axes and steps as inputs."""
    fact = context.inputs[0] or UNKNOWN
    starts, ends = context.dims(1), context.dims(2)
    known = starts if starts is not None else ends
    axes = context.ints(3) if context.has(3) else None if known is None else list(range(len(known)))
    if fact.shape is None or axes is None:
        return Fact(fact.dtype, None if fact.shape is None else fresh_shape(len(fact.shape), "slice"))
    nothing: list[Dim | None] = [None] * len(axes)
    steps = context.dims(4) if context.has(4) else [Dim.of(1)] * len(axes)
    numbers = [None if step is None else step.value for step in steps or nothing]
    return _slice(context, axes, list(zip(starts or nothing, ends or nothing, numbers, strict=True)))


Cut: TypeAlias = tuple[Dim | None, Dim | None, int | None]
"""Start, end and step."""


def _slice(context: InferContext, axes: list[int], cuts: Sequence[Cut]) -> Fact:
    fact = context.inputs[0] or UNKNOWN
    if fact.shape is None:
        return Fact(fact.dtype)
    shape = list(fact.shape)
    where: list[slice] = [slice(None)] * len(shape)
    static = True
    for axis, (start, end, step) in zip(axes, cuts, strict=True):
        axis = normal_axis(axis, len(shape))
        shape[axis] = slice_length(shape[axis], start, end, step, context.facts.is_size)
        size, first, last = (None if d is None else d.value for d in (fact.shape[axis], start, end))
        if size is None or first is None or last is None or step is None:
            static = False
        else:
            where[axis] = span_of_slice(first, last, step, size)
    value = fact.value.moved(lambda a: a[tuple(where)]) if fact.value is not None and static else None
    return Fact(fact.dtype, tuple(shape), value)


def slice_length(
    dim: Dim,
    start: Dim | None,
    end: Dim | None,
    step: int | None,
    is_size: Callable[[Dim], bool] = lambda dim: dim.bounds[0] >= 0,
) -> Dim:
    """Number of elements of ``dim`` that a slice takes."""
    if start is None or end is None or not step:
        return Dim.fresh("slice")
    if step < 0 and end.value is not None and end.value >= END:
        return Dim.fresh("slice")  # nothing by the text; runtimes go on to the first element
    if dim.value is not None and start.value is not None and end.value is not None:
        span = span_of_slice(start.value, end.value, step, dim.value)
        return Dim.of(len(range(*span.indices(dim.value))))
    if step < 0:
        if start.value is None or end.value is None:
            return Dim.fresh("slice")
        top = dim - 1 if start.value >= END else _backwards(dim, start.value)
        if start.value < -1:
            top = maximum(top, minimum(dim - 1, 0))
        bottom = Dim.of(-1) if end.value <= -END else _backwards(dim, end.value)
        return maximum((top - bottom).ceil_div(-step), 0)
    to_end = end.value is not None and end.value >= END
    if start.bounds[1] < 0 and (to_end or end == dim):
        return minimum(-start, dim).ceil_div(step)
    first = start if is_size(start) else maximum(dim + start, 0) if start.bounds[1] < 0 else None
    last = dim if to_end else minimum(end, dim) if is_size(end) else dim + end if end.bounds[1] < 0 else None
    if first is None or last is None:
        return Dim.fresh("slice")
    return maximum(last - first, 0).ceil_div(step)


def span_of_slice(start: int, end: int, step: int, size: int) -> slice:
    """What a Slice takes of an axis of known size, as Python says it.

    The two differ where a Slice counts down from before the first element: it takes that one.
    """
    start, end = (bound + size if bound < 0 else bound for bound in (start, end))
    if step > 0:
        return slice(max(0, min(start, size)), max(0, min(end, size)), step)
    if not size:
        return slice(0, 0)
    start, end = max(0, min(start, size - 1)), max(-1, min(end, size - 1))
    return slice(start, None if end < 0 else end, step)


def _backwards(dim: Dim, bound: int) -> Dim:
    """Where a slice that counts down starts or ends: from the last element to one before the first."""
    return minimum(bound, dim - 1) if bound >= 0 else maximum(dim + bound, -1)
