"""The error function in float32 and float64, and what else is computed block by block."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from optimizer.runtime.precision import Array

BLOCK_ELEMENTS = 32 << 10
"""Elements per block: all passes over one block stay in the cache; smaller ones cost more in calls."""

InPlace = Callable[[Array, Array], None]

_TANH_FIT = (
    1.128379225730896,
    0.10277131199836731,
    -2.0215241238474846e-4,
    -6.036803242750466e-4,
    7.6489188359119e-5,
    -1.8609365497468389e-6,
    -5.151157438376686e-7,
    5.391835244950016e-08,
    -1.6408185921079621e-9,
)
"""Minimax fit of atanh(erf(x)) / x in x^2 on |x| <= 3.95, weighted for the relative error of erf."""
_ONE_FROM = 3.95
"""From here on erf is 1 in float32."""

# Rational approximations of W. J. Cody, "Rational Chebyshev approximations for the error function",
# Math. Comp. 23 (1969): erf on |x| <= 0.46875, erfc up to 4 and beyond. Highest power first.
_SMALL_P = (
    1.85777706184603153e-1,
    3.16112374387056560e0,
    1.13864154151050156e2,
    3.77485237685302021e2,
    3.20937758913846947e3,
)
_SMALL_Q = (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3)
_MIDDLE_P = (
    2.15311535474403846e-8,
    5.64188496988670089e-1,
    8.88314979438837594e0,
    6.61191906371416295e1,
    2.98635138197400131e2,
    8.81952221241769090e2,
    1.71204761263407058e3,
    2.05107837782607147e3,
    1.23033935479799725e3,
)
_MIDDLE_Q = (
    1.0,
    1.57449261107098347e1,
    1.17693950891312499e2,
    5.37181101862009858e2,
    1.62138957456669019e3,
    3.29079923573345963e3,
    4.36261909014324716e3,
    3.43936767414372164e3,
    1.23033935480374942e3,
)
_LARGE_P = (
    1.63153871373020978e-2,
    3.05326634961232344e-1,
    3.60344899949804439e-1,
    1.25781726111229246e-1,
    1.60837851487422766e-2,
    6.58749161529837803e-4,
)
_LARGE_Q = (
    1.0,
    2.56852019228982242e0,
    1.87295284992346725e0,
    5.27905102951428412e-1,
    6.05183413124413191e-2,
    2.33520497626869185e-3,
)


def in_blocks(x: Array, compute: InPlace, out: Array | None = None) -> Array:
    """An array filled by ``compute(x part, y part)`` on flat, cache-sized parts.

    Args:
        out: the array to fill, contiguous; it may be ``x``, whose parts are then copied first.
    """
    y = np.empty(x.shape, x.dtype) if out is None else out
    source, target = np.ascontiguousarray(x).reshape(-1), y.reshape(-1)
    for first in range(0, source.size, BLOCK_ELEMENTS):
        part = source[first : first + BLOCK_ELEMENTS]
        compute(part.copy() if y is x else part, target[first : first + BLOCK_ELEMENTS])
    return y


def over_input_in_blocks(compute: InPlace) -> Callable[[object, Array, Array], Array | None]:
    """The ``into`` of a kernel that is ``in_blocks`` of a float input."""

    def into(call: object, out: Array, x: Array) -> Array | None:
        return in_blocks(x, compute, out) if x.dtype.kind == "f" else None

    return into


def erf_into(x: Array, y: Array) -> None:
    """``y`` = erf(x): within 3 units in the last place in float32 and 4 in float64.

    float32 uses erf(x) = tanh(x * p(x^2)), which is relatively accurate around zero and cannot
    overshoot one. It does not reach one either: that is put in, since whoever adds one to it and multiplies
    by a large x (Gelu) would see what is missing.
    """
    if x.dtype != np.float32:
        y[...] = _erf_double(x.astype(np.float64, copy=False))
        return
    bound = np.float32(_ONE_FROM)
    np.clip(x, -bound, bound, out=y)
    square = y * y
    ends = square >= bound * bound
    factor = square * np.float32(_TANH_FIT[-1])
    for c in _TANH_FIT[-2:0:-1]:
        factor += np.float32(c)
        factor *= square
    factor += np.float32(_TANH_FIT[0])
    y *= factor
    np.tanh(y, out=y)
    if ends.any():
        y[ends] = np.copysign(np.float32(1), y[ends])


def _erf_double(x: Array) -> Array:
    size = np.abs(x)
    y = np.copysign(1.0, x)
    small = size <= 0.46875
    part = x[small]
    y[small] = part * _ratio(part * part, _SMALL_P, _SMALL_Q)
    middle = (size > 0.46875) & (size <= 4)
    part = size[middle]
    y[middle] *= 1 - np.exp(-part * part) * _ratio(part, _MIDDLE_P, _MIDDLE_Q)
    large = (size > 4) & (size < 6)  # erfc(6) is 2e-17: beyond, erf is 1
    part = size[large]
    inverse = 1 / (part * part)
    tail = (1 / math.sqrt(math.pi) - inverse * _ratio(inverse, _LARGE_P, _LARGE_Q)) / part
    y[large] *= 1 - np.exp(-part * part) * tail
    y[np.isnan(x)] = np.nan
    return y


def _ratio(x: Array, numerator: Sequence[float], denominator: Sequence[float]) -> Array:
    return np.asarray(np.polyval(numerator, x) / np.polyval(denominator, x))


def sigmoid_into(x: Array, y: Array) -> None:
    """``y`` = 1 / (1 + exp(-x)), relatively accurate at both ends."""
    np.negative(x, out=y)
    np.exp(y, out=y)
    y += 1
    np.reciprocal(y, out=y)


def gelu_into(x: Array, y: Array) -> None:
    """``y`` = x / 2 * (1 + erf(x / sqrt 2))."""
    erf_into(x * x.dtype.type(math.sqrt(0.5)), y)
    y += 1
    y *= x
    y *= x.dtype.type(0.5)


def gelu_tanh_into(x: Array, y: Array) -> None:
    """``y`` = x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))."""
    np.multiply(x, x, out=y)
    y *= x.dtype.type(0.044715)
    y += 1
    y *= x
    y *= x.dtype.type(math.sqrt(2 / math.pi))
    np.tanh(y, out=y)
    y += 1
    y *= x
    y *= x.dtype.type(0.5)
