"""One axis of Resize: where each output position lies in the input, which taps it reads."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from optimizer.runtime.precision import Array


@dataclass(frozen=True)
class Axis:
    """``input`` positions become ``output``, at ``scale``; tf_crop_and_resize reads [start, stop].

    ``length`` is what align_corners takes for the output's length: with a scale it may be fractional.
    """

    input: int
    output: int
    scale: float
    length: float
    start: float = 0.0
    stop: float = 1.0

    @classmethod
    def by_scale(cls, length: int, scale: float, *, fractional: bool = False) -> Axis:
        """floor(length * scale) positions, the product taken in float32 as the scales are."""
        product = float(np.float32(length) * np.float32(scale))
        output = math.floor(product)
        return cls(length, output, float(np.float32(scale)), product if fractional else output)

    @classmethod
    def by_size(cls, length: int, output: int, scale: float | None = None) -> Axis:
        """``output`` positions, at their own scale unless one is given."""
        own = output / length if length else 1.0
        return cls(length, output, own if scale is None else scale, output)

    def cropped(self, start: float, stop: float) -> Axis:
        """The same axis with a region of interest."""
        return replace(self, start=start, stop=stop)

    @property
    def is_identity(self) -> bool:
        """Whether nothing moves (without a region of interest)."""
        return self.input == self.output and self.scale == 1


def original(axis: Axis, transform: str) -> Array:
    """Input coordinates [output] of the output positions.

    In float32, as the operator's scales are: where a coordinate falls on a rounding tie, this is
    what runtimes agree on.

    Raises:
        ValueError: unknown coordinate_transformation_mode.
    """
    f = np.float32
    x = np.arange(axis.output, dtype=f)
    scale, length, count = f(axis.scale), f(axis.input), f(axis.output)
    half = (x + f(0.5)) / scale - f(0.5)
    if transform == "half_pixel":
        return half
    if transform == "asymmetric":
        return x / scale
    if transform == "pytorch_half_pixel":
        return half if axis.output > 1 else np.zeros_like(x)
    if transform == "tf_half_pixel_for_nn":
        return (x + f(0.5)) / scale
    if transform == "align_corners":
        return x * (length - f(1)) / (f(axis.length) - f(1)) if axis.output > 1 else np.zeros_like(x)
    if transform == "half_pixel_symmetric":
        adjustment = count / (scale * length)
        return np.asarray(length / f(2) * (f(1) - adjustment) + (x + f(0.5)) / scale - f(0.5))
    if transform == "tf_crop_and_resize":
        start, stop = f(axis.start), f(axis.stop)
        if axis.output > 1:
            return np.asarray(start * (length - f(1)) + x * (stop - start) * (length - f(1)) / (count - f(1)))
        return np.full_like(x, f(0.5) * (start + stop) * (length - f(1)))
    raise ValueError(f"unknown coordinate_transformation_mode {transform!r}")


def nearest_index(places: Array, axis: Axis, mode: str) -> Array:
    """The nearest input position of each coordinate, inside the axis.

    ``simple`` is what versions before 11 do: down when enlarging, up when shrinking.

    Raises:
        ValueError: unknown nearest_mode.
    """
    if mode == "round_prefer_floor":
        index = np.ceil(places - np.float32(0.5))
    elif mode == "round_prefer_ceil":
        # A division by the rounded scale may end one unit short of the tie.
        index = np.floor(np.nextafter(places, np.float32(np.inf)) + np.float32(0.5))
    elif mode == "floor" or (mode == "simple" and axis.scale >= 1):
        index = np.floor(places)
    elif mode in ("ceil", "simple"):
        index = np.ceil(places)
    else:
        raise ValueError(f"unknown nearest_mode {mode!r}")
    return np.clip(index.astype(np.int64), 0, axis.input - 1)


def linear_taps(places: Array, axis: Axis, scale: float) -> tuple[Array, Array]:
    """(index, weights) [output, taps] of the triangle filter, widened by 1 / scale (antialias)."""
    if scale == 1:
        places = np.clip(places, 0, axis.input - 1)
        low = np.floor(places)
        ratio = (places - low).astype(np.float64)
        index = low.astype(np.int64)[:, None] + np.arange(2)
        return index, np.stack([1 - ratio, ratio], 1)
    first = math.floor(-1 / scale) + 1
    index, distance = _neighbours(places, first, 2 - 2 * first, scale)
    weights = np.clip(1 - np.abs(distance), 0, None)
    return index, weights / weights.sum(1, keepdims=True)


def cubic_taps(places: Array, axis: Axis, scale: float, a: float) -> tuple[Array, Array]:
    """(index, weights) [output, taps] of Keys' cubic filter, widened by 1 / scale (antialias)."""
    first = math.floor(-2 / scale) + 1
    index, distance = _neighbours(places, first, 4 - 2 * first if scale < 1 else 4, scale)
    weights = cubic_weights(distance, a)
    return index, weights / weights.sum(1, keepdims=True) if scale < 1 else weights


def _neighbours(places: Array, first: int, count: int, scale: float) -> tuple[Array, Array]:
    """Indices of ``count`` neighbours from ``first`` on, and their scaled distances."""
    low = np.floor(places)
    offsets = np.arange(first, first + count)
    distance = (offsets - (places - low).astype(np.float64)[:, None]) * scale
    return low.astype(np.int64)[:, None] + offsets, distance


def cubic_weights(distance: Array, a: float) -> Array:
    """Keys' kernel: (a+2)|d|^3 - (a+3)|d|^2 + 1 up to 1, a|d|^3 - 5a|d|^2 + 8a|d| - 4a up to 2."""
    d = np.abs(distance)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0.0))
