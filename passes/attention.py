"""Scaled dot products spelled out become Attention, and a guard against NaN goes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optimizer.analysis import Dim
from optimizer.ir import DType, Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.attention_mask import mask_of
from passes.heads import rows_of, rows_of_swapped
from passes.known import LOOK_BACK, as_stored, shape_of
from passes.scores import Scores, scores_of, unscaled
from passes.view_chain import perm_of

WEIGHTS = P.any_of(
    P.Softmax("scores", name="softmax").once(),
    P.Where(P.IsNaN("guarded").once(), P.scalar(0.0), P.Softmax("scores", name="softmax")).once(),
)


@graph_optimizer(P.MatMul(WEIGHTS, "v"), tag="E2")
def fuse_attention(m: Match, rw: Rewriter) -> Value:
    """MatMul(Softmax(MatMul(q, k) * s + mask), v) -> Attention(q, Transpose(k), v, mask, scale=s)

    Of four axes, (batch, heads, tokens, size of a head), or of three, without heads. b * Tanh(scores / b)
    becomes its softcap, a Where that hides scores its mask or is_causal. With a mask it is only faster
    on runtimes where the heads lie side by side before and after it. A query that may see no key gets zeros,
    where the Softmax of nothing but minus infinity is not a number.
    """
    m.require(m.opset() >= 23, "Attention needs opset 23")
    m.require(m.dtype(m.v) in (DType.FLOAT, DType.FLOAT16), "not float32 or float16")
    guarded = not hasattr(m, "guarded") or m.guarded == m.softmax.value()
    m.require(guarded, "the guard is of something else")
    rank = len(shape_of(m, m.v))
    m.require(m.softmax.attr("axis", -1) in (-1, rank - 1), "the softmax runs over another axis")
    parts = scores_of(m, m.scores)
    if parts is None:
        m.refuse("no product of queries and keys is found")
    _require_fit(m, parts)
    q, by_q = unscaled(m, parts.product.inputs[0])
    k, by_k = _keys(m, rw, parts.product.inputs[1])
    attributes = _attributes(m, parts, by_q * by_k)
    pays = parts.is_bare or m.ctx.settings.objective == "nodes" or _is_side_by_side(m, q, parts)
    m.require(pays, "it would be slower with a mask")
    batch, *sizes = shape_of(m, parts.product.value())
    mask, causal = mask_of(m, rw, parts, q, (batch, *([Dim.of(1)] if rank == 3 else []), *sizes))
    if causal:
        attributes["is_causal"] = 1
    return rw.op.Attention(q, k, m.v, mask, **attributes)


def _is_side_by_side(m: Match, q: Value, parts: Scores) -> bool:
    """Whether Attention can take and return heads as they lie, so that Transposes go."""
    if m.rank(m.v) != 4:
        return False
    k, _ = unscaled(m, parts.product.inputs[1])
    rows = rows_of(m, q), rows_of_swapped(m, k), rows_of(m, m.v)
    readers = [m.graph.node(use.node).op_type for use in m.graph.uses(m.root.value())]
    return all(row is not None for row in rows) and readers == ["Transpose"]


def _require_fit(m: Match, parts: Scores) -> None:
    """Refuses where Attention does not take the operands in the place of the two products.

    onnxruntime's refuses tensors without elements.
    """
    q, k, v = (shape_of(m, x) for x in (*parts.product.inputs, m.v) if x is not None)
    m.require(len(q) == len(k) == len(v) and len(q) in (3, 4), "the operands do not have four axes")
    heads = range(1, len(q) - 2)
    shared = all(k[axis] == v[axis] and k[axis] in (q[axis], 1) for axis in heads)
    m.require(shared and q[0] == k[0] == v[0], "batch or heads are broadcast")
    m.require(all(dim.ge(1) for shape in (q, k, v) for dim in shape), "a tensor may be empty")


def _attributes(m: Match, parts: Scores, factor: float) -> dict[str, Any]:
    scale, attributes = parts.scale * factor, dict[str, Any]()
    if parts.bound is not None:
        m.require(math.isfinite(parts.bound) and parts.bound > 0, "the scale is not positive")
        scale *= parts.bound
        attributes["softcap"] = as_stored(parts.bound)
    m.require(math.isfinite(scale) and scale > 0, "the scale is not positive")
    if m.rank(m.v) == 3:
        attributes |= {"q_num_heads": 1, "kv_num_heads": 1}
    return {"scale": as_stored(scale), **attributes}


def _keys(m: Match, rw: Rewriter, value: Value | None) -> tuple[Value, float]:
    """``value`` with its last two axes swapped, read from before a Transpose where there is one."""
    swapped, before = unscaled(m, value)
    node, rank = m.producer(swapped), len(shape_of(m, m.v))
    perm = list(range(rank)) if node is None or node.op_type != "Transpose" else list(perm_of(node, rank))
    perm[-2:] = perm[:-3:-1]
    if node is None or node.op_type != "Transpose":
        return rw.op.Transpose(swapped, perm=perm), before
    keys, behind = unscaled(m, node.inputs[0]) if m.single_use(swapped) else (node.inputs[0], 1.0)
    assert keys is not None
    return (keys if perm == sorted(perm) else rw.op.Transpose(keys, perm=perm)), before * behind


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
    m.require(_is_finite(m, m.scores, LOOK_BACK), "the scores may be infinite")
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
