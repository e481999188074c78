"""Tokens are picked before the work is done that treats all tokens alike."""

from __future__ import annotations

from typing import Any

import numpy as np

from optimizer.ir import Node, Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.known import constant_of, ints_of, rank_of, shape_of
from passes.permutable import UNARY
from passes.view_chain import perm_of

ACTIVATIONS = sorted(UNARY - {"Cast", "CastLike", "Identity"})
SOURCE = P.one_of(
    *ACTIVATIONS, "Add", "Sub", "Mul", "Div", "MatMul", "LayerNormalization", "RMSNormalization", "Softmax"
)(P.rest("operands", least=1), name="work").once()
LONGEST_BRANCH = 16
"""Operators of a residual block that are followed from its end to its beginning."""


@graph_optimizer(
    P.any_of(
        P.Gather(SOURCE, P.const("index"), name="pick"),
        P.Slice(SOURCE, P.rest("bounds", least=2), name="pick"),
    ),
    tag="E2",
)
def pick_tokens_first(m: Match, rw: Rewriter) -> Value:
    """Gather(f(x), i) -> f(Gather(x, i)), and Slice likewise, where f works on each token alone

    Of three axes (batch, tokens, features): activations, sums, normalizations over the features,
    products with constant weights.
    """
    work: Node = m.work
    axis = _axis_of(m)
    m.require(rank_of(m, work.value()) == 3 and axis < 2, "it does not pick tokens")
    for node in m.nodes:
        m.require(not any(a.reference for a in node.attributes.values()), "it does not pick tokens")
    data, attributes = _data_of(m, work, axis)
    added = sum(m.tensor(work.inputs[i]) is None for i in data) - 1
    if added:
        joins = m.ctx.settings.objective == "latency" or _joins(m, work, data)
        m.require(joins, "it would be more nodes")
    operands: list[Value | None] = list(work.inputs)
    for slot in data:
        operands[slot] = _picked(m, rw, work.inputs[slot], axis)
    made: Value = getattr(rw.op, work.op_type)(*operands, **attributes)
    return made


def _axis_of(m: Match) -> int:
    if m.pick.op_type == "Gather":
        return int(m.pick.attr("axis", 0)) % 3
    axes = ints_of(m, m.pick, "axes", 3)
    if axes is None or len(axes) != 1:
        m.refuse("it does not pick tokens")
    return axes[0] % 3


def _data_of(m: Match, work: Node, axis: int) -> tuple[list[int], dict[str, Any]]:
    """The operands to pick from, and the attributes of the operator behind the picking."""
    attributes: dict[str, Any] = dict(work.attributes)
    drops = m.pick.op_type == "Gather" and not constant_of(m, m.index).shape
    if work.op_type == "MatMul":
        second = m.tensor(work.inputs[1])
        m.require(second is not None and len(second.shape) == 2, "the weights differ between tokens")
        return [0], attributes
    if work.op_type.endswith("Normalization") or work.op_type == "Softmax":
        last = work.attr("axis", -1) in (-1, 2) and len(work.outputs) == 1
        m.require(last and m.opset() >= 13, "it does not work on each token alone")
        m.require(
            all(m.rank(v) == 1 for v in work.inputs[1:] if v is not None),
            "it does not work on each token alone",
        )
        return [0], {**attributes, "axis": -1}
    data = []
    whole = shape_of(m, work.value())
    for slot, value in enumerate(work.inputs):
        if value is None:
            continue
        shape = shape_of(m, value)
        if len(shape) < 3 - axis:
            continue
        same = len(shape) == 3 and shape[axis] == whole[axis]
        m.require(same or (not drops and shape[axis - 3] == 1), "an operand is broadcast over the tokens")
        if same:
            data.append(slot)
    m.require(data, "an operand is broadcast over the tokens")
    return data, attributes


def _picked(m: Match, rw: Rewriter, value: Value | None, axis: int) -> Value:
    assert value is not None
    attributes: dict[str, Any] = dict(m.pick.attributes)
    if m.pick.op_type == "Gather":
        return rw.op.Gather(value, m.index, **{**attributes, "axis": axis})
    return rw.op.Slice(value, *m.bounds, **attributes)


def _joins(m: Match, work: Node, data: list[int]) -> bool:
    """Whether one operand of a sum is worked out, token by token, from the other: a residual block."""
    if work.op_type != "Add" or len(data) != 2:
        return False
    for branch, shortcut in ((work.inputs[0], work.inputs[1]), (work.inputs[1], work.inputs[0])):
        value = branch
        for _ in range(LONGEST_BRANCH):
            node = m.producer(value)
            if value == shortcut:
                return True
            if node is None or value is None or not m.single_use(value):
                break
            rowwise = node.op_type in {*ACTIVATIONS, "MatMul", "LayerNormalization", "RMSNormalization"}
            rowwise |= node.op_type in ("Add", "Mul") and any(m.tensor(v) is not None for v in node.inputs)
            if not rowwise:
                break
            value = next((v for v in node.inputs if v is not None and m.tensor(v) is None), None)
    return False


@graph_optimizer(P.Gather(P.Transpose("x", name="transpose").once(), P.const("index"), name="pick"), tag="E0")
def pick_before_transpose(m: Match, rw: Rewriter) -> Value:
    """Gather(Transpose(x), i) -> Transpose(Gather(x, i)), or without it"""
    rank, index = rank_of(m, m.x), constant_of(m, m.index)
    perm = perm_of(m.transpose, rank)
    axis = perm[m.pick.attr("axis", 0) % rank]
    m.require(not index.shape, "the index is no scalar")
    left = [a - (a > axis) for a in perm if a != axis]
    picked = rw.op.Gather(m.x, m.index, axis=axis)
    return picked if left == sorted(left) else rw.op.Transpose(picked, perm=np.array(left).tolist())
