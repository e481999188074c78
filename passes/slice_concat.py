"""Slice, Concat and Split: chains merged, inverses cancelled."""

from __future__ import annotations

import sys
from bisect import bisect_right
from itertools import accumulate, groupby

import numpy as np

from optimizer.ir import Node, Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.known import constant_of, rank_of

Cut = tuple[int, int, int]
"""Start, end and step along one axis."""


def _cuts(m: Match, node: Node, rank: int) -> dict[int, Cut]:
    """What a Slice takes of each axis.

    Raises:
        Refusal: it is not constant.
    """
    if "starts" in node.attributes:
        starts, ends = list(node.attr("starts")), list(node.attr("ends"))
        axes, steps = list(node.attr("axes", range(len(starts)))), [1] * len(starts)
    else:
        starts, ends, axes, steps = (_ints(m, node.input(slot)) for slot in (1, 2, 3, 4))
    axes = axes or list(range(len(starts)))
    steps = steps or [1] * len(starts)
    return {axis % rank: cut for axis, cut in zip(axes, zip(starts, ends, steps, strict=True), strict=True)}


def _ints(m: Match, value: Value | None) -> list[int]:
    if value is None:
        return []
    return [int(i) for i in constant_of(m, value).array.reshape(-1)]


def _sliced(m: Match, rw: Rewriter, x: Value, cuts: dict[int, Cut]) -> Value:
    starts, ends, steps = ([cut[i] for cut in cuts.values()] for i in range(3))
    if m.opset() < 10:
        return rw.op.Slice(x, starts=starts, ends=ends, axes=list(cuts))
    given = [np.array(v, np.int64) for v in (starts, ends, list(cuts), steps)]
    return rw.op.Slice(x, *map(rw.const, given[: 4 if any(s != 1 for s in steps) else 3]))


@graph_optimizer(P.Slice(P.Slice("x", P.rest("a"), name="inner").once(), P.rest("b"), name="outer"), tag="E0")
def merge_slices(m: Match, rw: Rewriter) -> Value:
    """Slice(Slice(x)) -> Slice(x)

    Cuts of different axes stand side by side; those of one axis are composed where both count from
    the front by ones.
    """
    rank = rank_of(m, m.x)
    cuts = _cuts(m, m.inner, rank)
    for axis, (start, end, step) in _cuts(m, m.outer, rank).items():
        if axis in cuts:
            first, last, stride = cuts[axis]
            m.require(step == stride == 1, "both cut one axis in steps")
            m.require(min(start, end, first, last) >= 0, "an axis is counted from its end twice")
            start, end = first + start, min(last, first + end)
        cuts[axis] = start, min(end, sys.maxsize), step
    return _sliced(m, rw, m.x, cuts)


@graph_optimizer(P.Concat(P.rest("parts", least=2), name="outer"), tag="E0")
def merge_concats(m: Match, rw: Rewriter) -> Value:
    """Concat(a, Concat(b, c)) -> Concat(a, b, c), along one axis"""
    parts: list[Value | None] = []
    for part in m.parts:
        node = m.producer(part)
        inner = node is not None and node.op == "Concat" and m.single_use(part) and not m.ctx.is_kept(node)
        same = inner and _axis(m, node) == _axis(m, m.outer)
        parts.extend(node.inputs if node is not None and same else [part])
    m.require(len(parts) > len(m.parts), "no operand is joined along the same axis")
    return rw.op.Concat(*parts, **m.outer.attributes)


def _axis(m: Match, node: Node | None) -> int:
    assert node is not None
    axis: int = node.attr("axis", 1)
    return axis if axis >= 0 else axis + rank_of(m, node.value())


@graph_optimizer(P.Concat(P.rest("parts", least=2), name="concat"), tag="E0")
def merge_constant_neighbours(m: Match, rw: Rewriter) -> Value:
    """Concat(x, [1], [2]) -> Concat(x, [1, 2])"""
    groups = [(known, list(run)) for known, run in groupby(m.parts, key=lambda v: m.tensor(v) is not None)]
    m.require(any(known and len(run) > 1 for known, run in groups), "no neighbours are constants")
    parts: list[Value] = []
    for known, run in groups:
        if not known or len(run) == 1:
            parts.extend(run)
            continue
        tensors = [constant_of(m, v) for v in run]
        copied = sum(t.nbytes for t, v in zip(tensors, run, strict=True) if not m.single_use(v))
        m.require(m.ctx.may_grow(copied), "the constants are used elsewhere, and the size limit is reached")
        axis = m.concat.attr("axis", 1)
        parts.append(rw.const(np.concatenate([t.array for t in tensors], axis), like=tensors[0].dtype))
    return parts[0] if len(parts) == 1 else rw.op.Concat(*parts, **m.concat.attributes)


@graph_optimizer(P.Concat(P.rest("parts", least=2), name="concat"), tag="E0")
def drop_concat_of_split(m: Match, rw: Rewriter) -> Value:
    """Concat(Split(x)) -> x, where all pieces are joined again in order"""
    split = m.producer(m.parts[0])
    m.require(split is not None and split.op == "Split", "the operands are not the pieces of a Split")
    assert split is not None
    pieces = tuple(split.value(i) for i in range(len(split.outputs)))
    m.require(m.parts == pieces, "the pieces are not all there in order")
    axis, rank = split.attr("axis", 0), rank_of(m, m.root.value())
    m.require(axis % rank == _axis(m, m.concat), "the pieces are joined along another axis")
    assert split.inputs[0] is not None
    return split.inputs[0]


# -------------------------------------------------------------------- a part of a Concat


def _taken(m: Match, concat: Node, start: int, end: int) -> list[Value]:
    """The operands of a Concat that lie from ``start`` to ``end`` along its axis."""
    ends = _ends(m, concat)
    total = ends[-1]
    start, end = (min(max(i + total if i < 0 else i, 0), total) for i in (start, end))
    starts = [0, *ends[:-1]]
    m.require(start in starts and end in ends and start < end, "an operand is cut")
    return [p for p, a, b in zip(concat.inputs, starts, ends, strict=True) if p and start <= a and b <= end]


def _ends(m: Match, concat: Node) -> list[int]:
    """Where each operand of a Concat ends along its axis."""
    axis = _axis(m, concat)
    sizes = []
    for part in concat.inputs:
        shape = m.shape(part)
        m.require(shape is not None and shape[axis].value is not None, "the size of an operand is not known")
        sizes.append(shape[axis].value if shape is not None else 0)
    return list(accumulate(size or 0 for size in sizes))


def _joined(rw: Rewriter, parts: list[Value], concat: Node) -> Value:
    if len(parts) == 1:
        return parts[0]
    return rw.op.Concat(*parts, axis=concat.attr("axis", 1))


@graph_optimizer(P.Slice(P.Concat(P.rest("parts"), name="concat"), P.rest("bounds"), name="slice"), tag="E0")
def take_operands_of_concat(m: Match, rw: Rewriter) -> Value:
    """Slice(Concat(a, b, c), what is b) -> b"""
    cuts = _cuts(m, m.slice, rank_of(m, m.concat.value()))
    m.require(list(cuts) == [_axis(m, m.concat)], "other axes are cut")
    ((start, end, step),) = cuts.values()
    m.require(step == 1, "it cuts in steps")
    return _joined(rw, _taken(m, m.concat, start, end), m.concat)


@graph_optimizer(P.Gather(P.Concat(P.rest("parts"), name="concat"), "i"), constants="i", tag="E0")
def gather_from_operand_of_concat(m: Match, rw: Rewriter) -> Value:
    """Gather(Concat(a, b, c), i) -> Gather(b, i - len(a)), where b has that element"""
    index = constant_of(m, m.i).array
    m.require(index.size == 1, "several elements are taken")
    rank = rank_of(m, m.concat.value())
    m.require(m.root.attr("axis", 0) % rank == _axis(m, m.concat), "the elements lie along another axis")
    at = int(index.item())
    ends = _ends(m, m.concat)
    at += ends[-1] if at < 0 else 0
    m.require(0 <= at < ends[-1], "the index is out of range")
    place = bisect_right(ends, at)
    rest = at - (ends[place - 1] if place else 0)
    return rw.op.Gather(m.parts[place], rw.const(np.full_like(index, rest)), axis=m.root.attr("axis"))
