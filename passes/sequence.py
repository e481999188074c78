"""Sequences and optionals that are made and taken apart again."""

from __future__ import annotations

import numpy as np

from optimizer.ir import Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.known import constant_of, rank_of

_MADE = P.SequenceConstruct(P.rest("parts"), name="made")


@graph_optimizer(P.SequenceAt(_MADE, "i"), constants="i", tag="E0")
def take_from_new_sequence(m: Match, rw: Rewriter) -> Value:
    """SequenceAt(SequenceConstruct(a, b), 1) -> b"""
    index = int(constant_of(m, m.i).array.item())
    m.require(-len(m.parts) <= index < len(m.parts), "the index is out of range")
    return m.parts[index]


@graph_optimizer(P.SequenceLength(_MADE), tag="E0")
def count_new_sequence(m: Match, rw: Rewriter) -> Value:
    """SequenceLength(SequenceConstruct(a, b)) -> 2"""
    return rw.const(np.array(len(m.parts), np.int64))


@graph_optimizer(P.ConcatFromSequence(_MADE, name="join"), tag="E0")
def join_new_sequence(m: Match, rw: Rewriter) -> Value:
    """ConcatFromSequence(SequenceConstruct(a, b)) -> Concat(a, b)"""
    m.require(not m.join.attr("new_axis", 0), "the tensors are stacked, not joined")
    return rw.op.Concat(*m.parts, axis=m.join.attr("axis"))


@graph_optimizer(
    P.SequenceInsert(P.any_of(_MADE, P.SequenceEmpty(name="empty")), "x", P.maybe("i")),
    constants="i",
    tag="E0",
)
def insert_into_new_sequence(m: Match, rw: Rewriter) -> Value:
    """SequenceInsert(SequenceConstruct(a, b), x) -> SequenceConstruct(a, b, x)"""
    parts = list(m.parts) if m.nodes[1].op_type == "SequenceConstruct" else []
    index = len(parts) if m.i is None else int(constant_of(m, m.i).array.item())
    m.require(-len(parts) <= index <= len(parts), "the index is out of range")
    parts.insert(index, m.x)
    return rw.op.SequenceConstruct(*parts)


@graph_optimizer(
    P.SequenceAt(P.SplitToSequence("x", P.maybe("sizes"), name="split"), "i"),
    constants="sizes i",
    tag="E0",
)
def take_from_split(m: Match, rw: Rewriter) -> Value:
    """SequenceAt(SplitToSequence(x), i) -> Slice(x, piece i), or Gather(x, i) where the axis goes"""
    index, axis = int(constant_of(m, m.i).array.item()), m.split.attr("axis", 0)
    m.require(index >= 0, "the piece is counted from the end")
    if m.sizes is None and not m.split.attr("keepdims", 1):
        return rw.op.Gather(m.x, rw.const(np.array(index, np.int64)), axis=axis)
    sizes = np.array(1) if m.sizes is None else constant_of(m, m.sizes).array
    m.require(not sizes.ndim or index < len(sizes), "the index is out of range")
    start = int(sizes[:index].sum()) if sizes.ndim else index * int(sizes)
    end = start + int(sizes[index] if sizes.ndim else sizes)
    return rw.op.Slice(m.x, *(rw.const(np.array([v], np.int64)) for v in (start, end, axis)))


@graph_optimizer(P.SequenceErase(_MADE, P.maybe("i")), constants="i", tag="E0")
def erase_from_new_sequence(m: Match, rw: Rewriter) -> Value:
    """SequenceErase(SequenceConstruct(a, b, c), 1) -> SequenceConstruct(a, c)"""
    index = -1 if m.i is None else int(constant_of(m, m.i).array.item())
    m.require(-len(m.parts) <= index < len(m.parts), "the index is out of range")
    m.require(len(m.parts) > 1, "nothing would be left of the sequence")
    return rw.op.SequenceConstruct(*(part for k, part in enumerate(m.parts) if k != index % len(m.parts)))


@graph_optimizer(
    P.ConcatFromSequence(P.SplitToSequence("x", P.maybe("sizes"), name="split"), name="join"), tag="E0"
)
def join_split_sequence(m: Match, rw: Rewriter) -> Value:
    """ConcatFromSequence(SplitToSequence(x)) -> x, along one axis"""
    rank = rank_of(m, m.x)
    same = (m.split.attr("axis", 0) - m.join.attr("axis", 0)) % rank == 0
    m.require(same, "the pieces are joined along another axis")
    dropped = m.sizes is None and not m.split.attr("keepdims", 1)
    m.require(dropped == bool(m.join.attr("new_axis", 0)), "the axis is dropped, or there is a new one")
    return m.x


@graph_optimizer(P.OptionalGetElement("x"), tag="E0")
def drop_get_of_tensor(m: Match, rw: Rewriter) -> Value:
    """OptionalGetElement(x) -> x, where x is a tensor"""
    fact = m.facts.of(m.x)
    m.require(fact.type is None and fact.dtype is not None, "it may be an optional")
    return m.x


@graph_optimizer(P.OptionalGetElement(P.Optional("x")), tag="E0")
def take_from_new_optional(m: Match, rw: Rewriter) -> Value:
    """OptionalGetElement(Optional(x)) -> x"""
    return m.x


@graph_optimizer(P.OptionalHasElement(P.Optional("x")), tag="E0")
def ask_new_optional(m: Match, rw: Rewriter) -> Value:
    """OptionalHasElement(Optional(x)) -> true"""
    return rw.const(np.array(True))
