"""What is added to all keys or all values alike."""

from __future__ import annotations

import numpy as np
from harness import Setup, rows, table_test

from optimizer.rewrite import Settings
from passes.attention_bias import drop_bias_of_keys, move_bias_of_values

FULL = Settings(fp="fast", growth=None, nonzero_dims=True)
INPUTS = (
    "float[B,3,S,8] q, float[B,T,24] x, float[B,S,T] w, float[B,1,S,T] mask, bool[B,1,S,T] keep, "
    "float[B,3,S,T] scores, float[T,24] own, float[B,T,48] wide"
)
SIZES = [{"B": 2, "S": 5, "T": 7}, {"B": 1, "S": 1, "T": 1}]
X = Setup(
    INPUTS,
    settings=FULL,
    sizes=SIZES[:1],
    rtol=1e-4,
    feeds={"keep": np.tri(5, 7, dtype=bool)[None, None].repeat(2, 0)},
)
EMPTY = Setup(INPUTS, sizes=[*SIZES, {"B": 2, "S": 3, "T": 0}], rtol=1e-4)
NODES = Setup(INPUTS, settings=Settings(fp="fast", objective="nodes", nonzero_dims=True), sizes=SIZES)
OLD = Setup(INPUTS, opset=11, settings=FULL, sizes=SIZES)
VIEW = "r = Reshape({}, i64([0,0,3,8])) "
ADDED = "a = Add(f32(normal(24)), x) " + VIEW.format("a")
KEYS = "t = Transpose<perm=[0,2,3,1]>(r) s = MatMul(q, t) "
VALUES = "v = Transpose<perm=[0,2,1,3]>(r) p = Softmax(scores) m = MatMul(p, v) "
END = "u = Transpose<perm=[0,2,1,3]>(m) j = Reshape(u, i64([0,0,24])) o = MatMul(j, f32(normal(24,6))) "
WHOLE = ADDED + VALUES + END + "y = Add(o, f32(normal(6)))"

ROWS = [
    *rows(
        drop_bias_of_keys,
        X,
        [
            ("plain", ADDED + KEYS + "y = Softmax(s)", VIEW.format("x") + KEYS + "y = Softmax(s)"),
            (
                "scaled-and-masked",
                (
                    ADDED + "t = Transpose<perm=[0,2,1,3]>(r) t2 = Transpose<perm=[0,1,3,2]>(t) "
                    "k = Mul(t2, f32(0.5)) s = MatMul(q, k) d = Div(s, f32(2)) m = Add(mask, d) "
                    "h = Where(keep, m, f32(-inf)) y = Softmax<axis=3>(h)"
                ),
                (
                    VIEW.format("x") + "t = Transpose<perm=[0,2,1,3]>(r) t2 = Transpose<perm=[0,1,3,2]>(t) "
                    "k = Mul(t2, f32(0.5)) s = MatMul(q, k) d = Div(s, f32(2)) m = Add(mask, d) "
                    "h = Where(keep, m, f32(-inf)) y = Softmax<axis=3>(h)"
                ),
            ),
        ],
        [
            ("given", "y = Softmax(scores)", "no product of queries and keys is found"),
            (
                "bounded",
                ADDED + KEYS + "b = Tanh(s) y = Softmax(b)",
                "no product of queries and keys is found",
            ),
            (
                "hidden-by-a-small-number",
                ADDED + KEYS + "h = Where(keep, s, f32(-1)) y = Softmax(h)",
                "what is hidden is not far below",
            ),
            ("other-axis", ADDED + KEYS + "y = Softmax<axis=2>(s)", "the softmax runs over another axis"),
            (
                "by-token",
                "a = Add(own, x) " + VIEW.format("a") + KEYS + "y = Softmax(s)",
                "nothing is added to all keys alike",
            ),
            (
                "by-token-constant",
                "a = Add(x, f32(normal(7,24))) " + VIEW.format("a") + KEYS + "y = Softmax(s)",
                "nothing is added to all keys alike",
            ),
            ("read", ADDED + KEYS + "y = Softmax(s) y2 = Relu(a)", "nothing is added to all keys alike"),
        ],
    ),
    *rows(
        drop_bias_of_keys,
        NODES,
        (),
        [("nodes", ADDED + KEYS + "y = Softmax(s)", "the bias is joined with others")],
    ),
    *rows(
        drop_bias_of_keys,
        OLD,
        (),
        [("old", ADDED + KEYS + "y = Softmax<axis=3>(s)", "the operands do not have four axes")],
    ),
    *rows(
        move_bias_of_values,
        X,
        [
            (
                "plain",
                WHOLE,
                (
                    VIEW.format("x")
                    + "p = Softmax(scores) v = Transpose<perm=[0,2,1,3]>(r) m = MatMul(p, v) "
                    "u = Transpose<perm=[0,2,1,3]>(m) j = Reshape(u, i64([0,0,24])) o = MatMul(j, _) "
                    "y = Add(o, _)"
                ),
            )
        ],
        [
            (
                "nothing-added",
                VIEW.format("x") + VALUES + END + "y = Add(o, f32(normal(6)))",
                "nothing is added to all values alike",
            ),
            (
                "other-axis",
                WHOLE.replace("Softmax(", "Softmax<axis=1>("),
                "the softmax runs over another axis",
            ),
            (
                "tokens-and-heads-in-turns",
                WHOLE.replace("u = Transpose<perm=[0,2,1,3]>(m)", "u = Transpose<perm=[0,1,2,3]>(m)"),
                "heads and tokens are not swapped",
            ),
            (
                "broadcast",
                WHOLE.replace("f32(normal(6))", "f32(1)"),
                "the bias is broadcast",
            ),
        ],
    ),
    *rows(move_bias_of_values, EMPTY, (), [("no-keys", WHOLE, "a tensor may be empty")]),
    *rows(move_bias_of_values, NODES, (), [("nodes", WHOLE, "the bias is joined with others")]),
    *rows(
        move_bias_of_values,
        OLD,
        (),
        [("old", WHOLE.replace("Softmax(", "Softmax<axis=3>("), "the operands do not have four axes")],
    ),
]

test_rows = table_test(ROWS)
