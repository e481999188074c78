"""Computed targets that are known: the hazards of empty and single dimensions above all."""

from __future__ import annotations

from harness import Setup, rows, table_test

from passes.target import (
    make_expand_target_constant,
    make_reshape_target_constant,
    make_resize_scales_constant,
    make_slice_bounds_constant,
)

EMPTY_TOO = [{"N": 2, "M": 3}, {"N": 1, "M": 1}, {"N": 0, "M": 3}]
X = Setup("float[N,M,12] x, float[1,M,12] o, int64[3] k, float[] v", sizes=EMPTY_TOO)
FULL = Setup("float[N,M,12] x, float[N,12] g, float[0] e", sizes=EMPTY_TOO[:2])
IMAGE = Setup(
    "float[N,C,H,W] x, float[N,4,H,W] i, int64[4] k, float[N,4,H,1] w",
    opset=13,
    sizes=[{"N": 2, "C": 3, "H": 4, "W": 6}, {"N": 1, "C": 1, "H": 2, "W": 2}],
)
OLD_IMAGE = Setup("float[N,4,H,W] i", opset=11, sizes=IMAGE.sizes)
OWN = Setup("float[N,M,12] x", imports='"own" : 1')
DIM = "s = Shape(x) {} = Gather(s, i64([{}])) "
N, M = DIM.format("n", 0), DIM.replace("s =", "s2 =").replace("(s,", "(s2,").format("m", 1)
HW = "s = Shape(i) h = Gather(s, i64([2])) w1 = Gather(s, i64([3])) "

ROWS = [
    *rows(
        make_reshape_target_constant,
        Setup(f"float[{2**60},1] p, float[{2**60}] q"),
        [],
        [
            (
                "overflow",
                (
                    "x = Mul(p, q) k = Mul(i64([1]), i64([1])) t = Concat<axis=0>(i64([-1]), k, k) "
                    "y = Reshape(x, t)"
                ),
                "the size of a dimension overflows",
            )
        ],
    ),
    *rows(
        make_reshape_target_constant,
        X,
        [
            (
                "split",
                N + M + "t = Concat<axis=0>(n, m, i64([3, 4])) y = Reshape(x, t)",
                "y = Reshape(x, i64([0, 0, 3, 4]))",
            ),
            (
                "merged",
                N + M + "p = Mul(n, m) t = Concat<axis=0>(p, i64([12])) y = Reshape(x, t)",
                "y = Reshape(x, i64([-1, 12]))",
            ),
            ("own-shape", "t = Shape(x) a = Reshape(x, t) y = Relu(a)", "y = Relu(x)"),
        ],
        [
            ("constant", "y = Reshape(x, i64([0, -1]))", "the target is constant already"),
            ("input", "y = Reshape(x, k)", "several dimensions of the target are not known"),
            (
                "swapped",
                N + M + "t = Concat<axis=0>(m, n, i64([12])) y = Reshape(x, t)",
                "several dimensions of the target are not known",
            ),
            (
                "rest-of-maybe-nothing",
                N + M + "p = Mul(m, i64([6])) t = Concat<axis=0>(n, p, i64([2])) y = Reshape(x, t)",
                "-1 may stand for anything in an empty tensor",
            ),
            ("no-rank", "n = Size(x) t = Reshape(n, i64([1])) y = Reshape(v, t)", "the rank is not known"),
        ],
    ),
    *rows(
        make_reshape_target_constant,
        FULL,
        [
            (
                "given-rest",
                N + "t = Concat<axis=0>(n, i64([-1])) y = Reshape(x, t)",
                "y = Reshape(x, i64([0, -1]))",
            ),
            (
                "flat",
                (
                    "s = Shape(g) n = Gather(s, i64([0])) p = Mul(n, i64([3])) "
                    "t = Concat<axis=0>(p, i64([4])) y = Reshape(g, t)"
                ),
                "y = Reshape(g, i64([-1, 4]))",
            ),
        ],
        [
            (
                "empty",
                "s = Shape(e) t = Concat<axis=0>(i64([3]), s) y = Reshape<allowzero=1>(e, t)",
                "the result is empty where the operand is not",
            ),
        ],
    ),
    *rows(
        make_expand_target_constant,
        X,
        [
            (
                "kept",
                N + "t = Concat<axis=0>(i64([5]), n, i64([1, 1])) y = Expand(x, t)",
                "y = Expand(x, i64([5, 1, 1, 1]))",
            ),
            (
                "wider",
                M + "t = Concat<axis=0>(i64([2]), m, i64([12])) y = Expand(o, t)",
                "y = Expand(o, i64([2, 1, 1]))",
            ),
        ],
        [
            ("constant", "y = Expand(x, i64([3, 1, 1, 1]))", "the target is constant already"),
            (
                "dynamic",
                N + "t = Concat<axis=0>(n, i64([1, 1])) y = Expand(o, t)",
                "x is expanded to a dimension that is not known",
            ),
        ],
    ),
    *rows(
        make_slice_bounds_constant,
        X,
        [
            (
                "whole-axis",
                M + "y = Slice(x, i64([1]), m, i64([1]))",
                "y = Slice(x, i64([1]), i64([9223372036854775807]), i64([1]), i64([1]))",
            ),
            (
                "static-size",
                (
                    "s = Shape(x) e = Gather(s, i64([2])) d = Div(e, "
                    "i64([2])) y = Slice(x, i64([0]), d, i64([2]))"
                ),
                "y = Slice(x, i64([0]), i64([6]), i64([2]), i64([1]))",
            ),
        ],
        [
            ("constant", "y = Slice(x, i64([0]), i64([1]))", "the bounds are constant already"),
            ("half", M + "d = Div(m, i64([2])) y = Slice(x, i64([0]), d, i64([1]))", "a bound is not known"),
            (
                "minus-one",
                M + "d = Sub(m, i64([1])) y = Slice(x, i64([0]), d, i64([1]))",
                "a bound is not known",
            ),
            ("input", "y = Slice(x, i64([0]), k, i64([1]))", "a bound is not known"),
            ("step", M + "y = Slice(x, m, i64([0]), i64([1]), i64([-1]))", "a step is negative"),
            (
                "axes",
                "t = Shape<start=1, end=2>(x) y = Slice(x, i64([0]), t, t)",
                "the axes and steps are not known",
            ),
        ],
    ),
    *rows(
        make_resize_scales_constant,
        IMAGE,
        [
            (
                "double",
                HW + "a = Mul(h, i64([2])) b = Mul(w1, i64([3])) n = Gather(s, i64([0])) "
                't = Concat<axis=0>(n, i64([4]), a, b) y = Resize<mode="nearest">(i, , , t)',
                'y = Resize<mode="nearest">(i, , f32([1, 1, 2, 3]))',
            )
        ],
        [
            ("scales", "y = Resize(i, , f32([1, 1, 2, 2]))", "no sizes are computed"),
            ("constant", "y = Resize(i, , , i64([2, 4, 8, 8]))", "no sizes are computed"),
            ("input", "y = Resize(i, , , k)", "an axis is not scaled by a whole number"),
            (
                "crop",
                (
                    't = Shape(i) y = Resize<coordinate_transformation_mode="tf_crop_and_resize">(i, '
                    "f32([0,0,0,0,1,1,1,1]), , t)"
                ),
                "a region is cropped",
            ),
        ],
    ),
    *rows(
        make_resize_scales_constant,
        OLD_IMAGE,
        [
            (
                "with-region",
                HW + "a = Mul(h, i64([2])) n = Gather(s, i64([0])) "
                't = Concat<axis=0>(n, i64([4]), a, w1) y = Resize<mode="nearest">(i, f32([]), f32([]), t)',
                'y = Resize<mode="nearest">(i, f32([]), f32([1, 1, 2, 1]))',
            )
        ],
    ),
    *rows(
        make_resize_scales_constant,
        Setup("float[N,4,H,W] i", opset=18, sizes=IMAGE.sizes),
        [],
        [
            (
                "axes",
                HW + "t = Concat<axis=0>(h, w1) y = Resize<axes=[2,3]>(i, , , t)",
                "only some axes are resized",
            ),
            (
                "aspect",
                't = Shape(i) y = Resize<keep_aspect_ratio_policy="not_larger">(i, , , t)',
                "the aspect ratio is kept",
            ),
        ],
    ),
]

test_rows = table_test(ROWS)
