"""Shapes and data movement: at every version against onnxruntime or NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from kernel_oracle import check, run_kernel

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
IMAGE = np.arange(1 * 8 * 2 * 4, dtype=np.float32).reshape(1, 8, 2, 4)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


LATE = (21, 23, 24, 25)
"""Versions that only widened the element types of ops that move data."""

ROWS: list[tuple[str, list[Any], dict[str, Any], tuple[int, ...]]] = [
    ("Identity", [X], {}, (7, 13, 14, 16, 19, *LATE)),
    ("Shape", [X], {}, (7, 13, 15, 19, *LATE)),
    ("Shape", [X], {"start": 1}, (15, 19)),
    ("Shape", [X], {"start": -2, "end": -1}, (15, 21)),
    ("Shape", [X], {"start": 2, "end": 1}, (15,)),
    ("Shape", [X], {"start": -9, "end": 9}, (15,)),
    ("Size", [X], {}, (7, 13, 19, *LATE)),
    ("Reshape", [X, ints(4, -1)], {}, (7, 13, 14, 19, *LATE)),
    ("Reshape", [X, ints(0, 0, 2, -1)], {}, (7, 14)),
    ("Reshape", [X[:0], ints(0, 12)], {}, (13,)),
    ("Reshape", [X[:, :0], ints(3, 0, 8)], {"allowzero": 1}, (14, 21)),
    ("Flatten", [X], {}, (7, 9, 11, 13, *LATE)),
    ("Flatten", [X], {"axis": 0}, (7, 13)),
    ("Flatten", [X], {"axis": 3}, (9, 13)),
    ("Flatten", [X], {"axis": -1}, (11, 13)),
    ("Squeeze", [X[:1, :, :1]], {"axes": [0]}, (7, 11)),
    ("Squeeze", [X[:1, :, :1]], {"axes": [0, -1]}, (11,)),
    ("Squeeze", [X[:1, :, :1]], {}, (7, 11, 13)),
    ("Squeeze", [X[:1, :, :1], ints(-1)], {}, (13, *LATE)),
    ("Unsqueeze", [X], {"axes": [0, 4]}, (7, 11)),
    ("Unsqueeze", [X], {"axes": [-1, 1]}, (11,)),
    ("Unsqueeze", [X, ints(-1, 0)], {}, (13, *LATE)),
    ("Transpose", [X], {}, (7, 13, *LATE)),
    ("Transpose", [X], {"perm": [1, 2, 0]}, (7, 13)),
    ("Expand", [X[:, :1], ints(3, 4)], {}, (8, 13)),
    ("Expand", [X[:, :1], ints(1, 1, 1)], {}, (13,)),
    ("Expand", [np.float32([3]), ints(0)], {}, (13,)),
    ("Concat", [X, X[:, :1]], {"axis": 1}, (7, 11, 13)),
    ("Concat", [X, X], {"axis": -1}, (11, 13)),
    ("Concat", [X[:0], X], {"axis": 0}, (13,)),
    ("Slice", [X], {"starts": [1, 0], "ends": [9, -1]}, (7,)),
    ("Slice", [X], {"starts": [-3], "ends": [3], "axes": [2]}, (7,)),
    ("Slice", [X, ints(1, 0), ints(3, 2), ints(2, 1)], {}, (10, 11, 13)),
    ("Slice", [X, ints(-1), ints(-9), ints(-1), ints(-1)], {}, (10, 11, 13)),
    ("Slice", [X, ints(9), ints(-9), ints(2), ints(-2)], {}, (11, 13)),
    ("Slice", [X, ints(0), ints(2**62), ints(1), ints(2)], {}, (13,)),
    ("Slice", [X, ints(3), ints(1)], {}, (13,)),
    ("Slice", [X, ints(-9), ints(-9), ints(2), ints(-1)], {}, (13,)),
    ("Slice", [X, ints(2), ints(-(2**62)), ints(1), ints(-1)], {}, (13,)),
    ("Pad", [X], {"pads": [0, 1, 2, 0, 0, 1], "value": 1.5}, (7,)),
    ("Pad", [X], {"pads": [0, 1, 2, 0, 1, 3], "mode": "reflect"}, (7,)),
    ("Pad", [X], {"pads": [1, 1, 2, 1, 1, 3], "mode": "edge"}, (7,)),
    ("Pad", [X, ints(0, 1, 2, 0, 0, 1), np.array(7, np.float32)], {}, (11, 13, 18, 19, *LATE)),
    ("Pad", [X, ints(0, -1, 2, 0, 0, -1)], {}, (11, 13, 18)),
    ("Pad", [X, ints(0, 1, 2, 0, 1, 3)], {"mode": "reflect"}, (11, 13, 18)),
    ("Pad", [X, ints(1, 1, 2, 1, 1, 3)], {"mode": "edge"}, (13, 19)),
    ("Pad", [X, ints(1, 0, 2, 1, 0, 3)], {"mode": "wrap"}, (19, 21)),
    ("Pad", [X, ints(1, 2), None, ints(-1)], {}, (18, 19)),
    ("Tile", [X, ints(1, 2, 3)], {}, (7, 13)),
    ("DepthToSpace", [IMAGE], {"blocksize": 2}, (7, 11, 13)),
    ("DepthToSpace", [IMAGE], {"blocksize": 2, "mode": "CRD"}, (11, 13)),
    ("SpaceToDepth", [IMAGE], {"blocksize": 2}, (7, 13)),
    ("Trilu", [X], {}, (14,)),
    ("Trilu", [X, np.array(-1, np.int64)], {"upper": 0}, (14,)),
    ("Trilu", [X, np.array(2, np.int64)], {}, (14,)),
    ("ReverseSequence", [X[0], ints(1, 3, 2, 2)], {"time_axis": 0, "batch_axis": 1}, (10,)),
    ("ReverseSequence", [X, ints(3, 2)], {"time_axis": 1, "batch_axis": 0}, (10,)),
    ("CenterCropPad", [X, ints(5, 2)], {"axes": [1, 2]}, (18,)),
]


@pytest.mark.parametrize(("op", "inputs", "attributes", "opsets"), ROWS)
def test_movement(op: str, inputs: list[Any], attributes: dict[str, Any], opsets: tuple[int, ...]) -> None:
    for opset in opsets:
        check(op, inputs, attributes, opset=opset)


@pytest.mark.parametrize(
    ("inputs", "attributes", "outputs", "opsets"),
    [
        ([X], {"axis": 2}, 2, (7, 11, 13)),
        ([X], {"axis": 2, "split": [1, 3]}, 2, (7, 11)),
        ([X, ints(3, 0, 1)], {"axis": -1}, 3, (13, 18)),
        ([X], {"axis": 1, "num_outputs": 2}, 2, (18,)),
        ([X], {"axis": 2, "num_outputs": 3}, 3, (18,)),
    ],
)
def test_split(inputs: list[Any], attributes: dict[str, Any], outputs: int, opsets: tuple[int, ...]) -> None:
    for opset in opsets:
        check("Split", inputs, attributes, opset=opset, outputs=outputs)


def test_versions_before_seven() -> None:
    assert run_kernel("Reshape", [X], {"shape": [0, -1]}, opset=1)[0].shape == (2, 12)
    joined = run_kernel("Concat", [X, X], opset=1)[0]
    assert joined.shape == (2, 6, 4)  # axis 1 is version 1's default
    tiled = run_kernel("Tile", [X, ints(2), ints(1)], opset=1)[0]
    np.testing.assert_array_equal(tiled, np.tile(X, (1, 2, 1)))
    padded = run_kernel("Pad", [X[0]], {"paddings": [1, 0, 0, 1]}, opset=1)[0]
    np.testing.assert_array_equal(padded, np.pad(X[0], ((1, 0), (0, 1))))
    first, second = run_kernel("Split", [X, ints(1, 2)], {"axis": 1}, opset=1, outputs=2)
    assert (first.shape, second.shape) == ((2, 1, 4), (2, 2, 4))


def test_space_to_depth_column_first() -> None:
    back = run_kernel("DepthToSpace", [IMAGE], {"blocksize": 2, "mode": "CRD"}, opset=28)[0]
    again = run_kernel("SpaceToDepth", [back], {"blocksize": 2, "mode": "CRD"}, opset=28)[0]
    np.testing.assert_array_equal(again, IMAGE)


def test_reshape_of_nothing() -> None:
    assert run_kernel("Reshape", [np.zeros((0, 3, 4)), ints(0, 0, -1)], opset=13)[0].shape == (0, 3, 4)
    assert run_kernel("Reshape", [np.zeros((0, 3)), ints(-1)], opset=13)[0].shape == (0,)


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "message"),
    [
        ("Reshape", [X, ints(5, -1)], {}, "reshape"),
        ("Reshape", [X, ints(1, 1, 1, 0)], {}, "copies axis 3"),
        ("Split", [X, ints(1)], {"axis": 2}, "do not add up"),
        ("DepthToSpace", [np.ones((0, 5, 2, 2), np.float32)], {"blocksize": 2}, "5 channels are not made of"),
        ("Split", [X, ints(1, 1)], {"axis": 2}, "2 lengths for 1 outputs"),
        ("Pad", [X, ints(0, 0)], {}, "2 amounts for 3 axes"),
        ("Pad", [X, ints(0, 0, 0, 0, 0, 0)], {"mode": "spin"}, "unknown mode"),
        ("Pad", [X[:0], ints(1, 0, 0, 0, 0, 0)], {"mode": "edge"}, "nothing to repeat"),
        ("Tile", [X, ints(1, 2)], {}, "2 repeats for rank 3"),
        ("Expand", [X, ints(5)], {}, "mismatch"),
    ],
)
def test_refusals(op: str, inputs: list[Any], attributes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run_kernel(op, inputs, attributes, opset=13)


@pytest.mark.parametrize(
    "dtype", [ml_dtypes.int4, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, object, np.complex64]
)
def test_every_dtype_moves(dtype: Any) -> None:
    x = np.array([["a", "b"], ["c", "d"]], object) if dtype is object else np.eye(2).astype(dtype)
    for op, inputs, attributes in (
        ("Transpose", [x], {}),
        ("Concat", [x, x], {"axis": 0}),
        ("Tile", [x, ints(2, 1)], {}),
        ("Pad", [x, ints(1, 0, 0, 0)], {}),
        ("Gather", [x, ints(-1)], {}),
        ("ScatterElements", [x, ints(0).reshape(1, 1), x[1:, 1:]], {}),
    ):
        assert run_kernel(op, inputs, attributes, opset=21)[0].dtype == x.dtype


def test_bit_cast() -> None:
    assert run_kernel("BitCast", [np.float32([1])], {"to": 12}, opset=26)[0].tolist() == [0x3F800000]
    with pytest.raises(ValueError, match="differ in width"):
        run_kernel("BitCast", [np.float32([1])], {"to": 7}, opset=26)
