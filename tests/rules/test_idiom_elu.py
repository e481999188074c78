"""Activations by exponentials spelled out, or one by way of another."""

from __future__ import annotations

from harness import Setup, rows, table_test

from optimizer.rewrite import Settings
from passes.idiom_elu import (
    fuse_celu,
    fuse_elu,
    fuse_mish,
    fuse_selu,
    fuse_sigmoid_of_tanh,
    fuse_silu,
    fuse_swish,
    fuse_tanh,
    fuse_thresholdedrelu,
)

X = Setup("float[N,4] x, double[N,4] d", rtol=1e-5)
NODES = Setup("float[N,4] x", opset=24, rtol=1e-5, settings=Settings(objective="nodes"))
RAISED = "the constants raise the rank"
SCALARS = "the constants are not scalars"

ROWS = [
    *rows(
        fuse_elu,
        X,
        [
            (
                "plain",
                "e = Exp(x) a = Sub(e, f32(1)) c = Greater(x, f32(0)) y = Where(c, x, a)",
                "y = Elu<alpha=1.0>(x)",
            ),
            (
                "scaled",
                (
                    "e = Exp(x) a = Add(f32(-1), e) b = Mul(a, f32(0.5)) c = LessOrEqual(x, f32(0)) "
                    "y = Where(c, b, x)"
                ),
                "y = Elu<alpha=0.5>(x)",
            ),
        ],
        [
            (
                "double",
                "e = Exp(d) a = Sub(e, f64(1)) c = Greater(d, f64(0)) y = Where(c, d, a)",
                "not float32",
            ),
            (
                "rank",
                "e = Exp(x) a = Sub(e, f32([[[1]]])) c = Greater(x, f32(0)) y = Where(c, x, a)",
                RAISED,
            ),
            (
                "infinite",
                (
                    "e = Exp(x) a = Sub(e, f32(1)) b = Mul(a, f32(inf)) c = Greater(x, f32(0)) "
                    "y = Where(c, x, b)"
                ),
                "a constant is not finite",
            ),
            (
                "vector",
                (
                    "e = Exp(x) a = Sub(e, f32(1)) b = Mul(a, f32([1,2,3,4])) c = Greater(x, f32(0)) "
                    "y = Where(c, x, b)"
                ),
                SCALARS,
            ),
        ],
    ),
    *rows(
        fuse_selu,
        X,
        [("scaled", "a = Elu<alpha=1.5>(x) y = Mul(f32(2), a)", "y = Selu<alpha=1.5, gamma=2.0>(x)")],
        [
            ("negative", "a = Elu(x) y = Mul(f32(-2), a)", "the factor is not positive"),
            ("vector", "a = Elu(x) y = Mul(f32([1,2,3,4]), a)", SCALARS),
        ],
    ),
    *rows(
        fuse_celu,
        X,
        [
            ("divided", "a = Div(x, f32(2)) b = Elu(a) y = Mul(b, f32(2))", "y = Celu<alpha=2.0>(x)"),
            ("times", "a = Mul(x, f32(0.5)) y = Selu<alpha=1.0, gamma=2.0>(a)", "y = Celu<alpha=2.0>(x)"),
        ],
        [
            ("factors", "a = Div(x, f32(2)) b = Elu(a) y = Mul(b, f32(3))", "the factors do not cancel"),
            ("negative", "a = Div(x, f32(-2)) b = Elu(a) y = Mul(b, f32(-2))", "the factors are negative"),
            (
                "alpha",
                "a = Div(x, f32(2)) b = Elu<alpha=2.0>(a) y = Mul(b, f32(2))",
                "the factors do not cancel",
            ),
        ],
    ),
    *rows(
        fuse_celu,
        Setup("float[N,4] x", opset=11),
        [],
        [("opset", "a = Div(x, f32(2)) b = Elu(a) y = Mul(b, f32(2))", "Celu needs opset 12")],
    ),
    *rows(
        fuse_thresholdedrelu,
        X,
        [
            (
                "above",
                "c = Greater(x, f32(0.5)) y = Where(c, x, f32(0))",
                "y = ThresholdedRelu<alpha=0.5>(x)",
            ),
            (
                "below",
                "c = LessOrEqual(x, f32(-0.5)) y = Where(c, f32(0), x)",
                "y = ThresholdedRelu<alpha=-0.5>(x)",
            ),
            (
                "mask",
                "c = Greater(x, f32(0.5)) a = Cast<to=1>(c) y = Mul(a, x)",
                "y = ThresholdedRelu<alpha=0.5>(x)",
            ),
        ],
        [("vector", "c = Greater(x, f32([1,2,3,4])) y = Where(c, x, f32(0))", SCALARS)],
    ),
    *rows(
        fuse_thresholdedrelu,
        Setup("float[N,4] x", opset=9),
        [],
        [("opset", "c = Greater(x, f32(0.5)) y = Where(c, x, f32(0))", "ThresholdedRelu needs opset 10")],
    ),
    *rows(
        fuse_mish,
        NODES,
        [("plain", "a = Softplus(x) b = Tanh(a) y = Mul(b, x)", "y = Mish(x)")],
    ),
    *rows(
        fuse_mish,
        X,
        [],
        [("opset", "a = Softplus(x) b = Tanh(a) y = Mul(b, x)", "Mish needs opset 18")],
    ),
    *rows(
        fuse_silu,
        X,
        [
            (
                "divided",
                "a = Neg(x) b = Exp(a) e = Add(b, f32(1)) y = Div(x, e)",
                "a = Sigmoid(x) y = Mul(x, a)",
            ),
            (
                "reciprocal",
                "a = Neg(x) b = Exp(a) e = Add(b, f32(1)) r = Reciprocal(e) y = Mul(r, x)",
                "a = Sigmoid(x) y = Mul(x, a)",
            ),
        ],
        [("double", "a = Neg(d) b = Exp(a) e = Add(b, f64(1)) y = Div(d, e)", "not float32")],
    ),
    *rows(fuse_swish, NODES, [("plain", "a = Sigmoid(x) y = Mul(a, x)", "y = Swish(x)")]),
    *rows(fuse_swish, X, [], [("slower", "a = Sigmoid(x) y = Mul(a, x)", "it would be slower")]),
    *rows(
        fuse_swish,
        Setup("float[N,4] x", settings=Settings(objective="nodes")),
        [],
        [("opset", "a = Sigmoid(x) y = Mul(a, x)", "Swish needs opset 24")],
    ),
    *rows(
        fuse_tanh,
        X,
        [
            (
                "times",
                "a = Mul(x, f32(2)) b = Sigmoid(a) e = Mul(b, f32(2)) y = Sub(e, f32(1))",
                "y = Tanh(x)",
            ),
            ("plus", "a = Add(x, x) b = Sigmoid(a) e = Mul(b, f32(2)) y = Add(f32(-1), e)", "y = Tanh(x)"),
        ],
        [
            (
                "rank",
                "a = Mul(x, f32(2)) b = Sigmoid(a) e = Mul(b, f32([[[2]]])) y = Sub(e, f32(1))",
                RAISED,
            )
        ],
    ),
    *rows(
        fuse_sigmoid_of_tanh,
        X,
        [
            (
                "times",
                "a = Mul(x, f32(0.5)) b = Tanh(a) e = Add(b, f32(1)) y = Mul(e, f32(0.5))",
                "y = Sigmoid(x)",
            ),
            (
                "halves",
                "a = Div(x, f32(2)) b = Tanh(a) e = Mul(b, f32(0.5)) y = Add(e, f32(0.5))",
                "y = Sigmoid(x)",
            ),
        ],
        [
            (
                "double",
                "a = Div(d, f64(2)) b = Tanh(a) e = Mul(b, f64(0.5)) y = Add(e, f64(0.5))",
                "not float32",
            )
        ],
    ),
]

test_rows = table_test(ROWS)
