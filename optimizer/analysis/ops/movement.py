"""Operators that cut, join and pick elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from optimizer.analysis.context import Inconsistent, InferContext, fresh_shape, normal_axis
from optimizer.analysis.dims import Dim
from optimizer.analysis.elements import INTEGERS, MAX_ELEMENTS, Elements, joined
from optimizer.analysis.fact import UNKNOWN, Fact, Shape
from optimizer.analysis.registry import infer
from optimizer.ir import DType

__all__ = ["joined_shape", "taken"]


@infer("Concat")
def concat(context: InferContext) -> Fact:
    facts = [fact or UNKNOWN for fact in context.inputs]
    dtype = next((f.dtype for f in facts if f.dtype is not None), None)
    shape = joined_shape([fact.shape for fact in facts], context.attr("axis", 1))
    if shape is None:
        return Fact(dtype)
    value = None
    if any(f.value is not None for f in facts):
        axis = context.axis(1, len(shape))
        value = joined([_contents(f) for f in facts], lambda arrays: np.concatenate(arrays, axis))
    return Fact(dtype, shape, value)


def joined_shape(given: Sequence[Shape | None], axis: int) -> Shape | None:
    """The shape of tensors joined along an axis; ``None`` where no rank is known.

    Raises:
        Inconsistent: ranks or other dimensions differ.
    """
    rank = next((len(shape) for shape in given if shape is not None), None)
    if rank is None:
        return None
    axis = normal_axis(axis, rank)
    shapes = [shape if shape is not None else fresh_shape(rank, "concat") for shape in given]
    if any(len(shape) != rank for shape in shapes):
        raise Inconsistent("the ranks of the inputs differ", certain=False)
    total = sum((shape[axis] for shape in shapes), Dim.of(0))
    return tuple(total if a == axis else _agreed(a, axis, shapes) for a in range(rank))


def _agreed(axis: int, along: int, shapes: list[Shape]) -> Dim:
    """The dimension that all operands joined along another axis must have: the one most is known of.

    onnxruntime does not look at that of an empty operand, so one that may be empty on its own says
    nothing about the others.
    """
    dims = [shape[axis] for shape in shapes]
    same = all(dim is dims[0] or dim.eq(dims[0]) for dim in dims)
    if not same and any(shape[along].bounds[0] < 1 for shape in shapes):
        dims = [shape[axis] for shape in shapes if all(dim.bounds[0] >= 1 for dim in shape)]
    numbers = {dim.value for dim in dims if dim.value is not None}
    if len(numbers) > 1:
        raise Inconsistent(f"dimensions {sorted(numbers)} should be equal", certain=False)
    for dim in (*(d for d in dims if d.value is not None), *(d for d in dims if d.is_known), *dims):
        return dim
    return Dim.fresh("concat")


def _contents(fact: Fact) -> Elements | None:
    """The contents, or as many unknown elements where only their number is known."""
    sizes = fact.static_shape
    if fact.value is not None or sizes is None or fact.dtype not in (*INTEGERS, DType.BOOL):
        return fact.value
    count = int(np.prod(sizes))
    return Elements.of([None] * count, sizes) if count <= MAX_ELEMENTS else None


@infer("Split", "SplitToSequence_")
def split(context: InferContext) -> list[Fact]:
    fact = context.inputs[0] or UNKNOWN
    count = len(context.node.outputs)
    if fact.shape is None:
        return [Fact(fact.dtype)] * count
    axis = context.axis(0, len(fact.shape))
    sizes = _split_sizes(context, fact.shape[axis], count)
    facts, offset = [], Dim.of(0)
    for size in sizes:
        shape = (*fact.shape[:axis], size, *fact.shape[axis + 1 :])
        facts.append(Fact(fact.dtype, shape, _part(fact.value, axis, offset.value, size.value)))
        offset = offset + size
    return facts


def _split_sizes(context: InferContext, whole: Dim, count: int) -> list[Dim]:
    given = context.attr("split")
    if whole.value == 0:
        return [whole] * count
    sizes = [Dim.of(s) for s in given] if given is not None else context.dims(1)
    if sizes is not None:
        if len(sizes) != count:
            raise Inconsistent(f"{len(sizes)} parts for {count} outputs")
        known = [size for size in sizes if size is not None]
        if len(known) == count:
            context.demand(sum(known, Dim.of(0)), whole)
        return [Dim.fresh("split") if s is None else s for s in sizes]
    if context.has(1):
        return list(fresh_shape(count, "split"))
    if context.opset < 18 or whole.quotient(count) is not None:
        return [whole // count] * count
    chunk = whole.ceil_div(count)
    return [chunk] * (count - 1) + [whole - chunk * (count - 1)]


def _part(value: Elements | None, axis: int, start: int | None, size: int | None) -> Elements | None:
    if value is None or start is None or size is None:
        return None
    return value.moved(lambda a: a[(slice(None),) * axis + (slice(start, start + size),)])


@infer("Gather")
def gather(context: InferContext) -> Fact:
    fact, indices = context.inputs[0] or UNKNOWN, context.inputs[1] or UNKNOWN
    if fact.shape is None or indices.shape is None:
        return Fact(fact.dtype)
    axis = context.axis(0, len(fact.shape))
    shape = (*fact.shape[:axis], *indices.shape, *fact.shape[axis + 1 :])
    value = None
    if fact.value is not None and indices.value is not None:
        numbers = indices.value.ints()
        size = fact.shape[axis].value
        if numbers is not None and size is not None:
            if any(not -size <= n < size for n in numbers):
                raise Inconsistent(f"index {numbers} of an axis of {size}")
            where = np.array(numbers, dtype=np.int64).reshape(indices.value.shape)
            value = fact.value.moved(lambda a: np.take(a, where, axis))
    return Fact(fact.dtype, shape, value)


@infer("GatherElements")
def gather_elements(context: InferContext) -> Fact:
    return Fact(context.dtype(0), context.shape(1))


@infer("GatherND")
def gather_nd(context: InferContext) -> Fact:
    shape, indices, dtype = context.shape(0), context.shape(1), context.dtype(0)
    if shape is None or indices is None or not indices or indices[-1].value is None:
        return Fact(dtype)
    return Fact(dtype, indices[:-1] + shape[context.attr("batch_dims", 0) + indices[-1].value :])


@infer("ScatterElements", "ScatterND", "Scatter", "TensorScatter")
def scatter(context: InferContext) -> Fact:
    fact, value = context.inputs[0] or UNKNOWN, None
    _demand_updates(context)
    indices, updates = context.value(1), context.value(2)
    numbers = None if indices is None else indices.ints()
    plain = context.attr("reduction", "none") == "none" and context.node.op_type != "TensorScatter"
    if (
        plain
        and fact.value is not None
        and updates is not None
        and indices is not None
        and numbers is not None
    ):
        where = np.array(numbers, dtype=np.int64).reshape(indices.shape)
        target = fact.value.array.copy()
        if context.node.op_type == "ScatterND":
            for position in np.ndindex(where.shape[:-1]):
                target[tuple(where[position])] = updates.array[position]
        else:
            axis = context.axis(0, target.ndim)
            for position in np.ndindex(where.shape):
                target[(*position[:axis], where[position], *position[axis + 1 :])] = updates.array[position]
        value = Elements(target)
    return Fact(fact.dtype, fact.shape, value)


def _demand_updates(context: InferContext) -> None:
    """One update for each index."""
    indices, updates = context.shape(1), context.shape(2)
    if context.node.op_type in ("ScatterElements", "Scatter") and indices is not None and updates is not None:
        for p, q in zip(indices, updates, strict=False):
            context.demand(p, q)


@infer("Tile", since=6)
def tile(context: InferContext) -> Fact:
    fact, repeats = context.inputs[0] or UNKNOWN, context.dims(1)
    if fact.shape is None:
        return Fact(fact.dtype, None if repeats is None else fresh_shape(len(repeats), "tile"))
    if repeats is None or len(repeats) != len(fact.shape):
        return Fact(fact.dtype, fresh_shape(len(fact.shape), "tile"))
    shape = tuple(Dim.fresh("tile") if r is None else d * r for d, r in zip(fact.shape, repeats, strict=True))
    value, numbers = None, context.ints(1)
    if fact.value is not None and numbers is not None:
        small = int(np.prod(numbers)) * fact.value.array.size <= MAX_ELEMENTS
        value = fact.value.moved(lambda a: np.tile(a, numbers)) if small else None
    return Fact(fact.dtype, shape, value)


@infer("Tile")
def tile_one_axis(context: InferContext) -> Fact:
    rank = context.rank(0)
    return Fact(context.dtype(0), None if rank is None else fresh_shape(rank, "tile"))


@infer("Pad")
def pad(context: InferContext) -> Fact:
    fact = context.inputs[0] or UNKNOWN
    if fact.shape is None:
        return Fact(fact.dtype)
    rank = len(fact.shape)
    given = context.attr("pads") or context.attr("paddings")
    pads = [Dim.of(p) for p in given] if given is not None else context.dims(1)
    axes = context.ints(3) if context.has(3) else list(range(rank))
    if pads is None or axes is None:
        return Fact(fact.dtype, fresh_shape(rank, "pad"))
    if len(pads) != 2 * len(axes):
        raise Inconsistent(f"{len(pads)} pads for {len(axes)} axes")
    shape = list(fact.shape)
    for axis, before, after in zip(axes, pads, pads[len(axes) :], strict=False):
        axis = normal_axis(axis, rank)
        shape[axis] = Dim.fresh("pad") if before is None or after is None else shape[axis] + before + after
    return Fact(fact.dtype, tuple(shape), _padded(context, fact, pads, axes))


def _padded(
    context: InferContext, fact: Fact, pads: list[Dim | None] | list[Dim], axes: list[int]
) -> Elements | None:
    numbers = [p.value for p in pads if p is not None and p.value is not None and p.value >= 0]
    if fact.value is None or len(numbers) != len(pads) or context.attr("mode", "constant") != "constant":
        return None
    given = context.value(2)
    filler = given.items[0] if given is not None else None
    if not context.has(2) and fact.dtype in INTEGERS:
        filler = Dim.of(0)
    widths = [(0, 0)] * fact.value.array.ndim
    for axis, before, after in zip(axes, numbers, numbers[len(axes) :], strict=False):
        widths[axis] = (before, after)
    sizes = [n + sum(w) for n, w in zip(fact.value.shape, widths, strict=True)]
    if np.prod(sizes) > MAX_ELEMENTS:
        return None
    target = np.full(sizes, None, dtype=object)
    target[...] = filler
    target[tuple(slice(b, b + n) for n, (b, _) in zip(fact.value.shape, widths, strict=True))] = (
        fact.value.array
    )
    return Elements(target)


@infer("Compress")
def compress(context: InferContext) -> Fact:
    fact, axis = context.inputs[0] or UNKNOWN, context.attr("axis")
    condition = context.value(1)
    picks = None if condition is None else condition.items
    count = Dim.fresh("compress")
    if picks is not None and all(isinstance(p, bool) for p in picks):
        count = Dim.of(sum(map(bool, picks)))
    if axis is None:
        return Fact(fact.dtype, (count,))
    if fact.shape is None:
        return Fact(fact.dtype)
    axis = normal_axis(axis, len(fact.shape))
    return Fact(fact.dtype, (*fact.shape[:axis], count, *fact.shape[axis + 1 :]))


@infer("ReverseSequence")
def reverse_sequence(context: InferContext) -> Fact:
    return (context.inputs[0] or UNKNOWN).without_value()


def taken(shape: Shape, axis: int, size: Dim) -> Shape:
    """``shape`` with ``size`` along ``axis``."""
    return (*shape[:axis], size, *shape[axis + 1 :])
