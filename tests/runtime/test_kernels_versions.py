"""Versions that compute what a neighbour does (new dtypes, new text), and the versions before 7."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from kernel_oracle import assert_close, check, run_kernel


def _normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed + 100 * len(shape)).standard_normal(shape).astype(np.float32)


_IMAGE = _normal(2, 3, 6, 6)
_POOL = {"kernel_shape": [2, 2], "strides": [2, 2]}
_SEQUENCE = {
    op: [_normal(4, 2, 3), _normal(1, 2 * g, 3, seed=1), _normal(1, 2 * g, 2, seed=2), _normal(1, 4 * g)]
    for op, g in (("RNN", 1), ("GRU", 3), ("LSTM", 4))
}
_CELLS = _normal(1, 3, 3, 3)
_PLACES = np.arange(27).reshape(1, 3, 3, 3)
_STEP = np.array(0.5, np.float32)
_QUANTIZED = [np.arange(6, dtype=np.uint8).reshape(2, 3), _STEP, np.array(1, np.uint8)]
_BOX = np.array([[0, 0, 0, 4, 4], [1, 1, 2, 5, 5]], np.float32)

SAME = [  # op, version, version compared with (itself tested against onnxruntime), inputs, attributes
    ("AveragePool", 1, 7, [_IMAGE], _POOL),
    ("Celu", 28, 12, [_IMAGE], {"alpha": 1.5}),
    ("Conv", 1, 11, [_IMAGE, _normal(4, 3, 3, 3)], {}),
    ("ConvTranspose", 1, 11, [_IMAGE, _normal(3, 4, 3, 3)], {"strides": [2, 2]}),
    ("ConvTranspose", 22, 11, [_IMAGE, _normal(3, 4, 3, 3)], {"strides": [2, 2]}),
    ("DequantizeLinear", 24, 23, _QUANTIZED, {}),
    ("DequantizeLinear", 28, 25, _QUANTIZED, {}),
    ("Elu", 1, 6, [_IMAGE], {"alpha": 2.0}),
    ("Erf", 9, 13, [_IMAGE], {}),
    ("GlobalLpPool", 22, 2, [_IMAGE], {"p": 3}),
    ("GlobalMaxPool", 22, 1, [_IMAGE], {}),
    ("GridSample", 22, 20, [_IMAGE, _normal(2, 4, 4, 2)], {"mode": "cubic"}),
    ("HardSigmoid", 1, 6, [_IMAGE], {}),
    ("HardSwish", 22, 14, [_IMAGE], {}),
    ("InstanceNormalization", 1, 6, [_IMAGE, _normal(3), _normal(3, seed=1)], {}),
    ("InstanceNormalization", 22, 6, [_IMAGE, _normal(3), _normal(3, seed=1)], {}),
    ("LRN", 1, 13, [_IMAGE], {"size": 3}),
    ("LeakyRelu", 1, 6, [_IMAGE], {"alpha": 0.2}),
    ("LpPool", 1, 2, [_IMAGE], {"p": 2.0, **_POOL}),
    ("MatMul", 1, 13, [_normal(2, 3), _normal(3, 4)], {}),
    ("MatMul", 9, 13, [_normal(2, 3), _normal(3, 4)], {}),
    ("MaxPool", 1, 8, [_IMAGE], _POOL),
    ("MaxPool", 11, 12, [_IMAGE], {"ceil_mode": 1, **_POOL}),
    ("MaxRoiPool", 22, 1, [_IMAGE, _BOX], {"pooled_shape": [2, 2]}),
    ("MaxUnpool", 9, 11, [_CELLS, _PLACES], _POOL),
    ("MaxUnpool", 22, 11, [_CELLS, _PLACES], _POOL),
    ("MeanVarianceNormalization", 9, 13, [_IMAGE], {}),
    ("MeanVarianceNormalization", 1, 13, [_IMAGE], {}),
    ("Mish", 22, 18, [_IMAGE], {}),
    ("PRelu", 7, 9, [_IMAGE, _normal(3, 1, 1)], {}),
    ("PRelu", 16, 9, [_IMAGE, _normal(3, 1, 1)], {}),
    ("PRelu", 1, 6, [_IMAGE, _normal(3)], {}),
    ("QuantizeLinear", 24, 23, [_IMAGE, _STEP], {"output_dtype": 3}),
    ("QuantizeLinear", 28, 25, [_IMAGE, _STEP], {"output_dtype": 26}),
    ("Relu", 1, 14, [_IMAGE], {}),
    ("Relu", 6, 14, [_IMAGE], {}),
    ("Relu", 13, 14, [_IMAGE], {}),
    ("Sigmoid", 1, 13, [_IMAGE], {}),
    ("Sigmoid", 6, 13, [_IMAGE], {}),
    ("Softsign", 22, 1, [_IMAGE], {}),
    ("Tanh", 1, 13, [_IMAGE], {}),
    ("Tanh", 6, 13, [_IMAGE], {}),
    ("Upsample", 10, 9, [_IMAGE, np.array([1, 1, 2, 2], np.float32)], {}),
    ("GRU", 1, 14, _SEQUENCE["GRU"], {"hidden_size": 2}),
    ("GRU", 3, 14, _SEQUENCE["GRU"], {"hidden_size": 2, "linear_before_reset": 1}),
    ("GRU", 22, 14, _SEQUENCE["GRU"], {"hidden_size": 2}),
    ("LSTM", 1, 14, _SEQUENCE["LSTM"], {"hidden_size": 2}),
    ("LSTM", 22, 14, _SEQUENCE["LSTM"], {"hidden_size": 2}),
    ("RNN", 1, 14, _SEQUENCE["RNN"], {"hidden_size": 2}),
    ("RNN", 22, 14, _SEQUENCE["RNN"], {"hidden_size": 2}),
]


@pytest.mark.parametrize(("op", "version", "known", "inputs", "attributes"), SAME)
def test_same_as_its_neighbour(
    op: str, version: int, known: int, inputs: list[np.ndarray], attributes: dict[str, Any]
) -> None:
    actual = run_kernel(op, inputs, attributes, opset=version)[0]
    expected = run_kernel(op, inputs, attributes, opset=known)[0]
    assert actual.dtype == expected.dtype
    np.testing.assert_array_equal(actual.astype(np.float64), expected.astype(np.float64))


def test_non_max_suppression_10() -> None:
    r = np.random.default_rng(0)
    boxes, scores = r.uniform(0, 1, (1, 20, 4)).astype(np.float32), r.random((1, 2, 20)).astype(np.float32)
    check("NonMaxSuppression", [boxes, scores, np.array([5]), np.array([0.3], np.float32)], opset=10)


@pytest.mark.parametrize("version", [1, 6])
def test_batch_norm_before_7(version: int) -> None:
    scale, bias, mean, var = (_normal(3, seed=i) for i in range(4))
    inputs = [_IMAGE, scale, bias, mean, abs(var)]
    expected = run_kernel("BatchNormalization", inputs, opset=9)[0]
    assert_close(run_kernel("BatchNormalization", inputs, {"is_test": 1}, opset=version)[0], expected)
    trained = run_kernel("BatchNormalization", inputs, {"momentum": 0.5}, opset=version, outputs=5)
    axes = (0, 2, 3)
    assert_close(trained[1], (mean / 2 + _IMAGE.astype(np.float64).mean(axes) / 2).astype(np.float32))
    assert_close(trained[3], _IMAGE.astype(np.float64).mean(axes).astype(np.float32))
    y = trained[0].astype(np.float64)
    assert_close(y.mean(axes), bias.astype(np.float64), scale=1e4)


def test_gemm_1() -> None:
    a, b, c = _normal(2, 3), _normal(3, 4), _normal(2, 4)
    assert_close(run_kernel("Gemm", [a, b, c], {"alpha": 2.0}, opset=1)[0], 2 * (a @ b) + c)


def test_global_lp_pool_1_takes_a_float() -> None:
    expected = np.sqrt((_IMAGE.astype(np.float64) ** 2).sum((2, 3), keepdims=True))
    assert_close(run_kernel("GlobalLpPool", [_IMAGE], {"p": 2.0}, opset=1)[0], expected.astype(np.float32))


def test_selu_1_has_rounded_constants() -> None:
    x = np.array([-1, 1], np.float32)
    expected = np.array([1.0507 * 1.6732 * np.expm1(-1), 1.0507], np.float32)
    assert_close(run_kernel("Selu", [x], opset=1)[0], expected)


def test_upsample_1() -> None:
    x = np.array([[[[1, 2]]]], np.float32)
    y = run_kernel("Upsample", [x], {"height_scale": 2.0, "width_scale": 2.0}, opset=1)[0]
    assert y.tolist() == [[[[1, 1, 2, 2], [1, 1, 2, 2]]]]


def test_mean_variance_1_across_channels() -> None:
    actual = run_kernel("MeanVarianceNormalization", [_IMAGE], {"across_channels": 1}, opset=1)[0]
    expected = run_kernel("MeanVarianceNormalization", [_IMAGE], {"axes": (0, 1, 2, 3)}, opset=13)[0]
    assert_close(actual, expected)


def test_qlinear_matmul_21_takes_float8() -> None:
    one = np.ones((), np.float32)
    a = np.array([[1, 2]], ml_dtypes.float8_e4m3fn)
    b, zero = a.T.copy(), np.zeros((), ml_dtypes.float8_e4m3fn)
    y = run_kernel("QLinearMatMul", [a, one, zero, b, one, zero, one * 2, zero], opset=21)[0]
    assert y.dtype == zero.dtype
    assert y.astype(np.float32).tolist() == [[2.5]]


def test_linear_quantization_of_onnxruntime_is_that_of_onnx() -> None:
    x = _normal(3, 4)
    inputs = [x, np.array([0.1, 0.2, 0.3], np.float32), np.array([1, 2, 3], np.uint8)]
    y = check("QuantizeLinear", inputs, {"axis": 0}, opset=1, domain="com.microsoft")[0]
    check("DequantizeLinear", [y, *inputs[1:]], {"axis": 0}, opset=1, domain="com.microsoft")


def test_channels_last_fused_conv() -> None:
    x, w, b = _normal(1, 3, 6, 6), _normal(4, 3, 3, 3), _normal(4)
    attributes = {"activation": "Relu", "strides": [2, 1]}
    plain = run_kernel("FusedConv", [x, w, b], attributes, opset=1, domain="com.microsoft")[0]
    last = np.moveaxis(x, 1, -1)
    actual = run_kernel("NhwcFusedConv", [last, w, b], attributes, opset=1, domain="com.microsoft")[0]
    assert_close(actual, np.moveaxis(plain, 1, -1))


def test_fused_matmul_activation() -> None:
    a, b = _normal(2, 3), _normal(3, 4)
    attributes = {"activation": "Relu", "transA": 0}
    y = run_kernel("FusedMatMulActivation", [a, b], attributes, opset=1, domain="com.microsoft")[0]
    assert_close(y, np.maximum(a @ b, 0))
