"""Comparing the two sides of a region in float64, to within what rounding the constants allows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, partial
from typing import Any

import numpy as np

from optimizer.ir import Tensor, Value
from optimizer.verify.agreement import flat, largest_at, largest_of, truly_differ
from optimizer.verify.evaluate import Evaluator
from optimizer.verify.region import Region
from optimizer.verify.rounding import ELEMENTWISE, Array
from optimizer.verify.tolerance import unit_roundoff

Roundings = tuple[dict[Value, Array], dict[Value, Array]]
"""Bounds on the errors of constants: those new on the new side, those dropped by the old side."""

DROPPED_UNITS = 2.0
"""Roundings that a written scalar may have gone through before it got into the model."""


class TruthComparison:
    """One run of both sides in float64.

    A constant that the rewrite computed was rounded once: what that does to the results is bounded by
    running the new side on absolute values. A written scalar that the new side does without (because
    its operator implies it) had been rounded when it was written.

    Args:
        old: every value of the old side, by value of its graph.
        new: the same of the new side.
        roundings: what ``roundings_of`` gave.
    """

    def __init__(
        self,
        before: Evaluator,
        after: Evaluator,
        old: Mapping[Value, Any],
        new: Mapping[Value, Any],
        roundings: Roundings,
    ) -> None:
        self._before, self._after = before, after
        self._old, self._new = old, new
        self._roundings = roundings

    def fault(self) -> tuple[str, bool]:
        """What differs (empty where nothing does), and whether anything could be compared."""
        olds, news = outputs_of(self._old, self._before), outputs_of(self._new, self._after)
        if len(olds) != len(news):
            return "a sequence changed its length", True
        compared = not olds
        for index, (old, new) in enumerate(zip(olds, news, strict=True)):
            magnitude = partial(self._magnitude, np.shape(old))
            fault, seen = truly_differ(old, new, magnitude, partial(self._allowance, index))
            compared |= seen
            if fault:
                return fault, True
        return "", compared

    def _magnitude(self, shape: tuple[int, ...]) -> Array | float:
        values = (*self._old.values(), *self._new.values())
        return largest_at(values, shape) if self._by_element else self._overall

    @cached_property
    def _overall(self) -> float:
        return largest_of((*self._old.values(), *self._new.values()))

    @cached_property
    def _by_element(self) -> bool:
        nodes = (*self._before.side.nodes, *self._after.side.nodes)
        return all(node.op_type in ELEMENTWISE and not node.domain for node in nodes)

    def _allowance(self, index: int) -> Array | float:
        return self._rounding[index] if index < len(self._rounding) else 0.0

    @cached_property
    def _rounding(self) -> list[Array | float]:
        fresh, dropped = self._roundings
        new, old = self._after.rounding(self._new, fresh), self._before.rounding(self._old, dropped)
        return [_or_zero(a) + _or_zero(b) for a, b in zip(new, old, strict=True)]


def roundings_of(region: Region, before: Evaluator, after: Evaluator) -> Roundings:
    """What rounding once may have done to each constant that is new, or was written and is gone."""
    fresh = {v: t for v, t in region.after.constants.items() if v in region.fresh}
    dropped = {v: t for v, t in region.before.constants.items() if v in region.dropped and t.size == 1}
    return _roundings(after, fresh, 1.0), _roundings(before, dropped, DROPPED_UNITS)


def outputs_of(values: Mapping[Value, Any], evaluator: Evaluator) -> list[Any]:
    """The values of a side's outputs, sequences taken apart."""
    return flat(values.get(value) for value in evaluator.side.outputs)


def _roundings(evaluator: Evaluator, constants: Mapping[Value, Tensor], units: float) -> dict[Value, Array]:
    found = {}
    for value, tensor in constants.items():
        unit = unit_roundoff(tensor.dtype.numpy)
        if unit:
            found[evaluator.side.local[value]] = units * unit * np.abs(tensor.array.astype(np.float64))
    return found


def _or_zero(error: Array | None) -> Array | float:
    return 0.0 if error is None else error
