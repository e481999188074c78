"""The whole check: a written result against its original, in both engines."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from optimizer.io import load
from optimizer.ir import Model
from optimizer.verify.engines import Engine, EngineError, NumPy, OnnxRuntime, Source
from optimizer.verify.metrics import OutputError, compare_values, same_kind
from optimizer.verify.reference import CHAOTIC, Case, Reference
from optimizer.verify.signature import name_faults, shape_fault, signature_faults
from optimizer.verify.tolerance import Tolerance, network_tolerance
from optimizer.verify.verification import Focus, OutputReport, Verification, Verified

NUMPY_SLOWER = 6.0
"""The executor takes up to so many times as long as onnxruntime."""
NUMPY_SECONDS = 5.0
"""Estimated time above which the executor runs one size only."""
NUMPY_LIMIT = 120.0
"""Seconds after which the executor gives up on a run."""


def verify_files(
    original: Source,
    result: Source,
    *,
    seeds: int = 2,
    max_abs_error: float | None = None,
    local: bool = False,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    dims: Mapping[str, int] | None = None,
    freeze_initializers: bool = False,
) -> Verification:
    """Checks ``result`` against ``original``: interface exactly, outputs in both engines.

    Args:
        seeds: inputs per assignment of sizes.
        max_abs_error: a ceiling for absolute differences, in addition to the tolerance.
        local: whether every rewrite was checked locally: what is left where nothing can run the model.
        input_shapes, dims, freeze_initializers: what the result was asked to differ in.

    Raises:
        InvalidModel, StorageError: one of the two cannot be loaded.
    """
    reference = Reference(
        original,
        seeds=seeds,
        input_shapes=input_shapes,
        dims=dims,
        freeze_initializers=freeze_initializers,
    )
    return Judge(reference, max_abs_error, local=local).judge(result)


class Judge:
    """Judges any number of results of one original.

    Args:
        local: whether every rewrite was checked locally.
        strict: the whole interface must be the same; else the names of inputs and outputs.
        only_ceiling: ``max_abs_error``, where given, is all that counts.
    """

    def __init__(
        self,
        reference: Reference,
        max_abs_error: float | None = None,
        *,
        local: bool = False,
        strict: bool = True,
        only_ceiling: bool = False,
    ) -> None:
        self.reference = reference
        self._ceiling = max_abs_error
        self._only_ceiling = only_ceiling
        self._strict = strict
        self._unrun: Verified = "local" if local else "none"

    def judge(self, result: Source, focus: Focus | None = None) -> Verification:
        """Checks one result.

        Args:
            focus: look at this case in this engine only, to see again a fault that showed there.

        Raises:
            InvalidModel, StorageError: the result cannot be loaded.
        """
        start = time.perf_counter()
        record = _Record(self, load(result))
        verified, reason = self._unrun, ""
        record.faults += self._interface_faults(record.model)
        if not record.faults:
            verified, reason = self._run(record, result, focus)
        reference = self.reference
        return Verification(
            verified,
            reason,
            tuple(record.faults),
            tuple(OutputReport(*key, error) for key, error in record.errors.items()),
            tuple(case.label for case in reference.cases),
            tuple(dict.fromkeys((*reference.notes, *record.notes))),
            time.perf_counter() - start,
            record.focus,
        )

    def _interface_faults(self, model: Model) -> list[str]:
        original = self.reference.model
        if not self._strict:
            return name_faults(original, model)
        names = [info.name for info in original.graph.sink.outputs]
        seen = {name: [case.expected[name] for case in self.reference.cases] for name in names}
        return signature_faults(original, model, seen)

    def _run(self, record: _Record, result: Source, focus: Focus | None) -> tuple[Verified, str]:
        """Runs the result in both engines; says what could be checked, and why not more."""
        reference = self.reference
        if not reference.cases:
            return self._unrun, reference.reason
        in_runtime = isinstance(reference.engine, OnnxRuntime)
        if in_runtime and (focus is None or focus.engine == OnnxRuntime.name):
            self._run_runtime(record, result, focus)
        if record.faults or (focus is not None and focus.engine != NumPy.name):
            return "onnxruntime-only", "a fault showed there"
        reason = self._run_numpy(record, focus)
        if in_runtime:
            return ("onnxruntime-only", reason) if reason else ("full", "")
        return (self._unrun, reason) if reason else ("numpy-only", reference.reason)

    # ---------------------------------------------------------------- the two engines

    def _run_runtime(self, record: _Record, result: Source, focus: Focus | None) -> None:
        try:
            engine = OnnxRuntime(result)
        except EngineError as error:
            record.fault(f"onnxruntime loads the original but not the result: {error}", 0, OnnxRuntime.name)
            return
        for index in _chosen(self.reference, focus):
            try:
                outputs = engine.run(self.reference.cases[index].feeds)
            except EngineError as error:
                record.fault(f"the original runs, the result does not: {error}", index, engine.name)
                return
            record.compare(engine, index, outputs)
            if record.faults:
                return

    def _run_numpy(self, record: _Record, focus: Focus | None) -> str:
        """Runs the executor; returns why it could not, empty where it could."""
        try:
            engine = NumPy(record.model, seconds=NUMPY_LIMIT)
        except EngineError as error:
            return str(error)
        for index in self._numpy_cases(record) if focus is None else [focus.case]:
            try:
                outputs = engine.run(self.reference.cases[index].feeds)
            except EngineError as error:
                return str(error)
            record.compare(engine, index, outputs)
            if record.faults:
                break
        return ""

    def _numpy_cases(self, record: _Record) -> list[int]:
        """The first seed at every size; one size where that would take long; all without onnxruntime."""
        cases = self.reference.cases
        if not isinstance(self.reference.engine, OnnxRuntime):
            return list(range(len(cases)))
        chosen = [index for index, case in enumerate(cases) if case.seed == 0]
        estimate = NUMPY_SLOWER * sum(cases[index].seconds for index in chosen)
        if len(chosen) > 1 and estimate > NUMPY_SECONDS:
            quickest = min(chosen, key=lambda index: cases[index].seconds)
            record.notes.append(
                f"the NumPy executor ran {cases[quickest].label} only (about {estimate:.0f} s for all)"
            )
            return [quickest]
        return chosen

    # ---------------------------------------------------------------- one value

    def compare(self, index: int, name: str, expected: Any, actual: Any) -> OutputError:
        """The difference at one output of one case; the original's own noise is measured where needed."""
        found = compare_values(expected, actual, self._tolerance)
        if found.ok:
            return found
        noise = self.reference.noise(index).get(name)
        if noise is None or self._only_ceiling:
            return found
        if noise.unstable:
            return OutputError(max_abs=found.max_abs, scale=found.scale, differing=found.differing)
        if noise.floor:
            found = compare_values(
                expected, actual, lambda dtype: self._tolerance(dtype).with_floor(noise.floor)
            )
        if not found.ok and _are_integers(expected) and found.differing <= 4 * noise.differing:
            return OutputError(
                "", found.max_abs, found.max_rel, found.cosine, None, None, found.scale, found.differing
            )
        return found

    def _tolerance(self, dtype: np.dtype[Any]) -> Tolerance:
        return network_tolerance(dtype).with_ceiling(self._ceiling, self._only_ceiling)


@dataclass(slots=True)
class _Record:
    """What has been found about one result so far."""

    judge: Judge
    model: Model
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    errors: dict[tuple[str, str], OutputError] = field(default_factory=dict)
    focus: Focus | None = None
    _original: NumPy | None = None

    def fault(self, text: str, case: int, engine: str) -> None:
        """Takes down a fault."""
        self.faults.append(text)
        self.focus = self.focus or Focus(case, engine)

    def compare(self, engine: Engine, index: int, outputs: Mapping[str, Any]) -> None:
        """Holds the outputs of one run against the original's."""
        reference = self.judge.reference
        case = reference.cases[index]
        faulty = [name for name in case.expected if not self._output(engine, index, case, name, outputs).ok]
        if not faulty:
            return
        if engine.name == NumPy.name and self._engines_part(case, index, faulty, outputs):
            return
        if self._calmed(engine, index):
            return
        for name in faulty:
            error = self._output(engine, index, case, name, outputs)
            self.fault(f"output '{name}' in {engine.name}: {error.fault} ({case.label})", index, engine.name)

    def _output(
        self, engine: Engine, index: int, case: Case, name: str, outputs: Mapping[str, Any]
    ) -> OutputError:
        expected, actual = case.expected[name], outputs[name]
        reference = self.judge.reference
        if name in reference.random:
            self.notes.append(
                f"output '{name}' depends on random numbers: only its shape and type are compared"
            )
            found = OutputError(same_kind(expected, actual))
        else:
            found = self.judge.compare(index, name, expected, actual)
        wrong_shape = shape_fault(self.model, name, actual)
        if found.ok and wrong_shape and not shape_fault(reference.model, name, expected):
            found = OutputError(wrong_shape)
        known = self.errors.get((name, engine.name))
        self.errors[name, engine.name] = found if known is None else known.worst_of(found)
        return found

    def _engines_part(
        self, case: Case, index: int, faulty: Sequence[str], outputs: Mapping[str, Any]
    ) -> bool:
        """Whether the executor gives for the original what it gives for the result: no fault of a rewrite."""
        if not isinstance(self.judge.reference.engine, OnnxRuntime):
            return False
        try:
            self._original = self._original or NumPy(self.judge.reference.model, seconds=NUMPY_LIMIT)
            own = self._original.run(case.feeds)
        except EngineError:
            return False
        if not all(self.judge.compare(index, name, own[name], outputs[name]).ok for name in faulty):
            return False
        for name in faulty:
            self.notes.append(
                f"the engines do not agree about output '{name}'; in each, original and result do"
            )
            self.errors[name, NumPy.name] = self.judge.compare(index, name, own[name], outputs[name])
        return True

    def _calmed(self, engine: Engine, index: int) -> bool:
        """Whether the original is chaotic on these inputs and the result passes on calmer ones."""
        reference = self.judge.reference
        noise = reference.noise(index).values()
        if max((n.floor for n in noise), default=0.0) <= CHAOTIC or not reference.redraw(index):
            return False
        case = reference.cases[index]
        try:
            outputs = engine.run(case.feeds)
        except EngineError:
            return False
        return all(self._output(engine, index, case, name, outputs).ok for name in case.expected)


def _chosen(reference: Reference, focus: Focus | None) -> list[int]:
    return list(range(len(reference.cases))) if focus is None else [focus.case]


def _are_integers(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "biu"
