"""Activations and bounds that change nothing, or give one number, given what their operand can be."""

from __future__ import annotations

import math

import numpy as np

from optimizer.analysis.proofs import NON_NEGATIVE
from optimizer.ir import Node, Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.clip import interval_of
from passes.known import FLOATS, LOOK_BACK

BOUNDS = {
    "Sigmoid": (0.0, 1.0),
    "HardSigmoid": (0.0, 1.0),
    "Softmax": (0.0, 1.0),
    "Hardmax": (0.0, 1.0),
    "Tanh": (-1.0, 1.0),
    "Erf": (-1.0, 1.0),
    "Sin": (-1.0, 1.0),
    "Cos": (-1.0, 1.0),
    "Softsign": (-1.0, 1.0),
    "LogSoftmax": (-math.inf, 0.0),
}
"""What the result of an operator lies between, whatever it is given, but for rounding."""
KEEPS = (
    "MaxPool",
    "GlobalMaxPool",
    "Reshape",
    "Transpose",
    "Squeeze",
    "Unsqueeze",
    "Flatten",
    "Slice",
    "Gather",
)
"""Operators whose elements are among those of their operand."""


@graph_optimizer(
    P.any_of(
        P.one_of("Relu", "Abs")("x", name="clamp"),
        P.Clip("x", P.rest("bounds"), name="clamp"),
        P.one_of("Max", "Min")("x", P.const("bound"), name="clamp").commutes(),
    ),
    tag="E2",
)
def drop_idle_clamp(m: Match, rw: Rewriter) -> Value:
    """Relu(Sigmoid(x)) -> Sigmoid(x), and of Clip, Max, Min and Abs that change nothing likewise"""
    m.require(m.dtype(m.x) in FLOATS, "not a float")
    m.require(m.same_shape(m.x, m.root.value()), "a bound stretches the operand")
    low, high = _range(m, m.x)
    if m.clamp.op_type == "Abs":
        m.require(low >= 0, "the operand may lie outside")
        return m.x
    least, most = interval_of(m, m.clamp)
    m.require(least <= low and most >= high, "the operand may lie outside")
    return m.x


def _range(m: Match, value: Value) -> tuple[float, float]:
    """An interval that all elements lie in that are no NaN."""
    low, high = -math.inf, math.inf
    node = _maker(m, value)
    if node is not None and node.op_type in BOUNDS:
        low, high = BOUNDS[node.op_type]
    if m.fact(value, NON_NEGATIVE):
        low = max(low, 0.0)
    return low, high


def _maker(m: Match, value: Value) -> Node | None:
    """The operator that makes the elements of a value."""
    node = m.producer(value)
    for _ in range(LOOK_BACK):
        if node is None or node.op_type not in KEEPS:
            break
        node = m.producer(node.inputs[0])
    return node


# -------------------------------------------------------------------- what gives the same for every operand


@graph_optimizer(P.one_of("Softmax", "LogSoftmax")("x", name="softmax"), tag="E1")
def fold_softmax_of_one(m: Match, rw: Rewriter) -> Value:
    """Softmax(x) -> 1, and LogSoftmax(x) -> 0, over an axis of size 1"""
    m.require(m.opset() >= 13, "Softmax flattens before opset 13")
    sizes, dtype = m.static_shape(m.x), m.dtype(m.x)
    if sizes is None or dtype is None:
        return m.refuse("the shape is not known")
    m.require(sizes and sizes[m.softmax.attr("axis", -1)] == 1, "there is more than one")
    filled = np.full(sizes, float(m.softmax.op_type == "Softmax"))
    m.require(m.ctx.may_grow(filled.size * dtype.bits // 8), "the growth budget is used up")
    return rw.const(filled, like=dtype)
