"""Each rewrite that is faster by a fifth or more, on a model of its own at sizes of real nets.

A row is (name, how many times faster it should be, options of the optimizer, builder).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto

from benchmarks.net import Net

Micro = tuple[str, float, tuple[str, ...], Callable[[], onnx.ModelProto]]
FUSED = ("--opset", "fused")
LATENCY = ("--optimize-for", "latency")
FAST = ("--fp", "fast")


def affine_before_point() -> onnx.ModelProto:
    n = Net()
    x = n.op("Relu", n.input(1, 256, 56, 56))
    x = n.op("Add", n.op("Mul", x, n.weight(256, 1, 1)), n.weight(256, 1, 1))
    return n.model(n.conv(x, 32, 256))


def affine_of_channels() -> onnx.ModelProto:
    n = Net()
    x = n.input(1, 64, 112, 112)
    return n.model(n.op("Add", n.op("Mul", x, n.weight(64, 1, 1)), n.weight(64, 1, 1)))


def siblings_then_batchnorm() -> onnx.ModelProto:
    n = Net()
    x = n.op("Relu", n.input(1, 64, 56, 56))
    y = n.op("Concat", n.conv(x, 36, 64, bias=False), n.conv(x, 44, 64, bias=False), axis=1)
    parameters = [n.weight(80), n.weight(80), n.weight(80), n.weight(80, positive=True)]
    return n.model(n.op("BatchNormalization", y, *parameters))


def slice_of_channels() -> onnx.ModelProto:
    n = Net()
    y = n.op("Relu", n.conv(n.input(1, 64, 56, 56), 96, 64, 3))
    return n.model(n.op("Slice", y, n.ints(0), n.ints(32), n.ints(1)))


def point_then_pool() -> onnx.ModelProto:
    n = Net()
    y = n.conv(n.op("Relu", n.conv(n.input(1, 64, 56, 56), 256, 64)), 128, 256)
    return n.model(n.op("AveragePool", y, kernel_shape=[2, 2], strides=[2, 2]))


def upsampling_then_point() -> onnx.ModelProto:
    n = Net()
    x = n.op("Relu", n.conv(n.input(1, 64, 40, 40), 256, 64))
    modes = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    up = n.op("Resize", x, "", n.const([1, 1, 2, 2]), mode="nearest", **modes)
    return n.model(n.conv(up, 128, 256))


def pyramid_of_pools() -> onnx.ModelProto:
    n = Net()
    x = n.input(1, 128, 20, 20)
    pools = [n.op("MaxPool", x, kernel_shape=[k, k], strides=[1, 1], pads=[k // 2] * 4) for k in (5, 9, 13)]
    return n.model(n.op("Concat", x, *pools, axis=1))


def pad_then_maxpool() -> onnx.ModelProto:
    n = Net()
    x = n.op("Relu", n.input(1, 64, 112, 112))
    padded = n.op("Pad", x, n.ints(0, 0, 1, 1, 0, 0, 1, 1))
    return n.model(n.op("MaxPool", padded, kernel_shape=[3, 3], strides=[2, 2]))


def two_means() -> onnx.ModelProto:
    n = Net()
    x = n.op("ReduceMean", n.input(1, 256, 28, 28), axes=[3], keepdims=1)
    return n.model(n.op("ReduceMean", x, axes=[2], keepdims=1))


def half_pixel_resize() -> onnx.ModelProto:
    n = Net()
    return n.model(n.op("Resize", n.input(1, 64, 40, 40), "", n.const([1, 1, 2, 2]), mode="nearest"))


def upsampling_by_expand() -> onnx.ModelProto:
    n = Net()
    x = n.op("Unsqueeze", n.input(1, 64, 40, 40), n.ints(3, 5))
    wide = n.op("Expand", x, n.ints(1, 64, 40, 2, 40, 2))
    return n.model(n.op("Reshape", wide, n.ints(1, 64, 80, 80)))


def focus() -> onnx.ModelProto:
    n = Net()
    x = n.input(1, 3, 320, 320)
    parts = []
    for column in (0, 1):
        for row in (0, 1):
            rows = n.op("Slice", x, n.ints(row), n.ints(2**31), n.ints(2), n.ints(2))
            parts.append(n.op("Slice", rows, n.ints(column), n.ints(2**31), n.ints(3), n.ints(2)))
    return n.model(n.op("Relu", n.conv(n.op("Concat", *parts, axis=1), 32, 12, 3)))


def pixel_shuffle() -> onnx.ModelProto:
    n = Net()
    x = n.op("Reshape", n.input(1, 128, 64, 64), n.ints(1, 32, 2, 2, 64, 64))
    y = n.op("Transpose", x, perm=[0, 1, 4, 2, 5, 3])
    return n.model(n.op("Reshape", y, n.ints(1, 32, 128, 128)))


def depthwise_sequence() -> onnx.ModelProto:
    n = Net()
    operands = n.input(1, 256, 400), n.weight(256, 1, 31), n.weight(256)
    return n.model(n.op("Conv", *operands, group=256, pads=[15, 15]))


def three_slices() -> onnx.ModelProto:
    n = Net()
    x = n.input(1, 64, 66, 66)
    for axis in (2, 3):
        x = n.op("Slice", x, n.ints(1), n.ints(65), n.ints(axis))
    return n.model(n.op("Slice", x, n.ints(0), n.ints(32), n.ints(1)))


def two_concats() -> onnx.ModelProto:
    n = Net()
    a, b, c = (n.input(1, 64, 56, 56) for _ in range(3))
    return n.model(n.op("Concat", n.op("Concat", a, b, axis=1), c, axis=1))


def split_then_concat() -> onnx.ModelProto:
    n = Net()
    x = n.op("Relu", n.input(1, 128, 56, 56))
    parts = n.op("Split", x, n.ints(64, 64), outputs=2, axis=1)
    return n.model(n.op("Relu", n.op("Concat", *parts, axis=1)))


def distribution_head() -> onnx.ModelProto:
    n = Net()
    x = n.op("Reshape", n.input(1, 64, 8400), n.ints(1, 4, 16, 8400))
    y = n.op("Softmax", n.op("Transpose", x, perm=[0, 2, 1, 3]), axis=1)
    y = n.op("Conv", y, n.const(np.arange(16.0).reshape(1, 16, 1, 1)))
    return n.model(n.op("Reshape", y, n.ints(1, 4, 8400)))


def layernorm() -> onnx.ModelProto:
    n = Net()
    x = n.input(16, 197, 768)
    d = n.op("Sub", x, n.op("ReduceMean", x, axes=[-1]))
    variance = n.op("ReduceMean", n.op("Mul", d, d), axes=[-1])
    inverse = n.op("Reciprocal", n.op("Sqrt", n.op("Add", variance, n.const(1e-5))))
    y = n.op("Mul", n.op("Mul", d, inverse), n.weight(768))
    return n.model(n.op("Add", y, n.weight(768)))


def rmsnorm() -> onnx.ModelProto:
    n = Net()
    x = n.input(32, 128, 768)
    mean = n.op("ReduceMean", n.op("Mul", x, x), axes=[-1])
    inverse = n.op("Reciprocal", n.op("Sqrt", n.op("Add", mean, n.const(1e-6))))
    return n.model(n.op("Mul", n.weight(768), n.op("Mul", x, inverse)))


def layernorm_of_channels() -> onnx.ModelProto:
    n = Net()
    x = n.input(1, 96, 56, 56)
    d = n.op("Sub", x, n.op("ReduceMean", x, axes=[1]))
    variance = n.op("ReduceMean", n.op("Pow", d, n.const(2.0)), axes=[1])
    y = n.op("Div", d, n.op("Sqrt", n.op("Add", variance, n.const(1e-6))))
    return n.model(n.op("Add", n.op("Mul", y, n.weight(96, 1, 1)), n.weight(96, 1, 1)))


def instancenorm() -> onnx.ModelProto:
    n = Net()
    x = n.input(1, 64, 64, 64)
    d = n.op("Sub", x, n.op("ReduceMean", x, axes=[2, 3]))
    variance = n.op("ReduceMean", n.op("Mul", d, d), axes=[2, 3])
    y = n.op("Div", d, n.op("Sqrt", n.op("Add", variance, n.const(1e-5))))
    return n.model(n.op("Add", n.op("Mul", y, n.weight(64, 1, 1)), n.weight(64, 1, 1)))


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


def hardswish() -> onnx.ModelProto:
    n = Net()
    x = n.input(1, 64, 56, 56)
    y = n.op("Clip", n.op("Add", x, n.const(3.0)), n.const(0.0), n.const(6.0))
    return n.model(n.op("Div", n.op("Mul", x, y), n.const(6.0)))


def hardswish_between_convs() -> onnx.ModelProto:
    n = Net()
    x = n.conv(n.input(1, 64, 56, 56), 64, 64)
    y = n.op("Clip", n.op("Add", x, n.const(3.0)), n.const(0.0), n.const(6.0))
    return n.model(n.conv(n.op("Div", n.op("Mul", x, y), n.const(6.0)), 64, 64))


def mish() -> onnx.ModelProto:
    n = Net()
    x = n.input(1, 64, 56, 56)
    return n.model(n.op("Mul", x, n.op("Tanh", n.op("Softplus", x))))


def mish_between_convs() -> onnx.ModelProto:
    n = Net()
    x = n.conv(n.input(1, 64, 56, 56), 64, 64)
    return n.model(n.conv(n.op("Mul", x, n.op("Tanh", n.op("Softplus", x))), 64, 64))


def softplus() -> onnx.ModelProto:
    n = Net()
    return n.model(n.op("Softplus", n.input(1, 64, 56, 56)))


def sigmoid() -> onnx.ModelProto:
    n = Net()
    x = n.op("Exp", n.op("Neg", n.input(1, 128, 112, 112)))
    return n.model(n.op("Div", n.const(1.0), n.op("Add", n.const(1.0), x)))


def softmax() -> onnx.ModelProto:
    n = Net()
    x = n.input(1, 12, 64, 64)
    e = n.op("Exp", n.op("Sub", x, n.op("ReduceMax", x, axes=[-1])))
    return n.model(n.op("Div", e, n.op("ReduceSum", e, n.ints(-1))))


def logsoftmax() -> onnx.ModelProto:
    n = Net()
    return n.model(n.op("Log", n.op("Softmax", n.input(1, 128, 8000), axis=-1)))


def leakyrelu_of_relus() -> onnx.ModelProto:
    n = Net()
    x = n.input(1, 64, 56, 56)
    negative = n.op("Mul", n.op("Relu", n.op("Neg", x)), n.const(0.1))
    return n.model(n.op("Sub", n.op("Relu", x), negative))


def leakyrelu_of_max() -> onnx.ModelProto:
    n = Net()
    x = n.input(1, 64, 56, 56)
    return n.model(n.op("Max", x, n.op("Mul", x, n.const(0.1))))


def uniform_prelu() -> onnx.ModelProto:
    n = Net()
    return n.model(n.op("PRelu", n.input(1, 64, 56, 56), n.const(np.full((64, 1, 1), 0.25))))


def prelu_between_convs() -> onnx.ModelProto:
    n = Net()
    x = n.conv(n.input(1, 64, 56, 56), 64, 64)
    return n.model(n.conv(n.op("PRelu", x, n.weight(64, 1, 1, positive=True)), 64, 64))


def clip_of_min_max() -> onnx.ModelProto:
    n = Net()
    x = n.op("Max", n.input(1, 64, 56, 56), n.const(0.0))
    return n.model(n.op("Min", x, n.const(6.0)))


def relu_of_where() -> onnx.ModelProto:
    n = Net()
    x = n.input(1, 64, 56, 56)
    return n.model(n.op("Where", n.op("Greater", x, n.const(0.0)), x, n.const(0.0)))


def masked_scores() -> onnx.ModelProto:
    n = Net()
    s, mask = n.input(1, 12, 128, 128), n.input(1, 1, 1, 128, dtype=TensorProto.BOOL)
    return n.model(n.op("Where", mask, s, n.const(-np.inf)))


def causal_scores() -> onnx.ModelProto:
    n = Net()
    mask = n.const(np.tril(np.ones((128, 128))), np.bool_)
    return n.model(n.op("Softmax", n.op("Where", mask, n.input(1, 12, 128, 128), n.const(-1e9)), axis=-1))


def square() -> onnx.ModelProto:
    n = Net()
    return n.model(n.op("Pow", n.input(1, 64, 56, 56), n.const(2.0)))


def root() -> onnx.ModelProto:
    n = Net()
    return n.model(n.op("Pow", n.op("Abs", n.input(1, 64, 56, 56)), n.const(0.5)))


def quotient() -> onnx.ModelProto:
    n = Net()
    return n.model(n.op("Div", n.input(1, 64, 56, 56), n.const(3.0)))


def affine_chain() -> onnx.ModelProto:
    n = Net()
    x = n.input(1, 64, 56, 56)
    for number in (1.5, 0.7):
        x = n.op("Add", n.op("Mul", x, n.const(number)), n.const(number / 2))
    return n.model(x)


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


def expanded_sum() -> onnx.ModelProto:
    n = Net()
    z = n.op("Expand", n.input(1, 64, 1, 1), n.ints(1, 64, 56, 56))
    return n.model(n.op("Add", n.input(1, 64, 56, 56), z))


def normalized_rows() -> onnx.ModelProto:
    n = Net()
    x = n.input(1, 64, 64)
    length = n.op("Clip", n.op("ReduceL2", x, axes=[-1]), n.const(1e-12))
    return n.model(n.op("Div", x, n.op("Expand", length, n.op("Shape", x))))


def largest_probability() -> onnx.ModelProto:
    n = Net()
    y = n.op("ArgMax", n.op("Softmax", n.input(1, 128, 8000), axis=-1), axis=-1)
    return n.model(y, dtypes=[TensorProto.INT64])


MICRO_MODELS: tuple[Micro, ...] = (
    ("Relu-Mul-Add into the next 1x1 Conv", 1.20, (), affine_before_point),
    ("Mul-Add per channel to BatchNormalization", 1.90, (), affine_of_channels),
    ("2 sibling Convs, Concat, BatchNormalization to one", 1.36, (), siblings_then_batchnorm),
    ("Slice of channels of Conv-Relu", 2.69, (), slice_of_channels),
    ("Conv1x1-AveragePool swapped", 1.80, (), point_then_pool),
    ("Resize-Conv1x1 swapped", 2.31, (), upsampling_then_point),
    ("cascade of MaxPools", 3.13, (), pyramid_of_pools),
    ("Relu-Pad-MaxPool", 1.37, (), pad_then_maxpool),
    ("ReduceMean of ReduceMean", 1.35, (), two_means),
    ("Resize half_pixel to asymmetric", 4.38, (), half_pixel_resize),
    ("Unsqueeze-Expand-Reshape to Resize", 12.3, (), upsampling_by_expand),
    ("Focus into Conv", 1.35, (), focus),
    ("PixelShuffle to DepthToSpace", 1.55, (), pixel_shuffle),
    ("depthwise Conv1D as Conv2D", 2.63, LATENCY, depthwise_sequence),
    ("3 Slices to one", 1.48, (), three_slices),
    ("Concat of Concat", 1.41, (), two_concats),
    ("Concat of Split", 2.08, (), split_then_concat),
    ("Softmax-Conv of a distribution to MatMul", 4.26, (), distribution_head),
    ("LayerNormalization by Reciprocal", 2.70, (), layernorm),
    ("RMSNormalization", 3.1, FUSED, rmsnorm),
    ("LayerNormalization over channels", 1.78, (), layernorm_of_channels),
    ("InstanceNormalization", 2.75, (), instancenorm),
    ("Gelu by Erf of a product", 1.46, FUSED, gelu_by_factor),
    ("Gelu by Tanh", 2.5, FUSED, gelu_tanh),
    ("HardSwish", 1.55, (), hardswish),
    ("HardSwish between Convs", 1.29, (), hardswish_between_convs),
    ("Mish", 4.35, LATENCY, mish),
    ("Mish between Convs", 2.6, LATENCY, mish_between_convs),
    ("Softplus", 2.56, LATENCY + FAST, softplus),
    ("Sigmoid", 2.26, (), sigmoid),
    ("Softmax", 2.09, (), softmax),
    ("LogSoftmax", 3.90, (), logsoftmax),
    ("LeakyRelu of two Relus", 2.70, (), leakyrelu_of_relus),
    ("LeakyRelu of Max", 1.54, (), leakyrelu_of_max),
    ("uniform PRelu to LeakyRelu", 2.26, (), uniform_prelu),
    ("PRelu between Convs", 2.06, LATENCY, prelu_between_convs),
    ("Clip of Min and Max", 2.01, (), clip_of_min_max),
    ("Relu of Where", 8.8, (), relu_of_where),
    ("Where of a mask to Add", 2.43, LATENCY, masked_scores),
    ("Where of a causal mask to Add", 1.85, FAST, causal_scores),
    ("Pow 2 to Mul", 1.79, (), square),
    ("Pow 0.5 to Sqrt", 7.0, (), root),
    ("Div to Mul", 1.34, (), quotient),
    ("affine chain", 1.66, (), affine_chain),
    ("MatMul of MatMul", 1.87, (), product_of_products),
    ("Gemm of Gemm", 1.75, (), linear_linear),
    ("Einsum of two to MatMul", 2.14, LATENCY, einsum_of_two),
    ("Einsum of one to Transpose", 1.45, (), einsum_of_one),
    ("RotaryEmbedding", 1.95, FUSED, rotary),
    ("first token before the last block", 8.8, (), first_token),
    ("last token before the head", 2.7, (), last_token),
    ("Expand before Add", 1.24, (), expanded_sum),
    ("Expand of a norm", 1.20, (), normalized_rows),
    ("ArgMax of Softmax", 1.51, (), largest_probability),
)
