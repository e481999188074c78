"""How close is close enough: one rule, with constants per element type that were measured, not tuned.

An output passes where at every element

    |a - b| <= atol + rtol * |b| + srel * max|b|

or where the largest difference is explained by the model's own noise:

    max|a - b| <= 4 * floor * max|b| + 64 * u * max|b|

``floor`` is the largest relative difference max|d| / max|y| that the original shows against itself:
runtime optimizations off against on, and its inputs moved by one unit in the last place. The factor 4
allows for the two sides of a comparison each having their own share of noise, at twice the sampled
one; ``64 u`` is the largest difference of two summation orders over a few thousand terms (measured:
16 to 32 ``u sqrt(K)`` of the operands' rms, against the maximum of the result).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from optimizer.ir import DType

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What may differ between two floating tensors.

    Attributes:
        rtol: relative to each element.
        atol: absolute.
        srel: relative to the largest magnitude of the tensor.
        unit: unit roundoff of the element type.
        floor: measured noise of the model at this output, relative to its largest magnitude.
        ceiling: a largest absolute difference that holds in addition.
        only_ceiling: nothing but ``ceiling`` counts.
    """

    rtol: float = 0.0
    atol: float = 0.0
    srel: float = 0.0
    unit: float = 0.0
    floor: float = 0.0
    ceiling: float | None = None
    only_ceiling: bool = False

    def with_floor(self, floor: float) -> Tolerance:
        """The same with the model's measured noise."""
        return replace(self, floor=floor)

    def with_ceiling(self, ceiling: float | None, only: bool = False) -> Tolerance:
        """The same with a largest absolute difference, in addition or (``only``) instead."""
        return replace(self, ceiling=ceiling, only_ceiling=only and ceiling is not None)

    def exceeded(self, difference: Array, magnitude: Array, scale: float) -> Array:
        """Where ``difference`` is too large.

        Args:
            difference: |a - b| in float64, finite.
            magnitude: |b|, of the same shape.
            scale: max|b| of the whole tensor.
        """
        over = np.zeros(difference.shape, bool)
        if not self.only_ceiling and difference.size:
            noise = (4 * self.floor + 64 * self.unit) * scale
            if not self.floor or difference.max() > noise:
                over = difference > self.atol + self.rtol * magnitude + self.srel * scale
        return over if self.ceiling is None else over | (difference > self.ceiling)


EXACT = Tolerance()
"""Integers, booleans, strings, and floats of eight bits or less."""

_UNIT = {DType.DOUBLE: 2.0**-53, DType.FLOAT: 2.0**-24, DType.FLOAT16: 2.0**-11, DType.BFLOAT16: 2.0**-8}

_NODE = {
    DType.DOUBLE: Tolerance(1e-9, 1e-12, 64 * 2.0**-53),
    DType.FLOAT: Tolerance(1e-5, 1e-7, 64 * 2.0**-24),
    DType.FLOAT16: Tolerance(2e-3, 1e-6, 2.0**-10),
    DType.BFLOAT16: Tolerance(1.6e-2, 1e-6, 2.0**-7),
}
"""One operator: two ways to sum the same products."""

_NETWORK = {
    DType.DOUBLE: Tolerance(1e-9, 1e-12, 1e-10),
    DType.FLOAT: Tolerance(1e-5, 1e-7, 1e-5),
    DType.FLOAT16: Tolerance(2e-3, 1e-6, 4e-3),
    DType.BFLOAT16: Tolerance(1.6e-2, 1e-6, 3e-2),
}
"""A whole net: about four times the largest difference seen between a runtime's own settings."""


def unit_roundoff(dtype: np.dtype[Any]) -> float:
    """Half a unit in the last place, relative; 0 for what is not a floating type of 16 bits or more."""
    return _UNIT.get(_real(dtype), 0.0)


def node_tolerance(dtype: np.dtype[Any]) -> Tolerance:
    """What the results of one operator may differ by."""
    return _of(_NODE, dtype)


def network_tolerance(dtype: np.dtype[Any]) -> Tolerance:
    """What an output of a whole net may differ by."""
    return _of(_NETWORK, dtype)


def _of(table: dict[DType, Tolerance], dtype: np.dtype[Any]) -> Tolerance:
    real = _real(dtype)
    return replace(table[real], unit=_UNIT[real]) if real in table else EXACT


def _real(dtype: np.dtype[Any]) -> DType:
    """The element type; that of its parts for a complex one."""
    try:
        found = DType.from_numpy(dtype)
    except KeyError:
        return DType.UNDEFINED
    return {DType.COMPLEX64: DType.FLOAT, DType.COMPLEX128: DType.DOUBLE}.get(found, found)
