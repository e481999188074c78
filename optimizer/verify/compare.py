"""Comparing any two models that have the same inputs and outputs: the check for people's own CI."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from typing import TypeAlias

from optimizer.verify.engines import Source
from optimizer.verify.limits import Limit, Limits
from optimizer.verify.reference import Reference
from optimizer.verify.verification import Verification
from optimizer.verify.whole import Judge

Comparison: TypeAlias = Verification
"""What comparing two models found: ``ok``, ``faults``, figures per output and engine."""


def check_models(
    a: Source,
    b: Source,
    *,
    max_abs_error: float | None = None,
    seeds: int = 2,
    dims: Mapping[str, int] | None = None,
    limits: Limits | None = None,
    baseline: Mapping[str, float] | None = None,
    data: str | PathLike[str] | None = None,
) -> Comparison:
    """Runs two models on the same seeded inputs and compares their outputs.

    They must have inputs and outputs of the same names. With ``max_abs_error`` that is all that counts
    for floating outputs (a quantized model may be held against its original that way); without it the
    tolerance of a whole net does.

    Args:
        a: the model to measure by.
        b: the model to judge.
        seeds: inputs per assignment of sizes.
        dims: sizes of named dims.
        limits: limits per output, instead of ``max_abs_error``.
        baseline: the max-abs-error of each output that was seen before and may not be exceeded.
        data: a folder of inputs to take instead of made ones.

    Raises:
        InvalidModel, StorageError: one of the two cannot be loaded.
        UsageError: there is a limit for an output that A does not have.
    """
    reference = Reference(a, seeds=seeds, dims=dims, data=data)
    limits = limits or Limits(Limit(max_abs_error))
    limits.check_outputs([info.name for info in reference.model.graph.sink.outputs])
    if max_abs_error is not None and limits.every.max_abs_error is None:
        limits = replace(limits, every=replace(limits.every, max_abs_error=max_abs_error))
    found = Judge(reference, strict=False, only_ceiling=True, limits=limits).judge(b)
    return found if baseline is None else _against(found, baseline)


def _against(found: Verification, baseline: Mapping[str, float]) -> Verification:
    """The comparison with what has grown worse than the baseline among its faults."""
    worse = []
    for output in found.measured:
        before, now = baseline.get(output.name), output.error.max_abs
        if before is None:
            worse.append(f"output '{output.name}' is not in the baseline")
        elif now > before:
            worse.append(
                f"output '{output.name}' in {output.engine}: max-abs-error {now:.9g} was {before:.9g} before"
            )
    return replace(found, faults=(*found.faults, *dict.fromkeys(worse)))
