"""Attention and RotaryEmbedding."""

from __future__ import annotations

import math

import numpy as np

from optimizer.runtime.call import Call
from optimizer.runtime.precision import Array, computed_wide
from optimizer.runtime.registry import kernel


@kernel("Attention", since=23)
@computed_wide
def attention_23(
    call: Call,
    q: Array,
    k: Array,
    v: Array,
    attn_mask: Array | None = None,
    past_key: Array | None = None,
    past_value: Array | None = None,
) -> tuple[Array | None, ...]:
    """(Y, present key, present value, scores): softmax(Q K' * scale + bias) V per head."""
    return _attention(call, q, k, v, attn_mask, past_key, past_value, None)


@kernel("Attention", since=24)
@kernel("Attention", since=25)
@computed_wide
def attention(
    call: Call,
    q: Array,
    k: Array,
    v: Array,
    attn_mask: Array | None = None,
    past_key: Array | None = None,
    past_value: Array | None = None,
    nonpad_kv_seqlen: Array | None = None,
) -> tuple[Array | None, ...]:
    """Version 24 adds a cache kept outside, of which ``nonpad_kv_seqlen`` positions are valid; 25 windows."""
    return _attention(call, q, k, v, attn_mask, past_key, past_value, nonpad_kv_seqlen)


def _attention(
    call: Call,
    q: Array,
    k: Array,
    v: Array,
    attn_mask: Array | None,
    past_key: Array | None,
    past_value: Array | None,
    valid: Array | None,
) -> tuple[Array | None, ...]:
    flat = q.ndim == 3
    if flat:
        q, k, v = (
            _split_heads(x, call.attr(n))
            for x, n in ((q, "q_num_heads"), (k, "kv_num_heads"), (v, "kv_num_heads"))
        )
    if past_key is not None and past_value is not None:
        k, v = np.concatenate([past_key, k], 2), np.concatenate([past_value, v], 2)
    past = past_key.shape[2] if past_key is not None else 0
    scale = call.attr("scale")
    scale = 1 / math.sqrt(q.shape[3]) if scale is None else scale
    bias = _bias(call, q, k.shape[2], attn_mask, past, valid)
    stages = scores_and_output(
        q,
        k,
        v,
        scale,
        bias,
        softcap=call.attr("softcap", 0.0),
        precision=call.dtype(call.attr("softmax_precision", 0), q.dtype),
        kept=call.attr("qk_matmul_output_mode", 0) if call.wants(3) else None,
    )
    y = stages[0]
    if flat:
        y = y.transpose(0, 2, 1, 3).reshape(y.shape[0], y.shape[2], y.shape[1] * y.shape[3])
    # Presents are copies: a kernel's output must not be a view of its input.
    return y, k.copy() if call.wants(1) else None, v.copy() if call.wants(2) else None, stages[1]


def _split_heads(x: Array, heads: int | None) -> Array:
    """[batch, sequence, heads * size] to [batch, heads, sequence, size]."""
    if not heads or x.shape[2] % heads:
        raise ValueError(f"a hidden size of {x.shape[2]} and {heads} heads")
    return x.reshape(x.shape[0], x.shape[1], heads, x.shape[2] // heads).transpose(0, 2, 1, 3)


def _bias(
    call: Call, q: Array, total: int, mask: Array | None, past: int, valid: Array | None
) -> Array | None:
    """What is added to the scores [batch, heads, queries, keys]: -inf where a query must not look."""
    queries = q.shape[2]
    offset = np.array(past) if valid is None else (valid.reshape(-1, 1, 1, 1) - queries)
    distance = np.arange(total) - (np.arange(queries)[:, None] + offset)
    allowed: Array = np.ones((1, 1), bool)
    if call.attr("is_causal", 0):
        allowed = allowed & (distance <= 0)
    left, right = call.attr("left_window_size", -1), call.attr("right_window_size", -1)
    if left >= 0:
        allowed = allowed & (distance >= -left)
    if right >= 0:
        allowed = allowed & (distance <= right)
    if valid is not None:
        allowed = allowed & (np.arange(total) < valid.reshape(-1, 1, 1, 1))
    if mask is not None:
        missing = total - mask.shape[-1]
        if missing > 0:
            fill = np.zeros((*mask.shape[:-1], missing), mask.dtype)
            mask = np.concatenate([mask, fill if mask.dtype == bool else fill - mask.dtype.type(np.inf)], -1)
        if mask.dtype != bool:
            return np.where(allowed, mask, mask.dtype.type(-np.inf)) if not allowed.all() else mask
        allowed = allowed & mask
    return None if allowed.all() else np.where(allowed, q.dtype.type(0), q.dtype.type(-np.inf))


def scores_and_output(
    q: Array,
    k: Array,
    v: Array,
    scale: float,
    bias: Array | None,
    *,
    softcap: float = 0.0,
    precision: np.dtype[np.floating] | None = None,
    kept: int | None = None,
) -> tuple[Array, Array | None]:
    """(output [batch, heads, queries, size], the scores at stage ``kept``).

    Stages: 0 the scaled product, 1 after softcap, 2 with bias, 3 after softmax. Keys and values may
    have fewer heads than queries, each then serving a group of them. A query that may look at
    nothing gets zeros.
    """
    heads, groups = q.shape[1], k.shape[1]
    if not groups or heads % groups:
        raise ValueError(f"{heads} query heads and {groups} key heads")
    grouped = (q * q.dtype.type(scale)).reshape(q.shape[0], groups, heads // groups, *q.shape[2:])
    scores = np.matmul(grouped, k[:, :, None].swapaxes(-1, -2)).reshape(*q.shape[:3], k.shape[2])
    stage = scores.copy() if kept == 0 else None
    if softcap:
        scores = softcap * np.tanh(scores / softcap)
        scores = scores.astype(q.dtype, copy=False)
    stage = scores.copy() if kept == 1 else stage
    if bias is not None:
        scores = scores + bias.astype(scores.dtype, copy=False)
    stage = scores.copy() if kept == 2 else stage
    if precision is not None and precision.itemsize > scores.itemsize:
        scores = scores.astype(precision)
    weights = _masked_softmax(scores).astype(q.dtype, copy=False)
    stage = weights if kept == 3 else stage
    split = weights.reshape(q.shape[0], groups, heads // groups, *weights.shape[2:])
    y = np.matmul(split, v[:, :, None]).reshape(*q.shape[:3], v.shape[3])
    return y, stage


def _masked_softmax(scores: Array) -> Array:
    """Softmax over the last axis; a row of nothing but -inf becomes zeros."""
    if not scores.size:
        return scores
    top = scores.max(-1, keepdims=True)
    top[np.isneginf(top)] = 0
    y = np.exp(np.subtract(scores, top, out=scores), out=scores)
    total = y.sum(-1, keepdims=True)
    total[total == 0] = 1
    y /= total
    return np.asarray(y)


@kernel("RotaryEmbedding", since=23)
@computed_wide
def rotary_embedding(
    call: Call, x: Array, cos_cache: Array, sin_cache: Array, position_ids: Array | None = None
) -> Array:
    """Pairs of elements of each head turned by an angle per position.

    X is [N, heads, S, size] or [N, S, heads * size].
    """
    flat = x.ndim == 3
    if flat:
        x = _split_heads(x, call.attr("num_heads"))
    cos = cos_cache if position_ids is None else cos_cache[position_ids]
    sin = sin_cache if position_ids is None else sin_cache[position_ids]
    size = call.attr("rotary_embedding_dim", 0) or x.shape[3]
    if cos.shape[-1] * 2 != size or sin.shape != cos.shape:
        raise ValueError(f"caches {list(cos.shape)} and {list(sin.shape)} for {size} rotated elements")
    y = rotated(x, cos[:, None], sin[:, None], size, interleaved=bool(call.attr("interleaved", 0)))
    return y.transpose(0, 2, 1, 3).reshape(y.shape[0], y.shape[2], y.shape[1] * y.shape[3]) if flat else y


def rotated(x: Array, cos: Array, sin: Array, size: int, *, interleaved: bool) -> Array:
    """The first ``size`` elements of the last axis turned, the others copied.

    Partners are neighbours where ``interleaved``, else half of ``size`` apart.
    """
    half = size // 2
    first = slice(0, size, 2) if interleaved else slice(0, half)
    second = slice(1, size, 2) if interleaved else slice(half, size)
    y = np.array(x)
    y[..., first] = x[..., first] * cos - x[..., second] * sin
    y[..., second] = x[..., first] * sin + x[..., second] * cos
    return y
