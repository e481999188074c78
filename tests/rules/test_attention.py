"""Attention: the product of softmaxed scores, repeated heads, heads side by side, the guard."""

from __future__ import annotations

import numpy as np
from harness import Setup, rows, table_test

from optimizer.rewrite import Settings
from passes.attention import drop_guard_of_softmax, fuse_attention
from passes.attention_heads import share_repeated_heads, take_heads_side_by_side

NODES = Settings(fp="fast", growth=None, objective="nodes", nonzero_dims=True)
INPUTS = (
    "float[B,3,S,8] q, float[B,3,T,8] k, float[B,3,T,8] v, float[B,1,S,T] mask, float[1,3,S,T] bias, "
    "float[B,1,1,T] row, float[1,3,T,8] one, float[5,8] flat, float[T,S] pair, float[B,6,24] x"
)
HEADS = Setup(INPUTS, opset=23, settings=NODES, rtol=1e-4, sizes=[{"B": 2, "S": 5, "T": 7}])
FULL = Settings(fp="fast", growth=None, nonzero_dims=True)
BALANCED = Setup(INPUTS, opset=23, settings=FULL, sizes=HEADS.sizes, rtol=1e-4)
MAYBE_EMPTY = Setup(INPUTS, opset=23, sizes=HEADS.sizes)
LOW = "f32(-3.4028234663852886e38)"
MASK_INPUTS = (
    "float[B,3,S,8] q, float[B,3,T,8] k, float[B,3,T,8] v, bool[B,1,S,T] keep, bool[1,1,1,T] row, "
    "bool[K,T] few, float[B,1,S,1] column"
)
SEEN = {"keep": np.tri(5, 7, dtype=bool)[None, None].repeat(2, 0), "row": np.arange(7)[None, None, None] > 4}
MASKS = Setup(
    MASK_INPUTS,
    opset=23,
    settings=NODES,
    rtol=1e-4,
    sizes=[{"B": 2, "S": 5, "T": 7, "K": 5}],
    feeds=SEEN,
)
NOTHING_SEEN = Setup(
    MASK_INPUTS,
    opset=23,
    settings=NODES,
    rtol=1e-4,
    sizes=MASKS.sizes,
    feeds={
        "keep": np.arange(5)[:, None].repeat(7, 1)[None, None].repeat(2, 0) > 2,
        "row": SEEN["row"] | True,
    },
)
HALF = Setup("float16[B,3,S,8] q, bool[B,1,S,S] keep", opset=23, settings=NODES)
THREE = Setup(
    "float[N,S,8] q, float[N,T,8] k, float[N,T,8] v, float[S,T] mask, float[N,S,T] own",
    opset=23,
    settings=NODES,
    rtol=1e-4,
)
QUERY = Setup("float[B,3,S,8] q, float[B,1,T,8] k, float[B,1,T,8] v", opset=23, settings=NODES, rtol=1e-4)
OLD = Setup(INPUTS, opset=17, settings=NODES, sizes=HEADS.sizes)
DOUBLE = Setup("double[B,3,S,8] q, double[B,3,S,8] k", opset=23, settings=NODES)
MANY = Setup(
    "float[B,4,S,8] q, float[B,2,1,S,8] k, float[B,4,S,8] plain, float[2,S,8] flat, float[B,2,2,S,8] wide, "
    "float[B,2,S,8] two, float[B,S,32] rows32",
    opset=23,
    settings=NODES,
    rtol=1e-4,
    sizes=[{"B": 2, "S": 5}],
)
ROWS_OF = Setup(
    "float[B,5,24] q, float[B,5,24] k, float[B,5,8] k1, float[5,B,24] s, float[6,1,5,5] single, "
    "float[B,3,P,8] pk, float[B,S,72] all, float[B,S,72] more, "
    "float[B,3,S,8] plain, float[B,S,32] four, float[B,S,4] cos, float[B,S,4] sin, int64[3] to",
    opset=23,
    settings=NODES,
    rtol=1e-4,
    sizes=[{"B": 2, "S": 5, "P": 4}],
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
                "l = Mul(mask, f32(0.99999994)) y = Attention<scale=0.25>(q, k, v, l)",
            ),
            (
                "two-masks",
                KT + "c = Add(bias, s) m = Add(c, row) p = Softmax(m) y = MatMul(p, v)",
                (
                    "l = Mul(bias, f32(0.99999994)) r = Mul(row, f32(0.99999994)) m = Add(l, r) "
                    "y = Attention<scale=1.0>(q, k, v, m)"
                ),
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
                "both-scaled-before-the-transpose",
                (
                    "a = Mul(f32(0.5), q) b = Mul(k, f32(0.5)) t = Transpose<perm=[0,1,3,2]>(b) "
                    "s = MatMul(a, t) p = Softmax(s) y = MatMul(p, v)"
                ),
                "y = Attention<scale=0.25>(q, k, v)",
            ),
            (
                "row-mask",
                KT + "m = Add(s, row) p = Softmax(m) y = MatMul(p, v)",
                (
                    "l = Mul(row, f32(0.99999994)) n = Shape<start=2, end=3>(q) "
                    "t = Concat<axis=0>(i64([1,1]), n, i64([1])) e = Expand(l, t) "
                    "y = Attention<scale=1.0>(q, k, v, e)"
                ),
            ),
            (
                "bound",
                KT + "a = Mul(s, f32(0.01)) b = Tanh(a) c = Mul(b, f32(50)) p = Softmax(c) y = MatMul(p, v)",
                "y = Attention<scale=0.5, softcap=50.0>(q, k, v)",
            ),
            (
                "one-head-of-keys",
                KT.replace("(k)", "(k1)").replace("t =", "k1 = Slice(k, i64([0]), i64([1]), i64([1])) t =")
                + "p = Softmax(s) v1 = Slice(v, i64([0]), i64([1]), i64([1])) y = MatMul(p, v1)",
                (
                    "a = Slice(k, i64([0]), i64([1]), i64([1])) b = Slice(v, i64([0]), i64([1]), i64([1])) "
                    "y = Attention<scale=1.0>(q, a, b)"
                ),
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
                "no product of queries and keys is found",
            ),
            (
                "short-mask",
                KT + "m = Add(s, pair) p = Softmax(m) y = MatMul(p, v)",
                "the mask may stretch the scores",
            ),
            (
                "scaled-after-the-mask",
                KT + "m = Add(s, mask) c = Mul(m, f32(2)) p = Softmax(c) y = MatMul(p, v)",
                "no product of queries and keys is found",
            ),
            (
                "read-twice",
                KT + "c = Mul(s, f32(2)) p = Softmax(c) y = MatMul(p, v) y2 = Relu(c)",
                "no product of queries and keys is found",
            ),
            (
                "negative-bound",
                KT + "b = Tanh(s) c = Mul(b, f32(-3)) p = Softmax(c) y = MatMul(p, v)",
                "the scale is not positive",
            ),
            (
                "guard-of-another",
                KT + "p = Softmax(s) r = Softmax(flat) n = IsNaN(p) y2 = Relu(r) z = IsNaN(r) "
                "n2 = ReduceMax<keepdims=0>(r) n3 = IsNaN(n2) g = Where(n3, f32(0), p) y = MatMul(g, v)",
                "the guard is of something else",
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
        MAYBE_EMPTY,
        (),
        [("empty", KT + "p = Softmax(s) y = MatMul(p, v)", "a tensor may be empty")],
    ),
    *rows(
        fuse_attention,
        BALANCED,
        [
            (
                "mask-of-heads-side-by-side",
                (
                    "a = Reshape(x, i64([0,0,3,8])) q1 = Transpose<perm=[0,2,1,3]>(a) "
                    "t = Transpose<perm=[0,2,3,1]>(a) s = MatMul(q1, t) m = Add(s, f32(normal(1,1,6,6))) "
                    "p = Softmax(m) z = MatMul(p, q1) u = Transpose<perm=[0,2,1,3]>(z) "
                    "y = Reshape(u, i64([0,0,24]))"
                ),
                (
                    "a = Reshape(x, i64([0,0,3,8])) q1 = Transpose<perm=[0,2,1,3]>(a) "
                    "t = Transpose<perm=[0,2,1,3]>(a) "
                    "z = Attention<scale=1.0>(q1, t, q1, f32(normal(1,1,6,6))) "
                    "u = Transpose<perm=[0,2,1,3]>(z) y = Reshape(u, i64([0,0,24]))"
                ),
            ),
        ],
    ),
    *rows(
        fuse_attention,
        MASKS,
        [
            (
                "hidden",
                KT + "m = Where(keep, s, f32(-inf)) p = Softmax(m) y = MatMul(p, v)",
                "y = Attention<scale=1.0>(q, k, v, keep)",
            ),
            (
                "not-lowest",
                KT + "w0 = Where(keep, f32(0), f32(-10000)) m = Add(s, w0) p = Softmax(m) y = MatMul(p, v)",
                "w0 = Where(keep, f32(0), f32(-10000)) y = Attention<scale=1.0>(q, k, v, w0)",
            ),
            (
                "added-zero-or-infinity",
                KT + "w0 = Where(keep, f32(0), f32(-inf)) m = Add(w0, s) p = Softmax(m) y = MatMul(p, v)",
                "y = Attention<scale=1.0>(q, k, v, keep)",
            ),
            (
                "two",
                KT + "m = Where(keep, s, f32(-inf)) n = Add(m, column) p = Softmax(n) y = MatMul(p, v)",
                (
                    "l = Mul(column, f32(0.99999994)) w0 = Where(keep, f32(0), f32(-inf)) a = Add(l, w0) "
                    "y = Attention<scale=1.0>(q, k, v, a)"
                ),
            ),
            (
                "column",
                KT + "m = Add(s, column) p = Softmax(m) y = MatMul(p, v)",
                (
                    "l = Mul(column, f32(0.99999994)) n = Shape<start=2, end=3>(v) "
                    "t = Concat<axis=0>(i64([1,1]), i64([1]), n) e = Expand(l, t) "
                    "y = Attention<scale=1.0>(q, k, v, e)"
                ),
            ),
            (
                "triangle",
                KT
                + "s1 = Shape<start=2, end=3>(q) s2 = Shape<start=2, end=3>(k) st = Concat<axis=0>(s1, s2) "
                "o = ConstantOfShape<value = int64[1] {1}>(st) c = Trilu<upper=0>(o) b = Cast<to=9>(c) "
                "m = Where(b, s, f32(-inf)) p = Softmax(m) y = MatMul(p, v)",
                "y = Attention<scale=1.0, is_causal=1>(q, k, v)",
            ),
        ],
        [
            (
                "not-far-below",
                KT + "m = Where(keep, s, f32(-10000)) p = Softmax(m) y = MatMul(p, v)",
                "what is hidden is not far below",
            ),
            (
                "more-queries",
                KT + "m = Where(few, s, f32(-inf)) p = Softmax(m) y = MatMul(p, v)",
                "the mask may stretch the scores",
            ),
        ],
    ),
    *rows(
        fuse_attention,
        NOTHING_SEEN,
        [
            (
                "hidden-where-true",
                KT + "m = Where(keep, f32(-inf), s) p = Softmax(m) n = IsNaN(p) g = Where(n, f32(0), p) "
                "y = MatMul(g, v)",
                "n = Not(keep) y = Attention<scale=1.0>(q, k, v, n)",
            ),
            (
                "lowest",
                KT + f"m = Where(keep, s, {LOW}) p = Softmax(m) y = MatMul(p, v)",
                "m = Where(keep, f32(0), f32(-3.4028232635611926e38)) y = Attention<scale=1.0>(q, k, v, m)",
            ),
            (
                "lowest-added",
                KT + f"w1 = Where(row, {LOW}, f32(0)) w2 = Where(keep, f32(1), f32(2)) w3 = Add(w1, w2) "
                "m = Add(s, w3) p = Softmax(m) y = MatMul(p, v)",
                (
                    "w1 = Where(row, f32(-3.4028232635611926e38), f32(0)) w2 = Where(keep, f32(1), f32(2)) "
                    "w3 = Add(w1, w2) y = Attention<scale=1.0>(q, k, v, w3)"
                ),
            ),
        ],
    ),
    *rows(
        fuse_attention,
        HALF,
        (),
        [
            (
                "lowest-half",
                (
                    "t = Transpose<perm=[0,1,3,2]>(q) s = MatMul(q, t) m = Where(keep, s, f16(-65504)) "
                    "p = Softmax(m) y = MatMul(p, q)"
                ),
                "what is hidden is not far below",
            )
        ],
    ),
    *rows(
        fuse_attention,
        THREE,
        [
            (
                "no-heads",
                (
                    "t = Transpose<perm=[0,2,1]>(k) s = MatMul(q, t) m = Add(s, mask) p = Softmax(m) "
                    "y = MatMul(p, v)"
                ),
                (
                    "l = Mul(mask, f32(0.99999994)) "
                    "y = Attention<scale=1.0, q_num_heads=1, kv_num_heads=1>(q, k, v, l)"
                ),
            )
        ],
        [
            (
                "mask-for-each",
                (
                    "t = Transpose<perm=[0,2,1]>(k) s = MatMul(q, t) m = Add(s, own) p = Softmax(m) "
                    "y = MatMul(p, v)"
                ),
                "the mask may stretch the scores",
            )
        ],
    ),
    *rows(
        fuse_attention,
        QUERY,
        [
            (
                "heads-of-queries-only",
                KT + "p = Softmax(s) y = MatMul(p, v)",
                "y = Attention<scale=1.0>(q, k, v)",
            )
        ],
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
            ),
            (
                "groups-by-tile-and-concat",
                (
                    "e = Tile(k, i64([1,1,2,1,1])) r = Reshape(e, i64([0,4,-1,8])) "
                    "c = Concat<axis=2>(k, k) t = Reshape(c, i64([0,4,-1,8])) y = Attention(q, r, t)"
                ),
                "a = Squeeze(k, i64([2])) b = Squeeze(k, i64([2])) y = Attention(q, a, b)",
            ),
            (
                "groups-by-gather",
                (
                    "t = Gather<axis=1>(two, i64([0,0,1,1])) r = Gather<axis=1>(two, i64([0,0,-1,-1])) "
                    "y = Attention(q, t, r)"
                ),
                "y = Attention(q, two, two)",
            ),
        ],
        [
            (
                "batch",
                "e = Expand(wide, i64([1,1,2,1,1])) r = Reshape(e, i64([0,4,-1,8])) y = Attention(q, r, r)",
                "it is not each head that is repeated",
            ),
            (
                "gathered-in-turns",
                "t = Gather<axis=1>(two, i64([0,1,0,1])) y = Attention(q, t, t)",
                "it is not each head that is repeated",
            ),
            (
                "repeated-differently",
                (
                    "t = Gather<axis=1>(two, i64([0,0,1,1])) o = Slice(two, i64([0]), i64([1]), i64([1])) "
                    "r = Gather<axis=1>(o, i64([0,0,0,0])) y = Attention(q, t, r)"
                ),
                "keys and values are repeated differently",
            ),
            (
                "counted",
                "y = Attention<q_num_heads=4, kv_num_heads=4>(rows32, rows32, rows32)",
                "its heads are counted",
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
                "one-head",
                SPLIT.format("q") + "o = Unsqueeze(k1, i64([1])) a = Attention(qh, o, o) " + JOIN,
                "y = Attention<q_num_heads=3, kv_num_heads=1>(q, k1, k1)",
            ),
            (
                "batch-and-heads-in-one",
                (
                    "n = Shape<start=1, end=2>(s) n3 = Mul(n, i64([3])) "
                    "to3 = Concat<axis=0>(i64([5]), n3, i64([8])) "
                    "r = Reshape(s, to3) h = Transpose<perm=[1,0,2]>(r) "
                    "a = Attention<q_num_heads=1, kv_num_heads=1>(h, h, h) "
                    "t = Transpose<perm=[1,0,2]>(a) y = Reshape(t, i64([-1,24]))"
                ),
                (
                    "t = Transpose<perm=[1,0,2]>(s) t2 = Transpose<perm=[1,0,2]>(s) t3 = "
                    "Transpose<perm=[1,0,2]>(s) a = Attention<q_num_heads=3, kv_num_heads=3>(t, t2, t3) "
                    "u = Transpose<perm=[1,0,2]>(a) y = Reshape(u, i64([-1,24]))"
                ),
            ),
            (
                "with-a-cache",
                SPLIT.format("q")
                + "a, nk, nv = Attention(qh, qh, qh, , pk, pk) y2 = Relu(nk) y3 = Relu(nv) "
                + JOIN,
                (
                    "a, nk, nv = Attention<q_num_heads=3, kv_num_heads=3>(q, q, q, , pk, pk) "
                    "y2 = Relu(nk) y3 = Relu(nv) y = Identity(a)"
                ),
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
                "masks-of-single-heads",
                (
                    "n = Shape<start=1, end=2>(s) n3 = Mul(n, i64([3])) "
                    "to3 = Concat<axis=0>(i64([5]), n3, i64([8])) "
                    "r = Reshape(s, to3) h = Transpose<perm=[1,0,2]>(r) "
                    "a = Attention<q_num_heads=1, kv_num_heads=1>(h, h, h, single) "
                    "t = Transpose<perm=[1,0,2]>(a) y = Reshape(t, i64([-1,24]))"
                ),
                "what it is given is for single heads",
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
