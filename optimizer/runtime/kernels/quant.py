"""QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear, of ai.onnx and com.microsoft."""

from __future__ import annotations

from typing import Any

import numpy as np

from optimizer.runtime.call import Call
from optimizer.runtime.kernels.cast import convert
from optimizer.runtime.precision import NARROW_FLOATS, NARROW_INTEGERS, Array, widen
from optimizer.runtime.registry import kernel

MS = "com.microsoft"
FLOATS = "T...; T: float float16 bfloat16 double"
"""Element types of operators whose inputs all have the same one, any float."""


@kernel("QuantizeLinear", since=10, exact=True)
@kernel("QuantizeLinear", since=13, exact=True)
@kernel("QuantizeLinear", since=19, exact=True)
@kernel("QuantizeLinear", since=21, exact=True)
@kernel("QuantizeLinear", since=23, exact=True)
@kernel(
    "QuantizeLinear",
    since=1,
    domain=MS,
    exact=True,
    dtypes="T T int8|uint8|int16|uint16|int4|uint4; T: float float16",
)
def quantize_linear(call: Call, x: Array, scale: Array, zero_point: Array | None = None) -> Array:
    """saturate(round(x / scale) + zero point), ties to even. Per tensor, axis or block.

    The result has the zero point's type, else ``output_dtype``, else uint8.
    """
    if zero_point is not None:
        dtype = zero_point.dtype
    else:
        dtype = call.dtype(call.attr("output_dtype", 0), np.uint8)
    wide = np.result_type(widen(x) if x.dtype.kind != "i" else np.float32, widen(scale))
    rounding = None  # of the quotient: since version 23 it has a type
    if call.opset >= 23 and not call.domain:
        rounding = call.dtype(call.attr("precision", 0), scale.dtype)
        wide = np.result_type(np.float32, rounding) if rounding.kind == "f" else wide
    axis, block = call.attr("axis", 1), call.attr("block_size", 0)
    divisor = spread(scale, x, axis, block).astype(wide, copy=False)
    ratio = x.astype(wide) / divisor
    if rounding is not None and rounding.itemsize == 2:  # a scale of float8e8m0 is an exponent, no precision
        ratio = ratio.astype(rounding).astype(wide)
    offset = None if zero_point is None else spread(zero_point, x, axis, block)
    return quantized(ratio, offset, dtype, saturate=bool(call.attr("saturate", 1)))


def spread(v: Array, x: Array, axis: int, block: int) -> Array:
    """A scale or zero point shaped to broadcast over ``x``.

    Raises:
        ValueError: its shape fits neither a tensor, nor an axis, nor blocks of ``x``.
    """
    if v.ndim == 0 or (v.size == 1 and v.ndim == 1):
        return v.reshape(())
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"axis {axis} is outside of rank {x.ndim}")
    axis %= x.ndim
    if v.ndim == 1 and not block:
        if v.size != x.shape[axis]:
            raise ValueError(f"{v.size} scales or zero points for {x.shape[axis]} slices")
        return v.reshape(-1, *(1,) * (x.ndim - 1 - axis))
    if block < 1 or v.ndim != x.ndim:
        raise ValueError(f"scale {list(v.shape)} and block size {block} do not fit {list(x.shape)}")
    return np.repeat(v, block, axis)[(slice(None),) * axis + (slice(x.shape[axis]),)]


def quantized(
    ratio: Array, zero_point: Array | None, dtype: np.dtype[Any], *, saturate: bool = True
) -> Array:
    """``ratio`` rounded, shifted and saturated into ``dtype``. ``ratio`` may be overwritten."""
    if dtype in NARROW_FLOATS:
        if zero_point is not None:
            ratio = ratio + zero_point.astype(ratio.dtype)
        return convert(ratio, dtype, saturate)
    ratio = np.asarray(ratio)  # what is computed from scalars is none
    np.rint(ratio, out=ratio)
    if zero_point is not None and zero_point.any():
        ratio += zero_point.astype(ratio.dtype)
    low, high = _range(dtype)
    np.clip(ratio, low, high, out=ratio)
    if dtype in NARROW_INTEGERS:
        return ratio.astype(np.int8).astype(dtype)
    return ratio.astype(dtype)


def _range(dtype: np.dtype[Any]) -> tuple[int, int]:
    """The smallest and the largest value of an integer type, 4- and 2-bit ones included."""
    if dtype not in NARROW_INTEGERS:
        info = np.iinfo(dtype)
        return int(info.min), int(info.max)
    bits = int(dtype.name.removeprefix("u").removeprefix("int"))
    return (0, 2**bits - 1) if dtype.name.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


@kernel("DequantizeLinear", since=10, exact=True)
@kernel("DequantizeLinear", since=13, exact=True)
@kernel("DequantizeLinear", since=19, exact=True)
@kernel("DequantizeLinear", since=21, exact=True)
@kernel("DequantizeLinear", since=23, exact=True)
@kernel(
    "DequantizeLinear",
    since=1,
    domain=MS,
    exact=True,
    dtypes="T float|float16 T; T: int8 uint8 int16 uint16 int32 int4 uint4",
)
def dequantize_linear(call: Call, x: Array, scale: Array, zero_point: Array | None = None) -> Array:
    """(x - zero point) * scale in the type of the scale (or ``output_dtype``), computed in float32."""
    axis, block = call.attr("axis", 1), call.attr("block_size", 0)
    factor = spread(widen(scale), x, axis, block)
    offset = None if zero_point is None else spread(zero_point, x, axis, block)
    y = dequantized(x, factor, offset)
    return y.astype(call.dtype(call.attr("output_dtype", 0), scale.dtype), copy=False)


def dequantized(x: Array, factor: Array, zero_point: Array | None) -> Array:
    """(x - zero point) * factor in the dtype of ``factor``; the difference of integers is exact."""
    if zero_point is not None and zero_point.astype(np.float32).any():
        kind = np.int32 if x.dtype.itemsize < 4 and x.dtype not in NARROW_FLOATS else factor.dtype
        y = (x.astype(kind) - zero_point.astype(kind)).astype(factor.dtype, copy=False)
    else:
        y = x.astype(factor.dtype)
    y *= factor
    return np.asarray(y)


@kernel("DynamicQuantizeLinear", since=11)
def dynamic_quantize_linear(call: Call, x: Array) -> tuple[Array, Array, Array]:
    """(y, scale, zero point): the range of ``x``, stretched to hold zero, on 0...255."""
    low, high = (x.min(), x.max()) if x.size else (x.dtype.type(0), x.dtype.type(0))
    low, high = min(low, x.dtype.type(0)), max(high, x.dtype.type(0))
    scale = np.asarray((high - low) / x.dtype.type(255) if high > low else x.dtype.type(1), x.dtype)
    zero = np.asarray(np.clip(np.rint(-low / scale), 0, 255), np.uint8)
    return quantized(x / scale, zero, np.dtype(np.uint8)), scale, zero
