"""Attention and what goes with it."""

from __future__ import annotations

from optimizer.analysis.context import InferContext, fresh_shape
from optimizer.analysis.dims import Dim
from optimizer.analysis.fact import Fact, Shape
from optimizer.analysis.registry import infer

__all__: list[str] = []


@infer("Attention", since=23)
def attention(context: InferContext) -> list[Fact | None]:
    """Y, present key and value, and the scores.

    Inputs are [batch, heads, seq, size], or [batch, seq, heads * size] with the numbers of heads in
    attributes. Past keys and values come before the new ones.
    """
    dtype, query = context.dtype(0), context.shape(0)
    if query is None or len(query) not in (3, 4):
        return [Fact(dtype), Fact(context.dtype(1)), Fact(context.dtype(2)), Fact(dtype)]
    q = _four(query, context.attr("q_num_heads"))
    key = _four(context.shape(1), context.attr("kv_num_heads"))
    value = _four(context.shape(2), context.attr("kv_num_heads"))
    total = key[2] + _past(context, 4)
    width = value[3]
    present_key = Fact(context.dtype(1), (key[0], key[1], total, key[3]))
    present_value = Fact(context.dtype(2), (value[0], value[1], value[2] + _past(context, 5), width))
    shape: Shape = (q[0], q[1], q[2], width) if len(query) == 4 else (q[0], q[2], q[1] * width)
    return [Fact(dtype, shape), present_key, present_value, Fact(dtype, (q[0], q[1], q[2], total))]


@infer("LinearAttention")
def linear_attention(context: InferContext) -> list[Fact]:
    """[batch, seq, heads * value size], and the state [batch, kv heads, key size, value size]."""
    query, key, value = (context.shape(index) for index in range(3))
    queries, keys = context.attr("q_num_heads"), context.attr("kv_num_heads")
    known = all(shape is not None and len(shape) == 3 for shape in (query, key, value))
    if not known or query is None or key is None or value is None or not queries or not keys:
        return [Fact(context.dtype(0), fresh_shape(3, "attention")), Fact(context.dtype(0))]
    width = value[2] // keys
    state: Shape = (query[0], Dim.of(keys), key[2] // keys, width)
    dtype = context.dtype(3) if context.has(3) else context.dtype(0)
    return [Fact(context.dtype(0), (query[0], query[1], width * queries)), Fact(dtype, state)]


def _four(shape: Shape | None, heads: int | None) -> Shape:
    """[batch, heads, seq, size] of either form."""
    if shape is not None and len(shape) == 4:
        return shape
    if shape is None or len(shape) != 3 or not heads:
        return fresh_shape(4, "attention")
    return (shape[0], Dim.of(heads), shape[1], shape[2] // heads)


def _past(context: InferContext, index: int) -> Dim:
    if not context.has(index):
        return Dim.of(0)
    shape = context.shape(index)
    return shape[2] if shape is not None and len(shape) == 4 else Dim.fresh("past")
