"""Conv against onnxruntime over many seeded combinations, and what onnxruntime does not take."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from kernel_oracle import assert_close, check, run_kernel

Attributes = dict[str, object]


def _case(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, Attributes]:
    """A random convolution: 1 to 3 spatial dims, all attributes."""
    r = np.random.default_rng(seed)
    n = int(r.choice([1, 2, 2, 2, 3]))
    group = int(r.choice([1, 1, 2, 3]))
    depth = int(r.choice([1, 1, 2, 3, 40]))
    multiplier = int(r.integers(1, 4))
    kernel = [int(k) for k in r.integers(1, 4, n)]
    attributes: Attributes = {"group": group, "strides": [int(s) for s in r.integers(1, 4, n)]}
    mode = r.choice(["NOTSET", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"])
    if mode == "NOTSET":
        attributes["pads"] = [int(p) for p in r.integers(0, 3, 2 * n)]
    else:
        attributes["auto_pad"] = str(mode)
    if not mode.startswith("SAME"):  # onnxruntime refuses dilations there
        attributes["dilations"] = [int(d) for d in r.integers(1, 4, n)]
    size = [int(d) for d in r.integers(8, 14, n)]
    x = r.standard_normal((int(r.integers(1, 3)), group * depth, *size)).astype(np.float32)
    w = r.standard_normal((group * multiplier, depth, *kernel)).astype(np.float32)
    b = r.standard_normal(group * multiplier).astype(np.float32) if r.random() < 0.5 else None
    return x, w, b, attributes


@pytest.mark.parametrize("seed", range(60))
def test_conv_is_that_of_onnxruntime(seed: int) -> None:
    x, w, b, attributes = _case(seed)
    check("Conv", [x, w] if b is None else [x, w, b], attributes, opset=11)


SHAPES = {  # one for each way of computing it
    "rows": ((2, 64, 24, 24), (16, 64, 3, 3), {"pads": [1, 1, 1, 1]}),
    "rows dilated": ((1, 64, 30, 27), (8, 64, 3, 2), {"dilations": [2, 3]}),
    "rows, column stride": ((1, 64, 30, 27), (8, 64, 3, 3), {"strides": [1, 2]}),
    "rows in blocks": ((1, 64, 90, 120), (4, 64, 3, 3), {"pads": [1, 1, 1, 1]}),
    "rows 1-d": ((1, 128, 500), (8, 128, 5), {}),
    "columns in blocks": ((1, 16, 100, 90), (4, 16, 3, 3), {"strides": [2, 2]}),
    "grouped columns": ((2, 8, 60, 60), (12, 2, 3, 3), {"group": 4}),
    "pointwise strided": ((2, 16, 9, 9), (8, 16, 1, 1), {"strides": [2, 2], "pads": [1, 0, 0, 1]}),
    "depthwise": ((2, 20, 56, 56), (20, 1, 3, 3), {"group": 20, "pads": [1, 1, 1, 1]}),
    "depthwise strided": ((1, 10, 31, 30), (20, 1, 5, 3), {"group": 10, "strides": [2, 3]}),
    "depthwise in rows": ((1, 2, 300, 320), (4, 1, 3, 3), {"group": 2, "strides": [2, 1]}),
    "depthwise 1-d": ((1, 6, 50), (6, 1, 4), {"group": 6, "dilations": [3], "pads": [4, 5]}),
    "depthwise 3-d": ((1, 3, 8, 9, 10), (3, 1, 2, 3, 3), {"group": 3, "strides": [1, 2, 2]}),
}


@pytest.mark.parametrize("name", SHAPES)
def test_conv_ways(name: str) -> None:
    r = np.random.default_rng(1)
    x_shape, w_shape, attributes = SHAPES[name]
    x, w = (r.standard_normal(s).astype(np.float32) for s in (x_shape, w_shape))
    b = r.standard_normal(w_shape[0]).astype(np.float32)
    expected = check("Conv", [x, w, b], attributes, opset=11, scale=2)[0]
    twice = run_kernel("Conv", [v.astype(np.float64) for v in (x, w, b)], attributes, opset=11)[0]
    assert twice.dtype == np.float64
    assert_close(twice.astype(np.float32), expected, scale=2)


@pytest.mark.parametrize("name", SHAPES)
def test_conv_in_double_precision(name: str) -> None:
    """Against the definition, tap by tap."""
    r = np.random.default_rng(2)
    x_shape, w_shape, attributes = SHAPES[name]
    x, w = r.standard_normal(x_shape), r.standard_normal(w_shape)
    actual = run_kernel("Conv", [x, w], attributes, opset=22)[0]
    assert_close(actual, _by_definition(x, w, **attributes))


def _by_definition(
    x: np.ndarray,
    w: np.ndarray,
    group: int = 1,
    strides: list[int] | None = None,
    dilations: list[int] | None = None,
    pads: list[int] | None = None,
) -> np.ndarray:
    n = x.ndim - 2
    strides, dilations, pads = strides or [1] * n, dilations or [1] * n, pads or [0] * 2 * n
    x = np.pad(x, [(0, 0), (0, 0), *zip(pads[:n], pads[n:], strict=True)])
    out = [(x.shape[2 + i] - (w.shape[2 + i] - 1) * dilations[i] - 1) // strides[i] + 1 for i in range(n)]
    grouped = x.reshape(x.shape[0], group, -1, *x.shape[2:])
    weights = w.reshape(group, -1, *w.shape[1:])
    y = np.zeros((x.shape[0], group, weights.shape[1], *out))
    for tap in np.ndindex(*w.shape[2:]):
        cut = [
            slice(t * d, t * d + (o - 1) * s + 1, s)
            for t, d, o, s in zip(tap, dilations, out, strides, strict=True)
        ]
        y += np.einsum("gmc,ngc...->ngm...", weights[(..., *tap)], grouped[(..., *cut)])
    return y.reshape(x.shape[0], -1, *out)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_floats_are_summed_in_float32(dtype: type) -> None:
    r = np.random.default_rng(3)
    x, w = r.standard_normal((1, 300, 9, 9)), r.standard_normal((4, 300, 3, 3))
    x, w = x.astype(dtype), w.astype(dtype)
    expected = _by_definition(x.astype(np.float64), w.astype(np.float64)).astype(dtype)
    assert_close(run_kernel("Conv", [x, w], opset=22)[0], expected)


def test_same_lower_with_dilation() -> None:
    x = np.arange(36, dtype=np.float32).reshape(1, 1, 6, 6)
    w = np.ones((1, 1, 3, 3), np.float32)
    same = run_kernel("Conv", [x, w], {"auto_pad": "SAME_LOWER", "dilations": [2, 2]}, opset=11)[0]
    padded = run_kernel("Conv", [x, w], {"pads": [2, 2, 2, 2], "dilations": [2, 2]}, opset=11)[0]
    assert_close(same, padded)


def test_empty_batch() -> None:
    x, w = np.zeros((0, 3, 8, 8), np.float32), np.ones((4, 3, 3, 3), np.float32)
    assert run_kernel("Conv", [x, w], opset=11)[0].shape == (0, 4, 6, 6)


@pytest.mark.parametrize(
    ("x_shape", "w_shape", "attributes", "message"),
    [
        ((1, 3, 8, 8), (4, 2, 3, 3), {}, "disagree"),
        ((1, 3, 8, 8), (4, 3, 3), {}, "rank"),
        ((1, 3, 8, 8), (4, 3, 3, 3), {"pads": [1, 1]}, "pads"),
        ((1, 3, 2, 2), (4, 3, 3, 3), {}, "larger than the padded input"),
        ((1, 3, 8, 8), (4, 3, 3, 3), {"kernel_shape": [2, 2]}, "kernel_shape"),
        ((1, 3, 8, 8), (4, 3, 3, 3), {"auto_pad": "SAME"}, "auto_pad"),
    ],
)
def test_conv_refuses(x_shape: tuple, w_shape: tuple, attributes: Attributes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run_kernel("Conv", [np.ones(x_shape, np.float32), np.ones(w_shape, np.float32)], attributes, opset=11)
