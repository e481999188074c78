"""Pixels dealt out to channels in front of a convolution: one convolution with a larger step."""

from __future__ import annotations

from typing import Any

import numpy as np

from optimizer.ir import Node, Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.known import constant_of, ints_of, shape_of

Phase = tuple[int, int]


@graph_optimizer(
    P.Conv(P.Concat(P.rest("parts", least=2), axis=1, name="concat").once(), "w", P.maybe("b"), name="conv"),
    constants="w",
    tag="E2",
)
def fuse_focus_into_conv(m: Match, rw: Rewriter) -> Value:
    """Conv(Concat(x[:, :, i::2, j::2], ...), w) -> Conv(x, w', strides=2 * strides, pads=2 * pads)

    The kernel gets its taps from the phases (i, j): tap (2 a + i, 2 b + j) is tap (a, b) of that part.
    It has as many weights as before, where each of the phases occurs once.
    """
    m.require(m.conv.attr("group", 1) == 1, "the convolution has groups")
    m.require(set(m.conv.attr("dilations", (1,))) == {1}, "the convolution is dilated")
    m.require(m.conv.attr("auto_pad", "NOTSET") == "NOTSET", "the pads depend on the size")
    x, phases = _phases(m)
    m.require(sorted(phases) == [(i, j) for i in (0, 1) for j in (0, 1)], "not each phase occurs once")
    w = m.f64(m.w)
    channels = w.shape[1] // 4
    outputs, _, height, width = w.shape
    kernel = np.zeros((outputs, channels, 2 * height, 2 * width))
    for place, (i, j) in enumerate(phases):
        kernel[:, :, i::2, j::2] = w[:, place * channels : (place + 1) * channels]
    attributes: dict[str, Any] = {
        "strides": [2 * s for s in m.conv.attr("strides", (1, 1))],
        "pads": [2 * p for p in m.conv.attr("pads", (0, 0, 0, 0))],
    }
    made: Value = rw.op.Conv(x, rw.const(kernel, like=m.w), m.b, **attributes)
    return made


def _phases(m: Match) -> tuple[Value, list[Phase]]:
    """The image, and where the Slice of each part starts in it.

    Raises:
        Refusal: the parts are no Slices of one image that take each second pixel.
    """
    slices = [node for part in m.parts if (node := m.producer(part)) and node.op_type == "Slice"]
    m.require(len(slices) == len(m.parts), "a part is no Slice")
    x = slices[0].inputs[0]
    if x is None or any(node.inputs[0] != x for node in slices):
        m.refuse("the parts come from different images")
    return x, [_phase(m, node) for node in slices]


def _phase(m: Match, node: Node) -> Phase:
    """Where a Slice that takes each second pixel starts.

    Raises:
        Refusal: it takes anything else.
    """
    starts, ends = (ints_of(m, node, name, slot) or [] for name, slot in (("starts", 1), ("ends", 2)))
    axes = ints_of(m, node, "axes", 3) or list(range(len(starts)))
    steps = (
        [1] * len(starts) if node.input(4) is None else [int(s) for s in constant_of(m, node.input(4)).array]
    )
    x = node.inputs[0]
    assert x is not None
    shape, phase = shape_of(m, x), [-1, -1]
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        place = axis % len(shape)
        whole = shape[place].le(end) or end >= 2**31 - 1
        m.require(len(shape) == 4 and place >= 2 and step == 2 and whole, "a part is not each second pixel")
        phase[place - 2] = start
    return phase[0], phase[1]
