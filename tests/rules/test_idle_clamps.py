"""Activations and bounds that change nothing."""

from __future__ import annotations

from harness import Setup, rows, table_test

from optimizer.rewrite import Settings
from passes.idle_clamps import drop_idle_clamp, fold_softmax_of_one

X = Setup("float[N,4,3,3] x, float[N,4] s, int32[N,4] i")
ONE = Setup("float[3,1] k, float[N,4] x")
OLD_ONE = Setup("float[3,1] k", opset=12)
SMALL_ONE = Setup("float[3,1] k", settings=Settings(growth=4))
BOUND = "a bound stretches the operand"
OUTSIDE = "the operand may lie outside"

ROWS = [
    *rows(
        drop_idle_clamp,
        X,
        [
            ("relu-of-sigmoid", "a = Sigmoid(x) y = Relu(a)", "y = Sigmoid(x)"),
            (
                "relu-of-softmax-in-a-view",
                "a = Softmax(s) b = Flatten(a) y = Relu(b)",
                "a = Softmax(s) y = Flatten(a)",
            ),
            ("abs-of-exp", "a = Exp(x) y = Abs(a)", "y = Exp(x)"),
            ("abs-of-square", "a = Mul(x, x) y = Abs(a)", "y = Mul(x, x)"),
            ("clip-of-tanh", "a = Tanh(x) y = Clip(a, f32(-1), f32(2))", "y = Tanh(x)"),
            (
                "max-of-pooled",
                "a = Relu(x) b = MaxPool<kernel_shape=[2,2]>(a) y = Max(b, f32(-1))",
                "a = Relu(x) y = MaxPool<kernel_shape=[2,2]>(a)",
            ),
            ("min-of-sigmoid", "a = Sigmoid(x) y = Min(f32(1), a)", "y = Sigmoid(x)"),
            ("min-of-logsoftmax", "a = LogSoftmax(s) y = Min(a, f32(0))", "y = LogSoftmax(s)"),
        ],
        [
            ("integers", "a = Abs(i) y = Abs(a)", "not a float"),
            ("rank", "a = Sigmoid(s) y = Max(a, f32([[[0]]]))", BOUND),
            ("abs", "a = Tanh(x) y = Abs(a)", OUTSIDE),
            ("clip", "a = Sigmoid(x) y = Clip(a, f32(0.1), f32(1))", OUTSIDE),
            ("input", "y = Relu(x)", OUTSIDE),
        ],
    ),
    *rows(
        fold_softmax_of_one,
        ONE,
        [
            ("softmax", "a = Softmax(k) y = Add(a, k)", "y = Add(f32([[1],[1],[1]]), k)"),
            ("logsoftmax", "a = LogSoftmax<axis=1>(k) y = Add(a, k)", "y = Add(f32([[0],[0],[0]]), k)"),
        ],
        [
            ("unknown", "y = Softmax<axis=0>(x)", "the shape is not known"),
            ("several", "y = Softmax<axis=0>(k)", "there is more than one"),
        ],
    ),
    *rows(fold_softmax_of_one, OLD_ONE, [], [("old", "y = Softmax(k)", "Softmax flattens before opset 13")]),
    *rows(fold_softmax_of_one, SMALL_ONE, [], [("budget", "y = Softmax(k)", "the growth budget is used up")]),
]

test_rows = table_test(ROWS)
