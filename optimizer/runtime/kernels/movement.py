"""What moves elements without computing: joins, splits, slices, pads, tiles, blocks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np

from optimizer.ir import DType
from optimizer.runtime.call import Call
from optimizer.runtime.precision import Array
from optimizer.runtime.registry import kernel


@kernel("Concat", 1, exact=True)
@kernel("Concat", 4, exact=True)
def concat(call: Call, *inputs: Array) -> Array:
    """Joins along ``axis``."""
    return np.concatenate(inputs, call.attr("axis", 1))


# ---------------------------------------------------------------- Split


@kernel("Split", 1, exact=True, may_alias=True)
@kernel("Split", 13, exact=True, may_alias=(0,))
def split(call: Call, x: Array, lengths: Array | None = None) -> tuple[Array, ...]:
    """Cuts along ``axis`` into given lengths (attribute or input), else into equal parts."""
    axis = call.attr("axis", 0)
    parts = call.attr("split") if lengths is None else lengths.tolist()
    if parts is None:
        parts = equal_parts(x.shape[axis], call.output_count)
    return cut(x, _one_for_each(call, parts), axis)


@kernel("Split", 18, exact=True, may_alias=(0,))
def split_num_outputs(call: Call, x: Array, lengths: Array | None = None) -> tuple[Array, ...]:
    """As before; where ``num_outputs`` does not divide the axis, the last part is smaller."""
    axis = call.attr("axis", 0)
    if lengths is not None:
        return cut(x, _one_for_each(call, lengths.tolist()), axis)
    count = call.attr("num_outputs", call.output_count)
    chunk = -(-x.shape[axis] // count)
    ends = [min(x.shape[axis], chunk * i) for i in range(count + 1)]
    return cut(x, [end - start for start, end in pairwise(ends)], axis)


def _one_for_each(call: Call, lengths: Sequence[int]) -> Sequence[int]:
    if len(lengths) != call.output_count:
        raise ValueError(f"{len(lengths)} lengths for {call.output_count} outputs")
    return lengths


def equal_parts(size: int, count: int) -> list[int]:
    """``count`` equal lengths.

    Raises:
        ValueError: ``size`` is not a multiple of ``count``.
    """
    if size % count:
        raise ValueError(f"an axis of {size} cannot be split into {count} equal parts")
    return [size // count] * count


def cut(x: Array, lengths: Sequence[int], axis: int) -> tuple[Array, ...]:
    """Views of ``x`` of the given lengths along ``axis``.

    Raises:
        ValueError: the lengths do not add up to the axis.
    """
    if sum(lengths) != x.shape[axis] or min(lengths, default=0) < 0:
        raise ValueError(f"lengths {list(lengths)} do not add up to an axis of {x.shape[axis]}")
    before = (slice(None),) * (axis % x.ndim)
    ends = list(accumulate(lengths, initial=0))
    return tuple(x[(*before, slice(start, end))] for start, end in pairwise(ends))


# ---------------------------------------------------------------- Slice


@kernel("Slice", 1, exact=True, may_alias=True)
def slice_by_attributes(call: Call, x: Array) -> Array:
    """Slice with its bounds as attributes."""
    starts, ends = call.attr("starts"), call.attr("ends")
    return _slice(x, starts, ends, call.attr("axes"), None)


@kernel("Slice", 10, exact=True, may_alias=(0,))
def slice_(
    call: Call,
    x: Array,
    starts: Array,
    ends: Array,
    axes: Array | None = None,
    steps: Array | None = None,
) -> Array:
    """Slice with its bounds as inputs; steps may be negative."""
    return _slice(
        x,
        starts.tolist(),
        ends.tolist(),
        None if axes is None else axes.tolist(),
        None if steps is None else steps.tolist(),
    )


def _slice(
    x: Array,
    starts: Sequence[int],
    ends: Sequence[int],
    axes: Sequence[int] | None,
    steps: Sequence[int] | None,
) -> Array:
    index = [slice(None)] * x.ndim
    for place, (start, end) in enumerate(zip(starts, ends, strict=True)):
        axis = place if axes is None else axes[place]
        step = 1 if steps is None else steps[place]
        index[axis] = _bounds(start, end, step, x.shape[axis])
    return x[tuple(index)]


def _bounds(start: int, end: int, step: int, size: int) -> slice:
    """Counts negative bounds from the back once, then clamps: backwards, from the first element at least."""
    start, end = start + size if start < 0 else start, end + size if end < 0 else end
    if step > 0:
        return slice(max(0, min(start, size)), max(0, min(end, size)), step)
    if not size:
        return slice(0, 0)
    start, end = max(0, min(start, size - 1)), max(-1, min(end, size - 1))
    return slice(start, None if end < 0 else end, step)


# ---------------------------------------------------------------- Tile, blocks, triangles


@kernel("Tile", 1, exact=True)
def tile_axis(call: Call, x: Array, tiles: Array, axis: Array) -> Array:
    """Repeats along one axis."""
    repeats = [1] * x.ndim
    repeats[int(axis.reshape(-1)[0])] = int(tiles.reshape(-1)[0])
    return np.tile(x, repeats)


@kernel("Tile", 6, exact=True)
def tile(call: Call, x: Array, repeats: Array) -> Array:
    """Repeats along every axis."""
    if repeats.size != x.ndim:
        raise ValueError(f"{repeats.size} repeats for rank {x.ndim}")
    call.context.check_size([d * r for d, r in zip(x.shape, repeats.tolist(), strict=True)], x.dtype)
    return np.tile(x, repeats.tolist())


@kernel("DepthToSpace", exact=True)
def depth_to_space(call: Call, x: Array) -> Array:
    """Blocks of channels become blocks of the plane; ``CRD`` takes the channels column first."""
    block = call.attr("blocksize")
    n, c, h, w = x.shape
    if c % (block * block):
        raise ValueError(f"{c} channels are not made of blocks of {block} x {block}")
    depth = c // (block * block)
    if call.attr("mode", "DCR") == "DCR":
        moved = x.reshape(n, block, block, depth, h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        moved = x.reshape(n, depth, block, block, h, w).transpose(0, 1, 4, 2, 5, 3)
    return moved.reshape(n, depth, h * block, w * block)


@kernel("SpaceToDepth", exact=True)
def space_to_depth(call: Call, x: Array) -> Array:
    """Blocks of the plane become blocks of channels."""
    block = call.attr("blocksize")
    n, c, h, w = x.shape
    if h % block or w % block:
        raise ValueError(f"a plane of {h} x {w} is not made of blocks of {block}")
    tall, wide = h // block, w // block
    blocks = x.reshape(n, c, tall, block, wide, block)
    if call.attr("mode", "DCR") == "DCR":
        moved = blocks.transpose(0, 3, 5, 1, 2, 4)
    else:
        moved = blocks.transpose(0, 1, 3, 5, 2, 4)
    return moved.reshape(n, c * block * block, tall, wide)


@kernel("Trilu", 14, exact=True)
def trilu(call: Call, x: Array, k: Array | None = None) -> Array:
    """Upper or lower triangle of the last two axes."""
    rows, columns = x.shape[-2:]
    diagonal = np.arange(rows)[:, None] + (0 if k is None else int(k.reshape(())))
    kept = np.arange(columns) >= diagonal if call.attr("upper", 1) else np.arange(columns) <= diagonal
    out = np.zeros_like(x)
    np.copyto(out, x, where=kept)
    return out


@kernel("ReverseSequence", 10, exact=True)
def reverse_sequence(call: Call, x: Array, lengths: Array) -> Array:
    """Reverses the first ``lengths[b]`` steps of each batch ``b``."""
    batch, time = call.attr("batch_axis", 1), call.attr("time_axis", 0)
    steps = np.arange(x.shape[time])
    reversed_ = lengths[:, None] - 1 - steps
    source = np.where(steps < lengths[:, None], reversed_, steps)
    moved = np.moveaxis(x, (batch, time), (0, 1))
    taken = moved[np.arange(x.shape[batch])[:, None], source]
    return np.moveaxis(taken, (0, 1), (batch, time))


@kernel("BitCast", 26, exact=True, may_alias=True)
def bit_cast(call: Call, x: Array) -> Array:
    """The same bits under another type of the same width."""
    wanted = DType(call.attr("to"))
    if call.truth and x.dtype == np.float64 and wanted.bits == 32:
        x = x.astype(np.float32)  # truth mode: it was float32 when the model asked for its bits
    held = DType.from_numpy(x.dtype)
    if wanted.bits != held.bits:
        raise ValueError(f"{held.name} and {wanted.name} differ in width")
    out: Array = np.ascontiguousarray(x).view(wanted.numpy).reshape(x.shape)
    return out.astype(call.real(out.dtype), copy=False)
