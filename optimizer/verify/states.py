"""Models that carry a state: outputs that are meant to be fed back as inputs at the next step."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from optimizer.ir import Model, TensorType

STEPS = 3
"""Steps that a stateful model is run for."""
_SAME = {"present": "past", "out": "in", "output": "input", "new": "", "next": "", "n": "0", "updated": ""}


def state_pairs(model: Model) -> dict[str, str]:
    """Input name to the output that is its next value: alike in name, the same in type and rank.

    ``h0`` and ``hn``, ``state`` and ``stateN``, ``past.0.key`` and ``present.0.key``, ``c_in`` and ``c_out``.
    """
    graph = model.graph
    outputs = {_stem(info.name): info for info in graph.sink.outputs}
    found: dict[str, str] = {}
    for info in (graph.info(value) for value in graph.inputs):
        other = outputs.get(_stem(info.name))
        if other is None or not isinstance(info.type, TensorType) or not isinstance(other.type, TensorType):
            continue
        same = info.type.dtype == other.type.dtype
        if same and len(info.type.shape or ()) == len(other.type.shape or ()) and info.type.shape:
            found[info.name] = other.name
    return found


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
