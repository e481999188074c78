"""Walks over the structure of a dim: its text, its value at given sizes, substitution."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TypeAlias, cast

import numpy as np

from optimizer.analysis.atoms import Atom
from optimizer.analysis.computed import broadcast, maximum, minimum, nonzero_or, scaled
from optimizer.analysis.dims import Dim

Sizes: TypeAlias = Mapping[str, int] | Mapping[str | Atom, int]
"""Sizes of named dims by name; of unknowns, where wanted, by atom."""

LONGEST_TEXT = 500
"""Characters of one computed part of a dim; a longer one is spelled as its kind and a digest."""


def spell(dim: Dim) -> str:
    """A readable expression, the same in every run for the same model."""
    if dim.value is not None:
        return str(dim.value)
    terms = sorted(
        dim.terms.items(), key=lambda term: (-len(term[0]), sorted(_spell_atom(a) for a in term[0]))
    )
    text = ""
    for monomial, coefficient in terms:
        factors = []
        for atom in sorted(monomial, key=_spell_atom):
            if atom.divisor > 1 and coefficient % atom.divisor == 0:
                coefficient //= atom.divisor
                factors.append(atom.name)
            else:
                factors.append(_spell_atom(atom))
        if abs(coefficient) != 1 or not factors:
            factors.insert(0, str(abs(coefficient)))
        sign = ("-" if coefficient < 0 else "") if not text else (" - " if coefficient < 0 else " + ")
        text += sign + "*".join(factors)
    return text


@lru_cache(maxsize=4096)
def _spell_atom(atom: Atom) -> str:
    """Its text. Atoms share parts, so that the full text may be exponential in their depth."""
    text = _spell_operands(atom)
    if len(text) <= LONGEST_TEXT:
        return text
    digest = hashlib.blake2s(text.encode(), digest_size=6).hexdigest()
    return f"{atom.kind}#{digest}"


def _spell_operands(atom: Atom) -> str:
    operands = [spell(argument) for argument in atom.args]
    match atom.kind:
        case "name" | "axis":
            return f"({atom.name}//{atom.divisor})" if atom.divisor > 1 else atom.name
        case "fresh":
            return f"{atom.name or 'unk'}?{atom.serial}"
        case "fdiv":
            return "(" + "//".join(o if o.isalnum() else f"({o})" for o in operands) + ")"
        case "scale":
            rounding, factor = atom.name.split()
            return f"{rounding}({operands[0]}*{float.fromhex(factor):.6g})"
        case "add":
            return "(" + " + ".join(operands) + ")"
        case "mul":
            return "(" + "*".join(f"({o})" for o in operands) + ")"
    if atom.kind == "orelse":
        return f"orelse({', '.join(operands)})"
    return f"{atom.kind}({', '.join(sorted(operands))})"


def evaluate(dim: Dim, sizes: Sizes) -> int | None:
    """The value at these sizes, ``None`` where one is missing (or a division is by 0). O(atoms)."""
    values: dict[Atom, int | None] = {}
    for atom in _from_the_leaves(dim):
        values[atom] = _evaluate_atom(atom, sizes, values)
    return _value_of(dim, values)


def _from_the_leaves(dim: Dim) -> list[Atom]:
    """All atoms that ``dim`` depends on, each once and behind those that it is computed from."""
    direct = {atom for monomial in dim.terms for atom in monomial}
    return sorted(direct.union(*(atom.below for atom in direct)), key=lambda atom: atom.serial)


def _value_of(dim: Dim, values: Mapping[Atom, int | None]) -> int | None:
    total = 0
    for monomial, coefficient in dim.terms.items():
        for atom in monomial:
            factor = values[atom]
            if factor is None:
                return None
            coefficient *= factor
        total += coefficient
    return total


def _evaluate_atom(atom: Atom, sizes: Sizes, values: Mapping[Atom, int | None]) -> int | None:
    if atom.is_leaf:
        key: str | Atom = atom if atom.kind == "fresh" else atom.name
        size = cast("Mapping[str | Atom, int]", sizes).get(key)
        return None if size is None else size // atom.divisor
    operands = []
    for argument in atom.args:
        operand = _value_of(argument, values)
        if operand is None:
            return None
        operands.append(operand)
    if atom.kind == "fdiv":
        return operands[0] // operands[1] if operands[1] else None
    if atom.kind == "bcast":
        return next((o for o in operands if o != 1), 1)
    if atom.kind == "orelse":
        return operands[0] or operands[1]
    if atom.kind == "scale":
        return math.floor(np.float32(operands[0]) * np.float32(float.fromhex(atom.name.split()[1])))
    fold: dict[str, Callable[[list[int]], int]] = {"min": min, "max": max, "add": sum, "mul": math.prod}
    return fold[atom.kind](operands)


def substitute(dim: Dim, replacements: Mapping[Atom, Dim]) -> Dim:
    """``dim`` with other dims in the place of atoms, inside computed atoms too. O(atoms)."""
    made: dict[Atom, Dim] = {}
    for atom in _from_the_leaves(dim):
        if atom in replacements:
            made[atom] = replacements[atom]
        else:
            untouched = atom.below.isdisjoint(replacements)
            made[atom] = Dim.lone(atom) if untouched else _recomputed(atom, made)
    return _with(dim, made)


def _with(dim: Dim, made: Mapping[Atom, Dim]) -> Dim:
    total = Dim.of(0)
    for monomial, coefficient in dim.terms.items():
        term = Dim.of(coefficient)
        for atom in monomial:
            term = term * made[atom]
        total = total + term
    return total


def _recomputed(atom: Atom, made: Mapping[Atom, Dim]) -> Dim:
    """The same computation of what its operands have become."""
    operands = [_with(argument, made) for argument in atom.args]
    match atom.kind:
        case "fdiv":
            return operands[0] // operands[1]
        case "min":
            return minimum(*operands)
        case "max":
            return maximum(*operands)
        case "bcast":
            return broadcast(*operands)
        case "orelse":
            return nonzero_or(*operands)
        case "scale":
            rounding, factor = atom.name.split()
            return scaled(operands[0], float.fromhex(factor), rounding)
        case "add":
            return sum(operands[1:], operands[0])
        case "mul":
            return math.prod(operands, start=Dim.of(1))
    return Dim.lone(atom)
