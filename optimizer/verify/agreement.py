"""Are the values of the two sides of a region the same: bit for bit, or but for one rounding."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from optimizer.verify.metrics import compare_arrays, same_kind
from optimizer.verify.tolerance import node_tolerance

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

COMPUTED = 1e-10
"""What float64 arithmetic may lose, relative to the largest magnitude anything in the region takes."""


def flat(values: Iterable[Any]) -> list[Any]:
    """The values with sequences taken apart."""
    found: list[Any] = []
    for value in values:
        found.extend(flat(value) if isinstance(value, (list, tuple)) else [value])
    return found


def bits_differ(old: Any, new: Any) -> str:
    """What differs in kind, shape, type or any bit that matters (payloads of NaN do not)."""
    fault = same_kind(old, new)
    if fault or not isinstance(old, np.ndarray):
        return fault
    same = np.asarray(old == new)
    if old.dtype.kind not in "OSUbiu":
        with np.errstate(invalid="ignore"):
            same = (same & (np.signbit(_real(old)) == np.signbit(_real(new)))) | ((old != old) & (new != new))
    return "" if same.all() else _shown(old, new, ~same)


def nearly_differ(old: Any, new: Any) -> str:
    """What differs by more than two orders of summation do, in the model's own element type."""
    fault = same_kind(old, new)
    if fault or not isinstance(old, np.ndarray):
        return fault
    return compare_arrays(old, new, node_tolerance(old.dtype)).fault


def truly_differ(
    old: Any, new: Any, magnitude: Callable[[], Array | float], rounding: Callable[[], Array | float]
) -> tuple[str, bool]:
    """What differs between two float64 results by more than ``rounding`` and 1e-10 of ``magnitude``.

    Elements that are not finite on the old side are not looked at.

    Args:
        magnitude: of what was computed on the way, per element or for all; asked for when needed.
        rounding: what rounding the constants allows; asked for when needed.

    Returns:
        The fault, and whether any element could be compared at all.
    """
    fault = same_kind(old, new)
    if fault or not isinstance(old, np.ndarray) or old.dtype.kind not in "fc":
        seen = not isinstance(old, np.ndarray) or bool(old.size)
        return (fault or ("" if _equal(old, new) else _shown(old, new, np.asarray(old != new)))), seen
    with np.errstate(all="ignore"):
        difference = np.abs(new - old)
    most = float(difference.max(initial=0.0))
    if most == 0.0:
        return "", bool(old.size)
    if math.isfinite(most):  # and so are all elements of both
        finite: Any = True
        seen = True
    else:
        if np.array_equal(old, new):
            return "", bool(old.size)
        finite = np.isfinite(old)
        seen = bool(finite.any())
    allowed: Any = COMPUTED * np.asarray(magnitude())
    if most <= allowed.min(initial=math.inf):
        return "", seen
    over = finite & ~(difference <= allowed)
    if over.any():
        allowed = allowed + rounding()
        over = finite & ~(difference <= allowed)
        if over.any():
            return _shown(old, new, over, np.broadcast_to(allowed, old.shape)), seen
    return "", seen


def largest_of(values: Iterable[Any]) -> float:
    """The largest finite magnitude in any real tensor."""
    largest = 0.0
    for value in flat(values):
        if isinstance(value, np.ndarray) and value.dtype.kind in "fc" and value.size:
            found = _extent(value)
            if not math.isfinite(found):
                found = float(np.max(np.abs(value), where=np.isfinite(value), initial=0.0))
            largest = max(largest, found)
    return largest


def _extent(value: Array) -> float:
    """The largest magnitude; of real numbers without an array of all magnitudes."""
    if value.dtype.kind == "c":
        return float(np.abs(value).max())
    return float(np.maximum(value.max(), -value.min()))


def largest_at(values: Iterable[Any], shape: Sequence[int]) -> Array:
    """The largest finite magnitude at each element, over the tensors that broadcast to ``shape``."""
    largest = np.zeros(tuple(shape))
    for value in flat(values):
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "fc":
            continue
        magnitude = np.abs(value)
        magnitude = np.where(np.isfinite(magnitude), magnitude, 0.0)
        try:
            if np.broadcast_shapes(magnitude.shape, largest.shape) == largest.shape:
                np.maximum(largest, magnitude, out=largest)
        except ValueError:
            continue
    return largest


def _equal(old: Any, new: Any) -> bool:
    return not isinstance(old, np.ndarray) or bool(np.all(old == new))


def _real(array: Array) -> Array:
    return array.real if array.dtype.kind == "c" else array.astype(np.float64)


def _shown(old: Array, new: Array, where: Array, allowed: Array | None = None) -> str:
    index = np.unravel_index(int(np.argmax(where)), where.shape)
    if allowed is not None:
        with np.errstate(all="ignore"):
            worst = np.where(where, np.abs(new - old) / np.maximum(allowed, np.finfo(float).tiny), -1.0)
        index = np.unravel_index(int(np.argmax(worst)), worst.shape)
    place, some = list(map(int, index)), f"{int(where.sum())} of {where.size} elements"
    text = f"{_number(old[index])} became {_number(new[index])} at {place}, {some} differ"
    return text if allowed is None else f"{text}, {allowed[index]:.2g} is allowed"


def _number(value: Any) -> str:
    return f"{value:.10g}" if isinstance(value, (float, np.floating)) else str(value)
