"""Conversions between element types."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from optimizer.runtime.call import Call
from optimizer.runtime.precision import NARROW_INTEGERS, Array, widen
from optimizer.runtime.registry import kernel

_POWER_OF_TWO = np.dtype(ml_dtypes.float8_e8m0fnu)
_LARGEST = {
    np.dtype(ml_dtypes.float8_e4m3fn): 448.0,
    np.dtype(ml_dtypes.float8_e4m3fnuz): 240.0,
    np.dtype(ml_dtypes.float8_e5m2): 57344.0,
    np.dtype(ml_dtypes.float8_e5m2fnuz): 57344.0,
}
"""The largest finite value of each fp8 type."""
_DTYPE_NAMES = {
    "FLOAT": 1,
    "UINT8": 2,
    "INT8": 3,
    "UINT16": 4,
    "INT16": 5,
    "INT32": 6,
    "INT64": 7,
    "STRING": 8,
    "BOOL": 9,
    "FLOAT16": 10,
    "DOUBLE": 11,
    "UINT32": 12,
    "UINT64": 13,
}
"""Version 1 names its target by a string."""


@kernel("Cast", 1, exact=True, may_alias=True)
def cast_by_name(call: Call, x: Array) -> Array:
    """Cast to a type named by a string."""
    return convert(x, call.dtype(_DTYPE_NAMES[str(call.attr("to")).upper()]))


@kernel("Cast", 6, exact=True, may_alias=True)
def cast(call: Call, x: Array) -> Array:
    """Cast to the element type ``to``."""
    return convert(
        x, call.dtype(call.attr("to")), bool(call.attr("saturate", 1)), call.attr("round_mode", "up")
    )


@kernel("CastLike", 15, exact=True, may_alias=(0,))
def cast_like(call: Call, x: Array, target: Array) -> Array:
    """Cast to the element type of ``target``."""
    return convert(x, target.dtype, bool(call.attr("saturate", 1)), call.attr("round_mode", "up"))


def convert(x: Array, dtype: np.dtype[Any], saturate: bool = True, round_mode: str = "up") -> Array:
    """``x`` in another element type.

    Floats become integers by truncation, integers wrap. Into fp8, ``saturate`` takes what is too
    large to the largest finite value, otherwise to NaN (or infinity, where the type has it).
    ``round_mode`` (``up``, ``down``, ``nearest``) is for the power-of-two type only.

    Raises:
        ValueError: a string does not spell a number.
    """
    if x.dtype == dtype:
        return x
    if dtype.kind == "O":
        return np.array([_spell(v) for v in x.reshape(-1)], object).reshape(x.shape)
    if x.dtype.kind == "O":
        return _parse(x, dtype)
    if x.dtype.num >= np.dtype(np.float16).num:
        x = widen(x)  # exact, and NumPy knows no way between two types of ml_dtypes
    if dtype.kind == "b":
        return np.not_equal(x, 0)
    if dtype == _POWER_OF_TWO:
        return _to_power_of_two(x.astype(np.float32), saturate, round_mode)
    if dtype in _LARGEST:
        return _to_float8(x, dtype, saturate)
    if dtype in NARROW_INTEGERS:
        return _to_narrow_integer(x, dtype)
    return x.astype(dtype)


def _to_float8(x: Array, dtype: np.dtype[Any], saturate: bool) -> Array:
    x = x if x.dtype == np.float64 else x.astype(np.float32)
    if saturate:
        top = _LARGEST[dtype]
        x = np.clip(x, -top, top)  # keeps NaN
    return x.astype(dtype)


def _to_narrow_integer(x: Array, dtype: np.dtype[Any]) -> Array:
    """The low bits of the truncated value."""
    bits = int(dtype.name.removeprefix("u").removeprefix("int"))
    low = x.astype(np.int64) & ((1 << bits) - 1)
    if dtype.name.startswith("int"):
        low = np.where(low >= 1 << (bits - 1), low - (1 << bits), low)
    return low.astype(np.int8).astype(dtype)


def _to_power_of_two(x: Array, saturate: bool, round_mode: str) -> Array:
    """float8e8m0 holds the exponent of a float32 and nothing else; 255 is NaN."""
    bits = x.view(np.uint32)
    exponent = ((bits >> 23) & 0xFF).astype(np.int32)
    mantissa = bits & 0x7FFFFF
    if round_mode == "up":
        up = mantissa > 0
    elif round_mode == "nearest":
        up = mantissa >= 0x400000
    elif round_mode == "down":
        up = np.zeros(mantissa.shape, bool)
    else:
        raise ValueError(f"unknown round_mode '{round_mode}'")
    finite = exponent < 255
    rounded = exponent + (up & finite)
    if saturate:
        rounded = np.where(finite | np.isinf(x), np.minimum(rounded, 254), rounded)
    return rounded.astype(np.uint8).view(_POWER_OF_TWO)


def _spell(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return str(int(value))
    if isinstance(value, (int, np.integer)) or value.dtype in NARROW_INTEGERS:
        return str(int(value))
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "INF" if value > 0 else "-INF"
    return str(value if isinstance(value, np.floating) else np.float32(value))


def _parse(x: Array, dtype: np.dtype[Any]) -> Array:
    texts = [str(v).strip() for v in x.reshape(-1)]
    if dtype.kind in "iu" or dtype in NARROW_INTEGERS:
        whole = np.array([_whole(t) for t in texts], object)
        parsed: Array = whole.astype(np.uint64 if dtype == np.uint64 else np.int64).reshape(x.shape)
    else:
        parsed = np.array([float(t) for t in texts], np.float64).reshape(x.shape)
    return parsed if parsed.dtype == dtype else convert(parsed, dtype)


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        return int(float(text))
