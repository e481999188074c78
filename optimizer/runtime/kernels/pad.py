"""Pad at every version, and CenterCropPad."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from optimizer.runtime.call import Call
from optimizer.runtime.precision import Array
from optimizer.runtime.registry import kernel

_MODES = frozenset({"constant", "reflect", "edge", "wrap"})


@kernel("Pad", 1, exact=True)
def pad_1(call: Call, x: Array) -> Array:
    """Pad version 1 (its attribute is called ``paddings``)."""
    pads = call.attr("paddings", call.attr("pads", ()))
    return _pad(call, x, pads, call.attr("mode", "constant"), call.attr("value", 0.0), None)


@kernel("Pad", 2, exact=True)
def pad_by_attributes(call: Call, x: Array) -> Array:
    """Pad with everything as attributes."""
    return _pad(call, x, call.attr("pads"), call.attr("mode", "constant"), call.attr("value", 0.0), None)


@kernel("Pad", 11, exact=True)
def pad(call: Call, x: Array, pads: Array, value: Array | None = None, axes: Array | None = None) -> Array:
    """Pad with amounts, fill value and (from version 18) axes as inputs."""
    if value is not None:
        fill: object = value.reshape(()) if value.size else 0
    else:
        fill = "" if x.dtype == object else 0
    return _pad(
        call, x, pads.tolist(), call.attr("mode", "constant"), fill, None if axes is None else axes.tolist()
    )


def _pad(
    call: Call, x: Array, pads: Sequence[int], mode: str, fill: object, axes: Sequence[int] | None
) -> Array:
    """Negative amounts crop, before anything is added."""
    if mode not in _MODES:
        raise ValueError(f"unknown mode '{mode}'")
    places = range(x.ndim) if axes is None else [a % x.ndim for a in axes]
    if len(pads) != 2 * len(places):
        raise ValueError(f"{len(pads)} amounts for {len(places)} axes")
    amounts = [(0, 0)] * x.ndim
    for i, axis in enumerate(places):
        amounts[axis] = (pads[i], pads[i + len(places)])
    final = [d + b + a for (b, a), d in zip(amounts, x.shape, strict=True)]
    if min(final, default=0) < 0:
        raise ValueError(f"amounts {list(pads)} crop more than the shape {x.shape} has")
    call.context.check_size(final, x.dtype)
    kept = tuple(slice(max(0, -b), d - max(0, -a)) for (b, a), d in zip(amounts, x.shape, strict=True))
    x = x[kept]
    added = [(max(0, b), max(0, a)) for b, a in amounts]
    if mode == "constant":
        shape = [d + b + a for d, (b, a) in zip(x.shape, added, strict=True)]
        out = np.full(shape, fill, x.dtype)
        out[tuple(slice(b, b + d) for d, (b, _) in zip(x.shape, added, strict=True))] = x
        return out
    for axis, (before, after) in enumerate(added):
        if before or after:
            x = np.take(x, _pad_index(x.shape[axis], before, after, mode), axis)
    return np.array(x)


def _pad_index(size: int, before: int, after: int, mode: str) -> Array:
    """Where each element of the padded axis comes from."""
    if not size:
        raise ValueError(f"mode '{mode}' has nothing to repeat on an empty axis")
    places = np.arange(-before, size + after)
    if mode == "edge":
        return np.clip(places, 0, size - 1)
    if mode == "wrap":
        return places % size
    period = max(1, 2 * (size - 1))
    folded = places % period
    return np.where(folded < size, folded, period - folded)


@kernel("CenterCropPad", 18, exact=True)
def center_crop_pad(call: Call, x: Array, target: Array) -> Array:
    """Crops or zero-pads around the middle; the odd element is at the end."""
    axes = call.attr("axes", tuple(range(x.ndim)))
    for axis, wanted in zip(axes, target.tolist(), strict=True):
        size = x.shape[axis]
        index: list[slice] = [slice(None)] * x.ndim
        if wanted <= size:
            start = (size - wanted) // 2
            index[axis] = slice(start, start + wanted)
            x = x[tuple(index)]
            continue
        shape = list(x.shape)
        shape[axis] = wanted
        start = (wanted - size) // 2
        index[axis] = slice(start, start + size)
        out = np.full(shape, "" if x.dtype == object else 0, x.dtype)
        out[tuple(index)] = x
        x = out
    return np.array(x)
