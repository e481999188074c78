"""Geometry of sliding windows: what Conv, ConvTranspose, the pools and Col2Im share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import gcd
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from optimizer.runtime.call import Call
from optimizer.runtime.precision import Array


@dataclass(frozen=True, slots=True)
class Window:
    """A kernel sliding over ``size`` = (d0, d1, ...) spatial positions, one entry per axis each.

    ``output`` counts the window positions, ``begin`` and ``end`` the padding. With ceil mode the last
    window may reach beyond the padding.
    """

    size: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begin: tuple[int, ...]
    end: tuple[int, ...]
    output: tuple[int, ...]

    @property
    def reach(self) -> tuple[int, ...]:
        """Padded positions that the windows touch, counted from the first padded one."""
        return tuple(
            (o - 1) * s + (k - 1) * d + 1
            for o, s, k, d in zip(self.output, self.strides, self.kernel, self.dilations, strict=True)
        )


def window_of(call: Call, size: Sequence[int], kernel: Sequence[int]) -> Window:
    """The window that the attributes strides, dilations, pads, auto_pad and ceil_mode describe.

    Raises:
        ValueError: an attribute has the wrong length, or the kernel does not fit in the padded input.
    """
    n = len(size)
    strides = _per_axis(call.attr("strides"), n, "strides")
    dilations = _per_axis(call.attr("dilations"), n, "dilations")
    if len(kernel) != n:
        raise ValueError(f"kernel shape {list(kernel)} does not fit {n} spatial dims")
    extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    begin, end = _pads(call, size, strides, extent)
    ceil_mode = bool(call.attr("ceil_mode", 0)) and not call.attr("auto_pad", "").startswith("SAME")
    output = []
    for axis in range(n):
        free = size[axis] + begin[axis] + end[axis] - extent[axis]
        if free < 0:
            raise ValueError(f"window {extent[axis]} is larger than the padded input on spatial axis {axis}")
        steps = -(-free // strides[axis]) if ceil_mode else free // strides[axis]
        if ceil_mode and steps * strides[axis] >= size[axis] + begin[axis]:
            steps -= 1  # a window has to start inside the input or its left padding
        output.append(steps + 1)
    return Window(tuple(size), tuple(kernel), strides, dilations, tuple(begin), tuple(end), tuple(output))


def _per_axis(given: Sequence[int] | None, n: int, name: str) -> tuple[int, ...]:
    if given is None:
        return (1,) * n
    if len(given) != n or min(given, default=1) < 1:
        raise ValueError(f"{name} {list(given)} does not fit {n} spatial dims")
    return tuple(given)


def _pads(
    call: Call, size: Sequence[int], strides: Sequence[int], extent: Sequence[int]
) -> tuple[list[int], list[int]]:
    n = len(size)
    mode = call.attr("auto_pad", "NOTSET") or "NOTSET"
    if mode == "NOTSET":
        pads = call.attr("pads") or (0,) * (2 * n)
        if len(pads) != 2 * n:
            raise ValueError(f"pads {list(pads)} does not fit {n} spatial dims")
        return list(pads[:n]), list(pads[n:])
    if mode == "VALID":
        return [0] * n, [0] * n
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        raise ValueError(f"unknown auto_pad {mode!r}")
    begin, end = [], []
    for d, s, e in zip(size, strides, extent, strict=True):
        total = max(0, (-(-d // s) - 1) * s + e - d)
        small, large = total // 2, total - total // 2
        begin.append(small if mode == "SAME_UPPER" else large)
        end.append(large if mode == "SAME_UPPER" else small)
    return begin, end


def pad_to(x: Array, begin: Sequence[int], total: Sequence[int], fill: float | int = 0) -> Array:
    """The last axes of ``x`` at offset ``begin`` in a ``fill``-ed array of ``total`` positions.

    What lies beyond ``total`` is cut off; negative ``begin`` cuts off the start. ``x`` itself is
    returned where nothing changes.
    """
    n = len(total)
    lead, size = x.shape[: x.ndim - n], x.shape[x.ndim - n :]
    if tuple(total) == size and not any(begin):
        return x
    make = np.zeros if not fill else np.empty
    padded = make((*lead, *total), x.dtype)
    if fill:
        padded.fill(fill)
    target: list[slice] = []
    source: list[slice] = []
    for b, t, d in zip(begin, total, size, strict=True):
        first, last = max(b, 0), min(b + d, t)
        target.append(slice(first, max(first, last)))
        source.append(slice(first - b, max(first, last) - b))
    inside: tuple[Any, ...] = (..., *target)
    outside: tuple[Any, ...] = (..., *source)
    padded[inside] = x[outside]
    return padded


@dataclass(frozen=True, slots=True)
class PhaseTaps:
    """The kernel taps that read one stride phase of the padded input, an arithmetic series per axis.

    Attributes:
        phase: position within one stride, per axis.
        taps: which kernel positions, per axis.
        first: the position in the phase that the first of them starts at, per axis.
        step: from one of them to the next, per axis.
        counts: how many there are, per axis.
    """

    phase: tuple[int, ...]
    taps: tuple[slice, ...]
    first: tuple[int, ...]
    step: tuple[int, ...]
    counts: tuple[int, ...]


def phase_taps(window: Window) -> list[PhaseTaps]:
    """The taps of every stride phase that has any; together each tap once."""
    per_axis = [
        [found for phase in range(s) if (found := _axis_taps(phase, s, k, d)) is not None]
        for s, k, d in zip(window.strides, window.kernel, window.dilations, strict=True)
    ]
    return [PhaseTaps(*zip(*axes, strict=True)) for axes in product(*per_axis)]


def _axis_taps(phase: int, stride: int, size: int, dilation: int) -> tuple[int, slice, int, int, int] | None:
    """(phase, taps, first position, step, count) on one axis: all k with k * dilation in the phase."""
    apart = stride // gcd(stride, dilation)
    for k in range(min(apart, size)):
        if k * dilation % stride == phase:
            step = apart * dilation // stride
            return phase, slice(k, None, apart), k * dilation // stride, step, -(-(size - k) // apart)
    return None


def split_phases(x: Array, window: Window) -> Array:
    """``x`` [c, *spatial] padded and split: [*strides, c, *positions], each phase contiguous."""
    split = empty_phases(len(x), window, x.dtype)
    for target, source in phase_fills(split, window):
        target[...] = x[source]
    return split


def empty_phases(channels: int, window: Window, dtype: np.dtype[Any]) -> Array:
    """Zeros [*strides, channels, *positions]: the phases of a padded image without the image."""
    positions = [-(-r // s) for r, s in zip(window.reach, window.strides, strict=True)]
    return np.zeros((*window.strides, channels, *positions), dtype)


def phase_fills(phases: Array, window: Window) -> list[tuple[Array, tuple[slice, ...]]]:
    """For each phase the view that elements of the image go to, and the slices that pick them there."""
    fills = []
    for phase in np.ndindex(*window.strides):
        source, target = [slice(None)], [slice(None)]
        for axis, offset in enumerate(phase):
            stride, begin, size = window.strides[axis], window.begin[axis], window.size[axis]
            first = max(0, -(-(begin - offset) // stride))  # the first position inside the input
            start = first * stride + offset - begin
            positions = phases.shape[len(phase) + 1 + axis]
            count = max(0, min(positions - first, -(-(size - start) // stride)))
            source.append(slice(start, start + (count - 1) * stride + 1 if count else start, stride))
            target.append(slice(first, first + count))
        fills.append((phases[phase][tuple(target)], tuple(source)))
    return fills


def by_phase(w: Array, runs: Sequence[PhaseTaps]) -> Array:
    """Kernels [..., *kernel] flattened with their taps in the order of ``runs``: [..., taps]."""
    lead = w.shape[: w.ndim - len(runs[0].taps)]
    return np.concatenate([w[taps_index(run)].reshape(*lead, -1) for run in runs], -1)


def taps_index(run: PhaseTaps) -> tuple[Any, ...]:
    """Picks the taps of ``run`` from kernels [..., *kernel]."""
    return (..., *run.taps)


def window_view(padded: Array, window: Window) -> Array:
    """A read-only view [lead..., *kernel, *output] of the padded input, without copying."""
    n = len(window.size)
    lead, steps = padded.shape[: padded.ndim - n], padded.strides[padded.ndim - n :]
    kernel_steps = tuple(s * d for s, d in zip(steps, window.dilations, strict=True))
    output_steps = tuple(s * k for s, k in zip(steps, window.strides, strict=True))
    return as_strided(
        padded,
        (*lead, *window.kernel, *window.output),
        (*padded.strides[: padded.ndim - n], *kernel_steps, *output_steps),
        writeable=False,
    )
