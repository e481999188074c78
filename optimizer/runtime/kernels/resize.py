"""Resize and Upsample: one axis after the other, by gathered taps or a small interpolation matrix."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from optimizer.runtime.call import Call
from optimizer.runtime.kernels.resize_axis import Axis, cubic_taps, linear_taps, nearest_index, original
from optimizer.runtime.precision import Array, computed_wide, widen
from optimizer.runtime.registry import kernel

MATRIX_LIMIT = 256
"""Up to this input length the last axis is interpolated by a matrix product."""


@dataclass(frozen=True)
class _Method:
    """What the attributes say, whatever the version."""

    mode: str = "nearest"
    transform: str = "half_pixel"
    nearest: str = "round_prefer_floor"
    coefficient: float = -0.75
    exclude_outside: bool = False
    extrapolation: float = 0.0
    antialias: bool = False


@kernel("Upsample", since=1)
@computed_wide
def upsample_1(call: Call, x: Array) -> Array:
    """Version 1: the last two axes, by attributes."""
    scales = [1.0] * (x.ndim - 2) + [call.attr("height_scale"), call.attr("width_scale")]
    return _by_scales(x, scales, _legacy_method(call))


@kernel("Upsample", since=7)
@computed_wide
def upsample_7(call: Call, x: Array) -> Array:
    """Version 7: scales are an attribute."""
    return _by_scales(x, call.attr("scales"), _legacy_method(call))


@kernel("Upsample", since=9)
@kernel("Resize", since=10)
@computed_wide
def resize_10(call: Call, x: Array, scales: Array) -> Array:
    """Upsample 9 and Resize 10: positions are divided by the scale, nothing else."""
    return _by_scales(x, scales.tolist(), _legacy_method(call))


def _legacy_method(call: Call) -> _Method:
    mode = call.attr("mode", "nearest")
    mode = {"bilinear": "linear", "trilinear": "linear"}.get(mode, mode)
    return _Method(mode, "asymmetric", "simple")


def _by_scales(x: Array, scales: Sequence[float], method: _Method) -> Array:
    if len(scales) != x.ndim or min(scales) <= 0:
        raise ValueError(f"scales {list(scales)} for an input of rank {x.ndim}")
    axes = {i: Axis.by_scale(d, s) for i, (d, s) in enumerate(zip(x.shape, scales, strict=True))}
    return _resize(x, axes, method)


@kernel("Resize", since=11)
@kernel("Resize", since=13)
@kernel("Resize", since=18)
@kernel("Resize", since=19)
def resize(
    call: Call, x: Array, roi: Array | None = None, scales: Array | None = None, sizes: Array | None = None
) -> Array:
    """By ``scales`` or to ``sizes`` of ``axes`` (all by default); ``roi`` only for tf_crop_and_resize."""
    chosen = [a % x.ndim for a in call.attr("axes") or range(x.ndim)]
    method = _Method(
        call.attr("mode", "nearest"),
        call.attr("coordinate_transformation_mode", "half_pixel"),
        call.attr("nearest_mode", "round_prefer_floor"),
        call.attr("cubic_coeff_a", -0.75),
        bool(call.attr("exclude_outside", 0)),
        call.attr("extrapolation_value", 0.0),
        bool(call.attr("antialias", 0)),
    )
    bounds = (
        _bounds(roi, len(chosen)) if method.transform == "tf_crop_and_resize" else [(0.0, 1.0)] * len(chosen)
    )
    lengths = [x.shape[a] for a in chosen]
    if sizes is not None and sizes.size:
        if sizes.size != len(chosen):
            raise ValueError(f"{sizes.size} sizes for {len(chosen)} axes")
        policy = call.attr("keep_aspect_ratio_policy", "stretch")
        plans = _by_sizes(lengths, [int(s) for s in sizes], policy)
    elif scales is not None and scales.size:
        if scales.size != len(chosen) or scales.min() <= 0:
            raise ValueError(f"scales {scales.tolist()} for {len(chosen)} axes")
        # Only version 19 knows a fractional length of the output.
        plans = [
            Axis.by_scale(d, float(s), fractional=call.since >= 19)
            for d, s in zip(lengths, scales, strict=True)
        ]
    else:
        raise ValueError("neither scales nor sizes are given")
    axes = {a: p.cropped(*c) for a, p, c in zip(chosen, plans, bounds, strict=True)}
    # Only the image decides the dtype of the result: roi may have another.
    return _resize(widen(x), axes, method).astype(x.dtype, copy=False)


def _bounds(roi: Array | None, count: int) -> list[tuple[float, float]]:
    if roi is None or roi.size != 2 * count:
        raise ValueError(f"tf_crop_and_resize needs a roi of {2 * count} elements")
    return [(float(roi[i]), float(roi[count + i])) for i in range(count)]


def _by_sizes(lengths: list[int], sizes: list[int], policy: str) -> list[Axis]:
    if policy == "stretch":
        return [Axis.by_size(d, s) for d, s in zip(lengths, sizes, strict=True)]
    if policy not in ("not_larger", "not_smaller"):
        raise ValueError(f"unknown keep_aspect_ratio_policy {policy!r}")
    choose = min if policy == "not_larger" else max
    scale = choose(s / d for s, d in zip(sizes, lengths, strict=True))
    return [Axis.by_size(d, math.floor(d * scale + 0.5), scale) for d in lengths]


def _resize(x: Array, axes: dict[int, Axis], method: _Method) -> Array:
    """Shrinking axes first, so that the others have less to do. Integers are made of floats at the end."""
    outside: list[tuple[int, Array]] = []
    kept = x.dtype
    y = x = x if method.mode == "nearest" or kept.kind == "f" else x.astype(_computing(kept))
    for axis, plan in sorted(axes.items(), key=lambda item: item[1].output / max(1, item[1].input)):
        crops = method.transform == "tf_crop_and_resize"
        if plan.is_identity and not crops:
            continue
        places = original(plan, method.transform)
        if crops:
            outside.append((axis, (places < 0) | (places > plan.input - 1)))
        y = _along(y, axis, plan, places, method)
    for axis, mask in outside:
        if mask.any():
            y[(slice(None),) * axis + (mask,)] = method.extrapolation
    if y.dtype != kept:
        return _whole(y, kept, rounded=method.antialias)
    return y.copy() if y is x else y


def _whole(y: Array, dtype: np.dtype[Any], *, rounded: bool) -> Array:
    """``y`` as integers, rounded or cut off, and saturated."""
    info = np.iinfo(dtype)
    whole = np.rint(y) if rounded else np.trunc(y)
    return np.clip(whole, info.min, info.max).astype(dtype)


def _computing(dtype: np.dtype[Any]) -> Any:
    """The float type that integers are interpolated in."""
    return np.float32 if dtype.itemsize <= 2 else np.float64


def _along(x: Array, axis: int, plan: Axis, places: Array, method: _Method) -> Array:
    """``x`` with ``axis`` resampled at ``places``."""
    if plan.input == plan.output == 0:
        return x
    if plan.input == 0:
        raise ValueError("an empty axis cannot be resized")
    if method.mode == "nearest":
        return x.take(nearest_index(places, plan, method.nearest), axis)
    scale = min(plan.scale, 1.0) if method.antialias else 1.0
    if method.mode == "linear":
        index, weights = linear_taps(places, plan, scale)
    elif method.mode == "cubic":
        index, weights = cubic_taps(places, plan, scale, method.coefficient)
    else:
        raise ValueError(f"unknown mode {method.mode!r}")
    inside = (index >= 0) & (index < plan.input)
    if method.exclude_outside:
        weights = weights * inside
        weights /= weights.sum(1, keepdims=True)
    index = np.clip(index, 0, plan.input - 1)
    return _interpolate(x, axis, plan, index, weights.astype(x.dtype))


def _interpolate(x: Array, axis: int, plan: Axis, index: Array, weights: Array) -> Array:
    """Sum over taps k of x[index[:, k]] * weights[:, k] along ``axis``."""
    if axis == x.ndim - 1 and plan.input <= MATRIX_LIMIT:
        matrix = np.zeros((plan.input, plan.output), x.dtype)
        np.add.at(matrix, (index, np.arange(plan.output)[:, None]), weights)
        return np.asarray(np.matmul(x.reshape(-1, plan.input), matrix).reshape(*x.shape[:-1], plan.output))
    column = (-1, *(1,) * (x.ndim - 1 - axis))
    y = x.take(index[:, 0], axis)
    y *= weights[:, 0].reshape(column)
    for k in range(1, index.shape[1]):
        part = x.take(index[:, k], axis)
        part *= weights[:, k].reshape(column)
        y += part
    return y
