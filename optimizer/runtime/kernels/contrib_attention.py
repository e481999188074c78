"""com.microsoft: the attention operators of onnxruntime's transformer optimizer, and MatMulNBits."""

from __future__ import annotations

import math

import numpy as np

from optimizer.runtime.call import Call
from optimizer.runtime.kernels.attention import rotated, scores_and_output
from optimizer.runtime.kernels.known import implements
from optimizer.runtime.kernels.linear import product
from optimizer.runtime.kernels.quant import MS
from optimizer.runtime.precision import Array, computed_wide
from optimizer.runtime.registry import kernel


def _heads(x: Array, count: int) -> Array:
    """[batch, sequence, hidden] to [batch, heads, sequence, size]."""
    return x.reshape(*x.shape[:2], count, x.shape[2] // count).transpose(0, 2, 1, 3)


def _joined(x: Array) -> Array:
    return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], x.shape[1] * x.shape[3])


@kernel("MultiHeadAttention", domain=MS, dtypes="T T T T int32 T T T int32 int32; T: float float16 bfloat16")
@implements("num_heads scale mask_filter_value unidirectional", inputs=8, outputs=4)
@computed_wide
def multi_head_attention(
    call: Call,
    query: Array,
    key: Array | None = None,
    value: Array | None = None,
    bias: Array | None = None,
    key_padding_mask: Array | None = None,
    attention_bias: Array | None = None,
    past_key: Array | None = None,
    past_value: Array | None = None,
) -> tuple[Array | None, ...]:
    """(output, present key, present value, scores). Query may hold K and V too, key may hold V."""
    heads = call.attr("num_heads")
    q, k, v = _projected(query, key, value, bias, heads)
    if past_key is not None and past_value is not None:
        k, v = np.concatenate([past_key, k], 2), np.concatenate([past_value, v], 2)
    return _attended(call, q, k, v, key_padding_mask, attention_bias)


def _projected(
    query: Array, key: Array | None, value: Array | None, bias: Array | None, heads: int
) -> tuple[Array, Array, Array]:
    """Q, K and V as [batch, heads, sequence, size] from any of the packed layouts."""
    if query.ndim == 5:  # [batch, sequence, heads, 3, size]
        q, k, v = (query[:, :, :, i].transpose(0, 2, 1, 3) for i in range(3))
    else:
        q = _heads(query, heads)
        if key is None:
            raise ValueError("key is missing")
        if key.ndim == 5:  # [batch, sequence, heads, 2, size]
            k, v = (key[:, :, :, i].transpose(0, 2, 1, 3) for i in range(2))
        else:
            if value is None:
                raise ValueError("value is missing")
            k, v = (x if x.ndim == 4 else _heads(x, heads) for x in (key, value))
    if bias is not None:
        width = q.shape[1] * q.shape[3]
        parts = bias[:width], bias[width : 2 * width], bias[2 * width :]
        q, k, v = (x + p.reshape(heads, 1, -1) for x, p in zip((q, k, v), parts, strict=True))
    return q, k, v


def _attended(
    call: Call, q: Array, k: Array, v: Array, mask: Array | None, extra: Array | None
) -> tuple[Array | None, ...]:
    bias = _mask_bias(call, q, k.shape[2], mask)
    if extra is not None:
        bias = extra if bias is None else bias + extra
    scale = call.attr("scale") or 1 / math.sqrt(q.shape[3])
    y, scores = scores_and_output(q, k, v, scale, bias, kept=0 if call.wants(3) else None)
    return _joined(y), k.copy() if call.wants(1) else None, v.copy() if call.wants(2) else None, scores


def _mask_bias(call: Call, q: Array, total: int, mask: Array | None) -> Array | None:
    """Masked keys get mask_filter_value added; with ``unidirectional`` later keys are out altogether.

    Raises:
        ValueError: the mask has none of the shapes [batch], [batch, keys], [batch, queries, keys].
    """
    batch, queries = q.shape[0], q.shape[2]
    bias: Array | None = None
    if mask is not None:
        if mask.ndim == 1 and mask.size == batch:  # number of valid keys
            seen = np.arange(total) < mask[:, None, None, None]
        elif mask.ndim == 2 and mask.shape == (batch, total):
            seen = mask[:, None, None, :] > 0
        elif mask.ndim == 3 and mask.shape == (batch, queries, total):
            seen = mask[:, None] > 0
        else:
            raise ValueError(f"a mask of shape {list(mask.shape)} for {batch} x {queries} x {total}")
        bias = np.where(seen, q.dtype.type(0), q.dtype.type(call.attr("mask_filter_value", -10000.0)))
    if call.attr("unidirectional", 0):
        later = np.arange(total) > np.arange(queries)[:, None] + (total - queries)
        causal = np.where(later, q.dtype.type(-np.inf), q.dtype.type(0))
        bias = causal if bias is None else bias + causal
    return bias


@kernel("Attention", domain=MS, dtypes="T T T int32 T T int32; T: float float16 bfloat16")
@implements(
    "num_heads scale mask_filter_value unidirectional qkv_hidden_sizes",
    inputs=6,
    outputs=2,
    ignored={"do_rotary": (0,), "rotary_embedding_dim": (0,), "past_present_share_buffer": (0,)},
)
@computed_wide
def attention(
    call: Call,
    x: Array,
    weights: Array,
    bias: Array | None = None,
    mask_index: Array | None = None,
    past: Array | None = None,
    attention_bias: Array | None = None,
) -> tuple[Array, Array | None]:
    """(output, present [2, batch, heads, keys, size]): self attention with its projections."""
    heads = call.attr("num_heads")
    projected = product(x, weights)
    if bias is not None:
        projected = projected + bias
    third = weights.shape[1] // 3
    sizes = call.attr("qkv_hidden_sizes") or (third, third, third)
    parts = np.split(projected, [sizes[0], sizes[0] + sizes[1]], 2)
    q, k, v = (_heads(p, heads) for p in parts)
    if past is not None:
        k, v = np.concatenate([past[0], k], 2), np.concatenate([past[1], v], 2)
    y = _attended(call, q, k, v, mask_index, attention_bias)[0]
    assert y is not None
    return y, np.stack([k, v]) if call.wants(1) else None


_GROUP_QUERY = (
    "T T T C C int32 int32 T T int64 T T float float T T int32; T: float float16 bfloat16; "
    "C: float float16 bfloat16 uint8 int8 float8e4m3fn"
)


@kernel("GroupQueryAttention", domain=MS, dtypes=_GROUP_QUERY)
@implements(
    "num_heads kv_num_heads scale softcap local_window_size do_rotary rotary_interleaved",
    inputs=11,
    outputs=3,
    ignored={
        "smooth_softmax": (0, -1),
        "qk_output": (0,),
        "causal": (1,),
        "sliding_window_cache": (0,),
        "kv_cache_bit_width": (0,),
        "k_quant_type": ("NONE",),
        "v_quant_type": ("NONE",),
        # Read only together with inputs that are refused.
        "qk_norm_epsilon": (),
        "q_norm_epsilon": (),
        "k_norm_epsilon": (),
    },
)
@computed_wide
def group_query_attention(
    call: Call,
    query: Array,
    key: Array | None,
    value: Array | None,
    past_key: Array | None,
    past_value: Array | None,
    seqlens_k: Array,
    total_sequence_length: Array,
    cos_cache: Array | None = None,
    sin_cache: Array | None = None,
    position_ids: Array | None = None,
    attention_bias: Array | None = None,
) -> tuple[Array, Array, Array]:
    """(output, present key, present value): causal attention over a cache, ``seqlens_k`` + 1 keys per row."""
    heads, groups = call.attr("num_heads"), call.attr("kv_num_heads")
    if key is None or value is None:  # all three packed in query
        size = query.shape[2] // (heads + 2 * groups)
        query, key, value = np.split(query, [heads * size, (heads + groups) * size], 2)
    q, k, v = _heads(query, heads), _heads(key, groups), _heads(value, groups)
    batch, new = q.shape[0], q.shape[2]
    lengths = seqlens_k.reshape(-1).astype(np.int64) + 1
    # A first prompt starts at zero, whatever its padding; later steps append to what is there.
    first = past_key is None or past_key.shape[2] == 0 or int(total_sequence_length.item()) == new
    starts = np.zeros(batch, np.int64) if first else lengths - new
    if call.attr("do_rotary", 0) and cos_cache is not None and sin_cache is not None:
        at = starts[:, None] + np.arange(new) if position_ids is None else position_ids
        at = np.minimum(at, len(cos_cache) - 1)
        cos, sin = cos_cache[at][:, None], sin_cache[at][:, None]
        flip = bool(call.attr("rotary_interleaved", 0))
        q, k = (rotated(t, cos, sin, 2 * cos.shape[-1], interleaved=flip) for t in (q, k))
    total = int(total_sequence_length.item())
    capacity = max(total, 0 if past_key is None else past_key.shape[2])
    k, v = (_appended(p, n, starts, capacity) for p, n in ((past_key, k), (past_value, v)))
    distance = np.arange(capacity) - (starts[:, None, None] + np.arange(new)[:, None])
    allowed = distance <= 0
    window = call.attr("local_window_size", -1)
    if window > 0:
        allowed &= distance > -window
    bias = np.where(allowed, q.dtype.type(0), q.dtype.type(-np.inf))[:, None]
    if attention_bias is not None:
        bias = bias + attention_bias
    scale = call.attr("scale") or 1 / math.sqrt(q.shape[3])
    y, _ = scores_and_output(q, k, v, scale, bias, softcap=call.attr("softcap", 0.0))
    return _joined(y), k, v


def _appended(past: Array | None, new: Array, starts: Array, capacity: int) -> Array:
    """The cache with ``new`` written from each row's start on."""
    present = np.zeros((*new.shape[:2], capacity, new.shape[3]), new.dtype)
    for row, start in enumerate(starts):
        if past is not None and start:
            present[row, :, :start] = past[row, :, :start]
        present[row, :, start : start + new.shape[2]] = new[row]
    return present


@kernel("RotaryEmbedding", domain=MS, dtypes="T int64 T T; T: float float16 bfloat16")
@implements(
    "num_heads rotary_embedding_dim interleaved scale",
    inputs=4,
    outputs=1,
    ignored={"is_packed_batching": (0,)},
)
@computed_wide
def rotary_embedding(call: Call, x: Array, position_ids: Array, cos_cache: Array, sin_cache: Array) -> Array:
    """Turned pairs; ``position_ids`` are one offset for all rows, or [batch, sequence]."""
    size = call.attr("rotary_embedding_dim", 0) or 2 * cos_cache.shape[1]
    flat = x.ndim == 3
    heads = call.attr("num_heads", 0) or (x.shape[2] // size if flat else x.shape[1])
    y = _heads(x, heads) if flat else x
    at = position_ids
    if at.size == 1:
        at = np.broadcast_to(at.reshape(()) + np.arange(y.shape[2]), (y.shape[0], y.shape[2]))
    cos, sin = cos_cache[at][:, None], sin_cache[at][:, None]
    y = rotated(y, cos, sin, size, interleaved=bool(call.attr("interleaved", 0)))
    y = y * y.dtype.type(call.attr("scale", 1.0))
    return _joined(y) if flat else y


@kernel(
    "MatMulNBits",
    domain=MS,
    dtypes="T uint8 T uint8|float|float16|bfloat16 int32 T; T: float float16 bfloat16",
)
@implements(
    "N K bits block_size",
    inputs=6,
    outputs=1,
    ignored={
        "accuracy_level": (),
        "weight_prepacked": (0,),
    },  # the level permits to round, it demands nothing
)
@computed_wide
def matmul_n_bits(
    call: Call,
    a: Array,
    b: Array,
    scales: Array,
    zero_points: Array | None = None,
    g_idx: Array | None = None,
    bias: Array | None = None,
) -> Array:
    """A @ W' with W [N, K] packed low bits first, one scale (and zero point) per block of K."""
    n, k = call.attr("N"), call.attr("K")
    bits, block = call.attr("bits", 4), call.attr("block_size")
    blocks = -(-k // block)
    codes = _unpacked(b.reshape(n, -1), bits)[:, : blocks * block].astype(scales.dtype)
    if zero_points is None:
        zero = np.full((n, blocks), 1 << (bits - 1), scales.dtype)
    elif zero_points.dtype == np.uint8:
        zero = _unpacked(zero_points.reshape(n, -1), bits)[:, :blocks].astype(scales.dtype)
    else:
        zero = zero_points.reshape(n, blocks)
    group = np.arange(k) // block if g_idx is None else g_idx[:k]
    weights = (codes[:, :k] - zero[:, group]) * scales.reshape(n, blocks)[:, group]
    y = product(a, weights.T)
    return y if bias is None else y + bias


def _unpacked(packed: Array, bits: int) -> Array:
    """[rows, bytes * 8 / bits] of unsigned codes."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return ((packed[:, :, None] >> shifts) & np.uint8((1 << bits) - 1)).reshape(len(packed), -1)
