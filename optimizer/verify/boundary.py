"""Fresh values for the boundary of a region: sizes for its symbols, contents that agree with the facts."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import count, islice
from typing import Any, TypeAlias

import numpy as np

from optimizer.analysis import Atom, Dim, Elements, Fact, Ratio
from optimizer.ir import DType, Graph, Value
from optimizer.verify.draws import Draw, floats
from optimizer.verify.purpose import find_purpose
from optimizer.verify.region import Region
from optimizer.verify.rounding import ELEMENTWISE
from optimizer.verify.values import make_values

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Assignment: TypeAlias = Mapping[Atom, Dim]
Shapes: TypeAlias = dict[Value, tuple[int, ...]]
Sizes: TypeAlias = tuple[tuple[int, ...], ...]
Memory: TypeAlias = "dict[Hashable, list[tuple[Assignment, Sizes | None]]]"

_PRIMES = (3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47)
_LARGER_PRIMES = ((211, 223, 227, 229), (53, 59, 61, 67, 71, 73), (17, 19, 23, 29, 31, 37, 41, 43, 47))
_WIDER_PRIMES = (7, 11, 17, 23, 37, 53, 71, 97, 131, 167, 211, 257, 307)
_PLENTY = 2000
"""Elements of a boundary value that let every branch of an elementwise operator be met."""
_LARGEST = 1 << 22
"""Elements of a boundary value above which sizes are not tried, where others may do."""
_FEW = 64
_HUGE = 100_003
"""A size whose products leave 32 bits."""
_ON_NUMBERS = ELEMENTWISE | {"Concat", "Gather", "Slice", "Squeeze", "Unsqueeze", "Identity", "Split"}
_EVEN = (12, 6, 8, 32, 64, 224, 4, 2)


class Unsupported(Exception):
    """Nothing can be fed: the text says what stands in the way."""


class Boundary:
    """What is known about the boundary values of a region.

    Args:
        facts: one per boundary value.
        non_negative: boundary values that the rewrite relied on not to be negative.
        shrink: smaller sizes for (axis counted from the end, size) of static dims.
        reach: extent of the largest window in the region.
        memory: sizes found for boundaries of the same shapes, to be shared between regions.
    """

    def __init__(
        self,
        region: Region,
        facts: Mapping[Value, Fact],
        non_negative: frozenset[Value] = frozenset(),
        shrink: Mapping[tuple[int, int], int] | None = None,
        reach: int = 1,
        memory: Memory | None = None,
    ) -> None:
        self._region = region
        self._facts = facts
        self._non_negative = non_negative
        self._shrink = shrink or {}
        self._reach = reach
        for value in region.boundary:
            fact = facts[value]
            if fact.type is not None:
                raise Unsupported("a boundary value is not a tensor")
            if fact.dtype is None or fact.shape is None:
                raise Unsupported("type or rank of a boundary value is not known")
        self.atoms = self._find_atoms()
        look = reach, tuple((facts[v].shape, tuple(_dims_of(facts[v]))) for v in region.boundary)
        self._known = (memory if memory is not None else {}).setdefault(look, [])

    def assignments(self) -> Iterator[Assignment]:
        """Sizes to try: distinct primes, then ones, one zero, then the same even number everywhere."""
        for number in count():
            if number == len(self._known):
                found = next(self._candidates, None)
                if found is None:
                    return
                self._known.append((found, self._sizes(found)))
            yield self._known[number][0]

    @cached_property
    def _candidates(self) -> Iterator[Assignment]:
        return islice(self._find_candidates(), len(self._known), None)

    @cached_property
    def only_numbers(self) -> bool:
        """Whether open dims are nothing but numbers here, so that large ones cost nothing."""
        nodes = (*self._region.before.nodes, *self._region.after.nodes)
        in_shapes = any(dim.leaves for fact in self._facts.values() for dim in fact.shape or ())
        return bool(self.atoms) and not in_shapes and all(node.op_type in _ON_NUMBERS for node in nodes)

    def _find_candidates(self) -> Iterator[Assignment]:
        if not self.atoms:
            yield {}
            return
        kin = self._kin()
        groups = list(dict.fromkeys(kin[atom] for atom in self.atoms))
        yield self._distinct_primes(kin, groups)
        if self.only_numbers:
            sizes = {atom: _HUGE + 7 * i for i, atom in enumerate(self.atoms)}
            yield {atom: Dim.of(int(min(size, atom.hi))) for atom, size in sizes.items()}
        yield self._assign(kin, dict.fromkeys(groups, 1))
        yield self._assign(kin, {g: 0 if i == 0 else _PRIMES[i % len(_PRIMES)] for i, g in enumerate(groups)})
        batch = self._batch_like(kin)
        for size in _EVEN:
            if size > _EVEN[0] and batch:
                yield self._assign(kin, {g: 2 if g in batch else size for g in groups})
            yield self._assign(kin, dict.fromkeys(groups, size))

    def shapes(self, assignment: Assignment) -> Shapes | None:
        """The concrete shapes; ``None`` where the sizes contradict a bound or divide by zero."""
        sizes = next((s for known, s in self._known if known is assignment), None) or self._sizes(assignment)
        if sizes is None:
            return None
        return {value: self._shrunk(own) for value, own in zip(self._region.boundary, sizes, strict=True)}

    def _shrunk(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        if not self._shrink:
            return shape
        rank = len(shape)
        return tuple(self._shrink.get((axis - rank, size), size) for axis, size in enumerate(shape))

    def _sizes(self, assignment: Assignment) -> Sizes | None:
        found = []
        for value in self._region.boundary:
            sizes = [_number(dim, assignment) for dim in self._facts[value].shape or ()]
            if any(size is None or size < 0 for size in sizes):
                return None
            found.append(tuple(size for size in sizes if size is not None))
        if assignment and max(map(math.prod, found), default=0) > _LARGEST:
            return None
        return tuple(found)

    def first_shapes(self) -> Shapes:
        """The shapes at the first sizes that are possible; empty where none are."""
        return next((s for a in self.assignments() if (s := self.shapes(a)) is not None), {})

    def feed(self, assignment: Assignment, rng: np.random.Generator, draw: Draw) -> dict[Value, Array] | None:
        """Contents for all boundary values; ``None`` where the sizes are impossible."""
        shapes = self.shapes(assignment)
        if shapes is None:
            return None
        feeds = {}
        for value in self._region.boundary:
            fact = self._facts[value]
            assert fact.dtype is not None
            if fact.value is not None:
                array = _known_contents(fact.value, fact.dtype, assignment, rng)
            elif fact.dtype.is_float:
                array = floats(fact.dtype, shapes[value], rng, draw)
                array = np.abs(array) if draw.positive or value in self._non_negative else array
            else:
                array = self._others(value, fact.dtype, shapes, rng, draw)
            feeds[value] = array
        return feeds

    def copies(self, assignment: Assignment) -> int:
        """How often to draw: a few elements have to be drawn several times to say something."""
        shapes = self.shapes(assignment) or {}
        most = max((math.prod(shape) for shape in shapes.values()), default=0)
        return 1 if most >= _FEW or not most else min(4, -(-_FEW // most))

    def can_mix(self, assignment: Assignment) -> bool:
        """Whether every boundary value has several entries along its first axis, to be drawn differently."""
        return all(shape and shape[0] > 1 for shape in (self.shapes(assignment) or {}).values())

    # ---------------------------------------------------------------- symbols

    def _find_atoms(self) -> tuple[Atom, ...]:
        found: set[Atom] = set()
        for fact in self._facts.values():
            for dim in _dims_of(fact):
                found |= dim.leaves
        return tuple(sorted(found, key=lambda atom: atom.serial))

    def _kin(self) -> dict[Atom, Atom]:
        """Each atom to the first of those it must equal for a broadcast to work."""
        leader = {atom: atom for atom in self.atoms}
        for fact in self._facts.values():
            for dim in _dims_of(fact):
                for group in _broadcast_together(dim):
                    first = leader[group[0]]
                    for atom in group[1:]:
                        old = leader[atom]
                        leader.update((a, first) for a, lead in leader.items() if lead is old)
        return leader

    def _distinct_primes(self, kin: Mapping[Atom, Atom], groups: Sequence[Atom]) -> Assignment:
        """Primes that make every boundary value large enough to say something, and no larger."""
        for primes in _LARGER_PRIMES if self._reach == 1 else ():
            if len(groups) <= len(primes):
                assignment = self._assign(kin, dict(zip(groups, primes, strict=False)))
                shapes = self.shapes(assignment)
                if shapes is not None and all(math.prod(s) <= _PLENTY for s in shapes.values()):
                    return assignment
        small = {g: _PRIMES[i % len(_PRIMES)] for i, g in enumerate(groups)}
        if self._reach == 1:
            return self._assign(kin, small)
        planes = {kin[atom] for atom in self._plane_atoms()}
        batch = next((g for g in groups if g not in planes), None)
        if batch is not None:
            small[batch] = 2  # images are large enough: one of each kind has to do
        for start in range(len(_WIDER_PRIMES)):
            wide = iter((*_WIDER_PRIMES[start:], *_WIDER_PRIMES))
            assignment = self._assign(kin, {g: next(wide) if g in planes else small[g] for g in groups})
            if self._shows_windows(assignment):
                return assignment
        return self._assign(kin, small)

    def _batch_like(self, kin: Mapping[Atom, Atom]) -> set[Atom]:
        """What counts independent things: along a first axis, and nowhere along a last one."""
        shapes = [
            fact.shape for fact in self._facts.values() if fact.shape is not None and len(fact.shape) > 1
        ]
        last = {kin[atom] for shape in shapes for atom in shape[-1].leaves}
        return {kin[atom] for shape in shapes for atom in shape[0].leaves} - last

    def _plane_atoms(self) -> set[Atom]:
        """What the image axes of the boundary values depend on."""
        shapes = [fact.shape or () for fact in self._facts.values()]
        return {atom for shape in shapes for dim in shape[2:] for atom in dim.leaves}

    def _shows_windows(self, assignment: Assignment) -> bool:
        """Whether every place of a window meets something else than padding."""
        shapes = self.shapes(assignment)
        return shapes is not None and all(
            size > self._reach or dim.value is not None
            for value, shape in shapes.items()
            for size, dim in zip(shape[2:], (self._facts[value].shape or ())[2:], strict=True)
        )

    def _assign(self, kin: Mapping[Atom, Atom], sizes: Mapping[Atom, int]) -> Assignment:
        return {atom: Dim.of(int(min(max(sizes[kin[atom]], atom.lo), atom.hi, 4096))) for atom in self.atoms}

    # ---------------------------------------------------------------- contents

    def _others(
        self,
        value: Value,
        dtype: DType,
        shapes: Mapping[Value, tuple[int, ...]],
        rng: np.random.Generator,
        draw: Draw,
    ) -> Array:
        side = self._region.before if value in self._region.before.local else self._region.after
        back = {side.local[v]: shape for v, shape in shapes.items()}
        back.update((side.local[v], tensor.shape) for v, tensor in side.constants.items())

        def size_of(graph: Graph, wanted: Value) -> Sequence[int | None] | None:
            return back.get(wanted) if graph is side.graph else None

        purpose = find_purpose(side.graph, side.local[value], size_of)
        if draw.special and purpose.kind == "value" and dtype.is_integer and dtype.bits >= 8:
            bounds = np.iinfo(dtype.numpy)
            return rng.integers(bounds.min, bounds.max, shapes[value], dtype.numpy, endpoint=True)
        if purpose.kind == "shape":
            return rng.integers(draw.least_count, 5, shapes[value]).astype(dtype.numpy)
        return make_values(purpose, dtype, shapes[value], rng, seed=1)


def _dims_of(fact: Fact) -> list[Dim]:
    dims = list(fact.shape or ())
    for item in fact.value.items if fact.value is not None else ():
        if isinstance(item, Dim):
            dims.append(item)
        elif isinstance(item, Ratio):
            dims.append(item.numerator)
    return dims


def _broadcast_together(dim: Dim) -> Iterator[list[Atom]]:
    """Groups of leaves that stand alone as operands of one broadcast."""
    for monomial in dim.terms:
        for atom in monomial:
            for argument in atom.args:
                yield from _broadcast_together(argument)
            if atom.kind == "bcast":
                leaves = sorted({a for d in atom.args for a in d.leaves}, key=lambda a: a.serial)
                if leaves:
                    yield leaves


def _number(dim: Dim, assignment: Assignment) -> int | None:
    return dim.value if dim.value is not None else dim.substitute(assignment).value


def _known_contents(
    elements: Elements, dtype: DType, assignment: Assignment, rng: np.random.Generator
) -> Array:
    """What the facts say the elements are; small positive numbers where they do not say."""
    found: list[Any] = []
    for item in elements.items:
        known: Any = item
        if isinstance(item, Dim):
            known = _number(item, assignment)
        elif isinstance(item, Ratio):
            top = _number(item.numerator, assignment)
            known = None if top is None else top / item.denominator
        found.append(int(rng.integers(1, 4)) if known is None else known)
    array = np.empty(len(found), object)
    array[:] = found
    return array.reshape(elements.shape).astype(dtype.numpy)
