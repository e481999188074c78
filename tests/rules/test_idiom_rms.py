"""RMSNormalization and RotaryEmbedding spelled out."""

from __future__ import annotations

import numpy as np
from harness import Setup, rows, table_test

from passes.idiom_rms import fold_scale_into_rmsnorm, fuse_rmsnorm, fuse_rotary_embedding

X = Setup("float[N,3,4] x, float[N,3,D] open, double[N,4] d", opset=23, rtol=1e-5, sizes=[{"N": 2, "D": 4}])
OLD = Setup("float[N,3,4] x", opset=17)
ANGLES = np.random.default_rng(3).standard_normal((5, 4)).astype(np.float32)
TABLE = np.concatenate([ANGLES, ANGLES], axis=1)
TURN = Setup(
    "float[B,3,5,8] x, float[5,4] a, float[B,5,8] full, double[B,3,5,8] xx",
    opset=23,
    rtol=1e-5,
    constants={"cos": np.cos(TABLE), "sin": np.sin(TABLE)},
    sizes=[{"B": 2}, {"B": 1}],
)
ONE = Setup(
    "float[1,3,5,8] x, float[5,4] a, int64[1,5] ids, float[1,1,5,8] given",
    opset=23,
    rtol=1e-5,
    constants=TURN.constants,
    feeds={"ids": np.array([[4, 1, 1, 0, 2]])},
)
OLD_TURN = Setup("float[1,3,5,8] x", opset=17, constants=TURN.constants)
MEAN = "q = Mul({0}, {0}) m = ReduceMean(q, i64([{1}])) "
HALVES = (
    "l = Slice(x, i64([0]), i64([4]), i64([3])) r = Slice(x, i64([4]), i64([99]), i64([3])) n = Neg(r) "
    "t = Concat<axis=-1>(n, l) "
)
SUM = "p = Mul(x, {0}) q = Mul(t, {1}) y = Add(p, q)"

ROWS = [
    *rows(
        fuse_rmsnorm,
        X,
        [
            (
                "quotient",
                MEAN.format("x", -1) + "e = Add(m, f32(1e-6)) r = Sqrt(e) y = Div(x, r)",
                "y = RMSNormalization<axis=-1, epsilon=0.000001>(x, f32([1,1,1,1]))",
            ),
            (
                "reciprocal",
                (
                    "q = Pow(x, f32(2)) m = ReduceMean(q, i64([1,2])) e = Add(m, f32([0.5])) r = Sqrt(e) "
                    "i = Reciprocal(r) y = Mul(i, x)"
                ),
                "y = RMSNormalization<axis=-2, epsilon=0.5>(x, f32(ones(3,4)))",
            ),
        ],
        [
            (
                "double",
                MEAN.format("d", -1) + "e = Add(m, f64(1)) r = Sqrt(e) y = Div(d, r)",
                "not float32 or float16",
            ),
            (
                "dropped",
                (
                    "q = Mul(x, x) m = ReduceMean<keepdims=0>(q, i64([0])) e = Add(m, f32(1)) r = Sqrt(e) "
                    "y = Div(x, r)"
                ),
                "an axis is dropped",
            ),
            (
                "middle",
                MEAN.format("x", 1) + "e = Add(m, f32(1)) r = Sqrt(e) y = Div(x, r)",
                "it does not run over the last axes",
            ),
            (
                "open",
                MEAN.format("open", -1) + "e = Add(m, f32(1)) r = Sqrt(e) y = Div(open, r)",
                "the sizes of the normalized axes are not known",
            ),
        ],
    ),
    *rows(
        fuse_rmsnorm,
        OLD,
        (),
        [
            (
                "old",
                "q = Mul(x, x) m = ReduceMean<axes=[-1]>(q) e = Add(m, f32(1)) r = Sqrt(e) y = Div(x, r)",
                "RMSNormalization needs opset 23",
            )
        ],
    ),
    *rows(
        fold_scale_into_rmsnorm,
        X,
        [
            (
                "weights",
                "n = RMSNormalization(x, f32(normal(4))) y = Mul(f32(normal(4)), n)",
                "y = RMSNormalization(x, _)",
            )
        ],
        [
            ("shift", "n = RMSNormalization(x, f32(normal(4))) y = Add(n, f32(1))", "the step is no scale"),
            (
                "broadcast",
                "n = RMSNormalization<axis=1>(x, f32(normal(4))) y = Mul(n, f32(2))",
                "the scale is broadcast",
            ),
            (
                "rows",
                "n = RMSNormalization(x, f32(normal(4))) y = Mul(n, f32(normal(3,1)))",
                "the constant varies outside the normalized axes",
            ),
        ],
    ),
    *rows(
        fuse_rotary_embedding,
        ONE,
        [
            (
                "constants",
                HALVES + SUM.format("cos", "sin"),
                "c = Reshape(_, i64([1,5,4])) s = Reshape(_, i64([1,5,4])) y = RotaryEmbedding(x, c, s)",
            ),
            (
                "angles",
                HALVES
                + "f = Concat<axis=-1>(a, a) u = Unsqueeze(f, i64([0,1])) c = Cos(u) s = Sin(u) "
                + SUM.format("c", "s"),
                (
                    "c = Cos(a) d = Reshape(c, i64([1,5,4])) s = Sin(a) e = Reshape(s, i64([1,5,4])) "
                    "y = RotaryEmbedding(x, d, e)"
                ),
            ),
            (
                "table",
                HALVES + "g = Gather(cos, ids) c = Unsqueeze(g, i64([1])) h = Gather(sin, ids) "
                "s = Unsqueeze(h, i64([1])) " + SUM.format("c", "s"),
                "c = Gather<axis=0>(_, ids) s = Gather<axis=0>(_, ids) y = RotaryEmbedding(x, c, s)",
            ),
            (
                "split",
                "l, r = Split<axis=3, num_outputs=2>(x) n = Neg(r) t = Concat<axis=3>(n, l) "
                + SUM.format("cos", "sin"),
                "c = Reshape(_, i64([1,5,4])) s = Reshape(_, i64([1,5,4])) y = RotaryEmbedding(x, c, s)",
            ),
        ],
        [
            (
                "thirds",
                "l = Slice(x, i64([0]), i64([3]), i64([3])) r = Slice(x, i64([3]), i64([99]), i64([3])) "
                "n = Neg(r) t = Concat<axis=-1>(n, l) " + SUM.format("cos", "sin"),
                "the parts are not the halves",
            ),
            (
                "stepped",
                "l = Slice(x, i64([0]), i64([8]), i64([3]), i64([2])) "
                "r = Slice(x, i64([0]), i64([8]), i64([3]), i64([2])) n = Neg(r) t = Concat<axis=-1>(n, l) "
                + SUM.format("cos", "sin"),
                "the parts are not the halves",
            ),
            (
                "unequal-split",
                "l, r = Split<axis=3>(x, i64([3,5])) n = Neg(r) t = Concat<axis=3>(n, l) "
                + SUM.format("cos", "sin"),
                "the parts are not the halves",
            ),
            (
                "halves-of-tokens",
                "l = Slice(x, i64([0]), i64([4]), i64([2])) r = Slice(x, i64([4]), i64([5]), i64([2])) "
                "n = Neg(r) t = Concat<axis=2>(n, l) " + SUM.format("cos", "sin"),
                "another axis is turned",
            ),
            ("unequal", HALVES + SUM.format("f32(normal(5,8))", "sin"), "the halves differ"),
            ("given", HALVES + SUM.format("given", "sin"), "the halves differ"),
            ("per-head", HALVES + SUM.format("f32(ones(3,5,8))", "sin"), "the angles differ between heads"),
            (
                "one-for-all",
                HALVES + SUM.format("f32(ones(1,8))", "sin"),
                "there is not one angle for each token",
            ),
        ],
    ),
    *rows(
        fuse_rotary_embedding,
        TURN,
        [
            (
                "batch",
                HALVES
                + "f = Concat<axis=-1>(a, a) u = Unsqueeze(f, i64([0,1])) c = Cos(u) s = Sin(u) "
                + SUM.format("c", "s"),
                (
                    "b = Shape<start=0, end=1>(x) c = Cos(a) d = Reshape(c, i64([1,5,4])) g = "
                    "Concat<axis=0>(b, i64([1,1])) "
                    "k = Expand(d, g) b2 = Shape<start=0, end=1>(x) s = Sin(a) e = Reshape(s, i64([1,5,4])) "
                    "h = Concat<axis=0>(b2, i64([1,1])) j = Expand(e, h) y = RotaryEmbedding(x, k, j)"
                ),
            )
        ],
        [
            (
                "double",
                HALVES.replace("(x,", "(xx,")
                + "p = Mul(xx, f64(ones(5,8))) q = Mul(t, f64(ones(5,8))) y = Add(p, q)",
                "not float32 or float16",
            ),
            (
                "three-axes",
                (
                    "l = Slice(full, i64([0]), i64([4]), i64([2])) r = Slice(full, i64([4]), "
                    "i64([8]), i64([2])) "
                    "n = Neg(r) t = Concat<axis=2>(n, l) p = Mul(full, cos) q = Mul(t, sin) y = Add(p, q)"
                ),
                "not four axes, the last one even",
            ),
        ],
    ),
    *rows(
        fuse_rotary_embedding,
        OLD_TURN,
        (),
        [("old", HALVES + SUM.format("cos", "sin"), "RotaryEmbedding needs opset 23")],
    ),
]

test_rows = table_test(ROWS)
