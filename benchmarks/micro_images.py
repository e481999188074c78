"""Models of one rewrite each, on images."""

from __future__ import annotations

import numpy as np
import onnx

from benchmarks.net import Net


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


def expanded_sum() -> onnx.ModelProto:
    n = Net()
    z = n.op("Expand", n.input(1, 64, 1, 1), n.ints(1, 64, 56, 56))
    return n.model(n.op("Add", n.input(1, 64, 56, 56), z))
