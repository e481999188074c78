"""onnxruntime's own attention."""

from __future__ import annotations

from harness import Setup, rows, table_test

from optimizer.rewrite import Settings
from passes.contrib_attention import fuse_multi_head_attention

TARGET = Settings(fp="fast", growth=None, target="onnxruntime")
NODES = Settings(fp="fast", growth=None, target="onnxruntime", objective="nodes")
INPUTS = (
    "float[B,S,24] q, float[B,T,24] k, float[B,T,24] v, float[B,1,S,T] mask, float[S,T] flat, "
    "float[1,T,24] one, float[B,T,16] two, float[B,3,P,8] pk, float[B,3,P,8] pv, double[B,S,24] d"
)
SIZES = [{"B": 2, "S": 5, "T": 7, "P": 3}, {"B": 1, "S": 1, "T": 1, "P": 1}, {"B": 2, "S": 2, "T": 3, "P": 0}]
X = Setup(INPUTS, settings=TARGET, sizes=SIZES, rtol=1e-4)
FEWER = Setup(INPUTS, settings=NODES, sizes=SIZES, rtol=1e-4)
SPLIT = "{0}r = Reshape({1}, i64([0,0,3,8])) {0}h = Transpose<perm=[0,2,1,3]>({0}r) "
QKV = SPLIT.format("q", "q") + SPLIT.format("k", "k") + SPLIT.format("v", "v")
TURN = "t = Transpose<perm=[0,1,3,2]>({}) s = MatMul(qh, t) "
JOIN = (
    "p = Softmax<axis=3>({}) z = MatMul(p, {}) u = Transpose<perm=[0,2,1,3]>(z) y = Reshape(u, i64([0,0,24]))"
)
PLAIN = QKV + TURN.format("kh") + JOIN.format("s", "vh")
CACHE = "ak = Concat<axis=2>(pk, kh) av = Concat<axis=-2>(pv, vh) "

ROWS = [
    *rows(
        fuse_multi_head_attention,
        X,
        [
            (
                "plain",
                PLAIN,
                "y = com.microsoft.MultiHeadAttention<num_heads=3, scale=1.0>(q, k, v)",
            ),
            (
                "scaled",
                (
                    SPLIT.format("q", "q") + SPLIT.format("v", "v") + "kr = Reshape(k, i64([0,0,3,8])) "
                    "a = Mul(qh, f32(0.5)) t = Transpose<perm=[0,2,3,1]>(kr) s = MatMul(a, t) "
                    "c = Div(s, f32(2)) " + JOIN.format("c", "vh")
                ),
                "y = com.microsoft.MultiHeadAttention<num_heads=3, scale=0.25>(q, k, v)",
            ),
            (
                "cache",
                QKV + CACHE + TURN.format("ak") + JOIN.format("s", "av") + " y2 = Relu(ak) y3 = Relu(av)",
                (
                    "y, nk, nv = com.microsoft.MultiHeadAttention<num_heads=3, scale=1.0>"
                    "(q, k, v, , , , pk, pv) y2 = Relu(nk) y3 = Relu(nv)"
                ),
            ),
        ],
        [
            (
                "masked",
                QKV + TURN.format("kh") + "m = Add(s, mask) " + JOIN.format("m", "vh"),
                "it would be slower with a mask",
            ),
            (
                "two-masks",
                QKV + TURN.format("kh") + "l = Add(s, mask) m = Add(l, mask) " + JOIN.format("m", "vh"),
                "no product of queries and keys is found",
            ),
            (
                "negative",
                QKV + TURN.format("kh") + "c = Mul(s, f32(-1)) " + JOIN.format("c", "vh"),
                "the scale is not positive",
            ),
            (
                "other-axis",
                PLAIN.replace("axis=3", "axis=2"),
                "the softmax runs over another axis",
            ),
            (
                "cache-of-keys-only",
                QKV
                + CACHE
                + TURN.format("ak")
                + "a = Slice(v, i64([0]), i64([2]), i64([1])) "
                + JOIN.format("s", "vh")
                + " y2 = Relu(ak)",
                "heads are shared",
            ),
            (
                "unread-cache",
                QKV + CACHE + TURN.format("ak") + JOIN.format("s", "av"),
                "an operand does not come with its heads side by side",
            ),
            (
                "one-batch",
                SPLIT.format("q", "q")
                + SPLIT.format("k", "one")
                + SPLIT.format("v", "one")
                + TURN.format("kh")
                + JOIN.format("s", "vh"),
                "batch or heads are broadcast",
            ),
            (
                "other-order",
                QKV + TURN.format("kh") + "p = Softmax(s) z = MatMul(p, vh) u = Transpose<perm=[0,3,1,2]>(z) "
                "y = Reshape(u, i64([0,0,-1]))",
                "heads and tokens are not swapped",
            ),
            (
                "three-axes",
                (
                    "t = Transpose<perm=[0,2,1]>(k) s = MatMul(q, t) p = Softmax(s) z = MatMul(p, v) "
                    "u = Transpose<perm=[1,0,2]>(z) y = Reshape(u, i64([0,-1]))"
                ),
                "the operands do not have four axes",
            ),
            (
                "double",
                "r = Reshape(d, i64([0,0,3,8])) h = Transpose<perm=[0,2,1,3]>(r) "
                "t = Transpose<perm=[0,2,3,1]>(r) s = MatMul(h, t) " + JOIN.format("s", "h"),
                "not float32",
            ),
        ],
    ),
    *rows(
        fuse_multi_head_attention,
        FEWER,
        [
            (
                "masked",
                QKV + TURN.format("kh") + "m = Add(s, mask) " + JOIN.format("m", "vh"),
                "y = com.microsoft.MultiHeadAttention<num_heads=3, scale=1.0>(q, k, v, , , mask)",
            )
        ],
        [
            (
                "flat-mask",
                QKV + TURN.format("kh") + "m = Add(s, flat) " + JOIN.format("m", "vh"),
                "the mask may stretch the scores",
            )
        ],
    ),
    *rows(
        fuse_multi_head_attention, Setup(INPUTS), (), [("standard", PLAIN, "the target is not onnxruntime")]
    ),
    *rows(
        fuse_multi_head_attention,
        Setup(INPUTS, opset=23, settings=TARGET),
        (),
        [("new", PLAIN, "there is a standard operator")],
    ),
    *rows(
        fuse_multi_head_attention,
        Setup(INPUTS, imports='"com.microsoft" : 2', settings=TARGET),
        (),
        [("version", PLAIN, "the model imports another version of com.microsoft")],
    ),
]

test_rows = table_test(ROWS)
