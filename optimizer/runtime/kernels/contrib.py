"""com.microsoft: the Gelus, the skip and embedding layer normalizations, and SimplifiedLayerNormalization."""

from __future__ import annotations

import numpy as np

from optimizer.runtime.call import Call
from optimizer.runtime.kernels.activation import times_sigmoid
from optimizer.runtime.kernels.erf import gelu_into, gelu_tanh_into, in_blocks
from optimizer.runtime.kernels.known import implements
from optimizer.runtime.kernels.norm import root_mean_square, standardized
from optimizer.runtime.kernels.quant import FLOATS, MS
from optimizer.runtime.precision import Array, computed_wide, widen
from optimizer.runtime.registry import kernel


@kernel("Gelu", domain=MS, dtypes=FLOATS)
@computed_wide
def gelu(call: Call, x: Array) -> Array:
    """x * Phi(x)."""
    return in_blocks(x, gelu_into)


@kernel("BiasGelu", domain=MS, dtypes=FLOATS)
@computed_wide
def bias_gelu(call: Call, a: Array, b: Array) -> Array:
    """Gelu of A + B."""
    return in_blocks(a + b, gelu_into)


@kernel("FastGelu", domain=MS, dtypes=FLOATS)
@computed_wide
def fast_gelu(call: Call, x: Array, bias: Array | None = None) -> Array:
    """Gelu by the tanh formula, of X + bias."""
    return in_blocks(x if bias is None else x + bias, gelu_tanh_into)


@kernel("QuickGelu", domain=MS, dtypes=FLOATS)
@computed_wide
def quick_gelu(call: Call, x: Array) -> Array:
    """x * sigmoid(alpha * x)."""
    return times_sigmoid(x, call.attr("alpha", 1.702))


@kernel("SkipLayerNormalization", domain=MS, dtypes="T...; T: float float16 bfloat16")
@computed_wide
def skip_layer_norm(
    call: Call,
    x: Array,
    skip: Array,
    gamma: Array,
    beta: Array | None = None,
    bias: Array | None = None,
) -> tuple[Array, ...]:
    """(LayerNormalization of the sum, mean, 1 / deviation, sum), the sum being X + skip + bias."""
    total = _summed(x, skip, bias)
    y, mean, inverse = standardized(total, call.attr("epsilon", 1e-12))
    y *= gamma
    if beta is not None:
        y += beta
    return y, mean, inverse, total


def _summed(x: Array, skip: Array, bias: Array | None) -> Array:
    total = x + skip
    return total if bias is None else total + bias


@kernel("SkipSimplifiedLayerNormalization", domain=MS, dtypes="T...; T: float float16 bfloat16")
@computed_wide
def skip_simplified_layer_norm(
    call: Call, x: Array, skip: Array, gamma: Array, bias: Array | None = None
) -> tuple[Array | None, ...]:
    """(RMS normalization of the sum, -, 1 / rms, sum), the sum being X + skip + bias."""
    total = _summed(x, skip, bias)
    y, inverse = root_mean_square(call, total, total.ndim - 1)
    y *= gamma
    return y, None, inverse, total


@kernel(
    "SimplifiedLayerNormalization",
    dtypes="T V; T: float float16 bfloat16 double; V: float float16 bfloat16 double",
)
def simplified_layer_norm(call: Call, x: Array, scale: Array) -> tuple[Array, Array]:
    """(x / rms * scale, 1 / rms) over the axes from ``axis`` on."""
    y, inverse = root_mean_square(call, x, call.attr("axis", -1) % x.ndim)
    y *= widen(scale)
    return y.astype(scale.dtype, copy=False), inverse


@kernel("EmbedLayerNormalization", domain=MS, dtypes="int32 int32 T T T T T int32 int32; T: float float16")
@implements("epsilon", inputs=9, outputs=3, ignored={"mask_index_type": ()})
@computed_wide
def embed_layer_norm(
    call: Call,
    input_ids: Array,
    segment_ids: Array | None,
    word_embedding: Array,
    position_embedding: Array,
    segment_embedding: Array | None,
    gamma: Array,
    beta: Array,
    mask: Array | None = None,
    position_ids: Array | None = None,
) -> tuple[Array, Array, Array]:
    """(LayerNormalization of the sum of the embeddings, valid tokens per row, that sum)."""
    total = word_embedding[input_ids]
    positions = np.arange(input_ids.shape[1]) if position_ids is None else position_ids
    total = total + position_embedding[positions]
    if segment_ids is not None and segment_embedding is not None:
        total = total + segment_embedding[segment_ids]
    y = standardized(total, call.attr("epsilon", 1e-12))[0] * gamma + beta
    count = np.zeros(len(input_ids), np.int32) if mask is None else mask.sum(1).astype(np.int32)
    return y, count, total
