"""What every run that succeeds satisfies about sizes, kept as a substitution of atoms."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from optimizer.analysis import polynomial
from optimizer.analysis.atoms import Atom, named_atom
from optimizer.analysis.dims import Dim, make
from optimizer.analysis.elements import Element, Elements, Ratio
from optimizer.analysis.fact import Fact

Preference: TypeAlias = tuple[int, float, int, str]


class Equations:
    """What sizes must be equal for a model to run.

    Each equation is solved for one atom, which from then on stands for something else: an unknown
    rather than what the user can name, an unnamed axis rather than a name. A named dimension
    only ever becomes a number or another single dimension.
    """

    def __init__(self) -> None:
        self._replacements: dict[Atom, Dim] = {}
        self._resolved: dict[Dim, Dim] = {}
        self._version = 0

    def __len__(self) -> int:
        return len(self._replacements)

    @property
    def version(self) -> int:
        """Grows whenever something is learnt."""
        return self._version

    def state(self, p: Dim, q: Dim) -> None:
        """Adds ``p == q``, where it can be solved for an atom. O(equations)."""
        difference = self.resolve(p) - self.resolve(q)
        if difference.value is not None:
            return
        shared = polynomial.content(difference.terms)
        if difference.terms.get((), 0) % shared:
            return  # no sizes solve it: the model fails whatever is fed
        difference //= shared
        found = max(((self._preference(difference, m[0]), m[0]) for m in difference.terms if len(m) == 1),
                    key=lambda pair: pair[0], default=None)  # fmt: skip
        if found is None or found[0][0] < 0:
            return
        atom = found[1]
        self._replace(atom, _without(difference, atom) * -difference.terms[(atom,)])

    def raise_to(self, dim: Dim, least: int) -> None:
        """Adds ``dim >= least``, where that limits single atoms. A product is not 0 if no factor is."""
        dim = self.resolve(dim)
        if dim.bounds[0] >= least:
            return
        terms = {m: c for m, c in dim.terms.items() if m}
        if len(terms) != 1:
            return
        ((monomial, coefficient),) = terms.items()
        if coefficient < 0:
            return
        low = -((dim.terms.get((), 0) - least) // coefficient)  # of the product
        if len(monomial) > 1:
            low = 1 if low >= 1 and all(atom.lo >= 0 for atom in monomial) else 0
        for atom in dict.fromkeys(monomial):
            self._raise_atom(atom, low)

    def _raise_atom(self, atom: Atom, low: int) -> None:
        if atom.kind == "fdiv" and atom.args[1].value is not None and low > 0:
            self.raise_to(atom.args[0], low * atom.args[1].value)
        if atom.kind == "max":
            able = [operand for operand in atom.args if operand.bounds[1] >= low]
            if len(able) == 1:
                self.raise_to(able[0], low)
        if not atom.is_leaf or atom.lo >= low or low > atom.hi:
            return
        if atom.kind == "fresh":
            self._replace(atom, Dim.fresh(atom.name, low, atom.hi))
        else:
            self._replace(atom, make({(named_atom(atom.kind, atom.name, low, atom.hi, atom.divisor),): 1}))

    def _replace(self, atom: Atom, solution: Dim) -> None:
        self._version += 1
        self._replacements = {a: d.substitute({atom: solution}) for a, d in self._replacements.items()}
        self._replacements[atom] = solution
        self._resolved.clear()

    def _preference(self, difference: Dim, atom: Atom) -> Preference:
        """How much one would like to solve for ``atom``; negative where that is not possible.

        Names are told apart by their text: an atom may be older than the run.
        """
        impossible = (-1, 0.0, 0, "")
        if abs(difference.terms[(atom,)]) != 1:
            return impossible
        rest = _without(difference, atom)
        if any(_mentions(other, atom) for other in _atoms(rest)):
            return impossible
        if atom.kind == "fresh":
            return (3, -atom.lo, atom.serial, "")
        if not rest.is_known:
            return impossible
        if not atom.is_leaf:
            return (2, 0.0, 0, str(Dim.lone(atom)))
        single = rest.value is not None or (len(rest.terms) == 1 and len(next(iter(rest.terms))) == 1)
        if not single:
            return impossible
        return (1 if atom.kind == "axis" else 0, -atom.lo, 0, atom.name)

    def resolve(self, dim: Dim) -> Dim:
        """``dim`` with what its atoms stand for."""
        if dim.value is not None or not self._replacements:
            return dim
        known = self._resolved.get(dim)
        if known is None:
            touched = any(_mentions(atom, other) for atom in _atoms(dim) for other in self._replacements)
            known = self._resolved[dim] = dim.substitute(self._replacements) if touched else dim
        return known

    def resolve_fact(self, fact: Fact) -> Fact:
        """``fact`` with what the atoms of its dims stand for."""
        shape = None if fact.shape is None else tuple(map(self.resolve, fact.shape))
        value = None if fact.value is None else self._resolve_elements(fact.value)
        elem = None if fact.elem is None else self.resolve_fact(fact.elem)
        if shape == fact.shape and value == fact.value and elem == fact.elem:
            return fact
        return replace(fact, shape=shape, value=value, elem=elem)

    def _resolve_elements(self, elements: Elements) -> Elements:
        return Elements.of(map(self._resolve_element, elements.items), elements.shape)

    def _resolve_element(self, item: Element) -> Element:
        if isinstance(item, Dim):
            return self.resolve(item)
        if not isinstance(item, Ratio):
            return item
        numerator = self.resolve(item.numerator)
        if numerator.value is not None:
            return numerator.value / item.denominator if item.is_exact else None
        return Ratio(numerator, item.denominator)


def _without(dim: Dim, atom: Atom) -> Dim:
    return make({m: c for m, c in dim.terms.items() if m != (atom,)})


def _atoms(dim: Dim) -> set[Atom]:
    return {atom for monomial in dim.terms for atom in monomial}


def _mentions(atom: Atom, part: Atom) -> bool:
    """Whether ``atom`` is, or is computed from, ``part``."""
    return atom is part or part in atom.below
