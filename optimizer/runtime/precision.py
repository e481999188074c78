"""float16 and bfloat16 are computed in float32, rounded once per output; in truth mode in float64."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

NARROW_FLOATS = frozenset(
    np.dtype(t)
    for t in (
        np.float16,
        ml_dtypes.bfloat16,
        ml_dtypes.float8_e4m3fn,
        ml_dtypes.float8_e4m3fnuz,
        ml_dtypes.float8_e5m2,
        ml_dtypes.float8_e5m2fnuz,
        ml_dtypes.float8_e8m0fnu,
        ml_dtypes.float4_e2m1fn,
    )
)
NARROW_INTEGERS = frozenset(
    np.dtype(t) for t in (ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.int2, ml_dtypes.uint2)
)

_FIRST_UNUSUAL = np.dtype(np.float16).num
"""float16 and all ml_dtypes types have numbers from here on, every other numeric type is below."""


def is_narrow(x: Array) -> bool:
    """Whether ``x`` is float16 or a type of ml_dtypes. About 60 ns."""
    return x.dtype.num >= _FIRST_UNUSUAL


def compute_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """float32 for the narrow floats, int8 for 4- and 2-bit integers, otherwise ``dtype`` itself."""
    if dtype.num < _FIRST_UNUSUAL:
        return dtype
    return np.dtype(np.float32) if dtype in NARROW_FLOATS else np.dtype(np.int8)


def widen(x: Array) -> Array:
    """``x`` in its compute dtype; ``x`` itself where that is its dtype."""
    return x.astype(compute_dtype(x.dtype)) if x.dtype.num >= _FIRST_UNUSUAL else x


def computed_wide(run: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of kernels that compute in the dtype of their inputs.

    Where any tensor input is a narrow type, the kernel sees all narrow inputs in float32 (int8),
    and each float (integer) output it gives in that dtype is rounded to the first narrow type.
    """

    @wraps(run)
    def wide(call: Any, *inputs: Any) -> Any:
        for x in inputs:
            if x.__class__ is np.ndarray and x.dtype.num >= _FIRST_UNUSUAL:
                break
        else:
            return run(call, *inputs)
        narrow = x.dtype
        held = compute_dtype(narrow)
        result = run(call, *(widen(v) if isinstance(v, np.ndarray) else v for v in inputs))
        if isinstance(result, tuple):
            return tuple(_narrow(r, held, narrow) for r in result)
        return _narrow(result, held, narrow)

    return wide


def _narrow(value: Any, held: np.dtype[Any], narrow: np.dtype[Any]) -> Any:
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype == held:
        with np.errstate(over="ignore"):  # overflow to infinity is what rounding to float16 means
            return value.astype(narrow)
    return value


# ---------------------------------------------------------------- truth mode

_TRUE_FLOATS = frozenset(d for d in NARROW_FLOATS if d.itemsize == 2) | {np.dtype(np.float32)}


def true_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """float64 for float16, bfloat16 and float32, complex128 for complex64, else ``dtype``."""
    if dtype in _TRUE_FLOATS:
        return np.dtype(np.float64)
    return np.dtype(np.complex128) if dtype == np.complex64 else dtype


def true_value(value: Any) -> Any:
    """A value with every tensor in it upcast as truth mode wants."""
    if isinstance(value, np.ndarray):
        wanted = true_dtype(value.dtype)
        return value if wanted == value.dtype else value.astype(wanted)
    return [true_value(v) for v in value] if isinstance(value, list) else value
