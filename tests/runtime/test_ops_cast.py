"""Cast between all element types."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from kernel_oracle import assert_close, check, run_kernel

from optimizer.ir import DType
from optimizer.runtime.kernels.cast import convert

X = np.float32([[0, 1.5, -1.5], [3.25, 100, -7]])
NUMBERS = [
    DType.FLOAT,
    DType.DOUBLE,
    DType.FLOAT16,
    DType.INT32,
    DType.INT64,
    DType.INT8,
    DType.BOOL,
    DType.INT16,
]


@pytest.mark.parametrize("source", NUMBERS)
@pytest.mark.parametrize("target", NUMBERS)
def test_numbers(source: DType, target: DType) -> None:
    x = X.astype(source.numpy)
    for opset in (7, 9, 13, 19, 21, 23, 24, 25):
        check("Cast", [x], {"to": int(target)}, opset=opset)


@pytest.mark.parametrize("source", [t for t in DType if t.is_float or t.is_integer])
@pytest.mark.parametrize("target", [t for t in DType if t.is_float or t.is_integer])
def test_every_pair_keeps_small_values(source: DType, target: DType) -> None:
    exact = {DType.FLOAT8E8M0} & {source, target}
    values = [1.0, 1.0] if exact or {DType.INT2, DType.UINT2} & {source, target} else [0.0, 1.0]
    x = np.array(values).astype(source.numpy)
    assert_close(convert(x, target.numpy), np.array(values).astype(target.numpy))


@pytest.mark.parametrize(
    ("target", "values", "saturated", "unsaturated"),
    [
        (DType.FLOAT8E4M3FN, [1000, -1000, np.inf, np.nan], [448, -448, 448, np.nan], [np.nan] * 4),
        (DType.FLOAT8E4M3FNUZ, [1000, -1000, np.inf, np.nan], [240, -240, 240, np.nan], [np.nan] * 4),
        (
            DType.FLOAT8E5M2,
            [1e6, -1e6, np.inf, np.nan],
            [57344, -57344, 57344, np.nan],
            [np.inf, -np.inf, np.inf, np.nan],
        ),
        (DType.FLOAT8E5M2FNUZ, [1e6, -1e6, np.inf, np.nan], [57344, -57344, 57344, np.nan], [np.nan] * 4),
    ],
)
def test_fp8(target: DType, values: Any, saturated: Any, unsaturated: Any) -> None:
    x = np.float32(values)
    for flag, expected in ((1, saturated), (0, unsaturated)):
        result = run_kernel("Cast", [x], {"to": int(target), "saturate": flag}, opset=19)[0]
        assert result.dtype == target.numpy
        np.testing.assert_array_equal(result.astype(np.float32), np.float32(expected))


def test_power_of_two_type_rounds_as_asked() -> None:
    x = np.float32([1, 1.2, 1.5, 1.7, 4])
    expected = {"up": [1, 2, 2, 2, 4], "down": [1, 1, 1, 1, 4], "nearest": [1, 1, 2, 2, 4]}
    for mode, wanted in expected.items():
        result = run_kernel("Cast", [x], {"to": int(DType.FLOAT8E8M0), "round_mode": mode}, opset=24)[0]
        assert result.astype(np.float32).tolist() == wanted


def test_narrow_integers_keep_their_low_bits() -> None:
    x = np.int32([7, 8, -9, 17])
    assert convert(x, np.dtype(ml_dtypes.int4)).astype(int).tolist() == [7, -8, 7, 1]
    assert convert(x, np.dtype(ml_dtypes.uint4)).astype(int).tolist() == [7, 8, 7, 1]
    assert convert(x, np.dtype(ml_dtypes.int2)).astype(int).tolist() == [-1, 0, -1, 1]
    assert convert(np.float32([-2.7]), np.dtype(ml_dtypes.int4)).astype(int).tolist() == [-2]


def test_strings() -> None:
    texts = np.array(["1.5", " -2e3", "NaN", "-INF", "7"], object)
    np.testing.assert_array_equal(
        convert(texts, np.dtype(np.float32)), np.float32([1.5, -2000, np.nan, -np.inf, 7])
    )
    assert convert(np.array(["7", "-3"], object), np.dtype(np.int64)).tolist() == [7, -3]
    assert convert(np.array(["9223372036854775807"], object), np.dtype(np.int64)).tolist() == [2**63 - 1]
    spelled = convert(np.float32([1.5, np.nan, np.inf, -np.inf, 0.1]), np.dtype(object))
    assert spelled.tolist() == ["1.5", "NaN", "INF", "-INF", "0.1"]
    assert convert(np.int64([[3]]), np.dtype(object)).tolist() == [["3"]]
    with pytest.raises(ValueError, match="could not convert"):
        convert(np.array(["seven"], object), np.dtype(np.float32))


def test_cast_by_name_and_like() -> None:
    assert_close(run_kernel("Cast", [X], {"to": "INT32"}, opset=1)[0], X.astype(np.int32))
    assert_close(run_kernel("Cast", [X], {"to": 10}, opset=28)[0], X.astype(np.float16))
    for opset in (15, 19, 21, 23, 24, 25):
        like = run_kernel("CastLike", [X, np.zeros(1, np.float16)], opset=opset)[0]
        assert_close(like, X.astype(np.float16))
