"""ai.onnx.ml: the linear models and LabelEncoder."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from optimizer.runtime.call import Call
from optimizer.runtime.kernels.erf import sigmoid_into
from optimizer.runtime.kernels.ml import ML, text_array
from optimizer.runtime.precision import Array
from optimizer.runtime.registry import kernel


@kernel("LinearRegressor", domain=ML)
def linear_regressor(call: Call, x: Array) -> Array:
    """x C' + intercepts, transformed; a row of coefficients per target."""
    scores = _scores(call, x, call.attr("targets", 1))
    transform = call.attr("post_transform", "NONE")
    if scores.shape[1] == 1 and transform in ("LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"):
        # onnxruntime leaves a single target as it is; the standard knows of no such exception.
        raise ValueError(f"post_transform {transform} of one target is not implemented")
    return _transformed(scores, transform)


@kernel("LinearClassifier", domain=ML)
def linear_classifier(call: Call, x: Array) -> tuple[Array, Array]:
    """(labels, transformed scores). One row of coefficients for two labels is that of the second one."""
    strings, numbers = call.attr("classlabels_strings"), call.attr("classlabels_ints")
    labels = text_array(strings, (-1,)) if strings else np.array(numbers or (), np.int64)
    rows = len(call.attr("coefficients")) // max(_matrix(x).shape[1], 1)
    scores, transform = _scores(call, x, rows), call.attr("post_transform", "NONE")
    if rows == 1 and len(labels) == 2 and transform in ("NONE", "LOGISTIC"):
        chosen = (scores[:, 0] > 0).astype(np.int64)
        second = _transformed(scores, transform)
        return labels[chosen], np.concatenate([1 - second, second], 1)
    if rows != len(labels) or rows < 2:
        raise ValueError(f"{rows} rows of coefficients for {len(labels)} labels and {transform}")
    return labels[scores.argmax(1)], _transformed(scores, transform)


def _matrix(x: Array) -> Array:
    return x.reshape(1, -1) if x.ndim == 1 else x


def _scores(call: Call, x: Array, rows: int) -> Array:
    """[N, rows]"""
    kind = call.real(np.float32)
    weights = np.array(call.attr("coefficients"), kind).reshape(rows, -1)
    scores = np.asarray(_matrix(x).astype(kind) @ weights.T)
    intercepts = call.attr("intercepts")
    return np.asarray(scores + np.array(intercepts, kind)) if intercepts else scores


def _transformed(scores: Array, transform: str) -> Array:
    """Scores [N, classes] after one of the transforms that the operators of this domain share."""
    if transform == "NONE":
        return scores
    if transform == "LOGISTIC":
        y = np.empty_like(scores)
        sigmoid_into(scores, y)
        return y
    if transform == "PROBIT":
        return _probit(scores)
    if transform not in ("SOFTMAX", "SOFTMAX_ZERO"):
        raise ValueError(f"unknown post_transform '{transform}'")
    top = scores.max(1, keepdims=True)
    powers = np.exp(scores - top)
    if transform == "SOFTMAX":
        return np.asarray(powers / powers.sum(1, keepdims=True))
    zero = np.abs(scores) <= 1e-7  # they stay zero, and count for nothing
    total = np.where(zero, 0, powers).sum(1, keepdims=True)
    return np.asarray(np.where(zero, scores * np.exp(-top), powers) / total).astype(scores.dtype)


def _probit(p: Array) -> Array:
    """The quantile of the normal distribution, by Winitzki's approximation, on which runtimes agree."""
    x = 2 * p - 1
    a, logarithm = 0.147, np.log((1 - x) * (1 + x))
    half = 2 / (math.pi * a) + logarithm / 2
    root = np.sqrt(np.sqrt(half * half - logarithm / a) - half)
    return np.asarray(math.sqrt(2) * np.copysign(root, x)).astype(p.dtype)


@kernel("LabelEncoder", domain=ML, exact=True)
def label_encoder_1(call: Call, x: Array) -> Array:
    """Version 1: names to their places in a list, or places to names."""
    names = call.attr("classes_strings", ())
    if x.dtype == object:
        places = {name: place for place, name in enumerate(names)}
        missing = call.attr("default_int64", -1)
        return np.array([places.get(text, missing) for text in x.reshape(-1)], np.int64).reshape(x.shape)
    missing = call.attr("default_string", "_Unused")
    found = [names[i] if 0 <= i < len(names) else missing for i in x.reshape(-1).tolist()]
    return text_array(found, x.shape)


@kernel("LabelEncoder", 2, domain=ML, exact=True)
@kernel("LabelEncoder", 4, domain=ML, exact=True)
def label_encoder(call: Call, x: Array) -> Array:
    """Each element looked up among the keys; of equal keys the last one counts, NaN is a key too."""
    keys, _ = _listed(call, "keys")
    values, default = _listed(call, "values")
    if len(keys) != len(values):
        raise ValueError(f"{len(keys)} keys for {len(values)} values")
    table = {_key(k): v for k, v in zip(keys.tolist(), values.tolist(), strict=True)}
    found = [table.get(_key(k), default) for k in x.reshape(-1).tolist()]
    if values.dtype == object:
        return text_array(found, x.shape)
    return np.array(found, values.dtype).reshape(x.shape)


def _listed(call: Call, name: str) -> tuple[Array, Any]:
    """The list called ``name`` in whatever attribute holds it, and what stands for a missing element."""
    tensor: Array | None = call.attr(f"{name}_tensor")
    if tensor is not None:
        given = call.attr("default_tensor")
        missing: Any = "_Unused" if tensor.dtype == object else -0.0 if tensor.dtype.kind == "f" else -1
        return tensor.reshape(-1), missing if given is None else given.reshape(-1).tolist()[0]
    strings: Sequence[str] | None = call.attr(f"{name}_strings")
    if strings:
        return text_array(strings, (-1,)), call.attr("default_string", "_Unused")
    numbers = call.attr(f"{name}_int64s")
    if numbers:
        return np.array(numbers, np.int64), call.attr("default_int64", -1)
    floats = np.array(call.attr(f"{name}_floats", ()), call.real(np.float32))
    return floats, call.attr("default_float", -0.0)


def _key(value: Any) -> Any:
    return "NaN" if isinstance(value, float) and math.isnan(value) else value
