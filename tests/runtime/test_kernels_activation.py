"""Activations against onnxruntime, erf against math.erf in every dtype."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from kernel_oracle import assert_close, check, run_kernel

X = np.concatenate([np.linspace(-12, 12, 241), [0.0, -0.0, 1e-6, -80, 80, 1e-30]]).astype(np.float32)

CASES = [
    ("Relu", 7, {}),
    ("Relu", 14, {}),
    ("Sigmoid", 13, {}),
    ("Tanh", 13, {}),
    ("Erf", 13, {}),
    ("Gelu", 20, {}),
    ("Gelu", 20, {"approximate": "tanh"}),
    ("Elu", 6, {}),
    ("Elu", 22, {"alpha": 1.7}),
    ("Selu", 6, {}),
    ("Selu", 22, {"alpha": 1.2, "gamma": 2.0}),
    ("Celu", 12, {}),
    ("Celu", 12, {"alpha": 2.5}),
    ("LeakyRelu", 6, {}),
    ("LeakyRelu", 16, {"alpha": -0.3}),
    ("HardSigmoid", 6, {}),
    ("HardSigmoid", 22, {"alpha": 0.4, "beta": 0.1}),
    ("HardSwish", 14, {}),
    ("Mish", 18, {}),
    ("Softplus", 1, {}),
    ("Softplus", 22, {}),
    ("Softsign", 1, {}),
    ("ThresholdedRelu", 10, {}),
    ("ThresholdedRelu", 22, {"alpha": 2.0}),
    ("Shrink", 9, {}),
    ("Shrink", 9, {"lambd": 1.5, "bias": 1.5}),
    ("Swish", 24, {"alpha": 1.5}),
]


@pytest.mark.parametrize(("op", "opset", "attributes"), CASES)
def test_activation(op: str, opset: int, attributes: dict[str, object]) -> None:
    check(op, [X], attributes, opset=max(opset, 7))


@pytest.mark.parametrize(("op", "opset", "attributes"), CASES)
def test_activation_in_other_precisions(op: str, opset: int, attributes: dict[str, object]) -> None:
    """float64 agrees with float32 as far as that goes; narrow floats are float64 rounded once."""
    x = X[abs(X) <= 20]
    wide = run_kernel(op, [x.astype(np.float64)], attributes, opset=opset)[0]
    assert wide.dtype == np.float64
    assert_close(run_kernel(op, [x], attributes, opset=opset)[0], wide.astype(np.float32))
    for dtype in (np.float16, ml_dtypes.bfloat16):
        narrow = x.astype(dtype)
        wide = run_kernel(op, [narrow.astype(np.float64)], attributes, opset=opset)[0]
        assert_close(run_kernel(op, [narrow], attributes, opset=opset)[0], wide.astype(dtype))


DENSE = np.concatenate([np.linspace(-7, 7, 40001), np.geomspace(1e-20, 1, 500), [0, np.inf, -np.inf]])


def _erf(x: np.ndarray) -> np.ndarray:
    return np.array([math.erf(v) for v in x.astype(np.float64)])


@pytest.mark.parametrize(("dtype", "units"), [(np.float32, 3), (np.float64, 4)])
def test_erf_in_units_of_the_last_place(dtype: type, units: int) -> None:
    x = DENSE.astype(dtype)
    actual = run_kernel("Erf", [x], opset=13)[0]
    expected = _erf(x)
    assert (abs(actual - expected) <= units * np.spacing(abs(expected).astype(dtype))).all()
    assert np.isnan(run_kernel("Erf", [np.array([np.nan], dtype)], opset=13)[0]).all()


def test_exact_gelu_in_double_precision() -> None:
    x = np.linspace(-6, 6, 1001)
    expected = np.array([0.5 * v * math.erfc(-v / math.sqrt(2)) for v in x])
    assert_close(run_kernel("Gelu", [x], opset=20)[0], expected)


@pytest.mark.parametrize("slope", [(1,), (3, 1, 1), (3, 4, 5), (5,), (1, 1, 5)])
def test_prelu(slope: tuple[int, ...]) -> None:
    r = np.random.default_rng(0)
    x, s = r.standard_normal((2, 3, 4, 5)).astype(np.float32), r.standard_normal(slope).astype(np.float32)
    check("PRelu", [x, s], opset=9)


def test_prelu_6_has_a_slope_per_channel() -> None:
    x = -np.ones((1, 3, 3), np.float32)
    actual = run_kernel("PRelu", [x, np.array([1, 2, 3], np.float32)], opset=6)[0]
    assert_close(actual, -np.repeat(np.arange(1, 4), 3).reshape(1, 3, 3).astype(np.float32))


def test_integers() -> None:
    x = np.array([-3, -1, 0, 2], np.int32)
    assert_close(run_kernel("Relu", [x], opset=14)[0], np.array([0, 0, 0, 2], np.int32))
    assert_close(run_kernel("Erf", [x], opset=13)[0], np.array([0, 0, 0, 0], np.int32))
    shrunk = run_kernel("Shrink", [x], {"lambd": 1.5, "bias": 1.0}, opset=9)[0]
    assert_close(shrunk, np.array([-2, 0, 0, 1], np.int32))


def test_blocks_and_layout() -> None:
    """More than one block, and an input that is not contiguous."""
    x = np.random.default_rng(0).standard_normal((300, 400)).astype(np.float32).T
    assert_close(
        run_kernel("Sigmoid", [x], opset=13)[0], (1 / (1 + np.exp(-x.astype(np.float64)))).astype("f")
    )
