"""Constant affine steps behind joined channels become part of the convolutions that make the channels."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from optimizer.ir import Node, Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.affine import Affine, affine_of, batchnorm_step, elementwise_step
from passes.fuse_conv import followed_by, outputs_of
from passes.known import rank_of

CONCAT = P.Concat(P.rest("parts", least=2), name="concat").once()


@graph_optimizer(P.any_of(batchnorm_step(CONCAT), *elementwise_step(CONCAT)), tag="E2")
def fold_affine_into_joined_convs(m: Match, rw: Rewriter) -> Value:
    """Concat(Conv(x, v), Conv(z, w)) * k + t -> Concat(Conv(x, v * k1, t1), Conv(z, w * k2, t2))

    One step at a time, BatchNormalization too: one number per channel, or one for all.
    """
    rank = rank_of(m, m.concat.value())
    m.require(rank > 2 and m.concat.attr("axis", 1) % rank == 1, "they are not joined by channels")
    convs = [_conv(m, part) for part in m.parts]
    edges = np.cumsum([0, *(outputs_of(m, conv) for conv in convs)])
    whole = affine_of(m, m.step, m.concat.value(), rank).along(m, 1, rank, int(edges[-1]))
    parts = [
        followed_by(m, rw, conv, Affine(whole.scale[start:end], whole.shift[start:end]))
        for conv, (start, end) in zip(convs, pairwise(edges), strict=True)
    ]
    return rw.op.Concat(*parts, **m.concat.attributes)


def _conv(m: Match, part: Value) -> Node:
    """The convolution that makes an operand, for nobody else.

    Raises:
        Refusal: there is none with constant weights.
    """
    node = m.producer(part)
    found = node is not None and node.op_type in ("Conv", "ConvTranspose") and not node.domain
    if node is None or not found or not m.single_use(part) or m.ctx.is_kept(node):
        return m.refuse("an operand is no convolution of its own")
    constants = all(v is None or m.tensor(v) is not None for v in node.inputs[1:])
    m.require(constants and len(node.inputs) > 1, "the weights are not constant")
    m.require(not any(a.reference for a in node.attributes.values()), "the weights are not constant")
    return node
