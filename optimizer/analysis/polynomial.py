"""Integer polynomials as plain dictionaries from monomial to coefficient.

A monomial is a tuple of atoms sorted by serial, an atom once for each power; ``()`` is the constant
term. Coefficients are never zero. Monomials are ordered by degree, then lexicographically (older
atoms weigh more), which is compatible with multiplication, as exact division needs.
"""

from __future__ import annotations

import math
from operator import attrgetter
from typing import TypeAlias

from optimizer.analysis.atoms import Atom

Monomial: TypeAlias = tuple[Atom, ...]
Terms: TypeAlias = dict[Monomial, int]

_by_serial = attrgetter("serial")


def add(a: Terms, b: Terms, factor: int = 1) -> Terms:
    """``a + factor * b``. O(terms)."""
    total = dict(a)
    for monomial, coefficient in b.items():
        combined = total.get(monomial, 0) + factor * coefficient
        if combined:
            total[monomial] = combined
        else:
            total.pop(monomial, None)
    return total


def multiply(a: Terms, b: Terms) -> Terms:
    """``a * b``. O(terms of a * terms of b)."""
    product: Terms = {}
    for m, c in a.items():
        for n, d in b.items():
            monomial = tuple(sorted(m + n, key=_by_serial)) if m and n else m + n
            product[monomial] = product.get(monomial, 0) + c * d
    return {m: c for m, c in product.items() if c}


def divide(a: Terms, b: Terms) -> Terms | None:
    """The polynomial ``q`` with ``a == q * b``, or ``None`` where there is none."""
    leading = max(b, key=_rank)
    quotient: Terms = {}
    rest = a
    while rest:
        top = max(rest, key=_rank)
        monomial = remove(top, leading)
        if monomial is None or rest[top] % b[leading]:
            return None
        factor = rest[top] // b[leading]
        quotient[monomial] = factor
        rest = add(rest, multiply({monomial: factor}, b), -1)
    return quotient


def remove(monomial: Monomial, part: Monomial) -> Monomial | None:
    """``monomial / part``, or ``None`` where ``part`` does not divide it."""
    left = list(monomial)
    for atom in part:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)


def common_monomial(terms: list[Monomial]) -> Monomial:
    """The largest monomial that divides all of them."""
    shared = list(terms[0])
    for monomial in terms[1:]:
        left, kept = list(monomial), []
        for atom in shared:
            if atom in left:
                left.remove(atom)
                kept.append(atom)
        shared = kept
    return tuple(shared)


def interval(terms: Terms) -> tuple[float, float]:
    """Bounds of the value from the bounds of the atoms alone."""
    low: float = 0
    high: float = 0
    for monomial, coefficient in terms.items():
        lo: float = coefficient
        hi: float = coefficient
        for atom in monomial:
            corners = [_times(x, y) for x in (lo, hi) for y in (atom.lo, atom.hi)]
            lo, hi = min(corners), max(corners)
        low += lo
        high += hi
    return low, high


def lower_bound(terms: Terms, depth: int = 5) -> float:
    """A lower bound that knows what computed atoms are computed from.

    The youngest computed atom that stands alone in a term is replaced by what bounds it:
    ``(p - k + 1)/k <= p//k <= p/k``; a min, max or broadcast is one of its operands, and a max is at least
    as large as each.
    """
    plain = interval(terms)[0]
    alone = [m for m in terms if len(m) == 1 and m[0].kind in ("fdiv", "min", "max", "bcast")]
    if depth == 0 or not alone:
        return plain
    monomial = max(alone, key=lambda m: m[0].serial)
    atom, factor = monomial[0], terms[monomial]
    rest = {m: c for m, c in terms.items() if m is not monomial}
    if atom.kind != "fdiv":
        cases = [lower_bound(add(rest, a.terms, factor), depth - 1) for a in atom.args]
        one_sided = (atom.kind == "max" and factor > 0) or (atom.kind == "min" and factor < 0)
        return max(plain, max(cases) if one_sided else min(cases))
    top, bottom = atom.args
    k = bottom.value
    if k is None or k < 0:
        return plain
    bound = top.terms if factor < 0 else add(top.terms, {(): 1}, 1 - k)
    multiple = add({m: c * k for m, c in rest.items()}, bound, factor)
    low = lower_bound(multiple, depth - 1)
    return max(plain, low if math.isinf(low) else -(-low // k))


def content(terms: Terms) -> int:
    """Greatest common divisor of the coefficients of all terms but the constant one."""
    return math.gcd(*(c for m, c in terms.items() if m))


def _times(x: float, y: float) -> float:
    return 0 if x == 0 or y == 0 else x * y  # 0 times an open bound is 0, not NaN


def _rank(monomial: Monomial) -> tuple[int, tuple[int, ...]]:
    return len(monomial), tuple(-atom.serial for atom in monomial)
