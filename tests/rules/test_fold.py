"""Constant folding."""

from __future__ import annotations

import numpy as np
from harness import Setup, rows, table_test

from optimizer.rewrite import Context, Settings
from passes.fold import FOLD

PLAIN = Setup("float[N,4] x, float[2,3] s, float[6] z, bool c, int64[4] k")
STRICT = Setup("float[N,4] x", settings=Settings(fp="strict", growth=None))
TIGHT = Setup("float[N,4] x", settings=Settings(growth=0), constants={"w": np.ones((64, 4), np.float32)})
WIDE = "e = Expand(f32([[1.5]]), i64([500, 500])) "

ROWS = [
    *rows(
        FOLD,
        PLAIN,
        [
            (
                "chain",
                "a = Mul(f32([2, 3, 4, 5]), f32(2)) b = Add(a, f32(1)) y = Add(x, b)",
                "y = Add(x, f32([5, 7, 9, 11]))",
            ),
            (
                "static-shape",
                "a = Shape(s) b = Gather(a, i64(1)) y = Reshape(z, a) y2 = Neg(b)",
                "y = Reshape(z, i64([2, 3])) y2 = Identity(i64(-3))",
            ),
            ("static-axis", "a = Shape(x) b = Gather(a, i64([1])) y = Mul(b, k)", "y = Mul(i64([4]), k)"),
            ("output", "y = Add(f32([1]), f32([2]))", "y = Identity(f32([3]))"),
            (
                "generated",
                "a = ConstantOfShape<value=float[1]{2}>(i64([4])) y = Mul(x, a)",
                "y = Mul(x, f32([2, 2, 2, 2]))",
            ),
            (
                "several-outputs",
                "a, b = Split<axis=0>(f32([1, 2, 3, 4, 5, 6, 7, 8])) y = Add(x, a) y2 = Mul(x, b)",
                "y = Add(x, f32([1, 2, 3, 4])) y2 = Mul(x, f32([5, 6, 7, 8]))",
            ),
            ("infinite-before", "a = Neg(f32([inf])) y = Add(x, a)", "y = Add(x, f32([-inf]))"),
            (
                "in-a-body",
                (
                    "y = If(c) <then_branch = a () => (float[N,4] o) { i = Constant<value=float[1]{1}>() "
                    "j = Constant<value=float[1]{2}>() q = Add(i, j) o = Mul(x, q) }, "
                    "else_branch = b () => (float[N,4] p) { p = Neg(x) }>"
                ),
                (
                    "y = If(c) <then_branch = a () => (float[N,4] o) { "
                    "i = Constant<value=float[1]{3}>() o = Mul(x, i) }, "
                    "else_branch = b () => (float[N,4] p) { p = Neg(x) }>"
                ),
            ),
            (
                "not-the-rest",
                (
                    "a = Exp(f32([0])) b = RandomNormalLike(x) c1 = "
                    "Mul(b, f32([0])) y = Add(x, a) y2 = Shape(c1)"
                ),
                "y = Add(x, f32([1])) b = RandomNormalLike(x) c1 = Mul(b, f32([0])) y2 = Shape(c1)",
            ),
        ],
        [
            ("infinite", "a = Div(f32([1]), f32([0])) y = Add(x, a)", "the result is not finite"),
            (
                "impossible",
                "a = Reshape(f32([1, 2, 3]), i64([2])) y = Shape(a)".replace("Shape(a)", "Add(x, a)"),
                "it cannot be computed",
            ),
            (
                "sequence",
                "a = SequenceConstruct(f32([1]), f32([2])) y = SequenceInsert(a, x)",
                "the result is no tensor",
            ),
        ],
    ),
    *rows(
        FOLD,
        STRICT,
        [
            (
                "exact-only",
                "a = Add(f32([1]), f32([2])) b = Exp(f32([1])) y = Add(x, a) y2 = Mul(x, b)",
                "y = Add(x, f32([3])) b = Exp(f32([1])) y2 = Mul(x, b)",
            )
        ],
    ),
    *rows(
        FOLD,
        TIGHT,
        [
            ("no-growth", "t = Transpose<perm=[1,0]>(w) y = MatMul(x, t)", "y = MatMul(x, _)"),
            (
                "cone-with-a-small-end",
                WIDE + "a = ReduceMean<axes=[0, 1], keepdims=0>(e) y = Mul(x, a)",
                "y = Mul(x, f32(1.5))",
            ),
            (
                "the-part-that-fits",
                (
                    "s = Add(i64([200]), i64([300])) s2 = Concat<axis=0>(s, s) e = Expand(f32([[1.5]]), s2) "
                    "m = ReduceMean<axes=[1]>(x) y = Expand(e, i64([1])) y2 = Neg(m)"
                ),
                (
                    "e = Expand(f32([[1.5]]), i64([500, 500])) y = Expand(e, "
                    "i64([1])) m = ReduceMean<axes=[1]>(x) y2 = Neg(m)"
                ),
            ),
        ],
        [
            (
                "too-large",
                WIDE + "a = ReduceMean<axes=[1]>(x) y = Reshape(e, i64([-1])) y2 = Neg(a)",
                "the result exceeds the size limit",
            )
        ],
    ),
]

test_rows = table_test(ROWS)


def test_a_quantized_weight_stays_quantized() -> None:
    text = "w = DequantizeLinear(u8([1, 2, 3, 4]), f32(0.5), u8(1)) y = Mul(x, w)"
    model = PLAIN.model(text)
    assert not FOLD.run(Context(model, PLAIN.settings))
    assert model.histogram() == {"DequantizeLinear": 1, "Mul": 1}


def test_kept_nodes_are_not_folded() -> None:
    model = PLAIN.model("a = Add(f32([1]), f32([2])) b = Neg(a) y = Mul(x, b)")
    FOLD.run(Context(model, Settings(keep=("b",))))
    assert model.histogram() == {"Neg": 1, "Mul": 1}
