"""Operators of com.microsoft that onnxruntime's optimizers emit."""

from __future__ import annotations

from optimizer.analysis.context import InferContext
from optimizer.analysis.dims import Dim
from optimizer.analysis.fact import UNKNOWN, Fact
from optimizer.analysis.ops.convolution import conv_shape, windows
from optimizer.analysis.ops.matmul import matmul_shape
from optimizer.analysis.registry import infer
from optimizer.analysis.shapes import broadcast_shapes
from optimizer.ir import DType

__all__: list[str] = []

MS = "com.microsoft"


@infer("FusedConv", domain=MS)
def fused_conv(context: InferContext) -> Fact:
    return Fact(context.dtype(0), conv_shape(context, context.shape(0), context.shape(1)))


@infer("FusedMatMul", "TransposeMatMul", domain=MS)
def fused_matmul(context: InferContext) -> Fact:
    a, b = context.shape(0), context.shape(1)
    if context.attr("transBatchA", 0) or context.attr("transBatchB", 0):
        return Fact(context.dtype(0))
    if a is not None and context.attr("transA", 0) and len(a) > 1:
        a = (*a[:-2], a[-1], a[-2])
    if b is not None and context.attr("transB", 0) and len(b) > 1:
        b = (*b[:-2], b[-1], b[-2])
    return Fact(context.dtype(0), matmul_shape(a, b))


@infer("FusedGemm", domain=MS)
def fused_gemm(context: InferContext) -> Fact:
    a, b = context.shape(0), context.shape(1)
    rows = Dim.fresh("gemm") if a is None else a[1 if context.attr("transA", 0) else 0]
    columns = Dim.fresh("gemm") if b is None else b[0 if context.attr("transB", 0) else 1]
    return Fact(context.dtype(0), (rows, columns))


@infer("DynamicQuantizeMatMul", domain=MS)
def dynamic_quantize_matmul(context: InferContext) -> Fact:
    return Fact(context.dtype(0), matmul_shape(context.shape(0), context.shape(1)))


@infer("MatMulIntegerToFloat", domain=MS)
def matmul_integer_to_float(context: InferContext) -> Fact:
    return Fact(context.dtype(2), matmul_shape(context.shape(0), context.shape(1)))


@infer("MatMulNBits", domain=MS)
def matmul_n_bits(context: InferContext) -> Fact:
    shape = context.shape(0)
    return Fact(context.dtype(0), None if shape is None else (*shape[:-1], Dim.of(context.attr("N"))))


@infer("Gelu", "FastGelu", "QuickGelu", "BiasGelu", "Inverse", "RotaryEmbedding", domain=MS)
@infer("SimplifiedLayerNormalization", domain="")
def same_as_input(context: InferContext) -> Fact:
    return (context.inputs[0] or UNKNOWN).without_value()


@infer("BiasAdd", domain=MS)
def bias_add(context: InferContext) -> Fact:
    return Fact(context.dtype(0), broadcast_shapes(context.shape(0), context.shape(2)))


@infer("BiasSoftmax", domain=MS)
def bias_softmax(context: InferContext) -> Fact:
    return (context.inputs[0] or UNKNOWN).without_value()


@infer("SkipLayerNormalization", "SkipSimplifiedLayerNormalization", domain=MS)
def skip_layer_normalization(context: InferContext) -> list[Fact]:
    """The result, mean and inverse deviation, and the sum that was normalized."""
    fact = (context.inputs[0] or UNKNOWN).without_value()
    statistics = Fact(DType.FLOAT, None if fact.shape is None else (*fact.shape[:-1], Dim.of(1)))
    return [fact, statistics, statistics, fact]


@infer("EmbedLayerNormalization", domain=MS)
def embed_layer_normalization(context: InferContext) -> list[Fact]:
    ids, table = context.shape(0), context.shape(2)
    if ids is None or table is None:
        return [Fact(context.dtype(2)), Fact(DType.INT32)]
    full = Fact(context.dtype(2), (*ids, table[-1]))
    return [full, Fact(DType.INT32, ids[:1]), full]


@infer("Attention", domain=MS)
def attention(context: InferContext) -> list[Fact | None]:
    """[batch, seq, hidden]; the width is that of the values."""
    shape, weights = context.shape(0), context.shape(1)
    sizes = context.attr("qkv_hidden_sizes")
    if shape is None or len(shape) != 3:
        return [Fact(context.dtype(0)), None]
    width = Dim.of(sizes[2]) if sizes else weights[1] // 3 if weights is not None else Dim.fresh("hidden")
    return [Fact(context.dtype(0), (shape[0], shape[1], width)), None]


@infer("MultiHeadAttention", domain=MS)
def multi_head_attention(context: InferContext) -> list[Fact | None]:
    query, value = context.shape(0), context.shape(2)
    if query is None or len(query) != 3:
        return [Fact(context.dtype(0)), None, None]
    width = query[2]
    if value is not None:
        width = value[2] if len(value) == 3 else value[1] * value[3] if len(value) == 4 else width
    return [Fact(context.dtype(0), (query[0], query[1], width)), None, None]


@infer("GroupNorm", "SkipGroupNorm", domain=MS)
def group_norm(context: InferContext) -> list[Fact]:
    fact = (context.inputs[0] or UNKNOWN).without_value()
    return [fact, fact]


@infer("NhwcMaxPool", domain=MS)
def nhwc_max_pool(context: InferContext) -> Fact:
    shape = context.shape(0)
    if shape is None:
        return Fact(context.dtype(0))
    kernels = [Dim.of(k) for k in context.attr("kernel_shape", ())]
    sizes = windows(context, shape[1:-1], kernels, bool(context.attr("ceil_mode", 0)))
    return Fact(context.dtype(0), (shape[0], *sizes, shape[-1]))
