"""RMSNormalization spelled out."""

from __future__ import annotations

import numpy as np

from optimizer.ir import DType, Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.affine import affine_of, elementwise_step, require_room
from passes.idiom_norm import epsilon_of, within
from passes.known import axes_of, constant_of, known_sizes, rank_of, shape_of
from passes.moments import mean_of_squares, require_mean

MEAN_SQUARE = P.Add(mean_of_squares("x", "mean"), P.const("epsilon")).commutes().once()
ROOT = P.any_of(P.Sqrt(MEAN_SQUARE).once(), P.Pow(MEAN_SQUARE, P.scalar(0.5)).once())
INVERSE = P.any_of(
    P.Reciprocal(ROOT).once(), P.Div(P.scalar(1.0), ROOT).once(), P.Pow(MEAN_SQUARE, P.scalar(-0.5)).once()
)


@graph_optimizer(P.any_of(P.Div("x", ROOT), P.Mul("x", INVERSE).commutes()), tag="E2")
def fuse_rmsnorm(m: Match, rw: Rewriter) -> Value:
    """x / Sqrt(ReduceMean(x^2) + epsilon) -> RMSNormalization(x, 1, epsilon)

    The mean runs over the last axes, whose sizes are known.
    """
    m.require(m.opset() >= 23, "RMSNormalization needs opset 23")
    m.require(m.dtype(m.x) in (DType.FLOAT, DType.FLOAT16), "not float32 or float16")
    shape = shape_of(m, m.x)
    axes = axes_of(m, m.mean, 1, len(shape))
    m.require(m.mean.attr("keepdims", 1), "an axis is dropped")
    require_mean(m, "mean")
    m.require(axes and axes == tuple(range(axes[0], len(shape))), "it does not run over the last axes")
    assert axes is not None
    sizes = known_sizes(shape[axis] for axis in axes)
    if sizes is None:
        m.refuse("the sizes of the normalized axes are not known")
    scale = rw.const(np.ones(sizes), like=m.x)
    return rw.op.RMSNormalization(m.x, scale, axis=axes[0] - len(shape), epsilon=epsilon_of(m))


@graph_optimizer(
    P.any_of(*elementwise_step(P.RMSNormalization("x", "scale", name="norm").once())),
    constants="scale",
    tag="E2",
)
def fold_scale_into_rmsnorm(m: Match, rw: Rewriter) -> Value:
    """RMSNormalization(x, scale) * k -> RMSNormalization(x, scale * k)"""
    rank = rank_of(m, m.x)
    sizes = constant_of(m, m.scale).shape
    m.require(len(sizes) == rank - m.norm.attr("axis", -1) % rank, "the scale is broadcast")
    affine = affine_of(m, m.step, m.norm.value(), rank)
    m.require(affine.is_scale, "the step is no scale")
    require_room(m, m.scale)
    scale = rw.const(m.f64(m.scale) * within(m, affine.scale, sizes), like=m.scale)
    made: Value = rw.op.RMSNormalization(m.x, scale, **m.norm.attributes)
    return made
