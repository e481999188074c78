"""Chains of views, and expansions that broadcasting makes anyway."""

from __future__ import annotations

from harness import Setup, rows, table_test

from passes.view import (
    drop_expand_before_broadcast,
    drop_expand_before_where,
    merge_squeezes,
    merge_unsqueezes,
    merge_views,
)

X = Setup(
    "float[N,M,12] x, float[1,N,1,M] q, float[] v",
    sizes=[{"N": 2, "M": 3}, {"N": 1, "M": 1}, {"N": 0, "M": 3}],
)
FULL = Setup("float[N,M,12] x", sizes=[{"N": 2, "M": 3}, {"N": 1, "M": 1}])
OLD = Setup("float[1,N,1,M] q, float[N,M] x", opset=11)
PAIR = Setup("float[N,4] x, float[N,4] z, float[4] r, float[1,4] o, bool[N,4] c, float[K,4] k", special=False)

ROWS = [
    *rows(
        merge_squeezes,
        X,
        [("both", "a = Squeeze(q, i64([2])) y = Squeeze(a, i64([0]))", "y = Squeeze(q, i64([0, 2]))")],
    ),
    *rows(
        merge_squeezes,
        OLD,
        [("old", "a = Squeeze<axes=[0]>(q) y = Squeeze<axes=[-2]>(a)", "y = Squeeze<axes=[0, 2]>(q)")],
        [("ones", "a = Squeeze<axes=[0]>(q) y = Squeeze(a)", "the axes are those of size 1")],
    ),
    *rows(
        merge_unsqueezes,
        X,
        [
            (
                "both",
                "a = Unsqueeze(x, i64([1])) y = Unsqueeze(a, i64([0, 3]))",
                "y = Unsqueeze(x, i64([0, 2, 3]))",
            ),
            (
                "negative",
                "a = Unsqueeze(x, i64([-1])) y = Unsqueeze(a, i64([-1]))",
                "y = Unsqueeze(x, i64([3, 4]))",
            ),
        ],
    ),
    *rows(
        merge_views,
        X,
        [
            ("inverse", "a = Unsqueeze(x, i64([1])) b = Squeeze(a, i64([1])) y = Relu(b)", "y = Relu(x)"),
            (
                "back",
                "a = Reshape(x, i64([0, 0, 3, 4])) b = Reshape(a, i64([0, 0, 12])) y = Relu(b)",
                "y = Relu(x)",
            ),
            (
                "copied",
                "a = Unsqueeze(x, i64([3])) y = Reshape(a, i64([0, 0, 3, 4]))",
                "y = Reshape(x, i64([0, 0, 3, 4]))",
            ),
            ("flatten", "a = Unsqueeze(x, i64([1])) y = Flatten<axis=1>(a)", "y = Flatten<axis=1>(x)"),
        ],
    ),
    *rows(
        merge_views,
        FULL,
        [
            (
                "given-rest",
                "a = Reshape(x, i64([0, 0, 3, 4])) y = Reshape(a, i64([0, -1]))",
                "y = Reshape(x, i64([0, -1]))",
            ),
        ],
    ),
    *rows(
        drop_expand_before_broadcast,
        PAIR,
        [
            ("right", "s = Shape(z) e = Expand(o, s) y = Add(z, e)", "y = Add(z, o)"),
            ("left", "s = Shape(z) e = Expand(r, s) y = Sub(e, z)", "y = Sub(r, z)"),
            ("comparison", "s = Shape(z) e = Expand(r, s) y = Less(e, z)", "y = Less(r, z)"),
            ("largest", "s = Shape(z) e = Expand(r, s) y = Max(e, z)", "y = Max(r, z)"),
        ],
        [
            ("wider", "s = Shape(z) e = Expand(o, s) y = Add(e, r)", "the result may be smaller"),
            ("other", "s = Shape(k) e = Expand(o, s) y = Add(e, o)", "the result may be smaller"),
        ],
    ),
    *rows(
        drop_expand_before_where,
        PAIR,
        [
            ("value", "s = Shape(c) e = Expand(o, s) y = Where(c, e, z)", "y = Where(c, o, z)"),
            ("other", "s = Shape(c) e = Expand(o, s) y = Where(c, z, e)", "y = Where(c, z, o)"),
            (
                "condition",
                "l = Less(o, f32(0)) s = Shape(z) e = Expand(l, s) y = Where(e, z, o)",
                "l = Less(o, f32(0)) y = Where(l, z, o)",
            ),
        ],
    ),
]

test_rows = table_test(ROWS)
