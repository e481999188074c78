"""Axes by name: which axis of a value is which axis of another, through transposes and through views.

An axis is a tuple of names; it has several where it is several axes of another value taken as one. Names
say nothing of sizes: a reduction takes names away, a view that puts in an axis gives it any free name.
So an order of all names is an order of the axes of every value in which they occur.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from optimizer.analysis import Dim, product
from optimizer.ir import Value

Axis: TypeAlias = tuple[int, ...]
Axes: TypeAlias = tuple[Axis, ...]
Order: TypeAlias = tuple[int, ...]
"""All names, in the order in which axes are to lie."""
Perm: TypeAlias = tuple[int, ...]
Parts: TypeAlias = tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
"""Places of axes of an operand, each with the places of the axes of the result that are the same data."""


class AxisNames:
    """The names of the axes of some values."""

    def __init__(self) -> None:
        self._given: dict[Value, Axes] = {}
        self._parts: dict[int, Axis] = {}
        self._resolved: dict[Value, Axes] = {}
        self._known: list[int] = []  # names that have no parts, each near those it was found between
        self._count = 0

    def values(self) -> list[Value]:
        """All values whose axes have names, as they were found."""
        return list(self._given)

    def begin(self, value: Value, rank: int) -> None:
        """Gives the first value its names."""
        self._given[value] = tuple((self._new(len(self._known)),) for _ in range(rank))

    def of(self, value: Value) -> Axes | None:
        """The names of a value's axes."""
        axes = self._given.get(value)
        if axes is None or not self._parts:
            return axes
        if value not in self._resolved:
            self._resolved[value] = tuple(self._leaves(axis) for axis in axes)
        return self._resolved[value]

    def agree(self, found: dict[Value, Axes]) -> bool:
        """Takes over names, unless some of these values have others already."""
        if any(self.of(value) not in (None, axes) for value, axes in found.items()):
            return False
        self._given.update(found)
        return True

    def carried(self, axes: Axes, parts: Parts, backwards: bool = False) -> Axes | None:
        """The names on the other side of an operator; ``None`` where an axis has other parts already.

        An axis that has one name only gets parts where the operator takes it apart.
        """
        pairs = [(there, here) for here, there in parts] if backwards else list(parts)
        found: dict[int, Axis] = {}
        for here, there in pairs:
            if here and there and not self._carry([axes[i] for i in here], there, found):
                return None
        taken = {name for axis in found.values() for name in self._leaves(axis)}
        free = [name for name in self._known if name not in taken]
        for here, there in pairs:
            for place in there if not here else ():
                found[place] = (free.pop(0),) if free else (self._new(len(self._known)),)
        return tuple(self._leaves(found[place]) for place in range(len(found)))

    def _carry(self, axes: list[Axis], there: tuple[int, ...], found: dict[int, Axis]) -> bool:
        if len(there) == 1:
            found[there[0]] = tuple(name for axis in axes for name in axis)
            return True
        (axis,) = axes
        leaves = self._leaves(axis)
        if len(leaves) == 1:
            (whole,) = leaves
            place = self._known.index(whole)
            self._known.pop(place)
            leaves = tuple(self._new(place + i) for i in range(len(there)))
            self._parts[whole] = leaves
            self._resolved.clear()
        if len(leaves) != len(there):
            return False
        found.update((place, (name,)) for place, name in zip(there, leaves, strict=True))
        return True

    def _new(self, place: int) -> int:
        self._count += 1
        self._known.insert(place, self._count)
        return self._count

    def _leaves(self, axis: Axis) -> Axis:
        return tuple(
            leaf
            for name in axis
            for leaf in (self._leaves(self._parts[name]) if name in self._parts else (name,))
        )

    def order_of(self, axes: Axes) -> Order:
        """An order of all names in which ``axes`` lie as they do; a name not there is put before the next."""
        order = [name for axis in axes for name in axis]
        present = set(order)
        following = len(order)
        for name in reversed(self._known):
            if name in present:
                following = order.index(name)
            else:
                order.insert(following, name)
        return tuple(order)


def perm_to(axes: Axes, order: Order) -> Perm | None:
    """How ``axes`` are permuted into ``order``; ``None`` where an axis of several names falls apart."""
    place = {name: i for i, name in enumerate(order)}
    perm = sorted(range(len(axes)), key=lambda i: place[axes[i][0]])
    places = [place[name] for i in perm for name in axes[i]]
    return tuple(perm) if places == sorted(places) else None


def parts_of_view(source: Sequence[Dim], result: Sequence[Dim]) -> Parts | None:
    """Which axes a view keeps, joins, takes apart, drops and puts in; ``None`` where it does other things."""
    parts: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    i = j = 0
    while i < len(source) or j < len(result):
        step = _next_part(source[i:], result[j:])
        if step is None:
            return None
        here, there = step
        parts.append((tuple(range(i, i + here)), tuple(range(j, j + there))))
        i, j = i + here, j + there
    return tuple(parts)


def _next_part(source: Sequence[Dim], result: Sequence[Dim]) -> tuple[int, int] | None:
    """How many axes of each side belong together at the front."""
    if source and result and source[0] == result[0]:
        return 1, 1
    if source and source[0] == 1:
        return 1, 0
    if result and result[0] == 1:
        return 0, 1
    for count in range(2, len(source) + 1):
        if result and product(tuple(source[:count])) == result[0]:
            return count, 1
    for count in range(2, len(result) + 1):
        if source and product(tuple(result[:count])) == source[0]:
            return 1, count
    return None
