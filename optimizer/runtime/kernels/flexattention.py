"""FlexAttention: attention whose scores and probabilities go through bodies."""

from __future__ import annotations

import numpy as np

from optimizer.runtime.call import Call
from optimizer.runtime.precision import Array, widen
from optimizer.runtime.registry import kernel


@kernel("FlexAttention", domain="ai.onnx.preview")
def flex_attention(call: Call, q: Array, k: Array, v: Array) -> Array:
    """``prob_mod(softmax(score_mod(q kᵀ scale))) v``; key heads are shared by groups of query heads."""
    default = np.float64 if q.dtype == np.float64 else np.float32
    inner = call.dtype(call.attr("softmax_precision", 0), default)
    shared = q.shape[1] // k.shape[1]
    keys, values = (np.repeat(widen(x), shared, 1).astype(inner) for x in (k, v))
    scale = call.attr("scale", 1 / np.sqrt(q.shape[-1]))
    scores = np.matmul(widen(q).astype(inner), np.swapaxes(keys, -1, -2)) * inner.type(scale)
    if "score_mod" in call.bodies:
        scores = call.bodies["score_mod"](scores)[0]
    wide = widen(scores)
    top = wide.max(-1, keepdims=True)
    weights = np.exp(wide - np.where(np.isfinite(top), top, 0))
    probabilities = (weights / weights.sum(-1, keepdims=True)).astype(inner)
    if "prob_mod" in call.bodies:
        probabilities = call.bodies["prob_mod"](probabilities)[0]
    out: Array = np.matmul(widen(probabilities), widen(values))
    return out.astype(q.dtype)
