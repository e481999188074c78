"""ConvTranspose against onnxruntime over seeded combinations."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_oracle import check, run_kernel


@pytest.mark.parametrize("seed", range(60))
def test_conv_transpose(seed: int) -> None:
    r = np.random.default_rng(seed)
    n = int(r.choice([1, 2, 2, 3]))
    group = int(r.choice([1, 1, 2, 3]))
    depth, per_group = int(r.integers(1, 4)), int(r.integers(1, 4))
    kernel = [int(k) for k in r.integers(1, 5, n)]
    strides = [int(s) for s in r.integers(1, 4, n)]
    dilations = [int(d) for d in r.integers(1, 3, n)]
    size = [int(d) for d in r.integers(4, 8, n)]
    attributes: dict[str, object] = {"group": group, "strides": strides, "dilations": dilations}
    mode = r.choice(["pads", "pads", "output_shape", "SAME_UPPER", "SAME_LOWER", "VALID"])
    if str(mode).startswith("SAME"):  # onnxruntime cuts the output where windows leave gaps
        strides[:] = [min(s, (k - 1) * d + 1) for s, k, d in zip(strides, kernel, dilations, strict=True)]
    full = [
        (d - 1) * s + (k - 1) * e + 1 for d, s, k, e in zip(size, strides, kernel, dilations, strict=True)
    ]
    if mode == "pads":
        attributes["pads"] = [int(p) for p in r.integers(0, 2, 2 * n)]
        attributes["output_padding"] = [int(r.integers(0, s)) for s in strides]
    elif mode == "output_shape":
        attributes["output_shape"] = [
            max(1, f - int(c)) for f, c in zip(full, r.integers(0, 3, n), strict=True)
        ]
        if seed % 2:
            attributes["auto_pad"] = "SAME_UPPER"
    else:
        attributes["auto_pad"] = str(mode)
    x = r.standard_normal((2, group * depth, *size)).astype(np.float32)
    w = r.standard_normal((group * depth, per_group, *kernel)).astype(np.float32)
    b = r.standard_normal(group * per_group).astype(np.float32)
    check("ConvTranspose", [x, w, b] if seed % 3 else [x, w], attributes, opset=11)


def test_many_channels_in_blocks() -> None:
    r = np.random.default_rng(0)
    x = r.standard_normal((1, 8, 60, 60)).astype(np.float32)
    w = r.standard_normal((8, 40, 4, 4)).astype(np.float32)
    check("ConvTranspose", [x, w], {"strides": [2, 2], "pads": [1, 1, 1, 1]}, opset=11)


def test_same_output_is_input_times_stride() -> None:
    x, w = np.ones((1, 1, 3), np.float32), np.array([[[1, 10]]], np.float32)
    actual = run_kernel("ConvTranspose", [x, w], {"strides": [3], "auto_pad": "SAME_UPPER"}, opset=11)[0]
    assert actual.ravel().tolist() == [1, 10, 0, 1, 10, 0, 1, 10, 0]


def test_refuses() -> None:
    x, w = np.ones((1, 3, 4, 4), np.float32), np.ones((2, 3, 2, 2), np.float32)
    with pytest.raises(ValueError, match="disagree"):
        run_kernel("ConvTranspose", [x, w], opset=11)
