"""Operators that return one of their inputs unchanged."""

from __future__ import annotations

from harness import Setup, rows, table_test

from passes.identity import (
    drop_dropout,
    drop_empty_operands,
    drop_gather_of_everything,
    drop_identity,
    drop_involution,
    drop_noop_pad,
    drop_noop_resize,
    drop_noop_slice,
    drop_noop_transpose,
    drop_noop_view,
    drop_reduction_of_nothing,
    drop_repeated_operator,
    drop_single_operand,
    drop_single_split,
    drop_unit_blocks,
    drop_unit_pool,
)

FLAT = Setup("float[N,4] x, float[] v, int64[K] k, bool t, bool[N] c, int32[N] i")
OLD = Setup("float[N,4] x", opset=9)
OLDEST = Setup("float[N,4] x", opset=6, ort=False)
IMAGE = Setup("float[N,4,H,W] x, float[M] free, int64[P] p, float[N,0,H,W] none")
ONES = Setup("float[N,4,1,1] x, float[N,C,1,S] s", opset=13)
LATER = Setup("float[N,4] x, int32[N] i", opset=18)
ODD = Setup("float[N,4,3,5] x", opset=11)

ROWS = [
    *rows(
        drop_identity,
        FLAT,
        [
            ("output", "a = Relu(x) y = Identity(a)", "y = Relu(x)"),
            (
                "output-and-more",
                "a = Identity(x) b = Identity(a) y = Neg(a) y2 = Exp(b)",
                "y = Neg(x) y2 = Exp(x)",
            ),
            (
                "inside",
                "a = Relu(x) b = Identity(a) y = Neg(b) y2 = Exp(b)",
                "a = Relu(x) y = Neg(a) y2 = Exp(a)",
            ),
            (
                "in-a-body",
                (
                    "y = If(t) <then_branch = a () => (float[N,4] o) { q = Identity(x) o = Relu(q) }, "
                    "else_branch = b () => (float[N,4] p) { p = Neg(x) }>"
                ),
                (
                    "y = If(t) <then_branch = a () => (float[N,4] o) { o = Relu(x) }, "
                    "else_branch = b () => (float[N,4] p) { p = Neg(x) }>"
                ),
            ),
        ],
        [
            ("input", "y = Identity(x)", "it only gives an output its name"),
            ("two-names", "y = Relu(x) y2 = Identity(y)", "it only gives an output its name"),
            (
                "captured",
                (
                    "y = If(t) <then_branch = a () => (float[N,4] o) { o = Identity(x) }, "
                    "else_branch = b () => (float[N,4] p) { p = Neg(x) }>"
                ),
                "it only gives an output its name",
            ),
        ],
    ),
    *rows(
        drop_dropout,
        FLAT,
        [
            ("plain", "y = Dropout(x)", "y = Identity(x)"),
            ("ratio", "a = Dropout(x, f32(0.5)) y = Relu(a)", "y = Relu(x)"),
            ("not-training", "a, q = Dropout(x, f32(0.5), bool(false)) y = Relu(a)", "y = Relu(x)"),
        ],
        [
            ("training", "y = Dropout(x, f32(0.0), bool(true))", "dropout is in training mode"),
            ("mask", "a, q = Dropout(x) y = Relu(a) y2 = Not(q)", "the mask is used"),
            ("unknown", "y = Dropout(x, f32(0.0), t)", "whether dropout trains is not known"),
        ],
    ),
    *rows(drop_dropout, OLD, [("old", "y = Dropout<ratio=0.5>(x)", "y = Identity(x)")]),
    *rows(
        drop_dropout,
        OLDEST,
        [("test", "y = Dropout<is_test=1>(x)", "y = Identity(x)")],
        [("train", "y = Dropout(x)", "dropout is in training mode")],
    ),
    *rows(
        drop_noop_view,
        FLAT,
        [
            ("reshape-minus-one", "a = Reshape(x, i64([-1, 4])) y = Relu(a)", "y = Relu(x)"),
            ("reshape-zero", "a = Reshape(x, i64([0, 0])) y = Relu(a)", "y = Relu(x)"),
            ("reshape-own-shape", "s = Shape(x) a = Reshape(x, s) y = Relu(a)", "y = Relu(x)"),
            ("flatten", "a = Flatten(x) y = Relu(a)", "y = Relu(x)"),
            ("expand", "a = Expand(x, i64([1, 4])) y = Relu(a)", "y = Relu(x)"),
            ("expand-lower-rank", "a = Expand(x, i64([1])) y = Relu(a)", "y = Relu(x)"),
            ("tile", "a = Tile(x, i64([1, 1])) y = Relu(a)", "y = Relu(x)"),
        ],
        [
            ("other-rank", "y = Reshape(x, i64([-1]))", "the shape may change"),
            ("expand-of-one", "y = Expand(x, i64([2, 1, 4]))", "the shape may change"),
            ("expand-unknown", "y = Expand(x, i64([7, 4]))", "the shape may change"),
            ("input", "y = Reshape(x, k)", "the shape may change"),
            ("squeeze", "y = Squeeze(v)", "the shape may change"),
        ],
    ),
    *rows(
        drop_noop_transpose,
        FLAT,
        [("perm", "a = Transpose<perm=[0,1]>(x) y = Relu(a)", "y = Relu(x)")],
        [
            ("swap", "y = Transpose<perm=[1,0]>(x)", "the axes are permuted"),
            ("reverse", "y = Transpose(x)", "without perm the axes are reversed"),
        ],
    ),
    *rows(drop_noop_transpose, Setup("float[N] x"), [("vector", "y = Transpose(x)", "y = Identity(x)")]),
    *rows(
        drop_noop_slice,
        FLAT,
        [
            (
                "to-the-end",
                "a = Slice(x, i64([0]), i64([9223372036854775807]), i64([0])) y = Relu(a)",
                "y = Relu(x)",
            ),
            ("all", "a = Slice(x, i64([0]), i64([4]), i64([1]), i64([1])) y = Relu(a)", "y = Relu(x)"),
        ],
        [
            ("reversed", "y = Slice(x, i64([-1]), i64([-9]), i64([1]), i64([-1]))", "a step is negative"),
            ("part", "y = Slice(x, i64([1]), i64([4]), i64([1]))", "something may be cut off"),
            ("dynamic", "y = Slice(x, i64([0]), i64([2]), i64([0]))", "something may be cut off"),
            ("step", "y = Slice(x, i64([0]), i64([4]), i64([1]), k)", "the steps are not known"),
        ],
    ),
    *rows(
        drop_noop_slice,
        OLD,
        [("attributes", "a = Slice<starts=[0], ends=[4], axes=[1]>(x) y = Relu(a)", "y = Relu(x)")],
    ),
    *rows(
        drop_noop_pad,
        IMAGE,
        [("input", "a = Pad(x, i64([0,0,0,0,0,0,0,0])) y = Relu(a)", "y = Relu(x)")],
        [
            ("shift", "y = Pad(x, i64([0,0,1,0,0,0,-1,0]))", "something is padded"),
            ("unknown", "y = Pad(x, p)", "the pads are not known"),
        ],
    ),
    *rows(drop_noop_pad, OLD, [("attribute", "a = Pad<pads=[0,0,0,0]>(x) y = Relu(a)", "y = Relu(x)")]),
    *rows(
        drop_single_operand,
        FLAT,
        [
            ("concat", "a = Concat<axis=0>(x) y = Relu(a)", "y = Relu(x)"),
            ("max", "a = Max(x) y = Relu(a)", "y = Relu(x)"),
            ("sum", "a = Sum(x) y = Relu(a)", "y = Relu(x)"),
        ],
    ),
    *rows(
        drop_single_split,
        FLAT,
        [("one", "a = Split<axis=1>(x, i64([4])) y = Relu(a)", "y = Relu(x)")],
        [("two", "y, y2 = Split<axis=1>(x)", "there are several pieces")],
    ),
    *rows(
        drop_empty_operands,
        IMAGE,
        [
            ("one-left", "a = Concat<axis=1>(none, x) y = Relu(a)", "y = Relu(x)"),
            ("two-left", "y = Concat<axis=-3>(x, none, x)", "y = Concat<axis=-3>(x, x)"),
        ],
        [
            ("maybe", "y = Concat<axis=0>(x, x)", "no operand is proven empty"),
            ("all", "y = Concat<axis=1>(none, none)", "no operand is proven empty"),
        ],
    ),
    *rows(drop_empty_operands, FLAT, [], [("rank", "y = Concat<axis=0>(v, x)", "the rank is not known")]),
    *rows(
        drop_gather_of_everything,
        FLAT,
        [
            ("arange", "a = Gather<axis=1>(x, i64([0,1,2,3])) y = Relu(a)", "y = Relu(x)"),
            ("negative", "a = Gather<axis=-1>(x, i64([0,1,-2,-1])) y = Relu(a)", "y = Relu(x)"),
        ],
        [
            ("order", "y = Gather<axis=1>(x, i64([0,1,3,2]))", "the order changes"),
            ("dynamic", "y = Gather<axis=0>(x, i64([0,1]))", "not every index is taken"),
            ("rank", "y = Gather(v, i64([0]))", "the rank is not known"),
        ],
    ),
    *rows(
        drop_noop_resize,
        ODD,
        [
            ("linear", 'a = Resize<mode="linear">(x, f32([]), f32([1,1,1,1])) y = Relu(a)', "y = Relu(x)"),
            ("sizes", "s = Shape(x) a = Resize(x, f32([]), f32([]), s) y = Relu(a)", "y = Relu(x)"),
        ],
        [
            ("scaled", "y = Resize(x, f32([]), f32([1,1,2,2]))", "it is scaled"),
            ("rounded-to-the-same", "y = Resize(x, f32([]), f32([1,1,1.1,1.1]))", "it is scaled"),
            ("sizes", "y = Resize(x, f32([]), f32([]), i64([2,4,3,6]))", "the shape may change"),
            (
                "crop",
                (
                    'y = Resize<coordinate_transformation_mode="tf_crop_and_resize">(x, '
                    "f32([0,0,0,0,1,1,1,1]), f32([1,1,1,1]))"
                ),
                "a region is cropped",
            ),
        ],
    ),
    *rows(
        drop_noop_resize,
        Setup("float[N,4,3,5] x, float[4] s", opset=18),
        [
            (
                "absent",
                "a = Resize(x, , , i64([3,5])) y = Relu(a)".replace("Resize", "Resize<axes=[2,3]>"),
                "y = Relu(x)",
            )
        ],
        [
            (
                "aspect",
                'y = Resize<axes=[2,3], keep_aspect_ratio_policy="not_smaller">(x, , , i64([3,5]))',
                "the aspect ratio is kept",
            ),
            ("unknown", "y = Resize(x, , s)", "the scales are not known"),
        ],
    ),
    *rows(
        drop_noop_resize,
        Setup("float[N,4,3,5] x", opset=9),
        [("upsample", "a = Upsample(x, f32([1,1,1,1])) y = Relu(a)", "y = Relu(x)")],
    ),
    *rows(
        drop_unit_blocks,
        IMAGE,
        [("unit", "a = DepthToSpace<blocksize=1>(x) y = Relu(a)", "y = Relu(x)")],
    ),
    *rows(
        drop_unit_pool,
        IMAGE,
        [
            ("max", "a = MaxPool<kernel_shape=[1,1]>(x) y = Relu(a)", "y = Relu(x)"),
            ("average", "a = AveragePool<kernel_shape=[1,1], strides=[1,1]>(x) y = Relu(a)", "y = Relu(x)"),
        ],
        [
            ("window", "y = MaxPool<kernel_shape=[2,1]>(x)", "the window holds several elements"),
            ("stride", "y = MaxPool<kernel_shape=[1,1], strides=[2,1]>(x)", "it skips elements"),
            (
                "pads",
                "y = AveragePool<kernel_shape=[1,1], pads=[0,1,0,0], count_include_pad=1>(x)",
                "it is padded",
            ),
            ("indices", "y, y2 = MaxPool<kernel_shape=[1,1]>(x)", "the indices are used"),
        ],
    ),
    *rows(
        drop_reduction_of_nothing,
        ONES,
        [
            ("mean", "a = ReduceMean<axes=[2,3]>(x) y = Relu(a)", "y = Relu(x)"),
            ("sum", "a = ReduceSum(s, i64([2])) y = Relu(a)", "y = Relu(s)"),
            ("noop", "a = ReduceSum<noop_with_empty_axes=1>(s) y = Relu(a)", "y = Relu(s)"),
            ("pool", "a = GlobalAveragePool(x) y = Relu(a)", "y = Relu(x)"),
        ],
        [
            ("dynamic", "y = ReduceMax<axes=[3]>(s)", "the shape may change"),
            ("squeezed", "y = ReduceMax<axes=[2], keepdims=0>(s)", "the shape may change"),
        ],
    ),
    *rows(
        drop_repeated_operator,
        LATER,
        [
            ("relu", "a = Relu(x) y = Relu(a)", "y = Relu(x)"),
            ("abs", "a = Abs(x) y = Abs(a)", "y = Abs(x)"),
            ("mixed-rounding", "a = Floor(x) y = Ceil(a)", "y = Floor(x)"),
        ],
    ),
    *rows(
        drop_involution,
        LATER,
        [
            ("neg", "a = Neg(x) y = Neg(a)", "y = Identity(x)"),
            ("shared", "a = Neg(x) b = Neg(a) y = Relu(b) y2 = Exp(a)", "y = Relu(x) a = Neg(x) y2 = Exp(a)"),
            ("bits", "a = BitwiseNot(i) b = BitwiseNot(a) y = Neg(b)", "y = Neg(i)"),
        ],
    ),
]

test_rows = table_test(ROWS)
