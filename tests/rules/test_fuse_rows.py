"""Products of rows: without views around them, and two in a row."""

from __future__ import annotations

import numpy as np
from harness import Setup, rows, table_test

from optimizer.rewrite import Settings
from passes.fuse_rows import (
    drop_views_around_gemm,
    drop_views_around_matmul,
    merge_convs,
    merge_gemms,
    merge_products,
)

X = Setup(
    "float[B,S,4] x, float[N,4] flat, float[N,6] six, int32[N,4] i, float[N,4,5,5] image",
    sizes=[{"B": 2, "S": 3, "N": 2}],
    rtol=1e-4,
)
OLD = Setup("float[2,3,4] x", opset=6)
TEN = Setup("float[3,4] flat", opset=10)
TIGHT = Setup(
    "float[B,S,4] x, float[N,4] flat, float[N,4,5,5] image",
    constants={
        "w": np.ones((4, 30), np.float32),
        "v": np.ones((30, 4), np.float32),
        "k": np.ones((4, 4, 1, 1), np.float32),
        "g": np.ones((4, 4, 3, 3), np.float32),
    },
    settings=Settings(growth=0),
    sizes=X.sizes,
)
ROWS_OF_TOKENS = Setup("float[6,4] r, int32[B,S,4] i", rtol=1e-5)
W = "f32(normal(4,6))"
ROWS = [
    *rows(
        drop_views_around_gemm,
        X,
        [
            (
                "with-bias",
                (
                    f"f = Reshape(x, i64([-1,4])) g = Gemm(f, {W}, f32(normal(6))) s = Shape<end=2>(x) "
                    "t = Concat<axis=0>(s, i64([6])) y = Reshape<allowzero=1>(g, t)"
                ),
                "a = MatMul(x, _) y = Add(a, _)",
            ),
            (
                "transposed",
                (
                    "f = Flatten<axis=2>(x) g = Gemm<transB=1>(f, f32(normal(6,4))) s = Shape<end=2>(x) "
                    "t = Concat<axis=0>(s, i64([6])) y = Reshape<allowzero=1>(g, t)"
                ),
                "y = MatMul(x, _)",
            ),
            (
                "split-further",
                (
                    f"f = Reshape(x, i64([-1,4])) g = Gemm(f, {W}) s = Shape<end=2>(x) "
                    "t = Concat<axis=0>(s, i64([2,3])) y = Reshape<allowzero=1>(g, t)"
                ),
                "a = MatMul(x, _) y = Reshape(a, i64([0,0,2,3]))",
            ),
        ],
        [
            (
                "scaled",
                (
                    f"f = Reshape(x, i64([-1,4])) g = Gemm<alpha=2.0>(f, {W}) s = Shape<end=2>(x) "
                    "t = Concat<axis=0>(s, i64([6])) y = Reshape<allowzero=1>(g, t)"
                ),
                "the product is scaled, or of the transposed rows",
            ),
            (
                "joins-features",
                "f = Reshape(x, i64([-1,2])) g = Gemm(f, f32(normal(2,6))) y = Reshape(g, i64([2,-1,6]))",
                "the view does more than join the leading axes",
            ),
            (
                "stays-flat",
                f"f = Reshape(x, i64([-1,4])) g = Gemm(f, {W}) y = Reshape(g, i64([-1,3,2]))",
                "the leading axes are not split again",
            ),
            (
                "bias-of-rows",
                (
                    f"f = Reshape(x, i64([-1,4])) g = Gemm(f, {W}, f32(normal(6,1))) s = Shape<end=2>(x) "
                    "t = Concat<axis=0>(s, i64([6])) y = Reshape<allowzero=1>(g, t)"
                ),
                "the rows have different biases",
            ),
        ],
    ),
    *rows(
        drop_views_around_gemm,
        OLD,
        (),
        [
            (
                "old",
                (
                    f"f = Reshape(x, i64([6,4])) g = Gemm<broadcast=1>(f, {W}, f32(normal(6))) y = "
                    f"Reshape(g, i64([2,3,6]))"
                ),
                "Gemm broadcasts differently before opset 7",
            )
        ],
    ),
    *rows(
        merge_products,
        X,
        [
            ("two", "a = MatMul(x, f32(normal(4,8))) y = MatMul(a, f32(normal(8,3)))", "y = MatMul(x, _)"),
            (
                "bias",
                "a = MatMul(x, f32(normal(4,8))) b = Add(f32(normal(8)), a) y = MatMul(b, f32(normal(8,3)))",
                "a = MatMul(x, _) y = Add(a, _)",
            ),
        ],
        [
            (
                "bottleneck",
                "a = MatMul(x, f32(normal(4,1))) y = MatMul(a, f32(normal(1,6)))",
                "one product would be more work",
            ),
            (
                "batched",
                "a = MatMul(x, f32(normal(4,8))) y = MatMul(a, f32(normal(1,8,3)))",
                "not both are matrices",
            ),
            (
                "integers",
                "a = MatMul(i, i32([[1,2],[3,4],[1,1],[2,2]])) y = MatMul(a, i32([[1],[2]]))",
                "not a float",
            ),
            (
                "bias-widens",
                "a = MatMul(x, f32(normal(4,1))) b = Add(a, f32(normal(6))) y = MatMul(b, f32(normal(6,3)))",
                "the bias widens the rows",
            ),
            (
                "bias-of-rows",
                (
                    "a = MatMul(x, f32(normal(4,8))) b = Add(f32(normal(1,8)), a) "
                    "y = MatMul(b, f32(normal(8,3)))"
                ),
                "the rows have different biases",
            ),
        ],
    ),
    *rows(
        merge_products,
        TIGHT,
        (),
        [
            (
                "shared",
                "a = MatMul(x, w) b = MatMul(a, v) y = MatMul(flat, w) y2 = Identity(v) y3 = Identity(b)",
                "the growth budget is used up",
            )
        ],
    ),
    *rows(
        merge_gemms,
        X,
        [
            (
                "two",
                (
                    "a = Gemm(flat, f32(normal(4,8)), f32(normal(8))) y = Gemm<transB=1>(a, "
                    "f32(normal(3,8)), f32(1))"
                ),
                "y = Gemm<transA=0>(flat, _, _)",
            )
        ],
        [
            (
                "integers",
                "a = Gemm(i, i32([[1,2],[3,4],[1,1],[2,2]])) y = Gemm(a, i32([[1],[2]]))",
                "not a float",
            ),
            (
                "bottleneck",
                "a = Gemm(flat, f32(normal(4,1))) y = Gemm(a, f32(normal(1,6)))",
                "one product would be more work",
            ),
            (
                "first-bias-of-rows",
                (
                    "a = Gemm(f32(normal(3,4)), f32(normal(4,8)), f32(normal(3,1))) "
                    "y = Gemm(a, f32(normal(8,3)))"
                ),
                "the rows have different biases",
            ),
            (
                "bias-of-rows",
                (
                    "a = Gemm(f32(normal(3,4)), f32(normal(4,8))) "
                    "y = Gemm(a, f32(normal(8,3)), f32(normal(3,1)))"
                ),
                "the rows have different biases",
            ),
            (
                "transposed",
                "a = Gemm(flat, f32(normal(4,8))) y = Gemm<transA=1>(a, f32(normal(2,1)))",
                "the left operand is transposed",
            ),
        ],
    ),
    *rows(
        merge_gemms,
        TEN,
        (),
        [
            (
                "ten",
                "a = Gemm(flat, f32(normal(4,8)), f32(1)) y = Gemm(a, f32(normal(8,3)), f32(1))",
                "Gemm needs a bias before opset 11",
            )
        ],
    ),
    *rows(
        merge_gemms,
        TIGHT,
        (),
        [
            (
                "shared",
                "a = Gemm(flat, w) b = Gemm(a, v) y = Gemm(flat, w) y2 = Identity(v) y3 = Identity(b)",
                "the growth budget is used up",
            )
        ],
    ),
    *rows(
        merge_convs,
        X,
        [
            (
                "point-then-window",
                (
                    "a = Conv(image, f32(normal(8,4,1,1)), f32(normal(8))) y = Conv(a, "
                    "f32(normal(3,8,3,3)), f32(normal(3)))"
                ),
                "y = Conv(image, _, _)",
            ),
            (
                "padded",
                "a = Conv(image, f32(normal(8,4,1,1))) y = Conv<pads=[1,1,1,1]>(a, f32(normal(3,8,3,3)))",
                "y = Conv<pads=[1,1,1,1]>(image, _)",
            ),
        ],
        [
            (
                "window",
                "a = Conv(image, f32(normal(8,4,3,3))) y = Conv(a, f32(normal(3,8,1,1)))",
                "the first kernel is more than one pixel",
            ),
            (
                "auto",
                (
                    'a = Conv<auto_pad="SAME_UPPER">(image, f32(normal(8,4,1,1))) y = Conv(a, '
                    "f32(normal(3,8,1,1)))"
                ),
                "the first kernel is more than one pixel",
            ),
            (
                "groups",
                "a = Conv<group=2>(image, f32(normal(8,2,1,1))) y = Conv(a, f32(normal(3,8,1,1)))",
                "the convolution has groups",
            ),
            (
                "bottleneck",
                "a = Conv(image, f32(normal(1,4,1,1))) y = Conv(a, f32(normal(6,1,3,3)))",
                "one product would be more work",
            ),
            (
                "shift",
                (
                    "a = Conv(image, f32(normal(8,4,1,1)), f32(normal(8))) "
                    "y = Conv<pads=[1,1,1,1]>(a, f32(normal(3,8,3,3)))"
                ),
                "a shift cannot cross zero padding",
            ),
        ],
    ),
    *rows(
        merge_convs,
        TIGHT,
        (),
        [
            (
                "shared",
                "a = Conv(image, k) b = Conv(a, g) y = Conv(image, k) y2 = Identity(g) y3 = Identity(b)",
                "the growth budget is used up",
            )
        ],
    ),
    *rows(
        drop_views_around_matmul,
        ROWS_OF_TOKENS,
        [
            (
                "tokens",
                "a = Reshape(r, i64([2,3,4])) b = MatMul(a, f32(normal(4,5))) y = Reshape(b, i64([6,5]))",
                "y = MatMul(r, f32(normal(4,5)))",
            )
        ],
        [
            (
                "integers",
                "a = Reshape(i, i64([1,-1,4])) b = MatMul(a, i32(ones(4,5))) y = Reshape(b, i64([-1,5]))",
                "not a float",
            ),
            (
                "batched",
                "a = Reshape(r, i64([2,3,4])) b = MatMul(a, f32(normal(2,4,5))) y = Reshape(b, i64([6,5]))",
                "the weights are no matrix",
            ),
            (
                "cut",
                "a = Reshape(r, i64([2,6,2])) b = MatMul(a, f32(normal(2,4))) y = Reshape(b, i64([6,8]))",
                "the rows are cut otherwise",
            ),
            (
                "other",
                "a = Reshape(r, i64([2,3,4])) b = MatMul(a, f32(normal(4,5))) y = Reshape(b, i64([3,10]))",
                "the result has another shape",
            ),
        ],
    ),
]

test_rows = table_test(ROWS)
