"""Elementwise operators between two views that undo each other: they need no view at all."""

from __future__ import annotations

from optimizer.analysis import Dim
from optimizer.ir import Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.known import constant_of, shape_of
from passes.permutable import UNARY

VIEWS = ("Reshape", "Squeeze", "Unsqueeze", "Flatten")
INNER = P.one_of(*VIEWS)("x", P.rest("there"), name="inner").once()


@graph_optimizer(
    P.one_of(*VIEWS)(P.one_of(*sorted(UNARY))(INNER, P.rest("settings"), name="op").once(), P.rest("back")),
    tag="E0",
)
def drop_views_around_unary(m: Match, rw: Rewriter) -> Value:
    """Reshape(Relu(Reshape(x))) -> Relu(x), where x has the shape of the result"""
    m.require(m.same_shape(m.x, m.root.value()), "the result has another shape")
    made: Value = getattr(rw.op, m.op.op_type)(m.x, *m.settings, **m.op.attributes)
    return made


@graph_optimizer(
    P.one_of(*VIEWS)(
        P.one_of("Add", "Sub", "Mul", "Div", "Max", "Min", "Pow")(INNER, "c", name="op").commutes().once(),
        P.rest("back"),
    ),
    constants="c",
    tag="E0",
)
def drop_views_around_constant(m: Match, rw: Rewriter) -> Value:
    """Reshape(Reshape(x) + c) -> x + c', where the views only put in or take out axes of size 1

    x has the shape of the result; c' is c without, or with, these axes.
    """
    m.require(m.same_shape(m.x, m.root.value()), "the result has another shape")
    m.require(m.opset() >= 7, "elementwise operators broadcast differently before opset 7")
    outer, middle = shape_of(m, m.x), shape_of(m, m.inner.value())
    places, array = _matching_axes(outer, middle), constant_of(m, m.c).array
    sizes = (1,) * (len(middle) - array.ndim) + array.shape
    if places is None or any(n != 1 for axis, n in enumerate(sizes) if axis not in places):
        m.refuse("the views do more than put in or take out axes of size 1")
    constant = rw.const(array.reshape([1 if place is None else sizes[place] for place in places]))
    is_left = m.op.inputs[0] == m.c
    operands = (constant, m.x) if is_left else (m.x, constant)
    made: Value = getattr(rw.op, m.op.op_type)(*operands, **m.op.attributes)
    return made


@graph_optimizer(
    P.one_of(*VIEWS)(
        P.one_of("Add", "Sub", "Mul", "Div", "Max", "Min", "Pow")(
            INNER,
            P.one_of(*VIEWS)("z", P.rest("too")).once(),
            name="op",
        ).once(),
        P.rest("back"),
    ),
    tag="E0",
)
def drop_views_around_binary(m: Match, rw: Rewriter) -> Value:
    """Reshape(Reshape(x) + Reshape(z)) -> x + z, where both have the shape of the result

    As many elements come out as go in, so neither is stretched in between.
    """
    alike = m.same_shape(m.x, m.root.value()) and m.same_shape(m.z, m.root.value())
    m.require(alike, "the result has another shape")
    made: Value = getattr(rw.op, m.op.op_type)(m.x, m.z, **m.op.attributes)
    return made


def _matching_axes(outer: tuple[Dim, ...], middle: tuple[Dim, ...]) -> list[int | None] | None:
    """For each axis of ``outer`` the axis of ``middle`` that it is, ``None`` for one of size 1.

    ``None`` altogether where the shapes differ in more than axes of size 1.
    """
    wide = [axis for axis, dim in enumerate(middle) if dim != 1]
    if [dim for dim in outer if dim != 1] != [middle[axis] for axis in wide]:
        return None
    left = iter(wide)
    return [None if dim == 1 else next(left) for dim in outer]
