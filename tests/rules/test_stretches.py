"""Values made larger by repeating what they hold."""

from __future__ import annotations

from harness import Setup, rows, table_test

from passes.stretches import (
    drop_filling_before_broadcast,
    drop_tile_before_broadcast,
    merge_expands,
    merge_tiles,
)

X = Setup(
    (
        "float[N,4,6,6] x, float[1,4,1,1] o, float[N,S] s, int64[2] target, float[2,1] "
        "k, float[N,4,12,12] p, float[2,1,1] t"
    ),
)
OLD = Setup("float[2,4] x", opset=6)
SHAPE = "w = Shape(s) a = ConstantOfShape{0}(w)"

ROWS = [
    *rows(
        drop_filling_before_broadcast,
        X,
        [
            ("zeros", f"{SHAPE.format('')} y = Add(a, s)", "y = Add(f32(0), s)"),
            (
                "value",
                f"{SHAPE.format('<value=float[1]{3}>')} y = Sub(s, a)".replace("{{", "{").replace("}}", "}"),
                "y = Sub(s, f32(3))",
            ),
        ],
        [("stretched", "a = ConstantOfShape(target) y = Add(a, s)", "the other operand is stretched")],
    ),
    *rows(
        drop_filling_before_broadcast,
        OLD,
        [],
        [
            (
                "old",
                "w = Shape(x) a = ConstantOfShape(w) y = Add(a, x)",
                "elementwise operators broadcast differently before opset 7",
            )
        ],
    ),
    *rows(
        drop_tile_before_broadcast,
        X,
        [("pixels", "a = Tile(o, i64([1,1,6,6])) y = Mul(x, a)", "y = Mul(x, o)")],
        [
            (
                "batch",
                "a = Tile(o, i64([3,1,6,6])) y = Mul(x, a)",
                "the other operand does not stretch it as far",
            ),
            (
                "channels",
                "a = Tile(o, i64([1,2,1,1])) y = Mul(o, a)".replace("Mul(o", "Mul(k"),
                "the other operand does not stretch it as far",
            ),
        ],
    ),
    *rows(
        drop_tile_before_broadcast,
        OLD,
        [],
        [
            (
                "old",
                "a = Tile(x, i64([1,1])) y = Add(a, x)",
                "elementwise operators broadcast differently before opset 7",
            )
        ],
    ),
    *rows(
        merge_tiles,
        X,
        [("two", "a = Tile(s, i64([2,1])) y = Tile(a, i64([3,2]))", "y = Tile(s, i64([6,2]))")],
    ),
    *rows(
        merge_expands,
        X,
        [("two", "a = Expand(k, i64([2,3])) y = Expand(a, i64([4,1,1]))", "y = Expand(k, i64([4,2,3]))")],
        [
            (
                "unknown",
                "a = Expand(k, i64([1,1])) y = Expand(a, target)",
                "the shape of the result is not known",
            )
        ],
    ),
]

test_rows = table_test(ROWS)
