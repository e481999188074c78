"""The pools against onnxruntime over seeded combinations."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_oracle import assert_close, check, run_kernel

Attributes = dict[str, object]


def _window(seed: int, *, ceil: bool, dilations: bool) -> tuple[np.ndarray, Attributes]:
    r = np.random.default_rng(seed)
    n = int(r.choice([1, 2, 2, 2, 3]))
    kernel = [int(k) for k in r.integers(2, 5, n)]
    attributes: Attributes = {"kernel_shape": kernel, "strides": [int(s) for s in r.integers(1, 5, n)]}
    mode = str(r.choice(["NOTSET", "NOTSET", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"]))
    if mode == "NOTSET":
        attributes["pads"] = [int(r.integers(0, kernel[i % n])) for i in range(2 * n)]
        if ceil:
            attributes["ceil_mode"] = int(r.random() < 0.6)
        if dilations and r.random() < 0.5:
            attributes["dilations"] = [int(d) for d in r.integers(1, 3, n)]
    else:
        attributes["auto_pad"] = mode
    size = [int(d) for d in r.integers(9, 14, n)]
    return r.standard_normal((2, 3, *size)).astype(np.float32), attributes


@pytest.mark.parametrize("opset", [8, 10, 12, 22])
@pytest.mark.parametrize("seed", range(25))
def test_max_pool(seed: int, opset: int) -> None:
    x, attributes = _window(seed, ceil=opset >= 10, dilations=opset >= 10)
    attributes["storage_order"] = seed % 2
    check("MaxPool", [x], attributes, opset=opset, outputs=1 + (seed % 3 > 0))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.float64])
def test_max_pool_dtypes(dtype: type) -> None:
    x = np.random.default_rng(0).integers(0, 100, (1, 2, 9, 9)).astype(dtype) - dtype(0)
    check("MaxPool", [x], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]}, opset=12)


def test_max_pool_of_float16_and_nan() -> None:
    x = np.random.default_rng(0).standard_normal((1, 2, 6, 6)).astype(np.float16)
    attributes = {"kernel_shape": [2, 2]}
    wide = run_kernel("MaxPool", [x.astype(np.float32)], attributes, opset=12)[0]
    assert_close(run_kernel("MaxPool", [x], attributes, opset=12)[0], wide.astype(np.float16))
    x[0, 0, 2, 2] = np.nan
    assert np.isnan(run_kernel("MaxPool", [x], attributes, opset=12)[0]).sum() == 4


@pytest.mark.parametrize("opset", [7, 10, 11, 19, 22])
@pytest.mark.parametrize("seed", range(25))
def test_average_pool(seed: int, opset: int) -> None:
    x, attributes = _window(seed, ceil=opset >= 10, dilations=opset >= 19)
    attributes["count_include_pad"] = seed % 2
    check("AveragePool", [x], attributes, opset=opset)


@pytest.mark.parametrize("opset", [2, 11, 18, 22])
@pytest.mark.parametrize("seed", range(12))
def test_lp_pool(seed: int, opset: int) -> None:
    x, attributes = _window(seed, ceil=opset >= 18, dilations=opset >= 18)
    attributes["p"] = 1 + seed % 3
    check("LpPool", [x], attributes, opset=opset)


@pytest.mark.parametrize("op", ["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"])
@pytest.mark.parametrize("shape", [(2, 3, 5), (2, 3, 4, 5), (1, 2, 3, 4, 5)])
def test_global_pools(op: str, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    check(op, [x], {"p": 3} if op == "GlobalLpPool" else {}, opset=2 if op == "GlobalLpPool" else 11)


def test_global_average_of_float16_does_not_overflow() -> None:
    x = np.full((1, 1, 64, 64), 100, np.float16)
    assert_close(run_kernel("GlobalAveragePool", [x], opset=22)[0], np.full((1, 1, 1, 1), 100, np.float16))


def test_max_unpool_inverts_max_pool() -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 8, 8)).astype(np.float32)
    attributes = {"kernel_shape": [2, 2], "strides": [2, 2]}
    y, at = run_kernel("MaxPool", [x], attributes, opset=12, outputs=2)
    check("MaxUnpool", [y, at], attributes, opset=11)
    larger = run_kernel("MaxUnpool", [y, at, np.array([2, 3, 9, 10])], attributes, opset=11)[0]
    plain = run_kernel("MaxUnpool", [y, at], attributes, opset=11)[0]
    assert_close(larger[:, :, :8, :8], plain)
    assert not larger[:, :, 8:].any()
    assert not larger[..., 8:].any()
