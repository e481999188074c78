"""What has been found about one result so far: figures, faults, notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from optimizer.ir import Model
from optimizer.verify.effort import NUMPY_LIMIT
from optimizer.verify.engines import Engine, EngineError, NumPy, OnnxRuntime
from optimizer.verify.limits import Limits
from optimizer.verify.metrics import OutputError, ToleranceOf, compare_values, same_kind, uncompared
from optimizer.verify.reference import CHAOTIC, Case, Noise, Reference
from optimizer.verify.signature import shape_fault
from optimizer.verify.tolerance import Tolerance, network_tolerance
from optimizer.verify.verification import Focus


class Comparer:
    """Compares single values with what the original gave, and knows how noisy the original is.

    Args:
        limits: what the caller allows, in addition to the tolerance.
        only_ceiling: where there is a largest absolute difference, it is all that counts.
    """

    def __init__(self, reference: Reference, limits: Limits, only_ceiling: bool) -> None:
        self.reference = reference
        self._limits = limits
        self._only_ceiling = only_ceiling

    def compare(self, index: int, name: str, expected: Any, actual: Any) -> OutputError:
        """The difference at one output of one case; the original's own noise is measured where needed."""
        found = self._compare(index, name, expected, actual)
        return replace(found, fault=self._limits.fault(name, found)) if found.ok else found

    def _compare(self, index: int, name: str, expected: Any, actual: Any) -> OutputError:
        ceiling = self._limits.of(name).max_abs_error

        def tolerance(dtype: np.dtype[Any]) -> Tolerance:
            return network_tolerance(dtype).with_ceiling(ceiling, self._only_ceiling)

        found = compare_values(expected, actual, tolerance)
        if self._only_ceiling and ceiling is not None:
            return found
        for brief in (True, False):
            if found.ok and not found.excused:
                break
            noise = self.reference.noise(index, brief=brief).get(name, Noise())
            found = _allowing(noise, found, expected, actual, tolerance)
        return found


def _allowing(
    noise: Noise, found: OutputError, expected: Any, actual: Any, tolerance: ToleranceOf
) -> OutputError:
    """The difference ``found``, excused where the original's own noise is no smaller."""
    if noise.unstable:
        return replace(found, fault="", max_rel=None, cosine=None, top1=None, top5=None, excused=True)
    for floor in sorted({min(noise.floor, CHAOTIC), noise.floor} - {0.0}):
        found = compare_values(expected, actual, partial(_with_floor, tolerance, floor))
        if found.ok:
            return replace(found, excused=floor > CHAOTIC and found.max_rel is not None)
    alike = _are_integers(expected) and not same_kind(expected, actual)
    if alike and found.differing <= 4 * noise.differing:
        return replace(found, fault="", top1=None, top5=None, excused=noise.differing > CHAOTIC)
    return found


@dataclass(slots=True)
class Record:
    """What has been found about one result so far.

    Attributes:
        excused: outputs that pass only because the original itself gives anything there.
    """

    comparer: Comparer
    model: Model
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    errors: dict[tuple[str, str], OutputError] = field(default_factory=dict)
    focus: Focus | None = None
    excused: dict[str, None] = field(default_factory=dict)
    _original: NumPy | None = None

    def fault(self, text: str, case: int, engine: str, relied: str = "") -> None:
        """Takes down a fault."""
        self.faults.append(text)
        self.focus = self.focus or Focus(case, engine, relied)

    def compare(self, engine: Engine, index: int, outputs: Mapping[str, Any]) -> None:
        """Holds the outputs of one run against the original's."""
        reference = self.comparer.reference
        case = reference.cases[index]
        earlier = dict(self.errors)
        found = {name: self._output(engine, index, case, name, outputs) for name in case.expected}
        faulty = [name for name, error in found.items() if not error.ok]
        shaky = [name for name, error in found.items() if error.excused]
        if not faulty and not shaky:
            return
        if faulty and engine.name == NumPy.name and self._engines_part(case, index, faulty, outputs):
            faulty = []
        elif self._calmed(engine, index, {*faulty, *shaky}, earlier):
            return
        for name in shaky:
            self.excused[name] = None
            self.notes.append(
                f"output '{name}' of the original is chaotic: moving the inputs by one unit in the last place"
                " changes it out of all proportion, so that comparing it says little"
            )
        for name in faulty:
            text = f"output '{name}' in {engine.name}: {found[name].fault} ({case.label})"
            self.fault(text, index, engine.name)

    def _output(
        self, engine: Engine, index: int, case: Case, name: str, outputs: Mapping[str, Any]
    ) -> OutputError:
        expected, actual = case.expected[name], outputs[name]
        reference = self.comparer.reference
        if name in reference.random:
            self.notes.append(
                f"output '{name}' depends on random numbers: only its shape and type are compared"
            )
            found = uncompared(same_kind(expected, actual))
        else:
            found = self.comparer.compare(index, name, expected, actual)
        wrong_shape = shape_fault(self.model, name, actual)
        if found.ok and wrong_shape and not shape_fault(reference.model, name, expected):
            found = uncompared(wrong_shape)
        known = self.errors.get((name, engine.name))
        self.errors[name, engine.name] = found if known is None else known.worst_of(found)
        return found

    def _engines_part(
        self, case: Case, index: int, faulty: Sequence[str], outputs: Mapping[str, Any]
    ) -> bool:
        """Whether the executor gives for the original what it gives for the result: no fault of a rewrite."""
        if not isinstance(self.comparer.reference.engine, OnnxRuntime):
            return False
        try:
            self._original = self._original or NumPy(self.comparer.reference.model, limit=NUMPY_LIMIT)
            own = self._original.run(case.feeds)
        except EngineError:
            return False
        if not all(self.comparer.compare(index, name, own[name], outputs[name]).ok for name in faulty):
            return False
        for name in faulty:
            nearer = self._third_vote(case, name, own[name])
            self.notes.append(
                f"the engines do not agree about output '{name}'; in each, original and result do{nearer}"
            )
            self.errors[name, NumPy.name] = self.comparer.compare(index, name, own[name], outputs[name])
        return True

    def _third_vote(self, case: Case, name: str, own: Any) -> str:
        """Which engine is nearer to the executor in float64; empty where that cannot be told."""
        try:
            truth = NumPy(self.comparer.reference.model, limit=NUMPY_LIMIT, truth=True).run(case.feeds)[name]
        except EngineError:
            return ""
        given = (case.expected[name], own)
        if not isinstance(truth, np.ndarray) or truth.dtype.kind not in "fiub":
            return ""
        if any(np.shape(value) != truth.shape for value in given):
            return ""
        far = [float(np.nanmax(np.abs(v.astype(np.float64) - truth), initial=0.0)) for v in given]
        winner = OnnxRuntime.name if far[0] <= far[1] else "the executor"
        return f" ({winner} is nearer to float64: {min(far):.3g} off against {max(far):.3g})"

    def _calmed(
        self,
        engine: Engine,
        index: int,
        differing: set[str],
        earlier: Mapping[tuple[str, str], OutputError],
    ) -> bool:
        """Whether the original is chaotic on these inputs and the result passes on calmer ones.

        Args:
            differing: the outputs in question: each has to be chaotic itself.
            earlier: the figures before these inputs.
        """
        reference = self.comparer.reference
        noise = [reference.noise(index).get(name, Noise()) for name in differing]
        if not all(n.unstable or n.floor > CHAOTIC for n in noise) or not reference.redraw(index):
            return False
        case, figures = reference.cases[index], self.errors
        try:
            outputs = engine.run(case.feeds)
        except EngineError:
            return False
        self.errors = dict(earlier)
        found = [self._output(engine, index, case, name, outputs) for name in case.expected]
        if all(error.ok and not error.excused for error in found):
            return True
        self.errors = figures
        return False


def _with_floor(tolerance: ToleranceOf, floor: float, dtype: np.dtype[Any]) -> Tolerance:
    return tolerance(dtype).with_floor(floor)


def _are_integers(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "biu"
