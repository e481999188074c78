"""Elementwise operators on the known contents of small tensors."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TypeGuard

import numpy as np

from optimizer.analysis.computed import maximum, minimum
from optimizer.analysis.dims import Dim
from optimizer.analysis.elements import FLOATS, INTEGERS, MAX_ELEMENTS, Element, Elements, Ratio
from optimizer.ir import DType

MAX_COEFFICIENT = 256
MAX_FLOAT32 = 3e38


def elementwise(
    function: Callable[..., Element], operands: list[Elements | None], dtype: DType | None
) -> Elements | None:
    """``function`` on the broadcast elements; ``None`` where an operand or too much is unknown."""
    arrays = [operand.array for operand in operands if operand is not None]
    if len(arrays) != len(operands):
        return None
    try:
        wide = np.broadcast_arrays(*arrays)
    except ValueError:
        return None
    if wide[0].size > MAX_ELEMENTS:
        return None
    rows = zip(*(a.ravel().tolist() for a in wide), strict=True)
    made = [checked(function(*row), dtype) for row in rows]
    return Elements.of(made, wide[0].shape) if any(e is not None for e in made) or not made else None


def checked(element: Element, dtype: DType | None) -> Element:
    """``element``, or ``None`` where ``dtype`` could not hold it as it is."""
    if isinstance(element, bool):
        return element if dtype is DType.BOOL else None
    if isinstance(element, Dim):
        if dtype not in INTEGERS:
            return None
        limit = 2**31 if dtype is DType.INT32 else 2**63
        return element if element.value is None or -limit <= element.value < limit else None
    if isinstance(element, float):
        if dtype is DType.FLOAT and math.isfinite(element):
            return float(np.float32(element)) if abs(element) < MAX_FLOAT32 else None
        return element if dtype in FLOATS else None
    if isinstance(element, Ratio):
        big = any(abs(c) > MAX_COEFFICIENT for m, c in element.numerator.terms.items() if m)
        return element if dtype in FLOATS and not big else None
    return None


# ---------------------------------------------------------------- numbers


def plus(a: Element, b: Element) -> Element:
    """``Add``."""
    if isinstance(a, Dim) and isinstance(b, Dim):
        return a + b
    if isinstance(a, float) and isinstance(b, float):
        return a + b
    return _on_ratios(
        a,
        b,
        lambda p, q: _ratio(
            p.numerator * q.denominator + q.numerator * p.denominator, p.denominator * q.denominator
        ),
    )


def minus(a: Element, b: Element) -> Element:
    """``Sub``."""
    return plus(a, negated(b))


def negated(a: Element) -> Element:
    """``Neg``."""
    if isinstance(a, Ratio):
        return Ratio(-a.numerator, a.denominator)
    if isinstance(a, bool) or a is None:
        return None
    return -a


def times(a: Element, b: Element) -> Element:
    """``Mul``."""
    if isinstance(a, Dim) and isinstance(b, Dim):
        return a * b
    if isinstance(a, float) and isinstance(b, float):
        return a * b
    return _on_ratios(a, b, lambda p, q: _ratio(p.numerator * q.numerator, p.denominator * q.denominator))


def divided(a: Element, b: Element) -> Element:
    """``Div``: integers are truncated."""
    if isinstance(a, Dim) and isinstance(b, Dim):
        return a.trunc_div(b)
    if isinstance(a, float) and isinstance(b, float):
        return a / b if b else None
    p, q = _as_ratio(a), _as_ratio(b)
    if p is None or q is None or not p.is_exact or not q.is_exact:
        return None
    if q.numerator.value is not None and q.numerator.value > 0:
        return _ratio(p.numerator * q.denominator, p.denominator * q.numerator.value)
    exact = (p.numerator * q.denominator).quotient(q.numerator * p.denominator)
    return None if exact is None else Ratio(exact, 1)


def remainder(a: Element, b: Element) -> Element:
    """``Mod`` with ``fmod=0``: the sign of the divisor, as Python's."""
    if isinstance(a, Dim) and isinstance(b, Dim) and b.value != 0:
        return a % b
    return None


def truncated_remainder(a: Element, b: Element) -> Element:
    """``Mod`` with ``fmod=1`` on integers: the sign of the dividend."""
    if not isinstance(a, Dim) or not isinstance(b, Dim):
        return None
    quotient = a.trunc_div(b)
    return None if quotient is None else a - b * quotient


def power(a: Element, b: Element) -> Element:
    """``Pow`` of a dim with a small whole exponent."""
    exponent = b.value if isinstance(b, Dim) else int(b) if isinstance(b, float) and b.is_integer() else None
    if not isinstance(a, Dim) or exponent is None or not 0 <= exponent <= 4:
        return None
    return math.prod([a] * exponent, start=Dim.of(1))


def absolute(a: Element) -> Element:
    """``Abs``."""
    if isinstance(a, Dim):
        return a if a.bounds[0] >= 0 else -a if a.bounds[1] <= 0 else maximum(a, -a)
    return abs(a) if isinstance(a, float) else None


def larger(a: Element, b: Element) -> Element:
    """``Max``."""
    if isinstance(a, Dim) and isinstance(b, Dim):
        return maximum(a, b)
    return max(a, b) if _ordinary(a) and _ordinary(b) else None


def smaller(a: Element, b: Element) -> Element:
    """``Min``."""
    if isinstance(a, Dim) and isinstance(b, Dim):
        return minimum(a, b)
    return min(a, b) if _ordinary(a) and _ordinary(b) else None


def floored(a: Element) -> Element:
    """``Floor``."""
    if isinstance(a, Ratio):
        return Ratio(a.numerator // a.denominator, 1)
    return float(math.floor(a)) if isinstance(a, float) and math.isfinite(a) else None


def ceiled(a: Element) -> Element:
    """``Ceil``."""
    if isinstance(a, Ratio):
        return Ratio(a.numerator.ceil_div(a.denominator), 1)
    return float(math.ceil(a)) if isinstance(a, float) and math.isfinite(a) else None


def rounded(a: Element) -> Element:
    """``Round``: halves to even."""
    if isinstance(a, Ratio):
        return a if a.denominator == 1 else None
    return float(round(a)) if isinstance(a, float) and math.isfinite(a) else None


# ---------------------------------------------------------------- truth


def equal(a: Element, b: Element) -> Element:
    """``Equal``, where it is decided."""
    if isinstance(a, Dim) and isinstance(b, Dim):
        return a.eq(b)
    if type(a) is type(b) and isinstance(a, (bool, float)):
        return a == b
    p, q = _as_ratio(a), _as_ratio(b)
    if p is None or q is None or not p.is_exact or not q.is_exact:
        return None
    return (p.numerator * q.denominator).eq(q.numerator * p.denominator)


def less(a: Element, b: Element) -> Element:
    """``Less``, where it is decided."""
    return _ordered(a, b, Dim.lt)


def less_or_equal(a: Element, b: Element) -> Element:
    """``LessOrEqual``, where it is decided."""
    return _ordered(a, b, Dim.le)


def both(a: Element, b: Element) -> Element:
    """``And``: false as soon as one is."""
    if a is False or b is False:
        return False
    return True if a is True and b is True else None


def either(a: Element, b: Element) -> Element:
    """``Or``: true as soon as one is."""
    if a is True or b is True:
        return True
    return False if a is False and b is False else None


def exclusive(a: Element, b: Element) -> Element:
    """``Xor``."""
    return a is not b if isinstance(a, bool) and isinstance(b, bool) else None


def inverted(a: Element) -> Element:
    """``Not``."""
    return not a if isinstance(a, bool) else None


def chosen(condition: Element, a: Element, b: Element) -> Element:
    """``Where``; with an unknown condition where both say the same."""
    if isinstance(condition, bool):
        return a if condition else b
    same = type(a) is type(b) and a == b and not (isinstance(a, float) and a == 0)  # zeros have signs
    return a if same else None


# ---------------------------------------------------------------- casts


def cast(a: Element, source: DType | None, target: DType) -> Element:
    """``Cast`` between integers, floats and truth values."""
    if isinstance(a, bool):
        return a if target is DType.BOOL else Dim.of(int(a)) if target in INTEGERS else float(a)
    if target is DType.BOOL:
        zero = equal(a, Dim.of(0) if isinstance(a, Dim) else 0.0)
        return None if zero is None else not zero
    if isinstance(a, Dim):
        if target in INTEGERS:
            return a
        return float(a.value) if a.value is not None and abs(a.value) < 2**24 else Ratio(a, 1)
    if target in INTEGERS:
        if isinstance(a, Ratio):
            return a.numerator // a.denominator if a.numerator.bounds[0] >= 0 else None
        return Dim.of(int(a)) if isinstance(a, float) and math.isfinite(a) else None
    return a if source is target or target is DType.DOUBLE or isinstance(a, float) else None


def _ordinary(a: Element) -> TypeGuard[float]:
    return isinstance(a, float) and not math.isnan(a) and a != 0


def _ordered(a: Element, b: Element, compare: Callable[[Dim, Dim], bool | None]) -> Element:
    if isinstance(a, Dim) and isinstance(b, Dim):
        return compare(a, b)
    p, q = _as_ratio(a), _as_ratio(b)
    if p is None or q is None or not p.is_exact or not q.is_exact:
        return None
    return compare(p.numerator * q.denominator, q.numerator * p.denominator)


def _on_ratios(a: Element, b: Element, operation: Callable[[Ratio, Ratio], Ratio]) -> Element:
    p, q = _as_ratio(a), _as_ratio(b)
    if p is None or q is None or not p.is_exact or not q.is_exact:
        return None
    made = operation(p, q)
    if made.numerator.value is not None:
        return made.numerator.value / made.denominator
    return made


def _as_ratio(a: Element) -> Ratio | None:
    if isinstance(a, float) and math.isfinite(a):
        fraction = Fraction(a)
        return Ratio(Dim.of(fraction.numerator), fraction.denominator)
    return a if isinstance(a, Ratio) else None


def _ratio(numerator: Dim, denominator: int) -> Ratio:
    """In lowest terms."""
    shared = math.gcd(denominator, *numerator.terms.values())
    if shared > 1:
        numerator, denominator = numerator // shared, denominator // shared
    return Ratio(numerator, denominator)
