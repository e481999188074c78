"""GroupNormalization spelled out, and normalizations whose scale is in the way."""

from __future__ import annotations

import numpy as np

from optimizer.ir import DType, Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.affine import batchnorm_step, elementwise_step, scale_and_bias_behind
from passes.idiom_norm import DIFFERENCE, INVERSE_ROOT, ROOT
from passes.known import readers_of, shape_of


@graph_optimizer(
    P.Reshape(
        P.InstanceNormalization(
            P.Reshape("x", P.rest("there"), name="groups").once(), "scale", "bias", name="norm"
        ).once(),
        P.rest("back"),
    ),
    constants="scale bias",
    tag="E2",
)
def fuse_groupnorm(m: Match, rw: Rewriter) -> Value:
    """Reshape(InstanceNormalization(Reshape(x, [n, groups, -1]))) -> GroupNormalization(x)

    Fewer nodes, but slower on common runtimes, which have no kernel for it.
    """
    m.require(m.ctx.settings.objective == "nodes", "it would be slower")
    m.require(m.opset() >= 21, "GroupNormalization needs opset 21")
    m.require(m.dtype(m.x) in (DType.FLOAT, DType.FLOAT16), "not float32 or float16")
    shape, middle = shape_of(m, m.x), shape_of(m, m.groups.value())
    m.require(m.same_shape(m.x, m.root.value()), "the result has another shape")
    m.require(len(shape) > 2 and middle[0] == shape[0], "it does not group channels")
    channels, count = shape[1].value, middle[1].value
    m.require(channels and count and channels % count == 0, "it does not group channels")
    assert channels is not None
    assert count is not None
    parameters = (np.repeat(m.f64(v), channels // count) for v in (m.scale, m.bias))
    scale, bias = (rw.const(array, like=m.x) for array in parameters)
    epsilon = m.norm.attr("epsilon", 1e-5)
    return rw.op.GroupNormalization(m.x, scale, bias, num_groups=count, epsilon=epsilon)


GROUPNORM = P.GroupNormalization("x", "scale", "bias", name="norm").once()


@graph_optimizer(
    P.any_of(batchnorm_step(GROUPNORM), *elementwise_step(GROUPNORM)), constants="scale bias", tag="E2"
)
def fold_affine_into_groupnorm(m: Match, rw: Rewriter) -> Value:
    """GroupNormalization(x, scale, bias) * k + t -> GroupNormalization(x, scale * k, bias * k + t)"""
    m.require(m.opset() >= 21, "GroupNormalization has one scale per group before opset 21")
    made: Value = rw.op.GroupNormalization(m.x, *scale_and_bias_behind(m, rw), **m.norm.attributes)
    return made


# -------------------------------------------------------------------- a scale that is in the way


@graph_optimizer(
    P.any_of(
        P.Mul(DIFFERENCE, P.Mul(INVERSE_ROOT, P.const("scale"), name="factor").commutes().once()).commutes(),
        P.Mul(DIFFERENCE, P.Div(P.const("scale"), ROOT, name="factor").once()).commutes(),
    ),
    constants="epsilon",
    tag="E2",
)
def scale_behind_normalization(m: Match, rw: Rewriter) -> Value:
    """(x - mean) * (Reciprocal(deviation) * scale) -> ((x - mean) * Reciprocal(deviation)) * scale

    And of scale / deviation likewise: it is what normalizations are known by.
    """
    left, right = m.factor.inputs
    difference = m.difference.value()
    if m.factor.op_type == "Div":
        m.require(np.any(m.f64(m.scale) != 1), "there is no scale")
        return rw.op.Mul(rw.op.Div(difference, right), m.scale)
    return rw.op.Mul(rw.op.Mul(difference, left if right == m.scale else right), m.scale)


@graph_optimizer(
    P.Add(
        P.Mul("x", "g").commutes().once(), P.Sub("b", P.Mul("mean", "g").commutes().once()).once()
    ).commutes(),
    tag="E2",
)
def factor_out_of_normalization(m: Match, rw: Rewriter) -> Value:
    """x * g + (b - mean * g) -> (x - mean) * g + b, of the mean of x"""
    mean = m.producer(m.mean)
    m.require(mean is not None and mean.op == "ReduceMean" and mean.inputs[0] == m.x, "not the mean of x")
    differences = [n for n, slot in readers_of(m, m.mean) if slot and n.op == "Sub" and n.inputs[0] == m.x]
    difference = differences[0].value() if differences else rw.op.Sub(m.x, m.mean)
    return rw.op.Add(rw.op.Mul(difference, m.g), m.b)
