"""Chains of constant affine steps: merged, taken up by BatchNormalization, or made into one."""

from __future__ import annotations

import numpy as np

from optimizer.ir import DType, Node, Tensor, Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.affine import (
    Affine,
    affine_of,
    as_batchnorm,
    as_elementwise,
    batchnorm_step,
    elementwise_step,
    once,
    scale_step,
    shift_step,
)
from passes.known import shape_of

TWO = P.any_of(*elementwise_step(once(elementwise_step("x", "first"))))
THREE = P.any_of(*elementwise_step(once(elementwise_step(once(elementwise_step("x", "first")), "second"))))


NEG = P.Neg("x", name="first")
OF_A_KIND = P.any_of(
    *shift_step(once((*shift_step("x", "first"), NEG))),
    *scale_step(once((*scale_step("x", "first"), NEG))),
    P.Neg(once(elementwise_step("x", "first")), name="step"),
)


@graph_optimizer(OF_A_KIND, tag="E2")
def merge_affine_steps(m: Match, rw: Rewriter) -> Value:
    """(x * a) * b -> x * (a * b), (x + a) + b -> x + (a + b)

    Two of Add, Sub and Neg, or two of Mul, Div and Neg, with float constants.
    """
    return _merged(m, rw, (m.first, m.step))


@graph_optimizer(THREE, tag="E2")
def merge_affine_chain(m: Match, rw: Rewriter) -> Value:
    """((x * a) + b) * c -> x * (a * c) + b * c

    Any three of Mul, Div, Add, Sub and Neg with float constants.
    """
    return _merged(m, rw, (m.first, m.second, m.step))


def _merged(m: Match, rw: Rewriter, steps: tuple[Node, ...]) -> Value:
    whole, value, size = Affine(np.ones(()), np.zeros(())), m.x, 0
    for step in steps:
        found = affine_of(m, step, value, 0)
        size += max(found.scale.size, found.shift.size)
        whole, value = found.after(whole), step.value()
    return as_elementwise(m, rw, m.x, whole, size)


# -------------------------------------------------------------------- with BatchNormalization


@graph_optimizer(
    P.any_of(
        batchnorm_step(once((*elementwise_step("x", "first"), batchnorm_step("x", "first")))),
        *elementwise_step(batchnorm_step("x", "first").once()),
    ),
    tag="E2",
)
def merge_affine_with_batchnorm(m: Match, rw: Rewriter) -> Value:
    """BatchNormalization(x) * k + t -> BatchNormalization(x), and the other way round

    One step at a time, one number per channel; two BatchNormalizations in a row as well.
    """
    return _as_one_batchnorm(m, rw)


@graph_optimizer(TWO, tag="E2")
def raise_affine_to_batchnorm(m: Match, rw: Rewriter) -> Value:
    """x * k + t -> BatchNormalization(x, k, t, mean=0, var=1), next to a Conv or of channels

    Runtimes that block channels keep BatchNormalization blocked, but not an Add of a constant; and it
    is one pass over the image.
    """
    channels = any(max(a.shape, default=1) > 1 for a in _constants(m)) and m.rank(m.x) == 4
    m.require(channels or _near_conv(m), "no Conv is near")
    m.require({m.first.op_type, m.step.op_type} & {"Add", "Sub"}, "the steps merge without it")
    return _as_one_batchnorm(m, rw)


def _as_one_batchnorm(m: Match, rw: Rewriter) -> Value:
    shape = shape_of(m, m.x)
    m.require(len(shape) >= 3, "not an image")
    m.require(m.dtype(m.x) in (DType.FLOAT, DType.DOUBLE), "not float32 or float64")
    m.require(m.opset() >= 7, "batch norm has another form before opset 7")
    channels, rank = shape[1].value, len(shape)
    if channels is None:
        m.refuse("the number of channels is not known")
    first = affine_of(m, m.first, m.x, rank).along(m, 1, rank, channels)
    second = affine_of(m, m.step, m.first.value(), rank).along(m, 1, rank, channels)
    return as_batchnorm(rw, m.x, second.after(first), like=m.x)


def _constants(m: Match) -> list[Tensor]:
    found = [m.tensor(v) for node in (m.first, m.step) for v in node.inputs]
    return [tensor for tensor in found if tensor is not None]


_POINTWISE = frozenset(
    ("Relu", "LeakyRelu", "Sigmoid", "Tanh", "Clip", "HardSigmoid", "HardSwish", "Gelu", "Mul", "Add", "Sum")
)


def _near_conv(m: Match) -> bool:
    """Whether a Conv is one pointwise operator, or none, before or behind the steps."""
    if "Conv" not in m.graph.op_types:
        return False
    before = [m.producer(m.x)]
    before += [m.producer(v) for p in before if p and p.op_type in _POINTWISE for v in p.inputs]
    readers = [m.graph.node(use.node) for use in m.graph.uses(m.root.value())]
    for reader in [r for r in readers if r.op_type in _POINTWISE]:
        readers += [m.graph.node(use.node) for use in m.graph.uses(reader.value())]
    return any(node is not None and node.op_type == "Conv" for node in (*before, *readers))
