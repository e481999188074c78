"""ConvTranspose: one matrix product, then each kernel tap added to its strided places."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from optimizer.runtime.call import Call
from optimizer.runtime.kernels.window import pad_to
from optimizer.runtime.precision import Array, computed_wide
from optimizer.runtime.registry import kernel

SCRATCH_BYTES = 4 << 20


@kernel("ConvTranspose", since=1)
@computed_wide
def conv_transpose(call: Call, x: Array, w: Array, b: Array | None = None) -> Array:
    """Y [N, M, *output] of X [N, C, *spatial] and W [C, M / group, *kernel]."""
    group = call.attr("group", 1)
    n = x.ndim - 2
    if x.ndim != w.ndim or x.ndim < 3 or x.shape[1] != w.shape[0] or w.shape[0] % group:
        raise ValueError(f"X {list(x.shape)}, W {list(w.shape)} and group {group} disagree")
    strides = tuple(call.attr("strides") or (1,) * n)
    dilations = tuple(call.attr("dilations") or (1,) * n)
    extent = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilations, strict=True)]
    full = [(d - 1) * s + e for d, s, e in zip(x.shape[2:], strides, extent, strict=True)]
    begin, output = _placement(call, x.shape[2:], strides, full)
    y = np.zeros((x.shape[0], w.shape[1] * group, *output), np.result_type(x, w))
    if x.size and w.size:
        whole = not any(begin) and output == full
        for image, result in zip(x, y, strict=True):
            spread = result if whole else np.zeros((w.shape[1] * group, *full), y.dtype)
            _spread(image, w, group, strides, dilations, spread)
            if not whole:
                result[...] = pad_to(spread, [-p for p in begin], output)
    if b is not None:
        y += b.reshape(-1, *(1,) * n)
    return y


def _placement(
    call: Call, size: Sequence[int], strides: Sequence[int], full: Sequence[int]
) -> tuple[list[int], list[int]]:
    """(padding cut off at the start, output size) per axis.

    Without padding the result has ``full`` positions plus output_padding. ``output_shape``, or
    auto_pad SAME with its size times stride, fixes the output and spreads the cut over both ends:
    the odd one at the end for SAME_UPPER, else at the start.
    """
    n = len(size)
    extra = call.attr("output_padding") or (0,) * n
    mode = call.attr("auto_pad", "NOTSET") or "NOTSET"
    wanted = call.attr("output_shape")
    if wanted is not None:
        output = list(wanted[-n:])
    elif mode.startswith("SAME"):
        output = [d * s for d, s in zip(size, strides, strict=True)]
    else:
        pads = (call.attr("pads") if mode == "NOTSET" else None) or (0,) * (2 * n)
        output = [f + e - a - z for f, e, a, z in zip(full, extra, pads[:n], pads[n:], strict=True)]
        if min(output) < 0:
            raise ValueError(f"pads {list(pads)} leave output size {output}")
        return list(pads[:n]), output
    begin = []
    for f, e, o in zip(full, extra, output, strict=True):
        total = max(0, f + e - o)
        begin.append(total // 2 if mode == "SAME_UPPER" else total - total // 2)
    return begin, output


def _spread(
    image: Array,
    w: Array,
    group: int,
    strides: Sequence[int],
    dilations: Sequence[int],
    spread: Array,
) -> None:
    """Adds every input position times the kernel to ``spread`` [M, *full], where its taps fall."""
    taps, per_group = math.prod(w.shape[2:]), w.shape[1]
    depth, positions = image.shape[0] // group, math.prod(image.shape[1:])
    weights = w.reshape(group, depth, per_group * taps).transpose(0, 2, 1)
    columns = image.reshape(group, depth, positions)
    spread = spread.reshape(group, per_group, *spread.shape[1:])
    step = max(1, SCRATCH_BYTES // (group * taps * positions * image.itemsize))
    for first in range(0, per_group, step):
        last = min(per_group, first + step)
        product = np.matmul(weights[:, first * taps : last * taps], columns)
        product = product.reshape(group, last - first, taps, *image.shape[1:])
        for i, tap in enumerate(np.ndindex(*w.shape[2:])):
            places = tuple(
                slice(t * d, t * d + (c - 1) * s + 1, s)
                for t, d, c, s in zip(tap, dilations, image.shape[1:], strides, strict=True)
            )
            spread[(slice(None), slice(first, last), *places)] += product[:, :, i]
