"""Attention of com.microsoft in its forms."""

from __future__ import annotations

from optimizer.analysis.context import InferContext, fresh_shape
from optimizer.analysis.dims import Dim
from optimizer.analysis.fact import Fact, Shape
from optimizer.analysis.registry import infer

__all__: list[str] = []

MS = "com.microsoft"


@infer("Attention", domain=MS)
def attention(context: InferContext) -> list[Fact | None]:
    """[batch, seq, hidden]; the width is that of the values."""
    shape, weights, dtype = context.shape(0), context.shape(1), context.dtype(0)
    if shape is None or len(shape) != 3:
        return [Fact(dtype), Fact(dtype, fresh_shape(5, "present"))]
    return [Fact(dtype, (shape[0], shape[1], _packed_width(context, weights))), _present(context, shape)]


@infer("PackedAttention", domain=MS)
def packed_attention(context: InferContext) -> Fact:
    """[tokens, hidden]"""
    shape = context.shape(0)
    tokens = shape[0] if shape else Dim.fresh("tokens")
    return Fact(context.dtype(0), (tokens, _packed_width(context, context.shape(1))))


def _packed_width(context: InferContext, weights: Shape | None) -> Dim:
    sizes = context.attr("qkv_hidden_sizes")
    if sizes:
        return Dim.of(sizes[2])
    return weights[1] // 3 if weights is not None and len(weights) == 2 else Dim.fresh("hidden")


def _present(context: InferContext, shape: Shape) -> Fact:
    """[2, batch, heads, past and new, head size]"""
    past = context.shape(4)
    heads = Dim.of(context.attr("num_heads", 1))
    if past is not None and len(past) == 5:
        grown = Dim.fresh("present") if context.attr("past_present_share_buffer", 0) else past[3] + shape[1]
        return Fact(context.dtype(0), (Dim.of(2), shape[0], heads, grown, past[4]))
    return Fact(context.dtype(0), (Dim.of(2), shape[0], heads, *fresh_shape(2, "present")))


@infer("MultiHeadAttention", "DecoderMaskedMultiHeadAttention", domain=MS)
def multi_head_attention(context: InferContext) -> list[Fact | None]:
    """[batch, seq, hidden] from [batch, seq, hidden], or heads packed as [batch, seq, heads, 3, size]."""
    query, value, dtype = context.shape(0), context.shape(2), context.dtype(0)
    heads = Dim.of(context.attr("num_heads", 1))
    if query is None or len(query) not in (3, 5):
        return [Fact(dtype, fresh_shape(3, "attention")), *_caches(context, None, heads, None)]
    width = query[2] if len(query) == 3 else query[2] * query[4]
    if value is not None and len(query) == 3:
        width = value[2] if len(value) == 3 else value[1] * value[3] if len(value) == 4 else width
    return [Fact(dtype, (query[0], query[1], width)), *_caches(context, query[0], heads, width // heads)]


@infer("GroupQueryAttention", "SparseAttention", domain=MS)
def group_query_attention(context: InferContext) -> list[Fact | None]:
    """[batch, seq, heads * size]; without keys, the query holds them and the values as well."""
    query, dtype = context.shape(0), context.dtype(0)
    heads, groups = context.attr("num_heads", 1), Dim.of(context.attr("kv_num_heads", 1))
    if query is None or len(query) != 3:
        return [Fact(dtype, fresh_shape(3, "attention")), *_caches(context, None, groups, None)]
    size = query[2] // heads if context.has(1) else query[2] // (groups * 2 + heads)
    return [Fact(dtype, (query[0], query[1], size * heads)), *_caches(context, query[0], groups, size)]


def _caches(context: InferContext, batch: Dim | None, heads: Dim, size: Dim | None) -> list[Fact]:
    """Present keys and values: how many there are depends on a buffer that may be shared."""
    shape: Shape = (
        batch or Dim.fresh("batch"),
        heads,
        Dim.fresh("present"),
        Dim.fresh("size") if size is None or context.node.op_type != "GroupQueryAttention" else size,
    )
    values: Shape = (*shape[:2], shape[2], Dim.fresh("size") if size is None else size)
    dtype = context.dtype(0)
    if context.attr("kv_cache_bit_width", 0):
        return [Fact(context.dtype(3)), Fact(context.dtype(4)), Fact(dtype)]
    return [Fact(dtype, shape), Fact(dtype, values), Fact(dtype)]


@infer("RelativePositionBias", domain=MS)
def relative_position_bias(context: InferContext) -> Fact:
    """[1, heads, queries, keys]"""
    table = context.shape(0)
    lengths = [(context.dims(index) or [None])[0] or Dim.fresh("length") for index in (1, 2)]
    heads = table[1] if table is not None and len(table) == 2 else Dim.fresh("heads")
    return Fact(context.dtype(0), (Dim.of(1), heads, *lengths))
