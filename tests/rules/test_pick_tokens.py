"""Tokens are picked before the work is done that treats all tokens alike."""

from __future__ import annotations

import numpy as np
from harness import Setup, rows, table_test

from optimizer.rewrite import Settings
from passes.pick_tokens import pick_before_transpose, pick_tokens_first

INPUTS = (
    "float[B,5,4] x, float[B,5,4] z, float[B,1,4] one, float[5,4] table, float[B,3,5,4] four, float[B,4,4] w"
)
K = {"k": np.array(0)}
X = Setup(INPUTS, rtol=1e-4, sizes=[{"B": 2}], constants=K)
FAST = Setup(
    INPUTS,
    rtol=1e-4,
    sizes=X.sizes,
    constants=K,
    settings=Settings(fp="fast", growth=None, objective="latency"),
)
OLD = Setup("float[2,5,4] x", opset=12)
FIRST = "y = Gather<axis=1>({0}, i64(0))"

ROWS = [
    *rows(
        pick_tokens_first,
        X,
        [
            ("unary", "a = Relu(x) " + FIRST.format("a"), "a = Gather<axis=1>(x, i64(0)) y = Relu(a)"),
            (
                "layer",
                "a = LayerNormalization(x, f32(normal(4)), f32(normal(4))) b = MatMul(a, f32(normal(4,6))) "
                "c = Add(b, f32(normal(6))) " + FIRST.format("c"),
                (
                    "a = Gather<axis=1>(x, i64(0)) b = LayerNormalization<axis=-1>(a, _, _) c = "
                    "MatMul(b, _) y = Add(c, _)"
                ),
            ),
            (
                "last-by-slice",
                (
                    "a = MatMul(x, f32(normal(4,6))) b = Mul(a, f32(normal(1,1,6))) "
                    "y = Slice(b, i64([-1]), i64([99]), i64([1]))"
                ),
                "a = Slice(x, i64([-1]), i64([99]), i64([1])) b = MatMul(a, _) y = Mul(b, _)",
            ),
            (
                "softmax",
                "a = Softmax(x) " + FIRST.format("a"),
                "a = Gather<axis=1>(x, i64(0)) y = Softmax<axis=-1>(a)",
            ),
            (
                "residual",
                (
                    "r = Sin(x) a = MatMul(r, f32(normal(4,4))) b = Relu(a) c = Add(b, r) y = "
                    "Gather<axis=1>(c, k)"
                ),
                (
                    "r = Sin(x) g = Gather<axis=1>(r, k) a = MatMul(g, _) b = Relu(a) "
                    "h = Gather<axis=1>(r, k) y = Add(b, h)"
                ),
            ),
        ],
        [
            ("features", "a = Relu(x) y = Gather<axis=2>(a, i64(0))", "it does not pick tokens"),
            ("image", "a = Relu(four) y = Gather<axis=1>(a, i64(0))", "it does not pick tokens"),
            (
                "two-axes",
                "a = Relu(x) y = Slice(a, i64([0,0]), i64([1,1]), i64([0,1]))",
                "it does not pick tokens",
            ),
            ("two", "a = Add(x, z) " + FIRST.format("a"), "it would be more nodes"),
            (
                "weights-of-tokens",
                "a = MatMul(x, w) " + FIRST.format("a"),
                "the weights differ between tokens",
            ),
            (
                "other-softmax",
                "a = Softmax<axis=1>(x) " + FIRST.format("a"),
                "it does not work on each token alone",
            ),
            (
                "wide-scale",
                "a = LayerNormalization(x, f32(normal(5,4))) " + FIRST.format("a"),
                "it does not work on each token alone",
            ),
            ("broadcast", "a = Mul(x, one) " + FIRST.format("a"), "an operand is broadcast over the tokens"),
            (
                "stretched",
                "a = Mul(one, f32(normal(5,1))) " + FIRST.format("a"),
                "an operand is broadcast over the tokens",
            ),
        ],
    ),
    *rows(
        pick_tokens_first,
        FAST,
        [
            (
                "both",
                "a = Add(x, z) y = Gather<axis=1>(a, k)",
                "a = Gather<axis=1>(x, k) b = Gather<axis=1>(z, k) y = Add(a, b)",
            ),
            (
                "kept-axis",
                "a = Mul(x, one) y = Slice(a, i64([1]), i64([2]), i64([1]))",
                "a = Slice(x, i64([1]), i64([2]), i64([1])) y = Mul(a, one)",
            ),
        ],
    ),
    *rows(
        pick_tokens_first,
        OLD,
        (),
        [("old", "a = Softmax<axis=2>(x) " + FIRST.format("a"), "it does not work on each token alone")],
    ),
    *rows(
        pick_before_transpose,
        X,
        [
            (
                "moved",
                "a = Transpose<perm=[1,2,0]>(x) y = Gather(a, i64(0))",
                "a = Gather<axis=1>(x, i64(0)) y = Transpose<perm=[1,0]>(a)",
            ),
            (
                "gone",
                "a = Transpose<perm=[1,0,2]>(x) y = Gather(a, i64(-1))",
                "y = Gather<axis=1>(x, i64(-1))",
            ),
        ],
        [("vector", "a = Transpose<perm=[1,0,2]>(x) y = Gather(a, i64([0]))", "the index is no scalar")],
    ),
]

test_rows = table_test(ROWS)
