"""The place of the largest of what only grows."""

from __future__ import annotations

from harness import Setup, rows, table_test

from passes.largest import (
    drop_monotone_before_argmax,
    drop_softmax_before_argmax,
    drop_softmax_before_topk,
)

X = Setup("float[N,4] x, float[4] o, int32[N,4] i")
OLD = Setup("float[N,4] x", opset=12)
FLATTENS = "Softmax flattens before opset 13"

ROWS = [
    *rows(
        drop_monotone_before_argmax,
        X,
        [
            ("sigmoid", "a = Sigmoid(x) y = ArgMax<axis=1>(a)", "y = ArgMax<axis=1>(x)"),
            ("scale", "a = Mul(x, f32(2)) y = ArgMax<axis=1>(a)", "y = ArgMax<axis=1>(x)"),
            ("shift", "a = Sub(x, f32(2)) y = ArgMax<axis=1>(a)", "y = ArgMax<axis=1>(x)"),
        ],
        [
            ("negative", "a = Div(x, f32(-2)) y = ArgMax<axis=1>(a)", "the order is turned around"),
            ("not-a-number", "a = Sqrt(x) y = ArgMax<axis=1>(a)", "it may be negative, and NaN then"),
            ("vector", "a = Add(x, f32([1,2,3,4])) y = ArgMax<axis=1>(a)", "it is not one number"),
            (
                "stretched",
                "a = Add(o, f32([[1],[2]])) y = ArgMax<axis=1>(a)",
                "a constant stretches the operand",
            ),
            ("integers", "a = Mul(i, i32(2)) y = ArgMax<axis=1>(a)", "not a float"),
        ],
    ),
    *rows(
        drop_softmax_before_topk,
        X,
        [("places", "a = Softmax(x) b2, y = TopK(a, i64([2]))", "b2, y = TopK(x, i64([2]))")],
        [
            ("numbers", "a = Softmax(x) y, y2 = TopK(a, i64([2]))", "the numbers are read"),
            (
                "axis",
                "a = Softmax<axis=0>(x) b2, y = TopK(a, i64([2]))",
                "the softmax runs over another axis",
            ),
            ("smallest", "a = Softmax(x) b2, y = TopK<largest=0>(a, i64([2]))", "the smallest are asked for"),
        ],
    ),
    *rows(
        drop_softmax_before_topk,
        OLD,
        [],
        [("old", "a = Softmax(x) b2, y = TopK(a, i64([2]))", FLATTENS)],
    ),
    *rows(
        drop_softmax_before_argmax,
        Setup("float[N,4] s"),
        [
            (
                "softmax",
                "a = Softmax<axis=-1>(s) y = ArgMax<axis=1>(a)".replace("y =", "b =") + " y = Cast<to=1>(b)",
                "b = ArgMax<axis=1>(s) y = Cast<to=1>(b)",
            ),
            (
                "smallest",
                "a = LogSoftmax(s) b = ArgMin<axis=-1>(a) y = Cast<to=1>(b)",
                "b = ArgMin<axis=-1>(s) y = Cast<to=1>(b)",
            ),
        ],
        [("axis", "a = Softmax(s) b = ArgMax(a) y = Cast<to=1>(b)", "the softmax runs over another axis")],
    ),
    *rows(
        drop_softmax_before_argmax,
        Setup("float[N,4] s", opset=12),
        (),
        [
            (
                "old",
                "a = Softmax(s) b = ArgMax<axis=1>(a) y = Cast<to=1>(b)",
                "Softmax flattens before opset 13",
            )
        ],
    ),
]

test_rows = table_test(ROWS)
