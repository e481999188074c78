"""Tensors made from attributes, shapes and ranges rather than from other tensors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optimizer.ir import SparseTensor
from optimizer.runtime.call import Call
from optimizer.runtime.precision import Array, widen
from optimizer.runtime.registry import kernel


@kernel("Constant", exact=True, may_alias=True)
def constant(call: Call) -> Array:
    """The value of whichever attribute is there."""
    value: Array = call.once("value", lambda: _constant(call))
    return value


def _constant(call: Call) -> Array:
    for name, dtype in (
        ("value_float", np.float32),
        ("value_floats", np.float32),
        ("value_int", np.int64),
        ("value_ints", np.int64),
        ("value_string", object),
        ("value_strings", object),
    ):
        if call.has(name):
            return np.asarray(call.attr(name), call.real(dtype))
    if call.has("sparse_value"):
        return dense(call.attr("sparse_value"), call)
    value: Array = call.attr("value")
    return value


def dense(sparse: SparseTensor, call: Call) -> Array:
    """A sparse constant with its zeros."""
    values, indices = sparse.values.array, sparse.indices.array
    out = np.zeros(math.prod(sparse.shape), call.real(values.dtype))
    flat = indices if indices.ndim == 1 else np.ravel_multi_index(tuple(indices.T), sparse.shape)
    out[flat] = values
    return out.reshape(sparse.shape)


@kernel("ConstantOfShape", 9, exact=True)
def constant_of_shape(call: Call, shape: Array) -> Array:
    """One value everywhere; zero of type float without ``value``."""
    value = call.attr("value")
    dtype = call.real(np.float32) if value is None else value.dtype
    call.context.check_size(shape.tolist(), dtype)
    if value is None:
        return np.zeros(shape.tolist(), dtype)
    return np.full(shape.tolist(), value.reshape(()), value.dtype)


@kernel("Range", 11, exact="integer")
def range_(call: Call, start: Array, limit: Array, delta: Array) -> Array:
    """``start + i * delta`` for i in [0, ceil((limit - start) / delta))."""
    first, stop, step = (widen(v).reshape(()) for v in (start, limit, delta))
    if step == 0:
        raise ValueError("delta is zero")
    if first.dtype.kind in "iu":
        count = max(0, -(-(int(stop) - int(first)) // int(step)))
    else:
        count = max(0, math.ceil((float(stop) - float(first)) / float(step)))
    call.context.check_size([count], np.dtype(np.int64))
    steps = np.arange(count).astype(first.dtype)
    return np.asarray(first + steps * step).astype(start.dtype)


@kernel("EyeLike", 9, exact=True)
def eye_like(call: Call, x: Array) -> Array:
    """Ones on the k-th diagonal, in the shape of the input."""
    dtype = call.dtype(call.attr("dtype", 0), x.dtype)
    rows, columns = x.shape
    return np.eye(rows, columns, call.attr("k", 0)).astype(dtype)


@kernel("OneHot", 9, exact=True)
@kernel("OneHot", 11, exact=True)
def one_hot(call: Call, indices: Array, depth: Array, values: Array) -> Array:
    """``values = [off, on]``; an index outside [-depth, depth) gives a row of ``off``."""
    count = int(depth.reshape(-1)[0])
    axis = call.attr("axis", -1)
    axis = axis + indices.ndim + 1 if axis < 0 else axis
    call.context.check_size([*indices.shape, count], np.dtype(np.int64))
    whole = widen(indices).astype(np.int64)
    wrapped = np.where(whole < 0, whole + count, whole)
    classes = np.arange(count).reshape((-1,) + (1,) * (indices.ndim - axis))
    hot = np.expand_dims(wrapped, axis) == classes
    chosen: Array = np.take(values, hot.astype(np.int64))
    return chosen


_SMALL = 4096
"""Below so many elements, planning a contraction for BLAS takes longer than plain loops."""


@kernel("Einsum", 12, exact="integer")
def einsum(call: Call, *inputs: Array) -> Array:
    """Einstein summation."""
    dtype = inputs[0].dtype
    equation: str = call.attr("equation")
    large = len(inputs) > 2 or max(x.size for x in inputs) > _SMALL
    out: Any = np.einsum(equation.replace(" ", ""), *(widen(x) for x in inputs), optimize=large)
    return np.array(out).astype(dtype, copy=False)
