"""GridSample: reads an input at fractional positions, any number of spatial axes."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np

from optimizer.runtime.call import Call
from optimizer.runtime.kernels.resize_axis import cubic_weights
from optimizer.runtime.precision import Array, compute_dtype, widen
from optimizer.runtime.registry import kernel

_MODES = {"bilinear": "linear", "bicubic": "cubic"}
_CUBIC_COEFFICIENT = -0.75


@kernel("GridSample", since=16)
@kernel("GridSample", since=20)
def grid_sample(call: Call, x: Array, grid: Array) -> Array:
    """Y [N, C, *out] of X [N, C, *spatial] at grid [N, *out, n]; the last grid column is axis 0."""
    n = x.ndim - 2
    if grid.ndim != x.ndim or grid.shape[-1] != n or grid.shape[0] != x.shape[0]:
        raise ValueError(f"X {list(x.shape)} and grid {list(grid.shape)} disagree")
    mode = call.attr("mode", "bilinear" if call.since < 20 else "linear")
    mode = _MODES.get(mode, mode)
    padding = call.attr("padding_mode", "zeros")
    if mode not in ("linear", "nearest", "cubic") or padding not in ("zeros", "border", "reflection"):
        raise ValueError(f"unknown mode {mode!r} or padding_mode {padding!r}")
    sampler = _Sampler(mode, padding, bool(call.attr("align_corners", 0)))
    wide = widen(grid)
    kind = x.dtype if x.dtype.kind != "f" and mode == "nearest" else compute_dtype(x.dtype)
    source = widen(x)
    y = np.empty((*x.shape[:2], *grid.shape[1:-1]), kind)
    for image, places, result in zip(source, wide, y, strict=True):
        result[...] = sampler.sample(
            image, [places[..., n - 1 - axis].reshape(-1) for axis in range(n)]
        ).reshape(result.shape)
    return y.astype(x.dtype, copy=False)


class _Sampler:
    """Attributes of one GridSample."""

    def __init__(self, mode: str, padding: str, aligned: bool) -> None:
        self.mode, self.padding, self.aligned = mode, padding, aligned

    def sample(self, image: Array, grid: list[Array]) -> Array:
        """[C, points] of an image [C, *spatial] at one vector of grid values per axis."""
        size = image.shape[1:]
        taps = [
            self._placed(self._taps(self._place(g, d), d), d, prod(size[axis + 1 :]))
            for axis, (g, d) in enumerate(zip(grid, size, strict=True))
        ]
        flat = image.reshape(image.shape[0], -1)
        total: Array | None = None
        for choice in product(*taps):
            index, weight = choice[0]
            for further, factor in choice[1:]:
                index, weight = index + further, weight * factor
            part = flat.take(index, 1)
            if self.mode == "nearest":
                return part if self.padding != "zeros" else part * (weight != 0)
            part = part * weight.astype(part.dtype if part.dtype.kind == "f" else np.float32, copy=False)
            total = part if total is None else np.add(total, part, out=total)
        assert total is not None
        return total

    def _placed(self, taps: list[tuple[Array, Array]], length: int, step: int) -> list[tuple[Array, Array]]:
        """Taps along one axis as (what they add to the flat index, weight); outside counts nothing."""
        placed = []
        for index, weight in taps:
            nearest = np.minimum(np.maximum(index, 0), length - 1)
            if self.padding == "zeros":
                weight = weight * (nearest == index)
            placed.append((nearest * step, weight))
        return placed

    def _place(self, grid: Array, length: int) -> Array:
        """Input coordinates of grid values in [-1, 1], folded back as the padding says."""
        one, half = grid.dtype.type(1), grid.dtype.type(0.5)
        if self.aligned:
            place = (grid + one) * half * grid.dtype.type(length - 1)
        else:
            place = ((grid + one) * grid.dtype.type(length) - one) * half
        if self.mode == "cubic" or self.padding == "zeros":
            return np.asarray(place)
        return self._fold(place, length)

    def _fold(self, place: Array, length: int) -> Array:
        if self.padding == "border":
            return np.clip(place, 0, length - 1)
        low, high = (0.0, length - 1.0) if self.aligned else (-0.5, length - 0.5)
        span = high - low
        if span == 0:
            return np.zeros_like(place)
        # Reflection is a triangle wave of period 2 * span.
        wave = np.mod(place - place.dtype.type(low), place.dtype.type(2 * span))
        return np.asarray(
            np.where(wave > span, place.dtype.type(2 * span) - wave, wave) + place.dtype.type(low)
        )

    def _taps(self, place: Array, length: int) -> list[tuple[Array, Array]]:
        """(index, weight) of each tap along one axis."""
        if self.mode == "nearest":
            return [(_index(np.rint(place)), np.ones_like(place))]
        low = np.floor(place)
        ratio = place - low
        base = _index(low)
        if self.mode == "linear":
            return [(base, 1 - ratio), (base + 1, ratio)]
        taps = []
        for offset in range(-1, 3):
            at = base + offset
            if self.padding != "zeros":
                at = _index(np.rint(self._fold(at.astype(place.dtype), length)))
            taps.append((at, cubic_weights(ratio - offset, _CUBIC_COEFFICIENT)))
        return taps


def _index(place: Array) -> Array:
    """Whole coordinates as integers; those far outside (or NaN) only have to stay outside."""
    bound = place.dtype.type(2**30)
    return np.asarray(np.fmin(np.fmax(place, -bound), bound).astype(np.int64))
