"""Quantized operators of com.microsoft."""

from __future__ import annotations

from optimizer.analysis.context import InferContext
from optimizer.analysis.dims import Dim
from optimizer.analysis.fact import UNKNOWN, Fact, Shape
from optimizer.analysis.ops.convolution import conv_shape, windows
from optimizer.analysis.ops.movement import joined_shape
from optimizer.analysis.ops.reduction import reduced_by_attribute
from optimizer.analysis.registry import infer
from optimizer.analysis.shapes import broadcast_shapes
from optimizer.ir import DType

__all__: list[str] = []

MS = "com.microsoft"


@infer("QLinearAdd", "QLinearMul", domain=MS)
def qlinear_binary(context: InferContext) -> Fact:
    return Fact(context.dtype(0), broadcast_shapes(context.shape(0), context.shape(3)))


@infer("QLinearWhere", domain=MS)
def qlinear_where(context: InferContext) -> Fact:
    return Fact(context.dtype(1), broadcast_shapes(context.shape(0), context.shape(1), context.shape(4)))


@infer("QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax", domain=MS)
def qlinear_unary(context: InferContext) -> Fact:
    return (context.inputs[0] or UNKNOWN).without_value()


@infer("QLinearGlobalAveragePool", domain=MS)
def qlinear_global_pool(context: InferContext) -> Fact:
    fact = context.inputs[0] or UNKNOWN
    if fact.shape is None:
        return Fact(fact.dtype)
    ones = (Dim.of(1),) * (len(fact.shape) - 2)
    if context.attr("channels_last", 0):
        return Fact(fact.dtype, (fact.shape[0], *ones, fact.shape[-1]))
    return Fact(fact.dtype, (*fact.shape[:2], *ones))


@infer("QLinearAveragePool", domain=MS)
def qlinear_average_pool(context: InferContext) -> Fact:
    shape = context.shape(0)
    if shape is None:
        return Fact(context.dtype(0))
    kernels = [Dim.of(k) for k in context.attr("kernel_shape", ())]
    ceil_mode = bool(context.attr("ceil_mode", 0))
    if context.attr("channels_last", 0):
        return Fact(
            context.dtype(0), (shape[0], *windows(context, shape[1:-1], kernels, ceil_mode), shape[-1])
        )
    return Fact(context.dtype(0), (*shape[:2], *windows(context, shape[2:], kernels, ceil_mode)))


@infer("QLinearConcat", domain=MS)
def qlinear_concat(context: InferContext) -> Fact:
    """After scale and zero point of the result, three inputs for each part."""
    shapes = [context.shape(index) for index in range(2, len(context.inputs), 3)]
    return Fact(context.dtype(1), joined_shape(shapes, context.attr("axis", 0)))


@infer("QLinearReduceMean", domain=MS)
def qlinear_reduce_mean(context: InferContext) -> Fact:
    return Fact(context.dtype(0), reduced_by_attribute(context))


@infer("ReduceSumInteger", domain=MS)
def reduce_sum_integer(context: InferContext) -> Fact:
    signed = context.dtype(0) is DType.INT8
    return Fact(DType.INT32 if signed else DType.UINT32, reduced_by_attribute(context))


@infer("QLinearConv", domain=MS)
def qlinear_conv(context: InferContext) -> Fact:
    x, w = context.shape(0), context.shape(3)
    if not context.attr("channels_last", 0):
        return Fact(context.dtype(7), conv_shape(context, x, w))
    return Fact(context.dtype(7), channels_last_conv(context, x, w))


def channels_last_conv(context: InferContext, x: Shape | None, w: Shape | None) -> Shape | None:
    """[N, spatial..., C] and [M, C/group, kernel...] to [N, spatial..., M]."""
    turned = None if x is None else (x[0], x[-1], *x[1:-1])
    shape = conv_shape(context, turned, w)
    return None if shape is None else (shape[0], *shape[2:], shape[1])


@infer("QGemm", domain=MS)
def qgemm(context: InferContext) -> Fact:
    a, b = context.shape(0), context.shape(3)
    rows = Dim.fresh("gemm") if a is None else a[1 if context.attr("transA", 0) else 0]
    columns = Dim.fresh("gemm") if b is None else b[0 if context.attr("transB", 0) else 1]
    return Fact(context.dtype(8) if context.has(8) else DType.FLOAT, (rows, columns))


@infer("QAttention", domain=MS)
def qattention(context: InferContext) -> list[Fact | None]:
    """[batch, seq, hidden], a third of the width of the weights."""
    shape, weights, dtype = context.shape(0), context.shape(1), context.dtype(3)
    if shape is None or len(shape) != 3:
        return [Fact(dtype), None]
    width = weights[1] // 3 if weights is not None and len(weights) == 2 else Dim.fresh("hidden")
    return [Fact(dtype, (shape[0], shape[1], width)), None]


@infer("QEmbedLayerNormalization", domain=MS)
def qembed_layer_normalization(context: InferContext) -> list[Fact]:
    ids, table = context.shape(0), context.shape(2)
    if ids is None or table is None:
        return [Fact(DType.FLOAT), Fact(DType.INT32)]
    return [Fact(DType.FLOAT, (*ids, table[-1])), Fact(DType.INT32, ids[:1])]


@infer("DynamicQuantizeLSTM", domain=MS)
def dynamic_quantize_lstm(context: InferContext) -> list[Fact | None]:
    """[seq, directions, batch, hidden] and the last states."""
    x, hidden = context.shape(0), Dim.of(context.attr("hidden_size"))
    directions = Dim.of(2 if context.attr("direction", "forward") == "bidirectional" else 1)
    steps, batch = (x[0], x[1]) if x is not None else (Dim.fresh("steps"), Dim.fresh("batch"))
    last = Fact(context.dtype(0), (directions, batch, hidden))
    return [Fact(context.dtype(0), (steps, directions, batch, hidden)), last, last]


@infer("GatherBlockQuantized", domain=MS)
def gather_block_quantized(context: InferContext) -> Fact:
    """Two 4-bit numbers share a byte; the scales say the type."""
    data, indices, dtype = context.shape(0), context.shape(1), context.dtype(2)
    if data is None or indices is None:
        return Fact(dtype)
    axis = context.axis(0, len(data), "gather_axis")
    last = data[-1]
    if context.dtype(0) is DType.UINT8:
        last = last * (8 // context.attr("bits", 4))
    whole = (*data[:-1], last)
    return Fact(dtype, (*whole[:axis], *indices, *whole[axis + 1 :]))
