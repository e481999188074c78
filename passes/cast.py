"""Conversions of the element type."""

from __future__ import annotations

import numpy as np

from optimizer.ir import DType, Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer

_PLAIN = frozenset(
    t
    for t in DType
    if t in (DType.BOOL, DType.FLOAT, DType.DOUBLE, DType.FLOAT16, DType.BFLOAT16)
    or (t.is_integer and t.bits >= 8)
)


@graph_optimizer(P.Cast("x"), tag="E0")
def drop_noop_cast(m: Match, rw: Rewriter) -> Value:
    """Cast<to=type of x>(x) -> x"""
    dtype = m.dtype(m.x)
    m.require(dtype, "the element type is not known")
    m.require(dtype == m.root.attr("to"), "the element type changes")
    return m.x


@graph_optimizer(P.CastLike("x", "like"), tag="E0")
def drop_noop_cast_like(m: Match, rw: Rewriter) -> Value:
    """CastLike(x, like) -> x, where both have one element type"""
    m.require(m.dtype(m.x), "the element type is not known")
    m.require(m.dtype(m.x) == m.dtype(m.like), "the element type may change")
    return m.x


@graph_optimizer(P.Cast(P.Cast("x", name="inner"), name="outer"), tag="E0")
def merge_casts(m: Match, rw: Rewriter) -> Value:
    """Cast<to=c>(Cast<to=b>(x)) -> Cast<to=c>(x), or x where c is its type

    Where b holds every value of x's type, so that only the last conversion may round. What a float
    outside of an integer's range becomes is left open, so it may depend on the float's type.
    """
    source, middle, target = m.dtype(m.x), DType(m.inner.attr("to")), DType(m.outer.attr("to"))
    if source is None:
        m.refuse("the element type is not known")
    m.require({source, middle, target} <= _PLAIN, "an element type is no plain number")
    m.require(_holds(middle, source), "the inner cast may round")
    if source == target:
        return m.x
    m.require(not source.is_float or not target.is_integer, "a float out of range would be cast otherwise")
    return rw.op.Cast(m.x, **m.outer.attributes)


def _holds(wide: DType, narrow: DType) -> bool:
    """Whether every value of ``narrow`` is one of ``wide``."""
    if wide == narrow or narrow is DType.BOOL:
        return True
    if wide is DType.BOOL or DType.BFLOAT16 in (wide, narrow):
        return narrow is DType.BFLOAT16 and wide in (DType.FLOAT, DType.DOUBLE)
    if narrow.is_float:
        return wide.is_float and wide.bits > narrow.bits
    limits = np.iinfo(narrow.numpy)
    if wide.is_float:
        return max(abs(int(limits.min)), int(limits.max)) <= 2 ** (np.finfo(wide.numpy).nmant + 1)
    room = np.iinfo(wide.numpy)
    return bool(room.min <= limits.min and limits.max <= room.max)
