"""Conditions that say which key comes before which query."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from optimizer.analysis import Dim
from optimizer.ir import Node, Value
from optimizer.rewrite import Match
from passes.known import LOOK_BACK
from passes.scores import Hidden, number_of

_QUERIES, _KEYS = -2, -1
_ORDER = {
    "Greater": (_KEYS, _QUERIES, True),
    "GreaterOrEqual": (_QUERIES, _KEYS, False),
    "Less": (_QUERIES, _KEYS, True),
    "LessOrEqual": (_KEYS, _QUERIES, False),
}
"""Which positions are compared with which, and whether true then means that the key comes later."""


def looks_ahead(m: Match, hidden: Hidden, sizes: Sequence[Dim], first: Dim) -> bool:
    """Whether exactly the keys are hidden that come after the query.

    Args:
        sizes: of the scores, the last two those of queries and keys.
        first: the place of the first query among the keys.
    """
    shape = m.shape(hidden.condition)
    if shape is None or shape[-2:] != tuple(sizes[-2:]) or any(dim != 1 for dim in shape[:-2]):
        return False
    return _later(m, hidden.condition, first, LOOK_BACK) is hidden.where_true


def _later(m: Match, value: Value | None, offset: Dim, depth: int) -> bool | None:
    """True where it is true for later keys only, False where for all but those; else ``None``."""
    node = m.producer(value)
    if node is None or not depth:
        return None
    if node.op_type in _ORDER:
        first, second, later = _ORDER[node.op_type]
        places = zip(node.inputs, (first, second), strict=True)
        starts = {_QUERIES: offset, _KEYS: Dim.of(0)}
        return later if all(_counts_up(m, x, axis, starts[axis]) for x, axis in places) else None
    if node.op_type == "Trilu" and offset == 0:
        return _triangle(m, node)
    turned = node.op_type == "Not" or (
        node.op_type == "Equal" and any(number_of(m, operand) == 0 for operand in node.inputs)
    )
    if turned:
        inner = next((operand for operand in node.inputs if m.tensor(operand) is None), None)
        found = _later(m, inner, offset, depth - 1)
        return None if found is None else not found
    if node.op_type in ("Cast", "Unsqueeze", "Reshape", "Expand"):
        before, after = m.shape(node.inputs[0]), m.shape(node.value())
        same = before is not None and after is not None and before[-2:] == after[-2:]
        return _later(m, node.inputs[0], offset, depth - 1) if same else None
    return None


def _triangle(m: Match, node: Node) -> bool | None:
    """A triangle of ones: with the diagonal below it, or without it above."""
    offset = 0 if node.input(1) is None else number_of(m, node.input(1))
    later = bool(node.attr("upper", 1))
    return later if _is_one(m, node.inputs[0], LOOK_BACK) and offset == int(later) else None


def _is_one(m: Match, value: Value | None, depth: int) -> bool:
    """Whether all elements are the same number, and not 0."""
    array, node = m.array(value), m.producer(value)
    if array is not None:
        return bool(array.size and (array != 0).all())
    if node is None or not depth:
        return False
    if node.op_type == "ConstantOfShape":
        fill = node.attr("value")
        return fill is not None and bool(np.all(fill.array != 0))
    return node.op_type in ("Expand", "Cast") and _is_one(m, node.inputs[0], depth - 1)


def _counts_up(m: Match, value: Value | None, axis: int, start: Dim) -> bool:
    """Whether it is start, start + 1, ... along ``axis`` (from the back), and of size 1 along the others."""
    shape, node = m.shape(value), m.producer(value)
    if shape is None or node is None or not shape:
        return False
    if any(dim != 1 for place, dim in enumerate(shape, -len(shape)) if place != axis):
        return False
    while node is not None and node.op_type in ("Unsqueeze", "Reshape", "Squeeze", "Cast"):
        node = m.producer(node.inputs[0])
    if node is None or node.op_type != "Range":
        return False
    given = None if node.inputs[0] is None else m.facts.value(node.inputs[0])
    return given is not None and given.dims() == [start] and number_of(m, node.inputs[2]) == 1
