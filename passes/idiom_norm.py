"""Normalizations spelled out become the one operator that they are."""

from __future__ import annotations

import math

import numpy as np

from optimizer.ir import DType, Node, Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.affine import affine_of, elementwise_step, require_room, scale_and_bias_behind
from passes.known import as_stored, axes_of, constant_of, known_sizes, rank_of, shape_of
from passes.moments import mean_of_squares, require_mean

MEAN = P.ReduceMean("x", P.maybe("mean_axes"), name="mean")
DIFFERENCE = P.Sub("x", MEAN, name="difference")
VARIANCE = mean_of_squares(DIFFERENCE, "variance")
SHIFTED = P.Add(VARIANCE, P.const("epsilon")).commutes().once()
ROOT = P.any_of(P.Sqrt(SHIFTED).once(), P.Pow(SHIFTED, P.scalar(0.5)).once())
INVERSE_ROOT = P.any_of(
    P.Reciprocal(ROOT).once(), P.Div(P.scalar(1.0), ROOT).once(), P.Pow(SHIFTED, P.scalar(-0.5)).once()
)
NORMALIZED = (P.Div(DIFFERENCE, ROOT), P.Mul(DIFFERENCE, INVERSE_ROOT).commutes())


@graph_optimizer(P.any_of(*NORMALIZED), constants="epsilon", tag="E2")
def fuse_instancenorm(m: Match, rw: Rewriter) -> Value:
    """(x - mean) / Sqrt(ReduceMean((x - mean)^2) + epsilon) -> InstanceNormalization(x, 1, 0, epsilon)

    Where both means run over every axis of an image behind the channels, whose number is known.
    """
    m.require(m.opset() >= 7, "elementwise operators broadcast differently before opset 7")
    m.require(m.dtype(m.x) is DType.FLOAT, "not float32")
    axes, shape = _normalized_axes(m), shape_of(m, m.x)
    m.require(len(shape) >= 4 and axes == tuple(range(2, len(shape))), "it does not run over the image")
    channels = shape[1].value
    if channels is None:
        m.refuse("the number of channels is not known")
    scale, bias = (rw.const(np.full(channels, k), like=m.x) for k in (1, 0))
    return rw.op.InstanceNormalization(m.x, scale, bias, epsilon=epsilon_of(m))


@graph_optimizer(P.any_of(*NORMALIZED), constants="epsilon", tag="E2")
def fuse_layernorm(m: Match, rw: Rewriter) -> Value:
    """(x - mean) / Sqrt(ReduceMean((x - mean)^2) + epsilon) -> LayerNormalization(x, 1, 0, epsilon)

    mean is ReduceMean(x); both means run over the last axes, whose sizes are known.
    """
    m.require(m.opset() >= 17, "LayerNormalization needs opset 17")
    m.require(m.dtype(m.x) in (DType.FLOAT, DType.FLOAT16), "not float32 or float16")
    axes, shape = _normalized_axes(m), shape_of(m, m.x)
    m.require(axes == tuple(range(axes[0], len(shape))), "it does not run over the last axes")
    return _layernorm(m, rw, m.x, axes)


@graph_optimizer(P.any_of(*NORMALIZED), constants="epsilon", tag="E2")
def fuse_layernorm_of_channels(m: Match, rw: Rewriter) -> Value:
    """(x - mean) / Sqrt(ReduceMean((x - mean)^2) + epsilon) -> Transpose(LayerNormalization(Transpose(x)))

    Where both means run over the channels.
    """
    m.require(m.opset() >= 17, "LayerNormalization needs opset 17")
    m.require(m.dtype(m.x) in (DType.FLOAT, DType.FLOAT16), "not float32 or float16")
    axes, rank = _normalized_axes(m), rank_of(m, m.x)
    m.require(rank >= 3 and axes == (1,), "it does not run over the channels")
    there = (0, *range(2, rank), 1)
    back = (0, rank - 1, *range(1, rank - 1))
    normalized = _layernorm(m, rw, rw.op.Transpose(m.x, perm=list(there)), axes)
    return rw.op.Transpose(normalized, perm=list(back))


def _layernorm(m: Match, rw: Rewriter, x: Value, axes: tuple[int, ...]) -> Value:
    """LayerNormalization of ``x``, whose last axes are these axes of the matched value."""
    shape = shape_of(m, m.x)
    sizes = known_sizes(shape[axis] for axis in axes)
    if sizes is None:
        m.refuse("the sizes of the normalized axes are not known")
    scale = rw.const(np.ones(sizes), like=m.x)
    made: Value = rw.op.LayerNormalization(x, scale, axis=-len(axes), epsilon=epsilon_of(m))
    return made


def _normalized_axes(m: Match) -> tuple[int, ...]:
    rank = rank_of(m, m.x)
    axes, square_axes = (axes_of(m, node, 1, rank) for node in (m.mean, m.variance))
    if not axes or axes != square_axes:
        m.refuse("the means are over different axes")
    require_mean(m, "variance")
    m.require(m.mean.attr("keepdims", 1) and m.variance.attr("keepdims", 1), "an axis is dropped")
    return axes


def epsilon_of(m: Match) -> float:
    """The one number added under the root.

    Raises:
        Refusal: it is none, or negative.
    """
    epsilon = m.f64(m.epsilon)
    m.require(epsilon.size == 1 and epsilon.ndim <= rank_of(m, m.x), "epsilon is no scalar")
    value = float(epsilon.reshape(()))
    m.require(value >= 0 and math.isfinite(value), "epsilon is negative")
    return as_stored(value)


# -------------------------------------------------------------------- what follows a normalization


@graph_optimizer(
    P.any_of(*elementwise_step(P.LayerNormalization("x", "scale", P.maybe("bias"), name="norm").once())),
    constants="scale",
    tag="E2",
)
def fold_affine_into_layernorm(m: Match, rw: Rewriter) -> Value:
    """LayerNormalization(x, scale, bias) * k + t -> LayerNormalization(x, scale * k, bias * k + t)

    One step at a time; k and t vary along the normalized axes at most.
    """
    rank = rank_of(m, m.x)
    axis = m.norm.attr("axis", -1) % rank
    sizes = constant_of(m, m.scale).shape
    m.require(len(sizes) == rank - axis, "the scale is broadcast")
    affine = affine_of(m, m.step, m.norm.value(), rank)
    scale, shift = (within(m, a, sizes) for a in (affine.scale, affine.shift))
    bias = shift if m.bias is None else within(m, m.f64(m.bias), sizes) * scale + shift
    require_room(m, m.scale)
    new_scale = m.scale if affine.is_shift else rw.const(m.f64(m.scale) * scale, like=m.scale)
    new_bias = rw.const(bias, like=m.scale) if m.bias is not None or bias.any() else None
    made: Value = rw.op.LayerNormalization(m.x, new_scale, new_bias, **m.norm.attributes)
    return made


@graph_optimizer(
    P.any_of(*elementwise_step(P.InstanceNormalization("x", "scale", "bias", name="norm").once())),
    constants="scale",
    tag="E2",
)
def fold_affine_into_instancenorm(m: Match, rw: Rewriter) -> Value:
    """InstanceNormalization(x, scale, bias) * k + t -> InstanceNormalization(x, scale * k, bias * k + t)"""
    made: Value = rw.op.InstanceNormalization(m.x, *scale_and_bias_behind(m, rw), **m.norm.attributes)
    return made


def within(m: Match, constant: np.ndarray, sizes: tuple[int, ...]) -> np.ndarray:
    """The constant stretched to ``sizes``, its leading axes of size 1 dropped.

    Raises:
        Refusal: it varies along another axis.
    """
    extra = max(constant.ndim - len(sizes), 0)
    m.require(
        all(n == 1 for n in constant.shape[:extra])
        and all(n in (1, s) for n, s in zip(constant.shape[::-1], sizes[::-1], strict=False)),
        "the constant varies outside the normalized axes",
    )
    return np.broadcast_to(constant.reshape(constant.shape[extra:]), sizes)


# -------------------------------------------------------------------- means over an image


@graph_optimizer(P.ReduceMean("x", P.maybe("axes"), name="mean"), tag="E2")
def fuse_global_average_pool(m: Match, rw: Rewriter) -> Value:
    """ReduceMean(x, axes=[2, 3]) -> GlobalAveragePool(x), of images next to a Conv

    Runtimes that block channels keep the pool blocked.
    """
    rank = rank_of(m, m.x)
    m.require(rank == 4, "not an image")
    m.require(m.dtype(m.x) is DType.FLOAT, "not float32")
    m.require(axes_of(m, m.mean, 1, rank) == (2, 3), "it does not run over the image")
    m.require(m.mean.attr("keepdims", 1), "an axis is dropped")
    m.require(_is_near_conv(m), "no Conv is near")
    return rw.op.GlobalAveragePool(m.x)


NEAR = 4
"""Operators in a row that still keep what a Conv makes in blocks of channels."""
_POINTWISE = frozenset(
    ("Relu", "LeakyRelu", "Clip", "Mul", "Add", "Sigmoid", "HardSigmoid", "HardSwish", "BatchNormalization")
)


def _is_near_conv(m: Match) -> bool:
    """Whether ``x`` comes from a Conv, through pointwise operators at most."""
    level = [m.producer(m.x)]
    for _ in range(NEAR):
        found: list[Node] = [node for node in level if node is not None]
        if any(node.op_type == "Conv" for node in found):
            return True
        pointwise = [n for n in found if n.op_type in _POINTWISE]
        level = [m.producer(v) for node in pointwise for v in node.inputs]
    return False
