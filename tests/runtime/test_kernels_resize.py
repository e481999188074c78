"""Resize, Upsample and GridSample against onnxruntime."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from kernel_oracle import assert_close, check, run_kernel

TRANSFORMS = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]
NEAREST = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]


def _image(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def _scales(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


@pytest.mark.parametrize("scales", [(2.0, 3.0), (0.6, 0.5), (1.3, 0.8), (1.0, 2.0), (0.15, 2.5)])
@pytest.mark.parametrize(
    ("op", "opset", "mode"), list(product(["Upsample", "Resize"], [7, 9, 10], ["nearest", "linear"]))
)
def test_legacy(op: str, opset: int, mode: str, scales: tuple[float, float]) -> None:
    if op == "Upsample" and min(scales) < 1:
        scales = (2.0, 1.7)  # Upsample only enlarges
    x, attributes = _image(2, 3, 7, 8), {"mode": mode}
    every = [1.0, 1.0, *scales]
    if op == "Upsample" and opset == 7:
        check(op, [x], {**attributes, "scales": every}, opset=7)
    else:
        check(op, [x, _scales(*every)], attributes, opset=9 if op == "Upsample" else 10)


@pytest.mark.parametrize(
    ("transform", "nearest"), list(product([*TRANSFORMS, "half_pixel_symmetric"], NEAREST))
)
@pytest.mark.parametrize("sizes", [(14, 16), (4, 5), (9, 3), (1, 20)])
def test_nearest(transform: str, nearest: str, sizes: tuple[int, int]) -> None:
    attributes = {"coordinate_transformation_mode": transform, "nearest_mode": nearest}
    x = _image(1, 2, 7, 8)
    target = np.array([1, 2, *sizes], np.int64)
    check("Resize", [x, None, None, target], attributes, opset=19)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("opset", [11, 13, 18, 19])
@pytest.mark.parametrize("scales", [(2.0, 3.0), (0.6, 0.5), (1.3, 0.8)])
def test_interpolation(mode: str, transform: str, opset: int, scales: tuple[float, float]) -> None:
    if transform == "align_corners" and opset == 19:
        scales = (2.0, 0.5)  # onnxruntime knows no fractional output lengths
    attributes = {"mode": mode, "coordinate_transformation_mode": transform}
    roi = np.zeros(0, np.float32) if opset == 11 else None
    check("Resize", [_image(1, 2, 7, 8), roi, _scales(1, 1, *scales)], attributes, opset=opset, scale=2)


def test_aligned_corners_of_a_fractional_length() -> None:
    """Version 19: 4 positions at scale 0.6 are 2.4 long, so the second output lies at 3 / 1.4."""
    x = np.arange(1, 5, dtype=np.float32).reshape(1, 1, 1, 4)
    attributes = {"mode": "linear", "coordinate_transformation_mode": "align_corners"}
    actual = run_kernel("Resize", [x, None, _scales(1, 1, 1, 0.6)], attributes, opset=19)[0]
    assert_close(actual, np.array([[[[1, 1 + 3 / 1.4]]]], np.float32))


@pytest.mark.parametrize("exclude", [0, 1])
@pytest.mark.parametrize("a", [-0.5, -0.75])
def test_cubic_borders(exclude: int, a: float) -> None:
    attributes = {"mode": "cubic", "cubic_coeff_a": a, "exclude_outside": exclude}
    check("Resize", [_image(1, 1, 6, 6), None, _scales(1, 1, 1.7, 0.7)], attributes, opset=13, scale=2)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("exclude", [0, 1])
@pytest.mark.parametrize("sizes", [(3, 4), (5, 2), (12, 4)])
def test_antialias(mode: str, exclude: int, sizes: tuple[int, int]) -> None:
    attributes = {"mode": mode, "antialias": 1, "exclude_outside": exclude}
    target = np.array([1, 2, *sizes], np.int64)
    check("Resize", [_image(1, 2, 9, 11), None, None, target], attributes, opset=18, scale=2)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_crop(mode: str) -> None:
    attributes = {
        "mode": mode,
        "coordinate_transformation_mode": "tf_crop_and_resize",
        "extrapolation_value": 10.0,
    }
    roi = np.array([0, 0, 0.35, -0.2, 1, 1, 0.63, 1.3], np.float32)
    target = np.array([1, 1, 5, 7], np.int64)
    check("Resize", [_image(1, 1, 6, 8), roi, None, target], attributes, opset=13, scale=2)


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller", "stretch"])
@pytest.mark.parametrize("axes", [[2, 3], [3, 2]])
def test_axes_and_policy(policy: str, axes: list[int]) -> None:
    attributes = {"mode": "linear", "axes": axes, "keep_aspect_ratio_policy": policy}
    check("Resize", [_image(1, 2, 6, 8), None, None, np.array([9, 7], np.int64)], attributes, opset=18)


def test_volumes_and_long_axes() -> None:
    check("Resize", [_image(1, 2, 4, 5, 6), None, _scales(1, 1, 2, 1.5, 2)], {"mode": "linear"}, opset=13)
    check("Resize", [_image(1, 1, 3, 400), None, _scales(1, 1, 2, 1.5)], {"mode": "linear"}, opset=13)


def test_half_precision_and_integers() -> None:
    x = _image(1, 1, 4, 4)
    wide = run_kernel(
        "Resize",
        [x.astype(np.float16).astype(np.float32), None, _scales(1, 1, 2, 2)],
        {"mode": "linear"},
        opset=13,
    )[0]
    half = run_kernel(
        "Resize", [x.astype(np.float16), None, _scales(1, 1, 2, 2)], {"mode": "linear"}, opset=13
    )[0]
    assert_close(half, wide.astype(np.float16))
    small = np.arange(16, dtype=np.uint8).reshape(1, 1, 4, 4)
    check("Resize", [small, None, _scales(1, 1, 2, 2)], {"mode": "nearest"}, opset=13)


def test_resize_refuses() -> None:
    with pytest.raises(ValueError, match="neither"):
        run_kernel("Resize", [_image(1, 1, 4, 4)], opset=13)
    with pytest.raises(ValueError, match="scales"):
        run_kernel("Resize", [_image(1, 1, 4, 4), None, _scales(1, 1)], opset=13)


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("aligned", [0, 1])
def test_grid_sample(mode: str, padding: str, aligned: int) -> None:
    r = np.random.default_rng(1)
    grid = r.uniform(-1.6, 1.6, (2, 5, 6, 2)).astype(np.float32)
    attributes = {"mode": mode, "padding_mode": padding, "align_corners": aligned}
    x = _image(2, 3, 5, 7)
    check("GridSample", [x, grid], attributes, opset=20, scale=8)
    old = {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode)
    check("GridSample", [x, grid], {**attributes, "mode": old}, opset=16, scale=8)
    if mode != "cubic":
        volume = r.uniform(-1.2, 1.2, (2, 3, 2, 4, 3)).astype(np.float32)
        check("GridSample", [_image(2, 2, 3, 4, 5), volume], attributes, opset=20, scale=8)
