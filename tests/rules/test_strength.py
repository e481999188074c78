"""The same numbers from cheaper operators."""

from __future__ import annotations

import numpy as np
from harness import Setup, rows, table_test

from optimizer.rewrite import Settings
from passes.strength import (
    cascade_maxpool,
    merge_neg_into_sum,
    merge_reciprocal_into_division,
    replace_division_by_power_of_two,
    replace_division_by_product,
    replace_power_by_reciprocal,
    replace_power_by_root,
    replace_square_by_product,
    simplify_nearest_resize,
)

C = {"c": np.array([3, 5, 7, 9], np.float32)}
ROWS_4 = Setup("float[N,4] x, float[N,4] z, int32[N,4] i", constants=C, rtol=1e-6)
FULL = Setup("float[N,4] x, float[N,4] z", constants=C, settings=Settings(growth=0))
IMAGE = Setup("float[N,2,5,6] x, float[N,2,H,W] z, float[2,2,5,6] fixed")
V10 = Setup("float[N,2,5,6] x", opset=10)
P5 = "kernel_shape=[5,5], pads=[2,2,2,2]"
P9 = "kernel_shape=[9,9], pads=[4,4,4,4]"
P13 = "kernel_shape=[13,13], pads=[6,6,6,6]"
STEP = "kernel_shape=[5,5], pads=[2,2,2,2], strides=[1,1]"
FLOOR = 'coordinate_transformation_mode="asymmetric", nearest_mode="floor"'
NEAREST = 'mode="nearest"'

ROWS = [
    *rows(
        replace_square_by_product,
        ROWS_4,
        [
            ("square", "y = Pow(x, f32(2))", "y = Mul(x, x)"),
            ("int-exponent", "y = Pow(x, i64([2]))", "y = Mul(x, x)"),
        ],
        [
            ("integers", "y = Pow(i, i32(2))", "not a float"),
            ("raises-rank", "y = Pow(x, f32([[[2]]]))", "the exponent raises the rank"),
            ("variance", "a = Pow(x, f32(2)) y = ReduceMean<axes=[1]>(a)", "it is part of a variance"),
        ],
    ),
    *rows(
        replace_power_by_root,
        Setup("float[N,4] x"),
        [("root", "a = Abs(x) y = Pow(a, f32(0.5))", "a = Abs(x) y = Sqrt(a)")],
        [("sign", "y = Pow(x, f32(0.5))", "the base may be negative")],
    ),
    *rows(replace_power_by_reciprocal, ROWS_4, [("inverse", "y = Pow(x, f32(-1))", "y = Reciprocal(x)")]),
    *rows(
        replace_division_by_power_of_two,
        ROWS_4,
        [("exact", "y = Div(x, f32([2,-0.5,1,1024]))", "y = Mul(x, f32([0.5,-2,1,0.0009765625]))")],
        [
            ("inexact", "y = Div(x, f32([2,3,4,5]))", "not all divisors are powers of two"),
            ("zero", "y = Div(x, f32(0))", "a divisor or its inverse is not a normal number"),
            ("integers", "y = Div(i, i32(2))", "not a float"),
        ],
    ),
    *rows(
        replace_division_by_product,
        ROWS_4,
        [("rounded", "y = Div(x, c)", "y = Mul(x, _)")],
        [("gelu", "a = Div(x, f32(1.4142135)) y = Erf(a)", "it is part of Gelu")],
    ),
    *rows(
        replace_division_by_product,
        FULL,
        [("last-reader", "y = Div(x, c)", "y = Mul(x, _)")],
        [("no-room", "a = Div(x, c) y = Pow(c, a)", "the growth budget is used up")],
    ),
    *rows(
        merge_reciprocal_into_division,
        ROWS_4,
        [
            ("reciprocal", "a = Reciprocal(x) y = Mul(z, a)", "y = Div(z, x)"),
            ("one-over", "a = Div(f32(1), x) y = Mul(a, z)", "y = Div(z, x)"),
        ],
        [("raises-rank", "a = Div(f32([[[1]]]), x) y = Mul(a, z)", "the 1 raises the rank")],
    ),
    *rows(
        merge_neg_into_sum,
        ROWS_4,
        [
            ("add", "a = Neg(x) y = Add(a, z)", "y = Sub(z, x)"),
            ("sub", "a = Neg(x) y = Sub(z, a)", "y = Add(z, x)"),
            ("integers", "a = Neg(i) y = Add(a, i)", "y = Sub(i, i)"),
        ],
    ),
    *rows(
        simplify_nearest_resize,
        IMAGE,
        [
            (
                "scales",
                f"y = Resize<{NEAREST}>(x, , f32([1,1,2,3]))",
                f"y = Resize<{NEAREST}, {FLOOR}>(x, , f32([1,1,2,3]))",
            ),
            (
                "ceil",
                'y = Resize<nearest_mode="round_prefer_ceil">(z, , f32([1,1,4,4]))',
                f"y = Resize<{FLOOR}>(z, , f32([1,1,4,4]))",
            ),
            (
                "sizes",
                "y = Resize(fixed, , , i64([2,2,10,12]))",
                f"y = Resize<{FLOOR}>(fixed, , , i64([2,2,10,12]))",
            ),
        ],
        [
            ("part", "y = Resize(x, , f32([1,1,1.5,2]))", "a factor is not whole"),
            ("smaller", "y = Resize(x, , f32([1,1,0.5,0.5]))", "a factor is not whole"),
            ("sizes-part", "y = Resize(x, , , i64([2,2,10,13]))", "a factor is not whole"),
            ("linear", 'y = Resize<mode="linear">(x, , f32([1,1,2,2]))', "it interpolates"),
            ("down", 'y = Resize<nearest_mode="floor">(x, , f32([1,1,2,2]))', "it counts in another way"),
        ],
    ),
    *rows(
        simplify_nearest_resize,
        V10,
        (),
        [("old", "y = Resize(x, f32([1,1,2,2]))", "Resize has one way to count before opset 11")],
    ),
    *rows(
        cascade_maxpool,
        IMAGE,
        [
            (
                "spp",
                (
                    f"a = MaxPool<{P5}>(x) b = MaxPool<{P9}>(x) c = MaxPool<{P13}>(x) y ="
                    " Concat<axis=1>(a, b, c)"
                ),
                (
                    f"a = MaxPool<{P5}>(x) b = MaxPool<{STEP}>(a) c = MaxPool<{STEP}>(b) y ="
                    " Concat<axis=1>(a, b, c)"
                ),
            ),
        ],
        [
            ("alone", f"y = MaxPool<{P9}>(x)", "no smaller pool is beside it"),
            ("same", f"y = MaxPool<{P5}>(x) y2 = MaxPool<{P5}>(x)", "no smaller pool is beside it"),
            (
                "strided",
                f"y = MaxPool<{P5}>(x) y2 = MaxPool<{P9}, strides=[2,2]>(x)",
                "not a pool of stride 1 that keeps the size",
            ),
        ],
    ),
]

test_rows = table_test(ROWS)
