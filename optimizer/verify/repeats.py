"""When two regions look the same in every respect that a check can see, or but for their numbers."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from optimizer.analysis import Atom, Dim, Elements, Fact, Ratio
from optimizer.ir import Attribute, Graph, SparseTensor, Tensor, Value
from optimizer.verify.region import Region
from optimizer.verify.sides import Side

SMALL = 64
"""Constants of up to so many elements are part of the look; larger ones only by type and shape."""
_GEOMETRY = {"kernel_shape": 2, "strides": 2, "dilations": 2, "pads": 1}
"""Attributes of windows, and from what number on all are alike."""


def region_key(region: Region, facts: Mapping[Value, Fact]) -> Hashable:
    """Equal for regions with the same operators, wiring, attributes, constants, types and dims.

    ``None`` where the rewrite computed a large constant: no two of those are alike.
    """
    if any(region.after.constants[value].size > SMALL for value in region.fresh):
        return None
    return _Look().of(region, facts)


def has_large_constants(region: Region) -> bool:
    """Whether a constant is part of the look by type and shape only."""
    sides = (region.before, region.after)
    return any(tensor.size > SMALL for side in sides for tensor in side.constants.values())


def structure_key(region: Region, facts: Mapping[Value, Fact], *, numbers: bool) -> Hashable:
    """Equal for regions that differ in sizes above 1, windows and the contents of constants at most.

    Args:
        numbers: constants of one element have to be the same as well.
    """
    return numbers, _Structure(numbers).of(region, facts)


class _Look:
    """All that can be seen; symbols go by their first appearance: other names make no other look."""

    def __init__(self) -> None:
        self._atoms: dict[Atom, int] = {}

    def of(self, region: Region, facts: Mapping[Value, Fact]) -> Hashable:
        boundary = tuple(self._fact(facts[value]) for value in region.boundary)
        return boundary, self._side(region.before), self._side(region.after)

    def _side(self, side: Side) -> Hashable:
        return (
            tuple(self._tensor(tensor) for tensor in side.constants.values()),
            tuple(
                (n.op, n.overload, n.inputs, n.captures, len(n.outputs), self._attributes(n.attributes))
                for n in side.nodes
            ),
            side.outputs,
        )

    def _attributes(self, attributes: Mapping[str, Attribute]) -> Hashable:
        return tuple(sorted((n, a.reference, self._attribute(n, a.value)) for n, a in attributes.items()))

    def _attribute(self, name: str, value: Any) -> str:
        if isinstance(value, Tensor):
            return repr(self._tensor(value))
        if isinstance(value, tuple):
            return repr([self._attribute(name, v) for v in value])
        return (
            f"{type(value).__name__} {id(value)}" if isinstance(value, (Graph, SparseTensor)) else repr(value)
        )

    def _tensor(self, tensor: Tensor) -> Hashable:
        return int(tensor.dtype), tensor.shape, tensor.digest if tensor.size <= SMALL else b""

    def _fact(self, fact: Fact) -> Hashable:
        dims = None if fact.shape is None else tuple(self._dim(dim) for dim in fact.shape)
        return fact.dtype, dims, None if fact.value is None else self._elements(fact.value)

    def _elements(self, elements: Elements) -> Hashable:
        return elements.shape, tuple(
            self._dim(item)
            if isinstance(item, Dim)
            else (self._dim(item.numerator), item.denominator)
            if isinstance(item, Ratio)
            else repr(item)
            for item in elements.items
        )

    def _dim(self, dim: Dim) -> Hashable:
        if dim.value is not None:
            return dim.value
        return tuple(
            (coefficient, tuple(self._atom(atom) for atom in monomial))
            for monomial, coefficient in dim.terms.items()
        )

    def _atom(self, atom: Atom) -> Hashable:
        number = self._atoms.setdefault(atom, len(self._atoms))
        return number, atom.kind, atom.lo, atom.hi, atom.divisor, tuple(self._dim(dim) for dim in atom.args)


class _Structure(_Look):
    """The same, but a size, stride or pad is 0, 1 or more, a constant its type; open dims are numbered."""

    def __init__(self, numbers: bool) -> None:
        super().__init__()
        self._dims: dict[Dim, int] = {}
        self._numbers = numbers

    def _tensor(self, tensor: Tensor) -> Hashable:
        number = tensor.digest if self._numbers and tensor.size == 1 else b""
        return int(tensor.dtype), tuple(min(size, 2) for size in tensor.shape), number

    def _attribute(self, name: str, value: Any) -> str:
        if name in _GEOMETRY and isinstance(value, tuple):
            return repr([min(size, _GEOMETRY[name]) for size in value])
        return super()._attribute(name, min(value, 2) if name == "group" else value)

    def _dim(self, dim: Dim) -> Hashable:
        if dim.value is not None:
            return min(dim.value, 2)
        return "open", self._dims.setdefault(dim, len(self._dims))
