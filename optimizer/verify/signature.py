"""What a model promises to its callers: names, order, element types, declared dims. Compared exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from optimizer.ir import (
    Graph,
    Model,
    OptionalType,
    SequenceType,
    ShapeDecl,
    TensorType,
    Value,
    ValueInfo,
    ValueType,
)

Observed = Mapping[str, Sequence[Any]]
"""Values that outputs had in runs, by name."""


def signature_faults(original: Model, result: Model, observed: Observed | None = None) -> list[str]:
    """How the result's interface differs from the original's; empty where it does not.

    An output dim that the original left open may be declared, where all observed values agree.
    """
    faults = _list_faults("input", _inputs(original.graph), _inputs(result.graph))
    faults += _list_faults("output", _outputs(original.graph), _outputs(result.graph))
    if faults:
        return faults
    defaults = (_with_default(original.graph), _with_default(result.graph))
    for name in sorted(defaults[0] ^ defaults[1]):
        faults.append(f"input '{name}' {'lost its' if name in defaults[0] else 'got a'} default value")
    for old, new in zip(_inputs(original.graph), _inputs(result.graph), strict=True):
        if old.type != new.type:
            faults.append(f"input '{old.name}': {spell_type(old.type)} became {spell_type(new.type)}")
    for old, new in zip(_outputs(original.graph), _outputs(result.graph), strict=True):
        fault = _output_fault(old, new, (observed or {}).get(old.name, ()))
        if fault:
            faults.append(f"output '{old.name}': {fault}")
    return faults


def name_faults(original: Model, result: Model) -> list[str]:
    """How the names of inputs and outputs differ, whatever their types and order."""
    faults = []
    for kind, infos in (("input", _inputs), ("output", _outputs)):
        old = {info.name for info in infos(original.graph)}
        new = {info.name for info in infos(result.graph)}
        faults += [f"{kind} '{name}' is missing" for name in sorted(old - new)]
        faults += [f"{kind} '{name}' is new" for name in sorted(new - old)]
    return faults


def shape_fault(result: Model, name: str, value: Any) -> str:
    """How a value that output ``name`` had contradicts what the result declares for it."""
    info = next((info for info in _outputs(result.graph) if info.name == name), None)
    if info is None or not isinstance(info.type, TensorType) or not isinstance(value, np.ndarray):
        return ""
    if _fits(info.type.shape, value.shape):
        return ""
    return f"it is declared as {spell_type(info.type)} but has shape {list(value.shape)}"


def spell_type(declared: ValueType | None) -> str:
    """``float[N, 3, ?]``."""
    if isinstance(declared, TensorType):
        name = declared.dtype.name.lower()
        if declared.shape is None:
            return name
        return f"{name}[{', '.join('?' if d is None else str(d) for d in declared.shape)}]"
    if isinstance(declared, (SequenceType, OptionalType)):
        kind = "sequence" if isinstance(declared, SequenceType) else "optional"
        return f"{kind}({spell_type(declared.elem)})"
    return "no type" if declared is None else type(declared).__name__


def _list_faults(kind: str, old: Sequence[ValueInfo], new: Sequence[ValueInfo]) -> list[str]:
    before, after = [info.name for info in old], [info.name for info in new]
    return [] if before == after else [f"the {kind}s {before} became {after}"]


def _output_fault(old: ValueInfo, new: ValueInfo, seen: Sequence[Any]) -> str:
    if old.type is None or old.type == new.type:
        return ""
    change = f"{spell_type(old.type)} became {spell_type(new.type)}"
    if not isinstance(old.type, TensorType) or not isinstance(new.type, TensorType):
        return change
    if replace(old.type, shape=None) != replace(new.type, shape=None):
        return change
    before, after = old.type.shape, new.type.shape
    if after is None or (before is not None and len(before) != len(after)):
        return change
    if before is not None and any(p is not None and p != q for p, q in zip(before, after, strict=True)):
        return change
    arrays = [value for value in seen if isinstance(value, np.ndarray)]
    wrong = next((a for a in arrays if not _fits(after, a.shape)), None)
    return "" if wrong is None else f"{change}, but a run gives {list(wrong.shape)}"


def _fits(declared: ShapeDecl, shape: tuple[int, ...]) -> bool:
    if declared is None:
        return True
    return len(declared) == len(shape) and all(
        not isinstance(d, int) or d < 0 or d == s for d, s in zip(declared, shape, strict=True)
    )


def _inputs(graph: Graph) -> list[ValueInfo]:
    return [graph.info(value) for value in graph.inputs]


def _outputs(graph: Graph) -> list[ValueInfo]:
    return list(graph.sink.outputs)


def _with_default(graph: Graph) -> set[str]:
    return {graph.info(v).name for v in graph.inputs if _default(graph, v) is not None}


def _default(graph: Graph, value: Value) -> Any:
    return graph.node(value).attr("default")
