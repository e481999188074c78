"""What running a region costs, and smaller sizes for regions that do not care about theirs."""

from __future__ import annotations

import math
from collections.abc import Mapping

from optimizer.analysis import Fact
from optimizer.ir import Node, Value
from optimizer.verify.region import Region
from optimizer.verify.rounding import ELEMENTWISE
from optimizer.verify.sides import Side

MAX_WORK = 4_000_000_000
"""Multiplications of one run above which a region is not run at all."""
SMALL_WORK = 1_000_000
"""Multiplications of one run below which smaller sizes are not worth the thought."""

_WINDOWED = {"Conv", "ConvTranspose", "MaxPool", "AveragePool", "FusedConv"}
_PLANAR = _WINDOWED | {
    "BatchNormalization",
    "InstanceNormalization",
    "GlobalAveragePool",
    "GlobalMaxPool",
    "Pad",
    "Concat",
    "Resize",
}
_ROWS = {"MatMul", "Gemm", "FusedMatMul", "LayerNormalization", "RMSNormalization", "Softmax"}


def work_of(region: Region, shapes: Mapping[Value, tuple[int, ...]]) -> int:
    """About how many multiplications one run of both sides takes."""
    elements = max((math.prod(shape) for shape in shapes.values()), default=1)
    return sum(_work_of_side(side, elements) for side in (region.before, region.after))


def smaller_sizes(region: Region, facts: Mapping[Value, Fact]) -> dict[tuple[int, int], int]:
    """Smaller static dims to check at: (axis from the end, size) to size; empty where sizes matter.

    Only where every operator treats all places of these axes alike: image planes of convolutions and
    pools, rows of matrix products. The two image axes get different sizes.
    """
    ops = {node.op_type for side in (region.before, region.after) for node in side.nodes}
    shapes = [fact.shape for value in region.boundary if (fact := facts[value]).shape is not None]
    if ops & _WINDOWED and ops <= _PLANAR | ELEMENTWISE:
        reach = max(_reach(node) for side in (region.before, region.after) for node in side.nodes)
        axes = {-1: reach + 3, -2: reach + 4, -3: reach + 3}
        wanted = {
            (axis - len(shape), dim.value or 0): axes.get(axis - len(shape), 0)
            for shape in shapes
            if 3 <= len(shape) <= 5
            for axis, dim in enumerate(shape)
            if axis >= 2
        }
    elif ops & _ROWS and ops <= _ROWS | ELEMENTWISE:
        wanted = {
            (axis - len(shape), dim.value or 0): 5 + axis
            for shape in shapes
            for axis, dim in enumerate(shape[:-1])
            if len(shape) >= 2
        }
        return {key: size for key, size in wanted.items() if key[1] > 2 * size and key[0] == -2}
    else:
        return {}
    return {key: size for key, size in wanted.items() if size and key[1] > 2 * size}


def _work_of_side(side: Side, elements: int) -> int:
    sizes = {side.local[value]: tensor.shape for value, tensor in side.constants.items()}
    total = sum(math.prod(shape) for shape in sizes.values())
    for node in side.nodes:
        weight = sizes.get(node.inputs[1]) if len(node.inputs) > 1 and node.inputs[1] is not None else None
        if node.op_type in ("Conv", "FusedConv", "ConvTranspose", "MatMul", "Gemm") and weight:
            total += math.prod(weight) * max(1, elements // max(1, _depth(node, weight)))
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


def _reach(node: Node) -> int:
    """How far a window extends."""
    kernel: tuple[int, ...] = node.attr("kernel_shape") or (7,)
    dilations: tuple[int, ...] = node.attr("dilations") or (1,) * len(kernel)
    if node.op_type not in _WINDOWED:
        return 1
    return max([1, *((k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=False))])
