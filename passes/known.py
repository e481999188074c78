"""What a rewrite must know about a value to say anything; where it is not known, the rewrite refuses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from optimizer.analysis import Dim
from optimizer.ir import DType, Node, Tensor, Value
from optimizer.rewrite import Match

FLOATS = (DType.FLOAT, DType.DOUBLE, DType.FLOAT16)
"""The types that algebra is done in; not bfloat16, whose kernels are so few in runtimes that an operator
which runs may become one which does not."""
ROUNDED = 1e-6
"""How far a constant may be off the number that it is meant to be: some roundings to single precision."""
LOOK_BACK = 8
"""Operators that are followed back from a value, in search of what makes it: a bound for long chains."""


def shape_of(m: Match, value: Value) -> tuple[Dim, ...]:
    """The symbolic shape.

    Raises:
        Refusal: not even the rank is known.
    """
    shape = m.shape(value)
    return m.refuse("the rank is not known") if shape is None else shape


def rank_of(m: Match, value: Value) -> int:
    """The number of axes.

    Raises:
        Refusal: it is not known.
    """
    return len(shape_of(m, value))


def known_sizes(dims: Iterable[Dim]) -> list[int] | None:
    """The sizes of ``dims``; ``None`` where one of them is not known."""
    sizes = [dim.value for dim in dims]
    known = [size for size in sizes if size is not None]
    return known if len(known) == len(sizes) else None


def constant_of(m: Match, value: Value | None) -> Tensor:
    """The constant behind a value, not loaded.

    Raises:
        Refusal: it is none.
    """
    tensor = m.tensor(value)
    return m.refuse("an operand is not a constant") if tensor is None else tensor


def ints_of(m: Match, node: Node, name: str, slot: int) -> list[int] | None:
    """Numbers given by an attribute, or by a constant input in newer versions; ``None`` where absent.

    Raises:
        Refusal: the input is not constant.
    """
    if name in node.attributes:
        given: Sequence[int] = node.attr(name)
        return list(given)
    if node.input(slot) is None:
        return None
    return [int(i) for i in constant_of(m, node.input(slot)).array.reshape(-1)]


def axes_of(m: Match, node: Node, slot: int, rank: int) -> tuple[int, ...] | None:
    """The axes of a reduction or (un)squeeze, not negative and sorted; ``None`` where absent.

    Raises:
        Refusal: they are not constant.
    """
    axes = ints_of(m, node, "axes", slot)
    return None if axes is None else tuple(sorted(axis % rank for axis in axes))


def readers_of(m: Match, value: Value) -> list[tuple[Node, int]]:
    """Who reads a value, each with the operand it reads it as; the graph's sink is one of them."""
    return [(m.graph.node(use.node), use.slot) for use in m.graph.uses(value)]


def as_stored(number: float) -> float:
    """A float attribute as the file will hold it: in single precision."""
    return float(np.float32(number))
