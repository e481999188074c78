"""Arithmetic with neutral elements."""

from __future__ import annotations

import numpy as np

from optimizer.analysis import broadcasts_to
from optimizer.ir import Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer

_ONES, _ZEROS = P.filled(1, name="one"), P.filled(0, name="zero")


def _without(m: Match, constant: Value) -> Value:
    """The other operand, ``m.x``, where the constant does not broadcast it."""
    if m.rank(constant):
        m.require(broadcasts_to(m.shape(constant), m.shape(m.x)), "the other operand is broadcast")
    x: Value = m.x
    return x


@graph_optimizer(P.any_of(P.Mul("x", _ONES).commutes(), P.one_of("Div", "Pow")("x", _ONES)), tag="E0")
def drop_unit_factor(m: Match, rw: Rewriter) -> Value:
    """x * 1 -> x, and x / 1, x ** 1 likewise"""
    return _without(m, m.one)


@graph_optimizer(P.any_of(P.Add("x", _ZEROS).commutes(), P.Sub("x", _ZEROS)), tag="E0")
def drop_exact_zero(m: Match, rw: Rewriter) -> Value:
    """x + (-0.0) -> x, and x - 0.0 likewise, and both of integers

    The other zero turns -0.0 into 0.0, so that is another rule.
    """
    zero = m.array(m.zero)
    assert zero is not None
    if zero.dtype.kind not in "iu":
        m.require((np.signbit(zero) == (m.root.op_type == "Add")).all(), "the sign of a zero may change")
    return _without(m, m.zero)


@graph_optimizer(P.any_of(P.Add("x", _ZEROS).commutes(), P.Sub("x", _ZEROS)), tag="E1")
def drop_zero(m: Match, rw: Rewriter) -> Value:
    """x + 0 -> x, and x - 0 likewise"""
    return _without(m, m.zero)
