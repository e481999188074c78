"""Conversions of the element type, exact ones only."""

from __future__ import annotations

from harness import Setup, rows, table_test

from passes.cast import drop_noop_cast, drop_noop_cast_like, merge_casts

MANY = Setup(
    "float[N] x, float16[N] h, int8[N] i, uint8[N] u, int64[N] l, bool[N] b",
    special=False,
)
RARE = Setup("float[N] x, bfloat16[N] f")
OWN = Setup("float[N] x, float[N] w, int64[N] l, seq(float[N]) q", imports='"own" : 1')

ROWS = [
    *rows(
        drop_noop_cast,
        MANY,
        [("same", "a = Cast<to=1>(x) y = Relu(a)", "y = Relu(x)")],
        [("other", "y = Cast<to=10>(x)", "the element type changes")],
    ),
    *rows(
        drop_noop_cast,
        OWN,
        [],
        [("unknown", "a = own.Thing(x) y = Cast<to=1>(a)", "the element type is not known")],
    ),
    *rows(
        drop_noop_cast_like,
        OWN,
        [("same", "a = CastLike(x, w) y = Relu(a)", "y = Relu(x)")],
        [
            ("other", "y = CastLike(x, l)", "the element type may change"),
            ("unknown", "a = own.Thing(x) y = CastLike(a, x)", "the element type is not known"),
        ],
    ),
    *rows(
        merge_casts,
        MANY,
        [
            ("round-trip", "a = Cast<to=11>(x) b1 = Cast<to=1>(a) y = Relu(b1)", "y = Relu(x)"),
            ("half-round-trip", "a = Cast<to=1>(h) b1 = Cast<to=10>(a) y = Relu(b1)", "y = Relu(h)"),
            ("widening", "a = Cast<to=6>(i) y = Cast<to=1>(a)", "y = Cast<to=1>(i)"),
            ("byte-through-half", "a = Cast<to=10>(u) y = Cast<to=7>(a)", "y = Cast<to=7>(u)"),
            ("truth", "a = Cast<to=7>(b) y = Cast<to=1>(a)", "y = Cast<to=1>(b)"),
            ("round-once", "a = Cast<to=11>(x) y = Cast<to=10>(a)", "y = Cast<to=10>(x)"),
        ],
        [
            ("rounds", "a = Cast<to=10>(x) y = Cast<to=1>(a)", "the inner cast may round"),
            ("truncates", "a = Cast<to=7>(x) y = Cast<to=1>(a)", "the inner cast may round"),
            ("large-integers", "a = Cast<to=1>(l) y = Cast<to=7>(a)", "the inner cast may round"),
            ("signed", "a = Cast<to=2>(i) y = Cast<to=6>(a)", "the inner cast may round"),
            ("to-truth", "a = Cast<to=9>(l) y = Cast<to=7>(a)", "the inner cast may round"),
            (
                "out-of-range",
                "a = Cast<to=11>(x) y = Cast<to=3>(a)",
                "a float out of range would be cast otherwise",
            ),
        ],
    ),
    *rows(
        merge_casts,
        RARE,
        [],
        [
            ("brain-to-half", "a = Cast<to=10>(f) y = Cast<to=1>(a)", "the inner cast may round"),
            ("text", "a = Cast<to=8>(x) y = Cast<to=1>(a)", "an element type is no plain number"),
        ],
    ),
    *rows(
        merge_casts,
        OWN,
        [],
        [
            (
                "unknown",
                "a = own.Thing(x) b = Cast<to=1>(a) y = Cast<to=10>(b)",
                "the element type is not known",
            )
        ],
    ),
]

test_rows = table_test(ROWS)
