"""Means: what divides a sum by its number of elements, and the mean of squares in every spelling."""

from __future__ import annotations

import math

from optimizer.ir import Node
from optimizer.rewrite import Match, P
from optimizer.rewrite.pattern import AnyOf, Op, Term
from passes.known import ROUNDED, axes_of, known_sizes, rank_of, shape_of


def mean_of_squares(inner: Term | str, name: str) -> AnyOf:
    """Terms for the mean of ``inner`` squared, of a single use; the reduction is bound to ``name``.

    ``require_mean`` then says whether it is a mean.
    """
    square = P.any_of(P.Pow(inner, P.scalar(2.0)).once(), P.Mul(inner, inner).once())
    axes = P.maybe(f"{name}_axes")
    norm = P.ReduceL2(inner, axes, name=name)
    sums: tuple[Op, ...] = (
        P.ReduceSumSquare(inner, axes, name=name).once(),
        P.Mul(norm, norm).once(),
        P.Pow(norm.once(), P.scalar(2.0)).once(),
    )
    return P.any_of(
        P.ReduceMean(square, axes, name=name).once(),
        P.Mul(P.any_of(*sums), P.const("portion"), name="share").commutes().once(),
        P.Div(P.any_of(*sums), P.const("portion"), name="share").once(),
    )


def require_mean(m: Match, name: str) -> None:
    """Refuses a sum that is not divided by the number of elements it runs over."""
    reduction = getattr(m, name)
    if reduction.op_type == "ReduceMean":
        return
    source = reduction.inputs[0]
    assert source is not None
    shape = shape_of(m, source)
    axes = axes_of(m, reduction, 1, len(shape)) or ()
    sizes = known_sizes(shape[axis] for axis in axes)
    portion = m.f64(m.portion)
    if not sizes:
        m.refuse("how many elements are added up is not known")
    m.require(portion.size == 1 and portion.ndim <= rank_of(m, source), "it is not divided by one number")
    divides = divides_by(m.share, float(portion.reshape(())), math.prod(sizes))
    m.require(divides, "the sum is not divided by its number of elements")


def divides_by(step: Node, constant: float, count: int) -> bool:
    """Whether a Div by, or a Mul with, a constant of single precision divides by ``count``."""
    factor = constant if step.op_type == "Mul" else 1 / (constant or math.nan)
    return abs(factor * count - 1) < ROUNDED
