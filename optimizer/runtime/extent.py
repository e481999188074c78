"""How large results get whose size is told by values or attributes: nothing about the shapes bounds it.

A model of a few bytes may ask for a tensor that no machine holds, or for work without end. Asked before
a kernel runs (``bounded``), and of a model before another runtime is given it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeAlias

import numpy as np

from optimizer.ir import Node
from optimizer.runtime.call import Call
from optimizer.runtime.context import machine_memory
from optimizer.runtime.precision import Array
from optimizer.runtime.registry import KernelFunction

_BYTES = 8
"""Of an element: no type takes more (strings aside), and what computes it takes more than the result."""

_SIZED_BY_KERNEL = frozenset(
    ("ConstantOfShape", "Range", "OneHot", "Tile", "Pad", "RandomNormal", "RandomUniform")
)
"""Their kernels know the very shape and ask ``ExecutionContext.check_size``."""


Attributed: TypeAlias = "Node | Call"
Given = Sequence["Array | None"]
"""The inputs of a node; ``None`` for one that is omitted or not known, which counts as one element."""
Extent = Callable[[Attributed, Given], int]


def extent(node: Attributed, inputs: Given = ()) -> int:
    """At least how many elements the node makes, as far as values and attributes tell; 0: they do not.

    Raises:
        ValueError: a value means nothing, and a runtime may not end on it.
    """
    if node.domain:
        return 0
    asked = BY_ATTRIBUTES.get(node.op_type)
    found = asked(node, inputs) if asked else 0
    _, told = BY_VALUES.get(node.op_type, ((), None))
    return max(found, told(node, inputs) if told else 0)


def check_extent(node: Attributed, inputs: Given = ()) -> None:
    """Refuses what the memory of this machine could not hold.

    Raises:
        ValueError: saying how many elements are asked for.
    """
    asked = extent(node, inputs)
    if asked * _BYTES > machine_memory() // 2:
        raise ValueError(f"a result of {asked} elements does not fit into the memory of this machine")


def bounded(node: Attributed, run: KernelFunction) -> KernelFunction:
    """The kernel as one that refuses to make what does not fit; itself where shapes tell all."""
    told = node.op_type in BY_VALUES or node.op_type in BY_ATTRIBUTES
    if node.domain or not told or node.op_type in _SIZED_BY_KERNEL:
        return run
    if node.op_type not in BY_VALUES and extent(node) * _BYTES <= machine_memory() // 2:
        return run

    @wraps(run)
    def checked(call: Call, *inputs: Any) -> Any:
        check_extent(call, inputs)
        return run(call, *inputs)

    return checked


def _product(values: Array | None, least: int = 0) -> int:
    """The product of what stands in a tensor of sizes, none of them taken for less than ``least``."""
    if values is None or values.size > 64:
        return 0
    return math.prod(max(least, _whole(v)) for v in values.reshape(-1))


def _whole(value: Any) -> int:
    number = value.item()
    return int(number) if isinstance(number, int) or math.isfinite(number) else 1 << 62


def _first(values: Array | None) -> int:
    return 0 if values is None or values.size != 1 else max(0, _whole(values.reshape(-1)[0]))


def _at(inputs: Given, slot: int) -> Array | None:
    found = inputs[slot] if slot < len(inputs) else None
    return found if isinstance(found, np.ndarray) and found.dtype.kind in "iuf" else None


def _shape_of(inputs: Given) -> tuple[int, ...] | None:
    first = inputs[0] if inputs else None
    return tuple(map(int, first.shape)) if isinstance(first, np.ndarray) else None


# -------------------------------------------------------------------- by values


def _sizes_in(slot: int) -> Extent:
    return lambda node, inputs: _product(_at(inputs, slot))


def _count_in(slot: int) -> Extent:
    return lambda node, inputs: _first(_at(inputs, slot))


def _expand(_: Attributed, inputs: Given) -> int:
    shape = _at(inputs, 1)
    return _product(shape, 0 if shape is not None and (shape == 0).any() else 1)


def _tile(_: Attributed, inputs: Given) -> int:
    repeats = _first(_at(inputs, 1)) if len(inputs) == 3 else _product(_at(inputs, 1))
    return repeats * math.prod(_shape_of(inputs) or ())


def _range(_: Attributed, inputs: Given) -> int:
    values = [_at(inputs, i) for i in range(3)]
    if any(v is None or v.size != 1 for v in values):
        return 0
    start, limit, delta = (v.reshape(-1)[0].item() for v in values if v is not None)
    if not delta or not all(map(math.isfinite, (start, limit, delta))):
        raise ValueError(f"a range from {start} to {limit} in steps of {delta} has no length")
    if isinstance(start, int):
        return max(0, -int((start - limit) // delta))
    steps = (float(limit) - float(start)) / float(delta)
    return max(0, math.ceil(steps)) if math.isfinite(steps) else 1 << 62


def _one_hot(_: Attributed, inputs: Given) -> int:
    return _first(_at(inputs, 1)) * math.prod(_shape_of(inputs) or ())


def _pad(_: Attributed, inputs: Given) -> int:
    pads, axes = _at(inputs, 1), _at(inputs, 3)
    if pads is None or pads.size % 2:
        return 0
    shape = _shape_of(inputs)
    added = [_whole(b) + _whole(e) for b, e in pads.reshape(2, -1).T]
    if axes is not None or shape is None or len(shape) != len(added):
        return math.prod(max(1, a) for a in added)
    return math.prod(max(0, d + a) for d, a in zip(shape, added, strict=True))


def _resize(node: Attributed, inputs: Given) -> int:
    slot = 1 if node.op_type == "Upsample" or len(inputs) == 2 else 2
    scales, sizes, shape = _at(inputs, slot), _at(inputs, 3), _shape_of(inputs)
    if sizes is not None and sizes.size:
        if node.attr("keep_aspect_ratio_policy", "stretch") in ("stretch", b"stretch"):
            return _product(sizes)
        return 0
    if scales is None:
        return 0
    if shape is None or scales.size != len(shape):
        return math.prod(max(1, _whole(s)) for s in scales.reshape(-1)[:64])
    made = (d * float(s) for d, s in zip(shape, scales.reshape(-1), strict=True))
    return math.prod(int(m) if 0 <= m < 1 << 62 else 1 << 62 for m in made)


def _mel(_: Attributed, inputs: Given) -> int:
    return _first(_at(inputs, 0)) * (_first(_at(inputs, 1)) // 2 + 1)


def _stft(_: Attributed, inputs: Given) -> int:
    step = _at(inputs, 1)
    if step is not None and step.size == 1 and _whole(step.reshape(-1)[0]) < 1:
        raise ValueError(f"frame_step {step.item()} never reaches the end of the signal")
    return _first(_at(inputs, 3))


def _roi_align(node: Attributed, inputs: Given) -> int:
    """The samples of all regions, over every channel."""
    rows: int = max(0, node.attr("output_height", 1))
    columns: int = max(0, node.attr("output_width", 1))
    shape, rois = _shape_of(inputs), _at(inputs, 1)
    ratio: int = node.attr("sampling_ratio", 0)
    if rois is None or rois.ndim != 2 or rois.shape[1] != 4:
        return rows * columns * max(1, ratio) ** 2
    channels = shape[1] if shape is not None and len(shape) > 1 else 1
    if ratio > 0:
        return len(rois) * channels * rows * columns * ratio**2
    spans = rois.astype(np.float64) * abs(float(node.attr("spatial_scale", 1.0)))
    spans = np.nan_to_num(np.abs(spans[:, 2:] - spans[:, :2]), nan=0.0, posinf=2.0**62, neginf=2.0**62) + 1
    samples = np.minimum(spans.prod(1).sum(), 2.0**62)
    return max(int(samples), len(rois) * rows * columns) * channels


BY_VALUES: Mapping[str, tuple[tuple[int, ...], Extent]] = {
    "Expand": ((1,), _expand),
    "Tile": ((1, 2), _tile),
    "ConstantOfShape": ((0,), _sizes_in(0)),
    "Range": ((0, 1, 2), _range),
    "OneHot": ((1,), _one_hot),
    "Pad": ((1,), _pad),
    "CenterCropPad": ((1,), _sizes_in(1)),
    "Resize": ((1, 2, 3), _resize),
    "Upsample": ((1,), _resize),
    "AffineGrid": ((1,), _sizes_in(1)),
    "Col2Im": ((1,), _sizes_in(1)),
    "MaxUnpool": ((2,), _sizes_in(2)),
    "HannWindow": ((0,), _count_in(0)),
    "HammingWindow": ((0,), _count_in(0)),
    "BlackmanWindow": ((0,), _count_in(0)),
    "DFT": ((1,), _count_in(1)),
    "STFT": ((1, 3), _stft),
    "MelWeightMatrix": ((0, 1), _mel),
    "RoiAlign": ((1,), _roi_align),
}
"""Operator to the inputs whose values tell the size of its result, and how they do."""


# -------------------------------------------------------------------- by attributes


def _product_of(*names: str) -> Extent:
    def told(node: Attributed, _: Given) -> int:
        found: list[int] = []
        for name in names:
            value = node.attr(name) or 1
            found += value if isinstance(value, (tuple, list)) else [value]
        return math.prod(max(0, int(v)) for v in found)

    return told


def _padded(node: Attributed, _: Given) -> int:
    pads = node.attr("pads") or ()
    half = len(pads) // 2
    return math.prod(1 + max(0, b) + max(0, e) for b, e in zip(pads[:half], pads[half:], strict=False))


def _spread(node: Attributed, _: Given) -> int:
    """A ConvTranspose: its strides and dilations move elements apart."""
    steps: list[int] = [*(node.attr("strides") or ()), *(node.attr("dilations") or ())]
    return max(math.prod(max(1, s) for s in steps), _product_of("output_shape")(node, ()))


BY_ATTRIBUTES: Mapping[str, Extent] = {
    **dict.fromkeys(("Conv", "ConvInteger", "QLinearConv", "MaxPool", "AveragePool", "LpPool"), _padded),
    "DeformConv": _padded,
    "ConvTranspose": _spread,
    "MaxRoiPool": _product_of("pooled_shape"),
    "RoiAlign": _product_of("output_height", "output_width"),
    "RandomNormal": _product_of("shape"),
    "RandomUniform": _product_of("shape"),
    "Multinomial": _product_of("sample_size"),
}
"""Operators whose attributes alone may ask for any size."""
