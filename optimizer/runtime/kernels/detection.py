"""Detection heads: NonMaxSuppression, RoiAlign, MaxRoiPool."""

from __future__ import annotations

import math

import numpy as np

from optimizer.runtime.call import Call
from optimizer.runtime.precision import Array, computed_wide
from optimizer.runtime.registry import kernel


@kernel("NonMaxSuppression", since=10, exact=True)
@kernel("NonMaxSuppression", since=11, exact=True)
def non_max_suppression(
    call: Call,
    boxes: Array,
    scores: Array,
    max_output_boxes_per_class: Array | None = None,
    iou_threshold: Array | None = None,
    score_threshold: Array | None = None,
) -> Array:
    """[selected, 3] of (batch, class, box): per class the best boxes that overlap no better one.

    O(boxes log boxes + selected * boxes) per class.
    """
    if boxes.ndim != 3 or scores.ndim != 3 or boxes.shape[:2] != (scores.shape[0], scores.shape[2]):
        raise ValueError(f"boxes {list(boxes.shape)} and scores {list(scores.shape)} disagree")
    limit = int(max_output_boxes_per_class.item()) if max_output_boxes_per_class is not None else 0
    overlap = float(iou_threshold.item()) if iou_threshold is not None else 0.0
    lowest = None if score_threshold is None else score_threshold.reshape(-1)[0]
    chosen: list[tuple[int, int, int]] = []
    if limit > 0:
        for batch in range(scores.shape[0]):
            corners = _corners(boxes[batch], center=bool(call.attr("center_point_box", 0)))
            for label in range(scores.shape[1]):
                picked = _suppress(corners, scores[batch, label], limit, overlap, lowest)
                chosen += [(batch, label, box) for box in picked]
    return np.array(chosen, np.int64).reshape(-1, 3)


def _corners(boxes: Array, *, center: bool) -> Array:
    """[4, boxes] of (y1, x1, y2, x2) with y1 <= y2 and x1 <= x2."""
    a, b, c, d = boxes.T
    if center:  # x, y, width, height
        return np.stack([b - d / 2, a - c / 2, b + d / 2, a + c / 2])
    return np.stack([np.minimum(a, c), np.minimum(b, d), np.maximum(a, c), np.maximum(b, d)])


def _suppress(corners: Array, scores: Array, limit: int, overlap: float, lowest: Array | None) -> list[int]:
    candidates = np.arange(len(scores)) if lowest is None else np.flatnonzero(scores > lowest)
    # Stable: of equal scores the first box wins.
    left = candidates[np.argsort(-scores[candidates], kind="stable")]
    y1, x1, y2, x2 = corners[:, left]
    area = (y2 - y1) * (x2 - x1)
    alive = np.arange(len(left))
    picked: list[int] = []
    while alive.size and len(picked) < limit:
        best, alive = alive[0], alive[1:]
        picked.append(int(left[best]))
        height = np.minimum(y2[best], y2[alive]) - np.maximum(y1[best], y1[alive])
        width = np.minimum(x2[best], x2[alive]) - np.maximum(x1[best], x1[alive])
        shared = np.maximum(height, 0) * np.maximum(width, 0)
        total = area[best] + area[alive] - shared
        # A box without area overlaps nothing.
        overlaps = (shared > 0) & (area[best] > 0) & (area[alive] > 0) & (shared / total > overlap)
        alive = alive[~overlaps]
    return picked


@kernel("MaxRoiPool", since=1, exact=True)
@kernel("MaxRoiPool", since=22, exact=True)
@computed_wide
def max_roi_pool(call: Call, x: Array, rois: Array) -> Array:
    """Largest element of each of the bins that a region [batch, x1, y1, x2, y2] is cut into."""
    rows, columns = call.attr("pooled_shape")
    scale = np.float32(call.attr("spatial_scale", 1.0))
    y = np.zeros((len(rois), x.shape[1], rows, columns), x.dtype)
    for result, roi in zip(y, rois, strict=True):
        image = x[int(roi[0])]
        x1, y1, x2, y2 = (math.floor(float(np.float32(v) * scale) + 0.5) for v in roi[1:])
        row_bins = _bins(y1, max(y2 - y1 + 1, 1), rows, x.shape[2])
        column_bins = _bins(x1, max(x2 - x1 + 1, 1), columns, x.shape[3])
        for i, (top, bottom) in enumerate(row_bins):
            for j, (start, stop) in enumerate(column_bins):
                if top < bottom and start < stop:  # else the bin is empty and stays zero
                    result[:, i, j] = image[:, top:bottom, start:stop].max((1, 2))
    return y


def _bins(start: int, extent: int, count: int, length: int) -> list[tuple[int, int]]:
    """[first, last) of each bin, cut to the image."""
    step = np.float32(extent) / np.float32(count)
    edges = []
    for i in range(count):
        first = start + math.floor(np.float32(i) * step)
        last = start + math.ceil(np.float32(i + 1) * step)
        edges.append((min(max(first, 0), length), min(max(last, 0), length)))
    return edges


@kernel("RoiAlign", since=10)
@kernel("RoiAlign", since=16)
@kernel("RoiAlign", since=22)
@computed_wide
def roi_align(call: Call, x: Array, rois: Array, batch_indices: Array) -> Array:
    """Bilinear samples of each bin of a region [x1, y1, x2, y2], averaged or their maximum.

    Before version 16 regions are not shifted by half a pixel and are at least one pixel large.
    """
    rows, columns = call.attr("output_height", 1), call.attr("output_width", 1)
    ratio, scale = call.attr("sampling_ratio", 0), call.attr("spatial_scale", 1.0)
    default = "output_half_pixel" if call.since < 16 else "half_pixel"
    shifted = call.attr("coordinate_transformation_mode", default) == "half_pixel"
    largest = call.attr("mode", "avg") == "max"
    y = np.zeros((len(rois), x.shape[1], rows, columns), x.dtype)
    for result, roi, index in zip(y, rois, batch_indices, strict=True):
        if not 0 <= index < x.shape[0]:
            raise ValueError(f"batch index {index} is outside of {x.shape[0]} images")
        x1, y1, x2, y2 = roi * x.dtype.type(scale) - x.dtype.type(0.5 if shifted else 0)
        height, width = y2 - y1, x2 - x1
        if not shifted:
            height, width = max(height, x.dtype.type(1)), max(width, x.dtype.type(1))
        row = _samples(y1, height, rows, ratio, x.shape[2])
        column = _samples(x1, width, columns, ratio, x.shape[3])
        if row[0].size and column[0].size:
            result[...] = _roi(x[index], row, column, largest=largest)
    return y


_Samples = tuple[Array, Array, Array, Array]


def _samples(start: Array, extent: Array, count: int, ratio: int, length: int) -> _Samples:
    """(low index, high index, weight of low, weight of high), each [bins, samples], along one axis.

    Positions beyond one pixel outside of the image weigh nothing.
    """
    step = extent / count
    samples = ratio if ratio > 0 else max(0, math.ceil(step))
    bins = np.arange(count, dtype=start.dtype)[:, None]
    at = (
        start
        + bins * step
        + (np.arange(samples, dtype=start.dtype) + start.dtype.type(0.5)) * step / max(1, samples)
    )
    outside = (at < -1) | (at > length)
    at = np.maximum(at, 0)
    low = np.minimum(np.floor(at), length - 1).astype(np.int64)
    high = np.minimum(low + 1, length - 1)
    at = np.where(low >= length - 1, low.astype(at.dtype), at)
    upper = np.where(outside, 0, at - low)
    lower = np.where(outside, 0, 1 - (at - low))
    return low, high, lower.astype(start.dtype), upper.astype(start.dtype)


def _roi(image: Array, row: _Samples, column: _Samples, *, largest: bool) -> Array:
    """[C, rows, columns] of one region."""
    if not largest:  # linear: one axis after the other
        low, high, lower, upper = row
        half = image[:, low] * lower[..., None] + image[:, high] * upper[..., None]
        half = half.mean(2)
        low, high, lower, upper = column
        return np.asarray((half[:, :, low] * lower + half[:, :, high] * upper).mean(3))
    corners = [
        image[:, r[:, :, None, None], c] * (rw[:, :, None, None] * cw)
        for r, rw in ((row[0], row[2]), (row[1], row[3]))
        for c, cw in ((column[0], column[2]), (column[1], column[3]))
    ]
    # [C, rows, samples, columns, samples]: of each sample the largest weighted corner, then the bin's.
    return np.asarray(np.maximum.reduce(corners).max((2, 4)))
