"""Values made larger by repeating what they hold: in front of operators that do so themselves, or twice."""

from __future__ import annotations

from typing import Any

import numpy as np

from optimizer.ir import Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.known import constant_of, ints_of, shape_of

BROADCAST = (
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Pow",
    "Max",
    "Min",
    "And",
    "Or",
    "Xor",
    "Equal",
    "Less",
    "LessOrEqual",
    "Greater",
    "GreaterOrEqual",
)


@graph_optimizer(
    P.any_of(
        P.one_of(*BROADCAST)(P.ConstantOfShape("target", name="filled"), "z"),
        P.one_of(*BROADCAST)("z", P.ConstantOfShape("target", name="filled")),
    ),
    tag="E0",
)
def drop_filling_before_broadcast(m: Match, rw: Rewriter) -> Value:
    """ConstantOfShape(target) + z -> number + z, where z has the shape of the sum"""
    m.require(m.opset() >= 7, "elementwise operators broadcast differently before opset 7")
    m.require(m.same_shape(m.z, m.root.value()), "the other operand is stretched")
    number = m.filled.attr("value")
    array = np.zeros((), np.float32) if number is None else number.array.reshape(())
    constant = rw.const(array)
    operands = [constant if v == m.filled.value() else v for v in m.root.inputs]
    made: Value = getattr(rw.op, m.root.op_type)(*operands, **m.root.attributes)
    return made


@graph_optimizer(
    P.any_of(
        P.one_of(*BROADCAST)(P.Tile("x", P.const("repeats"), name="tile"), "z"),
        P.one_of(*BROADCAST)("z", P.Tile("x", P.const("repeats"), name="tile")),
    ),
    tag="E0",
)
def drop_tile_before_broadcast(m: Match, rw: Rewriter) -> Value:
    """Tile(x, repeats) + z -> x + z, where only axes of size 1 are repeated, which z has at that size"""
    m.require(m.opset() >= 7, "elementwise operators broadcast differently before opset 7")
    small, tiled, other = (shape_of(m, v) for v in (m.x, m.tile.value(), m.z))
    repeated = [axis for axis, (a, b) in enumerate(zip(small, tiled, strict=True)) if a != b]
    back = [axis - len(tiled) for axis in repeated]
    fits = all(small[axis] == 1 and -axis <= len(other) and other[axis] == tiled[axis] for axis in back)
    m.require(repeated and fits, "the other operand does not stretch it as far")
    operands = [m.x if v == m.tile.value() else v for v in m.root.inputs]
    made: Value = getattr(rw.op, m.root.op_type)(*operands, **m.root.attributes)
    return made


@graph_optimizer(P.Tile(P.Tile("x", "first").once(), "second"), constants="first second", tag="E0")
def merge_tiles(m: Match, rw: Rewriter) -> Value:
    """Tile(Tile(x, a), b) -> Tile(x, a * b)"""
    first, second = (constant_of(m, v).array for v in (m.first, m.second))
    return rw.op.Tile(m.x, rw.const(first * second))


@graph_optimizer(P.Expand(P.Expand("x", "first").once(), "second"), tag="E0")
def merge_expands(m: Match, rw: Rewriter) -> Value:
    """Expand(Expand(x, a), b) -> Expand(x, the shape of the result), where that is known"""
    sizes = m.static_shape(m.root.value())
    if sizes is None:
        return m.refuse("the shape of the result is not known")
    return rw.op.Expand(m.x, rw.const(np.array(sizes, np.int64)))


# -------------------------------------------------------------------- what undoes itself, or adds up


@graph_optimizer(
    P.any_of(
        P.SpaceToDepth(P.DepthToSpace("x", name="first"), name="second"),
        P.DepthToSpace(P.SpaceToDepth("x", name="first"), name="second"),
    ),
    tag="E0",
)
def drop_blocks_there_and_back(m: Match, rw: Rewriter) -> Value:
    """SpaceToDepth(DepthToSpace(x)) -> x, and the other way round"""
    m.require(m.first.attr("blocksize") == m.second.attr("blocksize"), "the blocks differ")
    modes = {node.attr("mode", "DCR") for node in (m.first, m.second) if node.op_type == "DepthToSpace"}
    m.require(modes == {"DCR"}, "the channels are in another order")
    return m.x


@graph_optimizer(
    P.one_of("MaxPool", "AveragePool")(
        P.one_of("MaxPool", "AveragePool")("x", name="first").once(), name="second"
    ),
    tag="E2",
)
def merge_pools(m: Match, rw: Rewriter) -> Value:
    """MaxPool<2>(MaxPool<3>(x)) -> MaxPool<6>(x), and of AveragePool, of windows side by side"""
    m.require(m.first.op_type == m.second.op_type, "they are of two kinds")
    m.require(len(m.first.outputs) == len(m.second.outputs) == 1, "indices are used")
    kernels = []
    for node in (m.first, m.second):
        kernel = tuple(node.attr("kernel_shape"))
        ones = (1,) * len(kernel)
        m.require(tuple(node.attr("strides", ones)) == kernel, "the windows are not side by side")
        m.require(set(node.attr("dilations", ones)) == {1}, "the windows are not side by side")
        plain = not node.attr("ceil_mode", 0) and node.attr("auto_pad", "NOTSET") in ("NOTSET", "VALID")
        m.require(plain and not any(node.attr("pads", ())), "they pad")
        kernels.append(kernel)
    merged = [a * b for a, b in zip(*kernels, strict=True)]
    attributes: dict[str, Any] = {"kernel_shape": merged, "strides": merged}
    made: Value = getattr(rw.op, m.first.op_type)(m.x, **attributes)
    return made


@graph_optimizer(
    P.one_of("Flatten", "Reshape")(
        P.one_of("ReduceMean", "ReduceMax", "ReduceMin", "ReduceSum", "ReduceL2")(
            "x", P.maybe("axes"), name="reduce"
        ).once(),
        P.rest("target"),
    ),
    tag="E0",
)
def drop_axes_at_once(m: Match, rw: Rewriter) -> Value:
    """Flatten(ReduceMean(x, axes)) -> ReduceMean(x, axes, keepdims=0), where it drops the reduced axes"""
    m.require(m.reduce.attr("keepdims", 1), "an axis is dropped")
    shape = shape_of(m, m.reduce.value())
    axes = ints_of(m, m.reduce, "axes", 1)
    m.require(axes, "all axes are reduced")
    reduced = {axis % len(shape) for axis in axes or ()}
    left = tuple(dim for axis, dim in enumerate(shape) if axis not in reduced)
    m.require(left == shape_of(m, m.root.value()), "the result has another shape")
    attributes = {**m.reduce.attributes, "keepdims": 0}
    made: Value = getattr(rw.op, m.reduce.op_type)(m.x, m.axes, **attributes)
    return made
