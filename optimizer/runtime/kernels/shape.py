"""What only looks at shapes or changes them: the elements stay where they are."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from optimizer.runtime.call import Call
from optimizer.runtime.precision import Array
from optimizer.runtime.registry import kernel


@kernel("Identity", exact=True, may_alias=True)
def identity(call: Call, x: Array) -> Array:
    """The input itself, whatever kind of value it is."""
    return x


@kernel("Shape", exact=True)
def shape(call: Call, x: Array) -> Array:
    """Shape as int64."""
    return np.array(x.shape, np.int64)


@kernel("Shape", 15, exact=True)
def shape_slice(call: Call, x: Array) -> Array:
    """Shape from axis ``start`` to ``end``, both clamped into the rank."""
    start, end = (
        max(0, min(x.ndim, a + x.ndim if a < 0 else a))
        for a in (call.attr("start", 0), call.attr("end", x.ndim))
    )
    return np.array(x.shape[start:end], np.int64)


@kernel("Size", exact=True)
def size(call: Call, x: Array) -> Array:
    """Number of elements as an int64 scalar."""
    return np.array(x.size, np.int64)


@kernel("Reshape", 1, exact=True, may_alias=True)
def reshape_by_attribute(call: Call, x: Array) -> Array:
    """Reshape with the target as an attribute."""
    return _reshape(x, call.attr("shape", ()), allow_zero=False)


@kernel("Reshape", 5, exact=True, may_alias=(0,))
def reshape(call: Call, x: Array, target: Array) -> Array:
    """Reshape; a 0 in the target copies the dimension, unless ``allowzero``."""
    return _reshape(x, target.tolist(), bool(call.attr("allowzero", 0)))


def _reshape(x: Array, target: list[int] | tuple[int, ...], allow_zero: bool) -> Array:
    wanted = list(target)
    for axis, dim in enumerate(wanted):
        if dim == 0 and not allow_zero:
            if axis >= x.ndim:
                raise ValueError(f"target {wanted} copies axis {axis} of a rank {x.ndim} input")
            wanted[axis] = x.shape[axis]
    if -1 in wanted and 0 in wanted and x.size == 0:
        # NumPy finds -1 ambiguous here: the copied zero dims are left out of the division.
        known = math.prod(d for d in wanted if d > 0)
        source = math.prod(d for d in x.shape if d > 0)
        wanted[wanted.index(-1)] = source // known if known else 0
        if math.prod(wanted) != 0:
            raise ValueError(f"cannot reshape {x.shape} to {target}")
    return x.reshape(wanted)


@kernel("Flatten", exact=True, may_alias=True)
def flatten(call: Call, x: Array) -> Array:
    """Two dimensions: those before ``axis`` and the rest."""
    axis = call.attr("axis", 1)
    axis = axis + x.ndim if axis < 0 else axis
    return x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))


@kernel("Squeeze", 1, exact=True, may_alias=True)
def squeeze_by_attribute(call: Call, x: Array) -> Array:
    """Drops the axes named by an attribute, or all of size 1."""
    axes = call.attr("axes")
    return np.squeeze(x, None if axes is None else tuple(axes))


@kernel("Squeeze", 13, exact=True, may_alias=(0,))
def squeeze(call: Call, x: Array, axes: Array | None = None) -> Array:
    """Drops the axes named by an input, or all of size 1."""
    return np.squeeze(x, None if axes is None else tuple(axes.reshape(-1).tolist()))


@kernel("Unsqueeze", 1, exact=True, may_alias=True)
def unsqueeze_by_attribute(call: Call, x: Array) -> Array:
    """Inserts axes of size 1, places in the output named by an attribute."""
    return _expanded(x, call.attr("axes", ()))


@kernel("Unsqueeze", 13, exact=True, may_alias=(0,))
def unsqueeze(call: Call, x: Array, axes: Array) -> Array:
    """Inserts axes of size 1, places in the output named by an input."""
    return _expanded(x, axes.reshape(-1).tolist())


def _expanded(x: Array, axes: Sequence[int]) -> Array:
    """``np.expand_dims`` in a third of its time."""
    rank = x.ndim + len(axes)
    places = {axis + rank if axis < 0 else axis for axis in axes}
    if len(places) != len(axes) or not all(0 <= place < rank for place in places):
        raise ValueError(f"axes {list(axes)} do not fit an output of rank {rank}")
    sizes = iter(x.shape)
    return x.reshape([1 if place in places else next(sizes) for place in range(rank)])


@kernel("Transpose", exact=True, may_alias=True)
def transpose(call: Call, x: Array) -> Array:
    """Permutes the axes; without ``perm`` reverses them."""
    return x.transpose(call.attr("perm"))


@kernel("Expand", 8, exact=True, may_alias=(0,))
def expand(call: Call, x: Array, target: Array) -> Array:
    """Broadcasts to the joint shape of the input and ``target``; a view that takes no memory."""
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(target.tolist())))
