"""NonMaxSuppression, RoiAlign and MaxRoiPool against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_oracle import assert_close, check, run_kernel, run_onnxruntime


@pytest.mark.parametrize("center", [0, 1])
@pytest.mark.parametrize("threshold", [None, 0.3])
@pytest.mark.parametrize("overlap", [0.0, 0.4, 1.0])
def test_non_max_suppression(center: int, threshold: float | None, overlap: float) -> None:
    r = np.random.default_rng(0)
    boxes = r.uniform(0, 1, (2, 40, 4)).astype(np.float32)
    if center:
        boxes[..., 2:] *= 0.4
    scores = r.uniform(0, 1, (2, 3, 40)).astype(np.float32)
    scores[:, 0, 5:8] = 0.5
    inputs = [boxes, scores, np.array([6], np.int64), np.array([overlap], np.float32)]
    if threshold is not None:
        inputs.append(np.array([threshold], np.float32))
    check("NonMaxSuppression", inputs, {"center_point_box": center}, opset=11)


def test_suppression_without_limit_gives_nothing() -> None:
    boxes, scores = np.zeros((1, 2, 4), np.float32), np.ones((1, 1, 2), np.float32)
    assert run_kernel("NonMaxSuppression", [boxes, scores], opset=11)[0].shape == (0, 3)


def test_boxes_without_area_overlap_nothing() -> None:
    boxes = np.array([[[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 1, 1]]], np.float32)
    scores = np.array([[[0.9, 0.8, 0.7]]], np.float32)
    check("NonMaxSuppression", [boxes, scores, np.array([9]), np.array([0.5], np.float32)], opset=11)


def _rois() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r = np.random.default_rng(0)
    x = r.standard_normal((2, 3, 12, 14)).astype(np.float32)
    start = r.uniform(-4, 20, (9, 2))
    rois = np.concatenate([start, start + r.uniform(0.2, 16, (9, 2))], 1).astype(np.float32)
    return x, rois, r.integers(0, 2, 9)


@pytest.mark.parametrize("opset", [10, 16, 22])
@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("ratio", [0, 2])
@pytest.mark.parametrize("transform", [None, "half_pixel", "output_half_pixel"])
def test_roi_align(opset: int, mode: str, ratio: int, transform: str | None) -> None:
    x, rois, batch = _rois()
    attributes: dict[str, object] = {
        "mode": mode,
        "sampling_ratio": ratio,
        "output_height": 3,
        "output_width": 4,
        "spatial_scale": 0.6,
    }
    if transform is not None and opset >= 16:
        attributes["coordinate_transformation_mode"] = transform
    inputs = [x, rois, batch]
    expected = run_onnxruntime("RoiAlign", inputs, attributes, opset=min(opset, 16))[0]  # 22 adds dtypes only
    assert_close(run_kernel("RoiAlign", inputs, attributes, opset=opset)[0], expected, scale=2)


def test_roi_align_refuses_other_batches() -> None:
    x, rois, batch = _rois()
    with pytest.raises(ValueError, match="batch index"):
        run_kernel("RoiAlign", [x, rois, batch + 2], opset=16)


@pytest.mark.parametrize("scale", [1.0, 0.35])
def test_max_roi_pool(scale: float) -> None:
    x, rois, batch = _rois()
    rois = np.concatenate([batch[:, None].astype(np.float32), rois], 1)
    check("MaxRoiPool", [x, rois], {"pooled_shape": [3, 2], "spatial_scale": scale}, opset=11)


def test_max_roi_pool_in_double_precision() -> None:
    x, rois, batch = _rois()
    rois = np.concatenate([batch[:, None].astype(np.float32), rois], 1)
    single = run_kernel("MaxRoiPool", [x, rois], {"pooled_shape": [2, 2]}, opset=11)[0]
    double = run_kernel(
        "MaxRoiPool", [x.astype(float), rois.astype(float)], {"pooled_shape": [2, 2]}, opset=11
    )[0]
    assert_close(double, single.astype(np.float64))
