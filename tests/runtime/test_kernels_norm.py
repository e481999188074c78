"""Normalizations and softmax against onnxruntime and float64 formulas."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from kernel_oracle import assert_close, check, run_kernel

from optimizer.io import parse
from optimizer.runtime import Session


def _normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize("opset", [1, 8, 11, 12, 13, 18])
@pytest.mark.parametrize("axis", [None, 0, 1, 2, -1, -2])
def test_softmax_by_version(op: str, opset: int, axis: int | None) -> None:
    if axis is not None and axis < 0 and opset < 11:
        axis = 1
    check(op, [_normal(3, 4, 5)], {} if axis is None else {"axis": axis}, opset=max(opset, 7))


def test_softmax_of_large_and_narrow_values() -> None:
    x = np.array([[1000, 1000, -1000], [-np.inf, 0, 1]], np.float32)
    check("Softmax", [x], opset=13)
    half = (_normal(3, 4000) * 4).astype(np.float16)
    e = np.exp(half.astype(np.float64))
    assert_close(run_kernel("Softmax", [half], opset=13)[0], (e / e.sum(1, keepdims=True)).astype(np.float16))
    assert run_kernel("Softmax", [np.zeros((2, 0), np.float32)], opset=13)[0].shape == (2, 0)


def test_softmax_over_many_blocks() -> None:
    check("Softmax", [_normal(300, 700)], opset=13)


@pytest.mark.parametrize("opset", [7, 9, 14, 15])
@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4), (2, 3, 4, 5), (1, 3, 2, 2, 2)])
def test_batch_norm_inference(opset: int, shape: tuple[int, ...]) -> None:
    scale, bias, mean, var = (_normal(3, seed=i) for i in range(4))
    check(
        "BatchNormalization", [_normal(*shape), scale, bias, mean, abs(var)], {"epsilon": 1e-3}, opset=opset
    )


def test_batch_norm_7_per_element() -> None:
    parts = [_normal(3, 4, 5, seed=i) for i in range(4)]
    parts[3] = abs(parts[3])
    x = _normal(2, 3, 4, 5)
    actual = run_kernel("BatchNormalization", [x, *parts], {"spatial": 0}, opset=7)[0]
    wide = [v.astype(np.float64) for v in (x, *parts)]
    expected = (wide[0] - wide[3]) / np.sqrt(wide[4] + 1e-5) * wide[1] + wide[2]
    assert_close(actual, expected.astype(np.float32))


@pytest.mark.parametrize("opset", [14, 15])
def test_batch_norm_training(opset: int) -> None:
    scale, bias, mean, var = (_normal(3, seed=i) for i in range(4))
    x = _normal(4, 3, 5, 5)
    attributes = {"training_mode": 1, "momentum": 0.7}
    y, new_mean, new_var = run_kernel(
        "BatchNormalization", [x, scale, bias, mean, abs(var)], attributes, opset=opset, outputs=3
    )
    wide = x.astype(np.float64)
    batch_mean, batch_var = wide.mean((0, 2, 3)), wide.var((0, 2, 3))
    column = (slice(None), None, None)
    expected = (wide - batch_mean[column]) / np.sqrt(batch_var[column] + 1e-5) * scale[column] + bias[column]
    assert_close(y, expected.astype(np.float32))
    assert_close(new_mean, (0.7 * mean + 0.3 * batch_mean).astype(np.float32))
    assert_close(new_var, (0.7 * abs(var) + 0.3 * batch_var).astype(np.float32))


def test_batch_norm_training_forgets_the_batch_before() -> None:
    text = "g (float[N,3,5] x) => (y) { y, m, v = BatchNormalization<training_mode=1>(x, k, k, k, k) }"
    model = parse(f'<ir_version: 8, opset_import: ["": 15]> {text}', {"k": np.ones(3, np.float32)})
    session = Session(model)
    for seed in range(2):
        y = session.run({"x": _normal(4, 3, 5, seed=seed) * (seed + 1)})["y"]
        assert_close(y.std((0, 2)), np.ones(3, np.float32), 10)


def test_batch_norm_15_takes_statistics_of_another_dtype() -> None:
    x = _normal(2, 3, 4).astype(np.float16)
    scale, bias = _normal(3).astype(np.float16), _normal(3, seed=1).astype(np.float16)
    y = run_kernel("BatchNormalization", [x, scale, bias, _normal(3, seed=2), abs(_normal(3))], opset=15)[0]
    assert y.dtype == np.float16


@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 3, 4, 5), (1, 3, 2, 2, 2)])
def test_instance_norm(shape: tuple[int, ...]) -> None:
    inputs = [_normal(*shape) * 3 + 5, _normal(3), _normal(3, seed=1)]
    check("InstanceNormalization", inputs, {"epsilon": 1e-2}, opset=6, scale=3)


@pytest.mark.parametrize("axis", [-1, 1, 2, 0])
def test_layer_norm(axis: int) -> None:
    x = _normal(2, 3, 4, 5) * 2 + 1
    shape = x.shape[axis:]
    check(
        "LayerNormalization",
        [x, _normal(*shape), _normal(*shape, seed=1)],
        {"axis": axis, "epsilon": 1e-4},
        opset=17,
        outputs=3,
    )
    check("LayerNormalization", [x, _normal(*shape)], {"axis": axis}, opset=17)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_layer_norm_statistics_are_summed_wide(dtype: type) -> None:
    x = (_normal(2, 512) * 300).astype(dtype)
    scale = _normal(512, seed=1).astype(dtype)
    wide = x.astype(np.float64)
    expected = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    y, mean, _ = run_kernel("LayerNormalization", [x, scale], opset=17, outputs=3)
    assert_close(y, (expected * scale.astype(np.float64)).astype(dtype))
    assert mean.dtype == (np.float64 if dtype is np.float64 else np.float32)
    assert mean.shape == (2, 1)


@pytest.mark.parametrize("opset", [18, 21])
def test_group_norm(opset: int) -> None:
    x = _normal(2, 6, 3, 4)
    scale, bias = (_normal(2 if opset == 18 else 6, seed=i) for i in (1, 2))
    actual = run_kernel("GroupNormalization", [x, scale, bias], {"num_groups": 2}, opset=opset)[0]
    wide = x.astype(np.float64).reshape(2, 2, -1)
    y = (wide - wide.mean(2, keepdims=True)) / np.sqrt(wide.var(2, keepdims=True) + 1e-5)
    repeat = 3 if opset == 18 else 1
    s, b = (np.repeat(v, repeat)[:, None, None] for v in (scale, bias))
    assert_close(actual, (y.reshape(x.shape) * s + b).astype(np.float32), scale=2)


@pytest.mark.parametrize(
    ("op", "opset", "attributes"),
    [("InstanceNormalization", 6, {}), ("GroupNormalization", 21, {"num_groups": 2})],
)
def test_norms_of_an_empty_batch(op: str, opset: int, attributes: dict[str, int]) -> None:
    x = np.zeros((0, 6, 3, 4), np.float32)
    assert run_kernel(op, [x, _normal(6), _normal(6)], attributes, opset=opset)[0].shape == x.shape


def test_rms_norm() -> None:
    x, scale = _normal(2, 3, 8), _normal(3, 8, seed=1)
    check("RMSNormalization", [x, scale], {"axis": 1, "epsilon": 1e-3}, opset=23)


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_lp_normalization(p: int, axis: int) -> None:
    x = _normal(3, 4, 5)
    x[:, :, 0] = 0
    x[0, :, :] = 0
    check("LpNormalization", [x], {"p": p, "axis": axis}, opset=1 if p == 1 else 22)


@pytest.mark.parametrize("size", [1, 3, 5, 9])
@pytest.mark.parametrize("beta", [0.75, 0.5])
def test_lrn(size: int, beta: float) -> None:
    attributes = {"size": size, "alpha": 0.3, "beta": beta, "bias": 2.0}
    check("LRN", [_normal(2, 7, 4, 4) * 3], attributes, opset=13)


def test_lrn_of_even_size() -> None:
    """Neighbours from floor((size - 1) / 2) before to ceil((size - 1) / 2) behind."""
    x = _normal(2, 5, 3)
    squares = np.pad(np.square(x.astype(np.float64)), [(0, 0), (1, 2), (0, 0)])
    sums = sum(squares[:, i : i + 5] for i in range(4))
    expected = x / (1 + 0.1 / 4 * sums) ** 0.75
    assert_close(run_kernel("LRN", [x], {"size": 4, "alpha": 0.1}, opset=13)[0], expected.astype(np.float32))


@pytest.mark.parametrize("axes", [None, (0, 1, 2, 3), (2, 3)])
def test_mean_variance_normalization(axes: tuple[int, ...] | None) -> None:
    x = _normal(2, 3, 4, 5) * 2 + 1
    check("MeanVarianceNormalization", [x], {} if axes is None else {"axes": axes}, opset=13)
