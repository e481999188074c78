"""Convolutions of one pixel change places with pooling and upsampling: they see fewer pixels then."""

from __future__ import annotations

import numpy as np

from optimizer.ir import Node, Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.known import constant_of, shape_of

POINT = P.Conv("x", "w", P.maybe("b"), name="conv").once()
EXACT_UNARY = (
    "Relu",
    "LeakyRelu",
    "Abs",
    "Neg",
    "HardSigmoid",
    "HardSwish",
    "Sigmoid",
    "Tanh",
    "Gelu",
    "Elu",
)


@graph_optimizer(P.AveragePool(POINT, name="pool"), constants="w", tag="E2")
def pool_before_pointwise_conv(m: Match, rw: Rewriter) -> Value:
    """AveragePool(Conv(x, w)) -> Conv(AveragePool(x), w), of a kernel of one pixel

    Where the pool takes steps, so that the convolution has fewer pixels to do.
    """
    _require_point(m, m.conv)
    pool = m.pool
    m.require(pool.attr("auto_pad", "NOTSET") in ("NOTSET", "VALID"), "the pool is padded")
    m.require(not any(pool.attr("pads", ())) and not pool.attr("ceil_mode", 0), "the pool is padded")
    m.require(min(pool.attr("strides", (1,))) > 1, "the pool takes no steps")
    pooled: Value = rw.op.AveragePool(m.x, **pool.attributes)
    return rw.op.Conv(pooled, m.w, m.b, **m.conv.attributes)


@graph_optimizer(P.GlobalAveragePool(POINT), constants="w", tag="E2")
def pool_globally_before_pointwise_conv(m: Match, rw: Rewriter) -> Value:
    """GlobalAveragePool(Conv(x, w)) -> Conv(GlobalAveragePool(x), w), of a kernel of one pixel"""
    _require_point(m, m.conv)
    made: Value = rw.op.Conv(rw.op.GlobalAveragePool(m.x), m.w, m.b, **m.conv.attributes)
    return made


@graph_optimizer(
    P.Conv(P.Resize("x", P.rest("settings"), name="resize").once(), "w", P.maybe("b"), name="conv"),
    constants="w",
    tag="E2",
)
def resize_behind_pointwise_conv(m: Match, rw: Rewriter) -> Value:
    """Conv(Resize(x), w) -> Resize(Conv(x, w)), of a kernel of one pixel

    Where Resize enlarges the image. Interpolation weights add up to 1, so that a bias may be added
    before as well.
    """
    _require_point(m, m.conv)
    factors = _require_enlarging(m, m.resize)
    m.require(m.resize.attr("mode", "nearest") in ("nearest", "linear"), "it may overshoot")
    outputs, inputs = constant_of(m, m.w).shape[:2]
    m.require(outputs <= 4 * inputs, "there would be many more channels to resize")
    small: Value = rw.op.Conv(m.x, m.w, m.b, **m.conv.attributes)
    region = m.settings[0]  # the sizes would tell the number of channels, so the scales are given
    return rw.op.Resize(small, region, rw.const(np.array(factors, np.float32)), **m.resize.attributes)


@graph_optimizer(
    P.one_of(*EXACT_UNARY)(P.Resize("x", P.rest("settings"), name="resize").once(), name="unary"), tag="E0"
)
def resize_behind_activation(m: Match, rw: Rewriter) -> Value:
    """Relu(Resize(x)) -> Resize(Relu(x)), and other activations likewise, where nearest pixels are taken"""
    m.require(m.resize.attr("mode", "nearest") == "nearest", "it interpolates")
    _require_enlarging(m, m.resize)
    m.require(m.single_use(m.x), "the small image has other readers")
    small: Value = getattr(rw.op, m.unary.op_type)(m.x, **m.unary.attributes)
    return rw.op.Resize(small, *m.settings, **m.resize.attributes)


def _require_point(m: Match, conv: Node) -> None:
    window = constant_of(m, m.w).shape[2:]
    plain = not any(conv.attr("pads", ())) and set(conv.attr("strides", (1,))) == {1}
    m.require(set(window) == {1} and plain, "the kernel is more than one pixel")
    m.require(conv.attr("auto_pad", "NOTSET") in ("NOTSET", "VALID"), "the kernel is more than one pixel")


def _require_enlarging(m: Match, resize: Node) -> list[float]:
    """The factor of each axis; refuses unless the image, and nothing but it, grows by known ones."""
    m.require(m.opset() >= 11, "Resize has one way to count before opset 11")
    m.require(resize.attr("coordinate_transformation_mode") != "tf_crop_and_resize", "a region is cropped")
    m.require(
        not resize.attr("antialias", 0) and "axes" not in resize.attributes, "only some axes are resized"
    )
    if resize.input(2) is not None and constant_of(m, resize.input(2)).size:
        factors = list(m.f64(resize.input(2)))
    else:
        factors = []
        for before, after in zip(shape_of(m, m.x), shape_of(m, resize.value()), strict=True):
            ratio = after.quotient(before)
            factors.append(0.0 if ratio is None or ratio.value is None else float(ratio.value))
    grows = factors[:2] == [1, 1] and min(factors, default=0) >= 1 and np.prod(factors) >= 2
    m.require(grows, "the image is not enlarged")
    return factors
