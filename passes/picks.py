"""Slice, Gather and Split after each other, or side by side before a Concat: one of them does it all."""

from __future__ import annotations

import numpy as np

from optimizer.ir import Node, Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.channel_picks import Pick, picks_of
from passes.known import constant_of, ints_of, rank_of, shape_of
from passes.view_chain import sliced

MOST = 256
"""Indices that a new Gather may have."""
FEW = 4
"""Indices along the last axis that are gathered, one number at a time, as fast as slices are copied."""


@graph_optimizer(
    P.any_of(
        P.Slice(P.one_of("Gather", "Split", "Slice")(P.rest("first"), name="inner").once(), P.rest("then")),
        P.Gather(P.one_of("Gather", "Split", "Slice")(P.rest("first"), name="inner").once(), P.rest("then")),
        P.Slice(P.Split(P.rest("first"), name="inner").out(1).once(), P.rest("then")),
        P.Gather(P.Split(P.rest("first"), name="inner").out(1).once(), P.rest("then")),
    ),
    tag="E0",
)
def pick_once(m: Match, rw: Rewriter) -> Value:
    """Gather(Slice(x), i) -> Gather(x, i'), and Slice(Gather(x, i)), Gather(Gather(x, i), j) likewise

    Along one axis of known size; of a Split, where nobody reads its other parts.
    """
    axis = _axis_of(m, m.root)
    source = m.root.inputs[0]
    inner = next((pick for pick in picks_of(m, m.inner, axis) if pick.result == source), None)
    if inner is None:
        return m.refuse("what it takes is not known")
    readers = sum(len(m.graph.uses(m.inner.value(i))) for i in range(len(m.inner.outputs)))
    m.require(readers == 1, "other parts are read")
    if m.root.op_type == "Gather" and not constant_of(m, m.root.inputs[1]).shape:
        index = constant_of(m, m.root.inputs[1]).array
        m.require(-len(inner.taken) <= int(index) < len(inner.taken), "the index is out of range")
        return rw.op.Gather(inner.source, rw.const(np.full_like(index, inner.taken[int(index)])), axis=axis)
    outer = picks_of(m, m.root, axis)
    m.require(outer, "what it takes is not known")
    return taken(m, rw, inner.source, [inner.taken[i] for i in outer[0].taken], axis)


def _axis_of(m: Match, node: Node) -> int:
    rank = rank_of(m, node.inputs[0] or node.value())
    if node.op_type == "Slice":
        axes = ints_of(m, node, "axes", 3) or [0]
        m.require(len(axes) == 1, "it takes of several axes")
        return axes[0] % rank
    axis: int = node.attr("axis", 0) % rank
    return axis


def taken(m: Match, rw: Rewriter, source: Value, indices: list[int], axis: int) -> Value:
    """``source`` with only these indices along ``axis``, by the simplest operator.

    Raises:
        Refusal: there are none, or too many in no order.
    """
    m.require(indices, "nothing is taken")
    size = shape_of(m, source)[axis].value
    if indices == list(range(size or 0)):
        return source
    step = indices[1] - indices[0] if len(indices) > 1 else 1
    if (
        step > 0
        and indices == list(range(indices[0], indices[-1] + 1, step))
        and (step == 1 or m.opset() > 9)
    ):
        return sliced(m, rw, source, axis, indices[0], indices[-1] + 1, step)
    gathers = any(node.op_type == "Gather" for node in (m.root, *map(m.producer, m.root.inputs)) if node)
    inner = axis < rank_of(m, source) - 1
    m.require(gathers or inner or len(indices) <= FEW, "it would be slower")
    m.require(len(indices) <= MOST, "there would be too many indices")
    return rw.op.Gather(source, rw.const(np.array(indices, np.int64)), axis=axis)


@graph_optimizer(P.Concat(P.rest("parts", least=2), name="concat"), tag="E0")
def join_picks(m: Match, rw: Rewriter) -> Value:
    """Concat(Slice(x, 0:2), Slice(x, 2:3)) -> Slice(x, 0:3), and of Gather and Split likewise

    Neighbours that take of one value along the axis that they are joined along.
    """
    axis = m.concat.attr("axis", 1) % rank_of(m, m.concat.value())
    picks = [_own_pick(m, part, axis) for part in m.parts]
    joined: list[Value] = []
    place = 0
    while place < len(picks):
        first = picks[place]
        end = place + 1
        while first is not None and end < len(picks) and _same_source(first, picks[end]):
            end += 1
        run = [pick for pick in picks[place:end] if pick is not None]
        if len(run) < 2:
            joined.append(m.parts[place])
        else:
            joined.append(taken(m, rw, run[0].source, [i for pick in run for i in pick.taken], axis))
        place = end
    m.require(len(joined) < len(m.parts), "no neighbours take of one value")
    return joined[0] if len(joined) == 1 else rw.op.Concat(*joined, **m.concat.attributes)


def _same_source(one: Pick, other: Pick | None) -> bool:
    return other is not None and one.source == other.source


def _own_pick(m: Match, part: Value, axis: int) -> Pick | None:
    """What an operand takes of a value, where only the Concat reads the operand."""
    node = m.producer(part)
    if node is None or node.op_type not in ("Slice", "Gather", "Split") or m.ctx.is_kept(node):
        return None
    if not m.single_use(part):
        return None
    return next((pick for pick in picks_of(m, node, axis) if pick.result == part), None)


@graph_optimizer(P.Split(P.Concat(P.rest("parts"), name="concat"), P.maybe("sizes"), name="split"), tag="E0")
def take_parts_of_concat(m: Match, rw: Rewriter) -> list[Value]:
    """Split(Concat(a, b)) -> a, b, where it cuts between the operands"""
    rank = rank_of(m, m.concat.value())
    axis = m.concat.attr("axis", 1) % rank
    m.require(m.split.attr("axis", 0) % rank == axis, "it cuts another axis")
    wanted = [shape_of(m, m.split.value(i))[axis].value for i in range(len(m.split.outputs))]
    given = [shape_of(m, part)[axis].value for part in m.parts]
    m.require(None not in wanted and None not in given, "the size of an operand is not known")
    results: list[Value] = []
    left = list(zip(m.parts, given, strict=True))
    for size in wanted:
        group: list[Value] = []
        total = 0
        while left and (total < (size or 0) or not group):
            part, width = left.pop(0)
            group.append(part)
            total += width or 0
        m.require(total == size, "an operand is cut")
        results.append(group[0] if len(group) == 1 else rw.op.Concat(*group, axis=m.concat.attr("axis", 1)))
    m.require(not left, "an operand is cut")
    return results
