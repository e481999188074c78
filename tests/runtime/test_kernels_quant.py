"""Quantization: onnxruntime where it is exact, integer arithmetic elsewhere."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from kernel_oracle import assert_close, check, run_kernel, run_onnxruntime

MS = "com.microsoft"


def _normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32) * 3


def _bytes(*shape: int, dtype: type = np.uint8, seed: int = 0) -> np.ndarray:
    info = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(info.min, info.max + 1, shape).astype(dtype)


SCALE = np.array(0.037, np.float32)


def _near(actual: np.ndarray, expected: np.ndarray) -> None:
    """At most one step, on few elements: a rounding tie."""
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    steps = abs(actual.astype(np.int64) - expected.astype(np.int64))
    assert steps.max(initial=0) <= 1
    assert (steps > 0).mean() <= 0.02


@pytest.mark.parametrize("opset", [10, 13, 19, 21, 23])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16])
def test_per_tensor(opset: int, dtype: type) -> None:
    if np.dtype(dtype).itemsize == 2 and opset < 21:
        opset = 21
    zero = np.array(3, dtype)
    y = check("QuantizeLinear", [_normal(3, 40), SCALE, zero], opset=opset)[0]
    check("DequantizeLinear", [y, SCALE, zero], opset=opset)
    if dtype is np.uint8:
        check("QuantizeLinear", [_normal(3, 40), SCALE], opset=opset)


@pytest.mark.parametrize("opset", [13, 19, 21])
@pytest.mark.parametrize("axis", [None, 0, 2, -1])
def test_per_axis(opset: int, axis: int | None) -> None:
    x = _normal(2, 3, 4)
    n = x.shape[1 if axis is None else axis]
    scale, zero = np.linspace(0.01, 0.5, n).astype(np.float32), np.arange(n).astype(np.int8)
    attributes = {} if axis is None else {"axis": axis}
    y = check("QuantizeLinear", [x, scale, zero], attributes, opset=opset)[0]
    check("DequantizeLinear", [y, scale, zero], attributes, opset=opset)


@pytest.mark.parametrize("axis", [0, 1])
def test_blocked(axis: int) -> None:
    x = _normal(6, 8)
    shape = (2, 8) if axis == 0 else (6, 3)
    attributes = {"axis": axis, "block_size": 3}
    scale = abs(_normal(*shape, seed=1)) * 0.02 + 0.01
    zero = _bytes(*shape, dtype=np.int8, seed=2)
    y = check("QuantizeLinear", [x, scale, zero], attributes, opset=21)[0]
    check("DequantizeLinear", [y, scale, zero], attributes, opset=21)


@pytest.mark.parametrize(
    ("number", "dtype", "low", "high"),
    [
        (21, ml_dtypes.uint4, 0, 15),
        (22, ml_dtypes.int4, -8, 7),
        (25, ml_dtypes.uint2, 0, 3),
        (26, ml_dtypes.int2, -2, 1),
        (3, np.int8, -128, 127),
    ],
)
def test_small_integers_by_output_dtype(number: int, dtype: type, low: int, high: int) -> None:
    x = _normal(5, 30)
    y = run_kernel("QuantizeLinear", [x, np.float32(0.5).reshape(())], {"output_dtype": number}, opset=25)[0]
    assert y.dtype == dtype
    expected = np.clip(np.rint(x / np.float32(0.5)), low, high)
    assert_close(y.astype(np.float32), expected)
    back = run_kernel("DequantizeLinear", [y, np.float32(0.5).reshape(())], opset=25)[0]
    assert_close(back, (expected * 0.5).astype(np.float32))


@pytest.mark.parametrize(
    "dtype",
    [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2fnuz],
)
@pytest.mark.parametrize("saturate", [0, 1])
def test_float8(dtype: type, saturate: int) -> None:
    x = np.array([0.1, -3, 1e6, -1e6, 7.7], np.float32)
    y = run_kernel(
        "QuantizeLinear",
        [x, np.float32(2).reshape(()), np.zeros((), dtype)],
        {"saturate": saturate},
        opset=19,
    )[0]
    assert y.dtype == dtype
    wide = y.astype(np.float32)
    top = float(ml_dtypes.finfo(dtype).max)
    if saturate:
        assert wide[2] == top
        assert wide[3] == -top
    else:
        assert not np.isfinite(wide[2:4]).any()
    back = run_kernel("DequantizeLinear", [y, np.float32(2).reshape(())], opset=19)[0]
    assert_close(back[[0, 1, 4]], (wide * 2)[[0, 1, 4]])


def test_scales_of_other_types() -> None:
    x = _normal(20).astype(np.float16)
    scale = np.array(0.25, np.float16)
    y = check("QuantizeLinear", [x, scale, np.array(1, np.int8)], opset=19)[0]
    assert check("DequantizeLinear", [y, scale, np.array(1, np.int8)], opset=19)[0].dtype == np.float16
    wide = run_kernel("DequantizeLinear", [y, scale, np.array(1, np.int8)], {"output_dtype": 1}, opset=23)[0]
    assert wide.dtype == np.float32
    integers = np.array([-1000, 7, 20], np.int32)
    y = run_kernel("QuantizeLinear", [integers, np.array(2.5, np.float32), np.array(1, np.uint8)], opset=13)[
        0
    ]
    assert y.tolist() == [0, 4, 9]  # 7 / 2.5 = 2.8
    check("DequantizeLinear", [integers, np.array(2.5, np.float32)], opset=13)


def test_ties_go_to_even() -> None:
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5], np.float32)
    y = run_kernel("QuantizeLinear", [x, np.ones((), np.float32), np.zeros((), np.int8)], opset=13)[0]
    assert y.tolist() == [0, 2, 2, 0, -2]


@pytest.mark.parametrize("x", [_normal(4, 5), abs(_normal(4, 5)), -abs(_normal(4, 5)), np.zeros((2, 2), "f")])
def test_dynamic(x: np.ndarray) -> None:
    check("DynamicQuantizeLinear", [x], opset=11, outputs=3)


def test_refuses() -> None:
    with pytest.raises(ValueError, match="scales"):
        run_kernel("QuantizeLinear", [_normal(2, 3), np.ones(4, np.float32)], opset=13)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("columns", [1, 6])
def test_qlinear_matmul(dtype: type, columns: int) -> None:
    a, b = _bytes(2, 5, 40), _bytes(40, 6, dtype=dtype) // 2
    b_scale = np.linspace(0.01, 0.02, columns).astype(np.float32)
    b_zero = np.zeros(columns, dtype)
    inputs = [
        a,
        SCALE,
        np.array(120, np.uint8),
        b,
        b_scale,
        b_zero,
        np.array(0.9, np.float32),
        np.array(7, np.uint8),
    ]
    if columns == 1:
        inputs[4], inputs[5] = b_scale.reshape(()), b_zero.reshape(())
    expected = run_onnxruntime("QLinearMatMul", inputs, opset=10)[0]
    _near(run_kernel("QLinearMatMul", inputs, opset=10)[0], expected)


@pytest.mark.parametrize("group", [1, 4])
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_qlinear_conv(group: int, per_channel: bool, bias: bool) -> None:
    x, w = _bytes(2, 4, 9, 9), _bytes(8, 4 // group, 3, 3, dtype=np.int8) // 2
    channels = 8 if per_channel else 1
    w_scale, w_zero = np.linspace(0.01, 0.03, channels).astype(np.float32), np.zeros(channels, np.int8)
    if not per_channel:
        w_scale, w_zero = w_scale.reshape(()), w_zero.reshape(())
    inputs = [
        x,
        SCALE,
        np.array(128, np.uint8),
        w,
        w_scale,
        w_zero,
        np.array(0.3, np.float32),
        np.array(99, np.uint8),
    ]
    if bias:
        inputs.append((np.arange(8) * 500).astype(np.int32))
    attributes = {"group": group, "pads": [1, 1, 0, 0], "strides": [2, 1]}
    _near(
        run_kernel("QLinearConv", inputs, attributes, opset=10)[0],
        run_onnxruntime("QLinearConv", inputs, attributes, opset=10)[0],
    )


@pytest.mark.parametrize("zeros", [0, 1, 2])
def test_conv_integer(zeros: int) -> None:
    x, w = _bytes(1, 3, 8, 8), _bytes(4, 3, 3, 3, seed=1)
    inputs = [x, w, np.array(5, np.uint8), np.array(2, np.uint8)][: 2 + zeros]
    check("ConvInteger", inputs, {"pads": [1, 1, 1, 1]}, opset=10)


def test_conv_integer_is_exact_beyond_float32() -> None:
    x, w = np.full((1, 900, 3, 3), 255, np.uint8), np.full((1, 900, 3, 3), 255, np.uint8)
    actual = run_kernel("ConvInteger", [x, w], opset=10)[0]
    assert actual.item() == 8100 * 255 * 255


def test_conv_integer_zero_point_per_channel() -> None:
    x, w = _bytes(1, 2, 5, 5), _bytes(3, 2, 2, 2)
    zero = np.array([1, 2, 3], np.uint8)
    actual = run_kernel("ConvInteger", [x, w, np.array(0, np.uint8), zero], opset=10)[0]
    for m in range(3):
        one = run_kernel("ConvInteger", [x, w[m : m + 1], np.array(0, np.uint8), zero[m]], opset=10)[0]
        assert_close(actual[:, m : m + 1], one)


@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_qlinear_binary(op: str, dtype: type) -> None:
    def f(v: float) -> np.ndarray:
        return np.array(v, np.float32)

    zero = np.array(5, dtype)
    inputs = [
        _bytes(3, 8, dtype=dtype),
        f(0.0213),
        zero,
        _bytes(8, dtype=dtype, seed=1),
        f(0.0317),
        zero,
        f(0.0655),
        zero,
    ]
    _near(run_kernel(op, inputs, opset=1, domain=MS)[0], run_onnxruntime(op, inputs, opset=1, domain=MS)[0])


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("QLinearSigmoid", {}),
        ("QLinearLeakyRelu", {"alpha": 0.1}),
        ("QLinearGlobalAveragePool", {}),
        ("QLinearGlobalAveragePool", {"channels_last": 1}),
        ("QLinearAveragePool", {"kernel_shape": [2, 2]}),
        ("QLinearSoftmax", {"axis": -1, "opset": 13}),
        ("QLinearSoftmax", {"axis": 1, "opset": 11}),
    ],
)
def test_qlinear_unary(op: str, attributes: dict[str, object]) -> None:
    zero = np.array(100, np.uint8)
    y_zero = np.array(0, np.uint8)
    y_scale = np.array(1 / 256 if "ax" in op or "moid" in op else 0.05, np.float32)
    inputs = [_bytes(2, 3, 4, 5), SCALE, zero, y_scale, y_zero]
    _near(
        run_kernel(op, inputs, attributes, opset=1, domain=MS)[0],
        run_onnxruntime(op, inputs, attributes, opset=1, domain=MS)[0],
    )


def test_qlinear_concat() -> None:
    zero = np.array(3, np.uint8)
    inputs = [np.array(0.05, np.float32), zero]
    for i in range(3):
        inputs += [_bytes(2, 3, seed=i), np.array(0.02 * (i + 1), np.float32), zero]
    _near(
        run_kernel("QLinearConcat", inputs, {"axis": 1}, opset=1, domain=MS)[0],
        run_onnxruntime("QLinearConcat", inputs, {"axis": 1}, opset=1, domain=MS)[0],
    )


@pytest.mark.parametrize("quantized", [False, True])
def test_qgemm(quantized: bool) -> None:
    def f(v: float) -> np.ndarray:
        return np.array(v, np.float32)

    zero = np.array(12, np.uint8)
    inputs = [
        _bytes(4, 9),
        f(0.02),
        zero,
        _bytes(7, 9, seed=1),
        f(0.03),
        zero,
        np.arange(7, dtype=np.int32) * 100,
    ]
    if quantized:
        inputs += [f(0.4), zero]
    attributes = {"transB": 1, "alpha": 0.5}
    actual = run_kernel("QGemm", inputs, attributes, opset=1, domain=MS)[0]
    expected = run_onnxruntime("QGemm", inputs, attributes, opset=1, domain=MS)[0]
    (_near if quantized else assert_close)(actual, expected)


@pytest.mark.parametrize("bias", [False, True])
def test_matmul_integer_to_float(bias: bool) -> None:
    a, b = _bytes(2, 4, 9), _bytes(9, 7, seed=1)
    zero = np.array(12, np.uint8)
    inputs = [a, b, SCALE, np.linspace(0.1, 0.2, 7).astype(np.float32), zero, np.full(7, 12, np.uint8)]
    if bias:
        inputs.append(_normal(7))
    check("MatMulIntegerToFloat", inputs, opset=1, domain=MS)
    dynamic = [_normal(2, 4, 9), b, np.array(0.1, np.float32), zero, *inputs[6:]]
    check("DynamicQuantizeMatMul", dynamic, opset=1, domain=MS)
