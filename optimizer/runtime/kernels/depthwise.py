"""Depthwise convolution: per channel one product of its taps with shifted runs of its flattened plane."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.lib.stride_tricks import as_strided

from optimizer.runtime.call import Call
from optimizer.runtime.kernels.window import Window, by_phase, empty_phases, phase_fills, phase_taps
from optimizer.runtime.precision import Array

COLUMN_BYTES = 1 << 20
"""Size of the buffer of runs; measured, twice as fast as sums of products tap by tap."""


@dataclass(frozen=True, slots=True)
class KeptForms:
    """Where forms of the weights are kept between runs, if all inputs that they depend on are constants."""

    call: Call
    slots: tuple[int, ...]

    def form(self, name: str, w: Array, make: Callable[[], Array]) -> Array:
        """``make()``, or what it made before for weights of the dtype of ``w``."""
        return self.call.derived_of(self.slots, (name, w.dtype), make)


def depthwise(kept: KeptForms, x: Array, w: Array, window: Window, y: Array) -> None:
    """Writes the convolution of every channel with its own kernels into ``y``.

    Args:
        x: [N, C, *spatial].
        w: [C * multiplier, 1, *kernel].
        window: the geometry.
        y: [N, C * multiplier, *output].

    Planes are split into one plane per stride phase, so that what a kernel tap reads is a contiguous,
    shifted run of one of them. Sums are made on runs as wide as the padded rows and cropped at the end.
    """
    channels = x.shape[1]
    multiplier = w.shape[0] // channels
    weights = kept.form(
        "taps", w, lambda: by_phase(w.reshape(channels, multiplier, 1, *window.kernel), phase_taps(window))
    )
    for rows, part in _row_blocks(window, y.itemsize):
        runs = _runs_of_block(kept.call, part, channels, y.dtype)
        for n in range(x.shape[0]):
            for first in range(0, channels, runs.block):
                last = min(channels, first + runs.block)
                runs.load(x[n, first:last])
                for j in range(multiplier):
                    target = y[n, first * multiplier + j : last * multiplier : multiplier, rows]
                    runs.convolve(weights[first:last, j], target)


def _row_blocks(window: Window, itemsize: int) -> Iterator[tuple[slice, Window]]:
    """Splits the first output axis so that the runs of one channel fit the buffer.

    Each part's window starts at its own rows: a negative ``begin`` skips the input rows before.
    """
    row = math.prod(-(-r // s) for r, s in zip(window.reach[1:], window.strides[1:], strict=True))
    rows = max(4, COLUMN_BYTES // max(1, row * math.prod(window.kernel) * itemsize))
    for start in range(0, window.output[0], rows):
        count = min(rows, window.output[0] - start)
        begin = window.begin[0] - start * window.strides[0]
        yield (
            slice(start, start + count),
            replace(window, begin=(begin, *window.begin[1:]), output=(count, *window.output[1:])),
        )


def _runs_of_block(call: Call, window: Window, channels: int, dtype: np.dtype[np.floating]) -> _Runs:
    def make() -> _Runs:
        return _Runs(window, channels, dtype)

    return call.context.workspace((window, channels, dtype), 2 * COLUMN_BYTES, make)


class _Runs:
    """A block of channels as the runs that the taps read. All views are made once for all blocks."""

    def __init__(self, window: Window, channels: int, dtype: np.dtype[np.floating]) -> None:
        positions = [-(-r // s) for r, s in zip(window.reach, window.strides, strict=True)]
        steps = [math.prod(positions[i + 1 :]) for i in range(len(positions))]
        length = 1 + sum((o - 1) * t for o, t in zip(window.output, steps, strict=True))
        taps = math.prod(window.kernel)
        self.block = min(channels, max(1, COLUMN_BYTES // (taps * length * dtype.itemsize)))
        self._columns = np.empty((self.block, taps, length), dtype)
        self._sums = np.empty((self.block, 1, length), dtype)
        phases = empty_phases(self.block, window, dtype)
        self._fills = phase_fills(phases, window)
        self._copies = list(self._runs_of(phases, window, steps))
        rows = (self._sums.strides[0], *(dtype.itemsize * t for t in steps))
        self._cropped = as_strided(self._sums, (self.block, *window.output), rows, writeable=False)

    def _runs_of(self, phases: Array, window: Window, steps: Sequence[int]) -> Iterator[tuple[Array, Array]]:
        """(part of the columns, the overlapping runs that it is a copy of) for each phase."""
        length, item, place = self._columns.shape[2], phases.itemsize, 0
        for run in phase_taps(window):
            plane = phases[run.phase].reshape(self.block, -1)
            start = sum(f * t for f, t in zip(run.first, steps, strict=True))
            apart = [item * s * t for s, t in zip(run.step, steps, strict=True)]
            shape, strides = (self.block, *run.counts, length), (plane.strides[0], *apart, item)
            count = math.prod(run.counts)
            # The last run ends at its last output, so that the view never reaches behind the plane.
            runs = as_strided(plane[:, start:], shape, strides, writeable=False)
            yield self._columns[:, place : place + count].reshape(shape), runs
            place += count

    def load(self, image: Array) -> None:
        """Takes the channels ``image`` [c, *spatial]."""
        count = len(image)
        for inside, source in self._fills:
            inside[:count] = image[source]
        for columns, runs in self._copies:
            columns[:count] = runs[:count]

    def convolve(self, weights: Array, target: Array) -> None:
        """``target`` [c, *output] = the loaded channels with ``weights`` [c, 1, taps]."""
        count = len(weights)
        np.matmul(weights, self._columns[:count], out=self._sums[:count])
        target[...] = self._cropped[:count]
