"""Clip, Relu, Min and Max with constants: all of them clamp to an interval."""

from __future__ import annotations

import math

from optimizer.ir import Node, Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.known import FLOATS

_CLAMP = ("Clip", "Relu", "Min", "Max")
_INNER = P.any_of(
    P.Relu("x", name="inner").once(),
    P.Clip("x", P.maybe("lo"), P.maybe("hi"), name="inner").once(),
    P.one_of("Min", "Max")("x", P.const("bound"), name="inner").once().commutes(),
)


@graph_optimizer(
    P.any_of(
        P.Relu(_INNER, name="outer"),
        P.Clip(_INNER, P.rest("bounds"), name="outer"),
        P.one_of("Min", "Max")(_INNER, P.const("limit"), name="outer").commutes(),
    ),
    tag="E1",
)
def merge_clamps(m: Match, rw: Rewriter) -> Value:
    """Clip|Relu|Min|Max(Clip|Relu|Min|Max(x)) -> Clip(x)

    Each is monotone and clamps to an interval, so both do: to what they make of -inf and inf. Only
    NaN may come out differently.
    """
    m.require(m.dtype(m.x) in FLOATS, "the numbers are no floats")
    inner, outer = interval_of(m, m.inner), interval_of(m, m.outer)
    low, high = (_clamp(_clamp(end, inner), outer) for end in (-math.inf, math.inf))
    return clamped(m, rw, m.x, low, high)


@graph_optimizer(P.Clip("x", P.maybe("lo"), P.maybe("hi"), name="clip"), tag="E1")
def drop_open_clip(m: Match, rw: Rewriter) -> Value:
    """Clip(x) without bounds -> x

    The bounds that count then are the largest finite numbers.
    """
    m.require(interval_of(m, m.clip) == (-math.inf, math.inf), "there is a bound")
    return m.x


def clamped(m: Match, rw: Rewriter, x: Value, low: float, high: float) -> Value:
    """``x`` clamped to [low, high] in the simplest way."""
    if (low, high) == (-math.inf, math.inf):
        return x
    if (low, high) == (0, math.inf):
        value: Value = rw.op.Relu(x)
    elif m.opset() >= 11:
        lowest = None if low == -math.inf else rw.const(low, like=x)
        highest = None if high == math.inf else rw.const(high, like=x)
        value = rw.op.Clip(x, lowest, highest)
    else:
        value = rw.op.Clip(x, min=None if low == -math.inf else low, max=None if high == math.inf else high)
    return value


def _clamp(x: float, interval: tuple[float, float]) -> float:
    # Clip: the minimum is applied first, so a maximum below it wins.
    return min(max(x, interval[0]), interval[1])


def interval_of(m: Match, node: Node) -> tuple[float, float]:
    """What one of them clamps to.

    Raises:
        Refusal: a bound is not one known number.
    """
    if node.op_type == "Relu":
        return 0.0, math.inf
    if node.op_type == "Clip" and len(node.inputs) == 1:
        low, high = node.attr("min"), node.attr("max")
        return (-math.inf if low is None else low), (math.inf if high is None else high)
    if node.op_type == "Clip":
        return _bound(m, node.input(1), -math.inf), _bound(m, node.input(2), math.inf)
    constant = next(v for v in node.inputs if m.tensor(v) is not None)
    bound = _bound(m, constant, 0.0)
    return (-math.inf, bound) if node.op_type == "Min" else (bound, math.inf)


def _bound(m: Match, value: Value | None, absent: float) -> float:
    if value is None:
        return absent
    tensor = m.tensor(value)
    m.require(tensor is not None and tensor.size == 1, "a bound is not one known number")
    assert tensor is not None
    shape = m.shape(m.x)
    m.require(shape is not None and len(tensor.shape) <= len(shape), "a bound raises the rank")
    bound = float(tensor.array.reshape(()))
    m.require(bound == bound, "a bound is NaN")
    return bound
