"""Operators on quantized tensors: integer products on float BLAS where exact, then one requantization."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optimizer.runtime.call import Call
from optimizer.runtime.kernels.conv import conv_window, convolve
from optimizer.runtime.kernels.linear import integer_product, shifted
from optimizer.runtime.kernels.quant import MS, quantized
from optimizer.runtime.precision import NARROW_FLOATS, Array, widen
from optimizer.runtime.registry import kernel


def _shifted_columns(x: Array, zero_point: Array | None, *, rows: bool) -> Array:
    """As ``shifted``; fp8 operands (whose zero points are zero) as float."""
    return widen(x) if x.dtype in NARROW_FLOATS else shifted(x, zero_point, rows=rows)


def _row_scale(scale: Array) -> Array:
    """The scale of a left operand: a vector of them belongs to the rows."""
    wide = widen(scale)
    return wide[:, None] if wide.ndim == 1 and wide.size > 1 else wide.reshape(wide.shape or ())


def _product(a: Array, b: Array) -> Array:
    return np.asarray(np.matmul(a, b)) if a.dtype.kind == "f" else integer_product(a, b)


@kernel("QLinearMatMul", since=10)
@kernel("QLinearMatMul", since=21)
def qlinear_matmul(
    call: Call,
    a: Array,
    a_scale: Array,
    a_zero: Array,
    b: Array,
    b_scale: Array,
    b_zero: Array,
    y_scale: Array,
    y_zero: Array,
) -> Array:
    """The integer product times a_scale * b_scale / y_scale, rounded, shifted, saturated."""
    product = _product(_shifted_columns(a, a_zero, rows=True), _shifted_columns(b, b_zero, rows=False))
    factor = _row_scale(a_scale) * widen(b_scale) / _row_scale(y_scale)
    return _requantized(product, factor, y_zero)


def _requantized(accumulated: Array, factor: Array, zero_point: Array) -> Array:
    """``accumulated * factor`` in the dtype of the factor, then rounded into the zero point's type."""
    ratio = accumulated.astype(factor.dtype) * factor
    if zero_point.ndim == 1 and zero_point.size > 1:
        zero_point = zero_point[:, None]
    return quantized(np.asarray(ratio), zero_point, zero_point.dtype)


@kernel("QLinearConv", since=10)
def qlinear_conv(
    call: Call,
    x: Array,
    x_scale: Array,
    x_zero: Array,
    w: Array,
    w_scale: Array,
    w_zero: Array,
    y_scale: Array,
    y_zero: Array,
    b: Array | None = None,
) -> Array:
    """The integer convolution plus an int32 bias, requantized per output channel."""
    total = _integer_conv(call, x, w, x_zero, w_zero, (3, 5))
    channel = (-1, *(1,) * (x.ndim - 2))
    if b is not None:
        total += b.reshape(channel)
    factor = np.asarray(x_scale.reshape(()) * w_scale.reshape(-1) / y_scale.reshape(()))
    return _requantized(total, factor.reshape(channel), y_zero.reshape(()))


@kernel("ConvInteger", since=10, exact=True)
def conv_integer(
    call: Call, x: Array, w: Array, x_zero: Array | None = None, w_zero: Array | None = None
) -> Array:
    """(x - zero point) convolved with (w - zero point, one or per output channel), in int32."""
    return _integer_conv(call, x, w, x_zero, w_zero, (1,) if w_zero is None else (1, 3))


def _integer_conv(
    call: Call,
    x: Array,
    w: Array,
    x_zero: Array | None,
    w_zero: Array | None,
    weight_slots: tuple[int, ...],
) -> Array:
    """In int32. float32 holds every partial sum exactly below 2^24, float64 all the others.

    Padding is done after the shift: a padded position counts as the zero point.
    """
    group = call.attr("group", 1)
    window = conv_window(call, x, w, group)
    image = shifted(x, None if x_zero is None else x_zero.reshape(()), rows=False)
    weights = w.astype(np.int32)
    if w_zero is not None:
        weights -= w_zero.astype(np.int32).reshape(-1, *(1,) * (w.ndim - 1) if w_zero.size > 1 else ())
    terms = math.prod(w.shape[1:])
    largest = [max(abs(int(v.min())), abs(int(v.max()))) if v.size else 0 for v in (image, weights)]
    kind = np.float32 if terms * largest[0] * largest[1] < 1 << 24 else np.float64
    total = convolve(call, image.astype(kind), weights.astype(kind), window, group, weight_slots=weight_slots)
    return total.astype(np.int64).astype(np.int32)


@kernel("QGemm", domain=MS, dtypes="A float A B float B int32 float uint8|int8; A: uint8 int8; B: uint8 int8")
def qgemm(
    call: Call,
    a: Array,
    a_scale: Array,
    a_zero: Array,
    b: Array,
    b_scale: Array,
    b_zero: Array,
    c: Array | None = None,
    y_scale: Array | None = None,
    y_zero: Array | None = None,
) -> Array:
    """alpha * A' B' in integers plus int32 C; requantized, or float without y's parameters."""
    left = a.T if call.attr("transA", 0) else a
    right = b.T if call.attr("transB", 0) else b
    total = integer_product(shifted(left, a_zero, rows=True), shifted(right, b_zero, rows=False))
    if c is not None:
        total = total + c
    factor = np.asarray(a_scale * b_scale * a_scale.dtype.type(call.attr("alpha", 1.0)))
    if y_scale is None or y_zero is None:
        return np.asarray(total.astype(factor.dtype) * factor)
    return _requantized(total, factor / y_scale, y_zero)


@kernel(
    "MatMulIntegerToFloat", domain=MS, dtypes="A B T T A B T; A: int8 uint8; B: int8 uint8; T: float float16"
)
def matmul_integer_to_float(
    call: Call,
    a: Array,
    b: Array,
    a_scale: Array,
    b_scale: Array,
    a_zero: Array | None = None,
    b_zero: Array | None = None,
    bias: Array | None = None,
) -> Array:
    """The integer product times both scales, plus a float bias."""
    total = integer_product(shifted(a, a_zero, rows=True), shifted(b, b_zero, rows=False))
    y = total.astype(a_scale.dtype) * (_row_scale(a_scale) * b_scale)
    return np.asarray(y if bias is None else y + bias)


@kernel("DynamicQuantizeMatMul", domain=MS, dtypes="float B float B float; B: int8 uint8")
def dynamic_quantize_matmul(
    call: Call,
    a: Array,
    b: Array,
    b_scale: Array,
    b_zero: Array | None = None,
    bias: Array | None = None,
) -> Array:
    """MatMulIntegerToFloat of A quantized as DynamicQuantizeLinear does."""
    from optimizer.runtime.kernels.quant import dynamic_quantize_linear

    quantized_a, scale, zero = dynamic_quantize_linear(call, a)
    return matmul_integer_to_float(call, quantized_a, b, scale, b_scale, zero, b_zero, bias)


def real(x: Array, scale: Array, zero_point: Array | None) -> Array:
    """The float that a per-tensor quantized value stands for."""
    zero: Any = 0 if zero_point is None else zero_point.reshape(()).astype(np.int32)
    return np.asarray((x.astype(np.int32) - zero).astype(scale.dtype) * scale.reshape(()))


def stored(y: Array, scale: Array, zero_point: Array | None, like: Array) -> Array:
    """``y`` quantized to the type of the zero point (of ``like`` where it is omitted)."""
    dtype = like.dtype if zero_point is None else zero_point.dtype
    return quantized(y / scale.reshape(()), zero_point, dtype)
