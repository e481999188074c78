"""ai.onnx.ml: linear models, label encoders; and strings, all against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernel_oracle import assert_close, check, run_kernel, run_onnxruntime

from optimizer.ir import ValueInfo
from optimizer.runtime import Call, find_kernel

ML = "ai.onnx.ml"
X = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)
C = [float(v) for v in np.random.default_rng(1).standard_normal(9).astype(np.float32)]
TRANSFORMS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO")


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_linear_regressor(transform: str) -> None:
    attributes = {"coefficients": C, "targets": 3, "post_transform": transform}
    check("LinearRegressor", [X], attributes, opset=1, domain=ML)
    attributes |= {"intercepts": [0.5, -1.0, 0.25]}
    check("LinearRegressor", [X], attributes, opset=1, domain=ML)
    whole = np.rint(X * 2)
    (expected,) = check("LinearRegressor", [whole], attributes, opset=1, domain=ML)
    for dtype in (np.float64, np.int64, np.int32):  # onnxruntime takes none of these
        (y,) = run_kernel("LinearRegressor", [whole.astype(dtype)], attributes, opset=1, domain=ML)
        assert_close(y, expected)


def test_one_target() -> None:
    attributes = {"coefficients": C[:3], "post_transform": "LOGISTIC"}
    check("LinearRegressor", [X], {"coefficients": C[:3]}, opset=1, domain=ML)
    with pytest.raises(ValueError, match="LOGISTIC of one target"):
        run_kernel("LinearRegressor", [X], attributes, opset=1, domain=ML)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize(
    "labels", [{"classlabels_ints": [5, 7, 9]}, {"classlabels_strings": ["a", "b", "c"]}]
)
def test_linear_classifier(labels: dict[str, Any], transform: str) -> None:
    attributes = {"coefficients": C, "post_transform": transform, **labels}
    zero, some = {"intercepts": [0.0, 0.0, 0.0]}, {"intercepts": [0.5, -1.0, 0.25]}
    check("LinearClassifier", [X * 40], attributes | some, opset=1, domain=ML, outputs=2)
    expected = check("LinearClassifier", [X], attributes | zero, opset=1, domain=ML, outputs=2)
    made = run_kernel("LinearClassifier", [X], attributes, opset=1, domain=ML, outputs=2)
    for y, e in zip(made, expected, strict=True):
        assert_close(y, e)


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC"])
def test_one_row_of_coefficients_for_two_labels(transform: str) -> None:
    attributes = {
        "coefficients": C[:3],
        "intercepts": [0.1],
        "classlabels_ints": [5, 7],
        "post_transform": transform,
    }
    check("LinearClassifier", [X], attributes, opset=1, domain=ML, outputs=2)


def test_probit() -> None:
    p = np.float32([[0.1, 0.5, 0.75]])
    attributes = {
        "coefficients": [1.0, 0, 0, 0, 1, 0, 0, 0, 1],
        "targets": 3,
        "post_transform": "PROBIT",
    }
    check("LinearRegressor", [p], attributes, opset=1, domain=ML, scale=8)


def test_label_encoder_1_goes_both_ways() -> None:
    names = {"classes_strings": ["a", "b", "c"]}
    texts = np.array([["b", "x"], ["c", "a"]], object)
    check("LabelEncoder", [texts], names | {"default_int64": -7}, opset=1, domain=ML)
    check("LabelEncoder", [np.int64([2, 9, 0])], names | {"default_string": "?"}, opset=1, domain=ML)


@pytest.mark.parametrize("opset", [2, 4])
@pytest.mark.parametrize(
    ("x", "keys"),
    [
        (np.array([["b", "x"]], object), {"keys_strings": ["a", "b"]}),
        (np.int64([3, 1, 4]), {"keys_int64s": [1, 3]}),
        (np.float32([0.1, np.nan, 7]), {"keys_floats": [0.1, float("nan")]}),
    ],
)
@pytest.mark.parametrize(
    "values",
    [
        {"values_strings": ["p", "q"], "default_string": "?"},
        {"values_int64s": [10, 20], "default_int64": -5},
        {"values_floats": [0.5, 1.5], "default_float": -2.5},
    ],
)
def test_label_encoder(x: np.ndarray, keys: dict[str, Any], values: dict[str, Any], opset: int) -> None:
    if opset == 2 and x.dtype == np.float32:  # onnxruntime finds no NaN then, though the text says so
        x = x[[0, 2]]
    for given in (values, {k: v for k, v in values.items() if k.startswith("values")}):
        kept = {k: [float(np.float32(f)) for f in v] if k == "keys_floats" else v for k, v in keys.items()}
        check("LabelEncoder", [x], kept | given, opset=opset, domain=ML)


@pytest.mark.parametrize("stops", [{}, {"stopwords": ["the", "Ünï"]}])
@pytest.mark.parametrize("action", ["NONE", "LOWER", "UPPER"])
@pytest.mark.parametrize("sensitive", [0, 1])
def test_string_normalizer(stops: dict[str, Any], action: str, sensitive: int) -> None:
    words = np.array(["The", "", "the", "ÜNÏ", "Zebra 12"], object)
    seen = (lambda w: w) if sensitive else str.lower
    dropped = {seen(w) for w in stops.get("stopwords", ())}
    change = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}[action]
    expected = [change(w) for w in words if seen(w) not in dropped]
    attributes = {"case_change_action": action, "is_case_sensitive": sensitive, **stops}
    for x in (words, words[None]):
        (y,) = run_kernel("StringNormalizer", [x], attributes, opset=10)
        assert y.shape == (*x.shape[:-1], len(expected))
        assert y.reshape(-1).tolist() == expected
    (none,) = run_kernel("StringNormalizer", [words[:0]], attributes, opset=10)
    assert none.tolist() == [""]


def test_split_at_spaces_drops_them_at_both_ends() -> None:
    texts = np.array([" a  b c ", "x ", ""], object)
    for attributes in ({}, {"maxsplit": 1}):
        check("StringSplit", [texts], attributes, opset=20, outputs=2)
    check("StringSplit", [texts[:2]], {"delimiter": " ", "maxsplit": 2}, opset=20, outputs=2)


STUMP = {
    "nodes_treeids": [0, 0, 0],
    "nodes_nodeids": [0, 1, 2],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
    "nodes_featureids": [0, 0, 0],
    "nodes_values": [0.0, 0.0, 0.0],
    "nodes_truenodeids": [1, 0, 0],
    "nodes_falsenodeids": [2, 0, 0],
    "class_treeids": [0, 0],
    "class_nodeids": [1, 2],
    "classlabels_int64s": [0, 1],
}


@pytest.mark.parametrize(
    ("changes", "agreed"),
    [
        ({"class_ids": [0, 0], "class_weights": [0.25, 0.75]}, True),
        ({"class_ids": [0, 0], "class_weights": [-0.25, 0.75], "post_transform": "LOGISTIC"}, True),
        ({"class_ids": [1, 1], "class_weights": [0.25, 0.75]}, False),
        ({"class_ids": [0, 0], "class_weights": [-0.25, 0.75]}, False),
        ({"class_ids": [0, 0], "class_weights": [0.25, 0.75], "post_transform": "SOFTMAX"}, False),
    ],
)
def test_trees_of_two_labels_run_where_runtimes_agree(changes: dict[str, Any], agreed: bool) -> None:
    attributes = {k: tuple(v) if isinstance(v, list) else v for k, v in (STUMP | changes).items()}
    found = find_kernel(ML, "TreeEnsembleClassifier", 3)
    assert found is not None
    outputs = (ValueInfo("label"), ValueInfo("scores"))
    call = Call("TreeEnsembleClassifier", attributes, opset=3, domain=ML, since=found.since, outputs=outputs)
    if not agreed:
        with pytest.raises(ValueError, match="runtimes do not agree"):
            found.run(call, X)
        return
    expected = run_onnxruntime("TreeEnsembleClassifier", [X], STUMP | changes, opset=3, domain=ML, outputs=2)
    for y, e in zip(found.run(call, X), expected, strict=True):
        assert_close(y, e)
