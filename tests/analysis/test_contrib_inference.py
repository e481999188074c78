"""com.microsoft and ai.onnx.ml: what is inferred with open dims against what onnxruntime makes."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import pytest
import test_inference_sweep as sweep
from onnx import helper, numpy_helper

from optimizer.analysis import Facts
from optimizer.io import load

RNG = np.random.default_rng(0)


def f32(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def u8(*shape: int) -> np.ndarray:
    return RNG.integers(1, 9, shape).astype(np.uint8)


SCALE, ZERO = np.float32(0.1), np.uint8(3)
Q = {"scale": np.array(SCALE), "zero": np.array(ZERO)}

# operator, outputs, attributes, inputs (open dims), constants, the order of both in the node
CASES: dict[str, tuple[str, int, dict[str, object], dict[str, np.ndarray], dict[str, np.ndarray], str]] = {
    "fused-matmul": ("FusedMatMul", 1, {"transB": 1}, {"a": f32(2, 3, 4), "b": f32(2, 5, 4)}, {}, "a b"),
    "fused-matmul-batch": (
        "FusedMatMul",
        1,
        {"transA": 1, "transBatchA": 1},
        {"a": f32(4, 2, 3), "b": f32(2, 4, 5)},
        {},
        "a b",
    ),
    "fused-gemm": ("FusedGemm", 1, {"activation": "Relu"}, {"a": f32(3, 4)}, {"b": f32(4, 5)}, "a b"),
    "fused-conv": (
        "FusedConv",
        1,
        {"activation": "Relu", "strides": [2, 2]},
        {"a": f32(2, 3, 9, 8)},
        {"w": f32(4, 3, 3, 3)},
        "a w",
    ),
    "bias-gelu": ("BiasGelu", 1, {}, {"a": f32(2, 3, 4)}, {"b": f32(4)}, "a b"),
    "fast-gelu": ("FastGelu", 1, {}, {"a": f32(2, 3, 4)}, {}, "a"),
    "quick-gelu": ("QuickGelu", 1, {}, {"a": f32(2, 3, 4)}, {}, "a"),
    "skip-layer-norm": (
        "SkipLayerNormalization",
        4,
        {},
        {"a": f32(2, 3, 4), "b": f32(2, 3, 4)},
        {"g": f32(4)},
        "a b g",
    ),
    "attention": (
        "Attention",
        1,
        {"num_heads": 2},
        {"a": f32(2, 3, 8)},
        {"w": f32(8, 24), "b": f32(24)},
        "a w b",
    ),
    "multi-head-attention": (
        "MultiHeadAttention",
        1,
        {"num_heads": 2},
        {"a": f32(2, 3, 8), "b": f32(2, 5, 8), "d": f32(2, 5, 8)},
        {},
        "a b d",
    ),
    "group-query-attention": (
        "GroupQueryAttention",
        3,
        {"num_heads": 4, "kv_num_heads": 2},
        {
            "a": f32(2, 3, 32),
            "b": f32(2, 3, 16),
            "d": f32(2, 3, 16),
            "lengths": np.array([2, 2], np.int32),
        },
        {"total": np.array(3, np.int32)},
        "a b d - - lengths total",
    ),
    "group-query-attention-packed": (
        "GroupQueryAttention",
        3,
        {"num_heads": 4, "kv_num_heads": 2},
        {"a": f32(2, 3, 64), "lengths": np.array([2, 2], np.int32)},
        {"total": np.array(3, np.int32)},
        "a - - - - lengths total",
    ),
    "embed": (
        "EmbedLayerNormalization",
        2,
        {},
        {"a": RNG.integers(0, 5, (2, 3)).astype(np.int32)},
        {"w": f32(5, 4), "p": f32(6, 4), "g": f32(4), "b": f32(4)},
        "a - w p - g b",
    ),
    "dynamic-quantize-matmul": (
        "DynamicQuantizeMatMul",
        1,
        {},
        {"a": f32(2, 3, 4)},
        {"w": u8(4, 5), **Q},
        "a w scale zero",
    ),
    "matmul-integer-to-float": (
        "MatMulIntegerToFloat",
        1,
        {},
        {"a": u8(3, 4)},
        {"w": u8(4, 5), **Q},
        "a w scale scale zero zero",
    ),
    "matmul-n-bits": (
        "MatMulNBits",
        1,
        {"K": 32, "N": 6, "bits": 4, "block_size": 32},
        {"a": f32(2, 3, 32)},
        {"w": u8(6, 1, 16), "s": f32(6)},
        "a w s",
    ),
    "qlinear-add": (
        "QLinearAdd",
        1,
        {},
        {"a": u8(2, 3, 4), "b": u8(3, 1)},
        Q,
        "a scale zero b scale zero scale zero",
    ),
    "qlinear-concat": (
        "QLinearConcat",
        1,
        {"axis": 1},
        {"a": u8(2, 3), "b": u8(2, 4)},
        Q,
        "scale zero a scale zero b scale zero",
    ),
    "qlinear-average-pool": (
        "QLinearAveragePool",
        1,
        {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
        {"a": u8(2, 3, 9, 8)},
        Q,
        "a scale zero scale zero",
    ),
    "qlinear-global-average-pool": (
        "QLinearGlobalAveragePool",
        1,
        {"channels_last": 1},
        {"a": u8(2, 5, 6, 3)},
        Q,
        "a scale zero scale zero",
    ),
    "qlinear-where": (
        "QLinearWhere",
        1,
        {},
        {"c": np.array([[True], [False]]), "a": u8(2, 3), "b": u8(3)},
        Q,
        "c a scale zero b scale zero scale zero",
    ),
    "qgemm": (
        "QGemm",
        1,
        {"transB": 1},
        {"a": u8(3, 4)},
        {"w": u8(5, 4), **Q},
        "a scale zero w scale zero - scale zero",
    ),
    "expand-dims": ("ExpandDims", 1, {}, {"a": f32(2, 3)}, {"x": np.array(-1, np.int32)}, "a x"),
    "inverse": ("Inverse", 1, {}, {"a": f32(2, 3, 3)}, {}, "a"),
    "trilu": ("Trilu", 1, {}, {"a": f32(2, 3, 4)}, {}, "a"),
}


@pytest.mark.parametrize("name", CASES)
def test_against_onnxruntime(name: str) -> None:
    op_type, outputs, attributes, feeds, constants, order = CASES[name]
    names = ["" if operand == "-" else operand for operand in order.split()]
    results = [f"y{k}" for k in range(outputs)]
    node = helper.make_node(op_type, names, results, domain="com.microsoft", **attributes)
    given = [
        helper.make_tensor_value_info(key, helper.np_dtype_to_tensor_dtype(array.dtype), [None] * array.ndim)
        for key, array in feeds.items()
    ]
    held = [numpy_helper.from_array(array, key) for key, array in constants.items()]
    proto = helper.make_model(
        helper.make_graph([node], "g", given, [onnx.ValueInfoProto(name=n) for n in results], held),
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)],
        ir_version=8,
    )
    produced = sweep.run(proto, feeds)
    model = load(proto)
    facts = Facts(model.graph).settle()
    tally: Counter[str] = Counter()
    faults = list(sweep.contradictions(facts, produced, sweep.sizes_of(facts, feeds), tally))
    assert not faults
    assert not facts.warnings
    assert facts.rank(facts.graph.outputs[0]) is not None
    assert facts.dtype(facts.graph.outputs[0]) is not None


@pytest.mark.parametrize(
    ("op_type", "attributes", "given", "expected"),
    [
        ("LabelEncoder", {"keys_strings": ["a"], "values_int64s": [1]}, "string[N,2] x", "int64[N, 2]"),
        ("LabelEncoder", {"keys_int64s": [1], "values_strings": ["a"]}, "int64[N] x", "string[N]"),
        ("OneHotEncoder", {"cats_int64s": [1, 2, 3]}, "int64[N,2] x", "float[N, 2, 3]"),
        ("ArrayFeatureExtractor", {}, "float[N,4] x, int64[2] i", "float[N, 2]"),
        ("Scaler", {"scale": [1.0], "offset": [0.0]}, "int64[N,4] x", "float[N, 4]"),
        ("Binarizer", {"threshold": 0.5}, "float[N,4] x", "float[N, 4]"),
        ("Normalizer", {"norm": "L2"}, "double[N,4] x", "float[N, 4]"),
        ("FeatureVectorizer", {"inputdimensions": [4, 2]}, "float[N,4] x, float[N,2] i", "float[N, 6]"),
        ("TreeEnsemble", {"n_targets": 3}, "double[N,4] x", "double[N, 3]"),
        ("CategoryMapper", {"cats_int64s": [1], "cats_strings": ["a"]}, "string[N] x", "int64[N]"),
    ],
)
def test_classical(op_type: str, attributes: dict[str, object], given: str, expected: str) -> None:
    from optimizer.ir import DType, Graph, TensorType, ValueInfo

    graph = Graph("g", {"ai.onnx.ml": 5, "": 17})
    operands = []
    for text in given.split(", "):
        kind, name = text.split("[")[0], text.split()[-1]
        dims = text.split("[")[1].split("]")[0].split(",")
        shape = tuple(int(d) if d.isdigit() else d for d in dims)
        operands.append(graph.add_input(ValueInfo(name, TensorType(DType[kind.upper()], shape))))
    value = graph.add(op_type, operands, attributes, domain="ai.onnx.ml").value()
    assert str(Facts(graph).of(value)) == expected
