"""Truth compared with truth, choices of true and false, negations."""

from __future__ import annotations

from dataclasses import replace

from harness import Setup, rows, table_test

from optimizer.rewrite import Settings
from passes.boolean import (
    choose_once,
    drop_choice_of_truth,
    drop_comparison_with_truth,
    drop_repeated_truth,
    negate_once,
)

X = Setup(
    "bool[N,4] b, bool[N,4] c, bool[4] v, float[N,4] x, float[N,4] z, float[N,4] w, "
    "float[4] o, int32[N,4] i, "
    "float[3,1] k"
)
OLD = Setup("float[3,1] k, float[N,4] x", opset=12)
SMALL = Setup("float[3,1] k", settings=Settings(growth=4))
NOT_IN_ORT = replace(X, ort=False)  # it has no kernel for choices of truth values
BROADCAST = "the other operand is broadcast"
FLATTENS = "Softmax flattens before opset 13"

ROWS = [
    *rows(
        drop_repeated_truth,
        X,
        [("and", "a = And(b, b) y = Not(a)", "y = Not(b)"), ("or", "a = Or(b, b) y = Not(a)", "y = Not(b)")],
    ),
    *rows(
        drop_comparison_with_truth,
        X,
        [
            ("true", "a = Equal(b, bool(true)) y = Or(a, c)", "y = Or(b, c)"),
            ("cast", "a = Cast<to=7>(b) y = Equal(i64([0]), a)", "y = Not(b)"),
        ],
        [
            ("numbers", "y = Equal(i, i32(1))", "not of truth values"),
            ("broadcast", "y = Equal(v, bool([[true],[true]]))", BROADCAST),
            ("several", "y = Equal(b, bool([true,false,true,true]))", "it is compared with several"),
            ("other", "a = Cast<to=7>(b) y = Equal(i64(2), a)", "it is compared with another number"),
        ],
    ),
    *rows(
        drop_choice_of_truth,
        NOT_IN_ORT,
        [
            ("same", "a = Where(b, bool(true), bool([false])) y = Or(a, c)", "y = Or(b, c)"),
            ("other", "y = Where(b, bool(false), bool(true))", "y = Not(b)"),
        ],
        [
            ("numbers", "y = Where(b, f32(1), f32(0))", "not of truth values"),
            ("broadcast", "y = Where(v, bool([[true],[true]]), bool(false))", BROADCAST),
            ("equal", "y = Where(b, bool(true), bool(true))", "it is no choice between true and false"),
        ],
    ),
    *rows(
        negate_once,
        X,
        [
            ("and", "d = Not(b) e = Not(c) y = And(d, e)", "a = Or(b, c) y = Not(a)"),
            ("or", "d = Not(b) e = Not(c) y = Or(d, e)", "a = And(b, c) y = Not(a)"),
        ],
    ),
    *rows(
        choose_once,
        X,
        [
            ("left", "a = Where(b, x, z) y = Where(b, a, w)", "y = Where(b, x, w)"),
            ("right", "a = Where(b, x, z) y = Where(b, w, a)", "y = Where(b, w, z)"),
        ],
        [("stretched", "a = Where(v, o, z) y = Where(v, a, o)", "a part may stretch the result")],
    ),
]

test_rows = table_test(ROWS)
