"""Softmax between views that make its rows."""

from __future__ import annotations

from harness import Setup, rows, table_test

from passes.idiom_softmax import drop_views_around_softmax

X = Setup("float[N,4,1,1] x, float[N,3,4] s", rtol=1e-6)
OLD = Setup("float[2,3,4] s", opset=12)
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
]

test_rows = table_test(ROWS)
