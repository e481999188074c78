"""Initial states of recurrent operators that are zero anyway."""

from __future__ import annotations

from typing import Any

import numpy as np

from optimizer.ir import Graph, Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer

_VIEWS = frozenset(
    (
        "Slice",
        "Split",
        "Expand",
        "Reshape",
        "Squeeze",
        "Unsqueeze",
        "Transpose",
        "Identity",
        "Tile",
        "Flatten",
        "Gather",
    )
)
STATES = {"RNN": (5,), "GRU": (5,), "LSTM": (5, 6)}


@graph_optimizer(P.one_of(*STATES)(P.rest("operands"), name="cell"), tag="E0")
def drop_zero_state(m: Match, rw: Rewriter) -> Any:
    """LSTM(x, w, r, b, lengths, zeros, zeros) -> LSTM(x, w, r, b, lengths)

    A state that is not given is zero.
    """
    operands = list(m.operands)
    for slot in STATES[m.cell.op_type]:
        if slot < len(operands) and operands[slot] is not None and _is_zero(m.graph, operands[slot]):
            operands[slot] = None
    m.require(operands != list(m.operands), "no state is known to be zero")
    outputs = len(m.cell.outputs)
    return getattr(rw.op, m.cell.op_type)(*operands, outputs=outputs, **m.cell.attributes)


def _is_zero(graph: Graph, value: Value) -> bool:
    """Whether every element is 0: a constant, or ConstantOfShape and views of it."""
    node = graph.node(value.node)
    while node.is_operator and not node.domain and node.op_type in _VIEWS and node.inputs[0] is not None:
        value = node.inputs[0]
        node = graph.node(value.node)
    if node.is_operator and node.op_type == "ConstantOfShape" and not node.domain:
        filler = node.attr("value")
        return filler is None or _has_no_bit(filler.array)
    constant = graph.const(value)
    return constant is not None and _has_no_bit(constant)


def _has_no_bit(array: np.ndarray) -> bool:
    """Whether every element is 0, and none is -0."""
    return not np.ascontiguousarray(array).reshape(-1).view(np.uint8).any()
