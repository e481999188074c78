"""Gathers, scatters, searches and made-up tensors against onnxruntime or NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from kernel_oracle import assert_close, check, run_kernel

X = np.random.default_rng(3).standard_normal((4, 3, 5)).astype(np.float32)
TIES = np.float32([[3, 1, 3, 2], [0, 0, -1, 0]])


def ints(*values: Any) -> np.ndarray:
    return np.array(values, np.int64)


ROWS: list[tuple[str, list[Any], dict[str, Any], int, tuple[int, ...]]] = [
    ("Gather", [X, ints(0, -1, 2)], {}, 1, (11, 13)),
    ("Gather", [X, ints(0, 2)], {"axis": 1}, 1, (7, 11, 13)),
    ("Gather", [X, np.array(1, np.int32)], {"axis": 2}, 1, (7, 13)),
    ("Gather", [X, ints()], {"axis": 2}, 1, (13,)),
    ("GatherElements", [X, ints([[0, 1], [2, -1]], [[3, 0], [1, 1]])], {}, 1, (11, 13)),
    ("GatherElements", [X, np.zeros((4, 2, 5), np.int64)], {"axis": -1}, 1, (11, 13)),
    ("GatherND", [X, ints([0, 1], [-1, 2])], {}, 1, (11, 12, 13)),
    ("GatherND", [X, ints([0, 1, 4])], {}, 1, (11, 13)),
    ("GatherND", [X, ints([1], [0], [2], [1])], {"batch_dims": 1}, 1, (12, 13)),
    ("GatherND", [X, np.zeros((4, 3, 2, 1), np.int64)], {"batch_dims": 2}, 1, (12, 13)),
    ("Scatter", [X, ints([[0, 1]]), -np.ones((1, 1, 2), np.float32)], {"axis": 1}, 1, (9, 10)),
    (
        "ScatterElements",
        [X, ints([[0, 1]]), -np.ones((1, 1, 2), np.float32)],
        {"axis": 1},
        1,
        (11, 13, 16, 18),
    ),
    (
        "ScatterElements",
        [X, ints([[1, -1]]), np.ones((1, 1, 2), np.float32)],
        {"reduction": "add"},
        1,
        (16, 18),
    ),
    (
        "ScatterElements",
        [X, ints([[1, 1]]), 2 * np.ones((1, 1, 2), np.float32)],
        {"reduction": "mul"},
        1,
        (16,),
    ),
    ("ScatterElements", [X, ints([[1, 1]]), np.zeros((1, 1, 2), np.float32)], {"reduction": "max"}, 1, (18,)),
    ("ScatterElements", [X, ints([[1, 1]]), np.zeros((1, 1, 2), np.float32)], {"reduction": "min"}, 1, (18,)),
    ("ScatterND", [X, ints([1], [3]), np.zeros((2, 3, 5), np.float32)], {}, 1, (11, 13, 16, 18)),
    ("ScatterND", [X, ints([1, 0], [1, 0]), np.ones((2, 5), np.float32)], {"reduction": "add"}, 1, (16, 18)),
    ("ScatterND", [X, ints([1, 0], [1, 0]), np.ones((2, 5), np.float32)], {"reduction": "max"}, 1, (18,)),
    ("NonZero", [TIES], {}, 1, (9, 13)),
    ("Compress", [X, np.array([True, False, True])], {"axis": 0}, 1, (9, 11)),
    ("Compress", [X, np.array([False, True, True])], {"axis": -1}, 1, (11,)),
    ("Compress", [X, np.array([False, True, True])], {}, 1, (9, 11)),
    ("Unique", [TIES], {}, 4, (11,)),
    ("Unique", [TIES], {"sorted": 0}, 4, (11,)),
    ("Unique", [np.float32([[1, 0], [1, 0], [0, 2]])], {"axis": 0}, 4, (11,)),
    ("Unique", [np.float32([[1, 1], [0, 0]])], {"axis": 1, "sorted": 0}, 4, (11,)),
    ("TopK", [TIES], {"k": 3}, 2, (7,)),
    ("TopK", [TIES, ints(3)], {}, 2, (10, 11)),
    ("TopK", [TIES, ints(2)], {"largest": 0}, 2, (11,)),
    ("TopK", [X, ints(2)], {"axis": 1}, 2, (11,)),
    ("TopK", [X, ints(0)], {"axis": 1}, 2, (11,)),
    ("OneHot", [ints(0, 2, -1, 9), ints(4), np.float32([0, 5])], {}, 1, (9, 11)),
    ("OneHot", [ints([0, 2]), np.array(3, np.int64), ints(1, 7)], {"axis": 0}, 1, (9, 11)),
    ("OneHot", [ints([0, 2]), np.array(3, np.int64), ints(1, 7)], {"axis": -2}, 1, (11,)),
    ("EyeLike", [X[0]], {}, 1, (9,)),
    ("EyeLike", [X[0]], {"k": -1, "dtype": 7}, 1, (9,)),
    ("Range", [np.array(2, np.int64), np.array(11, np.int64), np.array(3, np.int64)], {}, 1, (11,)),
    ("Range", [np.array(5, np.float32), np.array(0, np.float32), np.array(-1.5, np.float32)], {}, 1, (11,)),
    ("Range", [np.array(5, np.int32), np.array(9, np.int32), np.array(-1, np.int32)], {}, 1, (11,)),
    ("ConstantOfShape", [ints(2, 0, 3)], {}, 1, (9,)),
    ("Einsum", [X, X], {"equation": "bij, bkj -> bik"}, 1, (12,)),
    ("Einsum", [X], {"equation": "...ij->...ji"}, 1, (12,)),
    ("Einsum", [X, X[0]], {"equation": "bij,ij->b"}, 1, (12,)),
    ("Einsum", [X[0, :, :3]], {"equation": "ii"}, 1, (12,)),
]


@pytest.mark.parametrize(("op", "inputs", "attributes", "outputs", "opsets"), ROWS)
def test_indexing(
    op: str, inputs: list[Any], attributes: dict[str, Any], outputs: int, opsets: tuple[int, ...]
) -> None:
    for opset in opsets:
        check(op, inputs, attributes, opset=opset, outputs=outputs)


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "message"),
    [
        ("Gather", [X, ints(4)], {}, "index 4 is outside an axis of 4"),
        ("Gather", [X, ints(-5)], {}, "index -5 is outside"),
        ("GatherElements", [X, np.full((1, 1, 1), 9)], {}, "index 9 is outside"),
        ("GatherND", [X, ints([0, 3])], {}, "index 3 is outside an axis of 3"),
        ("ScatterElements", [X, np.full((1, 1, 1), 9), X[:1, :1, :1]], {}, "index 9"),
        ("ScatterND", [X, ints([9]), X[:1]], {}, "index 9"),
        ("ScatterND", [X, ints([0]), X[:1]], {"reduction": "xor"}, "unknown reduction"),
        ("TopK", [X, ints(9)], {}, "k = 9 on an axis of 5"),
        ("Range", [np.array(0), np.array(3), np.array(0)], {}, "delta is zero"),
    ],
)
def test_refusals(op: str, inputs: list[Any], attributes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run_kernel(op, inputs, attributes, opset=18)


def test_scatter_leaves_its_input_alone_and_rounds_once() -> None:
    half = np.full((1, 2), 2048, np.float16)
    ones = np.ones((1, 2), np.float16)
    place = np.zeros((1, 2), np.int64)
    twice = run_kernel(
        "ScatterND", [half, ints([0], [0]), np.concatenate([ones, ones])], {"reduction": "add"}, opset=18
    )
    assert twice[0].tolist() == [[2050, 2050]]  # 2048 + 1 rounds back to 2048 in float16
    written = run_kernel("ScatterElements", [half, place, ones], {}, opset=18)[0]
    assert written.tolist() == [[1, 1]]
    assert half.tolist() == [[2048, 2048]]


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("k", [0, 1, 7, 200])
def test_top_k_of_many_equals(k: int, axis: int, largest: int) -> None:
    x = np.random.default_rng(k).integers(0, 40, (3000, 5)).astype(np.float32)
    x = x if axis == 0 else np.ascontiguousarray(x.T)
    check("TopK", [x, ints(k)], {"axis": axis, "largest": largest}, opset=11, outputs=2)
    check("TopK", [x.astype(np.int64), ints(k)], {"axis": axis, "largest": largest}, opset=11, outputs=2)


@pytest.mark.parametrize("reduction", ["add", "mul", "max", "min"])
def test_scatter_slices_and_repeated_places(reduction: str) -> None:
    updates = np.random.default_rng(1).standard_normal((2, 3, 3, 5)).astype(np.float32)
    places = ints([[0], [1], [0]], [[3], [0], [-1]])
    check("ScatterND", [X, places, updates], {"reduction": reduction}, opset=18)
    pairs = ints([[0, 1], [1, 1]], [[0, 1], [0, 1]])
    check("ScatterND", [X, pairs, updates[:, :2, 0]], {"reduction": reduction}, opset=18)


def test_non_zero_of_a_scalar() -> None:
    assert run_kernel("NonZero", [np.array(3.0)], opset=13)[0].shape == (0, 1)
    assert run_kernel("NonZero", [np.array(0.0)], opset=13)[0].shape == (0, 0)


def test_unique_of_strings_and_top_k_of_bfloat16() -> None:
    found, first, inverse, counts = run_kernel(
        "Unique", [np.array(["b", "a", "b"], object)], opset=11, outputs=4
    )
    assert (found.tolist(), first.tolist(), inverse.tolist(), counts.tolist()) == (
        ["a", "b"],
        [1, 0],
        [1, 0, 1],
        [1, 2],
    )
    values, index = run_kernel("TopK", [TIES.astype(ml_dtypes.bfloat16), ints(2)], opset=24, outputs=2)
    assert values.dtype == ml_dtypes.bfloat16
    assert index.tolist() == [[0, 2], [0, 1]]


@pytest.mark.parametrize("opset", [9, 20, 21, 23, 24, 25])
def test_made_of_a_shape(opset: int) -> None:
    check("ConstantOfShape", [ints(2, 3)], {}, opset=opset)
    assert_close(run_kernel("Constant", [], {"value": X}, opset=opset)[0], X)
    wanted = run_kernel("EyeLike", [X[0]], {"k": 1}, opset=opset)[0]
    assert_close(wanted, np.eye(3, 5, 1, dtype=np.float32))


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "opset"),
    [
        ("Compress", [np.array([False, True, True])], {"axis": 1}, 11),
        ("Einsum", [], {"equation": "ijk->kji"}, 12),
        ("ReverseSequence", [ints(1, 2, 4)], {}, 10),
        ("Unique", [], {}, 11),
        ("ReduceLogSum", [ints(1)], {}, 18),
        ("ReduceLogSumExp", [ints(1)], {}, 18),
    ],
)
def test_version_28_means_the_same(
    dtype: Any, op: str, inputs: list[Any], attributes: Any, opset: int
) -> None:
    x = abs(X).astype(dtype)
    outputs = 4 if op == "Unique" else 1
    wide = [x.astype(np.float32), *inputs]
    expected = run_kernel(op, wide, attributes, opset=opset, outputs=outputs)
    results = run_kernel(op, [x, *inputs], attributes, opset=28, outputs=outputs)
    assert_close(results[0], expected[0].astype(dtype))
    for result, other in zip(results[1:], expected[1:], strict=True):
        np.testing.assert_array_equal(result, other)


def test_constants() -> None:
    assert_close(run_kernel("Constant", [], {"value": X}, opset=13)[0], X)
    assert_close(run_kernel("Constant", [], {"value_float": 1.5}, opset=13)[0], np.array(1.5, np.float32))
    assert_close(run_kernel("Constant", [], {"value_ints": [1, 2]}, opset=13)[0], ints(1, 2))
    assert run_kernel("Constant", [], {"value_strings": ["a"]}, opset=13)[0].tolist() == ["a"]
    for opset in (11, 12):
        assert_close(run_kernel("Constant", [], {"value": X}, opset=opset)[0], X)
    filled = run_kernel("ConstantOfShape", [ints(2)], {"value": np.array([3], np.int8)}, opset=9)[0]
    assert_close(filled, np.array([3, 3], np.int8))


def test_scatter_lives_on_under_its_old_name() -> None:
    written = run_kernel("Scatter", [X[0], np.zeros((1, 5), np.int64), X[1, :1]], {}, opset=11)[0]
    np.testing.assert_array_equal(written, np.concatenate([X[1, :1], X[0, 1:]]))


def test_one_hot_of_bfloat16() -> None:
    values = np.array([0, 2], ml_dtypes.bfloat16)
    hot = run_kernel("OneHot", [ints(1, -1), ints(3), values], {}, opset=28)[0]
    assert hot.astype(float).tolist() == [[0, 2, 0], [0, 0, 2]]


def test_tensor_scatter() -> None:
    cache, update = np.zeros((2, 4, 1), np.float32), np.float32([[[1], [2]], [[3], [4]]])
    written = run_kernel("TensorScatter", [cache, update, ints(1, 2)], {}, opset=24)[0]
    assert written[..., 0].tolist() == [[0, 1, 2, 0], [0, 0, 3, 4]]
    around = run_kernel("TensorScatter", [cache, update, ints(3, 0)], {"mode": "circular"}, opset=24)[0]
    assert around[..., 0].tolist() == [[2, 0, 0, 1], [3, 4, 0, 0]]
