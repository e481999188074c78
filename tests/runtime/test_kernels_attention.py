"""Attention, RotaryEmbedding and the fused operators of com.microsoft against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_oracle import assert_close, check, run_kernel, run_onnxruntime

MS = "com.microsoft"


def _normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed + 100 * len(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("groups", [4, 2, 1])
@pytest.mark.parametrize("mask", ["none", "bool", "float", "float4"])
@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("softcap", [0.0, 2.0])
def test_attention(flat: bool, groups: int, mask: str, causal: int, softcap: float) -> None:
    q, k, v = _normal(2, 4, 5, 8), _normal(2, groups, 6, 8, seed=1), _normal(2, groups, 6, 10, seed=2)
    attributes: dict[str, object] = {"is_causal": causal, "softcap": softcap}
    if flat:
        q, k, v = (x.transpose(0, 2, 1, 3).reshape(2, x.shape[2], -1) for x in (q, k, v))
        attributes |= {"q_num_heads": 4, "kv_num_heads": groups}
    inputs = [q, k, v]
    if mask == "bool":
        allowed = np.random.default_rng(3).random((5, 6)) < 0.7
        allowed[:, 0] = True
        inputs.append(allowed)
    elif mask != "none":
        inputs.append(_normal(*((2, 4, 5, 6) if mask == "float4" else (5, 6)), seed=4))
    check("Attention", inputs, attributes, opset=23, scale=2)


def test_attention_with_cache_and_scores() -> None:
    q, k, v = _normal(1, 2, 3, 4), _normal(1, 2, 3, 4, seed=1), _normal(1, 2, 3, 4, seed=2)
    past = [_normal(1, 2, 5, 4, seed=3), _normal(1, 2, 5, 4, seed=4)]
    for mode in range(4):
        check(
            "Attention",
            [q, k, v, _normal(3, 8), *past],
            {"qk_matmul_output_mode": mode, "scale": 0.3},
            opset=23,
            outputs=4,
            scale=2,
        )


def _attend(q: np.ndarray, k: np.ndarray, v: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    scores = q.astype(np.float64) @ k.astype(np.float64).swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    weights = np.where(allowed, np.exp(scores), 0)
    return (weights / np.maximum(weights.sum(-1, keepdims=True), 1e-300) @ v).astype(np.float32)


def test_attention_24_with_an_outside_cache() -> None:
    """Causal alignment follows the valid length of each row; a query before all keys gives zeros."""
    q, k, v = _normal(2, 2, 3, 4), _normal(2, 2, 8, 4, seed=1), _normal(2, 2, 8, 4, seed=2)
    valid = np.array([6, 2])
    actual = run_kernel("Attention", [q, k, v, None, None, None, valid], {"is_causal": 1}, opset=24)[0]
    j, i = np.arange(8), np.arange(3)[:, None]
    allowed = np.stack([(j <= i + n - 3) & (j < n) for n in valid])[:, None]
    assert_close(actual, _attend(q, k, v, allowed), scale=2)
    assert not actual[1, :, 0].any()


def test_attention_25_windows() -> None:
    q, k, v = _normal(1, 2, 6, 4), _normal(1, 2, 6, 4, seed=1), _normal(1, 2, 6, 4, seed=2)
    actual = run_kernel("Attention", [q, k, v], {"left_window_size": 2, "right_window_size": 1}, opset=25)[0]
    distance = np.arange(6) - np.arange(6)[:, None]
    assert_close(actual, _attend(q, k, v, (distance >= -2) & (distance <= 1)), scale=2)


def test_short_mask_hides_the_rest() -> None:
    q, k, v = _normal(1, 1, 2, 4), _normal(1, 1, 5, 4, seed=1), _normal(1, 1, 5, 4, seed=2)
    actual = run_kernel("Attention", [q, k, v, np.ones((2, 3), bool)], opset=24)[0]
    assert_close(actual, _attend(q, k, v, np.arange(5) < 3), scale=2)


def test_attention_in_narrow_and_double() -> None:
    q, k, v = (_normal(1, 2, 6, 16, seed=i).astype(np.float16) for i in range(3))
    wide = run_kernel("Attention", [x.astype(np.float64) for x in (q, k, v)], opset=23)[0]
    assert wide.dtype == np.float64
    assert_close(run_kernel("Attention", [q, k, v], opset=23)[0], wide.astype(np.float16))


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("partial", [0, 4])
@pytest.mark.parametrize("ids", [False, True])
@pytest.mark.parametrize("flat", [False, True])
def test_rotary_embedding(interleaved: int, partial: int, ids: bool, flat: bool) -> None:
    x = _normal(2, 3, 5, 8)
    half = (partial or 8) // 2
    attributes: dict[str, object] = {"interleaved": interleaved, "rotary_embedding_dim": partial}
    if flat or partial:
        attributes["num_heads"] = 3
    if flat:
        x = x.transpose(0, 2, 1, 3).reshape(2, 5, 24)
    angle = _normal(*((10, half) if ids else (2, 5, half)), seed=1)
    inputs = [x, np.cos(angle), np.sin(angle)]
    if ids:
        inputs.append(np.random.default_rng(0).integers(0, 10, (2, 5)))
    check("RotaryEmbedding", inputs, attributes, opset=23)


@pytest.mark.parametrize(
    ("activation", "parameters"),
    [
        ("Relu", None),
        ("Sigmoid", None),
        ("Tanh", None),
        ("LeakyRelu", [0.2]),
        ("Clip", [-0.5, 1.0]),
        ("HardSigmoid", [0.3, 0.4]),
    ],
)
@pytest.mark.parametrize("z", [False, True])
def test_fused_conv(activation: str, parameters: list[float] | None, z: bool) -> None:
    attributes: dict[str, object] = {"activation": activation, "pads": [1, 1, 1, 1]}
    if parameters:
        attributes["activation_params"] = parameters
    inputs = [_normal(1, 3, 6, 6), _normal(4, 3, 3, 3, seed=1), _normal(4)]
    check("FusedConv", inputs + ([_normal(1, 4, 6, 6, seed=5)] if z else []), attributes, opset=1, domain=MS)


def test_fused_gemm() -> None:
    attributes = {"activation": "LeakyRelu", "activation_alpha": 0.2, "transB": 1, "alpha": 0.5}
    check("FusedGemm", [_normal(3, 4), _normal(5, 4, seed=1), _normal(5)], attributes, opset=1, domain=MS)


@pytest.mark.parametrize("left", [0, 1])
@pytest.mark.parametrize("right", [0, 1])
@pytest.mark.parametrize("batch", [0, 1])
def test_fused_matmul(left: int, right: int, batch: int) -> None:
    a = _normal(*((2, 3, 5, 4) if left else (2, 3, 4, 5)))
    b = _normal(*((2, 3, 6, 5) if right else (2, 3, 5, 6)), seed=1)
    attributes = {"transA": left, "transB": right, "alpha": 0.3}
    if batch:
        a, b = np.moveaxis(a, -2, 0).copy(), np.moveaxis(b, -2, 0).copy()
        attributes |= {"transBatchA": 1, "transBatchB": 1}
    check("FusedMatMul", [a, b], attributes, opset=1, domain=MS)
    if not batch:
        check("TransposeMatMul", [a, b], attributes, opset=1, domain=MS)


@pytest.mark.parametrize(
    ("op", "shapes", "attributes"),
    [
        ("Gelu", [(3, 8)], {}),
        ("BiasGelu", [(2, 3, 8), (8,)], {}),
        ("FastGelu", [(2, 3, 8)], {}),
        ("FastGelu", [(2, 3, 8), (8,)], {}),
        ("QuickGelu", [(2, 3, 8)], {}),
        ("QuickGelu", [(2, 3, 8)], {"alpha": 0.7}),
        ("SkipLayerNormalization", [(2, 3, 8), (2, 3, 8), (8,)], {"epsilon": 1e-5}),
        ("SkipLayerNormalization", [(2, 3, 8), (2, 3, 8), (8,), (8,), (8,)], {"epsilon": 1e-5}),
        ("SkipLayerNormalization", [(2, 3, 8), (1, 3, 8), (8,), (8,)], {}),
        ("SkipSimplifiedLayerNormalization", [(2, 3, 8), (2, 3, 8), (8,)], {"epsilon": 1e-5}),
    ],
)
def test_contrib(op: str, shapes: list[tuple[int, ...]], attributes: dict[str, object]) -> None:
    check(op, [_normal(*s, seed=i) for i, s in enumerate(shapes)], attributes, opset=1, domain=MS, scale=2)


def test_sum_of_skip_layer_norm() -> None:
    x, skip = _normal(2, 3, 8), _normal(2, 3, 8, seed=1)
    results = run_kernel("SkipLayerNormalization", [x, skip, _normal(8)], opset=1, domain=MS, outputs=4)
    assert_close(results[3], x + skip)


def test_simplified_layer_norm() -> None:
    x, scale = _normal(2, 3, 8), _normal(8)
    check("SimplifiedLayerNormalization", [x, scale], {"axis": -1, "epsilon": 1e-4}, opset=17, outputs=2)


def test_embed_layer_norm() -> None:
    r = np.random.default_rng(0)
    ids, segments = r.integers(0, 20, (2, 5)).astype(np.int32), r.integers(0, 2, (2, 5)).astype(np.int32)
    mask = (np.arange(5) < np.array([[3], [5]])).astype(np.int32)
    tables = [_normal(20, 8), _normal(9, 8, seed=1), _normal(2, 8, seed=2), _normal(8), _normal(8, seed=1)]
    check("EmbedLayerNormalization", [ids, segments, *tables, mask], opset=1, domain=MS, outputs=2, scale=2)


@pytest.mark.parametrize("mask", ["none", "lengths", "keys"])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("causal", [0, 1])
def test_multi_head_attention(mask: str, bias: bool, causal: int) -> None:
    q, k, v = _normal(2, 4, 16), _normal(2, 6, 16, seed=1), _normal(2, 6, 16, seed=2)
    if causal:
        k, v = k[:, :4], v[:, :4]
    keys = k.shape[1]
    inputs: list[np.ndarray | None] = [
        q,
        k,
        v,
        _normal(48) if bias else None,
        None,
        _normal(2, 2, 4, keys, seed=5),
    ]
    if mask == "lengths":
        inputs[4] = np.array([3, keys], np.int32)
    elif mask == "keys":
        inputs[4] = (np.arange(keys) < np.array([[3], [keys]])).astype(np.int32)
    check(
        "MultiHeadAttention", inputs, {"num_heads": 2, "unidirectional": causal}, opset=1, domain=MS, scale=2
    )


def test_packed_multi_head_attention() -> None:
    """onnxruntime's CPU kernel has no packed layouts: the same numbers as the separate tensors."""
    packed = _normal(2, 4, 2, 3, 8)
    parts = [packed[:, :, :, i].reshape(2, 4, 16) for i in range(3)]
    expected = run_kernel("MultiHeadAttention", parts, {"num_heads": 2}, opset=1, domain=MS)[0]
    actual = run_kernel("MultiHeadAttention", [packed], {"num_heads": 2}, opset=1, domain=MS)[0]
    assert_close(actual, expected)
    inputs = [parts[0], packed[:, :, :, 1:]]
    assert_close(run_kernel("MultiHeadAttention", inputs, {"num_heads": 2}, opset=1, domain=MS)[0], expected)


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("past", [False, True])
def test_attention_with_projections(causal: int, past: bool) -> None:
    inputs: list[np.ndarray | None] = [_normal(2, 4, 16), _normal(16, 48, seed=1) * 0.3, _normal(48)]
    if past:
        inputs += [None, _normal(2, 2, 2, 3, 8)]
    check(
        "Attention",
        inputs,
        {"num_heads": 2, "unidirectional": causal},
        opset=1,
        domain=MS,
        outputs=1 + past,
        scale=4,
    )


@pytest.mark.parametrize("rotary", [0, 1])
@pytest.mark.parametrize("step", ["prompt", "token"])
@pytest.mark.parametrize("window", [-1, 3])
def test_group_query_attention(rotary: int, step: str, window: int) -> None:
    new, past = (6, 0) if step == "prompt" else (1, 5)
    q, k, v = _normal(2, new, 64), _normal(2, new, 32, seed=1), _normal(2, new, 32, seed=2)
    total = new + past
    inputs: list[np.ndarray | None] = [q, k, v, None, None]
    if past:
        inputs[3:] = [_normal(2, 2, past, 16, seed=3), _normal(2, 2, past, 16, seed=4)]
    inputs += [np.full(2, total - 1, np.int32), np.array([total], np.int32)]
    if rotary:
        angle = _normal(16, 8, seed=7)
        inputs += [np.cos(angle), np.sin(angle)]
    attributes = {"num_heads": 4, "kv_num_heads": 2, "do_rotary": rotary, "local_window_size": window}
    check("GroupQueryAttention", inputs, attributes, opset=1, domain=MS, outputs=3, scale=4)


@pytest.mark.parametrize("ids", ["offset", "rows"])
@pytest.mark.parametrize("interleaved", [0, 1])
def test_rotary_embedding_of_onnxruntime(ids: str, interleaved: int) -> None:
    angle = _normal(16, 4)
    at = np.array([3]) if ids == "offset" else np.random.default_rng(0).integers(0, 16, (2, 5))
    inputs = [_normal(2, 5, 24), at, np.cos(angle), np.sin(angle)]
    check("RotaryEmbedding", inputs, {"interleaved": interleaved}, opset=1, domain=MS)


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize(("k", "block"), [(64, 32), (80, 16), (40, 32)])
def test_matmul_n_bits(zeros: bool, k: int, block: int) -> None:
    r = np.random.default_rng(0)
    n, blocks = 6, -(-k // block)
    packed = r.integers(0, 256, (n, blocks, block // 2)).astype(np.uint8)
    inputs: list[np.ndarray | None] = [_normal(3, k), packed, abs(_normal(n, blocks)) * 0.1]
    if zeros:
        inputs.append(r.integers(0, 256, (n, (blocks + 1) // 2)).astype(np.uint8))
    attributes = {"K": k, "N": n, "bits": 4, "block_size": block}
    try:
        expected = run_onnxruntime("MatMulNBits", inputs, attributes, opset=1, domain=MS)[0]
    except Exception as error:  # older builds want flat scales
        inputs[2] = inputs[2].reshape(-1)
        if zeros:
            inputs[3] = inputs[3].reshape(-1)
        del error
        expected = run_onnxruntime("MatMulNBits", inputs, attributes, opset=1, domain=MS)[0]
    assert_close(run_kernel("MatMulNBits", inputs, attributes, opset=1, domain=MS)[0], expected, scale=4)
