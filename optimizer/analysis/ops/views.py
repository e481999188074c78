"""Operators that give the same elements another shape or order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from optimizer.analysis.computed import broadcast, nonzero_or
from optimizer.analysis.context import Inconsistent, InferContext, fresh_shape, normal_axis
from optimizer.analysis.dims import Dim
from optimizer.analysis.elements import Elements
from optimizer.analysis.fact import UNKNOWN, Fact, Shape
from optimizer.analysis.registry import infer
from optimizer.analysis.shapes import product

__all__ = ["reshape_dims", "reshaped"]

ONE = Dim.of(1)


def with_shape(fact: Fact, shape: Shape | None) -> Fact:
    """``fact`` reshaped: the elements stay in order."""
    value = None
    if fact.value is not None and shape is not None:
        value = reshaped(fact.value, shape)
    return Fact(fact.dtype, shape, value)


def reshaped(value: Elements, shape: Shape) -> Elements | None:
    """The same elements in another static shape; ``None`` where it is not static."""
    sizes = [dim.value for dim in shape if dim.value is not None]
    if len(sizes) != len(shape) or product(shape).value != value.array.size:
        return None
    return value.moved(lambda a: a.reshape(sizes))


@infer("Reshape", since=5)
def reshape(context: InferContext) -> Fact:
    fact = context.inputs[0] or UNKNOWN
    target = context.dims(1)
    if target is None:
        return Fact(fact.dtype)
    allow_zero = bool(context.attr("allowzero", 0))
    shape = reshape_dims(fact.shape, target, allow_zero=allow_zero, is_size=context.facts.is_size)
    if fact.shape is not None:
        context.demand(product(shape), product(fact.shape))
    if Dim.of(-1) in target:  # it is left over from the other dimensions, none of which may be 0
        for dim, entry in zip(shape, target, strict=True):
            if entry is None or entry.value != -1:
                context.demand_at_least(dim, 1)
    elif fact.shape is not None and not allow_zero and _has_elements(context, fact.shape, target):
        context.demand_at_least(product(fact.shape), 1)
    return with_shape(fact, shape)


def _has_elements(context: InferContext, source: Shape, target: list[Dim | None]) -> bool:
    """Whether the result cannot be empty: an entry of 0 copies a dimension that is not 0, or fails."""
    for axis, entry in enumerate(target):
        if entry is None or not context.facts.is_size(entry):
            return False
        if entry.bounds[0] < 1 and axis < len(source) and source[axis].bounds[0] < 1:
            return False
    return True


@infer("Reshape")
def reshape_by_attribute(context: InferContext) -> Fact:
    fact = context.inputs[0] or UNKNOWN
    target = [Dim.of(size) for size in context.attr("shape", ())]
    return with_shape(fact, reshape_dims(fact.shape, list(target), allow_zero=False))


def reshape_dims(
    source: Shape | None,
    target: list[Dim | None],
    *,
    allow_zero: bool,
    is_size: Callable[[Dim], bool] = lambda dim: dim.bounds[0] >= 0,
) -> Shape:
    """The shape that ``Reshape`` gives.

    An entry that may be 0 at run time copies the input's dimension then, so it is the output
    dimension only where it cannot be 0, or that dimension equals it. An entry that may be -1 is
    not known.

    Args:
        is_size: whether an entry is never negative.

    Raises:
        Inconsistent: 0 beyond the rank of the input, or a number of elements that cannot fit.
    """
    shape = [_entry(source, axis, entry, allow_zero, is_size) for axis, entry in enumerate(target)]
    unknown = [axis for axis, dim in enumerate(shape) if dim is None]
    if source is not None and len(unknown) <= 1:
        total = product(source)
        rest = product(tuple(dim for dim in shape if dim is not None))
        if not unknown:
            if total.value is not None and rest.value is not None and total != rest:
                raise Inconsistent(f"{total} elements cannot take a shape of {rest}")
        elif target[unknown[0]] == -1 or rest.bounds[0] >= 1:  # -1 beside a 0 is refused at run time
            shape[unknown[0]] = total // rest
    return tuple(Dim.fresh("reshape") if dim is None else dim for dim in shape)


def _entry(
    source: Shape | None, axis: int, entry: Dim | None, allow_zero: bool, is_size: Callable[[Dim], bool]
) -> Dim | None:
    if entry is None or not is_size(entry):
        return None
    if allow_zero or entry.bounds[0] >= 1:
        return entry
    if source is None:
        return None
    if axis < len(source):
        return nonzero_or(entry, source[axis])
    if entry.value == 0:
        raise Inconsistent(f"entry {axis} copies a dimension that the input does not have")
    return entry  # if it were 0, the runtime would refuse it


@infer("Flatten")
def flatten(context: InferContext) -> Fact:
    fact = context.inputs[0] or UNKNOWN
    if fact.shape is None:
        return Fact(fact.dtype, fresh_shape(2, "flatten"))
    axis = context.attr("axis", 1)
    axis = axis + len(fact.shape) if axis < 0 else axis
    return with_shape(fact, (product(fact.shape[:axis]), product(fact.shape[axis:])))


@infer("Squeeze")
def squeeze(context: InferContext) -> Fact:
    fact = context.inputs[0] or UNKNOWN
    axes = context.ints_of("axes", 1)
    if fact.shape is None:
        return Fact(fact.dtype)
    rank = len(fact.shape)
    if axes is None:
        axes = _ones(fact.shape, context.dims(1), given=context.has(1))
    if axes is None:
        count = context.dims(1) if context.has(1) else None
        return Fact(fact.dtype, None if count is None else fresh_shape(rank - len(count), "squeeze"))
    gone = {normal_axis(axis, rank) for axis in axes}
    for axis in gone:
        if fact.shape[axis].eq(1) is False:
            raise Inconsistent(f"axis {axis} of size {fact.shape[axis]} cannot be squeezed")
        context.demand(fact.shape[axis], ONE)
    return with_shape(fact, tuple(dim for axis, dim in enumerate(fact.shape) if axis not in gone))


def _ones(shape: Shape, axes: list[Dim | None] | None, *, given: bool) -> list[int] | None:
    """The axes of size 1 where that is certain: all, or as many as there are unknown ``axes``."""
    ones = [dim.eq(1) for dim in shape]
    if given:
        maybe = [axis for axis, one in enumerate(ones) if one is not False]
        return maybe if axes is not None and len(maybe) == len(axes) else None
    return None if None in ones else [axis for axis, one in enumerate(ones) if one]


@infer("Unsqueeze")
def unsqueeze(context: InferContext) -> Fact:
    fact = context.inputs[0] or UNKNOWN
    axes = context.ints_of("axes", 1)
    if fact.shape is None:
        return Fact(fact.dtype)
    if axes is None:
        count = context.dims(1)
        return Fact(
            fact.dtype, None if count is None else fresh_shape(len(fact.shape) + len(count), "unsqueeze")
        )
    rank = len(fact.shape) + len(axes)
    added = {normal_axis(axis, rank) for axis in axes}
    if len(added) != len(axes):
        raise Inconsistent(f"axes {axes} repeat")
    left = iter(fact.shape)
    return with_shape(fact, tuple(ONE if axis in added else next(left) for axis in range(rank)))


@infer("Transpose")
def transpose(context: InferContext) -> Fact:
    fact = context.inputs[0] or UNKNOWN
    perm = context.attr("perm")
    if fact.shape is None:
        return Fact(fact.dtype, None if perm is None else fresh_shape(len(perm), "transpose"))
    order = (
        [normal_axis(p, len(fact.shape)) for p in perm] if perm is not None else range(len(fact.shape))[::-1]
    )
    if sorted(order) != list(range(len(fact.shape))):
        raise Inconsistent(f"perm {list(order)} for rank {len(fact.shape)}")
    value = None if fact.value is None else fact.value.moved(lambda a: a.transpose(order))
    return Fact(fact.dtype, tuple(fact.shape[axis] for axis in order), value)


@infer("Expand")
def expand(context: InferContext) -> Fact:
    """The target broadcasts with the input: it may hold 1 where the input is larger."""
    fact = context.inputs[0] or UNKNOWN
    target = context.dims(1)
    if fact.shape is None or target is None:
        return Fact(fact.dtype)
    rank = max(len(fact.shape), len(target))
    source = (ONE,) * (rank - len(fact.shape)) + fact.shape
    wanted = [ONE] * (rank - len(target)) + target
    shape = tuple(_expanded(context, p, q) for p, q in zip(source, wanted, strict=True))
    value = None
    sizes = Fact(shape=shape).static_shape
    if fact.value is not None and sizes is not None and product(shape).value in range(257):
        value = fact.value.moved(lambda a: np.broadcast_to(a, sizes))
    return Fact(fact.dtype, shape, value)


def _expanded(context: InferContext, p: Dim, q: Dim | None) -> Dim:
    if q is None or not context.facts.is_size(q):
        return p if p.value is not None and p.value != 1 else Dim.fresh("expand")
    if p.value is not None and q.value is not None and 1 not in (p.value, q.value) and p != q:
        raise Inconsistent(f"a dimension of {p} cannot be expanded to {q}")
    return broadcast(p, q)
