"""Elementwise ops, comparison, selection: at every version against onnxruntime or a formula."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from kernel_oracle import assert_close, check, run_kernel

X = np.array([[-2.5, -1.5, -0.5, 0.0, 0.5], [1.5, 2.5, 7.0, -8.25, 3.0]], np.float32)
Y = np.array([[2.0], [-0.75]], np.float32)
UNIT = np.linspace(-0.95, 0.95, 11, dtype=np.float32)
I = np.array([[7, -7, 5], [-5, 0, 127]], np.int8)  # noqa: E741
J = np.array([[2, 2, -3], [-3, 4, -1]], np.int8)


@pytest.mark.parametrize("opset", [7, 13, 14])
@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div"])
def test_arithmetic(op: str, opset: int) -> None:
    check(op, [X, Y], opset=opset)
    check(op, [X.astype(np.float64), Y.astype(np.float64)], opset=opset)
    check(op, [I.astype(np.int32), J.astype(np.int32)], opset=opset)


@pytest.mark.parametrize("version", [1, 6])
@pytest.mark.parametrize(
    ("b", "attributes", "as_numpy"),
    [
        (np.float32([10, 20, 30]), {"broadcast": 1, "axis": 1}, np.float32([[[10], [20], [30]]])),
        (np.float32([10, 20, 30, 40]), {"broadcast": 1}, np.float32([10, 20, 30, 40])),
        (np.float32([[10], [20]]).reshape(2), {"broadcast": 1, "axis": 0}, np.float32([[[10]], [[20]]])),
    ],
)
def test_legacy_broadcast(version: int, b: Any, attributes: dict[str, int], as_numpy: Any) -> None:
    a = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    assert_close(run_kernel("Add", [a, b], attributes, opset=version)[0], a + as_numpy)
    assert_close(run_kernel("Pow", [a, b * 0 + 2], attributes, opset=1)[0], a * a)
    expected = a < as_numpy
    np.testing.assert_array_equal(run_kernel("Less", [a, b], attributes, opset=1)[0], expected)


def test_legacy_shapes_must_agree_without_broadcast() -> None:
    with pytest.raises(ValueError, match="broadcast is not set"):
        run_kernel("Add", [X, Y], opset=6)


def test_integer_division_truncates_and_wraps() -> None:
    assert run_kernel("Div", [I, J], opset=14)[0].tolist() == [[3, -3, -1], [1, 0, -127]]
    low = np.array([-128], np.int8)
    assert run_kernel("Div", [low, np.array([-1], np.int8)], opset=14)[0].tolist() == [-128]
    assert run_kernel("Mul", [low, low], opset=14)[0].tolist() == [0]
    assert run_kernel("Add", [np.uint8([250]), np.uint8([10])], opset=14)[0].tolist() == [4]
    with pytest.raises(ValueError, match="division by zero"):
        run_kernel("Div", [I, I * 0], opset=14)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("op", ["Add", "Mul", "Div", "Sub", "Exp", "Sqrt", "Reciprocal", "Pow"])
def test_narrow_floats_round_once(op: str, dtype: Any) -> None:
    a, b = abs(X).astype(dtype) + np.ones((), dtype), abs(Y).astype(dtype)
    formula: dict[str, Callable[..., Any]] = {
        "Add": np.add,
        "Mul": np.multiply,
        "Div": np.divide,
        "Sub": np.subtract,
        "Exp": np.exp,
        "Sqrt": np.sqrt,
        "Reciprocal": np.reciprocal,
        "Pow": np.power,
    }
    inputs = [a] if op in ("Exp", "Sqrt", "Reciprocal") else [a, b]
    expected = formula[op](*(v.astype(np.float64) for v in inputs)).astype(dtype)
    assert_close(run_kernel(op, inputs, opset=15)[0], expected)


@pytest.mark.parametrize(
    ("op", "x", "opsets"),
    [
        ("Abs", X, (6, 13)),
        ("Neg", X, (6, 13)),
        ("Ceil", X, (6, 13)),
        ("Floor", X, (6, 13)),
        ("Round", X, (11, 22)),
        ("Sign", X, (9, 13)),
        ("Sqrt", abs(X), (6, 13)),
        ("Reciprocal", X + 10, (6, 13)),
        ("Exp", X, (6, 13)),
        ("Log", abs(X) + 0.1, (6, 13)),
        ("Sin", X, (7, 22)),
        ("Cos", X, (7, 22)),
        ("Tan", UNIT, (7, 22)),
        ("Asin", UNIT, (7, 22)),
        ("Acos", UNIT, (7, 22)),
        ("Atan", X, (7, 22)),
        ("Sinh", X, (9, 22)),
        ("Cosh", X, (9, 22)),
        ("Asinh", X, (9, 22)),
        ("Acosh", abs(X) + 1, (9, 22)),
        ("Atanh", UNIT, (9, 22)),
        ("IsNaN", np.float32([1, np.nan, np.inf]), (9, 13, 20)),
        ("IsInf", np.float32([1, np.nan, np.inf, -np.inf]), (10, 20)),
        ("Not", X > 0, (7,)),
        ("BitwiseNot", I, (18,)),
    ],
)
def test_unary(op: str, x: np.ndarray, opsets: tuple[int, ...]) -> None:
    for opset in opsets:
        check(op, [x], opset=max(opset, 7))


@pytest.mark.parametrize(
    ("op", "opsets"),
    [
        ("Equal", (7, 11, 13, 19)),
        ("Less", (7, 9, 13)),
        ("Greater", (7, 9, 13)),
        ("LessOrEqual", (12, 16)),
        ("GreaterOrEqual", (12, 16)),
        ("And", (7,)),
        ("Or", (7,)),
        ("Xor", (7,)),
    ],
)
def test_predicates(op: str, opsets: tuple[int, ...]) -> None:
    logic = op in ("And", "Or", "Xor")
    a, b = (X > 0, Y > 0) if logic else (np.float32([[1, 2, 3]]), np.float32([[2], [1]]))
    for opset in opsets:
        old = op == "Equal" and opset < 11
        check(op, [a.astype(np.int32), b.astype(np.int32)] if old else [a, b], opset=opset)


def test_equal_of_strings() -> None:
    a, b = np.array(["a", "b"], object), np.array(["a", "c"], object)
    result = run_kernel("Equal", [a, b], opset=19)[0]
    assert result.dtype == bool
    assert result.tolist() == [True, False]


@pytest.mark.parametrize("attributes", [{"detect_positive": 0}, {"detect_negative": 0}])
def test_is_inf_of_one_sign(attributes: dict[str, int]) -> None:
    check("IsInf", [np.float32([1, np.inf, -np.inf])], attributes, opset=10)


@pytest.mark.parametrize("opset", [9, 16])
def test_where(opset: int) -> None:
    check("Where", [np.array([[True], [False]]), X, np.array(9, np.float32)], opset=opset)
    words = np.array(["a", "b"], object)
    picked = run_kernel("Where", [np.array([True, False]), words, words[::-1]], opset=opset)[0]
    assert picked.tolist() == ["a", "a"]


@pytest.mark.parametrize("opset", [10, 13])
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8])
def test_mod(opset: int, dtype: Any) -> None:
    a, b = (I, J) if dtype != np.uint8 else (abs(I), abs(J))
    check("Mod", [a.astype(dtype), b.astype(dtype)], opset=opset)
    check("Mod", [a.astype(dtype), b.astype(dtype)], {"fmod": 1}, opset=opset)


def test_mod_of_floats() -> None:
    check("Mod", [X, np.array(1.25, np.float32)], {"fmod": 1}, opset=13)
    floored = run_kernel("Mod", [np.float32([5, -5, 5, -0.0]), np.float32([3, 3, -np.inf, 2])], opset=28)[0]
    assert floored.tolist() == [2, 1, -np.inf, 0]
    with pytest.raises(ValueError, match="modulo by zero"):
        run_kernel("Mod", [I, I * 0], opset=13)


@pytest.mark.parametrize("opset", [7, 12, 13, 15])
def test_pow(opset: int) -> None:
    check("Pow", [abs(X), Y], opset=opset)
    if opset >= 12:
        check("Pow", [abs(X), np.int64([2])], opset=opset)
        check("Pow", [np.int32([2, 3]), np.float32([3, 2])], opset=opset)
        check("Pow", [np.int64([2, -3, 5]), np.int32([3, 3, 0])], opset=opset)


def test_pow_of_integers_to_negative_powers() -> None:
    base, exponent = np.int64([2, 1, -1, -1]), np.int64([-1, -5, -2, -3])
    assert run_kernel("Pow", [base, exponent], opset=15)[0].tolist() == [0, 1, 1, -1]


@pytest.mark.parametrize("opset", [8, 12, 13])
@pytest.mark.parametrize("op", ["Min", "Max", "Sum", "Mean"])
def test_variadic(op: str, opset: int) -> None:
    check(op, [X], opset=opset)
    check(op, [X, Y, np.array(0.25, np.float32)], opset=opset)


def test_min_max_of_integers_and_narrow() -> None:
    check("Max", [I, J], opset=13)
    check("Min", [I.astype(np.int64), J.astype(np.int64)], opset=13)
    half = X.astype(np.float16)
    assert_close(
        run_kernel("Sum", [half, half, half], opset=13)[0], (half.astype(np.float32) * 3).astype(np.float16)
    )


@pytest.mark.parametrize("attributes", [{"min": -1.0, "max": 2.0}, {"min": 0.0}, {}])
def test_clip_by_attributes(attributes: dict[str, float]) -> None:
    check("Clip", [X], attributes, opset=7)
    lowest = attributes.get("min", -np.inf)
    expected = np.clip(X, np.float32(lowest), np.float32(attributes.get("max", np.inf)))
    assert_close(run_kernel("Clip", [X], attributes, opset=1)[0], expected)


@pytest.mark.parametrize("opset", [11, 12, 13])
def test_clip_by_inputs(opset: int) -> None:
    check("Clip", [X, np.array(-1, np.float32), np.array(2, np.float32)], opset=opset)
    check("Clip", [X, None, np.array(2, np.float32)], opset=opset)
    check("Clip", [X, np.array(-1, np.float32)], opset=opset)
    if opset > 11:
        check("Clip", [I, np.array(-3, np.int8), np.array(4, np.int8)], opset=opset)
    crossed = run_kernel("Clip", [X, np.array(3, np.float32), np.array(1, np.float32)], opset=opset)[0]
    assert np.all(crossed == 1)


def test_bit_shift() -> None:
    x, amount = np.uint8([16, 255, 1, 3]), np.uint8([1, 4, 7, 0])
    for direction in ("LEFT", "RIGHT"):
        check("BitShift", [x, amount], {"direction": direction}, opset=11)
    wide = run_kernel("BitShift", [x, np.uint8([8, 9, 200, 1])], {"direction": "LEFT"}, opset=11)[0]
    assert wide.tolist() == [0, 0, 0, 6]
    signed = np.int8([-8, 8, -8, 8])
    right = run_kernel("BitShift", [signed, np.int8([1, 1, 8, -1])], {"direction": "RIGHT"}, opset=28)[0]
    assert right.tolist() == [-4, 4, -1, 0]


@pytest.mark.parametrize("op", ["BitwiseAnd", "BitwiseOr", "BitwiseXor"])
def test_bitwise(op: str) -> None:
    check(op, [I, J], opset=18)
