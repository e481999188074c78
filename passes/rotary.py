"""RotaryEmbedding spelled out: pairs of elements turned by an angle for each token."""

from __future__ import annotations

from typing import Any

import numpy as np

from optimizer.analysis import Dim
from optimizer.ir import DType, Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.known import shape_of
from passes.rotary_parts import HALVES, PAIRS, WHOLE, form_of, joined, narrowed, part_of
from passes.target import reshape_target


@graph_optimizer(
    P.Add(P.Mul("x", "cos").commutes().once(), P.Mul("turned", "sin").commutes().once()).commutes(), tag="E2"
)
def fuse_rotary_embedding(m: Match, rw: Rewriter) -> Value:
    """x * cos + Concat(-x2, x1) * sin -> RotaryEmbedding(x, half of cos, half of sin)

    x1 and x2 are the halves of the last of four axes, (batch, heads, tokens, size), or the first and
    second of each pair of neighbours, put together as they were; cos and sin hold each angle twice.
    """
    size = _size_of(m, m.x)
    found = joined(m, m.turned)
    negative = None if found is None else m.producer(found[1])
    m.require(negative is not None and negative.op_type == "Neg", "nothing is turned")
    assert found is not None
    assert negative is not None
    form, _, first = found
    second = negative.inputs[0]
    assert second is not None
    _require_form(m, form, first, second, m.x, size)
    return _rotary(m, rw, m.x, form, form, size)


SUM = P.Add(P.Mul("b", "cos").commutes().once(), P.Mul("a", "sin").commutes().once()).commutes().once()
DIFFERENCE = P.Sub(P.Mul("a", "cos").commutes().once(), P.Mul("b", "sin").commutes().once()).once()


@graph_optimizer(
    P.any_of(
        P.Concat(DIFFERENCE, SUM, name="joined"),
        P.Reshape(
            P.Concat(
                P.Unsqueeze(DIFFERENCE, P.rest("to")), P.Unsqueeze(SUM, P.rest("too")), name="joined"
            ).once(),
            "target",
            name="whole",
        ),
    ),
    tag="E2",
)
def fuse_turned_parts(m: Match, rw: Rewriter) -> Value:
    """Concat(x1 * cos - x2 * sin, x2 * cos + x1 * sin) -> RotaryEmbedding(x, cos, sin)

    x1 and x2 are the halves of the last of four axes, (batch, heads, tokens, size), or the first and
    second of each pair of neighbours, put together as they were.
    """
    first = part_of(m, m.a)
    m.require(first is not None, "the parts are not those of one value")
    assert first is not None
    size = _size_of(m, first.value)
    form = HALVES if m.root.op_type == "Concat" else PAIRS
    rank = 4 if form == HALVES else 5
    m.require(m.joined.attr("axis") in (-1, rank - 1), "another axis is turned")
    m.require(m.same_shape(first.value, m.root.value()), "the parts are not those of one value")
    _require_form(m, form, m.a, m.b, first.value, size)
    return _rotary(m, rw, first.value, form, WHOLE, size)


@graph_optimizer(
    P.Concat(P.RotaryEmbedding("first", "cos", "sin", name="rotary").once(), "others", name="concat"),
    tag="E0",
)
def turn_only_first_elements(m: Match, rw: Rewriter) -> Value:
    """Concat(RotaryEmbedding(x[:n], c, s), x[n:]) -> RotaryEmbedding<rotary_embedding_dim=n>(x, c, s)"""
    turned, others = part_of(m, m.first), part_of(m, m.others)
    m.require(turned is not None and others is not None, "the parts are not those of one value")
    assert turned is not None
    assert others is not None
    size = _size_of(m, turned.value)
    ends = (turned.value, turned.start, others.stop, turned.step, others.step)
    whole = ends == (others.value, 0, size, 1, 1) and turned.stop == others.start
    m.require(whole and m.concat.attr("axis") in (-1, 3), "the parts are not those of one value")
    attributes = {**m.rotary.attributes, "rotary_embedding_dim": turned.stop}
    made: Value = rw.op.RotaryEmbedding(turned.value, m.cos, m.sin, **attributes)
    return made


def _size_of(m: Match, x: Value) -> int:
    """The size of a head.

    Raises:
        Refusal: RotaryEmbedding does not take ``x``.
    """
    m.require(m.opset() >= 23, "RotaryEmbedding needs opset 23")
    m.require(m.dtype(x) in (DType.FLOAT, DType.FLOAT16), "not float32 or float16")
    shape = shape_of(m, x)
    size = shape[-1].value if len(shape) == 4 else None
    m.require(size and size % 2 == 0, "not four axes, the last one even")
    assert size is not None
    return size


def _require_form(m: Match, form: str, first: Value, second: Value, x: Value, size: int) -> None:
    parts = part_of(m, first), part_of(m, second)
    m.require(form_of(*parts, size) == form, "the parts are not the halves")
    assert parts[0] is not None
    m.require(parts[0].value == x, "the parts are not those of one value")


def _rotary(m: Match, rw: Rewriter, x: Value, form: str, held: str, size: int) -> Value:
    """The RotaryEmbedding; ``held`` says how cos and sin hold each angle twice."""
    shape = shape_of(m, x)
    angles = [_angles(m, rw, v, shape, held, size) for v in (m.cos, m.sin)]
    attributes: dict[str, Any] = {"interleaved": 1} if form == PAIRS else {}
    made: Value = rw.op.RotaryEmbedding(x, *angles, **attributes)
    return made


def _angles(m: Match, rw: Rewriter, value: Value, x: tuple[Dim, ...], held: str, size: int) -> Value:
    """cos or sin as (batch, tokens, size / 2).

    Raises:
        Refusal: it has another shape, or does not hold each angle twice.
    """
    shape = shape_of(m, value)
    width = size // 2 if held == WHOLE else size
    lead = (Dim.of(1),) * (4 - len(shape)) + tuple(shape)
    m.require(len(lead) == 4 and lead[1] == 1 and lead[3] == width, "the angles differ between heads")
    m.require(lead[2] == x[2] and lead[0] in (x[0], 1), "there is not one angle for each token")
    half, of_half = narrowed(m, rw, value, held, size)
    if len(of_half) == 4:
        half = rw.op.Squeeze(half, rw.const(np.array([1], np.int64)))
    elif of_half != (lead[0], lead[2], Dim.of(size // 2)):
        target = reshape_target(m, of_half, [lead[0], lead[2], Dim.of(size // 2)], None)
        half = rw.op.Reshape(half, rw.const(np.array(target, np.int64)))
    if lead[0] == x[0]:
        return half
    batch = rw.op.Shape(m.x if hasattr(m, "x") else m.a, start=0, end=1)
    return rw.op.Expand(half, rw.op.Concat(batch, rw.const(np.array([1, 1], np.int64)), axis=0))
