"""Scaled dot products spelled out become Attention, and its operands are taken as they come."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from optimizer.analysis import Dim
from optimizer.ir import DType, Node, Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.known import as_stored, constant_of, shape_of
from passes.view_chain import perm_of

SCORES = P.MatMul("q", "k", name="product").once()
SCALED = P.any_of(
    P.Mul(SCORES, P.const("factor"), name="scaling").commutes().once(),
    P.Div(SCORES, P.const("factor"), name="scaling").once(),
    SCORES,
)
MASKED = P.any_of(
    P.Add(P.Add(SCALED, "bias").commutes().once(), "mask").commutes().once(),
    P.Add(SCALED, "mask").commutes().once(),
    SCALED,
)
WEIGHTS = P.Softmax(MASKED, name="softmax").once()


@graph_optimizer(P.MatMul(WEIGHTS, "v"), tag="E2")
def fuse_attention(m: Match, rw: Rewriter) -> Value:
    """MatMul(Softmax(MatMul(q, k) * s + mask), v) -> Attention(q, Transpose(k), v, mask, scale=s)

    Of four axes each, (batch, heads, tokens, size of a head). With a mask it is a little slower on
    runtimes, and then only taken for fewer nodes.
    """
    m.require(m.opset() >= 23, "Attention needs opset 23")
    m.require(m.dtype(m.v) in (DType.FLOAT, DType.FLOAT16), "not float32 or float16")
    scores = shape_of(m, m.product.value())
    m.require(len(scores) == 4, "the operands do not have four axes")
    m.require(m.softmax.attr("axis", -1) in (-1, 3), "the softmax runs over another axis")
    q, by_q = _unscaled(m, m.q)
    k, by_k = _unscaled(m, m.k)
    scale = by_q * by_k * _factor(m)
    m.require(math.isfinite(scale) and scale > 0, "the scale is not positive")
    mask = _mask(m, rw, scores)
    key: Value = _swapped(m, rw, k)
    sizes = [shape_of(m, v) for v in (q, k, m.v)]  # k and v are of one length, or the product would fail
    same = all(len(s) == 4 for s in sizes) and all(s[:2] == sizes[0][:2] for s in sizes)
    m.require(same, "batch or heads are broadcast")
    return rw.op.Attention(q, key, m.v, mask, scale=as_stored(scale))


def _unscaled(m: Match, value: Value) -> tuple[Value, float]:
    """What a value is a multiple of, by one number."""
    node = m.producer(value)
    if node is None or node.op_type not in ("Mul", "Div") or not m.single_use(value):
        return value, 1.0
    for inner, other in zip(node.inputs, node.inputs[::-1], strict=True):
        tensor = m.tensor(other)
        if inner is None or tensor is None or tensor.size != 1 or m.rank(inner) != m.rank(value):
            continue
        number = float(m.f64(other).reshape(()))
        if node.op_type == "Mul":
            return inner, number
        if other == node.inputs[1] and number:
            return inner, 1 / number
    return value, 1.0


def _factor(m: Match) -> float:
    if not hasattr(m, "scaling"):
        return 1.0
    factor = m.f64(m.factor)
    m.require(factor.size == 1 and factor.ndim <= 4, "the scale is no scalar")
    number = float(factor.reshape(()))
    m.require(number, "the scale is not positive")
    return number if m.scaling.op_type == "Mul" else 1 / number


def _mask(m: Match, rw: Rewriter, scores: Sequence[Dim]) -> Value | None:
    """The sum of what is added to the scores. Runtimes do not stretch its last two axes."""
    given: list[Value] = [getattr(m, name) for name in ("bias", "mask") if hasattr(m, name)]
    if not given:
        return None
    m.require(m.ctx.settings.objective == "nodes", "it would be slower with a mask")
    shapes = [shape_of(m, v) for v in given]
    for shape in shapes:
        fits = len(shape) == 4 and all(a in (1, b) for a, b in zip(shape, scores, strict=True))
        m.require(fits, "the mask may stretch the scores")
    whole = [any(shape[axis] == scores[axis] for shape in shapes) for axis in (2, 3)]
    m.require(all(whole), "the mask is the same for all tokens")
    return given[0] if len(given) == 1 else rw.op.Add(*given)


def _swapped(m: Match, rw: Rewriter, k: Value) -> Value:
    """``k`` with its last two axes swapped, read from before a Transpose where there is one."""
    node = m.producer(k)
    if node is None or node.op_type != "Transpose" or node.inputs[0] is None:
        return rw.op.Transpose(k, perm=[0, 1, 3, 2])
    perm = perm_of(node, 4)
    swapped = (perm[0], perm[1], perm[3], perm[2])
    return node.inputs[0] if swapped == (0, 1, 2, 3) else rw.op.Transpose(node.inputs[0], perm=swapped)


# -------------------------------------------------------------------- heads that are repeated

REPEATED = P.Reshape(P.Expand("k", "k_to", name="k_wide"), "k_target", name="k_many")
REPEATED_TOO = P.Reshape(P.Expand("v", "v_to", name="v_wide"), "v_target", name="v_many")


@graph_optimizer(P.Attention("q", REPEATED, REPEATED_TOO, P.rest("more"), name="attention"), tag="E2")
def share_repeated_heads(m: Match, rw: Rewriter) -> Value:
    """Attention(q, Reshape(Expand(k)), Reshape(Expand(v))) -> Attention(q, Squeeze(k), Squeeze(v))

    Where Expand repeats each head, on an axis of its own behind that of the heads: Attention lets
    several heads of q share one of k and v by itself.
    """
    heads = shape_of(m, m.q)[1]
    shared = []
    for few, wide, many in ((m.k, m.k_wide, m.k_many), (m.v, m.v_wide, m.v_many)):
        before, between, after = (shape_of(m, v) for v in (few, wide.value(), many.value()))
        m.require(len(before) == 5 and before[2] == 1, "it is not each head that is repeated")
        kept = (*before[:2], *before[3:])
        repeats = (*between[:2], *between[3:]) == kept
        m.require(repeats and after == (kept[0], heads, *kept[2:]), "it is not each head that is repeated")
        shared.append(rw.op.Squeeze(few, rw.const(np.array([2], np.int64))))
    made: Value = rw.op.Attention(m.q, *shared, *m.more, **m.attention.attributes)
    return made


# -------------------------------------------------------------------- heads side by side


@dataclass(frozen=True, slots=True)
class _Rows:
    """Heads of (batch, heads, tokens, size) found side by side in (batch, tokens, heads * size).

    Attributes:
        part: which of how many parts of the last axis they are: (position, count).
        turned: the RotaryEmbedding that they go through.
        tokens_first: whether it is (tokens, batch, heads * size).
    """

    value: Value
    heads: int
    part: tuple[int, int] = (0, 1)
    turned: Node | None = None
    tokens_first: bool = False


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
    perm = perm_of(m.transpose, 4)
    m.require(perm in ((0, 2, 1, 3), (2, 0, 1, 3)), "heads and tokens are not swapped")
    rows = [_rows_of(m, value) for value in (m.q, m.k, m.v)]
    found = [row for row in rows if row is not None]
    m.require(len(found) == 3, "an operand does not come with its heads side by side")
    q, k, _ = found
    operands = _operands(m, rw, found)
    attributes = {**m.attention.attributes, "q_num_heads": q.heads, "kv_num_heads": k.heads}
    result: Value = rw.op.Attention(*operands, *m.more, **attributes)
    if perm[0] == 2:
        result = rw.op.Transpose(result, perm=[1, 0, 2])
    first, second, heads, size = shape_of(m, m.transpose.value())
    final = shape_of(m, m.root.value())
    if final == (first, second, heads * size):
        return result
    target = constant_of(m, m.target).array.reshape(-1)
    copies = [i for i, n in enumerate(target) if n == 0 and not m.root_view.attr("allowzero", 0)]
    m.require(all(i < 2 for i in copies), "the view copies a dimension of the heads")
    return rw.op.Reshape(result, m.target, **m.root_view.attributes)


def _rows_of(m: Match, value: Value) -> _Rows | None:
    node = m.producer(value)
    if node is None:
        return None
    if node.op_type == "Gather":
        return _rows_of_parts(m, node)
    if node.op_type == "RotaryEmbedding" and node.inputs[0] is not None:
        row = _rows_of(m, node.inputs[0])
        return None if row is None or row.turned or row.part != (0, 1) else replace(row, turned=node)
    if node.op_type != "Transpose" or perm_of(node, 4) not in ((0, 2, 1, 3), (1, 2, 0, 3)):
        return None
    view = m.producer(node.inputs[0])
    if view is None or view.op_type != "Reshape" or view.inputs[0] is None:
        return None
    source, shape = m.shape(view.inputs[0]), m.shape(view.value())
    if source is None or shape is None or len(source) != 3 or len(shape) != 4:
        return None
    heads = shape[2].value
    if not heads or source != (shape[0], shape[1], shape[2] * shape[3]):
        return None
    return _Rows(view.inputs[0], heads, tokens_first=perm_of(node, 4)[0] == 1)


def _rows_of_parts(m: Match, gather: Node) -> _Rows | None:
    """One part of Transpose(Reshape(x, [batch, tokens, parts, heads, size]), [2, 0, 3, 1, 4])."""
    index, transpose = m.array(gather.input(1)), m.producer(gather.inputs[0])
    if index is None or index.shape or gather.attr("axis", 0) != 0:
        return None
    if transpose is None or transpose.op_type != "Transpose" or perm_of(transpose, 5) != (2, 0, 3, 1, 4):
        return None
    view = m.producer(transpose.inputs[0])
    if view is None or view.op_type != "Reshape" or view.inputs[0] is None:
        return None
    source, shape = m.shape(view.inputs[0]), m.shape(view.value())
    if source is None or shape is None or len(source) != 3 or len(shape) != 5:
        return None
    count, heads = shape[2].value, shape[3].value
    if not count or not heads or source != (shape[0], shape[1], shape[2] * shape[3] * shape[4]):
        return None
    return _Rows(view.inputs[0], heads, (int(index) % count, count))


def _operands(m: Match, rw: Rewriter, rows: Sequence[_Rows]) -> list[Value]:
    """The three operands; parts of one value by one Split."""
    if all(row.part == (0, 1) for row in rows):
        return [_turned(rw, row) for row in rows]
    sources = {(row.value, row.part[1]) for row in rows}
    m.require(len(sources) == 1, "the operands are parts of different values")
    ((source, count),) = sources
    parts = rw.op.Split(source, outputs=count, axis=2, num_outputs=count)
    return [parts[row.part[0]] for row in rows]


def _turned(rw: Rewriter, row: _Rows) -> Value:
    value = rw.op.Transpose(row.value, perm=[1, 0, 2]) if row.tokens_first else row.value
    if row.turned is None:
        return value
    attributes: dict[str, Any] = {**row.turned.attributes, "num_heads": row.heads}
    made: Value = rw.op.RotaryEmbedding(value, *row.turned.inputs[1:], **attributes)
    return made


# -------------------------------------------------------------------- a guard against NaN


@graph_optimizer(
    P.Where(P.IsNaN("p").once(), "zero", P.Softmax("scores", name="softmax")),
    constants="zero",
    tag="E1",
)
def drop_guard_of_softmax(m: Match, rw: Rewriter) -> Value:
    """Where(IsNaN(Softmax(s)), 0, Softmax(s)) -> Softmax(s)

    A row is not a number only where its scores are not, or where all are minus infinity: no mask may
    put in an infinity.
    """
    m.require(m.p == m.softmax.value(), "the guard is of something else")
    m.require(_is_finite(m, m.scores, 6), "the scores may be infinite")
    m.require(m.same_shape(m.p, m.root.value()), "what is put in stretches it")
    return m.p


def _is_finite(m: Match, value: Value, depth: int) -> bool:
    """Whether a value is finite for finite inputs, as far as operators can be looked through."""
    array = m.array(value)
    if array is not None:
        return array.dtype.kind == "f" and bool(np.isfinite(array).all())
    node = m.producer(value)
    if node is None or not depth:
        return node is None
    if node.op_type == "Where":
        return all(_is_finite(m, v, depth - 1) for v in node.inputs[1:] if v is not None)
    if node.op_type in ("Add", "Mul", "Sub"):
        return all(_is_finite(m, v, depth - 1) for v in node.inputs if v is not None)
    if node.op_type in ("Reshape", "Transpose", "Gather", "Unsqueeze", "Squeeze", "Expand", "Slice"):
        return node.inputs[0] is not None and _is_finite(m, node.inputs[0], depth - 1)
    return node.op_type in ("MatMul", "Gemm")
