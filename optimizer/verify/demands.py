"""What a model would ask of onnxruntime in its own process, looked at first: memory without bounds, a crash.

onnxruntime trusts the values that tell how large a result is, and a few of its kernels end the process on
tensors without elements. Where that may come up, the NumPy executor computes those values before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from optimizer.ir import Graph, Model, Node, OptimizerError, Value
from optimizer.runtime import LimitReached, Options, run_between
from optimizer.runtime.extent import BY_ATTRIBUTES, BY_VALUES, check_extent
from optimizer.verify.effort import PER_SECOND, Meter

_LIMIT = PER_SECOND // 10
"""Work that looking first may take: what lies deeper in a net is made by its layers, not by its author."""
_LARGE = 1 << 20
"""A constant from which shapes do not get by themselves."""
_ENDS = [float(1 << 31), float((1 << 31) - 1), float(1 << 63)]
"""Bounds by which a Slice goes to the end: no size comes of them."""
_FATAL_WHEN_EMPTY = {
    "InstanceNormalization", "Unique", "Einsum", "GRU", "LSTM", "RNN", "ConvTranspose", "STFT",
}  # fmt: skip
_MAY_EMPTY = {"NonZero", "Compress", "NonMaxSuppression", "Unique", "Slice", "Range", "ConstantOfShape"}
_WALKED = 200


class Refused(OptimizerError):
    """onnxruntime must not be given these inputs."""


class Demands:
    """Looks at the values that a model's work depends on, where they are not harmless by themselves.

    Nodes in bodies are not looked at.

    Args:
        model: what onnxruntime is to run.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        graph = model.graph
        nodes = [node for node in graph.nodes if node.is_operator and not node.domain]
        self._sized = [n for n in nodes if n.op_type in BY_VALUES and _is_told(graph, n)]
        self._fatal = [n for n in nodes if n.op_type in _FATAL_WHEN_EMPTY]
        self._emptied = [n for n in self._fatal if any(_may_be_empty(graph, v) for v in _given(n.inputs))]
        self._refusal: Refused | None = None
        for node in nodes:
            if node.op_type in BY_VALUES or node.op_type in BY_ATTRIBUTES:
                known = [_small_constant(graph, v) for v in node.inputs]
                self._refusal = self._refusal or _refusal(graph, node, known)

    def check(self, feeds: Mapping[str, Any]) -> None:
        """Looks at what these inputs lead to.

        Raises:
            Refused: with the node and what it asks for.
        """
        if self._refusal is not None:
            raise self._refusal
        graph = self._model.graph
        empty = any(isinstance(x, np.ndarray) and not x.size for x in feeds.values())
        fatal = self._fatal if empty else self._emptied
        wanted = dict.fromkeys(v for node in self._sized for v in _controls(node))
        wanted |= dict.fromkeys(v for node in fatal for v in _given(node.inputs))
        found = self._values([v for v in wanted if graph.tensor(v) is None], feeds)
        for node in self._sized:
            controls = set(_controls(node))
            known = [found.get(v, _small_constant(graph, v)) if v in controls else None for v in node.inputs]
            if refusal := _refusal(graph, node, known):
                raise refusal
        for node in fatal:
            if any(isinstance(found.get(v), np.ndarray) and not found[v].size for v in _given(node.inputs)):
                raise Refused(
                    f"{graph.label(node)} gets a tensor without elements, which may end the process"
                )

    def _values(self, wanted: Sequence[Value], feeds: Mapping[str, Any]) -> dict[Value, Any]:
        """The values that can be computed with little work; none where one is too deep in the net."""
        if not wanted:
            return {}
        graph = self._model.graph
        given: dict[Value, Any] = {}
        for value in graph.inputs:
            default = graph.node(value).attr("default")
            fed = feeds.get(graph.info(value).name, None if default is None else default.array)
            if fed is not None:
                given[value] = fed
        options = Options(before_node=Meter(_LIMIT))
        try:
            return run_between(graph, given, wanted, functions=self._model.functions, options=options)
        except LimitReached as limit:
            return {v: limit.live[v] for v in wanted if v in limit.live}
        except (OptimizerError, MemoryError):  # the executor refuses what it cannot run, too
            return {}


def _small_constant(graph: Graph, value: Value | None) -> Any:
    tensor = graph.tensor(value)
    return None if tensor is None or tensor.size > 64 else tensor.array


def _given(values: Iterable[Value | None]) -> Iterator[Value]:
    return (value for value in values if value is not None)


def _controls(node: Node) -> Iterator[Value]:
    slots, _ = BY_VALUES[node.op_type]
    return _given(node.input(slot) for slot in slots)


def _refusal(graph: Graph, node: Node, known: Sequence[Any]) -> Refused | None:
    try:
        check_extent(node, known)
    except ValueError as error:
        return Refused(f"{graph.label(node)}: {error}")
    return None


def _is_told(graph: Graph, node: Node) -> bool:
    """Whether something else than constants and shapes tells the size of what the node makes."""
    return any(_is_free(graph, value) for value in _controls(node))


def _is_free(graph: Graph, value: Value) -> bool:
    """Whether a value depends on more than shapes and modest numbers, or on such numbers alone."""
    queue, seen, shaped = [value], {value}, False
    for current in queue:
        tensor = graph.tensor(current)
        node = graph.node(current.node)
        if tensor is not None:
            known = _small_constant(graph, current)
            if current is not value and known is not None and _is_large(known):
                return True
            continue
        if node.op_type in ("Shape", "Size") and not node.domain:
            shaped = True
            continue
        if not node.is_operator or len(seen) > _WALKED or node.bodies:
            return True
        fresh = [v for v in _given(node.operands) if v not in seen]
        seen.update(fresh)
        queue += fresh
    return not shaped and graph.tensor(value) is None


def _is_large(array: Any) -> bool:
    if array.dtype.kind not in "iuf":
        return False
    magnitudes = np.abs(array.astype(np.float64))
    return bool(np.any((magnitudes > _LARGE) & ~np.isin(magnitudes, _ENDS)))


def _may_be_empty(graph: Graph, value: Value) -> bool:
    """Whether an operator before it may leave nothing over."""
    queue, seen = [value], {value}
    for current in queue:
        node = graph.node(current.node)
        if node.op_type in _MAY_EMPTY:
            return True
        fresh = [v for v in _given(node.operands) if v not in seen] if len(seen) < _WALKED else []
        seen.update(fresh)
        queue += fresh
    return False
