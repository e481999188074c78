"""Sequences (Python lists) and optionals."""

from __future__ import annotations

from typing import Any

import numpy as np

from optimizer.runtime.call import Call
from optimizer.runtime.kernels.movement import cut
from optimizer.runtime.precision import Array
from optimizer.runtime.registry import kernel


def _position(sequence: list[Any], position: Array | None, *, last: int) -> int:
    """A position counted from the front; ``last`` is the greatest one allowed.

    Raises:
        ValueError: it is outside the sequence.
    """
    place = last if position is None else int(position.reshape(()))
    if not -len(sequence) <= place <= last:
        raise ValueError(f"position {place} is outside a sequence of {len(sequence)}")
    return place + len(sequence) if place < 0 else place


@kernel("SequenceEmpty", 11, exact=True)
def sequence_empty(call: Call) -> list[Any]:
    """A sequence of nothing."""
    return []


@kernel("SequenceConstruct", 11, exact=True, may_alias=True)
def sequence_construct(call: Call, *inputs: Any) -> list[Any]:
    """A sequence of the inputs."""
    return list(inputs)


@kernel("SequenceAt", 11, exact=True, may_alias=True)
def sequence_at(call: Call, sequence: list[Any], position: Array) -> Any:
    """One element."""
    return sequence[_position(sequence, position, last=len(sequence) - 1)]


@kernel("SequenceInsert", 11, exact=True, may_alias=True)
def sequence_insert(call: Call, sequence: list[Any], item: Any, position: Array | None = None) -> list[Any]:
    """The sequence with one more element, at the end by default."""
    place = _position(sequence, position, last=len(sequence))
    return [*sequence[:place], item, *sequence[place:]]


@kernel("SequenceErase", 11, exact=True, may_alias=True)
def sequence_erase(call: Call, sequence: list[Any], position: Array | None = None) -> list[Any]:
    """The sequence without one element, the last by default."""
    place = _position(sequence, position, last=len(sequence) - 1)
    return sequence[:place] + sequence[place + 1 :]


@kernel("SequenceLength", 11, exact=True)
def sequence_length(call: Call, sequence: list[Any]) -> Array:
    """Number of elements as an int64 scalar."""
    return np.array(len(sequence), np.int64)


@kernel("ConcatFromSequence", 11, exact=True)
def concat_from_sequence(call: Call, sequence: list[Array]) -> Array:
    """Joins the elements along an axis, a new one with ``new_axis``."""
    join: Any = np.stack if call.attr("new_axis", 0) else np.concatenate
    return np.asarray(join(sequence, axis=call.attr("axis")))


@kernel("SplitToSequence", 11, exact=True, may_alias=True)
def split_to_sequence(call: Call, x: Array, lengths: Array | None = None) -> list[Array]:
    """Cuts along ``axis``: into given lengths, chunks of one length (a scalar), or single slices."""
    axis = call.attr("axis", 0)
    size = x.shape[axis]
    if lengths is None:
        parts = cut(x, [1] * size, axis)
        return list(parts) if call.attr("keepdims", 1) else [np.squeeze(p, axis) for p in parts]
    if lengths.ndim:
        return list(cut(x, lengths.tolist(), axis))
    chunk = int(lengths)
    if chunk <= 0:
        raise ValueError(f"chunks of {chunk}")
    return list(cut(x, [min(chunk, size - start) for start in range(0, size, chunk)], axis))


@kernel("Optional", 15, exact=True, may_alias=True)
def optional(call: Call, value: Any = None) -> Any:
    """An optional that holds the input, or nothing without input."""
    return call.NONE if value is None else value


@kernel("OptionalHasElement", 15, exact=True)
def optional_has_element(call: Call, value: Any = None) -> Array:
    """Whether the optional holds something; what is no optional always does."""
    return np.array(value is not None and value is not call.NONE)


@kernel("OptionalGetElement", 15, exact=True, may_alias=True)
def optional_get_element(call: Call, value: Any) -> Any:
    """What the optional holds."""
    if value is None or value is call.NONE:
        raise ValueError("the optional is empty")
    return value
