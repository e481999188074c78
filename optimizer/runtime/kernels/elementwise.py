"""Arithmetic, one element at a time: unary and binary math, variadic Sum/Mean/Min/Max, bits."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from optimizer.runtime.call import Call
from optimizer.runtime.kernels.rows import row_loops
from optimizer.runtime.precision import Array, computed_wide, is_narrow, widen
from optimizer.runtime.registry import Exactness, kernel

LONG_ROW = 700
"""Rows from this length on are worth a loop of their own in a plain binary operator (see ``row_loops``)."""

Unary = Callable[[Array], Array]
Binary = Callable[[Array, Array], Array]


def legacy_operand(call: Call, a: Array, b: Array) -> Array:
    """``b`` shaped for NumPy's broadcasting as versions before 7 meant it.

    With ``broadcast=1``, ``b`` is laid along the axes of ``a`` from ``axis`` on; without ``axis`` it
    is matched with the last ones.

    Raises:
        ValueError: the shapes differ and ``broadcast`` is not set.
    """
    if not call.attr("broadcast", 0):
        if a.shape != b.shape:
            raise ValueError(f"shapes {a.shape} and {b.shape} differ and broadcast is not set")
        return b
    axis = call.attr("axis")
    if axis is None:
        return b
    axis = axis + a.ndim if axis < 0 else axis
    return b.reshape(b.shape + (1,) * (a.ndim - axis - b.ndim))


def binary(
    op_type: str,
    compute: Binary,
    versions: tuple[int, ...] = (1, 7),
    exact: Exactness = True,
    ufunc: np.ufunc | None = None,
) -> None:
    """Registers a binary op; versions before 7 broadcast by attribute.

    Args:
        ufunc: what computes floats, where it may write over an operand.
    """

    def run(call: Call, a: Array, b: Array) -> Array:
        if is_narrow(a):
            return compute(widen(a), widen(b)).astype(a.dtype)
        return compute(a, b)

    def run_legacy(call: Call, a: Array, b: Array) -> Array:
        return run(call, a, legacy_operand(call, a, b))

    for since in versions:
        into = over_operand(ufunc) if ufunc and since >= 7 else None
        kernel(op_type, since, exact=exact, into=into, reuses=(0, 1))(run_legacy if since < 7 else run)


def over_operand(ufunc: np.ufunc) -> Callable[[Call, Array, Array, Array], Array | None]:
    """``ufunc`` written over one of its operands, where that has the shape of the result."""

    def into(call: Call, out: Array, a: Array, b: Array) -> Array | None:
        if a.dtype != b.dtype or a.dtype.kind != "f" or (a.shape != b.shape and not _covers(out, a, b)):
            return None
        with row_loops(_long_rows(a, b)):
            ufunc(a, b, out=out)
        return out

    return into


def _long_rows(a: Array, b: Array) -> int:
    """Elements per row where one operand has one value for each row, and rows are long; else 0."""
    if a.size == b.size or a.dtype != b.dtype:
        return 0
    row = 1
    for d, e in zip(reversed(a.shape), reversed(b.shape), strict=False):
        if d != e and 1 not in (d, e):
            return 0
        if d == e:
            break
        row *= d * e
    return row if row >= LONG_ROW else 0


def _covers(out: Array, a: Array, b: Array) -> bool:
    """Whether the result of ``a`` and ``b``, broadcast, has the shape of ``out``."""
    other = b if out is a else a
    surplus = out.ndim - other.ndim
    return surplus >= 0 and all(d in (1, e) for d, e in zip(other.shape, out.shape[surplus:], strict=True))


def over_input(compute: Callable[..., Array]) -> Callable[[Call, Array, Array], Array | None]:
    """``compute(x, out=x)`` for floats."""

    def into(call: Call, out: Array, x: Array) -> Array | None:
        return compute(x, out=out) if x.dtype.kind == "f" else None

    return into


def unary(op_type: str, compute: Unary, exact: Exactness = False) -> None:
    """Registers a unary op that means the same in every version."""

    def run(call: Call, x: Array) -> Array:
        if is_narrow(x):
            return compute(widen(x)).astype(x.dtype)
        return compute(x)

    into = over_input(compute) if isinstance(compute, np.ufunc) else None
    kernel(op_type, exact=exact, into=into)(run)


def _divide(a: Array, b: Array) -> Array:
    """Quotient; of integers truncated toward zero."""
    if a.dtype.kind not in "iu":
        return np.divide(a, b)
    if not np.all(b):
        raise ValueError("integer division by zero")
    quotient = np.floor_divide(a, b)
    if a.dtype.kind == "i":
        rounded_down = (np.multiply(quotient, b) != a) & ((a < 0) != (b < 0))
        quotient = np.add(quotient, rounded_down, dtype=a.dtype)
    return quotient


def _reciprocal(x: Array) -> Array:
    return np.divide(np.ones((), x.dtype), x)


binary("Add", np.add, ufunc=np.add)
binary("Sub", np.subtract, ufunc=np.subtract)
binary("Mul", np.multiply, ufunc=np.multiply)
binary("Div", _divide, ufunc=np.divide)
_EXACT: dict[str, Unary] = {
    "Abs": np.abs,
    "Neg": np.negative,
    "Ceil": np.ceil,
    "Floor": np.floor,
    "Round": np.rint,
    "Sign": np.sign,
    "Sqrt": np.sqrt,
    "Reciprocal": _reciprocal,
}
_ROUNDED: dict[str, Unary] = {
    "Exp": np.exp,
    "Log": np.log,
    "Sin": np.sin,
    "Cos": np.cos,
    "Tan": np.tan,
    "Asin": np.arcsin,
    "Acos": np.arccos,
    "Atan": np.arctan,
    "Sinh": np.sinh,
    "Cosh": np.cosh,
    "Asinh": np.arcsinh,
    "Acosh": np.arccosh,
    "Atanh": np.arctanh,
}
for _name, _compute in _EXACT.items():
    unary(_name, _compute, exact=True)
for _name, _compute in _ROUNDED.items():
    unary(_name, _compute)


# ---------------------------------------------------------------- Mod and Pow


@kernel("Mod", 10, exact=True)
@computed_wide
def mod(call: Call, a: Array, b: Array) -> Array:
    """Remainder with the sign of the divisor, or with ``fmod`` that of the dividend."""
    if a.dtype.kind in "iu" and not np.all(b):
        raise ValueError("integer modulo by zero")
    return np.fmod(a, b) if call.attr("fmod", 0) else np.mod(a, b)


@kernel("Pow", 1, exact="integer")
def pow_legacy(call: Call, base: Array, exponent: Array) -> Array:
    """Pow before version 7: broadcasts by attribute."""
    return power(call, base, legacy_operand(call, base, exponent))


@kernel("Pow", 7, exact="integer")
def power(call: Call, base: Array, exponent: Array) -> Array:
    """Power in the type of the base.

    Integers to an integer power wrap; a negative power truncates 1/x^n toward zero. With a float
    exponent the power is taken in floating point and converted back.
    """
    if base.dtype.kind not in "iu":
        wide = widen(base)
        power_dtype = wide.dtype if exponent.dtype.kind not in "iu" else np.promote_types(wide.dtype, "f4")
        return np.asarray(np.power(wide, widen(exponent).astype(power_dtype)), base.dtype)
    if exponent.dtype.kind not in "iu":
        powers: Array = np.power(base.astype(np.float64), widen(exponent).astype(np.float64))
        return powers.astype(base.dtype)
    negative = exponent < 0
    if not np.any(negative):
        whole: Array = np.power(base, exponent.astype(base.dtype))
        return whole
    raised = np.power(base, np.where(negative, 0, exponent).astype(base.dtype))
    if np.any((base == 0) & negative):
        raise ValueError("zero to a negative integer power")
    odd = np.where(exponent % 2 != 0, base, 1)
    inverse = np.where(np.abs(base.astype(np.int64)) == 1, odd, 0).astype(base.dtype)
    return np.where(negative, inverse, raised)


# ---------------------------------------------------------------- variadic


def variadic(op_type: str, compute: np.ufunc, exact: Exactness) -> None:
    """Registers an op that joins any number of inputs pairwise from the left."""
    pair = over_operand(compute)

    def into(call: Call, out: Array, *inputs: Array) -> Array | None:
        return pair(call, out, *inputs) if len(inputs) == 2 else None

    @computed_wide
    def run(call: Call, *inputs: Array) -> Array:
        return reduce(compute, inputs)

    for since in (1, 6, 8, 12, 13):
        made = kernel(op_type, since, exact=exact, may_alias=True, into=into, reuses=(0, 1))
        made(run)


variadic("Min", np.minimum, True)
variadic("Max", np.maximum, True)
variadic("Sum", np.add, "integer")


@kernel("Mean", exact=False)
@computed_wide
def mean(call: Call, *inputs: Array) -> Array:
    """Elementwise mean of the inputs."""
    total: Array = reduce(np.add, inputs)
    average: Array = total / np.asarray(len(inputs), total.dtype)
    return average


# ---------------------------------------------------------------- Clip


def _clip_over_by_attributes(call: Call, out: Array, x: Array) -> Array | None:
    low, high = _limits(call, x.dtype)
    return None if x.dtype.kind != "f" or low is high is None else _clipped(x, low, high, out)


def _limits(call: Call, dtype: np.dtype[np.generic]) -> tuple[Array | None, Array | None]:
    low, high = (None if call.attr(n) is None else np.asarray(call.attr(n), dtype) for n in ("min", "max"))
    return low, high


@kernel("Clip", 1, exact=True, into=_clip_over_by_attributes)
@kernel("Clip", 6, exact=True, into=_clip_over_by_attributes)
@computed_wide
def clip_by_attributes(call: Call, x: Array) -> Array:
    """Clip with its limits as attributes."""
    low, high = _limits(call, x.dtype)
    return x.copy() if low is high is None else _clipped(x, low, high)


def _clip_over(
    call: Call, out: Array, x: Array, low: Array | None = None, high: Array | None = None
) -> Array | None:
    if x.dtype.kind != "f" or (low is None and high is None):
        return None
    return _clipped(x, low, high, out)


@kernel("Clip", 11, exact=True, may_alias=(0,), into=_clip_over)
@computed_wide
def clip(call: Call, x: Array, low: Array | None = None, high: Array | None = None) -> Array:
    """Clip with its limits as inputs; where they cross, the upper one wins."""
    return x if low is None and high is None else _clipped(x, low, high)


def _clipped(x: Array, low: Array | None, high: Array | None, out: Array | None = None) -> Array:
    if low is None or high is None:
        # One pass with an infinite other limit is several times as fast as a maximum with a scalar.
        whole = x.dtype.kind in "iu"
        lowest, highest = (np.iinfo(x.dtype).min, np.iinfo(x.dtype).max) if whole else (-np.inf, np.inf)
        low = np.array(lowest, x.dtype) if low is None else low
        high = np.array(highest, x.dtype) if high is None else high
    return np.clip(x, low.reshape(()), high.reshape(()), out=out)


# ---------------------------------------------------------------- bits


@kernel("BitShift", 11, exact=True)
def bit_shift(call: Call, x: Array, amount: Array) -> Array:
    """Shifts integers; signed ones to the right keep their sign.

    An amount that is negative or reaches the width leaves nothing but copies of the sign bit on a
    right shift, nothing at all on a left one.
    """
    direction = call.attr("direction", "")
    if direction not in ("LEFT", "RIGHT"):
        raise ValueError(f"direction must be LEFT or RIGHT, not '{direction}'")
    beyond = (amount < 0) | (amount >= x.dtype.itemsize * 8)
    within = np.where(beyond, 0, amount).astype(amount.dtype)
    if direction == "LEFT":
        return np.where(beyond, 0, np.left_shift(x, within)).astype(x.dtype)
    sign = -(x < 0).astype(x.dtype)
    return np.where(beyond, sign, np.right_shift(x, within))


binary("BitwiseAnd", np.bitwise_and, (18,))
binary("BitwiseOr", np.bitwise_or, (18,))
binary("BitwiseXor", np.bitwise_xor, (18,))
unary("BitwiseNot", np.bitwise_not, exact=True)
