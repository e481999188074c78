"""What rounding the constants of a region may do to its results.

Errors are followed to first order: each value carries a bound on the error of each of its elements.
Where an operator is linear with known signs, the bound goes through the operator itself, run on
absolute values (``|y' - y| <= |W| e_x + e_W |x|``); where it is not, the change is measured by moving
the inputs by their errors in several sign patterns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from optimizer.ir import Node
from optimizer.runtime import Call
from optimizer.runtime.registry import KernelFunction

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Errors: TypeAlias = "list[Array | None]"

PATTERNS = 4
MEASURED = 2.0
"""Safety factor of a change that was measured rather than bounded."""

ELEMENTWISE = frozenset({
    "Abs", "Acos", "Acosh", "Add", "And", "Asin", "Asinh", "Atan", "Atanh", "BitShift", "BitwiseAnd",
    "BitwiseNot", "BitwiseOr", "BitwiseXor", "Cast", "CastLike", "Ceil", "Celu", "Clip", "Cos", "Cosh",
    "Div", "Dropout", "Elu", "Equal", "Erf", "Exp", "Floor", "Gelu", "Greater", "GreaterOrEqual",
    "HardSigmoid", "HardSwish", "Identity", "IsInf", "IsNaN", "LeakyRelu", "Less", "LessOrEqual", "Log",
    "Max", "Mean", "Min", "Mish", "Mod", "Mul", "Neg", "Not", "Or", "PRelu", "Pow", "Reciprocal", "Relu",
    "Round", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Sub",
    "Sum", "Swish", "Tan", "Tanh", "ThresholdedRelu", "Where", "Xor",
})  # fmt: skip
"""Operators whose every output element depends on one (broadcast) element of each input."""

_BILINEAR = {"Conv", "ConvTranspose", "MatMul", "Gemm"}
_SUMS = {"Add", "Sub", "Sum"}
_MOVES = {
    "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Slice", "Gather", "Expand", "Tile", "Cast",
    "Identity", "Split", "DepthToSpace", "SpaceToDepth", "AveragePool", "GlobalAveragePool", "ReduceSum",
    "ReduceMean",
}  # fmt: skip
"""Linear in the first input with coefficients that are not negative; the others hold no real numbers."""
_NO_FURTHER = {
    "Relu",
    "Abs",
    "Neg",
    "Tanh",
    "Sigmoid",
    "Softplus",
    "Dropout",
    "Max",
    "Min",
    "Clip",
}
"""No element moves further than the largest of its operands does."""


def propagate(
    node: Node, run: KernelFunction, call: Call, inputs: Sequence[Any], errors: Sequence[Array | None]
) -> Errors:
    """Bounds on the errors of a node's outputs, from those of its operands (``None``: no error).

    Args:
        inputs: the operands themselves.
    """
    op = node.op_type if not node.domain else ""
    if op in _BILINEAR:
        return [_bilinear(op, run, call, inputs, errors)]
    if op in _SUMS:
        return [_broadcast_sum([e for e in errors if e is not None], inputs)]
    if op == "Mul":
        (a, b), (ea, eb) = inputs, (_or_zero(e) for e in errors)
        return [np.abs(a) * eb + np.abs(b) * ea + ea * eb]
    if op == "Div":
        (a, b), (ea, eb) = inputs, (_or_zero(e) for e in errors)
        return [(ea + np.abs(a / b) * eb) / np.maximum(np.abs(b) - eb, np.finfo(np.float64).tiny)]
    if op in _MOVES and all(e is None for e in errors[1:]):
        return list(listed(run(call, errors[0], *inputs[1:])))
    if op == "Concat":
        return list(listed(run(call, *(_or_zeros(e, x) for e, x in zip(errors, inputs, strict=True)))))
    if op in _NO_FURTHER:
        return [_broadcast_max([e for e in errors if e is not None], inputs)]
    return _measured(run, call, inputs, errors, by_element=op in ELEMENTWISE or op == "BatchNormalization")


def _bilinear(
    op: str, run: KernelFunction, call: Call, inputs: Sequence[Any], errors: Sequence[Array | None]
) -> Array:
    """``|W| e_x + e_W (|x| + e_x)`` by the operator itself, then what a bias adds."""
    (x, w), (ex, ew) = inputs[:2], errors[:2]
    total: Any = 0.0
    if ew is not None:
        total = total + np.abs(run(call, np.abs(x) + _or_zero(ex), ew))
    if ex is not None:
        total = total + np.abs(run(call, ex, np.abs(w)))
    bias = errors[2] if len(errors) > 2 else None
    if bias is not None:
        if op == "Gemm":
            total = total + abs(call.attr("beta", 1.0)) * bias
        else:
            total = total + bias.reshape(-1, *[1] * (x.ndim - 2))
    return np.asarray(total)


def _measured(
    run: KernelFunction,
    call: Call,
    inputs: Sequence[Any],
    errors: Sequence[Array | None],
    *,
    by_element: bool,
) -> Errors:
    """The largest change over several sign patterns: per element, or over the whole tensor.

    Where an element depends on many inputs, a few patterns say little about each single element but
    enough about the largest of them.
    """
    base = listed(run(call, *inputs))
    spread: list[Any] = [np.zeros(np.shape(b)) for b in base]
    rng = np.random.default_rng(0)
    for pattern in range(PATTERNS):
        moved = [_moved(x, e, pattern, rng) for x, e in zip(inputs, errors, strict=True)]
        for i, result in enumerate(listed(run(call, *moved))):
            if isinstance(result, np.ndarray) and result.dtype.kind in "fc" and result.shape == base[i].shape:
                spread[i] = np.fmax(spread[i], np.abs(result - base[i]))
    if not by_element:
        spread = [np.full(s.shape, np.nanmax(s, initial=0.0)) for s in spread]
    return [MEASURED * s for s in spread]


def _moved(x: Any, error: Array | None, pattern: int, rng: np.random.Generator) -> Any:
    if error is None or not isinstance(x, np.ndarray) or x.dtype.kind not in "fc":
        return x
    sign = (1.0, -1.0)[pattern] if pattern < 2 else rng.choice((-1.0, 1.0), x.shape)
    return np.asarray(x + sign * error, x.dtype)


def _or_zero(error: Array | None) -> Any:
    return 0.0 if error is None else error


def _or_zeros(error: Array | None, value: Any) -> Array:
    return np.zeros(np.shape(value)) if error is None else error


def _broadcast_sum(errors: Sequence[Array], inputs: Sequence[Any]) -> Array:
    shape = np.broadcast_shapes(*(np.shape(x) for x in inputs if x is not None))
    return np.broadcast_to(sum(errors[1:], errors[0]), shape)


def _broadcast_max(errors: Sequence[Array], inputs: Sequence[Any]) -> Array:
    shape = np.broadcast_shapes(*(np.shape(x) for x in inputs if x is not None))
    largest = errors[0]
    for error in errors[1:]:
        largest = np.maximum(largest, error)
    return np.broadcast_to(largest, shape)


def listed(result: Any) -> list[Any]:
    """What a kernel returned, as a list of values."""
    results = result if isinstance(result, tuple) else (result,)
    return [np.asarray(r) if isinstance(r, np.generic) else r for r in results]
