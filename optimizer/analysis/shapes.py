"""Broadcasting of shapes, and what can be said about two of them."""

from __future__ import annotations

from functools import reduce

from optimizer.analysis.computed import broadcast
from optimizer.analysis.context import Inconsistent
from optimizer.analysis.dims import Dim
from optimizer.analysis.fact import Shape

_ONE = Dim.of(1)


def broadcast_shapes(*shapes: Shape | None) -> Shape | None:
    """The shape they broadcast to (multidirectional); ``None`` where a rank is not known.

    Raises:
        Inconsistent: two literal dimensions do not go together.
    """
    return reduce(_broadcast_two, shapes)


def _broadcast_two(a: Shape | None, b: Shape | None) -> Shape | None:
    if a is None or b is None:
        return None
    if a is b or a == b:
        return a
    if len(a) < len(b):
        a, b = b, a
    lead = len(a) - len(b)
    return (*a[:lead], *map(_broadcast_dims, a[lead:], b))


def _broadcast_dims(p: Dim, q: Dim) -> Dim:
    if p is q or q.value == 1:
        return p
    if p.value == 1:
        return q
    if p.value is not None and q.value is not None:
        raise Inconsistent(f"dimensions {p} and {q} do not broadcast")
    return broadcast(p, q)


def same_shape(a: Shape | None, b: Shape | None) -> bool:
    """Whether two shapes are provably equal."""
    if a is None or b is None or len(a) != len(b):
        return False
    return a is b or all(p is q or p.eq(q) is True for p, q in zip(a, b, strict=True))


def broadcasts_to(shape: Shape | None, target: Shape | None) -> bool:
    """Whether broadcasting ``shape`` with ``target``, where that is possible, gives ``target``."""
    if shape is None or target is None or len(shape) > len(target):
        return False
    tail = target[len(target) - len(shape) :]
    return all(p is q or broadcast(p, q) is q or p.eq(q) is True for p, q in zip(shape, tail, strict=True))


def product(dims: Shape) -> Dim:
    """Number of elements of a shape."""
    total = _ONE
    for dim in dims:
        total = total * dim
    return total
