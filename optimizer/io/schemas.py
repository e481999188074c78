"""What the standard says about an operator: defaults of attributes, versions, optional outputs."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from onnx import defs

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
    given = {name: a.default_value for name, a in found.attributes.items() if a.default_value.type in _FIELDS}
    optional_from = _optional_from(found)
    return Schema(found.since_version, {name: _plain(a) for name, a in given.items()}, optional_from)


def _optional_from(schema: defs.OpSchema) -> int:
    """The first output that may be left out; none may where their number is part of what is computed."""
    option = defs.OpSchema.FormalParameterOption
    outputs = schema.outputs
    if outputs and outputs[-1].option == option.Variadic:
        return sys.maxsize
    required = len(outputs)
    while required > 1 and outputs[required - 1].option == option.Optional:
        required -= 1
    return required


@dataclass(frozen=True, slots=True)
class Inputs:
    """The inputs of one version of an operator.

    Attributes:
        since: the operator set version it came with.
        types: per input the types it may have, as in ``tensor(float)``, and the name of the type that it
            shares with the others of that name; empty where it shares none.
        repeats: whether any number of inputs like the last one may follow.
    """

    since: int
    types: tuple[tuple[frozenset[str], str], ...]
    repeats: bool


def inputs_of(op_type: str, domain: str, opset: int) -> Inputs | None:
    """What the inputs may be at ``opset``; ``None`` for an operator that the installed onnx does not know."""
    if not opset or not defs.has(op_type, opset, domain):
        return None
    schema = defs.get_schema(op_type, opset, domain)
    types = tuple((frozenset(i.types), i.type_str if i.is_homogeneous else "") for i in schema.inputs)
    variadic = defs.OpSchema.FormalParameterOption.Variadic
    return Inputs(schema.since_version, types, bool(types) and schema.inputs[-1].option == variadic)


_FIELDS = {1: "f", 2: "i", 3: "s", 6: "floats", 7: "ints", 8: "strings"}
"""Where an AttributeProto of each type holds its value."""


def _plain(attribute: Any) -> Any:
    value = getattr(attribute, _FIELDS[attribute.type])
    if isinstance(value, bytes):
        return value.decode()
    if attribute.type == 8:
        return tuple(item.decode() for item in value)
    return tuple(value) if attribute.type in (6, 7) else value


def admits(
    op_type: str, domain: str, opset: int, types: tuple[str | None, ...], attributes: frozenset[str]
) -> bool:
    """Whether the standard allows such a node.

    Args:
        types: element types of the inputs as in ``tensor(float)`` (``float``); ``None`` where one is absent.
        attributes: names of the attributes given.
    """
    if not defs.has(op_type, opset, domain):
        return False
    schema = defs.get_schema(op_type, opset, domain)
    if not schema.min_input <= len(types) <= schema.max_input or attributes - schema.attributes.keys():
        return False
    bound: dict[str, str] = {}
    for position, name in enumerate(types):
        formal = schema.inputs[min(position, len(schema.inputs) - 1)]
        if name is None:
            if formal.option == defs.OpSchema.FormalParameterOption.Single:
                return False
            continue
        if f"tensor({name})" not in formal.types:
            return False
        if formal.is_homogeneous and bound.setdefault(formal.type_str, name) != name:
            return False
    return True
