"""Operators of com.microsoft that onnxruntime's optimizers emit."""

from __future__ import annotations

from optimizer.analysis.context import InferContext, fresh_shape, normal_axis
from optimizer.analysis.dims import Dim
from optimizer.analysis.fact import UNKNOWN, Fact
from optimizer.analysis.ops.contrib_quant import channels_last_conv
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


@infer("FusedMatMul", "TransposeMatMul", "FusedMatMulActivation", domain=MS)
def fused_matmul(context: InferContext) -> Fact:
    """A transposed batch comes last but one: [m, ..., k] there."""
    a, b = context.shape(0), context.shape(1)
    if a is not None and context.attr("transBatchA", 0) and len(a) > 2:
        a = (*a[1:-1], a[0], a[-1])
    if b is not None and context.attr("transBatchB", 0) and len(b) > 2:
        b = (*b[1:-1], b[0], b[-1])
    if a is not None and context.attr("transA", 0) and len(a) > 1:
        a = (*a[:-2], a[-1], a[-2])
    if b is not None and context.attr("transB", 0) and len(b) > 1:
        b = (*b[:-2], b[-1], b[-2])
    return Fact(context.dtype(0), matmul_shape(context, a, b))


@infer("FusedGemm", domain=MS)
def fused_gemm(context: InferContext) -> Fact:
    a, b = context.shape(0), context.shape(1)
    rows = Dim.fresh("gemm") if a is None else a[1 if context.attr("transA", 0) else 0]
    columns = Dim.fresh("gemm") if b is None else b[0 if context.attr("transB", 0) else 1]
    return Fact(context.dtype(0), (rows, columns))


@infer("DynamicQuantizeMatMul", domain=MS)
def dynamic_quantize_matmul(context: InferContext) -> Fact:
    return Fact(context.dtype(0), matmul_shape(context, context.shape(0), context.shape(1)))


@infer("MatMulIntegerToFloat", domain=MS)
def matmul_integer_to_float(context: InferContext) -> Fact:
    return Fact(context.dtype(2), matmul_shape(context, context.shape(0), context.shape(1)))


@infer("MatMulNBits", "MatMulBnb4", domain=MS)
def matmul_n_bits(context: InferContext) -> Fact:
    shape = context.shape(0)
    return Fact(context.dtype(0), None if shape is None else (*shape[:-1], Dim.of(context.attr("N"))))


# fmt: off
SAME = (
    "BiasGelu", "BiasSoftmax", "FastGelu", "GatedRMSNorm", "Gelu", "GemmaRotaryEmbedding", "Inverse", "MoE",
    "NGramRepeatBlock", "QMoE", "QuickGelu", "RotaryEmbedding", "ScaledSiLU", "SimplifiedLayerNormalization",
    "Trilu",
)
# fmt: on


@infer(*SAME, domain=MS)
@infer("SimplifiedLayerNormalization", domain="")
def same_as_input(context: InferContext) -> Fact:
    return (context.inputs[0] or UNKNOWN).without_value()


@infer("BiasAdd", domain=MS)
def bias_add(context: InferContext) -> Fact:
    return Fact(context.dtype(0), broadcast_shapes(context.shape(0), context.shape(2)))


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


@infer("NhwcConv", "NhwcFusedConv", domain=MS)
def nhwc_conv(context: InferContext) -> Fact:
    return Fact(context.dtype(0), channels_last_conv(context, context.shape(0), context.shape(1)))


@infer("BiasDropout", "BitmaskDropout", "BitmaskBiasDropout", domain=MS)
def bias_dropout(context: InferContext) -> list[Fact | None]:
    """The mask is of truth values, or of packed bits."""
    fact = (context.inputs[0] or UNKNOWN).without_value()
    return [fact, fact.of_dtype(DType.BOOL) if context.node.op_type == "BiasDropout" else None]


@infer("BiasSplitGelu", domain=MS)
def bias_split_gelu(context: InferContext) -> Fact:
    """Half the width: one half gates the other."""
    shape = context.shape(0)
    return Fact(context.dtype(0), None if not shape else (*shape[:-1], shape[-1] // 2))


@infer("GemmFastGelu", domain=MS)
def gemm_fast_gelu(context: InferContext) -> Fact:
    return Fact(context.dtype(0), matmul_shape(context, context.shape(0), context.shape(1)))


@infer("ExpandDims", domain=MS)
def expand_dims(context: InferContext) -> Fact:
    shape, axes = context.shape(0), context.ints(1)
    if shape is None or not axes:
        return Fact(context.dtype(0), None if shape is None else fresh_shape(len(shape) + 1, "expand"))
    axis = normal_axis(axes[0], len(shape) + 1)
    return Fact(context.dtype(0), (*shape[:axis], Dim.of(1), *shape[axis:]))


@infer("Rfft", domain=MS)
def rfft(context: InferContext) -> Fact:
    """Half the spectrum of the last axis, as pairs."""
    shape = context.shape(0)
    whole = not shape or not context.attr("onesided", 1) or context.attr("signal_ndim", 1) != 1
    return Fact(
        context.dtype(0), None if whole or not shape else (*shape[:-1], shape[-1] // 2 + 1, Dim.of(2))
    )
