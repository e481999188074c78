"""Values made larger by repeating what they hold."""

from __future__ import annotations

from harness import Setup, rows, table_test

from passes.stretches import (
    drop_axes_at_once,
    drop_blocks_there_and_back,
    drop_filling_before_broadcast,
    drop_tile_before_broadcast,
    merge_expands,
    merge_pools,
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
    *rows(
        drop_blocks_there_and_back,
        X,
        [
            (
                "there",
                "a = DepthToSpace<blocksize=2>(x) b = SpaceToDepth<blocksize=2>(a) y = Relu(b)",
                "y = Relu(x)",
            ),
            (
                "back",
                "a = SpaceToDepth<blocksize=3>(x) b = DepthToSpace<blocksize=3>(a) y = Relu(b)",
                "y = Relu(x)",
            ),
        ],
        [
            (
                "blocks",
                "a = SpaceToDepth<blocksize=6>(x) y = DepthToSpace<blocksize=2>(a)",
                "the blocks differ",
            ),
            (
                "mode",
                'a = DepthToSpace<blocksize=2, mode="CRD">(x) y = SpaceToDepth<blocksize=2>(a)',
                "the channels are in another order",
            ),
        ],
    ),
    *rows(
        merge_pools,
        X,
        [
            (
                "maxima",
                (
                    "a = MaxPool<kernel_shape=[2,3], strides=[2,3]>(p) y = "
                    "MaxPool<kernel_shape=[2,1], strides=[2,1]>(a)"
                ),
                "y = MaxPool<kernel_shape=[4,3], strides=[4,3]>(p)",
            ),
            (
                "means",
                (
                    "a = AveragePool<kernel_shape=[2,2], strides=[2,2]>(p) "
                    "y = AveragePool<kernel_shape=[3,3], strides=[3,3]>(a)"
                ),
                "y = AveragePool<kernel_shape=[6,6], strides=[6,6]>(p)",
            ),
        ],
        [
            (
                "kinds",
                (
                    "a = MaxPool<kernel_shape=[2,2], strides=[2,2]>(p) "
                    "y = AveragePool<kernel_shape=[2,2], strides=[2,2]>(a)"
                ),
                "they are of two kinds",
            ),
            (
                "indices",
                (
                    "a = MaxPool<kernel_shape=[2,2], strides=[2,2]>(p) "
                    "y, y2 = MaxPool<kernel_shape=[2,2], strides=[2,2]>(a)"
                ),
                "indices are used",
            ),
            (
                "overlap",
                "a = MaxPool<kernel_shape=[2,2]>(p) y = MaxPool<kernel_shape=[2,2], strides=[2,2]>(a)",
                "the windows are not side by side",
            ),
            (
                "pads",
                (
                    "a = MaxPool<kernel_shape=[2,2], strides=[2,2], pads=[1,1,1,1]>(p) "
                    "y = MaxPool<kernel_shape=[2,2], strides=[2,2]>(a)"
                ),
                "they pad",
            ),
        ],
    ),
    *rows(
        drop_axes_at_once,
        X,
        [
            (
                "flatten",
                "a = ReduceMean<axes=[2,3]>(x) y = Flatten(a)",
                "y = ReduceMean<axes=[2,3], keepdims=0>(x)",
            ),
            (
                "reshape",
                "a = ReduceMax<axes=[1]>(t) y = Reshape(a, i64([2,1]))",
                "y = ReduceMax<axes=[1], keepdims=0>(t)",
            ),
        ],
        [
            (
                "dropped",
                "a = ReduceMean<axes=[2], keepdims=0>(x) y = Flatten(a)",
                "an axis is dropped",
            ),
            ("all", "a = ReduceMean(x) y = Flatten(a)", "all axes are reduced"),
            ("rows", "a = ReduceMean<axes=[3]>(x) y = Flatten(a)", "the result has another shape"),
        ],
    ),
    *rows(
        drop_axes_at_once,
        Setup("float[N,4,6,6] x", opset=18),
        [
            (
                "axes",
                "a = ReduceMean(x, i64([2,3])) y = Flatten(a)",
                "y = ReduceMean<keepdims=0>(x, i64([2,3]))",
            )
        ],
    ),
]

test_rows = table_test(ROWS)
