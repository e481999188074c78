"""Delegated ops, ops run by their schema's body, strings, maps and random ops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernel_oracle import assert_close, run_onnxruntime

from optimizer.ir import Graph
from optimizer.runtime import REGISTRY, ExecutionError, Session, find_kernel
from optimizer.runtime.delegate import TRUSTED, run_reference
from optimizer.runtime.kernels import load_kernels

RNG = np.random.default_rng(11)


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def run_node(
    op: str,
    inputs: list[Any],
    attributes: dict[str, Any] | None = None,
    *,
    opset: int,
    domain: str = "",
    outputs: int = 1,
    **options: Any,
) -> list[Any]:
    """One node through a whole Session, however it is implemented."""
    graph = Graph("g", {"": opset if not domain else 20, domain: opset})
    values = [None if x is None else graph.add_input(f"x{i}") for i, x in enumerate(inputs)]
    node = graph.add(op, values, attributes, outputs, domain=domain)
    graph.set_outputs([node.value(i) for i in range(outputs)], [f"y{i}" for i in range(outputs)])
    feeds = {f"x{i}": x for i, x in enumerate(inputs) if x is not None}
    return list(Session(graph, **options).run(feeds).values())


def scalar(value: float, dtype: Any = np.int64) -> np.ndarray:
    return np.array(value, dtype)


DELEGATED: list[tuple[str, list[Any], dict[str, Any], int, str, int]] = [
    ("BlackmanWindow", [scalar(9)], {}, 17, "", 1),
    ("HammingWindow", [scalar(9)], {"periodic": 0}, 17, "", 1),
    ("HannWindow", [scalar(9)], {}, 17, "", 1),
    ("DFT", [normal(1, 8, 2)], {"axis": 1}, 17, "", 1),
    ("DFT", [normal(1, 8, 1)], {"axis": 1, "onesided": 1}, 17, "", 1),
    ("DFT", [normal(1, 8, 2), None, scalar(1)], {"inverse": 1}, 20, "", 1),
    ("DFT", [normal(2, 8, 3, 1), scalar(6), scalar(1)], {}, 20, "", 1),
    ("STFT", [normal(1, 32, 1), scalar(4), normal(8), scalar(8)], {}, 17, "", 1),
    (
        "MelWeightMatrix",
        [scalar(8), scalar(32), scalar(8000), scalar(0, np.float32), scalar(4000, np.float32)],
        {},
        17,
        "",
        1,
    ),
    ("Col2Im", [normal(1, 4, 9), np.array([4, 4]), np.array([2, 2])], {}, 18, "", 1),
    ("AffineGrid", [normal(2, 2, 3), np.array([2, 1, 3, 4])], {}, 20, "", 1),
    ("AffineGrid", [normal(2, 2, 3), np.array([2, 1, 3, 4])], {"align_corners": 1}, 20, "", 1),
    ("Det", [normal(2, 3, 3)], {}, 11, "", 1),
    ("Det", [normal(2, 3, 3)], {}, 22, "", 1),
    ("NegativeLogLikelihoodLoss", [normal(3, 5), np.array([0, 4, 2])], {}, 12, "", 1),
    ("NegativeLogLikelihoodLoss", [normal(3, 5), np.array([0, 4, 2])], {"ignore_index": 4}, 13, "", 1),
    ("NegativeLogLikelihoodLoss", [normal(3, 5), np.array([0, 4, 2]), abs(normal(5))], {}, 22, "", 1),
    ("SoftmaxCrossEntropyLoss", [normal(3, 5), np.array([0, 4, 2])], {}, 12, "", 2),
    ("SoftmaxCrossEntropyLoss", [normal(3, 5), np.array([0, 4, 2])], {"reduction": "sum"}, 13, "", 1),
    (
        "DeformConv",
        [normal(1, 1, 4, 4), normal(1, 1, 2, 2), 0.3 * normal(1, 8, 3, 3)],
        {"kernel_shape": [2, 2]},
        19,
        "",
        1,
    ),
    (
        "DeformConv",
        [normal(1, 2, 4, 4), normal(2, 2, 2, 2), 0.3 * normal(1, 8, 3, 3), normal(2), normal(1, 4, 3, 3)],
        {"kernel_shape": [2, 2]},
        22,
        "",
        1,
    ),
    (
        "TfIdfVectorizer",
        [np.array([1, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8])],
        {
            "mode": "TF",
            "min_gram_length": 2,
            "max_gram_length": 2,
            "max_skip_count": 0,
            "ngram_counts": [0, 4],
            "ngram_indexes": [0, 1, 2, 3, 4, 5, 6],
            "pool_int64s": [2, 3, 5, 4, 5, 6, 7, 8, 6, 7],
        },
        9,
        "",
        1,
    ),
    ("Imputer", [np.float32([[1, np.nan]])], {"imputed_value_floats": [7.0]}, 1, "ai.onnx.ml", 1),
    ("OneHotEncoder", [np.array([2, 5])], {"cats_int64s": [1, 2, 3], "zeros": 1}, 1, "ai.onnx.ml", 1),
    ("FeatureVectorizer", [normal(2, 1), normal(2, 2)], {"inputdimensions": [1, 2]}, 1, "ai.onnx.ml", 1),
]
BODIES: list[tuple[str, list[Any], dict[str, Any], int, str, int]] = [
    ("Mish", [normal(2, 3)], {}, 18, "", 1),
    ("Shrink", [normal(2, 3)], {}, 9, "", 1),
    ("Shrink", [normal(2, 3)], {"lambd": 0.1, "bias": 0.2}, 9, "", 1),
    ("Celu", [normal(2, 3)], {"alpha": 0.7}, 12, "", 1),
    ("MeanVarianceNormalization", [normal(2, 3, 4, 4)], {}, 13, "", 1),
    ("MeanVarianceNormalization", [normal(2, 3, 4)], {"axes": [1]}, 13, "", 1),
]
OWN: list[tuple[str, list[Any], dict[str, Any], int, str, int]] = [
    (
        "LabelEncoder",
        [np.array([2, 9])],
        {"keys_int64s": [1, 2], "values_floats": [0.5, 1.5], "default_float": -1.0},
        2,
        "ai.onnx.ml",
        1,
    ),
    (
        "LinearRegressor",
        [normal(2, 3)],
        {"coefficients": [0.5, -1.0, 2.0], "intercepts": [0.25]},
        1,
        "ai.onnx.ml",
        1,
    ),
    ("Normalizer", [np.float32([[-4, 2, 1], [0, 0, 0]])], {"norm": "MAX"}, 1, "ai.onnx.ml", 1),
    ("Normalizer", [normal(2, 3)], {"norm": "L1"}, 1, "ai.onnx.ml", 1),
    ("Normalizer", [abs(normal(2, 3))], {"norm": "L2"}, 1, "ai.onnx.ml", 1),
    ("Scaler", [normal(2, 3)], {"offset": [0.5, 1.0, -1.0], "scale": [2.0, 3.0, 4.0]}, 1, "ai.onnx.ml", 1),
    ("Binarizer", [normal(2, 3)], {"threshold": 0.25}, 1, "ai.onnx.ml", 1),
    ("ArrayFeatureExtractor", [normal(2, 3), np.array([[2, 0]])], {}, 1, "ai.onnx.ml", 1),
    (
        "CategoryMapper",
        [np.array([1, 7])],
        {"cats_int64s": [1, 2], "cats_strings": ["a", "b"], "default_string": "?"},
        1,
        "ai.onnx.ml",
        1,
    ),
    ("StringConcat", [np.array(["a", "b"], object), np.array("c", object)], {}, 20, "", 1),
    ("StringSplit", [np.array(["a,b", "c", ",d,"], object)], {"delimiter": ","}, 20, "", 2),
    ("StringSplit", [np.array([" a  b c"], object)], {"maxsplit": 1}, 20, "", 2),
    ("RegexFullMatch", [np.array(["ab", "abc"], object)], {"pattern": "a."}, 20, "", 1),
]


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "opset", "domain", "outputs"), DELEGATED + BODIES + OWN
)
def test_against_onnxruntime(
    op: str, inputs: list[Any], attributes: dict[str, Any], opset: int, domain: str, outputs: int
) -> None:
    expected = run_onnxruntime(op, inputs, attributes, opset=opset, domain=domain, outputs=outputs)
    actual = run_node(op, inputs, attributes, opset=opset, domain=domain, outputs=outputs)
    for a, e in zip(actual, expected, strict=True):
        assert_close(a, e, scale=16 if op in ("DFT", "STFT") else 1)


def test_delegates_are_what_the_table_says() -> None:
    for op, _, _, opset, domain, _ in DELEGATED:
        found = find_kernel(domain, op, opset)
        assert found is not None
        assert found.run is run_reference
    load_kernels()
    listed = {(domain, op) for domain, ops in TRUSTED.items() for op in ops}
    assert not listed & {(kernel.domain, kernel.op_type) for kernel in REGISTRY}


def test_a_delegate_leaves_out_what_nothing_reads() -> None:
    graph = Graph("g", {"": 13})
    x, labels = graph.add_input("x"), graph.add_input("labels")
    node = graph.add("SoftmaxCrossEntropyLoss", [x, labels], outputs=2)
    graph.set_outputs([node.value(1)], ["logs"])
    logs = Session(graph).run({"x": normal(2, 3), "labels": np.array([0, 1])})["logs"]
    e = np.exp(normal(2, 3).astype(np.float64))
    np.testing.assert_allclose(logs, np.log(e / e.sum(1, keepdims=True)), rtol=1e-5)


def test_delegates_in_truth_mode_give_doubles() -> None:
    assert run_node("HannWindow", [scalar(9)], {}, opset=17, truth=True)[0].dtype == np.float64


def test_string_normalizer() -> None:
    words = np.array(["The", "cat", "the"], object)
    attributes = {"case_change_action": "LOWER", "stopwords": ["the"], "is_case_sensitive": 0}
    assert run_node("StringNormalizer", [words], attributes, opset=10)[0].tolist() == ["cat"]


# ---------------------------------------------------------------- maps


def test_maps() -> None:
    scores = np.float32([[0.25, 0.75], [1, 0]])
    maps = run_node("ZipMap", [scores], {"classlabels_strings": ["a", "b"]}, opset=1, domain="ai.onnx.ml")[0]
    assert maps == [{"a": 0.25, "b": 0.75}, {"a": 1, "b": 0}]
    with pytest.raises(ExecutionError, match="2 columns for 3 labels"):
        run_node("ZipMap", [scores], {"classlabels_int64s": [1, 2, 3]}, opset=1, domain="ai.onnx.ml")
    ml: dict[str, Any] = {"opset": 1, "domain": "ai.onnx.ml"}
    counts = {5: 2.0, 1: 3.0}
    assert run_node("CastMap", [counts], {}, **ml)[0].tolist() == [[3, 2]]
    sparse = run_node("CastMap", [counts], {"map_form": "SPARSE", "max_map": 6, "cast_to": "TO_INT64"}, **ml)[
        0
    ]
    assert sparse.tolist() == [[0, 3, 0, 0, 0, 2]]
    vector = run_node("DictVectorizer", [{"a": 4, "c": 8}], {"string_vocabulary": ["a", "b", "c"]}, **ml)[0]
    assert vector.tolist() == [[4, 0, 8]]


# ---------------------------------------------------------------- random ops


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "dtype"),
    [
        ("RandomUniform", [], {"shape": [2000], "low": 2.0, "high": 4.0}, np.float32),
        ("RandomUniformLike", [np.zeros(2000, np.float64)], {"low": 2.0, "high": 4.0}, np.float64),
        ("RandomNormal", [], {"shape": [2000], "mean": 3.0, "scale": 0.5, "dtype": 10}, np.float16),
        ("RandomNormalLike", [np.zeros(2000, np.int32)], {"mean": 3.0, "scale": 0.5, "dtype": 1}, np.float32),
    ],
)
def test_random(op: str, inputs: list[Any], attributes: dict[str, Any], dtype: Any) -> None:
    drawn = run_node(op, inputs, attributes, opset=22)[0]
    assert drawn.dtype == dtype
    assert drawn.shape == (2000,)
    assert abs(drawn.astype(np.float64).mean() - 3) < 0.1
    assert 0.4 < drawn.astype(np.float64).std() < 0.65
    again = run_node(op, inputs, attributes, opset=22)[0]
    np.testing.assert_array_equal(drawn, again)
    other = run_node(op, inputs, attributes, opset=22, seed=1)[0]
    assert np.any(drawn != other)
    fixed = [run_node(op, inputs, {**attributes, "seed": 7.0}, opset=22, seed=s)[0] for s in (0, 1)]
    np.testing.assert_array_equal(*fixed)


def test_every_iteration_and_node_draws_anew() -> None:
    graph = Graph("g", {"": 22})
    nodes = [graph.add("RandomUniform", [], {"shape": [4]}) for _ in range(2)]
    graph.set_outputs([n.value() for n in nodes], ["a", "b"])
    session = Session(graph)
    first, second = session.run(), session.run()
    assert np.any(first["a"] != first["b"])
    np.testing.assert_array_equal(first["a"], second["a"])


def test_bernoulli_and_multinomial() -> None:
    chances = np.full(4000, 0.25, np.float32)
    assert run_node("Bernoulli", [chances], opset=22)[0].dtype == np.float32
    drawn = run_node("Bernoulli", [chances], {"dtype": 7}, opset=15)[0]
    assert drawn.dtype == np.int64
    assert abs(drawn.mean() - 0.25) < 0.03
    logits = np.log(np.float32([[0.2, 0.8], [1, 0]]) + np.float32(1e-30))
    newer = run_node("Multinomial", [logits], {"sample_size": 9, "dtype": 7}, opset=22)[0]
    assert (newer.dtype, newer.shape) == (np.int64, (2, 9))
    classes = run_node("Multinomial", [logits], {"sample_size": 4000}, opset=7)[0]
    assert classes.dtype == np.int32
    np.testing.assert_allclose(classes.mean(1), [0.8, 0], atol=0.03)


@pytest.mark.parametrize("opset", [7, 10, 12, 13, 22])
def test_dropout_does_nothing_at_inference(opset: int) -> None:
    x = normal(2, 3)
    kept, mask = run_node("Dropout", [x], {"ratio": 0.5} if opset < 12 else {}, opset=opset, outputs=2)
    np.testing.assert_array_equal(kept, x)
    assert mask.dtype == (np.float32 if opset < 10 else bool)
    assert mask.all()


def test_dropout_in_training() -> None:
    x = np.ones(4000, np.float32)
    inputs = [x, np.array(0.75, np.float32), np.array(True)]
    kept, mask = run_node("Dropout", inputs, {"seed": 3}, opset=13, outputs=2)
    assert set(np.unique(kept)) == {0, 4}
    np.testing.assert_array_equal(kept != 0, mask)
    assert abs(mask.mean() - 0.25) < 0.03
    off = run_node("Dropout", [x, np.array(0.75, np.float32), np.array(False)], opset=13)[0]
    np.testing.assert_array_equal(off, x)
    old = run_node("Dropout", [x], {"is_test": 1}, opset=6)[0]
    np.testing.assert_array_equal(old, x)
    assert np.any(run_node("Dropout", [x], {}, opset=1)[0] == 0)
