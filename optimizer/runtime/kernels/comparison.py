"""Comparison, logic, selection, tests for NaN and infinity."""

from __future__ import annotations

from typing import Any

import numpy as np

from optimizer.runtime.call import Call
from optimizer.runtime.kernels.elementwise import legacy_operand
from optimizer.runtime.precision import Array, widen
from optimizer.runtime.registry import kernel


def predicate(op_type: str, compute: Any) -> None:
    """Registers a binary op with a boolean result; versions before 7 broadcast by attribute."""

    def run(call: Call, a: Array, b: Array) -> Array:
        # Object comparison of strings gives objects.
        return np.asarray(compute(widen_any(a), widen_any(b)), bool)

    def run_legacy(call: Call, a: Array, b: Array) -> Array:
        return run(call, a, legacy_operand(call, a, b))

    kernel(op_type, 1, exact=True)(run_legacy)
    kernel(op_type, 7, exact=True)(run)


def widen_any(x: Array) -> Array:
    """``widen`` that lets strings through."""
    return x if x.dtype == object else widen(x)


for _name, _compute in {
    "Equal": np.equal,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "And": np.logical_and,
    "Or": np.logical_or,
    "Xor": np.logical_xor,
}.items():
    predicate(_name, _compute)


@kernel("Not", exact=True)
def logical_not(call: Call, x: Array) -> Array:
    """Negation."""
    return np.logical_not(x)


@kernel("Where", 9, exact=True)
def where(call: Call, condition: Array, x: Array, y: Array) -> Array:
    """Elements of ``x`` where ``condition``, of ``y`` elsewhere."""
    return np.where(condition, x, y).astype(x.dtype, copy=False)


@kernel("IsNaN", 9, exact=True)
def is_nan(call: Call, x: Array) -> Array:
    """Whether each element is NaN."""
    return np.isnan(x)


@kernel("IsInf", 10, exact=True)
def is_inf(call: Call, x: Array) -> Array:
    """Whether each element is an infinity of a sign asked for."""
    infinite = np.isinf(x)
    negative = np.signbit(widen(x))
    if not call.attr("detect_positive", 1):
        infinite = infinite & negative
    if not call.attr("detect_negative", 1):
        infinite = infinite & ~negative
    return infinite
