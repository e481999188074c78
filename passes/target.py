"""Targets of Reshape and Expand and bounds of Slice that are known although they are computed.

Where each number of a target is a literal, a dimension of the operand, or left to -1, the computation
that made it is not needed any more, however many dimensions are dynamic.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from optimizer.analysis import Dim, product
from optimizer.ir import Value
from optimizer.rewrite import Match, P, Refusal, Rewriter, graph_optimizer
from passes.known import shape_of

COPY, REST = 0, -1
"""What a target says for a dimension that is copied from the operand, and for the one that is left over."""


def reshape_target(
    m: Match, source: Sequence[Dim], result: Sequence[Dim], given: Sequence[Dim | None] | None
) -> list[int]:
    """The constant target that reshapes ``source`` to ``result``.

    Copying is preferred, since it is right for empty tensors too: -1 is only right where the product
    of all other dimensions is not 0, or where the ``given`` target has -1 at the same place already.

    Raises:
        Refusal: there is none.
    """
    target: list[int] = []
    for axis, dim in enumerate(result):
        if axis < len(source) and source[axis] == dim:
            target.append(dim.value if dim.value else COPY)
        elif dim.value is not None:
            m.require(dim.value != 0, "the result is empty where the operand is not")
            target.append(dim.value)
        else:
            target.append(REST)
    m.require(target.count(REST) <= 1, "several dimensions of the target are not known")
    m.require(max(target, default=0) < 2**63, "the size of a dimension overflows")
    if REST in target:
        place = target.index(REST)
        others = [dim for axis, dim in enumerate(result) if axis != place]
        was_left_over = given is not None and place < len(given) and given[place] == REST
        m.require(
            was_left_over or all(dim.ge(1) for dim in others), "-1 may stand for anything in an empty tensor"
        )
    return target


def viewed(m: Match, rw: Rewriter, x: Value, given: Sequence[Dim | None] | None = None) -> Value:
    """``x`` in the shape of the root: itself, one Reshape with a constant target, or one Flatten.

    Raises:
        Refusal: none of them is proven to be right.
    """
    source, result = shape_of(m, x), shape_of(m, m.root.value())
    if source == result:
        return x
    axis = _flatten_axis(source, result)
    try:
        target = reshape_target(m, source, result, given)
    except Refusal:
        if axis is None:
            raise
        flat: Value = rw.op.Flatten(x, axis=axis)
        return flat
    reshaped: Value = rw.op.Reshape(x, rw.const(np.array(target, np.int64)))
    return reshaped


def _flatten_axis(source: Sequence[Dim], result: Sequence[Dim]) -> int | None:
    """The axis of the Flatten that gives ``result``."""
    if len(result) != 2:
        return None
    dims = tuple(source)
    axes = range(len(dims) + 1)
    return next((a for a in axes if (product(dims[:a]), product(dims[a:])) == tuple(result)), None)


@graph_optimizer(P.Reshape("x", "target", name="reshape"), tag="E0")
def make_reshape_target_constant(m: Match, rw: Rewriter) -> Value:
    """Reshape(x, computed target) -> Reshape(x, [0, 12, -1])"""
    m.require(m.tensor(m.target) is None, "the target is constant already")
    given = m.facts.value(m.target)
    return viewed(m, rw, m.x, None if given is None else given.dims())


@graph_optimizer(P.Expand("x", "target"), tag="E0")
def make_expand_target_constant(m: Match, rw: Rewriter) -> Value:
    """Expand(x, computed target) -> Expand(x, [2, 1, 12]), with 1 where x keeps its dimension"""
    m.require(m.tensor(m.target) is None, "the target is constant already")
    source, result = shape_of(m, m.x), shape_of(m, m.root.value())
    lead = len(result) - len(source)
    target: list[int] = []
    for axis, dim in enumerate(result):
        if axis >= lead and source[axis - lead] == dim:
            target.append(1)
        else:
            m.require(dim.value is not None, "x is expanded to a dimension that is not known")
            target.append(dim.value or 0)
    return rw.op.Expand(m.x, rw.const(np.array(target, np.int64)))


@graph_optimizer(P.Slice("x", "starts", "ends", P.maybe("axes"), P.maybe("steps"), name="slice"), tag="E0")
def make_slice_bounds_constant(m: Match, rw: Rewriter) -> Value:
    """Slice(x, starts, computed ends) -> Slice(x, [0], [to the end])

    Where they count up, an end that is the size of its axis stands for all of it.
    """
    given = [_elements(m, v) for v in (m.starts, m.ends)]
    m.require(any(m.tensor(v) is None for v in (m.starts, m.ends)), "the bounds are constant already")
    axes = list(range(len(given[0]))) if m.axes is None else _numbers(m, m.axes)
    steps = [1] * len(axes) if m.steps is None else _numbers(m, m.steps)
    m.require(all(step > 0 for step in steps), "a step is negative")
    shape = shape_of(m, m.x)
    starts, ends = (
        [_bound(m, bound, shape[axis]) for bound, axis in zip(bounds, axes, strict=True)] for bounds in given
    )
    return rw.op.Slice(m.x, *(rw.const(np.array(v, np.int64)) for v in (starts, ends, axes, steps)))


def _bound(m: Match, bound: Dim | None, size: Dim) -> int:
    m.require(bound is not None, "a bound is not known")
    assert bound is not None
    if bound.value is not None:
        return bound.value
    m.require(bound.ge(size) and bound.ge(0), "a bound is not known")
    return sys.maxsize


def _elements(m: Match, value: Value) -> list[Dim | None]:
    found = m.facts.value(value)
    return m.refuse("a bound is not known") if found is None else found.dims()


def _numbers(m: Match, value: Value) -> list[int]:
    items = _elements(m, value)
    numbers = [item.value for item in items if item is not None and item.value is not None]
    m.require(len(numbers) == len(items), "the axes and steps are not known")
    return numbers


@graph_optimizer(P.Resize("x", P.rest("more"), name="resize"), tag="E0")
def make_resize_scales_constant(m: Match, rw: Rewriter) -> Value:
    """Resize(x, sizes=computed) -> Resize(x, scales=[1, 1, 2, 2])

    Where each size is a whole multiple of the axis, so that either way gives the same scale.
    """
    sizes = m.resize.input(3)
    m.require(sizes is not None and m.tensor(sizes) is None, "no sizes are computed")
    m.require(m.resize.attr("keep_aspect_ratio_policy", "stretch") == "stretch", "the aspect ratio is kept")
    m.require(m.resize.attr("coordinate_transformation_mode") != "tf_crop_and_resize", "a region is cropped")
    m.require("axes" not in m.resize.attributes, "only some axes are resized")
    scales = []
    for before, after in zip(shape_of(m, m.x), shape_of(m, m.root.value()), strict=True):
        ratio = after.quotient(before)
        factor = None if ratio is None else ratio.value
        m.require(factor, "an axis is not scaled by a whole number")
        scales.append(float(factor or 0))
    region = rw.const(np.zeros(0, np.float32)) if m.opset() < 13 else None
    return rw.op.Resize(m.x, region, rw.const(np.array(scales, np.float32)), **m.resize.attributes)
