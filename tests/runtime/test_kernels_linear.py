"""MatMul, Gemm and MatMulInteger."""

from __future__ import annotations

from itertools import product

import ml_dtypes
import numpy as np
import pytest
from kernel_oracle import assert_close, check, run_kernel


def _normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((4, 5), (5, 6)),
        ((5,), (5, 6)),
        ((4, 5), (5,)),
        ((5,), (5,)),
        ((2, 3, 4, 5), (5, 6)),
        ((2, 1, 4, 5), (3, 5, 6)),
        ((4, 5), (2, 5, 6)),
        ((2, 0, 5), (5, 6)),
        ((3, 0), (0, 4)),
    ],
)
def test_matmul(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    check("MatMul", [_normal(*a), _normal(*b, seed=1)], opset=13)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint64])
@pytest.mark.parametrize("high", [10, 10**5, 2**31 - 1])
def test_matmul_of_integers_wraps_around(dtype: type, high: int) -> None:
    r = np.random.default_rng(0)
    a, b = r.integers(0, high, (3, 40)).astype(dtype), r.integers(0, high, (40, 4)).astype(dtype)
    exact = a.astype(object) @ b.astype(object)
    bits = 8 * np.dtype(dtype).itemsize
    wrapped = np.vectorize(lambda v: v % 2**bits)(exact).astype(f"uint{bits}").view(dtype)
    assert_close(run_kernel("MatMul", [a, b], opset=13)[0], wrapped)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_matmul_of_narrow_floats(dtype: type) -> None:
    a, b = _normal(4, 700).astype(dtype), _normal(700, 3, seed=1).astype(dtype)
    expected = (a.astype(np.float64) @ b.astype(np.float64)).astype(dtype)
    assert_close(run_kernel("MatMul", [a, b], opset=13)[0], expected)


@pytest.mark.parametrize(
    ("left", "right", "c"), list(product((0, 1), (0, 1), ["none", "row", "column", "one", "full"]))
)
@pytest.mark.parametrize("opset", [7, 9, 11, 13])
def test_gemm(left: int, right: int, c: str, opset: int) -> None:
    a, b = _normal(*((5, 4) if left else (4, 5))), _normal(*((6, 5) if right else (5, 6)), seed=1)
    shape = {"row": (6,), "column": (4, 1), "one": (1,), "full": (4, 6)}.get(c, (6,))
    inputs = [a, b] if c == "none" and opset >= 11 else [a, b, _normal(*shape, seed=2)]
    attributes = {"transA": left, "transB": right, "alpha": 0.5 + opset / 10, "beta": 2.0 * (opset != 9)}
    check("Gemm", inputs, attributes, opset=opset)


def test_gemm_6_broadcasts_only_when_told() -> None:
    a, b, c = _normal(2, 3), _normal(3, 4), _normal(4)
    assert_close(run_kernel("Gemm", [a, b, c], {"broadcast": 1}, opset=6)[0], a @ b + c)
    with pytest.raises(ValueError, match="broadcast is 0"):
        run_kernel("Gemm", [a, b, c], opset=6)


def test_gemm_of_integers() -> None:
    a, b = np.array([[1, 2]], np.int32), np.array([[3], [4]], np.int32)
    c = np.array([5], np.int32)
    actual = run_kernel("Gemm", [a, b, c], {"alpha": 2.0, "beta": 3.0}, opset=13)[0]
    assert_close(actual, np.array([[2 * 11 + 15]], np.int32))


def test_gemm_refuses_other_ranks() -> None:
    with pytest.raises(ValueError, match="matrices"):
        run_kernel("Gemm", [_normal(2, 3, 4), _normal(4, 5)], opset=13)


@pytest.mark.parametrize(
    ("a_type", "b_type"), [(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)]
)
@pytest.mark.parametrize("zeros", ["none", "scalar", "vector"])
def test_matmul_integer_is_exact(a_type: type, b_type: type, zeros: str) -> None:
    r = np.random.default_rng(0)
    info_a, info_b = np.iinfo(a_type), np.iinfo(b_type)
    a = r.integers(info_a.min, info_a.max + 1, (2, 5, 300)).astype(a_type)
    b = r.integers(info_b.min, info_b.max + 1, (300, 4)).astype(b_type)
    inputs, wide_a, wide_b = [a, b], a.astype(np.int64), b.astype(np.int64)
    if zeros == "scalar":
        inputs += [np.array(7, a_type), np.array(3, b_type)]
        wide_a, wide_b = wide_a - 7, wide_b - 3
    if zeros == "vector":
        inputs += [np.array([7], a_type), np.arange(4).astype(b_type)]
        wide_a, wide_b = wide_a - 7, wide_b - np.arange(4)
    actual = run_kernel("MatMulInteger", inputs, opset=10)[0]
    assert_close(actual, (wide_a @ wide_b).astype(np.int32))


def test_matmul_integer_zero_point_per_row() -> None:
    a, b = np.array([[10, 11], [20, 21]], np.uint8), np.array([[1], [2]], np.uint8)
    actual = run_kernel("MatMulInteger", [a, b, np.array([10, 20], np.uint8)], opset=10)[0]
    assert_close(actual, np.array([[2], [2]], np.int32))
