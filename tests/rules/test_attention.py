"""Attention: the product of softmaxed scores, repeated heads, heads side by side, the guard."""

from __future__ import annotations

import numpy as np
from harness import Setup, rows, table_test

from optimizer.rewrite import Settings
from passes.attention import (
    drop_guard_of_softmax,
    fuse_attention,
    share_repeated_heads,
    take_heads_side_by_side,
)

NODES = Settings(fp="fast", growth=None, objective="nodes")
INPUTS = (
    "float[B,3,S,8] q, float[B,3,T,8] k, float[B,3,T,8] v, float[B,1,S,T] mask, float[1,3,S,T] bias, "
    "float[B,1,1,T] row, float[1,3,T,8] one, float[5,8] flat, float[T,S] pair"
)
HEADS = Setup(INPUTS, opset=23, settings=NODES, rtol=1e-4, sizes=[{"B": 2, "S": 5, "T": 7}])
BALANCED = Setup(INPUTS, opset=23, sizes=HEADS.sizes, rtol=1e-4)
OLD = Setup(INPUTS, opset=17, settings=NODES, sizes=HEADS.sizes)
DOUBLE = Setup("double[B,3,S,8] q, double[B,3,S,8] k", opset=23, settings=NODES)
MANY = Setup(
    "float[B,4,S,8] q, float[B,2,1,S,8] k, float[B,4,S,8] plain, float[2,S,8] flat, float[B,2,2,S,8] wide",
    opset=23,
    settings=NODES,
    rtol=1e-4,
    sizes=[{"B": 2, "S": 5}],
)
ROWS_OF = Setup(
    "float[B,S,24] q, float[B,S,24] k, float[S,B,24] s, float[B,S,72] all, float[B,S,72] more, "
    "float[B,3,S,8] plain, float[B,S,32] four, float[B,S,4] cos, float[B,S,4] sin, int64[3] to",
    opset=23,
    settings=NODES,
    rtol=1e-4,
    sizes=[{"B": 2, "S": 5}],
    feeds={"to": np.array([2, 5, 24])},
)
KT = "t = Transpose<perm=[0,1,3,2]>(k) s = MatMul(q, t) "
SPLIT = "{0}4 = Reshape({0}, i64([0,0,3,8])) {0}h = Transpose<perm=[0,2,1,3]>({0}4) "
JOIN = "t = Transpose<perm=[0,2,1,3]>(a) y = Reshape(t, i64([0,0,24]))"
PARTS = "r = Reshape({0}, i64([0,0,3,3,8])) u = Transpose<perm=[2,0,3,1,4]>(r) "
REPEAT = "{0}e = Expand(k, i64([1,1,2,1,1])) {0}r = Reshape({0}e, i64([0,4,-1,8])) "

ROWS = [
    *rows(
        fuse_attention,
        HEADS,
        [
            (
                "plain",
                KT + "p = Softmax(s) y = MatMul(p, v)",
                "y = Attention<scale=1.0>(q, k, v)",
            ),
            (
                "scaled-and-masked",
                KT + "c = Div(s, f32(4)) m = Add(c, mask) p = Softmax(m) y = MatMul(p, v)",
                "y = Attention<scale=0.25>(q, k, v, mask)",
            ),
            (
                "two-masks",
                KT + "c = Add(bias, s) m = Add(c, row) p = Softmax(m) y = MatMul(p, v)",
                "m = Add(bias, row) y = Attention<scale=1.0>(q, k, v, m)",
            ),
            (
                "scaled-operands",
                (
                    "t = Transpose<perm=[0,1,3,2]>(k) a = Mul(q, f32(0.5)) b = Div(t, f32([4])) "
                    "s = MatMul(a, b) p = Softmax(s) y = MatMul(p, v)"
                ),
                "y = Attention<scale=0.125>(q, k, v)",
            ),
            (
                "keys-not-transposed",
                (
                    "t = Transpose<perm=[0,1,3,2]>(k) r = Relu(t) s = MatMul(q, r) p = Softmax(s) y = "
                    "MatMul(p, v)"
                ),
                (
                    "t = Transpose<perm=[0,1,3,2]>(k) r = Relu(t) u = Transpose<perm=[0,1,3,2]>(r) "
                    "y = Attention<scale=1.0>(q, u, v)"
                ),
            ),
            (
                "keys-transposed-at-once",
                "t = Transpose<perm=[0,2,3,1]>(z) s = MatMul(q, t) p = Softmax(s) y = MatMul(p, v)".replace(
                    "(z)", "(w)"
                ).replace("t =", "w = Transpose<perm=[0,2,1,3]>(k) t ="),
                (
                    "w = Transpose<perm=[0,2,1,3]>(k) u = Transpose<perm=[0,2,1,3]>(w) "
                    "y = Attention<scale=1.0>(q, u, v)"
                ),
            ),
        ],
        [
            (
                "two-axes",
                "s = MatMul(flat, f32(normal(8,5))) p = Softmax(s) y = MatMul(p, flat)",
                "the operands do not have four axes",
            ),
            (
                "other-axis",
                KT + "p = Softmax<axis=2>(s) y = MatMul(p, v)",
                "the softmax runs over another axis",
            ),
            (
                "negative",
                KT + "c = Mul(s, f32(-2)) p = Softmax(c) y = MatMul(p, v)",
                "the scale is not positive",
            ),
            (
                "scales",
                KT + "c = Mul(s, f32(normal(1,3,1,1))) p = Softmax(c) y = MatMul(p, v)",
                "the scale is no scalar",
            ),
            (
                "short-mask",
                KT + "m = Add(s, pair) p = Softmax(m) y = MatMul(p, v)",
                "the mask may stretch the scores",
            ),
            (
                "row-mask",
                KT + "m = Add(s, row) p = Softmax(m) y = MatMul(p, v)",
                "the mask is the same for all tokens",
            ),
            (
                "broadcast",
                "t = Transpose<perm=[0,1,3,2]>(one) s = MatMul(q, t) p = Softmax(s) y = MatMul(p, one)",
                "batch or heads are broadcast",
            ),
        ],
    ),
    *rows(
        fuse_attention,
        BALANCED,
        (),
        [("mask", KT + "m = Add(s, mask) p = Softmax(m) y = MatMul(p, v)", "it would be slower with a mask")],
    ),
    *rows(
        fuse_attention,
        OLD,
        (),
        [("old", KT + "p = Softmax<axis=-1>(s) y = MatMul(p, v)", "Attention needs opset 23")],
    ),
    *rows(
        fuse_attention,
        DOUBLE,
        (),
        [("double", KT + "p = Softmax(s) y = MatMul(p, k)", "not float32 or float16")],
    ),
    *rows(
        share_repeated_heads,
        MANY,
        [
            (
                "groups",
                REPEAT.format("k") + REPEAT.format("v") + "y = Attention(q, kr, vr)",
                "a = Squeeze(k, i64([2])) b = Squeeze(k, i64([2])) y = Attention(q, a, b)",
            )
        ],
        [
            (
                "batch",
                "e = Expand(wide, i64([1,1,2,1,1])) r = Reshape(e, i64([0,4,-1,8])) y = Attention(q, r, r)",
                "it is not each head that is repeated",
            ),
            (
                "heads-in-turns",
                (
                    "u = Transpose<perm=[0,2,1,3,4]>(k) e = Expand(u, i64([1,2,1,1,1])) "
                    "r = Reshape(e, i64([0,4,-1,8])) y = Attention(q, r, r)"
                ),
                "it is not each head that is repeated",
            ),
        ],
    ),
    *rows(
        take_heads_side_by_side,
        ROWS_OF,
        [
            (
                "three",
                SPLIT.format("q") + SPLIT.format("k") + "a = Attention(qh, kh, kh) " + JOIN,
                "y = Attention<q_num_heads=3, kv_num_heads=3>(q, k, k)",
            ),
            (
                "parts-of-one",
                PARTS.format("all") + "x0 = Gather<axis=0>(u, i64(0)) x1 = Gather<axis=0>(u, i64(1)) x2 = "
                "Gather<axis=0>(u, i64(2)) "
                "a = Attention(x0, x1, x2) " + JOIN,
                (
                    "q0, k0, v0 = Split<axis=2, num_outputs=3>(all) "
                    "y = Attention<q_num_heads=3, kv_num_heads=3>(q0, k0, v0)"
                ),
            ),
            (
                "tokens-first",
                (
                    "r = Reshape(s, i64([0,0,3,8])) h = Transpose<perm=[1,2,0,3]>(r) a = Attention(h, h, h) "
                    "t = Transpose<perm=[2,0,1,3]>(a) y = Reshape(t, i64([0,0,24]))"
                ),
                (
                    "t = Transpose<perm=[1,0,2]>(s) t2 = Transpose<perm=[1,0,2]>(s) t3 = "
                    "Transpose<perm=[1,0,2]>(s) "
                    "a = Attention<q_num_heads=3, kv_num_heads=3>(t, t2, t3) y = Transpose<perm=[1,0,2]>(a)"
                ),
            ),
            (
                "turned",
                SPLIT.format("q")
                + SPLIT.format("k")
                + "e = RotaryEmbedding(qh, cos, sin) a = Attention(e, kh, kh) "
                + JOIN,
                (
                    "e = RotaryEmbedding<num_heads=3>(q, cos, sin) "
                    "y = Attention<q_num_heads=3, kv_num_heads=3>(e, k, k)"
                ),
            ),
            (
                "flattened",
                SPLIT.format("q") + "a = Attention(qh, qh, qh) t = Transpose<perm=[0,2,1,3]>(a) "
                "y = Reshape(t, i64([-1,24]))",
                "a = Attention<q_num_heads=3, kv_num_heads=3>(q, q, q) y = Reshape(a, i64([-1,24]))",
            ),
        ],
        [
            (
                "other-order",
                SPLIT.format("q") + "a = Attention(qh, qh, qh) t = Transpose<perm=[0,3,1,2]>(a) "
                "y = Reshape(t, i64([0,0,-1]))",
                "heads and tokens are not swapped",
            ),
            (
                "no-rows",
                "a = Attention(plain, plain, plain) " + JOIN,
                "an operand does not come with its heads side by side",
            ),
            (
                "parts-of-two",
                PARTS.format("all") + "r2 = Reshape(more, i64([0,0,3,3,8])) "
                "u2 = Transpose<perm=[2,0,3,1,4]>(r2) x0 = Gather<axis=0>(u, i64(0)) "
                "x1 = Gather<axis=0>(u2, i64(1)) a = Attention(x0, x1, x1) " + JOIN,
                "the operands are parts of different values",
            ),
            (
                "copied",
                SPLIT.format("q") + "a = Attention(qh, qh, qh) t = Transpose<perm=[0,2,1,3]>(a) "
                "y = Reshape(t, i64([0,0,0,2,4]))",
                "the view copies a dimension of the heads",
            ),
            (
                "computed",
                SPLIT.format("q") + "a = Attention(qh, qh, qh) t = Transpose<perm=[0,2,1,3]>(a) "
                "y = Reshape(t, to)",
                "an operand is not a constant",
            ),
        ],
    ),
    *rows(
        drop_guard_of_softmax,
        HEADS,
        [
            (
                "finite-mask",
                (
                    "c = Where(bool([True]), f32(0), f32(-10000)) m = Add(q, c) p = Softmax(m) n = IsNaN(p) "
                    "y = Where(n, f32(0), p)"
                ),
                "c = Where(bool([True]), f32(0), f32(-10000)) m = Add(q, c) y = Softmax(m)",
            ),
            ("product", KT + "p = Softmax(s) n = IsNaN(p) y = Where(n, f32(0), p)", KT + "y = Softmax(s)"),
        ],
        [
            (
                "infinite",
                (
                    "c = Where(bool([True]), f32(0), f32(-inf)) m = Add(q, c) p = Softmax(m) n = IsNaN(p) "
                    "y = Where(n, f32(0), p)"
                ),
                "the scores may be infinite",
            ),
            (
                "of-another",
                "p = Softmax(q) n = IsNaN(q) y = Where(n, f32(0), p)",
                "the guard is of something else",
            ),
            (
                "stretched",
                "p = Softmax(q) n = IsNaN(p) y = Where(n, f32(zeros(2,1,1,1)), p)",
                "what is put in stretches it",
            ),
        ],
    ),
]

test_rows = table_test(ROWS)
