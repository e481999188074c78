"""onnxruntime's own attention, for models below the operator set that has one.

Measured on one thread of onnxruntime 1.32: result / original of 0.85 for one new token behind a cache
of 128 or 512, 0.96 to 1.00 for whole sequences without a mask, 0.98 to 1.01 with one. Its
GroupQueryAttention is slower than Attention of operator set 23 (0.80 against 0.62 behind a cache of
512), SkipLayerNormalization gives 1.00 where onnxruntime makes it itself and 1.09 to 1.23 in whole
models where it does not, BiasGelu it always makes itself: no rule makes these.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from optimizer.analysis import Dim
from optimizer.ir import DType, Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.attention_cache import leads_to
from passes.contrib import MICROSOFT, import_domain
from passes.heads import Rows, rows_of, rows_of_swapped
from passes.known import as_stored, shape_of
from passes.scores import Scores, scores_of, unscaled
from passes.view_chain import perm_of


@graph_optimizer(
    P.Reshape(
        P.Transpose(
            P.MatMul(P.Softmax("scores", name="softmax").once(), "v", name="weighted").once(),
            name="transpose",
        ).once(),
        "target",
    ),
    tag="E2",
)
def fuse_multi_head_attention(m: Match, rw: Rewriter) -> Value:
    """Reshape(Transpose(MatMul(Softmax(MatMul(q, k) * s), v))) -> com.microsoft.MultiHeadAttention(q, k, v)

    Below opset 23, of heads that lie side by side before and after it, also behind a cache; with a mask,
    which may only be added, for fewer nodes.
    """
    m.require(m.ctx.settings.target == "onnxruntime", "the target is not onnxruntime")
    m.require(m.opset() < 23, "there is a standard operator")
    m.require(m.dtype(m.v) is DType.FLOAT, "not float32")
    parts = _parts(m)
    q, by_q = unscaled(m, parts.product.inputs[0])
    k, by_k = unscaled(m, parts.product.inputs[1])
    operands = _operands(m, q, k)
    scale = parts.scale * by_q * by_k
    m.require(math.isfinite(scale) and scale > 0, "the scale is not positive")
    mask = _mask(m, parts)
    m.require(import_domain(m.ctx, m, MICROSOFT, 1), "the model imports another version of com.microsoft")
    rows = [operand.rows.value for operand in operands]
    caches = [m.graph.node(o.joined.node).inputs[0] if o.joined else None for o in operands[1:]]
    attributes: dict[str, Any] = {"num_heads": operands[0].rows.heads, "scale": as_stored(scale)}
    given = (*rows, None, None, mask, *caches)
    if not any(caches):
        return rw.op.MultiHeadAttention(*given, domain=MICROSOFT, **attributes)
    made = rw.op.MultiHeadAttention(*given, outputs=3, domain=MICROSOFT, **attributes)
    for operand, present in zip(operands[1:], made[1:], strict=True):
        assert operand.joined is not None
        rw.replace_too(operand.joined, present)
    return made[0]


def _parts(m: Match) -> Scores:
    """The scores, to which at most one mask is added."""
    m.require(m.rank(m.v) == 4, "the operands do not have four axes")
    axis = m.softmax.attr("axis", -1 if m.opset() >= 13 else 1)
    m.require(axis in (-1, 3), "the softmax runs over another axis")
    parts = scores_of(m, m.scores)
    if parts is None or parts.hidden is not None or parts.bound is not None or len(parts.added) > 1:
        m.refuse("no product of queries and keys is found")
    return parts


@dataclass(frozen=True, slots=True)
class _Operand:
    """Heads side by side, which are ``joined`` behind those of a cache."""

    rows: Rows
    joined: Value | None = None


def _operands(m: Match, q: Value, k: Value) -> list[_Operand]:
    found = [_operand(m, q), _operand(m, k, swapped=True), _operand(m, m.v)]
    given = [operand for operand in found if operand is not None]
    m.require(len(given) == 3, "an operand does not come with its heads side by side")
    first = given[0].rows
    same = all(o.rows.heads == first.heads for o in given) and given[0].joined is None
    m.require(same and (given[1].joined is None) == (given[2].joined is None), "heads are shared")
    batches = [shape_of(m, operand.rows.value)[0] for operand in given]
    m.require(all(batch == batches[0] for batch in batches), "batch or heads are broadcast")
    m.require(perm_of(m.transpose, 4) == (0, 2, 1, 3), "heads and tokens are not swapped")
    size = shape_of(m, m.v)[3] * Dim.of(first.heads)
    whole = (*shape_of(m, first.value)[:2], size)
    m.require(shape_of(m, m.root.value()) == whole, "heads and tokens are not swapped")
    return given


def _operand(m: Match, value: Value, *, swapped: bool = False) -> _Operand | None:
    rows = rows_of_swapped(m, value) if swapped else rows_of(m, value)
    if rows is not None:
        return _Operand(rows) if _is_plain(rows) else None
    reader, node = m.weighted, m.producer(value)
    if swapped and node is not None:
        is_swap = node.op_type == "Transpose" and perm_of(node, 4) == (0, 1, 3, 2)
        reader, node = node, m.producer(node.inputs[0]) if is_swap else None
    if node is None or node.op_type != "Concat" or node.attr("axis") not in (2, -2) or len(node.inputs) != 2:
        return None
    rows = None if node.inputs[1] is None else rows_of(m, node.inputs[1])
    apart = not m.single_use(node.value()) and not leads_to(m, node, reader, m.root)
    return _Operand(rows, node.value()) if rows is not None and _is_plain(rows) and apart else None


def _is_plain(rows: Rows) -> bool:
    return rows.part == (0, 1) and rows.rotary is None and not rows.tokens_first


def _mask(m: Match, parts: Scores) -> Value | None:
    """What is added to the scores, of four axes, the last two not stretched."""
    if not parts.added:
        return None
    m.require(m.ctx.settings.objective == "nodes", "it would be slower with a mask")
    mask, sizes = shape_of(m, parts.added[0]), shape_of(m, parts.product.value())
    fits = len(mask) == 4 and mask[2:] == sizes[2:]
    m.require(
        fits and all(a in (1, b) for a, b in zip(mask, sizes, strict=True)), "the mask may stretch the scores"
    )
    return parts.added[0]
