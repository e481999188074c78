"""Arithmetic with neutral elements."""

from __future__ import annotations

import numpy as np

from optimizer.analysis import broadcasts_to
from optimizer.ir import Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer


def _neutral(m: Match, value: Value, element: float) -> np.ndarray:
    """The elements of a constant that are all ``element`` and leave the other operand's shape alone."""
    tensor = m.tensor(value)
    assert tensor is not None
    m.require(tensor.size and tensor.array.flat[0] == element, "the operand is not neutral")
    m.require((tensor.array == element).all(), "the operand is not neutral")
    if tensor.shape:
        m.require(broadcasts_to(m.shape(value), m.shape(m.x)), "the other operand is broadcast")
    return tensor.array


@graph_optimizer(
    P.any_of(P.Mul("x", "one").commutes(), P.one_of("Div", "Pow")("x", "one")), constants="one", tag="E0"
)
def drop_unit_factor(m: Match, rw: Rewriter) -> Value:
    """x * 1 -> x, and x / 1, x ** 1 likewise"""
    _neutral(m, m.one, 1)
    return m.x


@graph_optimizer(P.any_of(P.Add("x", "zero").commutes(), P.Sub("x", "zero")), constants="zero", tag="E0")
def drop_exact_zero(m: Match, rw: Rewriter) -> Value:
    """x + (-0.0) -> x, and x - 0.0 likewise, and both of integers

    The other zero turns -0.0 into 0.0, so that is another rule.
    """
    zero = _neutral(m, m.zero, 0)
    if zero.dtype.kind not in "iu":
        m.require((np.signbit(zero) == (m.root.op_type == "Add")).all(), "the sign of a zero may change")
    return m.x


@graph_optimizer(P.any_of(P.Add("x", "zero").commutes(), P.Sub("x", "zero")), constants="zero", tag="E1")
def drop_zero(m: Match, rw: Rewriter) -> Value:
    """x + 0 -> x, and x - 0 likewise"""
    _neutral(m, m.zero, 0)
    return m.x
