"""RMSNormalization spelled out."""

from __future__ import annotations

from harness import Setup, rows, table_test

from passes.idiom_rms import fold_scale_into_rmsnorm, fuse_rmsnorm

X = Setup("float[N,3,4] x, float[N,3,D] open, double[N,4] d", opset=23, rtol=1e-5, sizes=[{"N": 2, "D": 4}])
OLD = Setup("float[N,3,4] x", opset=17)
MEAN = "q = Mul({0}, {0}) m = ReduceMean(q, i64([{1}])) "

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
]

test_rows = table_test(ROWS)
