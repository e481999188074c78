"""Convolutions of the same input that are added become one, and so does one added to its input."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from optimizer.ir import Node, Value
from optimizer.rewrite import Match, P, Refusal, Rewriter, graph_optimizer
from passes.affine import Affine, affine_of, batchnorm_step, elementwise_step, once, require_room

CONV = P.Conv("x", "w", P.maybe("b"), name="conv").once()


@graph_optimizer(
    P.Add(
        P.Conv("x", "v", P.maybe("a"), name="first").once(),
        P.Conv("x", "w", P.maybe("b"), name="second").once(),
    ),
    constants="v w",
    tag="E2",
)
def merge_added_convs(m: Match, rw: Rewriter) -> Value:
    """Conv(x, v, a) + Conv(x, w, b) -> Conv(x, v + w, a + b)

    The smaller kernel is put inside the larger one, where its pads say that it belongs.
    """
    return _added(m, rw, m.first, m.second)


@graph_optimizer(P.Sum(P.rest("terms", least=2), name="sum"), tag="E2")
def merge_summed_convs(m: Match, rw: Rewriter) -> Value:
    """Sum(Conv(x, v), Conv(x, w), z) -> Sum(Conv(x, v + w), z), the first two that merge at a time"""
    convs = [term for term in m.terms if _is_own_conv(m, term)]
    reason = "no two terms are convolutions of one input"
    for one, other in combinations(convs, 2):
        first, second = m.producer(one), m.producer(other)
        assert first is not None
        assert second is not None
        if one == other or first.inputs[0] != second.inputs[0]:
            continue
        try:
            merged = _added(m, rw, first, second)
        except Refusal as refusal:
            reason = refusal.reason
            continue
        rest = [term for term in m.terms if term not in (one, other)]
        return rw.op.Sum(merged, *rest) if rest else merged
    return m.refuse(reason)


def _is_own_conv(m: Match, value: Value) -> bool:
    """Whether a Conv with constant weights makes a value, for one reader."""
    node = m.producer(value)
    if node is None or node.op != "Conv" or not m.single_use(value) or m.ctx.is_kept(node):
        return False
    constants = all(v is None or m.tensor(v) is not None for v in node.inputs[1:])
    return constants and not any(a.reference for a in node.attributes.values())


def _added(m: Match, rw: Rewriter, one: Node, other: Node) -> Value:
    """The sum of two convolutions of one input as one of them.

    Raises:
        Refusal: neither kernel lies inside the other.
    """
    first, second = m.f64(one.inputs[1]), m.f64(other.inputs[1])
    m.require(first.shape[:2] == second.shape[:2], "they have different channels")
    swapped = first.size < second.size
    large, small = (other, one) if swapped else (one, other)
    weights, added = (second.copy(), first) if swapped else (first.copy(), second)
    weights[place_of(m, small, added.shape[2:], large, weights.shape[2:])] += added
    bias = np.zeros(first.shape[0])
    for conv in (one, other):
        bias = bias if conv.input(2) is None else bias + m.f64(conv.input(2))
        if conv.inputs[1] is not None:
            require_room(m, conv.inputs[1])
    return _conv(rw, large, weights, bias)


@graph_optimizer(P.Add(CONV, "x").commutes(), constants="w", tag="E2")
def merge_conv_with_its_input(m: Match, rw: Rewriter) -> Value:
    """Conv(x, w, b) + x -> Conv(x, w + identity, b)"""
    return _with_shortcut(m, rw, Affine(np.ones(()), np.zeros(())))


@graph_optimizer(
    P.Add(CONV, once((*elementwise_step("x"), batchnorm_step("x")))).commutes(), constants="w", tag="E2"
)
def merge_conv_with_shortcut(m: Match, rw: Rewriter) -> Value:
    """Conv(x, w, b) + (x * k + t) -> Conv(x, w + k * identity, b + t)

    The shortcut is one constant affine step, BatchNormalization too.
    """
    return _with_shortcut(m, rw, affine_of(m, m.step, m.x, m.f64(m.w).ndim))


def _with_shortcut(m: Match, rw: Rewriter, shortcut: Affine) -> Value:
    weights = m.f64(m.w).copy()
    channels, per_group = weights.shape[0], weights.shape[1]
    m.require(channels == per_group * m.conv.attr("group", 1), "it changes the number of channels")
    affine = shortcut.along(m, 1, weights.ndim, channels)
    point = (1,) * (weights.ndim - 2)
    place = place_of(m, None, point, m.conv, weights.shape[2:])
    centre = tuple(part.start for part in place[2:])
    for channel in range(channels):
        weights[(channel, channel % per_group, *centre)] += affine.scale[channel]
    bias = affine.shift if m.b is None else m.f64(m.b) + affine.shift
    require_room(m, m.w)
    return _conv(rw, m.conv, weights, bias)


def _conv(rw: Rewriter, like: Node, weights: np.ndarray, bias: np.ndarray) -> Value:
    x, w = like.inputs[:2]
    new_bias = rw.const(bias, like=w) if bias.any() else None
    made: Value = rw.op.Conv(x, rw.const(weights, like=w), new_bias, **without_kernel_shape(like))
    return made


def without_kernel_shape(conv: Node) -> dict[str, Any]:
    """The attributes of a Conv, for weights of another size: the kernel's shape is theirs by default."""
    return {name: value for name, value in conv.attributes.items() if name != "kernel_shape"}


# -------------------------------------------------------------------- where a kernel goes


@dataclass(frozen=True, slots=True)
class _Window:
    """How a kernel is laid over an image; one number for each axis of it."""

    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]


def _window(m: Match, conv: Node | None, axes: int) -> _Window:
    ones = (1,) * axes
    if conv is None:
        return _Window(ones, ones, (0,) * axes, (0,) * axes)
    padding = conv.attr("auto_pad", "NOTSET")
    m.require(padding in ("NOTSET", "VALID"), "the pads depend on the size")
    pads = tuple(conv.attr("pads", ())) if padding == "NOTSET" else ()
    pads = pads or (0,) * (2 * axes)
    return _Window(
        tuple(conv.attr("strides", ones)), tuple(conv.attr("dilations", ones)), pads[:axes], pads[axes:]
    )


def place_of(
    m: Match, small: Node | None, kernel: tuple[int, ...], large: Node, inside: tuple[int, ...]
) -> tuple[slice, ...]:
    """The part of the large kernel that sees what the small one sees (``None``: the pixel itself).

    Raises:
        Refusal: there is none, or the results differ in size.
    """
    a, b = _window(m, small, len(kernel)), _window(m, large, len(inside))
    m.require(a.strides == b.strides, "they take different steps")
    m.require(a.dilations == b.dilations or set(kernel) <= {1}, "they are dilated differently")
    place = [slice(None), slice(None)]
    for axis, step in enumerate(b.dilations):
        offset, rest = divmod(b.before[axis] - a.before[axis], step)
        room = inside[axis] - kernel[axis] - offset
        fits = rest == 0 and offset >= 0 and room >= 0 and b.after[axis] - a.after[axis] == step * room
        m.require(fits, "one kernel does not lie inside the other")
        place.append(slice(offset, offset + kernel[axis]))
    return tuple(place)
