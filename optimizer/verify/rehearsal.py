"""Runs that would end the process: found out before onnxruntime is asked.

On x86 the smallest integer of 32 or 64 bits divided by -1 is a trap of the processor, and onnxruntime
does not catch it. What ends it on tensors without elements is looked for in ``demands``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from optimizer.analysis import Dim, Facts
from optimizer.ir import Graph, Model, Node, OptimizerError, TensorType, Value
from optimizer.runtime import Session

_WIDE = (np.dtype(np.int32), np.dtype(np.int64))
_ONLY_FLOATS = {
    "Sqrt",
    "Exp",
    "Log",
    "Sigmoid",
    "Tanh",
    "Erf",
    "Softmax",
    "Conv",
    "Gemm",
    "BatchNormalization",
}
_OF_ITS_INPUT = {
    "Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Abs", "Neg", "MatMul", "ReduceMean", "ReduceSum",
    "ReduceMax", "Transpose", "Reshape", "Unsqueeze", "Squeeze", "Expand", "Slice", "Concat", "Clip",
}  # fmt: skip


class Fatal(OptimizerError):
    """A node would divide the smallest integer by -1."""


class Rehearsal:
    """The executor runs a model first, where that may divide the smallest integer by -1.

    Args:
        model: what onnxruntime is to run.

    Attributes:
        needed: whether it may.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._session: Session | None = None
        self.needed = any(
            _may_trap(facts, graph, node) for graph, facts in _scopes(model) for node in _divisions(graph)
        )

    def run(self, feeds: Mapping[str, Any]) -> None:
        """Runs the model in the executor, where that is needed.

        Raises:
            Fatal: onnxruntime must not be given these inputs.
            OptimizerError: the executor cannot tell.
        """
        if not self.needed:
            return
        self._session = self._session or Session(self._model, before_node=_refuse_trap)
        self._session.run(feeds)


def _refuse_trap(node: Node, inputs: Sequence[Any]) -> None:
    if node.op_type != "Div" or node.domain:
        return
    a, b = inputs
    if a.dtype in _WIDE and bool(((a == np.iinfo(a.dtype).min) & (b == -1)).any()):
        where = f"node '{node.name}' (Div)" if node.name else "a Div"
        raise Fatal(f"{where} divides the smallest {a.dtype.name} by -1, which would end the process")


# ---------------------------------------------------------------- may it come to that


def _scopes(model: Model) -> Iterator[tuple[Graph, Facts]]:
    for graph in (model.graph, *(function.graph for function in model.functions.values())):
        facts = Facts(graph, model.functions)
        for _, scope in graph.scopes():
            yield scope, facts if scope is graph else Facts(scope, model.functions)


def _divisions(graph: Graph) -> list[Node]:
    return [n for n in graph.nodes if n.op_type == "Div" and not n.domain] if "Div" in graph.op_types else []


def _may_trap(facts: Facts, graph: Graph, node: Node) -> bool:
    a, b = node.inputs
    if a is None or b is None:
        return False
    divisor = graph.const(b)
    if divisor is not None:
        return divisor.dtype in _WIDE and bool(np.any(divisor == -1))
    if _is_float(graph, a) or _is_float(graph, b):
        return False
    dtype = facts.dtype(b)
    if dtype is not None and dtype.numpy not in _WIDE:
        return False
    known = facts.of(b).value
    return known is None or not all(_is_size(item) for item in known.items)


def _is_size(item: object) -> bool:
    """Whether an element of a shape vector is known not to be -1."""
    number = item.value if isinstance(item, Dim) else item
    if isinstance(number, int):
        return number != -1
    return isinstance(item, Dim) and all(c > 0 for c in item.terms.values())


def _is_float(graph: Graph, value: Value) -> bool:
    """Whether a few operators further up say so: facts of the whole graph cost much more."""
    current: Value | None = value
    for _ in range(8):
        if current is None:
            return False
        tensor = graph.tensor(current)
        declared = graph.info(current).type
        if tensor is not None:
            return tensor.dtype.is_float
        if isinstance(declared, TensorType):
            return declared.dtype.is_float
        node = graph.node(current.node)
        if node.op_type in _ONLY_FLOATS:
            return True
        if node.op_type not in _OF_ITS_INPUT:
            return False
        current = node.input(0)
    return False
