"""Attention takes heads as they come: shared by several queries, side by side, and a cache before them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from optimizer.analysis import Dim
from optimizer.ir import Node, Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.heads import Rows, merged_rows_of, rows_of
from passes.known import constant_of, shape_of
from passes.view_chain import perm_of


@graph_optimizer(P.Attention("q", "k", "v", P.rest("more"), name="attention"), tag="E2")
def share_repeated_heads(m: Match, rw: Rewriter) -> Value:
    """Attention(q, Reshape(Expand(k)), Reshape(Expand(v))) -> Attention(q, Squeeze(k), Squeeze(v))

    Where Expand, Tile or Concat repeats each head, on an axis of its own behind that of the heads, or a
    Gather does, [0, 0, 1, 1]: Attention lets several heads of q share one of k and v by itself.
    """
    m.require(len(m.attention.outputs) == 1 and m.rank(m.q) == 4, "its heads are counted")
    (k, of_k), (v, of_v) = (_few_heads(m, rw, value) for value in (m.k, m.v))
    m.require(of_k == of_v, "keys and values are repeated differently")
    made: Value = rw.op.Attention(m.q, k, v, *m.more, **m.attention.attributes)
    return made


def _few_heads(m: Match, rw: Rewriter, value: Value) -> tuple[Value, Dim]:
    """Heads of which ``value`` repeats each, one behind the other, and how many they are.

    Raises:
        Refusal: it is not known to.
    """
    node = m.producer(value)
    source = None if node is None else node.inputs[0]
    heads = None
    if node is not None and source is not None and node.op_type == "Gather":
        heads = _gathered_heads(m, node, source)
    wide = m.producer(source)
    if node is not None and wide is not None and node.op_type == "Reshape":
        few = wide.inputs[0]
        if few is not None and _repeats_each(m, few, wide, shape_of(m, value)):
            return rw.op.Squeeze(few, rw.const(np.array([2], np.int64))), shape_of(m, few)[1]
    if heads is None or source is None:
        m.refuse("it is not each head that is repeated")
    return source, Dim.of(heads)


def _gathered_heads(m: Match, gather: Node, source: Value) -> int | None:
    """How many heads a Gather repeats one by one; ``None`` where it does otherwise."""
    shape, index = m.shape(source), m.array(gather.input(1))
    heads = shape[1].value if shape and len(shape) == 4 and gather.attr("axis", 0) in (1, -3) else None
    if not heads or index is None or index.ndim != 1 or index.size % heads:
        return None
    in_order = np.arange(heads).repeat(index.size // heads)
    return heads if np.array_equal(index % heads, in_order) else None


def _repeats_each(m: Match, few: Value, wide: Node, many: Sequence[Dim]) -> bool:
    """Whether ``wide`` repeats heads along an axis of their own, that is merged with theirs in ``many``."""
    before, between = shape_of(m, few), shape_of(m, wide.value())
    if len(before) != 5 or len(between) != 5 or before[2] != 1:
        return False
    if wide.op_type not in ("Expand", "Tile") and not (
        wide.op_type == "Concat" and set(wide.inputs) == {few}
    ):
        return False
    kept = (*before[:2], *before[3:])
    return (*between[:2], *between[3:]) == kept and tuple(many) == (
        kept[0],
        kept[1] * between[2],
        *kept[2:],
    )


# -------------------------------------------------------------------- heads side by side


@graph_optimizer(
    P.Reshape(
        P.Transpose(
            P.Attention("q", "k", "v", P.rest("more"), name="attention").once(), name="transpose"
        ).once(),
        "target",
        name="root_view",
    ),
    tag="E0",
)
def take_heads_side_by_side(m: Match, rw: Rewriter) -> Value:
    """Reshape(Transpose(Attention(Transpose(Reshape(q)), ...))) -> Attention<q_num_heads>(q, ...)

    Attention also takes heads side by side, (batch, tokens, heads * size), and returns them so.
    """
    shape = shape_of(m, m.transpose.value())
    perm = perm_of(m.transpose, len(shape))
    m.require(perm in ((0, 2, 1, 3), (2, 0, 1, 3), (1, 0, 2)), "heads and tokens are not swapped")
    m.require(len(perm) == 4 or _is_for_all_heads(m), "what it is given is for single heads")
    rows = [(rows_of if len(perm) == 4 else merged_rows_of)(m, value) for value in (m.q, m.k, m.v)]
    found = [row for row in rows if row is not None]
    m.require(len(found) == 3, "an operand does not come with its heads side by side")
    q, k, _ = found
    attributes = {**m.attention.attributes, "q_num_heads": q.heads, "kv_num_heads": k.heads}
    count = len(m.attention.outputs)
    made = rw.op.Attention(*_operands(m, rw, found), *m.more, outputs=count, **attributes)
    result: Value = made if isinstance(made, Value) else made[0]
    for place in range(1, count):
        rw.replace_too(m.attention.value(place), made[place])
    if perm != (0, 2, 1, 3):
        result = rw.op.Transpose(result, perm=[1, 0, 2])
    lead = shape[:2] if len(shape) == 4 else shape_of(m, q.value)[:2]
    if shape_of(m, m.root.value()) == (*lead, shape[-1] * q.heads):
        return result
    target = constant_of(m, m.target).array.reshape(-1)
    copies = [i for i, n in enumerate(target) if n == 0 and not m.root_view.attr("allowzero", 0)]
    m.require(all(i < len(shape) - 2 for i in copies), "the view copies a dimension of the heads")
    return rw.op.Reshape(result, m.target, **m.root_view.attributes)


def _is_for_all_heads(m: Match) -> bool:
    """Whether an Attention of one head each may get batch and heads apart."""
    counts = [m.attention.attr(name) for name in ("q_num_heads", "kv_num_heads")]
    given = [value for value in m.more if value is not None]
    return counts == [1, 1] and (not given or (len(m.more) == 1 and m.rank(given[0]) == 2))


def _operands(m: Match, rw: Rewriter, rows: Sequence[Rows]) -> list[Value]:
    """The three operands; parts of one value by one Split."""
    if all(row.part == (0, 1) for row in rows):
        return [_operand(rw, row) for row in rows]
    sources = {(row.value, row.part[1]) for row in rows}
    m.require(len(sources) == 1, "the operands are parts of different values")
    ((source, count),) = sources
    parts = rw.op.Split(source, outputs=count, axis=2, num_outputs=count)
    return [parts[row.part[0]] for row in rows]


def _operand(rw: Rewriter, row: Rows) -> Value:
    """The rows, batch first, and through their RotaryEmbedding."""
    value = rw.op.Transpose(row.value, perm=[1, 0, 2]) if row.tokens_first else row.value
    if row.rotary is None:
        return value
    attributes: dict[str, Any] = {**row.rotary.attributes, "num_heads": row.heads}
    made: Value = rw.op.RotaryEmbedding(value, *row.rotary.inputs[1:], **attributes)
    return made
