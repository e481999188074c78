"""Convolutions of two kernel sizes that are joined: one of the larger size, for fewer nodes only."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from optimizer.ir import Value
from optimizer.rewrite import Match, P, Refusal, Rewriter, graph_optimizer
from passes.affine import require_room
from passes.fuse_branches import place_of, without_kernel_shape
from passes.fuse_siblings import Branch, branch_of
from passes.known import constant_of, rank_of


@graph_optimizer(P.Concat(P.rest("parts", least=2), name="concat"), tag="E2")
def merge_joined_convs_of_two_sizes(m: Match, rw: Rewriter) -> Value:
    """Concat(Conv<1x1>(x, v), Conv<3x3>(x, w)) -> Conv<3x3>(x, Concat(v amid zeros, w))

    The first two neighbours at a time, through an activation as well. More multiplications, but fewer nodes.
    """
    m.require(m.ctx.settings.objective == "nodes", "it would be slower")
    m.require(m.concat.attr("axis", 1) % rank_of(m, m.root.value()) == 1, "they are not joined by channels")
    branches = [branch_of(m, part) for part in m.parts]
    for place, (one, other) in enumerate(pairwise(branches)):
        if one is None or other is None or not _alike(one, other):
            continue
        try:
            merged = _merged(m, rw, one, other)
        except Refusal:
            continue
        parts = [*m.parts[:place], merged, *m.parts[place + 2 :]]
        return merged if len(parts) == 1 else rw.op.Concat(*parts, **m.concat.attributes)
    return m.refuse("no kernel of a neighbour lies inside the other")


def _alike(one: Branch, other: Branch) -> bool:
    """Whether they read the same, and go through the same activation."""
    (first, after), (second, then) = one, other
    if first.inputs[0] != second.inputs[0] or (after is None) != (then is None):
        return False
    return after is None or then is None or (after.op, after.attributes) == (then.op, then.attributes)


def _merged(m: Match, rw: Rewriter, one: Branch, other: Branch) -> Value:
    (first, activation), (second, _) = one, other
    kernels = [constant_of(m, node.inputs[1]).shape[2:] for node in (first, second)]
    large, inside = (second, kernels[1]) if np.prod(kernels[1]) > np.prod(kernels[0]) else (first, kernels[0])
    parts, biases, added = [], [], 0
    for node, kernel in zip((first, second), kernels, strict=True):
        w = constant_of(m, node.inputs[1]).array
        wide = np.zeros((*w.shape[:2], *inside), w.dtype)
        wide[place_of(m, node, kernel, large, inside)] = w
        added += wide.nbytes - w.nbytes
        parts.append(wide)
        biases.append(np.zeros(len(w)) if node.input(2) is None else m.f64(node.input(2)))
    like = large.inputs[1]
    assert like is not None
    require_room(m, like, added)
    bias = np.concatenate(biases)
    new_bias = rw.const(bias, like=like) if bias.any() else None
    made = rw.op.Conv(
        large.inputs[0], rw.const(np.concatenate(parts)), new_bias, **without_kernel_shape(large)
    )
    if activation is None:
        return made
    behind: Value = getattr(rw.op, activation.op_type)(made, **activation.attributes)
    return behind
