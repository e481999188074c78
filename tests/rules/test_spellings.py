"""Rarer spellings of normalizations, softmax and Gelu."""

from __future__ import annotations

from harness import Setup, rows, table_test

from passes.idiom_gelu import fuse_gelu, fuse_gelu_tanh
from passes.idiom_norm import fuse_layernorm
from passes.idiom_rms import fuse_rmsnorm
from passes.idiom_softmax import fuse_logsoftmax_of_reductions

TOKENS = Setup("float[N,S,4] x, float[N,S,D] z, int32[N,4] i", rtol=1e-5)
V23 = Setup("float[N,S,4] x", opset=23, rtol=1e-5)
V20 = Setup("float[N,4] x", opset=20, rtol=1e-5)
V11 = Setup("float[N,S,4] x", opset=11, rtol=1e-5)
HEAD = "u = ReduceMean<axes=[-1]>(x) d = Sub(x, u)"
TAIL = "e = Add(v, f32(1e-5)) r = Sqrt(e) y = Div(d, r)"
NORM = "y = LayerNormalization<axis=-1, epsilon=1e-5>(x, f32([1,1,1,1]))"
MEAN = "the sum is not divided by its number of elements"
ERF = "a = Div(x, f32(1.4142135)) b = Erf(a)"
HALF_TANH = "t = Tanh(s) c = Add(t, f32(1)) e = Mul(x, f32(0.5)) y = Mul(e, c)"
SQUARE = "p = Mul(x, x) q = Mul(p, f32({0})) r = Add(q, f32({1}))"
DIFFERENCES = "m = ReduceMax<axes=[{0}]>(x) d = Sub(x, m) e = Exp(d) s = ReduceSum(e, i64([{1}])) l = Log(s)"

ROWS = [
    *rows(
        fuse_layernorm,
        TOKENS,
        [
            ("sum-of-squares", f"{HEAD} s = ReduceSumSquare<axes=[2]>(d) v = Div(s, f32(4)) {TAIL}", NORM),
            (
                "square-of-norm",
                f"{HEAD} s = ReduceL2<axes=[2]>(d) q = Mul(s, s) v = Mul(q, f32(0.25)) {TAIL}",
                NORM,
            ),
            (
                "power-of-norm",
                f"{HEAD} s = ReduceL2<axes=[2]>(d) q = Pow(s, f32(2)) v = Mul(f32(0.25), q) {TAIL}",
                NORM,
            ),
        ],
        [
            ("other-number", f"{HEAD} s = ReduceSumSquare<axes=[2]>(d) v = Div(s, f32(3)) {TAIL}", MEAN),
            (
                "vector",
                f"{HEAD} s = ReduceSumSquare<axes=[2]>(d) v = Div(s, f32([4,4,4,4])) {TAIL}",
                "it is not divided by one number",
            ),
            (
                "unknown",
                f"{HEAD} s = ReduceSumSquare<axes=[2]>(d) v = Div(s, f32(4)) {TAIL}".replace("(x", "(z"),
                "how many elements are added up is not known",
            ),
        ],
    ),
    *rows(
        fuse_rmsnorm,
        V23,
        [
            (
                "sum-of-squares",
                (
                    "s = ReduceSumSquare(x, i64([2])) v = Div(s, f32(4)) e = Add(v, f32(1e-5)) r = "
                    "Sqrt(e) y = Div(x, r)"
                ),
                "y = RMSNormalization<axis=-1, epsilon=1e-5>(x, f32([1,1,1,1]))",
            )
        ],
        [
            (
                "sum",
                (
                    "s = ReduceSumSquare(x, i64([2])) v = Div(s, f32(2)) e = Add(v, f32(1e-5)) r = "
                    "Sqrt(e) y = Div(x, r)"
                ),
                MEAN,
            )
        ],
    ),
    *rows(
        fuse_gelu,
        V20,
        [
            (
                "half-and-half",
                f"{ERF} c = Mul(b, f32(0.5)) e = Add(c, f32(0.5)) y = Mul(x, e)",
                'y = Gelu<approximate="none">(x)',
            ),
            (
                "half-by-division",
                f"{ERF} c = Add(b, f32(1)) e = Div(x, f32(2)) y = Mul(c, e)",
                'y = Gelu<approximate="none">(x)',
            ),
            (
                "divided-last",
                f"{ERF} c = Add(b, f32(1)) e = Mul(x, c) y = Div(e, f32(2))",
                'y = Gelu<approximate="none">(x)',
            ),
        ],
    ),
    *rows(
        fuse_gelu_tanh,
        V20,
        [
            (
                "factored",
                f"{SQUARE.format(0.044715, 1)} w = Mul(x, f32(0.7978845)) s = Mul(w, r) {HALF_TANH}",
                'y = Gelu<approximate="tanh">(x)',
            ),
            (
                "factored-otherwise",
                f"{SQUARE.format(0.044715, 1)} w = Mul(x, r) s = Mul(w, f32(0.7978845)) {HALF_TANH}",
                'y = Gelu<approximate="tanh">(x)',
            ),
            (
                "multiplied-out",
                f"{SQUARE.format(0.0356774, 0.7978845)} s = Mul(x, r) {HALF_TANH}",
                'y = Gelu<approximate="tanh">(x)',
            ),
        ],
    ),
    *rows(
        fuse_logsoftmax_of_reductions,
        TOKENS,
        [
            ("logsumexp", "a = ReduceLogSumExp<axes=[1]>(x) y = Sub(x, a)", "y = LogSoftmax<axis=1>(x)"),
            ("spelled-out", f"{DIFFERENCES.format(-1, 2)} y = Sub(d, l)", "y = LogSoftmax<axis=2>(x)"),
        ],
        [
            ("integers", "a = ReduceLogSumExp<axes=[1]>(i) y = Sub(i, a)", "not a float"),
            ("dropped", "a = ReduceLogSumExp<axes=[0], keepdims=0>(x) y = Sub(x, a)", "an axis is dropped"),
            ("all", "a = ReduceLogSumExp(x) y = Sub(x, a)", "the reductions are not over one axis"),
            (
                "other-axes",
                f"{DIFFERENCES.format(1, 2)} y = Sub(d, l)",
                "the reductions are over different axes",
            ),
            (
                "read",
                f"{DIFFERENCES.format(2, 2)} y = Sub(d, l) y2 = Relu(d)",
                "the differences have other readers",
            ),
        ],
    ),
    *rows(
        fuse_logsoftmax_of_reductions,
        V11,
        [],
        [("flattens", "a = ReduceLogSumExp<axes=[1]>(x) y = Sub(x, a)", "Softmax flattens before opset 13")],
    ),
]

test_rows = table_test(ROWS)
