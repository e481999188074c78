"""Conv: one of five ways to turn a convolution into matrix products, picked by its shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from optimizer.runtime.call import Call
from optimizer.runtime.kernels.depthwise import KeptForms, depthwise
from optimizer.runtime.kernels.rows import row_loops
from optimizer.runtime.kernels.window import (
    PhaseTaps,
    Window,
    pad_to,
    phase_taps,
    split_phases,
    taps_index,
    window_of,
    window_view,
)
from optimizer.runtime.precision import Array, computed_wide
from optimizer.runtime.registry import kernel

SCRATCH_BYTES = 3 << 20
"""Size of the column buffer, measured as the fastest where every element of it is used once."""
FEWEST_ROWS = 8
"""Output rows at a time: each block copies the rows between it and the next one twice."""
ROWS_BYTES = 3 << 19
"""The same where every kernel row reads the buffer again: nearer to a second-level cache."""


@kernel("Conv", since=1)
@computed_wide
def conv(call: Call, x: Array, w: Array, b: Array | None = None) -> Array:
    """Y [N, M, *output] of X [N, C, *spatial] and W [M, C / group, *kernel]."""
    group = call.attr("group", 1)
    window = call.latest((x.shape, w.shape), lambda: conv_window(call, x, w, group))
    y = convolve(call, x, w, window, group, weight_slots=(1,))
    if b is not None:
        with row_loops(math.prod(window.output)):
            y += b.reshape(-1, *(1,) * (x.ndim - 2))
    return y


def conv_window(call: Call, x: Array, w: Array, group: int) -> Window:
    """The window of a convolution, after checking that its shapes agree.

    Raises:
        ValueError: they do not.
    """
    if x.ndim != w.ndim or x.ndim < 3:
        raise ValueError(f"X of rank {x.ndim} and W of rank {w.ndim}")
    if x.shape[1] != w.shape[1] * group or w.shape[0] % group:
        raise ValueError(f"X {list(x.shape)}, W {list(w.shape)} and group {group} disagree")
    declared = call.attr("kernel_shape")
    if declared is not None and tuple(declared) != w.shape[2:]:
        raise ValueError(f"kernel_shape {list(declared)} differs from W {list(w.shape)}")
    return window_of(call, x.shape[2:], w.shape[2:])


def convolve(
    call: Call, x: Array, w: Array, window: Window, group: int, *, weight_slots: tuple[int, ...]
) -> Array:
    """The convolution without bias, in the common dtype of ``x`` and ``w``.

    O(N M C / group * prod(kernel) * prod(output)) multiply-adds, at most about 4 MiB of scratch
    besides one padded image.

    Args:
        weight_slots: the inputs that ``w`` depends on; its other forms are kept where all are constants.
    """
    kept = KeptForms(call, weight_slots)
    n, m = x.shape[0], w.shape[0]
    y = np.empty((n, m, *window.output), np.result_type(x, w))
    if not y.size or not w.size:
        y.fill(0)
        return y
    if w.shape[1] == 1 and group > 1:
        depthwise(kept, x, w, window, y)
    elif math.prod(window.kernel) == 1:
        _pointwise(x, w, window, group, y)
    elif group == 1 and _rows_pay(w, window):
        _row_offsets(kept, x, w, window, y)
    elif group == 1 and any(s > 1 for s in window.strides):
        _phase_columns(kept, x, w, window, y)
    else:
        _columns(x, w, window, group, y)
    return y


def _rows_pay(w: Array, window: Window) -> bool:
    """Whether products on row-offset views beat full columns: deep enough, and planes not tiny."""
    depth, rest = w.shape[1] * math.prod(window.kernel[1:]), math.prod(window.output[1:])
    least = (FEWEST_ROWS + (window.kernel[0] - 1) * window.dilations[0]) * depth * rest * w.itemsize
    large = depth >= 48 and window.output[0] * rest >= 150
    return window.kernel[0] > 1 and window.strides[0] == 1 and large and least <= 2 * ROWS_BYTES


def _pointwise(x: Array, w: Array, window: Window, group: int, y: Array) -> None:
    """A 1x1 kernel: one product per image and group, straight on the input."""
    x = pad_to(x, window.begin, _padded_size(window))
    if any(s > 1 for s in window.strides):
        every: tuple[Any, ...] = (..., *(slice(None, None, s) for s in window.strides))
        x = x[every]
    (n, m), depth = y.shape[:2], w.shape[1]
    columns, flat = x.reshape(n, group, depth, -1), y.reshape(n, group, m // group, -1)
    np.matmul(w.reshape(group, m // group, depth), columns, out=flat)


def _padded_size(window: Window) -> tuple[int, ...]:
    return tuple(d + b + e for d, b, e in zip(window.size, window.begin, window.end, strict=True))


def _row_offsets(kept: KeptForms, x: Array, w: Array, window: Window, y: Array) -> None:
    """Stride 1 on the first axis: columns for the other axes only, then one product per kernel row.

    The columns of all rows stand side by side, so the operand of kernel row i is a view of them
    that starts i * dilation rows later; the matrix product reads it in place.
    """
    m, rest = w.shape[0], math.prod(window.output[1:])
    depth = w.shape[1] * math.prod(window.kernel[1:])
    weights = kept.form(
        "rows", w, lambda: np.ascontiguousarray(np.moveaxis(w, 2, 0)).reshape(w.shape[2], m, depth)
    )
    kernel_rows, dilation = window.kernel[0], window.dilations[0]
    extra = (kernel_rows - 1) * dilation
    reach = window.reach
    block = max(FEWEST_ROWS, ROWS_BYTES // (depth * rest * x.itemsize) - extra)
    for image, result in zip(x, y, strict=True):
        padded = pad_to(image, window.begin, reach)
        flat = result.reshape(m, -1)
        for start in range(0, window.output[0], block):
            count = min(block, window.output[0] - start)
            part = replace(
                window,
                kernel=(1, *window.kernel[1:]),
                output=(count + extra, *window.output[1:]),
            )
            columns = window_view(padded[:, start : start + count + extra], part).reshape(depth, -1)
            target = flat[:, start * rest : (start + count) * rest]
            width = count * rest
            np.matmul(weights[0], columns[:, :width], out=target)
            with row_loops(width):
                for i in range(1, kernel_rows):
                    offset = i * dilation * rest
                    target += np.matmul(weights[i], columns[:, offset : offset + width])


def _phase_columns(kept: KeptForms, x: Array, w: Array, window: Window, y: Array) -> None:
    """Strides: blocks of columns copied from the stride phases of the image, in whole rows each."""
    m, depth, rest = w.shape[0], math.prod(w.shape[1:]), math.prod(window.output[1:])
    runs = phase_taps(window)
    weights = kept.form("phases", w, lambda: _columns_by_phase(w, runs))
    block = max(1, SCRATCH_BYTES // (depth * rest * x.itemsize))
    for image, result in zip(x, y, strict=True):
        phases, flat = split_phases(image, window), result.reshape(m, -1)
        for start in range(0, window.output[0], block):
            count = min(block, window.output[0] - start)
            columns = np.empty((depth, count, *window.output[1:]), x.dtype)
            place = 0
            for run in runs:
                piece = _phase_view(phases[run.phase], run, start, (count, *window.output[1:]))
                size = math.prod(piece.shape[: 1 + len(run.counts)])
                columns[place : place + size].reshape(piece.shape)[...] = piece
                place += size
            target = flat[:, start * rest : (start + count) * rest]
            np.matmul(weights, columns.reshape(depth, -1), out=target)


def _columns_by_phase(w: Array, runs: Sequence[PhaseTaps]) -> Array:
    """[M, depth] with depth in the order in which the columns are copied: phase, channel, tap."""
    return np.concatenate([w[taps_index(run)].reshape(len(w), -1) for run in runs], 1)


def _phase_view(phase: Array, run: PhaseTaps, start: int, output: tuple[int, ...]) -> Array:
    """[C, *taps, *output] of one phase [C, *positions], from output row ``start`` on; no copy."""
    inside = tuple(slice(f, None) for f in run.first)
    begun = phase[(slice(None), *inside)][:, start:]
    apart = tuple(s * t for s, t in zip(run.step, begun.strides[1:], strict=True))
    strides = (begun.strides[0], *apart, *begun.strides[1:])
    return as_strided(begun, (len(begun), *run.counts, *output), strides, writeable=False)


def _columns(x: Array, w: Array, window: Window, group: int, y: Array) -> None:
    """Any convolution: blocks of full columns (im2col), one batched product over the groups each."""
    m, taps = w.shape[0], math.prod(window.kernel)
    depth, rest = w.shape[1] * taps, math.prod(window.output[1:])
    weights = w.reshape(group, m // group, depth)
    step, dilation = window.strides[0], window.dilations[0]
    block = max(1, SCRATCH_BYTES // (depth * group * rest * x.itemsize))
    reach = window.reach
    for image, result in zip(x, y, strict=True):
        padded = pad_to(image, window.begin, reach)
        flat = result.reshape(group, m // group, -1)
        for start in range(0, window.output[0], block):
            count = min(block, window.output[0] - start)
            last = (start + count - 1) * step + (window.kernel[0] - 1) * dilation + 1
            part = replace(window, output=(count, *window.output[1:]))
            view = window_view(padded[:, start * step : last], part)
            columns = view.reshape(group, depth, count * rest)
            np.matmul(weights, columns, out=flat[:, :, start * rest : (start + count) * rest])
