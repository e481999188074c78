"""Masks: a choice against a constant is a sum with a smaller choice."""

from __future__ import annotations

import numpy as np

from optimizer.ir import Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.known import FLOATS, shape_of

CHOICE = P.any_of(P.Where("m", "s", P.const("fill")), P.Where("m", P.const("fill"), "s"))


@graph_optimizer(CHOICE, tag="E1")
def replace_infinite_mask_by_sum(m: Match, rw: Rewriter) -> Value:
    """Where(m, s, -inf) -> s + Where(m, 0, -inf), where m is smaller than s

    Runtimes add faster than they choose.
    """
    fill = _fill(m)
    m.require(fill == -np.inf, "the mask is finite")
    return _as_sum(m, rw, fill)


@graph_optimizer(CHOICE, tag="E3")
def replace_finite_mask_by_sum(m: Match, rw: Rewriter) -> Value:
    """Where(m, s, -10000) -> s + Where(m, 0, -10000), where m is smaller than s

    As good in front of a Softmax, unless all of a row is masked.
    """
    fill = _fill(m)
    m.require(-np.inf < fill <= -1000, "the mask is not a large negative number")
    readers = {m.graph.node(use.node).op_type for use in m.graph.uses(m.root.value())}
    m.require(readers == {"Softmax"}, "no Softmax is behind it")
    return _as_sum(m, rw, fill)


def _fill(m: Match) -> float:
    fill = m.f64(m.fill)
    m.require(fill.size == 1, "it is not one number that is put in")
    m.require(m.dtype(m.s) in FLOATS, "not a float")
    return float(fill.reshape(()))


def _as_sum(m: Match, rw: Rewriter, fill: float) -> Value:
    small, large = shape_of(m, m.m), shape_of(m, m.s)
    m.require(m.tensor(m.s) is None and m.same_shape(m.s, m.root.value()), "what is chosen is broadcast")
    smaller = len(small) < len(large) or any(a == 1 != b for a, b in zip(small, large, strict=False))
    m.require(smaller, "the mask is as large as what it masks")
    array = m.array(m.m)
    numbers = (0.0, fill) if m.root.inputs[1] == m.s else (fill, 0.0)
    if array is not None:
        extra = array.size * 4
        m.require(m.ctx.may_grow(extra), "the growth budget is used up")
        added = np.where(array, *numbers)
        made = rw.const(added, like=m.s) if np.isfinite(added).all() else _infinite(m, rw, added)
        return rw.op.Add(m.s, made)
    zero, other = (_infinite(m, rw, np.array(n)) for n in numbers)
    return rw.op.Add(m.s, rw.op.Where(m.m, zero, other))


def _infinite(m: Match, rw: Rewriter, array: np.ndarray) -> Value:
    """A constant that may hold infinities, which the rewriter would not round."""
    dtype = m.dtype(m.s)
    assert dtype is not None
    return rw.const(array.astype(dtype.numpy))
