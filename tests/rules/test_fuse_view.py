"""Elementwise operators between two views that undo each other."""

from __future__ import annotations

from harness import Setup, rows, table_test

from passes.fuse_view import drop_views_around_binary, drop_views_around_constant, drop_views_around_unary

X = Setup("float[N,3,4] x, float[6,3,4] z, float[1,3,4] one")
V6 = Setup("float[6,3,4] z", opset=6)
THERE = "a = Unsqueeze(x, i64([0, 2]))"
BACK = "y = Squeeze(b, i64([0, 2]))"

ROWS = [
    *rows(
        drop_views_around_unary,
        X,
        [
            (
                "unary",
                "a = Reshape(x, i64([0, 12])) b = Relu(a) y = Reshape(b, i64([0, 3, 4]))",
                "y = Relu(x)",
            ),
            (
                "settings",
                "a = Flatten(x) b = Clip(a, f32(0), f32(1)) y = Reshape(b, i64([0, 3, 4]))",
                "y = Clip(x, f32(0), f32(1))",
            ),
        ],
        [
            (
                "another-shape",
                "a = Reshape(x, i64([0, 12])) b = Relu(a) y = Reshape(b, i64([0, 4, 3]))",
                "the result has another shape",
            ),
        ],
    ),
    *rows(
        drop_views_around_constant,
        X,
        [
            ("put-in", f"{THERE} b = Add(a, f32(normal(3,1))) {BACK}", "y = Add(x, _)"),
            ("left", f"{THERE} b = Sub(f32(normal(3,4)), a) {BACK}", "y = Sub(_, x)"),
            (
                "mask",
                (
                    "a = Reshape(z, i64([1,6,3,1,4])) b = Add(a, f32(normal(1,6,1,1,4)))"
                    " y = Reshape(b, i64([-1,3,4]))"
                ),
                "y = Add(z, _)",
            ),
            (
                "take-out",
                "a = Squeeze(one, i64([0])) b = Mul(a, f32(normal(4))) y = Unsqueeze(b, i64([0]))",
                "y = Mul(one, _)",
            ),
        ],
        [
            (
                "splits",
                (
                    "a = Reshape(z, i64([2,3,3,4])) b = Add(a, f32(normal(2,1,1,1))) y = Reshape(b,"
                    " i64([6,3,4]))"
                ),
                "the views do more than put in or take out axes of size 1",
            ),
            (
                "another-shape",
                f"{THERE} b = Add(a, f32(2)) y = Squeeze(b, i64([0]))",
                "the result has another shape",
            ),
        ],
    ),
    *rows(
        drop_views_around_binary,
        X,
        [
            (
                "two",
                (
                    "a = Reshape(x, i64([0,12])) d = Exp(x) e = Flatten(d) f = Mul(a, e) y = "
                    "Reshape(f, i64([-1,3,4]))"
                ),
                "d = Exp(x) y = Mul(x, d)",
            )
        ],
        [
            (
                "shape",
                "a = Flatten(z) d = Exp(z) b = Flatten(d) e = Sub(a, b) y = Reshape(e, i64([6,4,3]))",
                "the result has another shape",
            ),
        ],
    ),
    *rows(
        drop_views_around_constant,
        V6,
        (),
        [
            (
                "old",
                "a = Unsqueeze<axes=[0]>(z) b = Add<broadcast=1>(a, f32(normal(4))) y = Squeeze<axes=[0]>(b)",
                "elementwise operators broadcast differently before opset 7",
            ),
        ],
    ),
]

test_rows = table_test(ROWS)
