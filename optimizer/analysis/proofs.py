"""Properties of upstream values that a rewrite may rely on, proven from the operators that make them."""

from __future__ import annotations

import numpy as np

from optimizer.ir import Graph, Node, UsageError, Value

NON_NEGATIVE = "non-negative"
"""Every element is >= 0 or NaN."""

_ALWAYS = {
    "Relu",
    "Sigmoid",
    "HardSigmoid",
    "Softmax",
    "Abs",
    "Exp",
    "Sqrt",
    "Softplus",
    "ReduceL1",
    "ReduceL2",
}
_ALWAYS |= {"ReduceSumSquare", "Shape", "Size", "NonZero"}
_KEEPS = {"MaxPool", "GlobalMaxPool", "Identity", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten"}
_KEEPS |= {
    "AveragePool",
    "GlobalAveragePool",
    "ReduceMax",
    "ReduceMean",
    "ReduceSum",
    "Slice",
    "Floor",
    "Ceil",
}
_ALL_KEEP = {"Add", "Mul", "Concat", "Min", "Sum", "Mean"}
DEPTH = 8


def prove(graph: Graph, value: Value, kind: str, depth: int = DEPTH) -> bool:
    """Whether ``kind`` holds for ``value``, by looking at most ``depth`` operators upstream.

    Raises:
        UsageError: there is no such kind.
    """
    if kind != NON_NEGATIVE:
        raise UsageError(f"no kind of fact '{kind}'; there is '{NON_NEGATIVE}'")
    constant = graph.const(value)
    if constant is not None:
        return constant.dtype.kind in "uib" or (constant.dtype.kind == "f" and not bool(np.any(constant < 0)))
    node = graph.producer(value)
    if not node.is_operator or node.domain or depth == 0:
        return False
    if node.op_type in _ALWAYS or (node.op_type in ("Clip", "Max") and _has_floor(graph, node)):
        return True
    if node.op_type == "Mul" and node.inputs[0] == node.inputs[1]:
        return True
    if node.op_type in _KEEPS and node.inputs[0] is not None:
        return prove(graph, node.inputs[0], kind, depth - 1)
    given = [v for v in node.inputs if v is not None]
    return node.op_type in _ALL_KEEP and all(prove(graph, v, kind, depth - 1) for v in given)


def _has_floor(graph: Graph, node: Node) -> bool:
    """Clip with a minimum, or Max with a constant, that is >= 0 (Clip: unless max is below it)."""
    if node.op_type == "Max":
        constants = [graph.const(v) for v in node.inputs]
        return any(c is not None and c.dtype.kind in "fiu" and bool(np.all(c >= 0)) for c in constants)
    low, high = node.attr("min"), node.attr("max")
    if len(node.inputs) > 1 and (bound := graph.const(node.inputs[1])) is not None and bound.size == 1:
        low = float(bound.reshape(()))
    if len(node.inputs) > 2:
        bound = graph.const(node.inputs[2])
        if node.inputs[2] is not None and (bound is None or bound.size != 1):
            return False
        high = None if bound is None else float(bound.reshape(()))
    return low is not None and low >= 0 and (high is None or high >= 0)
