"""Clamping to an interval, once instead of twice."""

from __future__ import annotations

from harness import Setup, rows, table_test

from passes.clip import drop_open_clip, merge_clamps

NEW = Setup("float[N,4] x, float m, float[] v, int32[N] i")
OLD = Setup("float[N,4] x", opset=10)

ROWS = [
    *rows(
        merge_clamps,
        NEW,
        [
            ("relu-clip", "a = Clip(x, f32(-1), f32(6)) y = Relu(a)", "y = Clip(x, f32(0), f32(6))"),
            ("clip-relu", "a = Relu(x) y = Clip(a, f32(-3), f32(1))", "y = Clip(x, f32(0), f32(1))"),
            ("relu-of-negative", "a = Clip(x, f32(-3), f32(-1)) y = Relu(a)", "y = Clip(x, f32(0), f32(0))"),
            (
                "disjoint",
                "a = Clip(x, f32(-2), f32(-1)) y = Clip(a, f32(1), f32(2))",
                "y = Clip(x, f32(1), f32(1))",
            ),
            (
                "disjoint-above",
                "a = Clip(x, f32(1), f32(2)) y = Clip(a, f32(-2), f32(-1))",
                "y = Clip(x, f32(-1), f32(-1))",
            ),
            (
                "crossed",
                "a = Clip(x, f32(1), f32(-1)) y = Clip(a, f32(-2), f32(2))",
                "y = Clip(x, f32(-1), f32(-1))",
            ),
            ("min-max", "a = Max(x, f32(0)) y = Min(f32(6), a)", "y = Clip(x, f32(0), f32(6))"),
            ("max-max", "a = Max(x, f32(-1)) y = Max(a, f32([0]))", "y = Relu(x)"),
            ("open-above", "a = Clip(x, f32(-1)) y = Max(a, f32(-2))", "y = Clip(x, f32(-1))"),
            ("open-below", "a = Clip(x, , f32(1)) y = Min(a, f32(2))", "y = Clip(x, , f32(1))"),
        ],
        [
            ("shared", "a = Relu(x) y = Clip(a, f32(0), m) y2 = Neg(x)", "a bound is not one known number"),
            ("per-channel", "a = Relu(x) y = Min(a, f32([1, 2, 3, 4]))", "a bound is not one known number"),
            ("rank", "a = Max(x, f32([[[0]]])) y = Relu(a)", "a bound raises the rank"),
            ("no-rank", "a = Max(v, f32([0])) y = Relu(a)", "a bound raises the rank"),
            (
                "above-everything",
                "a = Max(x, f32(inf)) y = Relu(a)",
                "a folded constant is not finite in FLOAT",
            ),
            ("nan", "a = Min(x, f32(nan)) y = Relu(a)", "a bound is NaN"),
            ("integers", "a = Max(i, i32(0)) y = Min(a, i32(3))", "the numbers are no floats"),
        ],
    ),
    *rows(
        merge_clamps,
        OLD,
        [("attributes", "a = Relu(x) y = Clip<max=1.0, min=-1.0>(a)", "y = Clip<max=1.0, min=0.0>(x)")],
    ),
    *rows(
        drop_open_clip,
        NEW,
        [("open", "a = Clip(x) y = Relu(a)", "y = Relu(x)")],
        [("bound", "y = Clip(x, f32(0))", "there is a bound")],
    ),
    *rows(drop_open_clip, OLD, [("old", "a = Clip(x) y = Relu(a)", "y = Relu(x)")]),
]

test_rows = table_test(ROWS)
