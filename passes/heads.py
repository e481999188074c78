"""Heads of (batch, heads, tokens, size) that come from lying side by side."""

from __future__ import annotations

from dataclasses import dataclass, replace

from optimizer.analysis import Dim
from optimizer.ir import Node, Value
from optimizer.rewrite import Match
from passes.view_chain import perm_of


@dataclass(frozen=True, slots=True)
class Rows:
    """Heads of (batch, heads, tokens, size) found side by side in (batch, tokens, heads * size).

    Attributes:
        part: which of how many parts of the last axis they are: (position, count).
        rotary: the RotaryEmbedding that they go through.
        tokens_first: whether it is (tokens, batch, heads * size).
    """

    value: Value
    heads: int
    part: tuple[int, int] = (0, 1)
    rotary: Node | None = None
    tokens_first: bool = False


def rows_of(m: Match, value: Value) -> Rows | None:
    """Where the heads of a value come from; ``None`` where they are not found side by side."""
    node = m.producer(value)
    if node is None:
        return None
    if node.op_type == "Gather":
        return _rows_of_parts(m, node)
    if node.op_type in ("Unsqueeze", "Reshape"):
        return _single_head(m, node)
    if node.op_type == "RotaryEmbedding" and node.inputs[0] is not None:
        row = rows_of(m, node.inputs[0])
        return None if row is None or row.rotary or row.part != (0, 1) else replace(row, rotary=node)
    return _split_rows(m, node, perm_of(node, 4)) if node.op_type == "Transpose" else None


def rows_of_swapped(m: Match, value: Value | None) -> Rows | None:
    """Where the heads of (batch, heads, size, tokens) come from."""
    node = m.producer(value)
    if node is None or node.op_type != "Transpose" or node.inputs[0] is None:
        return None
    perm = perm_of(node, 4)
    if perm == (0, 1, 3, 2):
        return rows_of(m, node.inputs[0])
    return _split_rows(m, node, (perm[0], perm[1], perm[3], perm[2]))


def _split_rows(m: Match, transpose: Node, perm: tuple[int, ...]) -> Rows | None:
    """Of Transpose(Reshape(x, [batch, tokens, heads, size])); the tokens may come before the batch."""
    view = _view_of_rows(m, transpose.inputs[0], 4)
    if perm not in ((0, 2, 1, 3), (1, 2, 0, 3)) or view is None:
        return None
    value, source, shape = view
    heads = shape[2].value
    if not heads or source != (shape[0], shape[1], shape[2] * shape[3]):
        return None
    return Rows(value, heads, tokens_first=perm != (0, 2, 1, 3))


def merged_rows_of(m: Match, value: Value) -> Rows | None:
    """Heads of (batch * heads, tokens, size) from (tokens, batch, heads * size), tokens first."""
    node = m.producer(value)
    if node is None or node.op_type != "Transpose" or perm_of(node, 3) != (1, 0, 2):
        return None
    view = _view_of_rows(m, node.inputs[0], 3)
    if view is None:
        return None
    before, source, shape = view
    heads = source[2].quotient(shape[2])
    if heads is None or not heads.value or shape != (source[0], source[1] * heads, shape[2]):
        return None
    return Rows(before, heads.value, tokens_first=True)


def _single_head(m: Match, view: Node) -> Rows | None:
    """(batch, tokens, size) as (batch, 1, tokens, size)."""
    source, shape = m.shape(view.inputs[0]), m.shape(view.value())
    if source is None or shape is None or len(source) != 3 or view.inputs[0] is None:
        return None
    return Rows(view.inputs[0], 1) if shape == (source[0], Dim.of(1), *source[1:]) else None


def _rows_of_parts(m: Match, gather: Node) -> Rows | None:
    """One part of Transpose(Reshape(x, [batch, tokens, parts, heads, size]), [2, 0, 3, 1, 4])."""
    index, transpose = m.array(gather.input(1)), m.producer(gather.inputs[0])
    if index is None or index.shape or gather.attr("axis", 0) != 0:
        return None
    if transpose is None or transpose.op_type != "Transpose" or perm_of(transpose, 5) != (2, 0, 3, 1, 4):
        return None
    view = _view_of_rows(m, transpose.inputs[0], 5)
    if view is None:
        return None
    value, source, shape = view
    count, heads = shape[2].value, shape[3].value
    if not count or not heads or source != (shape[0], shape[1], shape[2] * shape[3] * shape[4]):
        return None
    return Rows(value, heads, (int(index) % count, count))


def _view_of_rows(
    m: Match, value: Value | None, rank: int
) -> tuple[Value, tuple[Dim, ...], tuple[Dim, ...]] | None:
    """What a Reshape of three axes to ``rank`` reads, with the shapes before and after it."""
    view = m.producer(value)
    if view is None or view.op_type != "Reshape" or view.inputs[0] is None:
        return None
    source, shape = m.shape(view.inputs[0]), m.shape(view.value())
    if source is None or shape is None or len(source) != 3 or len(shape) != rank:
        return None
    return view.inputs[0], source, shape
