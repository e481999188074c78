"""Convolutions beside each other that are joined again, and those of which a part is read."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from optimizer.ir import Node, Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.affine import require_room
from passes.cse import attribute_key
from passes.known import constant_of, known_sizes, rank_of, readers_of, shape_of
from passes.view_chain import slice_cut

PLAIN = (
    "Relu",
    "Sigmoid",
    "Tanh",
    "LeakyRelu",
    "HardSigmoid",
    "HardSwish",
    "Elu",
    "Gelu",
    "Mish",
    "Softplus",
)
"""Activations of one operand, which treat all channels alike."""


@graph_optimizer(P.Concat(P.rest("parts", least=2), name="concat"), tag="E2")
def merge_joined_convs(m: Match, rw: Rewriter) -> Value:
    """Concat(Conv(x, v), Conv(x, w)) -> Conv(x, Concat(v, w)), through an activation as well

    Neighbours of one kernel size, with the same attributes and nothing else that reads them.
    """
    m.require(m.concat.attr("axis", 1) % rank_of(m, m.root.value()) == 1, "they are not joined by channels")
    branches = [branch_of(m, part) for part in m.parts]
    runs: list[list[int]] = []
    for place, branch in enumerate(branches):
        last = branches[place - 1] if place else None
        if runs and branch is not None and last is not None and _key(m, branch) == _key(m, last):
            runs[-1].append(place)
        else:
            runs.append([place])
    m.require(any(len(run) > 1 for run in runs), "no neighbours are alike")
    joined: list[Value] = []
    for run in runs:
        if len(run) == 1:
            joined.append(m.parts[run[0]])
            continue
        joined.append(_merged(m, rw, [branch for i in run if (branch := branches[i]) is not None]))
    return joined[0] if len(joined) == 1 else rw.op.Concat(*joined, **m.concat.attributes)


Branch: TypeAlias = tuple[Node, Node | None]
"""A convolution and the activation behind it."""


def branch_of(m: Match, part: Value) -> Branch | None:
    """The convolution with constant weights that makes a value for one reader, through an activation."""
    node = m.producer(part)
    activation = None
    if node is not None and node.op_type in PLAIN and not node.domain and len(m.graph.uses(part)) == 1:
        activation, part = node, node.inputs[0] or part
        node = m.producer(part)
    if node is None or node.op_type != "Conv" or node.domain or len(m.graph.uses(part)) != 1:
        return None
    constants = all(m.tensor(v) is not None for v in node.inputs[1:] if v is not None)
    alone = node.attr("group", 1) == 1 and not any(a.reference for a in node.attributes.values())
    return (node, activation) if constants and alone else None


def _key(m: Match, branch: Branch) -> tuple[object, ...]:
    conv, activation = branch
    found: list[object] = [conv.inputs[0], constant_of(m, conv.inputs[1]).shape[1:]]
    for node in branch:
        if node is not None:
            named = {name: attribute_key(a) for name, a in node.attributes.items() if name != "kernel_shape"}
            found += [node.op_type, tuple(sorted(named.items()))]
    return (*found, activation is None)


def _merged(m: Match, rw: Rewriter, branches: Sequence[Branch]) -> Value:
    convs = [conv for conv, _ in branches]
    weights = [constant_of(m, conv.inputs[1]).array for conv in convs]
    for conv in convs:
        assert conv.inputs[1] is not None
        require_room(m, conv.inputs[1])
    like = convs[0].inputs[1]
    assert like is not None
    bias = None
    if any(conv.input(2) is not None for conv in convs):
        parts = [
            np.zeros(len(w)) if conv.input(2) is None else m.f64(conv.input(2))
            for conv, w in zip(convs, weights, strict=True)
        ]
        bias = rw.const(np.concatenate(parts), like=like)
    attributes: dict[str, Any] = dict(convs[0].attributes)
    result: Value = rw.op.Conv(convs[0].inputs[0], rw.const(np.concatenate(weights)), bias, **attributes)
    activation = branches[0][1]
    if activation is not None:
        result = getattr(rw.op, activation.op_type)(result, **activation.attributes)
    return result


# -------------------------------------------------------------------- channels that nobody reads

CONV = P.Conv("x", "w", P.maybe("b"), name="conv").once()


@graph_optimizer(
    P.any_of(
        P.Slice(CONV, P.rest("bounds", least=2), name="slice"),
        P.Slice(P.one_of(*PLAIN)(CONV, name="activation").once(), P.rest("bounds", least=2), name="slice"),
    ),
    constants="w",
    tag="E0",
)
def slice_channels_of_weights(m: Match, rw: Rewriter) -> Value:
    """Slice(Conv(x, w, b), channels) -> Conv(x, Slice(w), Slice(b)), through an activation as well

    Where nothing else reads the other channels: they are not computed any more.
    """
    shape = shape_of(m, m.root.value())
    whole = shape_of(m, m.slice.inputs[0])
    cut = slice_cut(m, m.slice, whole)
    m.require(cut is not None and cut[0] == 1 and len(shape) > 2, "it does not cut channels")
    assert cut is not None
    _, start, end = cut
    m.require(m.conv.attr("group", 1) == 1, "the convolution has groups")
    require_room(m, m.w)
    return _channels(m, rw, start, end)


@graph_optimizer(
    P.any_of(
        P.Split(P.Conv("x", "w", P.maybe("b"), name="conv").once(), P.maybe("sizes"), name="split"),
        P.Split(
            P.Mul(P.Conv("x", "w", P.maybe("b"), name="conv"), P.Sigmoid("gate", name="sigmoid").once())
            .commutes()
            .once(),
            P.maybe("sizes"),
            name="split",
        ),
        P.Split(P.one_of(*PLAIN)(CONV, name="activation").once(), P.maybe("sizes"), name="split"),
    ),
    constants="w",
    tag="E0",
)
def split_weights_of_conv(m: Match, rw: Rewriter) -> list[Value]:
    """Split(Conv(x, w, b)) -> Conv(x, w1, b1), Conv(x, w2, b2), through an activation as well

    More nodes, but the data is not moved, and runtimes that block channels need not unblock them.
    """
    m.require(m.ctx.settings.objective == "latency", "it would be more nodes")
    shapes = [shape_of(m, m.split.value(i)) for i in range(len(m.split.outputs))]
    m.require(
        m.split.attr("axis", 0) % len(shapes[0]) == 1 and len(shapes[0]) == 4, "it does not cut channels"
    )
    m.require(m.conv.attr("group", 1) == 1, "the convolution has groups")
    if hasattr(m, "sigmoid"):
        readers = {reader.id for reader, _ in readers_of(m, m.conv.value())}
        inside = m.gate == m.conv.value() and len(readers) == 2
        m.require(inside, "the convolution has other readers")
    sizes = known_sizes(shape[1] for shape in shapes)
    if sizes is None or len(sizes) > 4:
        m.refuse("the sizes of the parts are not known")
    m.require(
        m.ctx.may_grow(0 if m.single_use(m.w) else constant_of(m, m.w).nbytes), "the growth budget is used up"
    )
    return [_channels(m, rw, start, end) for start, end in pairwise(np.cumsum([0, *sizes]))]


def _channels(m: Match, rw: Rewriter, start: int, end: int) -> Value:
    """The matched Conv, and the activation behind it, of some output channels only."""
    w = rw.const(np.ascontiguousarray(constant_of(m, m.w).array[start:end]))
    b = None if m.b is None else rw.const(np.ascontiguousarray(constant_of(m, m.b).array[start:end]))
    part: Value = rw.op.Conv(m.x, w, b, **m.conv.attributes)
    if hasattr(m, "sigmoid"):
        part = rw.op.Mul(part, rw.op.Sigmoid(part))
    elif hasattr(m, "activation"):
        part = getattr(rw.op, m.activation.op_type)(part, **m.activation.attributes)
    return part
