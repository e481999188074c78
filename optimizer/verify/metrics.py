"""How far two values are apart, and whether that is too far."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from optimizer.verify.tolerance import Array, Tolerance, network_tolerance

ToleranceOf = Callable[["np.dtype[Any]"], Tolerance]

REL_FLOOR = 1e-3
"""Relative errors are taken above this share of the largest magnitude: below it they mean nothing."""
NOTHING = 1000.0
"""Below so many times the absolute tolerance a largest magnitude is as good as zero: what may differ there
says nothing relative to it."""
TOP = 5
MAX_SCORES = 1 << 22


@dataclass(frozen=True, slots=True)
class OutputError:
    """The difference between an expected and an actual value.

    Attributes:
        fault: what is wrong, one line; empty where the value passes.
        max_abs: largest absolute difference.
        max_rel: largest difference relative to the element, above a floor of ``1e-3 * max|expected|``;
            ``None`` where the expected value is as good as zero.
        cosine: cosine similarity; ``None`` where the expected value is as good as zero.
        top1: share of rows (last axis) whose best score is the same; ``None`` for other tensors.
        top5: the same for the five best; ties within the tolerance count as equal.
        scale: largest finite magnitude of the expected value.
        differing: share of elements that are not equal.
        excused: it passes only because the original itself gives anything there.
        compared: whether any elements were; the figures say nothing where none were.
    """

    fault: str = ""
    max_abs: float = 0.0
    max_rel: float | None = None
    cosine: float | None = None
    top1: float | None = None
    top5: float | None = None
    scale: float = 0.0
    differing: float = 0.0
    excused: bool = False
    compared: bool = True

    @property
    def ok(self) -> bool:
        """Whether it passes."""
        return not self.fault

    @property
    def relative(self) -> float:
        """``max_abs`` relative to the largest magnitude: what noise floors are given in."""
        return self.max_abs / self.scale if self.scale else (1.0 if self.max_abs else 0.0)

    def worst_of(self, other: OutputError) -> OutputError:
        """Both in one, the worse figure of the two at each place."""
        return OutputError(
            self.fault or other.fault,
            max(self.max_abs, other.max_abs),
            _most(self.max_rel, other.max_rel),
            _least(self.cosine, other.cosine),
            _least(self.top1, other.top1),
            _least(self.top5, other.top5),
            max(self.scale, other.scale),
            max(self.differing, other.differing),
            self.excused or other.excused,
            self.compared or other.compared,
        )


def uncompared(fault: str = "") -> OutputError:
    """What is known of an output of which no element could be compared."""
    return OutputError(fault, compared=False)


def compare_values(expected: Any, actual: Any, tolerance_of: ToleranceOf = network_tolerance) -> OutputError:
    """Compares any two values of a model: tensors, sequences, maps, optionals (``None`` when empty)."""
    if isinstance(expected, (list, tuple)):
        if not isinstance(actual, (list, tuple)) or len(actual) != len(expected):
            return uncompared(f"a sequence of {len(expected)} became {_kind(actual)}")
        return _worst(expected, actual, [f"[{i}]" for i in range(len(expected))], tolerance_of)
    if isinstance(expected, dict):
        if not isinstance(actual, dict) or list(actual) != list(expected):
            return uncompared(f"a map of {len(expected)} became {_kind(actual)}")
        labels = [f"[{key!r}]" for key in expected]
        return _worst(_map_values(expected), _map_values(actual), labels, tolerance_of)
    if _is_empty(expected) or _is_empty(actual):
        same = _is_empty(expected) and _is_empty(actual)
        return uncompared("" if same else f"{_kind(expected)} became {_kind(actual)}")
    left, right = np.asarray(expected), np.asarray(actual)
    return compare_arrays(left, right, tolerance_of(left.dtype))


def _map_values(given: Mapping[Any, Any]) -> list[Any]:
    """The values of a map; runtimes hand floats out as Python's, whose last bits mean nothing."""
    return [np.float32(value) if isinstance(value, float) else value for value in given.values()]


def compare_arrays(expected: Array, actual: Array, tolerance: Tolerance) -> OutputError:
    """Compares two tensors: shape and element type exactly, NaN and infinities by position.

    O(elements); everything is computed in float64.
    """
    if expected.shape != actual.shape:
        return uncompared(f"shape {list(expected.shape)} became {list(actual.shape)}")
    if _comparable(expected.dtype) != _comparable(actual.dtype):
        return uncompared(f"element type {expected.dtype.name} became {actual.dtype.name}")
    if not expected.size:
        return uncompared()
    if expected.dtype.kind in "OSU":
        return _compare_exactly(expected.astype(str), actual.astype(str))
    if expected.dtype.kind in "biu" or tolerance.unit == 0.0:
        return _compare_exactly(expected, actual)
    return _compare_floats(_wide(expected), _wide(actual), tolerance)


def same_kind(expected: Any, actual: Any) -> str:
    """What differs but for the elements: kind, shape, element type; empty where nothing does."""
    if isinstance(expected, np.ndarray) and isinstance(actual, np.ndarray):
        if expected.shape != actual.shape:
            return f"shape {list(expected.shape)} became {list(actual.shape)}"
        if _comparable(expected.dtype) != _comparable(actual.dtype):
            return f"element type {expected.dtype.name} became {actual.dtype.name}"
        return ""
    return "" if type(expected) is type(actual) else f"{_kind(expected)} became {_kind(actual)}"


def _compare_floats(expected: Array, actual: Array, tolerance: Tolerance) -> OutputError:
    finite = np.isfinite(expected)
    if not np.array_equal(finite, np.isfinite(actual)) or not np.array_equal(
        expected[~finite], actual[~finite], equal_nan=True
    ):
        return _special_fault(expected, actual)
    with np.errstate(all="ignore"):
        difference = np.where(finite, np.abs(actual - expected), 0.0)
        magnitude = np.where(finite, np.abs(expected), 0.0)
    scale = float(magnitude.max(initial=0.0))
    over = tolerance.exceeded(difference, magnitude, scale)
    fault = ""
    if over.any():
        index = np.unravel_index(int(np.argmax(np.where(over, difference, -1.0))), difference.shape)
        fault = (
            f"{expected[index]:.9g} became {actual[index]:.9g} at {list(map(int, index))}"
            f" ({int(over.sum())} of {over.size} elements too far off)"
        )
    relative = difference / np.maximum(magnitude, REL_FLOOR * scale or 1.0)
    says_something = scale > NOTHING * tolerance.atol
    top1, top5 = _top_agreement(expected, actual, tolerance, scale)
    return OutputError(
        fault,
        float(difference.max(initial=0.0)),
        float(relative.max(initial=0.0)) if says_something else None,
        _cosine(expected, actual, finite) if says_something else None,
        top1,
        top5,
        scale,
        float((difference != 0).mean()) if difference.size else 0.0,
    )


def _compare_exactly(expected: Array, actual: Array) -> OutputError:
    unequal = np.asarray(expected != actual)
    if expected.dtype.kind in "fc" or expected.dtype.kind == "V":
        with np.errstate(invalid="ignore"):
            unequal &= ~((expected != expected) & (actual != actual))
    if not unequal.any():
        return OutputError(scale=_scale(expected))
    index = np.unravel_index(int(np.argmax(unequal)), unequal.shape)
    fault = (
        f"{expected[index]!s} became {actual[index]!s} at {list(map(int, index))}"
        f" ({int(unequal.sum())} of {unequal.size} elements differ)"
    )
    share = float(unequal.mean())
    if expected.dtype.kind == "U":
        return OutputError(fault, float("inf"), float("inf"), 0.0, differing=share)
    left, right = expected.astype(np.float64), actual.astype(np.float64)
    with np.errstate(all="ignore"):
        largest = float(np.nanmax(np.abs(left - right)))
    scale = _scale(expected)
    finite = np.isfinite(left) & np.isfinite(right)
    return OutputError(
        fault, largest, largest / (scale or 1.0), _cosine(left, right, finite), None, None, scale, share
    )


def _special_fault(expected: Array, actual: Array) -> OutputError:
    """NaN or infinity in one of two tensors where the other has something else."""
    either = ~(np.isfinite(expected) & np.isfinite(actual))
    differs = either & ~((expected == actual) | (np.isnan(expected) & np.isnan(actual)))
    index = np.unravel_index(int(np.argmax(differs)), differs.shape)
    fault = (
        f"{expected[index]:.9g} became {actual[index]:.9g} at {list(map(int, index))}"
        f" ({int(differs.sum())} NaN or infinite elements are not the same)"
    )
    return OutputError(fault, float("inf"), float("inf"), 0.0, scale=_scale(expected), differing=1.0)


def _top_agreement(
    expected: Array, actual: Array, tolerance: Tolerance, scale: float
) -> tuple[float | None, float | None]:
    """Share of rows whose best one and best five agree; scores within the tolerance are ties."""
    if expected.ndim == 0 or expected.dtype.kind == "c" or not 0 < expected.size <= MAX_SCORES:
        return None, None
    width = expected.shape[-1]
    if width <= TOP or np.isnan(expected).any():
        return None, None
    left, right = expected.reshape(-1, width), actual.reshape(-1, width)
    slack = tolerance.atol + (tolerance.rtol + tolerance.srel + 4 * tolerance.floor) * scale
    shares = []
    for count in (1, TOP):
        least = np.partition(left, width - count, axis=1)[:, width - count, None]
        chosen = np.argpartition(right, width - count, axis=1)[:, width - count :]
        agrees = np.take_along_axis(left, chosen, axis=1) >= least - 2 * slack
        shares.append(float(agrees.all(axis=1).mean()))
    return shares[0], shares[1]


def _cosine(expected: Array, actual: Array, finite: Array) -> float:
    left, right = expected[finite].ravel(), actual[finite].ravel()
    top = max(np.abs(left).max(initial=0.0), np.abs(right).max(initial=0.0))
    if top == 0.0:
        return 1.0
    left, right = left / top, right / top
    norms = float(np.linalg.norm(left) * np.linalg.norm(right))
    return float(min(1.0, np.vdot(left, right).real / norms)) if norms else 0.0


def _wide(array: Array) -> Array:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _comparable(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(object) if dtype.kind in "OSU" else dtype


def _scale(array: Array) -> float:
    if array.dtype.kind in "OSU" or not array.size:
        return 0.0
    magnitude = np.abs(array.astype(np.complex128 if array.dtype.kind == "c" else np.float64))
    return float(np.max(np.where(np.isfinite(magnitude), magnitude, 0.0)))


def _worst(
    expected: list[Any] | tuple[Any, ...],
    actual: list[Any] | tuple[Any, ...],
    places: list[str],
    tolerance_of: ToleranceOf,
) -> OutputError:
    worst = uncompared()
    for left, right, place in zip(expected, actual, places, strict=True):
        found = compare_values(left, right, tolerance_of)
        if found.fault and not worst.fault:
            found = replace(found, fault=f"{place}: {found.fault}")
        worst = worst.worst_of(found)
    return worst


def _is_empty(value: Any) -> bool:
    return value is None or type(value).__name__ == "Nothing"


def _kind(value: Any) -> str:
    if _is_empty(value):
        return "an empty optional"
    if isinstance(value, (list, tuple)):
        return f"a sequence of {len(value)}"
    if isinstance(value, dict):
        return f"a map of {len(value)}"
    return f"a tensor of {np.asarray(value).dtype.name}"


def _most(a: float | None, b: float | None) -> float | None:
    return a if b is None else b if a is None else max(a, b)


def _least(a: float | None, b: float | None) -> float | None:
    return a if b is None else b if a is None else min(a, b)
