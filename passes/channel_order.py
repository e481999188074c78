"""Channels put in another order in front of a convolution: its weights take them in the order they have."""

from __future__ import annotations

import numpy as np

from optimizer.ir import Node, Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.affine import require_room
from passes.channel_picks import Pick, picks_of
from passes.channel_steps import is_step
from passes.known import LOOK_BACK, constant_of, shape_of


@graph_optimizer(P.Conv("x", "w", P.maybe("b"), name="conv"), constants="w", tag="E2")
def fold_channel_order_into_conv(m: Match, rw: Rewriter) -> Value:
    """Conv(Relu(Gather(x, order of channels)), w) -> Conv(Relu(x), w')

    A shuffle of channels is such an order as well.
    """
    m.require(m.conv.attr("group", 1) == 1, "the convolution has groups")
    rank = len(shape_of(m, m.x))
    m.require(rank > 2, "not an image")
    steps, pick = _order_before(m)
    count = shape_of(m, pick.source)[1].value
    m.require(sorted(pick.taken) == list(range(count or 0)), "not all channels are taken once")
    require_room(m, m.w)
    order = np.argsort(pick.taken)
    value = pick.source
    for step in reversed(steps):
        value = _reordered(m, rw, step, value)
    w = np.take(constant_of(m, m.w).array, order, 1)
    made: Value = rw.op.Conv(value, rw.const(w), m.b, **m.conv.attributes)
    return made


def _order_before(m: Match) -> tuple[list[Node], Pick]:
    """The operators of one operand between a reordering of channels and the Conv, the last one first."""
    steps: list[Node] = []
    value = m.x
    for _ in range(LOOK_BACK):
        node = m.producer(value)
        alone = node is not None and m.single_use(value) and not m.ctx.is_kept(node)
        if node is None or not alone:
            break
        picks = picks_of(m, node, 1)
        if len(picks) == 1:
            return steps, picks[0]
        if not (len(node.inputs) == 1 or node.op_type == "Clip") or not is_step(m, node, 1):
            break
        steps.append(node)
        value = node.inputs[0]
    return m.refuse("no operator reorders its channels")


def _reordered(m: Match, rw: Rewriter, step: Node, value: Value) -> Value:
    made: Value = getattr(rw.op, step.op_type)(value, *step.inputs[1:], **step.attributes)
    return made
