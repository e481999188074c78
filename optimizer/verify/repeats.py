"""When two regions look the same in every respect that a check can see."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from optimizer.analysis import Atom, Dim, Elements, Fact, Ratio
from optimizer.ir import Attribute, Graph, SparseTensor, Tensor, Value
from optimizer.verify.region import Region
from optimizer.verify.sides import Side

SMALL = 64
"""Constants of up to so many elements are part of the look; larger ones only by type and shape."""


def region_key(region: Region, facts: Mapping[Value, Fact]) -> Hashable:
    """Equal for regions with the same operators, wiring, attributes, constants, types and dims.

    ``None`` where the rewrite computed a large constant: no two of those are alike.
    """
    if any(region.after.constants[value].size > SMALL for value in region.fresh):
        return None
    atoms: dict[Atom, int] = {}
    return (
        tuple(_fact(facts[value], atoms) for value in region.boundary),
        _side(region.before),
        _side(region.after),
    )


def _side(side: Side) -> Hashable:
    return (
        tuple(_tensor(tensor) for tensor in side.constants.values()),
        tuple(
            (n.op, n.overload, n.inputs, n.captures, len(n.outputs), _attributes(n.attributes))
            for n in side.nodes
        ),
        side.outputs,
    )


def _attributes(attributes: Mapping[str, Attribute]) -> Hashable:
    return tuple(sorted((name, a.reference, _plain(a.value)) for name, a in attributes.items()))


def _plain(value: Any) -> str:
    if isinstance(value, Tensor):
        return repr(_tensor(value))
    if isinstance(value, tuple):
        return repr([_plain(v) for v in value])
    return f"{type(value).__name__} {id(value)}" if isinstance(value, (Graph, SparseTensor)) else repr(value)


def _tensor(tensor: Tensor) -> Hashable:
    return int(tensor.dtype), tensor.shape, tensor.digest if tensor.size <= SMALL else b""


def _fact(fact: Fact, atoms: dict[Atom, int]) -> Hashable:
    dims = None if fact.shape is None else tuple(_dim(dim, atoms) for dim in fact.shape)
    return fact.dtype, dims, None if fact.value is None else _elements(fact.value, atoms)


def _elements(elements: Elements, atoms: dict[Atom, int]) -> Hashable:
    return elements.shape, tuple(
        _dim(item, atoms)
        if isinstance(item, Dim)
        else (_dim(item.numerator, atoms), item.denominator)
        if isinstance(item, Ratio)
        else repr(item)
        for item in elements.items
    )


def _dim(dim: Dim, atoms: dict[Atom, int]) -> Hashable:
    if dim.value is not None:
        return dim.value
    return tuple(
        (coefficient, tuple(_atom(atom, atoms) for atom in monomial))
        for monomial, coefficient in dim.terms.items()
    )


def _atom(atom: Atom, atoms: dict[Atom, int]) -> Hashable:
    """An atom by its first appearance and bounds: other names make no other look."""
    number = atoms.setdefault(atom, len(atoms))
    return number, atom.kind, atom.lo, atom.hi, atom.divisor, tuple(_dim(dim, atoms) for dim in atom.args)
