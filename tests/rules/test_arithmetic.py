"""Neutral elements of arithmetic and logic, choices that are no choice."""

from __future__ import annotations

from harness import Setup, rows, table_test

from passes.arithmetic import drop_exact_zero, drop_unit_factor, drop_zero
from passes.boolean import (
    choose_constantly,
    drop_equal_choice,
    drop_neutral_truth,
    negate_comparison,
    swap_negated_choice,
)

FLOATS = Setup("float[N,4] x, float[1] s, float[] v, float[N,K] z")
INTEGERS = Setup("int64[N,4] x, int64[N,4] w, float[N,4] f, float[N,4] g")
BEFORE_12 = Setup("int64[N,4] x, int64[N,4] w", opset=11)
TRUTHS = Setup("bool[N,4] x, bool[4] one, bool[N,4] c, float[N,4] a, float[N,4] b, float[4] r")

ROWS = [
    *rows(
        drop_unit_factor,
        FLOATS,
        [
            ("mul", "a = Mul(x, f32(1)) y = Relu(a)", "y = Relu(x)"),
            ("commuted", "a = Mul(f32([1, 1, 1, 1]), x) y = Relu(a)", "y = Relu(x)"),
            ("div", "a = Div(x, f32([1])) y = Relu(a)", "y = Relu(x)"),
            ("pow", "a = Pow(x, f32(1)) y = Relu(a)", "y = Relu(x)"),
            ("pow-by-integer", "a = Pow(x, i64(1)) y = Relu(a)", "y = Relu(x)"),
            ("scalar-of-any-rank", "a = Mul(v, f32(1)) y = Relu(a)", "y = Relu(v)"),
        ],
        [
            ("wider", "y = Mul(s, f32(ones(4)))", "the other operand is broadcast"),
            ("higher-rank", "y = Mul(x, f32(ones(1, 1, 1)))", "the other operand is broadcast"),
            ("maybe-wider", "y = Mul(z, f32(ones(4)))", "the other operand is broadcast"),
        ],
    ),
    *rows(
        drop_unit_factor,
        INTEGERS,
        [("integers", "a = Div(x, i64(1)) y = Neg(a)", "y = Neg(x)")],
    ),
    *rows(
        drop_exact_zero,
        FLOATS,
        [
            ("sub", "a = Sub(x, f32(0)) y = Relu(a)", "y = Relu(x)"),
            ("add-negative", "a = Add(f32([-0.0]), x) y = Relu(a)", "y = Relu(x)"),
        ],
        [
            ("add", "y = Add(x, f32(0))", "the sign of a zero may change"),
            ("sub-negative", "y = Sub(x, f32(-0.0))", "the sign of a zero may change"),
            ("wider", "y = Sub(s, f32(zeros(4)))", "the other operand is broadcast"),
        ],
    ),
    *rows(drop_exact_zero, INTEGERS, [("integers", "a = Add(x, i64(0)) y = Neg(a)", "y = Neg(x)")]),
    *rows(
        drop_zero,
        FLOATS,
        [("add", "a = Add(x, f32(0)) y = Relu(a)", "y = Relu(x)")],
        [("wider", "y = Add(s, f32(zeros(4)))", "the other operand is broadcast")],
    ),
    *rows(
        drop_neutral_truth,
        TRUTHS,
        [
            ("and", "a1 = And(x, bool(true)) y = Not(a1)", "y = Not(x)"),
            ("or", "a1 = Or(bool([false]), x) y = Not(a1)", "y = Not(x)"),
            ("xor", "a1 = Xor(x, bool(zeros(4))) y = Not(a1)", "y = Not(x)"),
        ],
        [
            ("absorbs", "y = And(x, bool(false))", "the operand is not neutral"),
            ("wider", "y = Or(one, bool(zeros(3, 4)))", "the other is broadcast"),
        ],
    ),
    *rows(
        negate_comparison,
        INTEGERS,
        [
            ("less", "c = Less(x, w) y = Not(c)", "y = GreaterOrEqual(x, w)"),
            ("greater-or-equal", "c = GreaterOrEqual(x, w) y = Not(c)", "y = Less(x, w)"),
        ],
        [("nan", "c = Less(f, g) y = Not(c)", "an operand may be NaN")],
    ),
    *rows(
        negate_comparison,
        BEFORE_12,
        [],
        [("old", "c = Less(x, w) y = Not(c)", "the opset has no such comparison")],
    ),
    *rows(
        swap_negated_choice,
        TRUTHS,
        [("swap", "n = Not(c) y = Where(n, a, b)", "y = Where(c, b, a)")],
    ),
    *rows(
        choose_constantly,
        TRUTHS,
        [
            ("true", "q = Where(bool(true), a, b) y = Relu(q)", "y = Relu(a)"),
            ("false", "q = Where(bool([[false]]), r, b) y = Relu(q)", "y = Relu(b)"),
        ],
        [
            ("mixed", "y = Where(bool([true, false, true, true]), a, b)", "the condition differs by element"),
            ("broadcast", "y = Where(bool(true), r, b)", "what is chosen may be broadcast"),
        ],
    ),
    *rows(
        drop_equal_choice,
        TRUTHS,
        [("equal", "q = Where(c, a, a) y = Relu(q)", "y = Relu(a)")],
        [("broadcast", "y = Where(c, r, r)", "what is chosen may be broadcast")],
    ),
]

test_rows = table_test(ROWS)
