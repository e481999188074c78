"""The whole check: a written result against its original, in both engines."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from optimizer.io import load
from optimizer.ir import Model, TensorType
from optimizer.verify.effort import NUMPY_LIMIT, PER_SECOND
from optimizer.verify.engines import EngineError, NumPy, OnnxRuntime, Source
from optimizer.verify.limits import Limit, Limits
from optimizer.verify.record import Comparer, Record
from optimizer.verify.reference import Reference
from optimizer.verify.signature import name_faults, signature_faults
from optimizer.verify.upstream import Watch
from optimizer.verify.verification import Focus, OutputReport, Verification, Verified

NUMPY_SECONDS = 5.0
"""Estimated time above which the executor runs one size only."""


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
        limits: further limits, per output; ``max_abs_error`` is one for all that have none of their own.
    """

    def __init__(
        self,
        reference: Reference,
        max_abs_error: float | None = None,
        *,
        local: bool = False,
        strict: bool = True,
        only_ceiling: bool = False,
        limits: Limits | None = None,
    ) -> None:
        self.reference = reference
        given = limits or Limits(Limit(max_abs_error))
        self._comparer = Comparer(reference, given, only_ceiling)
        self._strict = strict
        self._unrun: Verified = "local" if local else "none"

    def judge(
        self, result: Source, focus: Focus | None = None, relied: Mapping[str, str] | None = None
    ) -> Verification:
        """Checks one result.

        Args:
            focus: look at this case in this engine only, to see again a fault that showed there.
            relied: facts that rewrites relied on, by name of the tensor: tested in the executor's runs.

        Raises:
            InvalidModel, StorageError: the result cannot be loaded.
        """
        start = time.perf_counter()
        record = Record(self._comparer, load(result, check_types=False))
        verified, reason = self._unrun, ""
        record.faults += self._interface_faults(record.model)
        if not record.faults:
            verified, reason = self._run(record, result, focus, Watch(relied or {}))
        if record.excused and not record.faults:
            verified = self._unrun
            reason = f"the original is chaotic at output {', '.join(map(repr, record.excused))}"
        reference = self.reference
        return Verification(
            verified,
            reason,
            tuple(record.faults),
            tuple(OutputReport(*key, error) for key, error in record.errors.items()),
            tuple(case.label for case in reference.cases),
            tuple(dict.fromkeys((*reference.notes, *self._mute_outputs(), *record.notes))),
            time.perf_counter() - start,
            record.focus,
        )

    def _mute_outputs(self) -> list[str]:
        """A note for each output that says next to nothing, whatever the inputs."""
        reference = self.reference
        names = [info.name for info in reference.model.graph.sink.outputs] if reference.cases else []
        constant = "is all but constant on the inputs tried: errors before it may not show"
        empty = "is empty on the inputs tried: only its shape and type were compared"
        return [
            *(f"output '{name}' {empty}" for name in names if self._is_empty(name)),
            *(
                f"output '{name}' {constant}"
                for name in names
                if all(_is_mute(case.expected[name]) for case in reference.cases)
            ),
        ]

    def _is_empty(self, name: str) -> bool:
        """Whether an output never had an element, though it is not declared to have none."""
        outputs = self.reference.model.graph.sink.outputs
        declared = next(info.type for info in outputs if info.name == name)
        shape = declared.shape if isinstance(declared, TensorType) else None
        values = [case.expected[name] for case in self.reference.cases]
        return 0 not in (shape or ()) and all(isinstance(v, np.ndarray) and not v.size for v in values)

    def _interface_faults(self, model: Model) -> list[str]:
        original = self.reference.model
        if not self._strict:
            return name_faults(original, model)
        names = [info.name for info in original.graph.sink.outputs]
        seen = {name: [case.expected[name] for case in self.reference.cases] for name in names}
        return signature_faults(original, model, seen)

    def _run(self, record: Record, result: Source, focus: Focus | None, watch: Watch) -> tuple[Verified, str]:
        """Runs the result in both engines; says what could be checked, and why not more."""
        reference = self.reference
        if not reference.cases:
            return self._unrun, reference.reason
        in_runtime = isinstance(reference.engine, OnnxRuntime)
        if in_runtime and (focus is None or focus.engine == OnnxRuntime.name):
            self._run_runtime(record, result, focus)
        if record.faults or (focus is not None and focus.engine != NumPy.name):
            return "onnxruntime-only", "the executor was not asked: the two differ in onnxruntime already"
        reason = self._run_numpy(record, focus, watch)
        if all(self._is_empty(info.name) for info in reference.model.graph.sink.outputs):
            return self._unrun, "every output is empty on the inputs tried"
        if in_runtime:
            return ("onnxruntime-only", reason) if reason else ("full", "")
        return (self._unrun, reason) if reason else ("numpy-only", reference.reason)

    # ---------------------------------------------------------------- the two engines

    def _run_runtime(self, record: Record, result: Source, focus: Focus | None) -> None:
        try:
            engine = OnnxRuntime(result, model=record.model)
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

    def _run_numpy(self, record: Record, focus: Focus | None, watch: Watch) -> str:
        """Runs the executor; returns why it could not, empty where it could."""
        try:
            engine = NumPy(record.model, limit=NUMPY_LIMIT, watch=watch if watch.relied else None)
        except EngineError as error:
            return str(error)
        chosen = self._numpy_cases() if focus is None else [focus.case]
        for index in chosen:
            try:
                outputs = engine.run(self.reference.cases[index].feeds)
            except EngineError as error:
                return str(error)
            record.compare(engine, index, outputs)
            self._look_upstream(record, index, watch)
            if record.faults or (focus is None and self._takes_long(chosen, index, engine.work, record)):
                break
        return ""

    def _look_upstream(self, record: Record, index: int, watch: Watch) -> None:
        """Takes down what does not hold; what the result has no more is looked at in the original."""
        case = self.reference.cases[index]
        if watch.relied.keys() - watch.seen:
            try:
                NumPy(self.reference.model, limit=NUMPY_LIMIT, watch=watch).run(case.feeds)
            except EngineError as error:
                record.notes.append(f"facts about tensors that are gone were not tested: {error}")
        for name, text in watch.broken.items():
            record.fault(
                f"a rewrite relied on what does not hold: {text} ({case.label})", index, NumPy.name, name
            )

    def _numpy_cases(self) -> list[int]:
        """The first seed at every size, smallest first; all cases without onnxruntime."""
        cases = self.reference.cases
        if not isinstance(self.reference.engine, OnnxRuntime):
            return list(range(len(cases)))
        chosen = [index for index, case in enumerate(cases) if case.seed == 0]
        return sorted(chosen, key=lambda index: cases[index].elements)

    def _takes_long(self, chosen: Sequence[int], index: int, work: int, record: Record) -> bool:
        """Whether the first of several sizes has to do, judged by what it took."""
        cases = self.reference.cases
        if len(chosen) < 2 or not isinstance(self.reference.engine, OnnxRuntime):
            return False
        first = cases[index]
        if not first.elements:  # empty inputs say nothing about the work of others
            return False
        estimate = sum(work * cases[i].elements / first.elements for i in chosen) / PER_SECOND
        if estimate <= NUMPY_SECONDS:
            return False
        record.notes.append(f"the NumPy executor ran {first.label} only (about {estimate:.0f} s for all)")
        return True


def _chosen(reference: Reference, focus: Focus | None) -> list[int]:
    return list(range(len(reference.cases))) if focus is None else [focus.case]


def _is_mute(value: Any) -> bool:
    """Whether a tensor of several floats holds nothing but one value, or next to nothing."""
    if not isinstance(value, np.ndarray) or value.dtype.kind != "f" or value.size < 2:
        return False
    held = value.astype(np.float64)
    return bool(np.ptp(held) <= 1e-5 * max(1.0, float(np.abs(held).max())))
