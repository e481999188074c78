"""Models of one rewrite each, on tokens and scores."""

from __future__ import annotations

import math

import numpy as np
import onnx
from onnx import TensorProto

from benchmarks.net import Net


def depthwise_sequence() -> onnx.ModelProto:
    n = Net()
    operands = n.input(1, 256, 400), n.weight(256, 1, 31), n.weight(256)
    return n.model(n.op("Conv", *operands, group=256, pads=[15, 15]))


def distribution_head() -> onnx.ModelProto:
    n = Net()
    x = n.op("Reshape", n.input(1, 64, 8400), n.ints(1, 4, 16, 8400))
    y = n.op("Softmax", n.op("Transpose", x, perm=[0, 2, 1, 3]), axis=1)
    y = n.op("Conv", y, n.const(np.arange(16.0).reshape(1, 16, 1, 1)))
    return n.model(n.op("Reshape", y, n.ints(1, 4, 8400)))


def layernorm() -> onnx.ModelProto:
    n = Net()
    x = n.input(8, 3136, 96)
    d = n.op("Sub", x, n.op("ReduceMean", x, axes=[-1]))
    variance = n.op("ReduceMean", n.op("Mul", d, d), axes=[-1])
    inverse = n.op("Reciprocal", n.op("Sqrt", n.op("Add", variance, n.const(1e-5))))
    y = n.op("Mul", n.op("Mul", d, inverse), n.weight(96))
    return n.model(n.op("Add", y, n.weight(96)))


def rmsnorm() -> onnx.ModelProto:
    n = Net()
    x = n.input(8, 3136, 96)
    mean = n.op("ReduceMean", n.op("Mul", x, x), axes=[-1])
    inverse = n.op("Reciprocal", n.op("Sqrt", n.op("Add", mean, n.const(1e-6))))
    return n.model(n.op("Mul", n.weight(96), n.op("Mul", x, inverse)))


def gelu_by_factor() -> onnx.ModelProto:
    n = Net()
    x = n.input(1, 128, 3072)
    erf = n.op("Erf", n.op("Mul", x, n.const(math.sqrt(0.5))))
    return n.model(n.op("Mul", n.op("Mul", x, n.op("Add", erf, n.const(1.0))), n.const(0.5)))


def gelu_tanh() -> onnx.ModelProto:
    n = Net()
    x = n.input(1, 128, 3072)
    cube = n.op("Mul", n.op("Mul", n.op("Mul", x, x), x), n.const(0.044715))
    angle = n.op("Mul", n.op("Add", x, cube), n.const(math.sqrt(2 / math.pi)))
    one = n.op("Add", n.op("Tanh", angle), n.const(1.0))
    return n.model(n.op("Mul", n.op("Mul", x, one), n.const(0.5)))


def softmax() -> onnx.ModelProto:
    n = Net()
    x = n.input(16, 12, 64, 64)
    e = n.op("Exp", n.op("Sub", x, n.op("ReduceMax", x, axes=[-1])))
    return n.model(n.op("Div", e, n.op("ReduceSum", e, n.ints(-1))))


def logsoftmax() -> onnx.ModelProto:
    n = Net()
    return n.model(n.op("Log", n.op("Softmax", n.input(1, 128, 8000), axis=-1)))


def masked_scores() -> onnx.ModelProto:
    n = Net()
    s, mask = n.input(1, 12, 128, 128), n.input(1, 1, 1, 128, dtype=TensorProto.BOOL)
    return n.model(n.op("Where", mask, s, n.const(-np.inf)))


def causal_scores() -> onnx.ModelProto:
    n = Net()
    mask = n.const(np.tril(np.ones((128, 128))), np.bool_)
    return n.model(n.op("Softmax", n.op("Where", mask, n.input(1, 12, 128, 128), n.const(-1e9)), axis=-1))


def product_of_products() -> onnx.ModelProto:
    n = Net()
    x = n.op("MatMul", n.input(1, 128, 512), n.weight(512, 512))
    return n.model(n.op("MatMul", x, n.weight(512, 512)))


def linear_linear() -> onnx.ModelProto:
    n = Net()
    x = n.op("Gemm", n.input(64, 512), n.weight(512, 512), n.weight(512))
    return n.model(n.op("Gemm", x, n.weight(512, 512), n.weight(512)))


def einsum_of_two() -> onnx.ModelProto:
    n = Net()
    q, k = n.input(1, 128, 12, 64), n.input(1, 128, 12, 64)
    return n.model(n.op("Einsum", q, k, equation="bshd,bthd->bhst"))


def einsum_of_one() -> onnx.ModelProto:
    n = Net()
    return n.model(n.op("Einsum", n.input(1, 128, 12, 64), equation="bshd->bhsd"))


def rotary() -> onnx.ModelProto:
    n = Net()
    x = n.input(1, 12, 128, 64)
    angles = np.concatenate([np.outer(np.arange(128), 1 / 10000 ** (np.arange(32) / 32))] * 2, axis=1)
    first = n.op("Slice", x, n.ints(0), n.ints(32), n.ints(3))
    second = n.op("Slice", x, n.ints(32), n.ints(2**31), n.ints(3))
    turned = n.op("Concat", n.op("Neg", second), first, axis=-1)
    cos, sin = (n.const(f(angles)[None, None]) for f in (np.cos, np.sin))
    return n.model(n.op("Add", n.op("Mul", x, cos), n.op("Mul", turned, sin)))


def _tail(n: Net, x: str) -> str:
    x = n.op("LayerNormalization", x, n.weight(256), n.weight(256))
    h = n.op("Add", n.op("MatMul", x, n.weight(256, 1024)), n.weight(1024))
    h = n.op("Add", n.op("MatMul", n.op("Relu", h), n.weight(1024, 256)), n.weight(256))
    return str(n.op("LayerNormalization", h, n.weight(256), n.weight(256)))


def first_token() -> onnx.ModelProto:
    n = Net()
    return n.model(n.op("Gather", _tail(n, n.input(1, 128, 256)), n.const(0, np.int64), axis=1))


def last_token() -> onnx.ModelProto:
    n = Net()
    x = n.op("LayerNormalization", n.input(1, 128, 256), n.weight(256), n.weight(256))
    logits = n.op("MatMul", x, n.weight(256, 8000))
    return n.model(n.op("Slice", logits, n.ints(-1), n.ints(2**31), n.ints(1)))


def normalized_rows() -> onnx.ModelProto:
    n = Net()
    x = n.input(1, 64, 64)
    length = n.op("Clip", n.op("ReduceL2", x, axes=[-1]), n.const(1e-12))
    return n.model(n.op("Div", x, n.op("Expand", length, n.op("Shape", x))))


def largest_probability() -> onnx.ModelProto:
    n = Net()
    y = n.op("ArgMax", n.op("Softmax", n.input(1, 128, 8000), axis=-1), axis=-1)
    return n.model(y, dtypes=[TensorProto.INT64])
