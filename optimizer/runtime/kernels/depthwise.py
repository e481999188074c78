"""Depthwise convolution: multiply-adds over whole flattened planes, a cache-sized block at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.lib.stride_tricks import as_strided

from optimizer.runtime.kernels.rows import row_loops
from optimizer.runtime.kernels.window import Window, pad_to, taps
from optimizer.runtime.precision import Array

BLOCK_ELEMENTS = 48 << 10
"""Elements per block: input, sum and product together stay in the second-level cache."""


def depthwise(x: Array, w: Array, window: Window, y: Array) -> None:
    """Writes the convolution of every channel with its own kernels into ``y``.

    Args:
        x: [N, C, *spatial].
        w: [C * multiplier, 1, *kernel].
        window: the geometry.
        y: [N, C * multiplier, *output].

    Planes are split into one plane per stride phase, so that each kernel tap reads a contiguous,
    shifted run of one of them; sums are made on runs as wide as the padded rows and cropped at the end.
    """
    channels = x.shape[1]
    multiplier = w.shape[0] // channels
    weights = w.reshape(channels, multiplier, -1)
    for rows, part in _row_blocks(window):
        plane = math.prod(_phase_size(part)) * math.prod(part.strides)
        block = max(1, min(channels, BLOCK_ELEMENTS // plane))
        workspace = _Workspace(part, block, y.dtype)
        for n in range(x.shape[0]):
            for first in range(0, channels, block):
                last = min(channels, first + block)
                workspace.load(x[n, first:last])
                for j in range(multiplier):
                    target = y[n, first * multiplier + j : last * multiplier : multiplier, rows]
                    workspace.convolve(weights[first:last, j], target)


def _phase_size(window: Window) -> tuple[int, ...]:
    """Positions per axis of one stride phase of the padded plane."""
    return tuple(-(-r // s) for r, s in zip(window.reach, window.strides, strict=True))


def _row_blocks(window: Window) -> Iterator[tuple[slice, Window]]:
    """Splits the first output axis so that one padded plane fits a block.

    Each part's window starts at its own rows: a negative ``begin`` skips the input rows before.
    """
    row = math.prod(window.reach[1:])
    rows = max(4, BLOCK_ELEMENTS // max(1, row * window.strides[0]))
    for start in range(0, window.output[0], rows):
        count = min(rows, window.output[0] - start)
        begin = window.begin[0] - start * window.strides[0]
        yield (
            slice(start, start + count),
            replace(window, begin=(begin, *window.begin[1:]), output=(count, *window.output[1:])),
        )


class _Workspace:
    """The buffers of one block of channels and the flat run that each tap reads."""

    def __init__(self, window: Window, block: int, dtype: np.dtype[np.floating]) -> None:
        self.window = window
        size = _phase_size(window)
        steps = [math.prod(size[i + 1 :]) for i in range(len(size))]
        self.length = 1 + sum((o - 1) * t for o, t in zip(window.output, steps, strict=True))
        self.total = tuple(p * s for p, s in zip(size, window.strides, strict=True))
        self.steps = steps
        self.reads: list[tuple[int, int]] = []  # (phase, offset in it) of each tap
        for tap in taps(window):
            at = [k * d for k, d in zip(tap, window.dilations, strict=True)]
            phase = int(
                np.ravel_multi_index([a % s for a, s in zip(at, window.strides, strict=True)], window.strides)
            )
            self.reads.append(
                (phase, sum(a // s * t for a, s, t in zip(at, window.strides, steps, strict=True)))
            )
        self.sums = np.empty((block, self.length), dtype)
        self.product = np.empty((block, self.length), dtype)
        self.phases: Array = self.sums

    def load(self, image: Array) -> None:
        """Pads the channels ``image`` [c, *spatial] and splits them into stride phases."""
        window = self.window
        padded = pad_to(image, window.begin, self.total)
        count = len(image)
        if any(s > 1 for s in window.strides):
            n = len(self.total)
            split = [v for t, s in zip(self.total, window.strides, strict=True) for v in (t // s, s)]
            axes = [0, *range(2, 2 * n + 1, 2), *range(1, 2 * n + 1, 2)]
            padded = padded.reshape(count, *split).transpose(axes)
        self.phases = padded.reshape(count, math.prod(window.strides), -1)

    def convolve(self, weights: Array, target: Array) -> None:
        """``target`` [c, *output] = the loaded channels with ``weights`` [c, taps]."""
        count, length = len(weights), self.length
        sums, product = self.sums[:count], self.product[:count]
        with row_loops(length):
            for i, (phase, offset) in enumerate(self.reads):
                run = self.phases[:, phase, offset : offset + length]
                if i == 0:
                    np.multiply(run, weights[:, :1], out=sums)
                else:
                    np.multiply(run, weights[:, i : i + 1], out=product)
                    sums += product
        # The last row of a run stops at its last output: the view never reaches behind the end.
        steps = (sums.strides[0], *(sums.itemsize * t for t in self.steps))
        target[...] = as_strided(sums, (count, *self.window.output), steps, writeable=False)
