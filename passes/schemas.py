"""What the standard says about an operator: defaults of attributes, versions, optional outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from onnx import defs, helper

RANDOM = frozenset(
    {
        "Bernoulli",
        "Dropout",
        "Multinomial",
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
    }
)
"""Operators that may give another result each time (Dropout only in training)."""


@dataclass(frozen=True, slots=True)
class Schema:
    """One version of an operator.

    Attributes:
        since: the operator set version it came with.
        defaults: plain values of the attributes that have one.
        optional_from: outputs from this one on may be left out.
    """

    since: int
    defaults: Mapping[str, Any]
    optional_from: int


@cache
def schema_of(op_type: str, domain: str, opset: int) -> Schema | None:
    """The schema in force at ``opset``; ``None`` for an operator that the installed onnx does not know."""
    if not opset or not defs.has(op_type, opset, domain):
        return None
    found = defs.get_schema(op_type, opset, domain)
    given = {name: a.default_value for name, a in found.attributes.items() if a.default_value.type}
    optional = defs.OpSchema.FormalParameterOption.Optional
    required = len(found.outputs)
    while required > 1 and found.outputs[required - 1].option == optional:
        required -= 1
    return Schema(
        found.since_version, {n: _plain(helper.get_attribute_value(a)) for n, a in given.items()}, required
    )


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode()
    return tuple(value) if isinstance(value, list) else value
