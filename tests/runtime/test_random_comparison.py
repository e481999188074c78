"""What comparing kernels with onnxruntime on random inputs brought up, each kept as one case."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_oracle import assert_close, check, run_kernel

from optimizer.runtime import Call

INF = np.inf


@pytest.mark.parametrize("size", [1, 50])
def test_erf_reaches_one(size: int) -> None:
    x = np.repeat(np.float32([-1e30, -20, -4.5, 4.5, 20, INF]), size)
    assert set(run_kernel("Erf", [x], opset=13)[0].tolist()) == {-1.0, 1.0}
    check("Gelu", [np.append(x, np.float32([-INF, np.nan, 0.5]))], opset=20)


def test_a_slope_that_is_not_finite_counts_below_zero_only() -> None:
    x, slope = np.float32([0, 2, -2, INF, np.nan]), np.float32([INF, INF, INF, np.nan, 1])
    for version in (7, 9, 16):
        check("PRelu", [x, slope], opset=version)
        check("PRelu", [x, np.float32([INF])], opset=version)


def test_unsigned_64_bit_numbers_are_not_shifted_through_floats() -> None:
    x, amount = np.uint64([(1 << 63) + 225, (1 << 63) + 225, 5]), np.uint64([0, 1, 63])
    for direction in ("LEFT", "RIGHT"):
        check("BitShift", [x, amount], {"direction": direction}, opset=11)


def test_the_logarithm_of_integers_is_an_integer() -> None:
    x = np.int64([5, 7])
    check("ReduceLogSum", [x], {"noop_with_empty_axes": 1}, opset=18)


@pytest.mark.parametrize(("opset", "expected"), [(21, [27, 12, 18, 0, 51]), (23, [27, 11, 18, 1, 51])])
def test_since_version_23_a_quotient_has_the_type_of_the_scale(opset: int, expected: list[int]) -> None:
    x, scale = np.float16([2.35, 0.85, 1.45, -0.25, 4.75]), np.float16(0.1)
    (y,) = check("QuantizeLinear", [x, np.asarray(scale), np.asarray(np.uint8(3))], opset=opset)
    assert y.tolist() == expected
    (wide,) = run_kernel(
        "QuantizeLinear", [x, np.asarray(scale), np.asarray(np.uint8(3))], {"precision": 1}, opset=23
    )
    assert wide.tolist() == [27, 12, 18, 0, 51]


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int32])
def test_integers_are_cut_off_once_not_after_each_axis(dtype: type) -> None:
    x = np.random.default_rng(3).integers(0, 100, (1, 2, 5, 6)).astype(dtype)
    sizes = np.int64([1, 2, 13, 17])
    (y,) = run_kernel("Resize", [x, None, None, sizes], {"mode": "linear"}, opset=19)
    (exact,) = run_kernel("Resize", [x.astype(np.float64), None, None, sizes], {"mode": "linear"}, opset=19)
    fractions = exact - np.trunc(exact)
    sure = (fractions > 1e-3) & (fractions < 1 - 1e-3)
    assert y.dtype == dtype
    assert sure.sum() > 300
    np.testing.assert_array_equal(y[sure], np.trunc(exact)[sure])
    check("Upsample", [x[..., :1, :], np.float32([1, 1, 1, 2])], {"mode": "linear"}, opset=9)


def test_defaults_are_what_an_attribute_could_hold() -> None:
    call = Call("LeakyRelu", {"beta": 0.25}, opset=16)
    assert call.attr("alpha", 0.01) == float(np.float32(0.01)) != 0.01
    assert (call.attr("beta", 0.1), call.attr("gamma", 1), call.attr("delta")) == (0.25, 1, None)
    x = np.float64([-2, 3])
    check("LeakyRelu", [x], opset=16)
    for given in ({}, {"epsilon": float(np.float32(1e-5))}):
        check("LayerNormalization", [np.float64([[1, 2]]) * 1e-3, np.float64([1, 1])], given, opset=17)


def test_large_shifts_keep_the_sign() -> None:
    (y,) = run_kernel("BitShift", [np.int8([-5, 5]), np.int8([9, 9])], {"direction": "RIGHT"}, opset=28)
    assert_close(y, np.int8([-1, 0]))


def test_scalars_are_quantized() -> None:
    x, scale, zero = np.asarray(np.float32(1.3)), np.asarray(np.float32(0.1)), np.asarray(np.uint8(3))
    assert check("QuantizeLinear", [x, scale, zero], opset=21)[0].tolist() == 16
    a = np.asarray(np.uint8(9))
    for op in ("QLinearAdd", "QLinearMul"):
        inputs = [a, scale, zero, a, scale, zero, scale, zero]
        check(op, inputs, opset=1, domain="com.microsoft")


@pytest.mark.parametrize("reduction", ["none", "add", "max"])
def test_empty_slices_are_scattered(reduction: str) -> None:
    inputs = [np.zeros((2, 0), np.float32), np.int64([[1], [1]]), np.zeros((2, 0), np.float32)]
    check("ScatterND", inputs, {"reduction": reduction}, opset=18)


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "LpPool"])
def test_ceil_mode_counts_without_padding_too(op: str) -> None:
    x = np.random.default_rng(0).standard_normal((1, 2, 8, 9)).astype(np.float32)
    window = {"kernel_shape": [3, 3], "strides": [2, 4], "auto_pad": "VALID", "ceil_mode": 1}
    (y,) = check(op, [x], window, opset=22)
    assert y.shape == (1, 2, 4, 3)


@pytest.mark.parametrize(
    "op", ["ReduceSum", "ReduceMean", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum"]
)
def test_long_axes_are_not_added_up_row_by_row(op: str) -> None:
    x = np.random.default_rng(0).random((2, 4999, 3, 2)).astype(np.float32)
    for axes in ([1], [1, 2], [0, 1]):
        (y,) = run_kernel(op, [x, np.int64(axes)], opset=18)
        (exact,) = run_kernel(op, [x.astype(np.float64), np.int64(axes)], opset=18)
        assert y.shape == exact.shape
        assert abs(y / exact - 1).max() < 1e-6
