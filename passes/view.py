"""Operators that only change the shape: chains of them are one, or none."""

from __future__ import annotations

import numpy as np

from optimizer.analysis import broadcast_shapes
from optimizer.ir import Node, Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.known import axes_of, rank_of
from passes.target import viewed

_VIEWS = P.one_of("Reshape", "Flatten", "Squeeze", "Unsqueeze")


def _with_axes(m: Match, rw: Rewriter, op_type: str, x: Value, axes: list[int]) -> Value:
    """Squeeze or Unsqueeze, with its axes where the opset wants them."""
    make = getattr(rw.op, op_type)
    if m.opset() < 13:
        return make(x, axes=axes)
    return make(x, rw.const(np.array(axes, np.int64)))


def _axes(m: Match, node: Node, rank: int) -> tuple[int, ...]:
    axes = axes_of(m, node, 1, rank)
    return m.refuse("the axes are those of size 1") if axes is None else axes


@graph_optimizer(
    P.Squeeze(P.Squeeze("x", P.rest("first"), name="inner").once(), P.rest("second"), name="outer"), tag="E0"
)
def merge_squeezes(m: Match, rw: Rewriter) -> Value:
    """Squeeze(Squeeze(x, a), b) -> Squeeze(x, a and b)"""
    rank = rank_of(m, m.x)
    first = _axes(m, m.inner, rank)
    left = [axis for axis in range(rank) if axis not in first]
    second = _axes(m, m.outer, len(left))
    return _with_axes(m, rw, "Squeeze", m.x, sorted([*first, *(left[axis] for axis in second)]))


@graph_optimizer(
    P.Unsqueeze(P.Unsqueeze("x", P.rest("first"), name="inner").once(), P.rest("second"), name="outer"),
    tag="E0",
)
def merge_unsqueezes(m: Match, rw: Rewriter) -> Value:
    """Unsqueeze(Unsqueeze(x, a), b) -> Unsqueeze(x, a and b)"""
    rank, last = rank_of(m, m.inner.value()), rank_of(m, m.outer.value())
    first, second = _axes(m, m.inner, rank), _axes(m, m.outer, last)
    place = [axis for axis in range(last) if axis not in second]
    return _with_axes(m, rw, "Unsqueeze", m.x, sorted([*second, *(place[axis] for axis in first)]))


@graph_optimizer(_VIEWS(_VIEWS("x", P.rest("first"), name="inner").once(), P.rest("second")), tag="E0")
def merge_views(m: Match, rw: Rewriter) -> Value:
    """Reshape(Flatten|Squeeze|Unsqueeze|Reshape(x)) -> Reshape(x), and the other views likewise

    No view moves an element, so only the last shape counts; it must be told from x alone.
    """
    target = m.root.input(1) if m.root.op_type == "Reshape" else None
    given = None if target is None else m.facts.value(target)
    return viewed(m, rw, m.x, None if given is None else given.dims())


# -------------------------------------------------------------------- what is broadcast anyway

_EXPANDED = P.Expand("x", "target", name="expand")
_ELEMENTWISE = P.one_of(
    *("Add", "Sub", "Mul", "Div", "Pow", "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"),
    *("Max", "Min", "And", "Or", "Xor", "Mod", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor"),
)


def _without_expand(m: Match, rw: Rewriter) -> Value:
    """The root with x in the place of its expansion, where its shape is proven to stay the same."""
    operands = [m.x if v == m.expand.value() else v for v in m.root.inputs]
    shape = broadcast_shapes(*(m.shape(v) for v in operands))
    m.require(shape is not None and shape == m.shape(m.root.value()), "the result may be smaller")
    return getattr(rw.op, m.root.op_type)(*operands, **m.root.attributes)


@graph_optimizer(P.any_of(_ELEMENTWISE(_EXPANDED, "z"), _ELEMENTWISE("z", _EXPANDED)), tag="E0")
def drop_expand_before_broadcast(m: Match, rw: Rewriter) -> Value:
    """Expand(x) + z -> x + z, where z has the expanded dimensions"""
    return _without_expand(m, rw)


@graph_optimizer(
    P.any_of(
        P.Where(_EXPANDED, "a", "b"),
        P.Where("c", _EXPANDED, "b"),
        P.Where("c", "a", _EXPANDED),
    ),
    tag="E1",
)
def drop_expand_before_where(m: Match, rw: Rewriter) -> Value:
    """Where(c, Expand(x), z) -> Where(c, x, z), where the others have the expanded dimensions"""
    return _without_expand(m, rw)
