"""``Dim``: a dimension as a canonical integer polynomial over atoms.

Two dims that are equal as polynomials are the same object. Comparisons that may not be decidable
(``eq``, ``ge``, ...) are three-valued; ``None`` means unknown. A dim that the model names is never
taken to be non-zero: its lower bound is 0 unless the caller says otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias
from weakref import WeakValueDictionary

from optimizer.analysis import polynomial
from optimizer.analysis.atoms import Atom, Kind, computed_atom, named_atom
from optimizer.analysis.polynomial import Terms

MAX_TERMS = 32
MAX_DEGREE = 8
MAX_DEPTH = 24
MAX_OPERANDS = 8

if TYPE_CHECKING:
    from optimizer.analysis.walks import Sizes

DimLike: TypeAlias = "Dim | int | str"


class Dim:
    """An integer: a number, or a polynomial over named, unknown and computed atoms. Immutable.

    Arithmetic with ``int`` and ``Dim`` gives ``Dim``; ``//`` and ``%`` round to minus infinity as
    Python's do. ``a == b`` is true exactly where equality is proven by the polynomials alone.

    Attributes:
        value: the number, or ``None`` where it is not constant.
    """

    __slots__ = ("__weakref__", "_bounds", "_hash", "terms", "value")

    terms: Terms
    value: int | None
    _bounds: tuple[float, float] | None
    _hash: int

    # ---------------------------------------------------------------- making

    @staticmethod
    def of(source: DimLike) -> Dim:
        """A number or a name as a dim."""
        if isinstance(source, Dim):
            return source
        return Dim.symbol(source) if isinstance(source, str) else _constant(int(source))

    @staticmethod
    def symbol(name: str, lo: int = 0, hi: int | None = None, divisor: int = 1) -> Dim:
        """The dimension called ``name``, between ``lo`` and ``hi``, a multiple of ``divisor``."""
        return _leaf("name", name, lo, hi, divisor)

    @staticmethod
    def axis(name: str, axis: int, lo: int = 0, hi: int | None = None, divisor: int = 1) -> Dim:
        """The unnamed dimension ``axis`` of the graph input ``name``: called ``name:axis``."""
        return _leaf("axis", f"{name}:{axis}", lo, hi, divisor)

    @staticmethod
    def fresh(hint: str = "", lo: float = 0, hi: float = math.inf) -> Dim:
        """An unknown that is equal to nothing but itself."""
        return make({(Atom("fresh", hint, (), lo, hi),): 1})

    @staticmethod
    def lone(atom: Atom) -> Dim:
        """The dim that is just this atom."""
        return make({(atom,): 1})

    # ---------------------------------------------------------------- arithmetic

    def __add__(self, other: DimLike) -> Dim:
        other = Dim.of(other)
        if self.value is not None:
            if other.value is not None:
                return _constant(self.value + other.value)
            if self.value == 0:
                return other
        elif other.value == 0:
            return self
        return _sum(self, other)

    def __neg__(self) -> Dim:
        return self * -1

    def __sub__(self, other: DimLike) -> Dim:
        return self + Dim.of(other) * -1

    def __mul__(self, other: DimLike) -> Dim:
        other = Dim.of(other)
        if self.value is not None:
            if other.value is not None:
                return _constant(self.value * other.value)
            self, other = other, self
        return self if other.value == 1 else _product(self, other)

    def __floordiv__(self, other: DimLike) -> Dim:
        return floor_div(self, Dim.of(other))

    def __mod__(self, other: DimLike) -> Dim:
        other = Dim.of(other)
        return self - other * (self // other)

    __radd__ = __add__
    __rmul__ = __mul__

    def __rsub__(self, other: DimLike) -> Dim:
        return Dim.of(other) - self

    def ceil_div(self, other: DimLike) -> Dim:
        """The quotient rounded to plus infinity."""
        other = Dim.of(other)
        if other.bounds[0] >= 1:
            return (self + (other - 1)) // other
        return -((-self) // other)

    def quotient(self, other: DimLike) -> Dim | None:
        """The exact quotient where the polynomial division has one; assumes ``other`` is not 0."""
        other = Dim.of(other)
        if not other.terms:
            return None
        terms = polynomial.divide(self.terms, other.terms)
        return None if terms is None else make(terms)

    def trunc_div(self, other: DimLike) -> Dim | None:
        """The quotient rounded to zero (ONNX integer ``Div``); ``None`` where signs are not proven."""
        from optimizer.analysis.computed import truncated  # made of dims, so it imports this file

        return truncated(self, Dim.of(other))

    # ---------------------------------------------------------------- questions

    @property
    def is_const(self) -> bool:
        """Whether it is a number."""
        return self.value is not None

    @property
    def bounds(self) -> tuple[float, float]:
        """Proven lower and upper bound, infinite where there is none."""
        if self._bounds is None:
            low, high = polynomial.interval(self.terms)
            if any(a.args for m in self.terms for a in m):
                low = max(low, polynomial.lower_bound(self.terms))
                high = min(high, -polynomial.lower_bound({m: -c for m, c in self.terms.items()}))
            self._bounds = low, high
        return self._bounds

    def eq(self, other: DimLike) -> bool | None:
        """Whether they are equal, in every case; ``None`` where that depends or is not known."""
        difference = self - other
        if difference.value is not None:
            return difference.value == 0
        low, high = difference.bounds
        if low > 0 or high < 0 or difference.terms.get((), 0) % polynomial.content(difference.terms):
            return False
        return True if low == high == 0 else None

    def ge(self, other: DimLike) -> bool | None:
        """Whether ``self >= other``; ``None`` where unknown."""
        low, high = (self - other).bounds
        return True if low >= 0 else False if high < 0 else None

    def le(self, other: DimLike) -> bool | None:
        """Whether ``self <= other``; ``None`` where unknown."""
        return Dim.of(other).ge(self)

    def gt(self, other: DimLike) -> bool | None:
        """Whether ``self > other``; ``None`` where unknown."""
        return self.ge(Dim.of(other) + 1)

    def lt(self, other: DimLike) -> bool | None:
        """Whether ``self < other``; ``None`` where unknown."""
        return self.le(Dim.of(other) - 1)

    def __eq__(self, other: object) -> bool:
        return self is other or (self.value is not None and self.value == other)

    def __hash__(self) -> int:
        return self._hash

    @property
    def leaves(self) -> frozenset[Atom]:
        """The named and unknown atoms it depends on."""
        atoms = {atom for monomial in self.terms for atom in monomial}
        return frozenset(atom for atom in atoms.union(*(a.below for a in atoms)) if atom.is_leaf)

    @property
    def is_known(self) -> bool:
        """Whether it is a number or depends on nothing but dimensions of graph inputs."""
        return self.value is not None or all(atom.kind != "fresh" for atom in self.leaves)

    def evaluate(self, sizes: Sizes) -> int | None:
        """Its value where the named dims have these ``sizes``; ``None`` where one is not given.

        Unnamed axes of graph inputs go by ``input:axis``.
        """
        from optimizer.analysis.walks import evaluate  # walks over dims, so it imports this file

        return evaluate(self, sizes)

    def substitute(self, replacements: Mapping[Atom, Dim]) -> Dim:
        """Puts dims in the place of atoms, inside computed ones too."""
        from optimizer.analysis.walks import substitute

        return substitute(self, replacements)

    def to_decl(self) -> int | str | None:
        """What a type declares for it: a number, a name or expression, ``None`` where unknown."""
        if self.value is not None:
            return self.value if abs(self.value) < 2**63 else None
        return str(self) if all(atom.kind == "name" for atom in self.leaves) else None

    def __str__(self) -> str:
        from optimizer.analysis.walks import spell

        return spell(self)

    def __repr__(self) -> str:
        return f"Dim({self})"

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a Dim belongs to its process")


# -------------------------------------------------------------------- interning

_small: dict[int, Dim] = {}
_numbers: WeakValueDictionary[int, Dim] = WeakValueDictionary()
_polynomials: WeakValueDictionary[frozenset[tuple[tuple[Atom, ...], int]], Dim] = WeakValueDictionary()


def _constant(value: int) -> Dim:
    dim = _small.get(value)
    if dim is None:
        dim = _numbers.get(value)
        if dim is None:
            dim = _new({(): value} if value else {}, value, hash(value))
            table = _small if -2 <= value <= 4096 else _numbers
            table[value] = dim
    return dim


def _leaf(kind: Kind, name: str, lo: int, hi: int | None, divisor: int) -> Dim:
    top = math.inf if hi is None else hi // divisor
    return make({(named_atom(kind, name, -(-lo // divisor), top, divisor),): divisor})


def make(terms: Terms, kind: Kind = "add", *operands: Dim) -> Dim:
    """The dim of ``terms``; past the size cap, an atom that stands for the operation itself."""
    if not terms or (len(terms) == 1 and () in terms):
        return _constant(terms.get((), 0))
    if operands and (len(terms) > MAX_TERMS or any(len(m) > MAX_DEGREE for m in terms)):
        low, high = polynomial.interval(terms)
        return computed(kind, operands, low, high, commutes=True)
    key = frozenset(terms.items())
    dim = _polynomials.get(key)
    if dim is None:
        dim = _polynomials[key] = _new(terms, None, hash(key))
    return dim


def _new(terms: Terms, value: int | None, hashed: int) -> Dim:
    dim = object.__new__(Dim)
    dim.terms, dim.value, dim._hash, dim._bounds = terms, value, hashed, None
    return dim


def computed(
    kind: Kind, args: tuple[Dim, ...], lo: float, hi: float, name: str = "", *, commutes: bool = False
) -> Dim:
    """The dim that is one computed atom; nested too deep, an unknown."""
    if any(a.depth >= MAX_DEPTH for d in args for m in d.terms for a in m):
        return Dim.fresh(kind, lo, hi)
    return make({(computed_atom(kind, args, lo, hi, name, commutes=commutes),): 1})


# -------------------------------------------------------------------- operations

# Models compute the same few dims again and again; without these memories each would be made anew.


@lru_cache(maxsize=4096)
def _sum(a: Dim, b: Dim) -> Dim:
    return make(polynomial.add(a.terms, b.terms), "add", a, b)


@lru_cache(maxsize=4096)
def _product(a: Dim, b: Dim) -> Dim:
    return make(polynomial.multiply(a.terms, b.terms), "mul", a, b)


@lru_cache(maxsize=4096)
def floor_div(a: Dim, b: Dim) -> Dim:
    """``a // b``, rounded to minus infinity; by 0 it is an unknown."""
    if b.value is not None:
        if a.value is not None and b.value:
            return _constant(a.value // b.value)
        return _divide_by_number(a, b.value)
    exact = a.quotient(b)
    if exact is not None:
        return exact
    shared = polynomial.common_monomial([*a.terms, *b.terms])
    if shared:  # the common factor is not 0, or the division would have failed
        factor = {shared: 1}
        return make(polynomial.divide(a.terms, factor) or {}) // make(
            polynomial.divide(b.terms, factor) or {}
        )
    lo, hi = -math.inf, math.inf
    if b.bounds[0] >= 0:  # and not 0
        lo = 0 if a.bounds[0] >= 0 else a.bounds[0]
        hi = max(0, a.bounds[1])
    return computed("fdiv", (a, b), lo, hi)


def _divide_by_number(a: Dim, k: int) -> Dim:
    """Whole multiples of ``k`` leave the quotient; nested divisions become one."""
    if k == 0:
        return Dim.fresh("undefined", -math.inf)
    if k < 0:
        a, k = -a, -k
    if k == 1:
        return a
    whole = make({m: c // k for m, c in a.terms.items() if c // k})
    rest = {m: c % k for m, c in a.terms.items() if c % k}
    if not rest or (len(rest) == 1 and () in rest):
        return whole
    shared = math.gcd(polynomial.content(rest), k)
    if shared > 1:
        # floor((g*r + c) / (g*k)) = floor((r + floor(c/g)) / k)
        return whole + make({m: c // shared for m, c in rest.items() if c // shared}) // (k // shared)
    inner = [(m[0], c) for m, c in rest.items() if m]
    if len(inner) == 1 and inner[0][1] == 1 and inner[0][0].kind == "fdiv" and len(rest) <= 2:
        top, bottom = inner[0][0].args
        if bottom.value is not None and len(next(m for m in rest if m)) == 1:
            return whole + (top + bottom * rest.get((), 0)) // (bottom * k)
    top = make(rest)
    low, high = top.bounds
    bounds = (low if math.isinf(low) else low // k, high if math.isinf(high) else high // k)
    return whole + computed("fdiv", (top, _constant(k)), *bounds)
