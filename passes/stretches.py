"""Values made larger by repeating what they hold: in front of operators that do so themselves, or twice."""

from __future__ import annotations

import numpy as np

from optimizer.ir import Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.known import constant_of, shape_of

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
