"""Reductions over axes, arg-reductions, cumulative sums and products."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from optimizer.runtime.call import Call
from optimizer.runtime.precision import Array, computed_wide
from optimizer.runtime.registry import Exactness, kernel

Axes = tuple[int, ...]
Reduction = Callable[[Array, Axes, bool], Any]


def _dtype_kept(reduce: Any) -> Reduction:
    """NumPy widens small integers when it adds them up; ONNX does not."""
    return lambda x, axes, keep: reduce(x, axis=axes, keepdims=keep, dtype=x.dtype)


def _sum(x: Array, axes: Axes, keep: bool, dtype: Any = None) -> Any:
    """The sum in the type of ``x`` or ``dtype``, no axis of which is added up in one go.

    NumPy adds up in pairs along the last axis, and one row after the other along the others: these are
    added up in as many blocks as a block has rows.
    """
    long = [a for a in axes if x.shape[a] > 32] if x.dtype.kind == "f" and x.ndim - 1 not in axes else []
    if not long:
        return np.sum(x, axis=axes, keepdims=keep, dtype=dtype or x.dtype)
    axis = max(long, key=lambda a: x.shape[a])
    size, block = x.shape[axis], math.isqrt(x.shape[axis])
    whole, before = size - size % block, (slice(None),) * axis
    blocks = x[(*before, slice(whole))].reshape(*x.shape[:axis], -1, block, *x.shape[axis + 1 :])
    parts = [np.sum(blocks, axis=axis + 1)]
    if whole < size:
        parts.append(np.sum(x[(*before, slice(whole, None))], axis=axis, keepdims=True))
    return np.sum(np.concatenate(parts, axis), axis=axes, keepdims=keep)


def _mean(x: Array, axes: Axes, keep: bool) -> Any:
    count = math.prod(x.shape[a] for a in axes)
    if x.dtype.kind not in "iu":
        # Not np.mean, which warns where the set is empty.
        return np.divide(_sum(x, axes, keep), np.asarray(count, x.dtype))
    total = np.sum(x, axis=axes, keepdims=keep, dtype=np.int64)
    return np.trunc(np.divide(total, count)).astype(x.dtype)


def _l2(x: Array, axes: Axes, keep: bool) -> Any:
    if x.dtype.kind in "iu":
        return np.sqrt(np.sum(np.square(x.astype(np.float64)), axis=axes, keepdims=keep)).astype(x.dtype)
    return np.sqrt(_sum(np.square(x), axes, keep))


def _log_sum(x: Array, axes: Axes, keep: bool) -> Any:
    return np.log(_sum(x, axes, keep, _real(x))).astype(x.dtype)


def _log_sum_exp(x: Array, axes: Axes, keep: bool) -> Any:
    wide = x.astype(_real(x), copy=False)
    top = np.max(wide, axis=axes, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, np.zeros((), wide.dtype))  # -inf - -inf would be NaN
    total = np.log(_sum(np.exp(wide - top), axes, True)) + top
    return (total if keep else np.squeeze(total, axis=axes)).astype(x.dtype)


def _real(x: Array) -> Any:
    return np.float64 if x.dtype.kind in "iu" else x.dtype


def _extreme(reduce: Any, lowest: bool) -> Reduction:
    """Maximum or minimum; of an empty set the least or greatest value of the type."""

    def run(x: Array, axes: Axes, keep: bool) -> Any:
        if all(x.shape[a] for a in axes):
            return reduce(x, axis=axes, keepdims=keep)
        if x.dtype == bool:
            start: Any = not lowest
        elif x.dtype.kind == "f":
            start = -np.inf if lowest else np.inf
        else:
            start = np.iinfo(x.dtype).min if lowest else np.iinfo(x.dtype).max
        return reduce(x, axis=axes, keepdims=keep, initial=start)

    def run_fixed(x: Array, axes: Axes, keep: bool) -> Any:
        if x.dtype == bool and not all(x.shape[a] for a in axes):
            kept = [1 if i in axes else d for i, d in enumerate(x.shape)]
            out = np.full(kept, not lowest)
            return out if keep else np.squeeze(out, axis=axes)
        return run(x, axes, keep)

    return run_fixed


REDUCTIONS: dict[str, tuple[Reduction, Exactness]] = {
    "ReduceSum": (_sum, "integer"),
    "ReduceProd": (_dtype_kept(np.prod), "integer"),
    "ReduceMean": (_mean, "integer"),
    "ReduceMax": (_extreme(np.max, lowest=True), True),
    "ReduceMin": (_extreme(np.min, lowest=False), True),
    "ReduceL1": (lambda x, axes, keep: _sum(np.abs(x), axes, keep), "integer"),
    "ReduceL2": (_l2, False),
    "ReduceSumSquare": (
        lambda x, axes, keep: _sum(np.square(x), axes, keep),
        "integer",
    ),
    "ReduceLogSum": (_log_sum, False),
    "ReduceLogSumExp": (_log_sum_exp, False),
}
_ELEMENTWISE: dict[str, Callable[[Array], Any]] = {
    "ReduceL1": np.abs,
    "ReduceL2": np.abs,
    "ReduceSumSquare": np.square,
    "ReduceLogSum": lambda x: np.log(x.astype(_real(x), copy=False)).astype(x.dtype),
}
"""What is left of a reduction over no axis at all."""


def _register(op_type: str, reduction: Reduction, exact: Exactness) -> None:
    def reduce(x: Array, axes: Any, keep: bool) -> Any:
        places = tuple(range(x.ndim)) if axes is None else tuple(int(a) % max(x.ndim, 1) for a in axes)
        for axis in () if axes is None else axes:
            if not -x.ndim <= int(axis) < max(x.ndim, 1):
                raise ValueError(f"axis {int(axis)} is outside rank {x.ndim}")
        return reduction(x, places if x.ndim else (), keep)

    @computed_wide
    def run_attribute(call: Call, x: Array) -> Any:
        return reduce(x, call.attr("axes"), bool(call.attr("keepdims", 1)))

    @computed_wide
    def run_input(call: Call, x: Array, axes: Array | None = None) -> Any:
        keep = bool(call.attr("keepdims", 1))
        if axes is not None and axes.size:
            return reduce(x, axes.reshape(-1), keep)
        if not call.attr("noop_with_empty_axes", 0):
            return reduce(x, None, keep)
        return _ELEMENTWISE.get(op_type, np.array)(x)

    input_since = 13 if op_type == "ReduceSum" else 18
    kernel(op_type, 1, exact=exact)(run_attribute)
    kernel(op_type, input_since, exact=exact)(run_input)


for _name, (_reduction, _exact) in REDUCTIONS.items():
    _register(_name, _reduction, _exact)


# ---------------------------------------------------------------- arg-reductions


def _arg_register(op_type: str, find: Any) -> None:
    @computed_wide
    def run(call: Call, x: Array) -> Array:
        axis, keep = call.attr("axis", 0), bool(call.attr("keepdims", 1))
        if call.attr("select_last_index", 0):
            index = x.shape[axis] - 1 - find(np.flip(x, axis), axis=axis, keepdims=keep)
        else:
            index = find(x, axis=axis, keepdims=keep)
        return np.asarray(index, np.int64)

    for since in (1, 12):
        kernel(op_type, since, exact=True)(run)


_arg_register("ArgMax", np.argmax)
_arg_register("ArgMin", np.argmin)


# ---------------------------------------------------------------- cumulative


def _cumulative(op_type: str, since: int, accumulate: Any, unit: int) -> None:
    @computed_wide
    def run(call: Call, x: Array, axis: Array) -> Array:
        along = int(axis.reshape(-1)[0])
        x = np.flip(x, along) if call.attr("reverse", 0) else x
        total = accumulate(x, axis=along, dtype=x.dtype)
        if call.attr("exclusive", 0):
            shifted = np.full_like(total, unit)
            body, rest = [slice(None)] * x.ndim, [slice(None)] * x.ndim
            body[along], rest[along] = slice(1, None), slice(None, -1)
            shifted[tuple(body)] = total[tuple(rest)]
            total = shifted
        return np.flip(total, along) if call.attr("reverse", 0) else total

    kernel(op_type, since, exact="integer")(run)


_cumulative("CumSum", 11, np.cumsum, 0)
_cumulative("CumProd", 26, np.cumprod, 1)
