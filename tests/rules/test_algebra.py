"""Sums and products: what is factored out, signs that cancel, constants that come together."""

from __future__ import annotations

import numpy as np
from harness import Setup, rows, table_test

from passes.algebra import (
    add_like_terms,
    add_products,
    drop_signs,
    factor_out,
    invert_quotient,
    join_constants,
    merge_extrema,
    replace_root_of_square,
    swap_negated_difference,
)

X = Setup(
    (
        "float[N,4] x, float[N,4] z, float[M,4] q, float[1,4] o, int32[N,4] i, "
        "int32[N,4] j, float[4,3] w, float[N,4] f"
    ),
    rtol=1e-5,
    constants={"k": np.arange(1, 13).reshape(4, 3).astype(np.float32), "l": np.float32([1, 2, 3, 4])},
)
FIXED = Setup("float[3,4] u, float[3,4] v")
OLD = Setup("float[2,4] x", opset=6)
V7 = Setup("float[4] x, float[4] z", opset=7)

ROWS = [
    *rows(
        add_like_terms,
        X,
        [
            (
                "both",
                "a = Mul(x, f32(2)) b = Mul(f32([1,2,3,4]), x) y = Add(a, b)",
                "y = Mul(x, f32([3,4,5,6]))",
            ),
            ("difference", "a = Mul(x, f32(5)) b = Mul(x, f32(2)) y = Sub(a, b)", "y = Mul(x, f32(3))"),
            ("left", "a = Mul(x, f32(2)) y = Sub(a, x)", "y = Mul(x, f32(1))"),
            ("right", "a = Mul(x, f32(2)) y = Sub(x, a)", "y = Mul(x, f32(-1))"),
        ],
        [
            ("integers", "a = Mul(i, i32(2)) y = Add(a, i)", "not a float"),
            ("infinite", "a = Mul(x, f32(inf)) y = Add(a, x)", "a constant is not finite"),
            (
                "larger",
                "a = Mul(o, f32([[1],[2]])) b = Mul(o, f32([1,2,3,4])) y = Add(a, b)",
                "the constant would be larger",
            ),
        ],
    ),
    *rows(
        add_like_terms,
        OLD,
        [],
        [
            (
                "old",
                "k = Constant<value=float[2,4]{1,2,3,4,5,6,7,8}>() a = Mul(x, k) y = Add(a, x)",
                "elementwise operators broadcast differently before opset 7",
            )
        ],
    ),
    *rows(
        factor_out,
        X,
        [
            ("product", "a = Mul(x, f) b = Mul(f, z) y = Add(a, b)", "a = Add(x, z) y = Mul(a, f)"),
            ("quotient", "a = Div(x, l) b = Div(z, l) y = Sub(a, b)", "a = Sub(x, z) y = Div(a, l)"),
        ],
        [
            ("integers", "a = Mul(i, j) b = Mul(i, i) y = Add(a, b)", "not a float"),
            ("broadcast", "a = Mul(x, f) b = Mul(o, f) y = Add(a, b)", "the terms are broadcast"),
            ("constant", "a = Mul(x, f) b = Mul(f32(2), f) y = Add(a, b)", "a term is constant"),
        ],
    ),
    *rows(
        add_products,
        X,
        [
            (
                "weights",
                "a = MatMul(x, f32(normal(4,3))) b = MatMul(x, f32(positive(4,3))) y = Add(a, b)",
                "y = MatMul(x, _)",
            ),
            (
                "values",
                "a = MatMul(x, k) b = MatMul(z, k) y = Sub(a, b)",
                "a = Sub(x, z) y = MatMul(a, k)",
            ),
        ],
        [
            (
                "shapes",
                "a = MatMul(x, f32(normal(4,3))) b = MatMul(x, f32(positive(4,1))) y = Add(a, b)",
                "the terms are broadcast",
            ),
            ("sizes", "a = MatMul(x, k) b = MatMul(o, k) y = Add(a, b)", "the terms are broadcast"),
            (
                "integers",
                "a = MatMul(i, i32(ones(4,3))) b = MatMul(i, i32(ones(4,3))) y = Add(a, b)",
                "not a float",
            ),
            (
                "variable",
                "a = MatMul(x, f32(normal(4,3))) b = MatMul(x, w) y = Add(a, b)",
                "an operand is not a constant",
            ),
        ],
    ),
    *rows(
        join_constants,
        X,
        [
            (
                "sum",
                "a = Add(x, f32(1)) b = Add(z, a) y = Add(f32([1,2,3,4]), b)",
                "a = Add(x, z) y = Add(a, f32([2,3,4,5]))",
            ),
            (
                "two-products",
                "a = Mul(x, f32(2)) b = Mul(f32(3), z) y = Mul(a, b)",
                "a = Mul(x, z) y = Mul(a, f32(6))",
            ),
        ],
        [
            ("integers", "a = Add(i, i32(1)) b = Add(j, a) y = Add(b, i32(2))", "not a float"),
            (
                "stretched",
                "a = Add(x, f32(ones(2,1,4))) b = Add(z, a) y = Add(b, f32(1))",
                "a constant stretches what it is added to",
            ),
            ("broadcast", "a = Add(x, f32(1)) b = Add(o, a) y = Add(b, f32(1))", "the terms are broadcast"),
            (
                "infinite",
                "a = Mul(x, f32(1e30)) b = Mul(z, a) y = Mul(b, f32(inf))",
                "a constant is not finite",
            ),
            (
                "constants",
                "a = Add(x, f32(1)) b = Add(f32(3), a) y = Add(b, f32(2))",
                "a term is constant",
            ),
        ],
    ),
    *rows(
        join_constants,
        FIXED,
        [],
        [
            (
                "larger",
                "a = Add(u, f32([[1],[2],[3]])) b = Add(v, a) y = Add(b, f32([1,2,3,4]))",
                "the constant would be larger",
            )
        ],
    ),
    *rows(
        drop_signs,
        X,
        [
            ("abs", "a = Neg(x) y = Abs(a)", "y = Abs(x)"),
            ("product", "a = Neg(x) b = Neg(z) y = Mul(a, b)", "y = Mul(x, z)"),
            ("quotient", "a = Neg(x) b = Neg(z) y = Div(a, b)", "y = Div(x, z)"),
            ("square-of-abs", "a = Abs(x) y = Mul(a, a)", "y = Mul(x, x)"),
            ("square-of-neg", "a = Neg(x) y = Mul(a, a)", "y = Mul(x, x)"),
        ],
        [
            ("integers", "a = Neg(i) y = Abs(a)", "not a float"),
            (
                "read",
                "a = Neg(x) b = Neg(z) y = Mul(a, b) y2 = Relu(b)",
                "the signed values have other readers",
            ),
        ],
    ),
    *rows(
        swap_negated_difference,
        X,
        [("plain", "a = Sub(x, z) y = Neg(a)", "y = Sub(z, x)")],
        [("integers", "a = Sub(i, j) y = Neg(a)", "not a float")],
    ),
    *rows(
        invert_quotient,
        X,
        [
            ("reciprocal", "a = Div(x, z) y = Reciprocal(a)", "y = Div(z, x)"),
            ("one-over", "a = Div(x, z) y = Div(f32(1), a)", "y = Div(z, x)"),
            ("twice", "a = Reciprocal(x) b = Reciprocal(a) y = Relu(b)", "y = Relu(x)"),
        ],
        [
            ("rank", "a = Div(x, z) y = Div(f32([[[1]]]), a)", "the constants raise the rank"),
            ("integers", "a = Div(i, i32(2)) y = Div(i32(1), a)", "not a float"),
        ],
    ),
    *rows(
        replace_root_of_square,
        X,
        [
            ("product", "a = Mul(x, x) y = Sqrt(a)", "y = Abs(x)"),
            ("power", "a = Pow(x, f32(2)) y = Sqrt(a)", "y = Abs(x)"),
        ],
        [("rank", "a = Pow(x, f32([[[2]]])) y = Sqrt(a)", "the constants raise the rank")],
    ),
    *rows(
        merge_extrema,
        X,
        [
            ("max", "a = Max(x, z) y = Max(f, a)", "y = Max(f, x, z)"),
            ("min-with-a-constant", "a = Min(x, f32(2), z) y = Min(a, f)", "y = Min(x, f32(2), z, f)"),
        ],
        [
            ("mixed", "a = Max(x, z) y = Min(f, a)", "no operand is of the same kind"),
            ("constants", "a = Max(x, f32(1)) y = Max(a, f32(2))", "clamps merge in another way"),
        ],
    ),
    *rows(
        merge_extrema,
        V7,
        [],
        [("old", "a = Max(x, z) y = Max(x, a)", "Max does not broadcast before opset 8")],
    ),
]

test_rows = table_test(ROWS)
