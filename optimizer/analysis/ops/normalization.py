"""Normalizations: the shape of the input, and statistics."""

from __future__ import annotations

from optimizer.analysis.context import InferContext
from optimizer.analysis.dims import Dim
from optimizer.analysis.fact import UNKNOWN, Fact
from optimizer.analysis.registry import infer
from optimizer.ir import DType

__all__: list[str] = []


@infer("BatchNormalization")
def batch_normalization(context: InferContext) -> list[Fact]:
    """Further outputs are statistics of one number per channel."""
    fact = (context.inputs[0] or UNKNOWN).without_value()
    _demand_channels(context)
    statistics = [(context.fact(index) or UNKNOWN).without_value() for index in (3, 4)]
    return [fact, *(statistics * 2)]


def _demand_channels(context: InferContext) -> None:
    """One scale for each channel."""
    x, scale = context.shape(0), context.shape(1)
    if x is not None and len(x) > 1 and scale is not None and len(scale) == 1:
        context.demand(x[1], scale[0])


@infer("InstanceNormalization")
def instance_normalization(context: InferContext) -> Fact:
    _demand_channels(context)
    return (context.inputs[0] or UNKNOWN).without_value()


@infer("GroupNormalization", "RMSNormalization")
def normalization(context: InferContext) -> Fact:
    return (context.inputs[0] or UNKNOWN).without_value()


@infer("LayerNormalization")
def layer_normalization(context: InferContext) -> list[Fact]:
    """Mean and inverse deviation keep the normalized axes as 1."""
    fact = (context.inputs[0] or UNKNOWN).without_value()
    number = context.attr("stash_type", 1)
    if fact.shape is None:
        return [fact, Fact(DType(number)), Fact(DType(number))]
    axis = context.axis(-1, len(fact.shape))
    shape = fact.shape[:axis] + (Dim.of(1),) * (len(fact.shape) - axis)
    return [fact, Fact(DType(number), shape), Fact(DType(number), shape)]
