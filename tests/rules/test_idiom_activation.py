"""Activation functions spelled out."""

from __future__ import annotations

from harness import Setup, rows, table_test

from optimizer.rewrite import Settings
from passes.contrib import fuse_conv_activation
from passes.idiom_activation import (
    fuse_hardsigmoid,
    fuse_hardsigmoid_of_relu6,
    fuse_hardswish,
    fuse_hardswish_of_gate,
    fuse_leakyrelu,
    fuse_relu,
    fuse_sigmoid,
    fuse_softplus,
    fuse_softsign,
)
from passes.idiom_gelu import fuse_gelu, fuse_gelu_tanh, respell_gelu_argument
from passes.idiom_softmax import fuse_logsoftmax, fuse_softmax

NEW = Setup("float[N,4] x, double[N,4] d, int32[N,4] i", rtol=3e-6)
V10 = Setup("float[N,4] x", opset=10, rtol=3e-6)
V12 = Setup("float[N,4] x", opset=12, rtol=3e-6)
V20 = Setup("float[N,4] x, double[N,4] d", opset=20, rtol=3e-6)
TO_ORT = Settings(fp="fast", growth=None, target="onnxruntime")
FOR_ORT = Setup(
    "float[N,4] x, float[N,4,5,5] image, double[N,4,5,5] wide, float[4,4,3,3] w",
    settings=TO_ORT,
    imports='"com.microsoft" : 1',
    rtol=3e-6,
)
ORT_2 = Setup(
    "float[N,4] x, float[N,4,5,5] image, float[4,4,3,3] w", settings=TO_ORT, imports='"com.microsoft" : 2'
)
ERF_GELU = "a = Div(x, f32(1.4142135)) b = Erf(a) c = Add(b, f32(1)) e = Mul(x, c) y = Mul(e, f32(0.5))"
OTHER_VERSION = "the model imports another version of com.microsoft"
NODES = Setup("float[N,4] x", settings=Settings(fp="fast", objective="nodes"), rtol=3e-6)
SWISH_12 = "g = HardSigmoid<alpha=0.16666667, beta=0.5>(x) y = Mul(x, g)"
SWISH_14 = "y = HardSwish(x)"
GATE = "y = HardSigmoid<alpha=0.16666667, beta=0.5>(x)"
PADDLE = "a = Add(x, f32(3)) b = Clip(a, f32(0), f32(6)) c = Mul(x, b) y = Div(c, f32(6))"
MAX = "a = ReduceMax<axes=[1]>(x) b = Sub(x, a) c = Exp(b)"

ROWS = [
    *rows(
        fuse_hardswish,
        NEW,
        [
            ("divided-last", PADDLE, SWISH_14),
            (
                "gate-divided",
                "a = Add(f32(3), x) b = Clip(a, f32(0), f32(6)) c = Div(b, f32(6)) y = Mul(c, x)",
                SWISH_14,
            ),
            (
                "times-sixth",
                "a = Add(x, f32(3)) b = Clip(a, f32(0), f32(6)) c = Mul(b, x) y = Mul(c, f32(0.16666667))",
                SWISH_14,
            ),
            (
                "gate-times-sixth",
                "a = Add(x, f32(3)) b = Clip(a, f32(0), f32(6)) c = Mul(f32(0.16666667), b) y = Mul(c, x)",
                SWISH_14,
            ),
            (
                "x-divided",
                "a = Add(x, f32(3)) b = Clip(a, f32(0), f32(6)) c = Div(x, f32(6)) y = Mul(c, b)",
                SWISH_14,
            ),
            (
                "x-times-sixth",
                "a = Add(x, f32(3)) b = Clip(a, f32(0), f32(6)) c = Mul(x, f32(0.16666667)) y = Mul(b, c)",
                SWISH_14,
            ),
            (
                "min-max",
                "a = Add(x, f32(3)) b = Max(a, f32(0)) e = Min(f32(6), b) c = Mul(x, e) y = Div(c, f32(6))",
                SWISH_14,
            ),
            (
                "max-min",
                "a = Add(x, f32(3)) b = Min(a, f32(6)) e = Max(b, f32([0])) c = Mul(x, e) y = Div(c, f32(6))",
                SWISH_14,
            ),
            (
                "relu-min",
                "a = Add(x, f32(3)) b = Relu(a) e = Min(b, f32(6)) c = Mul(x, e) y = Div(c, f32(6))",
                SWISH_14,
            ),
        ],
        [
            ("raises-rank", PADDLE.replace("f32(3)", "f32([[[3]]])"), "the constants raise the rank"),
            (
                "double",
                "a = Add(d, f64(3)) b = Clip(a, f64(0), f64(6)) c = Mul(d, b) y = Div(c, f64(6))",
                "not float32 or float16",
            ),
        ],
    ),
    *rows(fuse_hardswish, V12, [("before-14", PADDLE, SWISH_12)]),
    *rows(
        fuse_hardswish,
        V10,
        [
            (
                "bounds-as-attributes",
                "a = Add(x, f32(3)) b = Clip<min=0.0, max=6.0>(a) c = Mul(x, b) y = Div(c, f32(6))",
                SWISH_12,
            )
        ],
    ),
    *rows(
        fuse_hardswish_of_gate,
        NEW,
        [("gate", "g = HardSigmoid<alpha=0.1666666>(x) y = Mul(g, x)", SWISH_14)],
        [
            ("slope", "g = HardSigmoid(x) y = Mul(g, x)", "another slope or offset"),
            (
                "double",
                "g = HardSigmoid<alpha=0.16666667>(d) y = Mul(g, d)",
                "not float32 or float16",
            ),
            (
                "offset",
                "g = HardSigmoid<alpha=0.1666666, beta=0.4>(x) y = Mul(g, x)",
                "another slope or offset",
            ),
        ],
    ),
    *rows(
        fuse_hardswish_of_gate,
        V12,
        (),
        [("old", "g = HardSigmoid<alpha=0.1666666>(x) y = Mul(g, x)", "HardSwish needs opset 14")],
    ),
    *rows(
        fuse_hardsigmoid_of_relu6,
        NEW,
        [
            ("divided", "a = Add(x, f32(3)) b = Clip(a, f32(0), f32(6)) y = Div(b, f32(6))", GATE),
            (
                "times-sixth",
                "a = Add(x, f32(3)) b = Clip(a, f32(0), f32(6)) y = Mul(b, f32(0.16666667))",
                GATE,
            ),
        ],
    ),
    *rows(
        fuse_hardsigmoid,
        NEW,
        [
            (
                "mul-add",
                "a = Mul(x, f32(0.25)) b = Add(a, f32(0.5)) y = Clip(b, f32(0), f32(1))",
                "y = HardSigmoid<alpha=0.25, beta=0.5>(x)",
            ),
            (
                "div-sub",
                "a = Div(x, f32(4)) b = Sub(a, f32(0.5)) y = Clip(b, f32(0), f32(1))",
                "y = HardSigmoid<alpha=0.25, beta=-0.5>(x)",
            ),
        ],
        [
            (
                "per-channel",
                "a = Mul(x, f32([1,2,3,4])) b = Add(a, f32(0.5)) y = Clip(b, f32(0), f32(1))",
                "the constants are not scalars",
            ),
        ],
    ),
    *rows(
        fuse_sigmoid,
        NEW,
        [
            ("division", "a = Neg(x) b = Exp(a) c = Add(b, f32(1)) y = Div(f32(1), c)", "y = Sigmoid(x)"),
            ("reciprocal", "a = Neg(x) b = Exp(a) c = Add(f32(1), b) y = Reciprocal(c)", "y = Sigmoid(x)"),
        ],
    ),
    *rows(
        fuse_softsign, NEW, [("softsign", "a = Abs(x) b = Add(a, f32(1)) y = Div(x, b)", "y = Softsign(x)")]
    ),
    *rows(
        fuse_softplus, NODES, [("softplus", "a = Exp(x) b = Add(a, f32(1)) y = Log(b)", "y = Softplus(x)")]
    ),
    *rows(
        fuse_relu,
        NEW,
        [
            ("max", "y = Max(f32(0), x)", "y = Relu(x)"),
            ("clip", "y = Clip(x, f32(0))", "y = Relu(x)"),
            ("where", "c = Greater(x, f32(0)) y = Where(c, x, f32(0))", "y = Relu(x)"),
            ("where-not", "c = LessOrEqual(x, f32(0)) y = Where(c, f32([0]), x)", "y = Relu(x)"),
        ],
        [
            ("integers", "y = Max(i, i32(0))", "not a float"),
            ("raises-rank", "y = Max(x, f32([[[0]]]))", "the constants raise the rank"),
        ],
    ),
    *rows(fuse_relu, V10, [("bound-as-attribute", "y = Clip<min=0.0>(x)", "y = Relu(x)")]),
    *rows(
        fuse_leakyrelu,
        NEW,
        [
            ("max", "a = Mul(x, f32(0.25)) y = Max(x, a)", "y = LeakyRelu<alpha=0.25>(x)"),
            (
                "two-relus",
                "a = Neg(x) b = Relu(a) c = Mul(b, f32(0.25)) e = Relu(x) y = Sub(e, c)",
                "y = LeakyRelu<alpha=0.25>(x)",
            ),
            (
                "where",
                "c = GreaterOrEqual(x, f32(0)) a = Mul(f32(0.25), x) y = Where(c, x, a)",
                "y = LeakyRelu<alpha=0.25>(x)",
            ),
            ("prelu", "y = PRelu(x, f32([0.25,0.25,0.25,0.25]))", "y = LeakyRelu<alpha=0.25>(x)"),
        ],
        [
            ("slope-of-more-axes", "y = PRelu(x, f32([[[0.1]]]))", "the constants raise the rank"),
            ("steep", "a = Mul(x, f32(2)) y = Max(x, a)", "the larger one depends on the slope"),
            ("different", "y = PRelu(x, f32([1,2,3,4]))", "the slopes differ"),
            ("stretches", "a = Mul(x, f32([[[0.5]],[[0.5]]])) y = Max(x, a)", "the constants raise the rank"),
            (
                "stretches-columns",
                "a = Mul(x, f32([0.5,0.5,0.5,0.5])) y = Max(x, a)",
                "the slope may change the shape",
            ),
            ("double", "a = Mul(d, f64(0.25)) y = Max(d, a)", "not float32 or float16"),
        ],
    ),
    *rows(
        fuse_gelu,
        V20,
        [
            (
                "div-first",
                "a = Div(x, f32(1.4142135)) b = Erf(a) c = Add(b, f32(1)) e = Mul(x, c) y = Mul(e, f32(0.5))",
                'y = Gelu<approximate="none">(x)',
            ),
            (
                "half-x",
                (
                    "a = Mul(x, f32(0.70710677)) b = Erf(a) c = Add(f32(1), b) e = Mul(x, f32(0.5)) y ="
                    " Mul(e, c)"
                ),
                'y = Gelu<approximate="none">(x)',
            ),
            (
                "half-gate",
                "a = Div(x, f32(1.4142135)) b = Erf(a) c = Add(b, f32(1)) e = Mul(f32(0.5), c) y = Mul(x, e)",
                'y = Gelu<approximate="none">(x)',
            ),
        ],
        [
            (
                "double",
                "a = Div(d, f64(1.4142135)) b = Erf(a) c = Add(b, f64(1)) e = Mul(d, c) y = Mul(e, f64(0.5))",
                "not float32 or float16",
            ),
        ],
    ),
    *rows(
        fuse_gelu,
        NEW,
        (),
        [
            (
                "old",
                "a = Div(x, f32(1.4142135)) b = Erf(a) c = Add(b, f32(1)) e = Mul(x, c) y = Mul(e, f32(0.5))",
                "Gelu needs opset 20",
            )
        ],
    ),
    *rows(
        fuse_gelu_tanh,
        V20,
        [
            (
                "power",
                (
                    "p = Pow(x, f32(3)) q = Mul(p, f32(0.044715)) r = Add(x, q) s = Mul(r,"
                    " f32(0.7978845)) t = Tanh(s)"
                    " c = Add(t, f32(1)) e = Mul(x, f32(0.5)) y = Mul(e, c)"
                ),
                'y = Gelu<approximate="tanh">(x)',
            ),
            (
                "products",
                (
                    "o = Mul(x, x) p = Mul(o, x) q = Mul(p, f32(0.044715)) r = Add(x, q) s = Mul(r,"
                    " f32(0.7978845))"
                    " t = Tanh(s) c = Add(t, f32(1)) e = Mul(x, c) y = Mul(e, f32(0.5))"
                ),
                'y = Gelu<approximate="tanh">(x)',
            ),
        ],
    ),
    *rows(
        respell_gelu_argument,
        NEW,
        [
            (
                "factor",
                "a = Mul(x, f32(0.70710677)) b = Erf(a) y = Add(b, f32(1))",
                "a = Div(x, f32(1.4142135)) b = Erf(a) y = Add(b, f32(1))",
            )
        ],
        [("lone", "a = Mul(x, f32(0.70710677)) y = Erf(a)", "not inside Gelu")],
    ),
    *rows(
        respell_gelu_argument,
        V20,
        (),
        [("has-gelu", "a = Mul(x, f32(0.70710677)) b = Erf(a) y = Add(b, f32(1))", "the opset has Gelu")],
    ),
    *rows(
        fuse_softmax,
        NEW,
        [("last", f"{MAX} e = ReduceSum(c, i64([-1])) y = Div(c, e)", "y = Softmax<axis=-1>(x)")],
        [
            (
                "axes",
                f"{MAX} e = ReduceSum(c, i64([0])) y = Div(c, e)",
                "the reductions are over different axes",
            ),
            (
                "all",
                "a = ReduceMax(x) b = Sub(x, a) c = Exp(b) e = ReduceSum(c) y = Div(c, e)",
                "the reductions are not over one axis",
            ),
            (
                "read-elsewhere",
                f"{MAX} e = ReduceSum(c, i64([-1])) y = Div(c, e) y2 = Neg(c)",
                "the exponentials have other readers",
            ),
        ],
    ),
    *rows(
        fuse_softmax,
        V12,
        [("last-before-13", f"{MAX} e = ReduceSum<axes=[1]>(c) y = Div(c, e)", "y = Softmax<axis=1>(x)")],
        [
            (
                "first-before-13",
                (
                    "a = ReduceMax<axes=[0]>(x) b = Sub(x, a) c = Exp(b) e = ReduceSum<axes=[0]>(c) y ="
                    " Div(c, e)"
                ),
                "Softmax flattens before opset 13",
            ),
        ],
    ),
    *rows(fuse_logsoftmax, NEW, [("log", "a = Softmax<axis=0>(x) y = Log(a)", "y = LogSoftmax<axis=0>(x)")]),
    *rows(fuse_gelu, FOR_ORT, [("contrib", ERF_GELU, "y = com.microsoft.Gelu(x)")]),
    *rows(fuse_gelu, ORT_2, (), [("another-version", ERF_GELU, OTHER_VERSION)]),
    *rows(
        fuse_conv_activation,
        FOR_ORT,
        [
            (
                "relu",
                "a = Conv<pads=[1,1,1,1]>(image, w) y = Relu(a)",
                'y = com.microsoft.FusedConv<activation="Relu", pads=[1,1,1,1]>(image, w)',
            ),
            (
                "clip",
                "a = Conv(image, w) y = Clip(a, f32(0), f32(6))",
                'y = com.microsoft.FusedConv<activation="Clip", activation_params=[0., 6.]>(image, w)',
            ),
            (
                "leaky-relu",
                "a = Conv(image, w) y = LeakyRelu<alpha=0.25>(a)",
                'y = com.microsoft.FusedConv<activation="LeakyRelu", activation_params=[0.25]>(image, w)',
            ),
            (
                "hard-sigmoid",
                "a = Conv(image, w) y = HardSigmoid<alpha=0.25>(a)",
                (
                    'y = com.microsoft.FusedConv<activation="HardSigmoid", activation_params=[0.25,'
                    " 0.5]>(image, w)"
                ),
            ),
        ],
        [("double", "a = Conv(wide, f64(ones(4,4,3,3))) y = Relu(a)", "not float32")],
    ),
    *rows(
        fuse_conv_activation,
        ORT_2,
        (),
        [("another-version", "a = Conv(image, w) y = Relu(a)", OTHER_VERSION)],
    ),
    *rows(
        fuse_conv_activation,
        NEW,
        (),
        [
            (
                "target",
                "a = Conv(f32(ones(1,4,5,5)), f32(ones(4,4,3,3))) y = Relu(a)",
                "the target is not onnxruntime",
            )
        ],
    ),
]

test_rows = table_test(ROWS)
