"""Atoms: the indivisible unknowns that dimensions are polynomials over."""

from __future__ import annotations

import math
from itertools import count
from typing import TYPE_CHECKING, Literal
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from optimizer.analysis.dims import Dim

Kind = Literal["name", "axis", "fresh", "fdiv", "min", "max", "bcast", "orelse", "scale", "add", "mul"]
"""``name``: a dim_param. ``axis``: an unnamed axis of a graph input. ``fresh``: unknown.

``orelse``: the first argument, or the second where that is 0. The others are computed from ``args``;
``add`` and ``mul`` stand for polynomials over the size cap.
"""

_serials = count()
_interned: WeakValueDictionary[tuple[object, ...], Atom] = WeakValueDictionary()


class Atom:
    """One unknown integer. Equal atoms are the same object, so equality and hash are identity.

    Attributes:
        args: what a computed atom is computed from.
        name: of a named atom, the hint of a fresh one, or the rounding of a ``scale``.
        lo: lower bound; ``-inf`` where there is none.
        hi: upper bound; ``inf`` where there is none.
        divisor: a named dimension known to be a multiple of ``divisor`` is ``divisor`` times this atom.
        serial: order of creation; a computed atom is younger than all it is computed from.
        depth: nesting of computed atoms.
        below: all atoms it is computed from, directly or not.
    """

    depth: int
    __slots__ = ("__weakref__", "args", "below", "depth", "divisor", "hi", "kind", "lo", "name", "serial")

    def __init__(
        self,
        kind: Kind,
        name: str = "",
        args: tuple[Dim, ...] = (),
        lo: float = -math.inf,
        hi: float = math.inf,
        divisor: int = 1,
    ) -> None:
        self.kind: Kind = kind
        self.name = name
        self.args = args
        self.lo = lo
        self.hi = hi
        self.divisor = divisor
        self.serial = next(_serials)
        direct = {atom for dim in args for monomial in dim.terms for atom in monomial}
        self.depth = 1 + max((atom.depth for atom in direct), default=0)
        self.below: frozenset[Atom] = frozenset(direct).union(*(atom.below for atom in direct))

    @property
    def is_leaf(self) -> bool:
        """Whether it is not computed from other atoms."""
        return not self.args

    def __repr__(self) -> str:
        return f"Atom({self.kind} {self.name or self.serial})"


def named_atom(kind: Kind, name: str, lo: float, hi: float, divisor: int) -> Atom:
    """The one atom of this name and these bounds."""
    key = (kind, name, lo, hi, divisor)
    atom = _interned.get(key)
    if atom is None:
        atom = _interned[key] = Atom(kind, name, (), lo, hi, divisor)
    return atom


def computed_atom(
    kind: Kind, args: tuple[Dim, ...], lo: float, hi: float, name: str = "", *, commutes: bool = False
) -> Atom:
    """The one atom computed this way from these arguments."""
    key = (kind, name, frozenset(args) if commutes else args)
    atom = _interned.get(key)
    if atom is None:
        atom = _interned[key] = Atom(kind, name, args, lo, hi)
    return atom


def mark() -> int:
    """A point in time: atoms made later have a serial that is at least this."""
    return next(_serials)
