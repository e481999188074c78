"""What running a region costs, and smaller sizes for regions that do not care about theirs."""

from __future__ import annotations

import math
from collections.abc import Mapping

from optimizer.ir import Node, Value
from optimizer.verify.region import Region
from optimizer.verify.rounding import ELEMENTWISE
from optimizer.verify.sides import Side

MAX_WORK = 1_000_000_000
"""Multiplications of one run above which a region is not run at all."""
SMALL_WORK = 20_000
"""Multiplications of one run below which smaller sizes are not worth the thought."""

_WINDOWED = {"Conv", "ConvTranspose", "MaxPool", "AveragePool", "LpPool", "FusedConv"}
_PLANAR = _WINDOWED | {
    "BatchNormalization",
    "InstanceNormalization",
    "GlobalAveragePool",
    "GlobalMaxPool",
    "Pad",
}
_ROWS = {"MatMul", "Gemm", "FusedMatMul", "LayerNormalization", "RMSNormalization", "Softmax", "ReduceMean"}
_INDIFFERENT = _PLANAR | _ROWS | ELEMENTWISE | {"Concat", "Resize", "Transpose"}


def work_of(region: Region, shapes: Mapping[Value, tuple[int, ...]]) -> int:
    """About how many multiplications one run of both sides takes."""
    elements = max((math.prod(shape) for shape in shapes.values()), default=1)
    return sum(_work_of_side(side, elements) for side in (region.before, region.after))


def smaller_sizes(region: Region, shapes: Mapping[Value, tuple[int, ...]]) -> dict[tuple[int, int], int]:
    """Smaller sizes to check at: (axis from the end, size) to size; empty where sizes matter.

    Only where every operator treats all places of these axes alike: image planes of convolutions and
    pools, rows of matrix products. The image axes get different sizes. A region that does not work at
    these sizes has to be run at its own.
    """
    sides = (region.before, region.after)
    ops = {node.op_type for side in sides for node in side.nodes}
    if not ops <= _INDIFFERENT:
        return {}
    reach = window_reach(region)
    planes = {-1: reach + 3, -2: reach + 4, -3: reach + 3}
    found = {}
    for value in region.boundary:
        shape = shapes.get(value, ())
        by_rows = len(shape) < 3 or (not ops & _PLANAR and (len(shape) == 3 or bool(ops & _ROWS)))
        for axis, size in enumerate(shape):
            place = axis - len(shape)
            if by_rows:
                wanted = {-1: 0, -2: 5}.get(place, 3)
            else:
                wanted = planes.get(place, 0) if axis >= 2 else 0
            if wanted and 2 * size > 3 * wanted:
                found[place, size] = wanted
    return found


def window_reach(region: Region) -> int:
    """How far the largest window (of a convolution or pool) extends along an axis; 1 where there is none."""
    sides = (region.before, region.after)
    return max((_reach(node, _shapes(side)) for side in sides for node in side.nodes), default=1)


def _work_of_side(side: Side, elements: int) -> int:
    sizes = _shapes(side)
    total = sum(math.prod(shape) for shape in sizes.values())
    for node in side.nodes:
        weight = sizes.get(node.input(1))
        if node.op_type in ("Conv", "FusedConv", "ConvTranspose", "MatMul", "Gemm") and weight:
            stride = math.prod(node.attr("strides") or ()) if node.op_type != "ConvTranspose" else 1
            total += math.prod(weight) * max(1, elements // max(1, _depth(node, weight) * stride))
        elif node.op_type in ("MatMul", "Attention", "Einsum"):
            total += elements * 256
        else:
            total += elements
    return total


def _depth(node: Node, weight: tuple[int, ...]) -> int:
    """Size of the axis of the other operand that the weight is contracted with."""
    if node.op_type in ("Conv", "FusedConv"):
        groups: int = node.attr("group", 1)
        return weight[1] * groups if len(weight) > 1 else 1
    if node.op_type == "Gemm" and node.attr("transB", 0):
        return weight[-1]
    return weight[-2] if node.op_type == "MatMul" and len(weight) > 1 else weight[0]


def _shapes(side: Side) -> dict[Value | None, tuple[int, ...]]:
    """The shapes of its constants, by value of its graph."""
    return {side.local[value]: tensor.shape for value, tensor in side.constants.items()}


def _reach(node: Node, sizes: Mapping[Value | None, tuple[int, ...]]) -> int:
    """How far a window extends."""
    if node.op_type not in _WINDOWED:
        return 1
    weight = sizes.get(node.input(1), ())
    kernel: tuple[int, ...] = node.attr("kernel_shape") or weight[2:] or (7,)
    dilations: tuple[int, ...] = node.attr("dilations") or (1,) * len(kernel)
    return max((k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=False))
