"""Comparing any two models that have the same inputs and outputs: the check for people's own CI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from optimizer.verify.engines import Source
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

    Raises:
        InvalidModel, StorageError: one of the two cannot be loaded.
    """
    reference = Reference(a, seeds=seeds, dims=dims)
    return Judge(reference, max_abs_error, strict=False, only_ceiling=max_abs_error is not None).judge(b)
