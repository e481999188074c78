"""Gathers, scatters, searches: elements chosen by indices or by their values."""

from __future__ import annotations

from typing import Any

import numpy as np

from optimizer.runtime.call import Call
from optimizer.runtime.precision import Array, compute_dtype, widen
from optimizer.runtime.registry import kernel


def checked(indices: Array, size: int) -> Array:
    """Indices counted from the front.

    Raises:
        ValueError: one is outside [-size, size).
    """
    if indices.size:
        low, high = int(indices.min()), int(indices.max())
        if low < -size or high >= size:
            bad = low if low < -size else high
            raise ValueError(f"index {bad} is outside an axis of {size}")
        if low < 0:
            return np.where(indices < 0, indices + size, indices)
    return indices


@kernel("Gather", exact=True)
def gather(call: Call, data: Array, indices: Array) -> Array:
    """Slices of ``data`` along ``axis``."""
    axis = call.attr("axis", 0)
    return np.asarray(np.take(data, checked(indices, data.shape[axis]), axis))


@kernel("GatherElements", 11, exact=True)
def gather_elements(call: Call, data: Array, indices: Array) -> Array:
    """One element of ``data`` per index, at the index's own place on all axes but one."""
    axis = call.attr("axis", 0) % data.ndim
    return data[_places(checked(indices, data.shape[axis]), axis)]


def _places(indices: Array, axis: int) -> tuple[Array, ...]:
    """The coordinates of every element of ``indices``, with ``indices`` itself on ``axis``.

    Unlike ``take_along_axis`` this lets ``indices`` be smaller than the data on the other axes.
    """
    open_grid: list[Any] = list(np.ogrid[tuple(slice(d) for d in indices.shape)])
    open_grid[axis] = indices
    return tuple(open_grid)


@kernel("GatherND", 11, exact=True)
def gather_nd(call: Call, data: Array, indices: Array) -> Array:
    """Slices of ``data`` at coordinates, within each batch."""
    batch = call.attr("batch_dims", 0)
    depth = indices.shape[-1]
    grid = [
        np.arange(d).reshape((1,) * i + (d,) + (1,) * (indices.ndim - 2 - i))
        for i, d in enumerate(data.shape[:batch])
    ]
    place = [checked(indices[..., i], data.shape[batch + i]) for i in range(depth)]
    return np.asarray(data[tuple(grid + place)])


# ---------------------------------------------------------------- scatters

_REDUCTIONS: dict[str, np.ufunc] = {
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}


def _scatter(data: Array, place: tuple[Array, ...], updates: Array, reduction: str) -> Array:
    if reduction == "none":
        out = np.array(data)
        out[place] = updates
        return out
    if reduction not in _REDUCTIONS:
        raise ValueError(f"unknown reduction '{reduction}'")
    if not updates.size:
        return np.array(data)
    combine = _REDUCTIONS[reduction]
    wide = np.array(data, compute_dtype(data.dtype))
    if len(place) == wide.ndim:
        combine.at(wide, place, widen(updates))
    else:
        _scatter_slices(wide, place, widen(updates), combine)
    return wide.astype(data.dtype, copy=False)


def _scatter_slices(out: Array, place: tuple[Array, ...], updates: Array, combine: np.ufunc) -> None:
    """Slice by slice, in order: ``ufunc.at`` takes ten times as long on whole slices."""
    slices = updates.reshape(-1, *out.shape[len(place) :])
    for index, update in zip(zip(*(p.reshape(-1).tolist() for p in place), strict=True), slices, strict=True):
        combine(out[index], update, out=out[index])


@kernel("Scatter", 9, exact=True)
@kernel("ScatterElements", 11, exact=True)
@kernel("ScatterElements", 16, exact="integer")
@kernel("ScatterElements", 18, exact="integer")
def scatter_elements(call: Call, data: Array, indices: Array, updates: Array) -> Array:
    """Writes (or reduces) one element per index, at the index's own place on all axes but one."""
    axis = call.attr("axis", 0) % data.ndim
    place = _places(checked(indices, data.shape[axis]), axis)
    return _scatter(data, place, updates, call.attr("reduction", "none"))


@kernel("ScatterND", 11, exact=True)
@kernel("ScatterND", 16, exact="integer")
@kernel("ScatterND", 18, exact="integer")
def scatter_nd(call: Call, data: Array, indices: Array, updates: Array) -> Array:
    """Writes (or reduces) slices at coordinates."""
    place = tuple(checked(indices[..., i], data.shape[i]) for i in range(indices.shape[-1]))
    return _scatter(data, place, updates, call.attr("reduction", "none"))


@kernel("TensorScatter", 24, exact=True)
def tensor_scatter(call: Call, cache: Array, update: Array, writes: Array | None = None) -> Array:
    """Writes ``update`` into ``cache`` along ``axis``, from each batch's own position on."""
    axis = call.attr("axis", -2) % cache.ndim
    steps = np.arange(update.shape[axis])
    start = np.zeros(cache.shape[0], np.int64) if writes is None else writes
    place = start[:, None] + steps
    if call.attr("mode", "linear") == "circular":
        place = place % cache.shape[axis]
    out = np.array(cache)
    moved = np.moveaxis(out, axis, 1)  # a view: writing into it writes into ``out``
    moved[np.arange(cache.shape[0])[:, None], checked(place, cache.shape[axis])] = np.moveaxis(
        update, axis, 1
    )
    return out


# ---------------------------------------------------------------- selection by value


@kernel("NonZero", 9, exact=True)
def non_zero(call: Call, x: Array) -> Array:
    """Coordinates of the non-zero elements, one row per axis, row-major order."""
    if x.ndim == 0:
        return np.zeros((0, int(bool(x))), np.int64)
    return np.array(np.nonzero(x), np.int64)


@kernel("Compress", 9, exact=True)
def compress(call: Call, x: Array, condition: Array) -> Array:
    """Slices (elements, without ``axis``) where ``condition`` holds; beyond its end none are taken."""
    axis = call.attr("axis")
    kept = np.flatnonzero(condition)
    return np.take(x.reshape(-1), kept) if axis is None else np.take(x, kept, axis)


@kernel("Unique", 11, exact=True)
def unique(call: Call, x: Array) -> tuple[Array, ...]:
    """Unique elements or slices, sorted or in order of appearance, with their indices and counts."""
    axis = call.attr("axis")
    if axis is None:
        x, axis = x.reshape(-1), 0
    wide = widen(x) if x.dtype != object else x.astype(str)
    _, first, inverse, counts = np.unique(
        wide, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    inverse = inverse.reshape(-1)
    if not call.attr("sorted", 1):
        order = np.argsort(first, kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(order.size)
        first, inverse, counts = first[order], rank[inverse], counts[order]
    found = np.take(x, first, axis)
    return found, first.astype(np.int64), inverse.astype(np.int64), counts.astype(np.int64)


_SMALL = 8192
"""Fewer elements than this are sorted faster than searched."""


def _top_k(call: Call, x: Array, k: int, largest: bool) -> tuple[Array, Array]:
    """The k best along an axis, best first; of equals the lower index first. NaN is the greatest."""
    axis = call.attr("axis", -1)
    if not 0 <= k <= x.shape[axis]:
        raise ValueError(f"k = {k} on an axis of {x.shape[axis]}")
    moved = np.moveaxis(widen(x), axis, -1)
    if (
        8 * k < moved.shape[-1]
        and moved.size > _SMALL
        and not (moved.dtype.kind == "f" and np.isnan(moved).any())
    ):
        order = _top_few(moved, k, largest)
    else:
        order = _best_first(moved, largest)[..., :k]
    index = np.ascontiguousarray(np.moveaxis(order, -1, axis), np.int64)
    return np.take_along_axis(x, index, axis), index


def _best_first(x: Array, largest: bool) -> Array:
    """Indices that sort the last axis, equals in order."""
    if not largest:
        return np.argsort(x, -1, kind="stable")
    # A stable ascending sort of the reversed axis, read backwards, keeps equals in order.
    reversed_: Array = x.shape[-1] - 1 - np.argsort(x[..., ::-1], -1, kind="stable")[..., ::-1]
    return reversed_


def _top_few(x: Array, k: int, largest: bool) -> Array:
    """As ``_best_first`` for a k much smaller than the axis: picks k candidates, then sorts them.

    Candidates are what beats the k-th best, and the first of those equal to it.
    """
    if not k:
        return np.zeros((*x.shape[:-1], 0), np.int64)
    place = x.shape[-1] - k if largest else k - 1
    bound = np.partition(x, place, -1)[..., place : place + 1]
    better = x > bound if largest else x < bound
    equal = x == bound
    missing = k - np.count_nonzero(better, -1)[..., None]
    chosen = better | (equal & (np.cumsum(equal, -1, dtype=np.int32) <= missing))
    candidates = np.nonzero(chosen)[-1].reshape(*x.shape[:-1], k)
    order = _best_first(np.take_along_axis(x, candidates, -1), largest)
    return np.take_along_axis(candidates, order, -1)


@kernel("TopK", 1, exact=True)
def top_k_by_attribute(call: Call, x: Array) -> tuple[Array, Array]:
    """TopK with k as an attribute."""
    return _top_k(call, x, call.attr("k"), True)


@kernel("TopK", 10, exact=True)
def top_k(call: Call, x: Array, k: Array) -> tuple[Array, Array]:
    """TopK with k as an input; from version 11 also the smallest."""
    return _top_k(call, x, int(k.reshape(-1)[0]), bool(call.attr("largest", 1)))


@kernel("ArrayFeatureExtractor", domain="ai.onnx.ml", exact=True)
def array_feature_extractor(call: Call, x: Array, indices: Array) -> Array:
    """Columns of the last axis."""
    taken = np.take(x, indices.reshape(-1), -1)
    return taken.reshape(1, -1) if x.ndim == 1 else taken
