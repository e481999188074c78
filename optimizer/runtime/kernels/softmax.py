"""Softmax, LogSoftmax and Hardmax: over the flattened trailing dims before version 13, one axis since."""

from __future__ import annotations

import numpy as np

from optimizer.runtime.call import Call
from optimizer.runtime.kernels.rows import row_loops
from optimizer.runtime.precision import Array, computed_wide, is_narrow, widen
from optimizer.runtime.registry import kernel

BLOCK_ELEMENTS = 48 << 10


def softmax_rows(x: Array, out: Array | None = None) -> Array:
    """exp(x - max) / sum over the last axis, written to ``out`` (may be ``x``) if given."""
    y = np.empty_like(x) if out is None else out
    if not x.size:
        return y
    rows, results = x.reshape(-1, x.shape[-1]), y.reshape(-1, x.shape[-1])
    step = max(1, BLOCK_ELEMENTS // x.shape[-1])
    with row_loops(x.shape[-1]):
        for first in range(0, len(rows), step):
            part, target = rows[first : first + step], results[first : first + step]
            np.subtract(part, part.max(1, keepdims=True), out=target)
            np.exp(target, out=target)
            target *= np.reciprocal(target.sum(1, keepdims=True))
    return y


def _log_softmax_rows(x: Array) -> Array:
    if not x.size:
        return x.copy()
    y = x - x.max(-1, keepdims=True)
    y -= np.log(np.exp(y).sum(-1, keepdims=True))
    return np.asarray(y)


def _hardmax_rows(x: Array) -> Array:
    y = np.zeros_like(x)
    if x.size:
        np.put_along_axis(y, x.argmax(-1)[..., None], 1, -1)
    return y


_ROWS = {"Softmax": softmax_rows, "LogSoftmax": _log_softmax_rows, "Hardmax": _hardmax_rows}


@kernel("Softmax", since=1)
@kernel("LogSoftmax", since=1)
@kernel("Hardmax", since=1, exact=True)
@computed_wide
def softmax_flattened(call: Call, x: Array) -> Array:
    """Versions 1 and 11: the input as a matrix, split before ``axis``; each row as a whole."""
    axis = call.attr("axis", 1)
    axis = axis + x.ndim if axis < 0 else axis
    lead = int(np.prod(x.shape[:axis], dtype=np.int64))
    tail = int(np.prod(x.shape[axis:], dtype=np.int64))
    return _ROWS[call.op_type](x.reshape(lead, tail)).reshape(x.shape)


def _softmax_over(call: Call, out: Array, x: Array) -> Array | None:
    axis = call.attr("axis", -1)
    return softmax_rows(x, out) if x.ndim and axis in (-1, x.ndim - 1) else None


def _softmax_stepwise(x: Array, axis: int) -> Array:
    """Softmax of a narrow type as its function body defines it: every step rounds what it gives.

    The body is ReduceMax, Sub, Exp, ReduceSum, Div, so that a sum of exponentials that is not
    representable is rounded before the division.
    """
    narrow, wide = x.dtype, widen(x)

    def rounded(v: Array) -> Array:
        return v.astype(narrow).astype(wide.dtype)

    powers = rounded(np.exp(rounded(wide - wide.max(axis, keepdims=True, initial=-np.inf))))
    return np.asarray(powers / rounded(powers.sum(axis, keepdims=True))).astype(narrow)


@kernel("Softmax", since=13, into=_softmax_over)
def softmax(call: Call, x: Array) -> Array:
    """Along ``axis`` alone."""
    if is_narrow(x) and x.ndim:
        return _softmax_stepwise(x, call.attr("axis", -1))
    return np.asarray(rows_along(call, x))


@kernel("LogSoftmax", since=13)
@kernel("Hardmax", since=13, exact=True)
@computed_wide
def rows_along(call: Call, x: Array) -> Array:
    """Along ``axis`` alone."""
    axis = call.attr("axis", -1)
    if x.ndim and not -x.ndim <= axis < x.ndim:
        raise ValueError(f"axis {axis} is outside of rank {x.ndim}")
    rows = _ROWS[call.op_type]
    if x.ndim == 0:
        return rows(x.reshape(1)).reshape(())
    if axis % x.ndim == x.ndim - 1:
        return rows(np.ascontiguousarray(x))
    moved = np.ascontiguousarray(np.moveaxis(x, axis, -1))
    return np.ascontiguousarray(np.moveaxis(rows(moved), -1, axis))
