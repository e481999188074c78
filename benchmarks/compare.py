"""How far two lists of outputs are apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Difference:
    """``max_abs`` is max|b - a|, ``max_rel`` is max over outputs of max|b - a| / max|a|.

    An output of zeros counts with its absolute error. Both are infinite where shapes, types,
    NaN masks, infinities or texts differ.
    """

    max_abs: float = 0.0
    max_rel: float = 0.0

    def merge(self, other: Difference) -> Difference:
        return Difference(max(self.max_abs, other.max_abs), max(self.max_rel, other.max_rel))


NOT_COMPARABLE = Difference(np.inf, np.inf)


def difference(expected: list[Any], actual: list[Any]) -> Difference:
    """The largest difference over all outputs; sequences and maps are compared by their leaves."""
    pairs = list(zip(_leaves(expected), _leaves(actual), strict=False))
    if len(list(_leaves(expected))) != len(list(_leaves(actual))):
        return NOT_COMPARABLE
    total = Difference()
    for a, b in pairs:
        total = total.merge(_difference_of_arrays(a, b))
    return total


def _leaves(value: Any) -> Iterator[np.ndarray]:
    if isinstance(value, dict):
        for key in value:
            yield np.asarray(key)
            yield from _leaves(value[key])
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
    else:
        yield np.asarray(value)


def _difference_of_arrays(expected: np.ndarray, actual: np.ndarray) -> Difference:
    if expected.shape != actual.shape or expected.dtype != actual.dtype:
        return NOT_COMPARABLE
    if expected.dtype.kind in "OSU":
        return Difference() if np.array_equal(expected, actual) else NOT_COMPARABLE
    if not expected.size:
        return Difference()
    a, b = expected.astype(np.float64), actual.astype(np.float64)
    finite = np.isfinite(a)
    if not np.array_equal(finite, np.isfinite(b)) or not np.array_equal(
        a[~finite], b[~finite], equal_nan=True
    ):
        return NOT_COMPARABLE
    if not finite.any():
        return Difference()
    largest = float(np.abs(b - a, where=finite, out=np.zeros_like(a)).max())
    magnitude = float(np.abs(a, where=finite, out=np.zeros_like(a)).max())
    return Difference(largest, largest / (magnitude or 1.0))
