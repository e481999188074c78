"""The mask operand of Attention: what is added to the scores and what is hidden, in one value."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from optimizer.analysis import Dim
from optimizer.ir import DType, Value
from optimizer.rewrite import Match, Rewriter
from passes.causal import looks_ahead
from passes.known import LOOK_BACK, shape_of
from passes.scores import Hidden, Scores, number_of

_ABSORBING = -1e30
"""Added to a score in single precision, this swallows it."""
SUMS = 2
"""Sums within sums whose terms are raised one by one: a mask has few parts."""


def mask_of(
    m: Match, rw: Rewriter, parts: Scores, queries: Value, sizes: Sequence[Dim]
) -> tuple[Value | None, bool]:
    """The mask, ``None`` for none, and whether instead of it no query may see a later key.

    Args:
        queries: to count them, along the axis before the last.
        sizes: the shape of the scores, with an axis of heads.

    Raises:
        Refusal: there is no such mask.
    """
    if parts.is_bare:
        return None, False
    added, hidden = parts.added, parts.hidden
    m.require(
        hidden is None or is_far_below(m, parts.product.value(), hidden.fill),
        "what is hidden is not far below",
    )
    if hidden is None and len(added) == 1:
        hidden = as_hidden(m, added[0])
        added = added if hidden is None else ()
    if hidden is not None and not added and looks_ahead(m, hidden, sizes, Dim.of(0)):
        return None, True
    shapes = [shape_of(m, v) for v in (*added, *([] if hidden is None else [hidden.condition]))]
    _require_fit(m, shapes, sizes)
    mask = _summed(m, rw, added, hidden)
    return _stretched(m, rw, mask, shapes, queries, sizes), False


def _require_fit(m: Match, shapes: Sequence[Sequence[Dim]], sizes: Sequence[Dim]) -> None:
    """Refuses where a mask may have more queries, heads or batches than the scores.

    It cannot have more keys, since then there would be other weights than values.
    """
    keys = shape_of(m, m.v)[-2] == sizes[-1]
    for shape in shapes:
        pairs = list(zip(shape[::-1], sizes[::-1], strict=False))
        fits = all(a in (1, b) for a, b in pairs[1:]) and (keys or all(a in (1, b) for a, b in pairs[:1]))
        m.require(fits and len(shape) <= 4, "the mask may stretch the scores")


def is_far_below(m: Match, scores: Value, fill: float) -> bool:
    """Whether it makes no difference if a score is replaced by ``fill`` or ``fill`` added to it."""
    return fill == -np.inf or (fill <= _ABSORBING and m.dtype(scores) is DType.FLOAT)


def as_hidden(m: Match, value: Value) -> Hidden | None:
    """What ``Where(condition, 0, far below)`` hides where it is added."""
    node = m.producer(value)
    if node is None or node.op_type != "Where":
        return None
    condition, *numbers = node.inputs
    first, second = (number_of(m, v) for v in numbers)
    if condition is None or first is None or second is None or 0 not in (first, second):
        return None
    fill = min(first, second)
    return Hidden(condition, first == fill, fill) if is_far_below(m, value, fill) else None


# -------------------------------------------------------------------- one value


def _summed(m: Match, rw: Rewriter, added: Sequence[Value], hidden: Hidden | None) -> Value:
    """All of it as numbers to add, or as one condition that is true for what is not hidden."""
    if hidden is not None and not added and hidden.fill == -np.inf:
        return rw.op.Not(hidden.condition) if hidden.where_true else hidden.condition
    values = [_above_lowest(m, rw, value) for value in added]
    if hidden is not None:
        values.append(_as_numbers(m, rw, hidden))
    total = values[0]
    for value in values[1:]:
        total = rw.op.Add(total, value)
    return total


def _as_numbers(m: Match, rw: Rewriter, hidden: Hidden) -> Value:
    dtype = m.dtype(m.v)
    assert dtype is not None
    zero, fill = (rw.const(np.array(n, dtype.numpy)) for n in (0.0, _raised(dtype, hidden.fill)))
    return rw.op.Where(hidden.condition, *((fill, zero) if hidden.where_true else (zero, fill)))


def _raised(dtype: DType, number: float) -> float:
    lowest = np.finfo(dtype.numpy).min
    return float(np.nextafter(lowest, dtype.numpy.type(0))) if number == lowest else number


def _above_lowest(m: Match, rw: Rewriter, value: Value, depth: int = SUMS) -> Value:
    """``value`` without the lowest number of its type, rounded up to the one above.

    onnxruntime takes a score of the lowest number for one that is not there, and a row of them for
    zeros; the Softmax of such a row is as that of any other that is all equal.
    """
    dtype = m.dtype(value)
    assert dtype is not None
    info = np.finfo(dtype.numpy)
    largest = _largest(m, value, LOOK_BACK)
    if largest is not None and largest < float(info.max):
        return value
    node = m.producer(value)
    if node is not None and node.op_type == "Add" and depth:
        return rw.op.Add(*(_above_lowest(m, rw, v, depth - 1) for v in node.inputs if v is not None))
    numbers = [] if node is None or node.op_type != "Where" else [number_of(m, v) for v in node.inputs[1:]]
    if node is not None and len(numbers) == 2 and None not in numbers:
        made = [rw.const(np.array(_raised(dtype, n), dtype.numpy)) for n in numbers if n is not None]
        return rw.op.Where(node.inputs[0], *made)
    return rw.op.Mul(value, rw.const(np.array(1 - info.eps / 2, dtype.numpy)))


def _largest(m: Match, value: Value | None, depth: int) -> float | None:
    """A bound of the magnitude of all elements that are no infinities; ``None`` where none is known."""
    array = m.array(value)
    if array is not None:
        finite = np.abs(array[np.isfinite(array)].astype(np.float64)) if array.dtype.kind in "fiub" else None
        return None if finite is None else float(finite.max(initial=0))
    node = m.producer(value)
    if node is None or not depth:
        return None
    if node.op_type in ("Reshape", "Transpose", "Gather", "Unsqueeze", "Squeeze", "Expand", "Slice", "Neg"):
        return _largest(m, node.inputs[0], depth - 1)
    if node.op_type == "Cast":
        return 1.0 if m.dtype(node.inputs[0]) is DType.BOOL else _largest(m, node.inputs[0], depth - 1)
    operands = node.inputs[1:] if node.op_type == "Where" else node.inputs
    bounds = [_largest(m, v, depth - 1) for v in operands]
    known = [bound for bound in bounds if bound is not None]
    if len(known) < len(bounds) or node.op_type not in ("Where", "Add", "Sub", "Mul"):
        return None
    if node.op_type == "Mul":
        return math.prod(known)
    return max(known) if node.op_type == "Where" else sum(known)


# -------------------------------------------------------------------- its shape


def _stretched(
    m: Match,
    rw: Rewriter,
    mask: Value,
    shapes: Sequence[Sequence[Dim]],
    queries: Value,
    sizes: Sequence[Dim],
) -> Value:
    """``mask`` with all queries and keys, and of two or four axes: runtimes do not stretch the last two."""
    rank = 2 if max(map(len, shapes)) <= 2 else 4
    target: list[Value] = [rw.const(np.ones(rank - 2, np.int64))] if rank == 4 else []
    whole = max(map(len, shapes)) == rank
    for axis, source in ((-2, queries), (-1, m.v)):
        is_whole = any(len(shape) >= -axis and shape[axis] == sizes[axis] for shape in shapes)
        whole &= is_whole
        place = len(shape_of(m, source)) - 2
        if is_whole or sizes[axis].value is not None:
            target.append(rw.const(np.array([1 if is_whole else sizes[axis].value], np.int64)))
        else:
            target.append(rw.op.Shape(source, start=place, end=place + 1))
    return mask if whole else rw.op.Expand(mask, rw.op.Concat(*target, axis=0))
