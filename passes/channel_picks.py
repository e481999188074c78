"""What an operator takes along one axis, and in which order: Slice, Gather, Split, a shuffle of channels.

The places along the axis are called channels, which they are for most readers of this.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from optimizer.analysis.ops.slicing import span_of_slice
from optimizer.ir import Node, Value
from optimizer.rewrite import Match
from passes.known import ints_of, known_sizes
from passes.view_chain import perm_of


@dataclass(frozen=True, slots=True)
class Pick:
    """Output ``result`` holds the channels ``taken`` of ``source``, in that order.

    Attributes:
        node: the operator that makes the result; the last one of a shuffle.
    """

    source: Value
    result: Value
    taken: tuple[int, ...]
    node: Node


def picks_of(m: Match, node: Node, axis: int) -> list[Pick]:
    """What an operator takes of its operand's channels, for each output; nothing where that is not known."""
    source = node.input(0)
    shape = m.shape(source)
    if node.domain or source is None or shape is None or axis >= len(shape):
        return []
    count = shape[axis].value
    if count is None or any(a.reference for a in node.attributes.values()):
        return []
    if node.op_type == "Split":
        return _parts(m, node, source, axis, count)
    taken = None
    if node.op_type == "Slice":
        taken = _sliced(m, node, axis, len(shape), count)
    elif node.op_type == "Gather":
        index = m.array(node.input(1))
        if index is not None and index.ndim == 1 and node.attr("axis", 0) % len(shape) == axis:
            taken = tuple(int(i) % count for i in index)
    elif node.op_type == "Reshape" and axis == 1:
        return _shuffle(m, node)
    return [] if taken is None else [Pick(source, node.value(), taken, node)]


def _sliced(m: Match, node: Node, axis: int, rank: int, count: int) -> tuple[int, ...] | None:
    """What a Slice along one axis takes of it, in steps as well."""
    if any(m.array(v) is None for v in node.inputs[1:] if v is not None):
        return None
    starts, ends = ints_of(m, node, "starts", 1), ints_of(m, node, "ends", 2)
    axes, steps = ints_of(m, node, "axes", 3) or [0], ints_of(m, node, "steps", 4) or [1]
    if not starts or not ends or len(starts) != 1 or axes[0] % rank != axis:
        return None
    if not steps[0] or (steps[0] < 0 and ends[0] >= count):
        return None  # nothing by the text, but runtimes take something
    return tuple(range(count)[span_of_slice(starts[0], ends[0], steps[0], count)])


def _parts(m: Match, node: Node, source: Value, axis: int, count: int) -> list[Pick]:
    rank = len(m.shape(source) or ())
    if node.attr("axis", 0) % rank != axis:
        return []
    shapes = [m.shape(node.value(i)) for i in range(len(node.outputs))]
    sizes = known_sizes(shape[axis] for shape in shapes if shape is not None)
    if sizes is None or len(sizes) < len(shapes) or sum(sizes) != count:
        return []
    ends = [int(end) for end in np.cumsum(sizes)]
    spans = zip([0, *ends[:-1]], ends, strict=True)
    return [Pick(source, node.value(i), tuple(range(*span)), node) for i, span in enumerate(spans)]


def _shuffle(m: Match, last: Node) -> list[Pick]:
    """Reshape(Transpose(Reshape(x))) that only moves channels: they are split, permuted, merged again."""
    transpose = m.producer(last.inputs[0])
    first = None if transpose is None or transpose.op != "Transpose" else m.producer(transpose.inputs[0])
    if transpose is None or first is None or first.op != "Reshape" or first.inputs[0] is None:
        return []
    source = first.inputs[0]
    shape, middle = m.shape(source), m.shape(first.value())
    if shape is None or middle is None or len(shape) < 3 or not m.same_shape(source, last.value()):
        return []
    inner = len(middle) - len(shape) + 1  # how many axes the channels are split into
    sizes = known_sizes(middle[1 : 1 + inner])
    rest = middle[0] == shape[0] and middle[1 + inner :] == shape[2:]
    if inner < 2 or sizes is None or not rest or prod(sizes) != shape[1].value:
        return []
    perm = perm_of(transpose, len(middle))
    fixed = [0, *range(1 + inner, len(middle))]
    if any(perm[axis] != axis for axis in fixed):
        return []
    places = np.arange(prod(sizes)).reshape(sizes)
    order = places.transpose([axis - 1 for axis in perm[1 : 1 + inner]])
    return [Pick(source, last.value(), tuple(order.reshape(-1).tolist()), last)]
