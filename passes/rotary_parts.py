"""Halves and pairs of the last axis: how they are taken, put together again, and repeated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optimizer.analysis import Dim
from optimizer.ir import Node, Value
from optimizer.rewrite import Match, Rewriter
from passes.known import LOOK_BACK, axes_of, known_sizes, rank_of, shape_of

HALVES, PAIRS, WHOLE = "halves", "pairs", "whole"
"""x0..., x1... behind each other; x0 x1 x0 x1 ... in turns; or one value only that stands for both."""


@dataclass(frozen=True, slots=True)
class Part:
    """The elements ``start:stop:step`` of the last axis of ``value``."""

    value: Value
    start: int
    stop: int
    step: int = 1


def part_of(m: Match, value: Value) -> Part | None:
    """Which part of the last axis of what a value is; ``None`` where it is none that is known."""
    node = m.producer(value)
    if node is None or node.inputs[0] is None:
        return None
    if node.op_type == "Slice":
        return _by_slice(m, node)
    if node.op_type == "Split":
        return _by_split(m, node, value.output)
    if node.op_type == "Gather":
        index = m.array(node.input(1))
        return None if index is None or index.shape else _of_pairs(m, node, node.attr("axis", 0), int(index))
    if node.op_type == "Squeeze":
        split = m.producer(node.inputs[0])
        if split is not None and split.op_type == "Split":
            return _of_pairs(m, split, split.attr("axis", 0), node.inputs[0].output)
    return None


def _by_slice(m: Match, node: Node) -> Part | None:
    rank, size = _last_axis(m, node.inputs[0])
    given = [m.array(node.input(slot)) for slot in (1, 2)]
    steps = None if node.input(4) is None else m.array(node.input(4))
    if (
        size is None
        or any(g is None or g.size != 1 for g in given)
        or axes_of(m, node, 3, rank) != (rank - 1,)
    ):
        return None
    if node.input(4) is not None and (steps is None or steps.item() < 1):
        return None
    start, stop = (
        b + size if b < 0 else min(b, size) for b in (int(g.item()) for g in given if g is not None)
    )
    assert node.inputs[0] is not None
    return Part(node.inputs[0], start, stop, 1 if steps is None else int(steps.item()))


def _by_split(m: Match, node: Node, output: int) -> Part | None:
    rank, size = _last_axis(m, node.inputs[0])
    shapes = [m.shape(node.value(i)) for i in range(len(node.outputs))]
    widths = known_sizes(shape[-1] for shape in shapes if shape is not None)
    if widths is None or len(widths) < len(shapes):
        return None
    if size is None or node.attr("axis", 0) not in (-1, rank - 1):
        return None
    assert node.inputs[0] is not None
    start = sum(widths[:output])
    return Part(node.inputs[0], start, start + widths[output])


def _of_pairs(m: Match, node: Node, axis: int, index: int) -> Part | None:
    """One of the last axis of Reshape(x, [..., size / 2, 2])."""
    view = m.producer(node.inputs[0])
    shape = m.shape(node.inputs[0])
    if view is None or view.op_type != "Reshape" or view.inputs[0] is None or shape is None:
        return None
    before = shape_of(m, view.inputs[0])
    size = before[-1].value
    paired = shape[-1] == 2 and shape[:-2] == before[:-1] and axis in (-1, len(shape) - 1)
    return Part(view.inputs[0], index % 2, size, 2) if paired and size else None


def _last_axis(m: Match, value: Value | None) -> tuple[int, int | None]:
    shape = m.shape(value)
    return (len(shape), shape[-1].value) if shape else (0, None)


def form_of(first: Part | None, second: Part | None, size: int) -> str | None:
    """How the two parts make up a last axis of ``size`` elements."""
    if first is None or second is None or first.value != second.value:
        return None
    half = size // 2
    given = [(part.start, part.stop, part.step) for part in (first, second)]
    if given == [(0, half, 1), (half, size, 1)]:
        return HALVES
    in_turns = [(0, size, 2), (1, size, 2)]
    return PAIRS if given in (in_turns, [(0, size - 1, 2), in_turns[1]]) else None


def joined(m: Match, value: Value | None) -> tuple[str, Value, Value] | None:
    """The two values that make up the last axis of four, and how."""
    node = m.producer(value)
    if node is None or not m.single_use(node.value()):
        return None
    form = HALVES
    if node.op_type == "Reshape":
        form, node = PAIRS, m.producer(node.inputs[0])
    if node is None or node.op_type != "Concat" or len(node.inputs) != 2 or not m.single_use(node.value()):
        return None
    parts, rank = list(node.inputs), 4 if form == HALVES else 5
    if m.rank(node.value()) != rank or node.attr("axis") not in (-1, rank - 1):
        return None
    if form == PAIRS:
        views = [m.producer(part) for part in parts]
        if any(v is None or v.op_type != "Unsqueeze" or axes_of(m, v, 1, 5) != (4,) for v in views):
            return None
        parts = [v.inputs[0] for v in views if v is not None]
    first, second = parts
    return None if first is None or second is None else (form, first, second)


# -------------------------------------------------------------------- repeated

Narrow = tuple[Value, tuple[Dim, ...]]


def narrowed(m: Match, rw: Rewriter, value: Value, form: str, size: int, depth: int = LOOK_BACK) -> Narrow:
    """Half of the last axis of ``value``, which holds each element twice, and its shape.

    Where ``form`` is WHOLE, all of it. Axes of size 1 may be left out.

    Raises:
        Refusal: it is not proven to hold each element twice.
    """
    node, array, shape = m.producer(value), m.array(value), shape_of(m, value)
    narrow = shape if form == WHOLE else (*shape[:-1], Dim.of(size // 2))
    if array is not None:
        return rw.const(_half_of_array(m, array, form, size)), narrow
    source = None if node is None or not depth else node.inputs[0]
    if node is not None and source is not None and node.op_type in ("Unsqueeze", "Reshape"):
        before = shape_of(m, source)
        if [d for d in before if d != 1] == [d for d in shape if d != 1] and before[-1] == shape[-1]:
            return narrowed(m, rw, source, form, size, depth - 1)
    if form == WHOLE:
        return value, shape
    if node is not None and source is not None and node.op_type in ("Cos", "Sin"):
        inner, of_inner = narrowed(m, rw, source, form, size, depth - 1)
        return getattr(rw.op, node.op_type)(inner), of_inner
    if node is not None and source is not None and node.op_type == "Gather" and node.attr("axis", 0) == 0:
        inner, _ = narrowed(m, rw, source, form, size, depth - 1)
        return rw.op.Gather(inner, node.inputs[1], axis=0), narrow
    repeated = None if node is None or not depth else _repeated(m, node, form, size)
    return m.refuse("the halves differ") if repeated is None else (repeated, narrow)


def _half_of_array(m: Match, array: np.ndarray, form: str, size: int) -> np.ndarray:
    if form == WHOLE:
        return array
    half = size // 2
    first, second = (
        (array[..., :half], array[..., half:]) if form == HALVES else (array[..., ::2], array[..., 1::2])
    )
    m.require(np.array_equal(first, second), "the halves differ")
    return first


def _repeated(m: Match, node: Node, form: str, size: int) -> Value | None:
    """What a node holds twice along its last axis: Concat(x, x), or a Reshape of Expand or Tile of x."""
    if form == HALVES:
        same = node.op_type == "Concat" and len(node.inputs) == 2 and node.inputs[0] == node.inputs[1]
        last = node.attr("axis") in (-1, rank_of(m, node.value()) - 1)
        return node.inputs[0] if same and last else None
    if node.op_type != "Reshape":
        return None
    wide, shape = m.producer(node.inputs[0]), shape_of(m, node.value())
    middle = m.shape(node.inputs[0])
    if wide is None or middle is None or middle != (*shape[:-1], Dim.of(size // 2), Dim.of(2)):
        return None
    view = m.producer(wide.inputs[0])
    if view is None or view.op_type != "Unsqueeze" or axes_of(m, view, 1, len(middle)) != (len(middle) - 1,):
        return None
    twice = wide.op_type in ("Expand", "Tile") and m.shape(view.inputs[0]) == middle[:-1]
    pair = wide.op_type == "Concat" and len(wide.inputs) == 2 and wide.inputs[0] == wide.inputs[1]
    return view.inputs[0] if twice or pair else None
