"""Operators that treat each channel alone, put over some of the channels only.

Channels lie along one axis: 1 of an image, the last one of rows of features.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from optimizer.ir import Attribute, Graph, Node, Value
from optimizer.rewrite import Match
from passes.permutable import UNARY

POOLS = frozenset(("MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "LpPool"))
BINARY = frozenset(("Add", "Sub", "Mul", "Div", "Min", "Max"))
KEEPS_ZERO = POOLS | frozenset(
    ("Relu", "LeakyRelu", "Tanh", "Elu", "Selu", "HardSwish", "Gelu", "Abs", "Neg")
)
KEEPS_ZERO |= frozenset(("Sqrt", "Sin", "Erf", "Softsign", "Mish", "Swish"))
"""Operators that make 0 of 0."""


def is_step(m: Match, node: Node, axis: int) -> bool:
    """Whether an operator treats the channels of its operands one by one.

    Its other operands are constants, or values with the same channels.
    """
    if node.domain or len(node.outputs) != 1 or any(a.reference for a in node.attributes.values()):
        return False
    if node.op_type in UNARY - {"CastLike"}:
        return node.op_type != "Clip" or all(v is None or m.tensor(v) is not None for v in node.inputs[1:])
    if node.op_type in POOLS:
        return axis == 1
    if node.op_type == "BatchNormalization":
        constants = all(m.tensor(v) is not None for v in node.inputs[1:])
        inference = not node.attr("training_mode", 0) and node.attr("spatial", 1) == 1 and m.opset() >= 7
        return axis == 1 and constants and inference
    if node.op_type == "Conv":
        return axis == 1 and _is_depthwise(m, node)
    return node.op_type in BINARY and len(node.inputs) == 2 and m.opset() >= 7 and _lines_up(m, node)


def _is_depthwise(m: Match, node: Node) -> bool:
    w = m.tensor(node.input(1))
    bias = node.input(2) is None or m.tensor(node.input(2)) is not None
    return w is not None and bias and w.shape[1] == 1 and w.shape[0] == node.attr("group", 1) > 1


def _lines_up(m: Match, node: Node) -> bool:
    """Whether no operand changes the shape of what is not a constant."""
    values = [v for v in node.inputs if v is not None and m.tensor(v) is None]
    return bool(values) and all(m.same_shape(v, node.value()) for v in values)


def keeps_zero(graph: Graph, node: Node) -> bool:
    """Whether an operator makes 0 of 0 in every channel."""
    if node.op_type in KEEPS_ZERO:
        return True
    if node.op_type in ("Mul", "Div") and graph.tensor(node.inputs[0]) is None:
        constant = graph.const(node.inputs[1])
        if constant is None:
            return node.op_type == "Mul"  # of channels that are 0 as well
        return bool(np.isfinite(constant).all() and constant.all())
    weights = graph.const(node.inputs[1]) if node.op_type == "Conv" and node.input(2) is None else None
    return weights is not None and bool(np.isfinite(weights).all())


def put_over(m: Match, node: Node, operands: Sequence[Value | None], kept: Sequence[int], axis: int) -> Node:
    """Adds the same operator over the channels ``kept``, of operands that have only these already."""
    inputs: list[Value | None] = []
    rank = m.rank(node.value()) or 0
    attributes = dict(node.attributes)
    for slot, value in enumerate(node.inputs):
        array = m.array(value)
        along = None
        if array is not None and node.op_type in ("BatchNormalization", "Conv"):
            along = 0
        elif array is not None and node.op_type in BINARY:
            along = array.ndim - (rank - axis)
        if array is None or along is None or along < 0 or array.shape[along] == 1:
            inputs.append(operands[slot])
        else:
            inputs.append(m.graph.add_constant(np.take(array, kept, along)))
    if node.op_type == "Conv":
        attributes["group"] = Attribute.of(len(kept))
    return m.graph.add(node.op_type, inputs, attributes, domain=node.domain)
