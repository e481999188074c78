"""Forms that take more nodes and less time."""

from __future__ import annotations

from harness import Setup, rows, table_test

from optimizer.rewrite import Settings
from passes.latency_forms import spell_mish, spell_prelu, spell_softplus, widen_depthwise_conv

FAST = Settings(fp="fast", growth=None, objective="latency")
X = Setup(
    "float[N,4] x, double[N,4] d, float[N,4,6,6] image, float[N,4,L] line, float[N,C,6,6] open",
    settings=FAST,
    rtol=1e-5,
    sizes=[{"N": 2, "L": 9, "C": 4}],
)
SEVEN = Setup("float[2,4] x", opset=7, settings=FAST)
EIGHT = Setup("float[2,4,6,6] image", opset=8, settings=FAST)
OLD = Setup("float[2,4,9] line", opset=11, settings=FAST)
SPELLED = (
    "m = Min(x, f32(20)) e = Exp(m) p = Add(e, f32(2)) n = Mul(e, p) q = Add(n, f32(2)) r = Div(n, q) "
    "y = Mul(x, r)"
)
DEPTHWISE = "y = Conv<group=4{1}>(line, f32(normal(4,1,{0})))"

ROWS = [
    *rows(
        spell_mish,
        X,
        [("three", "a = Softplus(x) b = Tanh(a) y = Mul(x, b)", SPELLED)],
        [("double", "a = Softplus(d) b = Tanh(a) y = Mul(d, b)", "not float32")],
    ),
    *rows(spell_mish, Setup("float[N,4] x", opset=18, settings=FAST), [("one", "y = Mish(x)", SPELLED)]),
    *rows(
        spell_mish,
        SEVEN,
        (),
        [("seven", "a = Softplus(x) b = Tanh(a) y = Mul(x, b)", "Min does not broadcast before opset 8")],
    ),
    *rows(
        spell_softplus,
        X,
        [
            (
                "plain",
                "y = Softplus(x)",
                "r = Relu(x) a = Abs(x) b = Neg(a) c = Exp(b) e = Add(c, f32(1)) l = Log(e) y = Add(r, l)",
            )
        ],
        [("mish", "a = Softplus(x) y = Tanh(a)", "it is part of Mish")],
    ),
    *rows(
        spell_prelu,
        X,
        [
            (
                "channels",
                "c = Conv(image, f32(normal(4,4,1,1))) y = PRelu(c, f32(normal(4,1,1)))",
                (
                    "c = Conv(image, _) r = Relu(c) p = BatchNormalization<epsilon=0.>(r, _, _, _, _) "
                    "n = BatchNormalization<epsilon=0.>(c, _, _, _, _) y = Add(p, n)"
                ),
            )
        ],
        [
            ("no-image", "y = PRelu(x, f32(normal(4)))", "not an image of a known number of channels"),
        ],
    ),
    *rows(
        spell_prelu,
        EIGHT,
        (),
        [
            (
                "eight",
                "y = PRelu(image, f32(normal(4,1,1)))",
                "BatchNormalization has a mode before opset 9",
            )
        ],
    ),
    *rows(
        widen_depthwise_conv,
        X,
        [
            (
                "same",
                DEPTHWISE.format(5, ", pads=[2,2], strides=[2]"),
                (
                    "u = Unsqueeze(line, i64([2])) c = Conv<group=4, strides=[1,2], "
                    "dilations=[1,1], pads=[0,2,0,2]>(u, _) "
                    "y = Squeeze(c, i64([2]))"
                ),
            )
        ],
        [
            ("image", "y = Conv<group=4>(image, f32(normal(4,1,3,3)))", "not a sequence"),
            ("dense", "y = Conv(line, f32(normal(4,4,3)))", "not one filter for each channel"),
            ("auto", DEPTHWISE.format(3, ', auto_pad="SAME_UPPER"'), "the pads depend on the size"),
        ],
    ),
    *rows(
        widen_depthwise_conv,
        OLD,
        [
            (
                "old",
                DEPTHWISE.format(3, ""),
                (
                    "u = Unsqueeze<axes=[2]>(line) c = Conv<group=4, strides=[1,1], "
                    "dilations=[1,1], pads=[0,0,0,0]>(u, _) "
                    "y = Squeeze<axes=[2]>(c)"
                ),
            )
        ],
    ),
]

test_rows = table_test(ROWS)
