"""Common subexpressions."""

from __future__ import annotations

import numpy as np
from harness import Setup, rows, table_test

from optimizer.rewrite import Context, Settings
from passes.cse import CSE

K = np.array([1, 2, 3, 4], np.float32)
PLAIN = Setup("float[N,4] x, float[N,4] w, bool c", imports='"own" : 1', constants={"k": K})
IF = (
    "{0} = If(c) <then_branch = p () => (float[N,4] {1}) {{ {1} = Relu(x) }}, "
    "else_branch = q () => (float[N,4] {2}) {{ {2} = {3}(x) }}> "
)

ROWS = [
    *rows(
        CSE,
        PLAIN,
        [
            ("nodes", "a = Exp(x) b = Exp(x) y = Add(a, b)", "a = Exp(x) y = Add(a, a)"),
            (
                "chains",
                "a = Exp(x) b = Neg(a) d = Exp(x) e = Neg(d) y = Mul(b, e)",
                "a = Exp(x) b = Neg(a) y = Mul(b, b)",
            ),
            ("commuted", "a = Add(x, w) b = Add(w, x) y = Mul(a, b)", "a = Add(x, w) y = Mul(a, a)"),
            (
                "defaults",
                "a = Softmax(x) b = Softmax<axis=-1>(x) y = Mul(a, b)",
                "a = Softmax(x) y = Mul(a, a)",
            ),
            (
                "constants",
                "a = Add(x, k) y = Mul(a, f32([1, 2, 3, 4]))",
                "a = Add(x, k) y = Mul(a, k)",
            ),
            ("outputs", "y = Exp(x) y2 = Exp(x)", "y = Exp(x) y2 = Identity(y)"),
            (
                "several-outputs",
                "a, b = Split<axis=1>(x) d, e = Split<axis=1>(x) y = Mul(a, e) y2 = Mul(d, b)",
                "a, b = Split<axis=1>(x) y = Mul(a, b) y2 = Identity(y)",
            ),
            (
                "in-a-body",
                (
                    "y = If(c) <then_branch = p () => (float[N,4] "
                    "o) { a = Exp(x) b = Exp(x) o = Mul(a, b) }, "
                    "else_branch = q () => (float[N,4] r) { r = Neg(x) }>"
                ),
                (
                    "y = If(c) <then_branch = p () => (float[N,4] o) { a = Exp(x) o = Mul(a, a) }, "
                    "else_branch = q () => (float[N,4] r) { r = Neg(x) }>"
                ),
            ),
            (
                "equal-ifs",
                IF.format("a", "o", "r", "Neg") + IF.format("b", "o2", "r2", "Neg") + "y = Mul(a, b)",
                IF.format("a", "o", "r", "Neg") + "y = Mul(a, a)",
            ),
        ],
    ),
]

test_rows = table_test(ROWS)

STAY_APART = [
    IF.format("a", "o", "r", "Neg") + IF.format("b", "o2", "r2", "Exp") + "y = Mul(a, b)",
    IF.format("a", "o", "r", "RandomNormalLike")
    + IF.format("b", "o2", "r2", "RandomNormalLike")
    + "y = Mul(a, b)",
    "a = RandomNormalLike(x) b = RandomNormalLike(x) y = Sub(a, b)",
    "a = Sub(x, w) b = Sub(w, x) y = Mul(a, b)",
    "a = Softmax<axis=0>(x) b = Softmax<axis=1>(x) y = Mul(a, b)",
    "a = Max(x, w) b = Max(w, x) y = Mul(a, b)",
    "a = own.Counter(x) b = own.Counter(x) y = Mul(a, b)",
    "a = Add(x, f32([0.0])) y = Mul(a, f32([-0.0]))",
    "a = Add(x, f32([1, 1, 1, 1])) y = Mul(a, f32([[1, 1, 1, 1]]))",
    "a = LeakyRelu<alpha=0.1>(x) b = LeakyRelu<alpha=0.2>(x) y = Mul(a, b)",
]


def test_what_may_differ_stays_apart() -> None:
    for text in STAY_APART:
        assert not CSE.run(Context(PLAIN.model(text))), text


def test_kept_nodes_stay() -> None:
    model = PLAIN.model("a = Exp(x) b = Exp(x) y = Add(a, b)")
    assert not CSE.run(Context(model, Settings(keep=("b",))))
