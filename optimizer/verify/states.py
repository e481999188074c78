"""Models that carry a state: outputs that are meant to be fed back as inputs at the next step."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from optimizer.ir import Model, TensorType, ValueType

STEPS = 3
"""Steps that a stateful model is run for."""
_SAME = {"present": "past", "out": "in", "output": "input", "new": "", "next": "", "n": "0", "updated": ""}


_NO_NAMES = {"", "in", "input"}


def state_pairs(model: Model) -> dict[str, str]:
    """Input name to the output that is its next value: alike in name, the same in type and rank.

    ``h0`` and ``hn``, ``state`` and ``stateN``, ``past.0.key`` and ``present.0.key``, ``c_in`` and ``c_out``.
    """
    graph = model.graph
    outputs = {_stem(info.name): info for info in graph.sink.outputs}
    found: dict[str, str] = {}
    for info in (graph.info(value) for value in graph.inputs):
        other = outputs.get(_stem(info.name))
        if other is not None and _stem(info.name) not in _NO_NAMES and _fits(info.type, other.type):
            found[info.name] = other.name
    return found


def _fits(before: ValueType | None, after: ValueType | None) -> bool:
    """Whether a value of the second type can be one of the first; a shape that is not declared may be any."""
    if not isinstance(before, TensorType) or not isinstance(after, TensorType) or not before.shape:
        return False
    if before.dtype != after.dtype or (after.shape is not None and len(after.shape) != len(before.shape)):
        return False
    pairs = zip(before.shape, after.shape or before.shape, strict=True)
    return all(not isinstance(a, int) or not isinstance(b, int) or a == b for a, b in pairs)


def next_feeds(
    pairs: Mapping[str, str], fresh: Mapping[str, Any], outputs: Mapping[str, Any]
) -> dict[str, Any]:
    """The inputs of the next step: the states that came out, everything else new."""
    return {name: outputs[pairs[name]] if name in pairs else value for name, value in fresh.items()}


def _stem(name: str) -> str:
    """A name without what tells before from after."""
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+|\d+", name)
    plain = [_SAME.get(word.lower(), word.lower()) for word in words]
    text = ".".join(word for word in plain if word)
    return re.sub(r"(?<=[a-z])n$", "", text) if re.fullmatch(r"[a-z]n", text) else re.sub(r"\.0$", "", text)
