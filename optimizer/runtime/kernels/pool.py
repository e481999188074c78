"""MaxPool, AveragePool, LpPool and the global pools: separable, one axis after the other."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from optimizer.runtime.call import Call
from optimizer.runtime.kernels.window import Window, pad_to, window_of, window_view
from optimizer.runtime.precision import Array, computed_wide
from optimizer.runtime.registry import kernel

BLOCK_ELEMENTS = 96 << 10
"""Padded elements pooled at a time, so that the passes after the first one find them in the cache."""


@kernel("MaxPool", since=1, exact=True)
@computed_wide
def max_pool(call: Call, x: Array) -> Array | tuple[Array, Array]:
    """Largest element of each window; with a second output also its flat index in ``x``."""
    window = _pool_window(call, x)
    lowest = -np.inf if x.dtype.kind == "f" else int(np.iinfo(x.dtype).min)
    if call.wants(1):
        return _max_with_indices(x, window, lowest, column_major=bool(call.attr("storage_order", 0)))
    y = np.empty((*x.shape[:2], *window.output), x.dtype)
    for part, target in _blocks(x, y):
        _separable(np.maximum, pad_to(part, window.begin, window.reach, lowest), window, target)
    return y


def _pool_window(call: Call, x: Array) -> Window:
    kernel_shape = call.attr("kernel_shape")
    if kernel_shape is None:
        raise ValueError("kernel_shape is missing")
    window: Window = call.latest(x.shape, lambda: window_of(call, x.shape[2:], kernel_shape))
    return window


def _blocks(x: Array, y: Array) -> Iterator[tuple[Array, Array]]:
    """(planes of x, the same planes of y), a cache-sized number at a time, batch and channel merged."""
    planes = x.shape[0] * x.shape[1]
    source = x.reshape(planes, *x.shape[2:])
    target = y.reshape(planes, *y.shape[2:])
    count = max(1, BLOCK_ELEMENTS // max(1, math.prod(x.shape[2:])))
    for first in range(0, planes, count):
        yield source[first : first + count], target[first : first + count]


def _separable(combine: np.ufunc, padded: Array, window: Window, target: Array) -> None:
    """``target`` [planes, *output] = ``combine`` over every window of ``padded`` [planes, *reach]."""
    last = len(window.kernel)
    for axis in range(1, last + 1):
        count, step, dilation = (w[axis - 1] for w in (window.output, window.strides, window.dilations))
        lead = (slice(None),) * axis
        runs = [
            padded[(*lead, slice(k * dilation, k * dilation + (count - 1) * step + 1, step))]
            for k in range(window.kernel[axis - 1])
        ]
        out = target if axis == last else np.empty(runs[0].shape, padded.dtype)
        if len(runs) == 1:
            out[...] = runs[0]
        else:
            combine(runs[0], runs[1], out=out)
        for run in runs[2:]:
            combine(out, run, out=out)
        padded = out


def _max_with_indices(
    x: Array, window: Window, lowest: float | int, *, column_major: bool
) -> tuple[Array, Array]:
    """Values and flat indices. Of equal elements the first in row-major kernel order wins."""
    n = len(window.size)
    view = window_view(pad_to(x, window.begin, window.reach, lowest), window)
    columns = view.reshape(*x.shape[:2], math.prod(window.kernel), *window.output)
    best = columns.argmax(2)
    y = np.take_along_axis(columns, best[:, :, None], 2)[:, :, 0]
    place = np.unravel_index(best, window.kernel)
    flat = np.zeros(best.shape, np.int64)
    order = range(n - 1, -1, -1) if column_major else range(n)
    for axis in order:
        shape = [1] * best.ndim
        shape[2 + axis] = window.output[axis]
        start = np.arange(window.output[axis]).reshape(shape) * window.strides[axis] - window.begin[axis]
        # A window of nothing but -inf may pick its padding: keep the index inside the tensor.
        position = np.clip(start + place[axis] * window.dilations[axis], 0, window.size[axis] - 1)
        flat = flat * window.size[axis] + position
    plane = np.arange(x.shape[0] * x.shape[1]).reshape(*x.shape[:2], *(1,) * n)
    return y, flat + plane * math.prod(window.size)


@kernel("AveragePool", since=1)
@computed_wide
def average_pool(call: Call, x: Array) -> Array:
    """Mean of each window over its positions in ``x`` (count_include_pad: also those in the padding)."""
    window = _pool_window(call, x)
    y = np.empty((*x.shape[:2], *window.output), x.dtype)
    counts = _counts(window, include_pad=bool(call.attr("count_include_pad", 0))).astype(x.dtype)
    for part, target in _blocks(x, y):
        _separable(np.add, pad_to(part, window.begin, window.reach), window, target)
        target /= counts
    return y


def _counts(window: Window, *, include_pad: bool) -> Array:
    """How many positions of each window count: those that ceil mode adds at the end never do."""
    counts = np.ones((), np.int64)
    for axis in range(len(window.size)):
        starts = np.arange(window.output[axis])[:, None] * window.strides[axis]
        at = starts + np.arange(window.kernel[axis]) * window.dilations[axis] - window.begin[axis]
        first = -window.begin[axis] if include_pad else 0
        last = window.size[axis] + (window.end[axis] if include_pad else 0)
        counts = np.multiply.outer(counts, ((at >= first) & (at < last)).sum(1))
    return counts


@kernel("LpPool", since=1)
@computed_wide
def lp_pool(call: Call, x: Array) -> Array:
    """(sum of |x|^p over each window)^(1/p)."""
    window = _pool_window(call, x)
    p = call.attr("p", 2)
    y = np.empty((*x.shape[:2], *window.output), x.dtype)
    for part, target in _blocks(x, y):
        powers = _power(np.abs(part), p)
        _separable(np.add, pad_to(powers, window.begin, window.reach), window, target)
    return _power(y, 1 / p)


def _power(x: Array, p: float) -> Array:
    if p == 1:
        return x
    if p == 2:
        return np.square(x)
    return np.sqrt(x) if p == 0.5 else np.power(x, x.dtype.type(p))


def _global(x: Array, reduce: Callable[[Array], Array]) -> Array:
    """``reduce`` over all spatial positions of [N, C, *spatial], kept as dims of one."""
    if x.ndim < 2:
        raise ValueError(f"input of rank {x.ndim}")
    return reduce(x.reshape(*x.shape[:2], math.prod(x.shape[2:]))).reshape(*x.shape[:2], *(1,) * (x.ndim - 2))


@kernel("GlobalAveragePool", since=1)
@computed_wide
def global_average_pool(call: Call, x: Array) -> Array:
    """Mean over all spatial positions."""
    return _global(x, lambda v: v.mean(2))


@kernel("GlobalMaxPool", since=1, exact=True)
@computed_wide
def global_max_pool(call: Call, x: Array) -> Array:
    """Largest element over all spatial positions."""
    return _global(x, lambda v: v.max(2))


@kernel("GlobalLpPool", since=1)
@computed_wide
def global_lp_pool(call: Call, x: Array) -> Array:
    """(sum of |x|^p over all spatial positions)^(1/p)."""
    p = call.attr("p", 2)
    return _global(x, lambda v: _power(_power(np.abs(v), p).sum(2), 1 / p))


@kernel("MaxUnpool", since=9, exact=True)
def max_unpool(call: Call, x: Array, indices: Array, output_shape: Array | None = None) -> Array:
    """Zeros with ``x`` at the flat ``indices`` of the unpooled shape.

    An explicit ``output_shape`` only enlarges: the unpooled tensor stands at its beginning.
    """
    n = x.ndim - 2
    kernel_shape, strides = call.attr("kernel_shape"), call.attr("strides") or (1,) * n
    pads = call.attr("pads") or (0,) * (2 * n)
    spatial = tuple(
        (x.shape[2 + i] - 1) * strides[i] + kernel_shape[i] - pads[i] - pads[n + i] for i in range(n)
    )
    shape = (*x.shape[:2], *spatial)
    flat = indices.reshape(-1)
    if flat.size and (flat.min() < 0 or flat.max() >= math.prod(shape)):
        raise ValueError(f"an index is outside of the unpooled shape {list(shape)}")
    y = np.zeros(math.prod(shape), x.dtype)
    y[flat] = x.reshape(-1)
    y = y.reshape(shape)
    if output_shape is None:
        return y
    return pad_to(y, (0,) * y.ndim, tuple(int(d) for d in output_shape))
