"""Reductions, arg-reductions and cumulative ops at every version."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from kernel_oracle import assert_close, check, run_kernel

X = np.random.default_rng(5).uniform(0.5, 2, (2, 3, 4)).astype(np.float32)
ALL = [
    "ReduceSum",
    "ReduceProd",
    "ReduceMean",
    "ReduceMax",
    "ReduceMin",
    "ReduceL1",
    "ReduceL2",
    "ReduceSumSquare",
    "ReduceLogSum",
    "ReduceLogSumExp",
]
FORMULAS: dict[str, Any] = {
    "ReduceSum": lambda x, a: x.sum(a),
    "ReduceProd": lambda x, a: x.prod(a),
    "ReduceMean": lambda x, a: x.mean(a),
    "ReduceMax": lambda x, a: x.max(a),
    "ReduceMin": lambda x, a: x.min(a),
    "ReduceL1": lambda x, a: abs(x).sum(a),
    "ReduceL2": lambda x, a: np.sqrt((x * x).sum(a)),
    "ReduceSumSquare": lambda x, a: (x * x).sum(a),
    "ReduceLogSum": lambda x, a: np.log(x.sum(a)),
    "ReduceLogSumExp": lambda x, a: np.log(np.exp(x).sum(a)),
}


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


@pytest.mark.parametrize("op", ALL)
def test_reduce_at_every_version(op: str) -> None:
    first_with_input = 13 if op == "ReduceSum" else 18
    for opset in (7, 11, 12, 13, 18, 20):
        if opset < first_with_input:
            for attributes in (
                {},
                {"axes": [1]},
                {"axes": [0, 2], "keepdims": 0},
                {"axes": [-1]} if opset > 7 else {},
            ):
                check(op, [X], attributes, opset=opset)
        else:
            check(op, [X], {}, opset=opset)
            check(op, [X, ints(0, -1)], {"keepdims": 0}, opset=opset)
            check(op, [X, ints()], {}, opset=opset)


@pytest.mark.parametrize("op", ALL)
def test_narrow_floats_accumulate_in_float32(op: str) -> None:
    for dtype in (np.float16, ml_dtypes.bfloat16):
        x = X.reshape(4, 6).astype(dtype)
        expected = FORMULAS[op](x.astype(np.float64), 1).astype(dtype)
        assert_close(run_kernel(op, [x, ints(1)], {"keepdims": 0}, opset=18)[0], expected)
    large = np.full(4000, 100, np.float16)  # the sum overflows float16
    if op == "ReduceMean":
        assert run_kernel(op, [large], {"keepdims": 0}, opset=18)[0] == 100


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("ReduceSum", X),
        ("ReduceMax", X),
        ("ReduceL1", abs(X)),
        ("ReduceSumSquare", X * X),
        ("ReduceLogSum", np.log(X)),
        ("ReduceLogSumExp", X),
    ],
)
def test_noop_with_empty_axes(op: str, expected: np.ndarray) -> None:
    for inputs in ([X], [X, ints()]):
        assert_close(run_kernel(op, inputs, {"noop_with_empty_axes": 1}, opset=18)[0], expected)


@pytest.mark.parametrize(
    ("op", "dtype", "expected"),
    [
        ("ReduceSum", np.float32, 0),
        ("ReduceProd", np.float32, 1),
        ("ReduceMean", np.float32, np.nan),
        ("ReduceMax", np.float32, -np.inf),
        ("ReduceMin", np.float32, np.inf),
        ("ReduceMax", np.int32, -(2**31)),
        ("ReduceMin", np.uint8, 255),
        ("ReduceMax", np.bool_, False),
        ("ReduceMin", np.bool_, True),
        ("ReduceLogSum", np.float32, -np.inf),
        ("ReduceLogSumExp", np.float32, -np.inf),
        ("ReduceL2", np.float32, 0),
    ],
)
def test_empty_sets(op: str, dtype: Any, expected: Any) -> None:
    for keep, shape in ((0, (2,)), (1, (2, 1))):
        result = run_kernel(op, [np.zeros((2, 0), dtype), ints(1)], {"keepdims": keep}, opset=20)[0]
        assert_close(result, np.full(shape, expected, dtype))


def test_integers_keep_their_type() -> None:
    x = np.array([[100, 100], [-7, 2]], np.int32)
    for op in (
        "ReduceSum",
        "ReduceProd",
        "ReduceMax",
        "ReduceMin",
        "ReduceL1",
        "ReduceSumSquare",
        "ReduceMean",
    ):
        check(op, [x, ints(1)], {}, opset=18)
    assert run_kernel("ReduceSum", [np.int8([100, 100]), ints(0)], {"keepdims": 0}, opset=18)[0] == -56


def test_log_sum_exp_is_stable() -> None:
    x = np.float32([[1000, 1000], [-np.inf, -np.inf], [np.inf, 0]])
    result = run_kernel("ReduceLogSumExp", [x, ints(1)], {"keepdims": 0}, opset=18)[0]
    assert_close(result, np.float32([1000 + np.log(2), -np.inf, np.inf]))


def test_axes_out_of_range_and_scalars() -> None:
    with pytest.raises(ValueError, match="axis 3 is outside rank 3"):
        run_kernel("ReduceSum", [X, ints(3)], opset=18)
    assert run_kernel("ReduceMax", [np.array(3, np.float32)], opset=18)[0].shape == ()


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
def test_arg(op: str) -> None:
    ties = np.float32([[3, 1, 3, 1], [0, 0, 0, 0]])
    for opset in (7, 11, 12, 13):
        check(op, [ties], {}, opset=opset)
        check(op, [ties], {"axis": 1, "keepdims": 0}, opset=opset)
    check(op, [ties], {"axis": -1, "select_last_index": 1}, opset=12)
    check(op, [ties.astype(np.int32)], {"axis": 1}, opset=13)


@pytest.mark.parametrize("attributes", [{}, {"exclusive": 1}, {"reverse": 1}, {"exclusive": 1, "reverse": 1}])
def test_cumulative(attributes: dict[str, int]) -> None:
    for opset in (11, 14):
        for axis in (0, -1):
            check("CumSum", [X, np.array(axis, np.int64)], attributes, opset=opset)
    x = np.int32([2, 3, 5])
    expected = {(): [2, 6, 30], ("exclusive",): [1, 2, 6], ("reverse",): [30, 15, 5]}
    wanted = expected.get(tuple(sorted(attributes)), [15, 5, 1])
    assert run_kernel("CumProd", [x, np.array(0)], attributes, opset=26)[0].tolist() == wanted
