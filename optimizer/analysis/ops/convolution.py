"""Convolutions and pools."""

from __future__ import annotations

from optimizer.analysis.computed import maximum, minimum
from optimizer.analysis.context import Inconsistent, InferContext, fresh_shape
from optimizer.analysis.dims import Dim
from optimizer.analysis.fact import UNKNOWN, Fact, Shape
from optimizer.analysis.registry import infer
from optimizer.ir import DType

__all__ = ["conv_shape", "windows"]


@infer("Conv")
def conv(context: InferContext) -> Fact:
    return Fact(context.dtype(0), conv_shape(context, context.shape(0), context.shape(1)))


@infer("ConvInteger")
def conv_integer(context: InferContext) -> Fact:
    return Fact(DType.INT32, conv_shape(context, context.shape(0), context.shape(1)))


@infer("QLinearConv")
def qlinear_conv(context: InferContext) -> Fact:
    return Fact(context.dtype(7), conv_shape(context, context.shape(0), context.shape(3)))


def conv_shape(context: InferContext, x: Shape | None, w: Shape | None) -> Shape | None:
    """[N, C, spatial...] and [M, C/group, kernel...] to [N, M, spatial...].

    Raises:
        Inconsistent: ranks or channels do not fit.
    """
    if x is None:
        return None if w is None else (Dim.fresh("batch"), w[0], *fresh_shape(len(w) - 2, "conv"))
    kernel = context.attr("kernel_shape")
    if w is not None:
        if len(w) != len(x):
            raise Inconsistent(f"input of rank {len(x)}, weights of rank {len(w)}")
        if x[1].eq(w[1] * context.attr("group", 1)) is False:
            raise Inconsistent(f"{x[1]} channels for weights of {w[1]} channels per group")
        context.demand(x[1], w[1] * context.attr("group", 1))
    kernels = list(w[2:]) if w is not None else [Dim.of(k) for k in kernel] if kernel is not None else None
    channels = w[0] if w is not None else Dim.fresh("channels")
    if kernels is None:
        return (x[0], channels, *fresh_shape(len(x) - 2, "conv"))
    _demand_room(context, x[2:], kernels)
    return (x[0], channels, *windows(context, x[2:], kernels, fits=True))


def _demand_room(context: InferContext, spatial: Shape, kernels: list[Dim]) -> None:
    """A convolution takes no input, however padded, that its kernel does not fit into."""
    if context.attr("auto_pad", "NOTSET") in ("SAME_UPPER", "SAME_LOWER"):
        return
    rank = len(spatial)
    dilations = context.attr("dilations") or (1,) * rank
    pads = context.attr("pads") or (0,) * (2 * rank)
    for axis, size in enumerate(spatial if len(pads) == 2 * rank else ()):
        kernel = kernels[axis].value
        if kernel is not None:
            reach = (kernel - 1) * dilations[axis] + 1
            context.demand_at_least(size, reach - pads[axis] - pads[axis + rank])


def windows(
    context: InferContext, spatial: Shape, kernels: list[Dim], ceil_mode: bool = False, *, fits: bool = False
) -> list[Dim]:
    """Number of window positions along each spatial axis, from strides, dilations, pads, auto_pad.

    Args:
        fits: the operator fails where its window does not fit into the padded input, as convolutions do.
    """
    rank = len(spatial)
    strides = context.attr("strides") or (1,) * rank
    dilations = context.attr("dilations") or (1,) * rank
    pads = context.attr("pads") or (0,) * (2 * rank)
    auto_pad = context.attr("auto_pad", "NOTSET")
    if not len(kernels) == len(strides) == len(dilations) == len(pads) // 2 == rank:
        raise Inconsistent(f"kernel, strides, dilations or pads do not fit {rank} spatial axes")
    made = []
    for axis, size in enumerate(spatial):
        reach = (kernels[axis] - 1) * dilations[axis] + 1
        if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
            made.append(size.ceil_div(strides[axis]))
            continue
        before, after = (0, 0) if auto_pad == "VALID" else (pads[axis], pads[axis + rank])
        room, stride = size + (before + after) - reach, strides[axis]
        if room.value is not None and -stride <= room.value < 0:
            made.append(Dim.fresh("window"))  # it does not fit: runtimes refuse that, or round towards one
        elif ceil_mode:
            # a window that would start in the padding behind the input is left out
            made.append(minimum(room.ceil_div(stride) + 1, (size + before).ceil_div(stride)))
        elif fits or stride == 1:
            made.append(room // stride + 1)
        else:
            # Where a pool's window does not fit, its runtimes round the quotient towards zero.
            made.append(maximum(room // stride + 1, minimum(1, maximum(0, room + stride))))
    return made


@infer("DeformConv")
def deform_conv(context: InferContext) -> Fact:
    return Fact(context.dtype(0), conv_shape(context, context.shape(0), context.shape(1)))


@infer("CausalConvWithState")
def causal_conv_with_state(context: InferContext) -> list[Fact]:
    """The input's shape, and the last positions: one less than the kernel reaches."""
    x, w, dtype = context.shape(0), context.shape(1), context.dtype(0)
    if x is None or w is None or len(x) != 3 or len(w) != 3:
        return [Fact(dtype, x), Fact(dtype, fresh_shape(3, "state"))]
    return [Fact(dtype, x), Fact(dtype, (x[0], x[1], w[2] - 1))]


@infer("ConvTranspose")
def conv_transpose(context: InferContext) -> Fact:
    x, w, dtype = context.shape(0), context.shape(1), context.dtype(0)
    if x is None or w is None:
        other = x if x is not None else w
        return Fact(dtype, None if other is None else tuple(Dim.fresh("conv") for _ in other))
    if len(x) != len(w):
        raise Inconsistent(f"input of rank {len(x)}, weights of rank {len(w)}")
    context.demand(x[1], w[0])
    spatial = _transposed(context, x[2:], w[2:])
    return Fact(dtype, (x[0], w[1] * context.attr("group", 1), *spatial))


def _transposed(context: InferContext, spatial: Shape, kernels: Shape) -> list[Dim]:
    rank = len(spatial)
    given = context.attr("output_shape")
    if given:
        return [Dim.of(size) for size in given[-rank:]]
    strides = context.attr("strides") or (1,) * rank
    dilations = context.attr("dilations") or (1,) * rank
    extra = context.attr("output_padding") or (0,) * rank
    pads = context.attr("pads") or (0,) * (2 * rank)
    auto_pad = context.attr("auto_pad", "NOTSET")
    made = []
    for axis, size in enumerate(spatial):
        if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
            made.append(size * strides[axis])
            continue
        cut = 0 if auto_pad == "VALID" else pads[axis] + pads[axis + rank]
        reach = (kernels[axis] - 1) * dilations[axis] + 1
        made.append((size - 1) * strides[axis] + extra[axis] + reach - cut)
    return made


@infer("MaxPool", "AveragePool", "LpPool")
def pool(context: InferContext) -> list[Fact]:
    """MaxPool's second output holds indices."""
    fact = context.inputs[0] or UNKNOWN
    shape: Shape | None = None
    if fact.shape is not None:
        kernels = [Dim.of(k) for k in context.attr("kernel_shape", ())]
        sizes = windows(context, fact.shape[2:], kernels, bool(context.attr("ceil_mode", 0)))
        shape = (*fact.shape[:2], *sizes)
    return [Fact(fact.dtype, shape), Fact(DType.INT64, shape)]


@infer("MaxUnpool")
def max_unpool(context: InferContext) -> Fact:
    fact = context.inputs[0] or UNKNOWN
    if fact.shape is None:
        return Fact(fact.dtype)
    if context.has(2):
        dims = context.dims(2) or [None] * len(fact.shape)
        return Fact(fact.dtype, tuple(Dim.fresh("unpool") if d is None else d for d in dims))
    kernel = tuple(Dim.of(k) for k in context.attr("kernel_shape", ()))
    return Fact(fact.dtype, (*fact.shape[:2], *_transposed(context, fact.shape[2:], kernel)))


@infer("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(context: InferContext) -> Fact:
    fact = context.inputs[0] or UNKNOWN
    if fact.shape is None:
        return Fact(fact.dtype)
    return Fact(fact.dtype, (*fact.shape[:2], *(Dim.of(1) for _ in fact.shape[2:])))


@infer("MaxRoiPool")
def max_roi_pool(context: InferContext) -> Fact:
    x, rois = context.shape(0), context.shape(1)
    count = rois[0] if rois else Dim.fresh("rois")
    channels = x[1] if x is not None else Dim.fresh("channels")
    return Fact.tensor(context.dtype(0), (count, channels, *context.attr("pooled_shape")))
