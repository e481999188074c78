"""Dims computed by min, max, broadcasting and scaling."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from optimizer.analysis.atoms import Atom, Kind
from optimizer.analysis.dims import MAX_OPERANDS, Dim, DimLike, computed


@lru_cache(maxsize=4096)
def maximum(*dims: DimLike) -> Dim:
    """The largest; operands that another one provably reaches are dropped."""
    return _extreme("max", [Dim.of(d) for d in dims])


@lru_cache(maxsize=4096)
def minimum(*dims: DimLike) -> Dim:
    """The smallest; operands that provably reach another one are dropped."""
    return _extreme("min", [Dim.of(d) for d in dims])


def _extreme(kind: Kind, dims: list[Dim]) -> Dim:
    sign = 1 if kind == "max" else -1
    kept: list[Dim] = []
    for dim in _flattened(kind, dims):
        if any((k - dim).bounds[0] >= 0 if sign > 0 else (dim - k).bounds[0] >= 0 for k in kept):
            continue
        kept = [k for k in kept if not ((dim - k).bounds[0] >= 0 if sign > 0 else (k - dim).bounds[0] >= 0)]
        kept.append(dim)
    if len(kept) == 1:
        return kept[0]
    pick = max if kind == "max" else min
    lo, hi = pick(k.bounds[0] for k in kept), pick(k.bounds[1] for k in kept)
    return (
        Dim.fresh(kind, lo, hi)
        if len(kept) > MAX_OPERANDS
        else computed(kind, tuple(kept), lo, hi, commutes=True)
    )


@lru_cache(maxsize=4096)
def broadcast(*dims: DimLike) -> Dim:
    """The dim that equal-or-1 dims broadcast to. Never takes two dims to be equal.

    A number other than 1, or a dim that is provably not 1, is the result whatever the others are.
    """
    kept: list[Dim] = []
    flat = _flattened("bcast", [Dim.of(d) for d in dims])
    for dim in flat:
        atom = lone_atom(dim)
        if atom is not None and atom.kind == "orelse" and atom.args[0] in flat:
            continue  # where its first argument is 0, so must it be, or the two would not broadcast
        if atom is not None and atom.kind == "min" and _at_most_one_of(atom, flat):
            continue
        if dim.value == 1 or dim in kept:
            continue
        if dim.value is not None or dim.bounds[0] > 1:
            return dim
        kept.append(dim)
    if len(kept) <= 1:
        return kept[0] if kept else Dim.of(1)
    lows = [k.bounds[0] for k in kept]
    lo, hi = max(lows) if min(lows) >= 1 else min(lows), max(k.bounds[1] for k in kept)
    if len(kept) > MAX_OPERANDS:
        return Dim.fresh("bcast", lo, hi)
    return computed("bcast", tuple(kept), lo, hi, commutes=True)


def _at_most_one_of(atom: Atom, operands: list[Dim]) -> bool:
    """Whether ``min(b, ...)`` broadcasts with ``b`` to ``b``: if less than it, it must be 1."""
    return any(b in operands and all(a is b or a.bounds[0] >= 1 for a in atom.args) for b in atom.args)


def nonzero_or(dim: Dim, other: Dim) -> Dim:
    """``dim``, or ``other`` where ``dim`` is 0."""
    if dim.value is not None:
        return dim if dim.value else other
    low, high = dim.bounds
    if low > 0 or high < 0 or _vanish_together(dim, other):
        return dim
    low, high = min(max(low, 1) if low >= 0 else low, other.bounds[0]), max(high, other.bounds[1])
    return computed("orelse", (dim, other), low, high)


def _vanish_together(dim: Dim, other: Dim) -> bool:
    """Whether ``other`` is proven to be 0 wherever ``dim`` is."""
    ratio = dim.quotient(other)
    if (ratio is not None and ratio.value) or other.quotient(dim) is not None:  # a multiple of 0 is 0
        return True
    atom = lone_atom(other)
    if atom is None:
        return False
    if atom.kind == "bcast":  # what is 0 broadcasts with nothing but 0 and 1
        return any(_vanish_together(dim, operand) for operand in atom.args)
    return atom.kind == "orelse" and all(_vanish_together(dim, operand) for operand in atom.args)


def truncated(a: Dim, b: Dim) -> Dim | None:
    """``a / b`` rounded to zero; ``None`` where the signs are not proven."""
    if b.value == 0:
        return None
    exact = a.quotient(b)
    if exact is not None:
        return exact
    if a.value is not None and b.value is not None:
        magnitude = abs(a.value) // abs(b.value)
        return Dim.of(magnitude if (a.value < 0) == (b.value < 0) else -magnitude)
    if b.bounds[1] < 0:
        a, b = -a, -b
    if b.bounds[0] < 0:
        return None
    if a.bounds[0] >= 0:
        return a // b
    return -((-a) // b) if a.bounds[1] <= 0 else None


def scaled(dim: DimLike, scale: float, rounding: str = "floor") -> Dim:
    """``floor(dim * scale)`` of a dim >= 0 as a runtime computes it with a float32 ``scale``."""
    dim, number = Dim.of(dim), np.float32(scale)
    numerator, denominator = float(number).as_integer_ratio()
    if denominator <= 64 and numerator <= 64:  # such products are exact in float32
        return (dim * numerator) // denominator
    if dim.value is not None:
        return Dim.of(math.floor(np.float32(dim.value) * number))
    return computed("scale", (dim,), 0, math.inf, f"{rounding} {float(number).hex()}")


def _flattened(kind: Kind, dims: list[Dim]) -> list[Dim]:
    flat: list[Dim] = []
    for dim in dims:
        atom = lone_atom(dim)
        flat.extend(atom.args if atom is not None and atom.kind == kind else (dim,))
    return list(dict.fromkeys(flat))


def lone_atom(dim: Dim) -> Atom | None:
    """The atom that ``dim`` consists of, if it is nothing else."""
    if len(dim.terms) != 1:
        return None
    ((monomial, coefficient),) = dim.terms.items()
    return monomial[0] if coefficient == 1 and len(monomial) == 1 else None
