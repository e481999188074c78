"""Softmax between views that make its rows; expectations over one."""

from __future__ import annotations

from harness import Setup, rows, table_test

from passes.idiom_softmax import drop_views_around_softmax, replace_expectation_by_product

X = Setup("float[N,4,1,1] x, float[N,3,4] s", rtol=1e-6)
OLD = Setup("float[2,3,4] s", opset=12)
IMAGES = Setup("float[N,4,2,5] s", rtol=1e-5)
OLD_IMAGES = Setup("float[2,4,2,5] s", opset=10)
BACK = "w = Shape({0}) y = Reshape(b, w)"

ROWS = [
    *rows(
        drop_views_around_softmax,
        X,
        [
            ("channels", "a = Flatten(x) b = Softmax(a) " + BACK.format("x"), "y = Softmax<axis=1>(x)"),
            (
                "tokens",
                "a = Reshape(s, i64([-1,4])) b = LogSoftmax<axis=1>(a) " + BACK.format("s"),
                "y = LogSoftmax<axis=2>(s)",
            ),
        ],
        [
            ("two-axes", "a = Flatten(s) b = Softmax(a) " + BACK.format("s"), "a row is more than one axis"),
            (
                "columns",
                "a = Flatten(x) b = Softmax<axis=0>(a) " + BACK.format("x"),
                "a row is more than one axis",
            ),
            (
                "stays",
                "a = Flatten(x) b = Softmax(a) y = Reshape(b, i64([0,2,2]))",
                "the result has another shape",
            ),
        ],
    ),
    *rows(
        drop_views_around_softmax,
        OLD,
        (),
        [
            (
                "old",
                "a = Reshape(s, i64([-1,4])) b = Softmax(a) " + BACK.format("s"),
                "Softmax flattens before opset 13",
            )
        ],
    ),
    *rows(
        replace_expectation_by_product,
        IMAGES,
        [
            (
                "distribution",
                "t = Transpose<perm=[0,1,3,2]>(s) m = Softmax<axis=1>(t) y = Conv(m, f32(normal(1,4,1,1)))",
                (
                    "t = Transpose<perm=[0,1,3,2]>(s) u = Transpose<perm=[0,2,3,1]>(t) m = "
                    "Softmax<axis=-1>(u) "
                    "q = MatMul(m, _) y = Transpose<perm=[0,3,1,2]>(q)"
                ),
            )
        ],
        [
            (
                "outputs",
                "m = Softmax<axis=1>(s) y = Conv(m, f32(normal(2,4,1,1)))",
                "not a weight for each channel",
            ),
            (
                "padded",
                "m = Softmax<axis=1>(s) y = Conv<pads=[1,1,1,1]>(m, f32(normal(1,4,1,1)))",
                "not a weight for each channel",
            ),
            (
                "axis",
                "m = Softmax<axis=2>(s) y = Conv(m, f32(normal(1,4,1,1)))",
                "the softmax runs over another axis",
            ),
        ],
    ),
    *rows(
        replace_expectation_by_product,
        OLD_IMAGES,
        (),
        [
            (
                "old",
                "m = Softmax<axis=1>(s) y = Conv(m, f32(normal(1,4,1,1)))",
                "Softmax flattens before opset 13",
            )
        ],
    ),
]

test_rows = table_test(ROWS)
