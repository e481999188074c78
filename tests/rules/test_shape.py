"""Shape and what is computed from it."""

from __future__ import annotations

from harness import Setup, rows, table_test

from passes.shape import (
    SHARE,
    fold_gather_into_shape,
    fold_single_dimension_into_shape,
    fold_slice_into_shape,
    join_shape_parts,
    read_shape_from_source,
)

X = Setup("float[N,C,H,W] x, float[N,C,H,W] z, float[] v")
OLD = Setup("float[N,C,H,W] x", opset=13)

ROWS = [
    *rows(
        fold_slice_into_shape,
        X,
        [
            (
                "tail",
                "s = Shape(x) y = Slice(s, i64([2]), i64([9223372036854775807]))",
                "y = Shape<start=2, end=4>(x)",
            ),
            (
                "negative",
                "s = Shape(x) y = Slice(s, i64([-3]), i64([-1]), i64([0]), i64([1]))",
                "y = Shape<start=1, end=3>(x)",
            ),
            (
                "of-part",
                "s = Shape<start=1>(x) y = Slice(s, i64([1]), i64([2]))",
                "y = Shape<start=2, end=3>(x)",
            ),
        ],
        [
            (
                "step",
                "s = Shape(x) y = Slice(s, i64([0]), i64([4]), i64([0]), i64([2]))",
                "it skips dimensions",
            ),
            ("none", "s = Shape(x) y = Slice(s, i64([]), i64([]))", "it has not one start and one end"),
            ("rank", "s = Shape(v) y = Slice(s, i64([0]), i64([1]))", "the rank is not known"),
        ],
    ),
    *rows(
        fold_slice_into_shape,
        OLD,
        [],
        [
            (
                "old",
                "s = Shape(x) y = Slice(s, i64([2]), i64([4]))",
                "Shape has no start and end before opset 15",
            )
        ],
    ),
    *rows(
        fold_gather_into_shape,
        X,
        [
            ("two", "s = Shape(x) y = Gather(s, i64([1, 2]))", "y = Shape<start=1, end=3>(x)"),
            ("last", "s = Shape(x) y = Gather(s, i64([-2, -1]))", "y = Shape<start=2, end=4>(x)"),
        ],
        [
            ("scalar", "s = Shape(x) y = Gather(s, i64(1))", "a dimension is taken as a scalar"),
            ("order", "s = Shape(x) y = Gather(s, i64([2, 1]))", "the dimensions are taken in another order"),
            (
                "around",
                "s = Shape(x) y = Gather(s, i64([-1, 0]))",
                "the dimensions are taken in another order",
            ),
        ],
    ),
    *rows(
        fold_single_dimension_into_shape,
        X,
        [
            (
                "unsqueeze",
                "s = Shape(x) g = Gather(s, i64(1)) y = Unsqueeze(g, i64([0]))",
                "y = Shape<start=1, end=2>(x)",
            ),
            (
                "reshape",
                "s = Shape(x) g = Gather(s, i64(-1)) y = Reshape(g, i64([-1]))",
                "y = Shape<start=3, end=4>(x)",
            ),
        ],
        [
            (
                "several",
                "s = Shape(x) g = Gather(s, i64([1, 2])) y = Reshape(g, i64([-1]))",
                "several dimensions are taken",
            ),
            (
                "matrix",
                "s = Shape(x) g = Gather(s, i64([1])) y = Unsqueeze(g, i64([0]))",
                "the result is no vector",
            ),
        ],
    ),
    *rows(
        join_shape_parts,
        X,
        [
            (
                "whole",
                "a = Shape<start=0, end=2>(x) b = Shape<start=2>(x) y = Concat<axis=0>(a, b)",
                "y = Shape<start=0, end=4>(x)",
            ),
            (
                "between",
                "a = Shape<end=1>(x) b = Shape<start=1, end=2>(x) y = Concat<axis=0>(a, b, i64([-1]))",
                "p = Shape<start=0, end=2>(x) y = Concat<axis=0>(p, i64([-1]))",
            ),
        ],
        [
            (
                "shared",
                "a = Shape<end=1>(x) b = Shape<start=1, end=2>(x) q = Neg(a) y = Concat<axis=0>(a, b)",
                "no neighbours are parts of one shape that only this reads",
            ),
            (
                "gap",
                "a = Shape<end=1>(x) b = Shape<start=2>(x) y = Concat<axis=0>(a, b)",
                "no neighbours are parts of one shape that only this reads",
            ),
            (
                "two",
                "a = Shape<end=1>(x) b = Shape<start=1>(z) y = Concat<axis=0>(a, b)",
                "no neighbours are parts of one shape that only this reads",
            ),
        ],
    ),
    *rows(
        read_shape_from_source,
        X,
        [("dead", "a = Exp(x) y = Shape<start=1>(a)", "y = Shape<start=1>(x)")],
        [
            ("alive", "a = Exp(x) y = Shape(a) y2 = Neg(a)", "it is computed for more than its shape"),
            ("input", "y = Shape(x)", "no operator makes it alone"),
            ("other-shape", "a = Transpose(x) y = Shape(a)", "no operand is proven to have this shape"),
        ],
    ),
    *rows(
        SHARE,
        X,
        [
            (
                "through-arithmetic",
                (
                    "s = Shape(x) a = Gather(s, i64([1])) b = "
                    "Gather(s, i64([2])) p = Mul(a, b) q = Mul(b, a) "
                    "e = Add(q, i64([0])) y = Neg(p) y2 = Sub(e, a)"
                ),
                (
                    "s = Shape(x) a = Gather(s, i64([1])) b = Gather(s, "
                    "i64([2])) p = Mul(a, b) y = Neg(p) y2 = Sub(p, a)"
                ),
            ),
            (
                "of-two-tensors",
                "a = Shape(x) b = Exp(x) d = Shape(b) y = Neg(a) y2 = Mul(d, d)",
                "a = Shape(x) y = Neg(a) y2 = Mul(a, a)",
            ),
        ],
    ),
]

test_rows = table_test(ROWS)
