"""ai.onnx.ml ops that deal with maps, or that are a line of NumPy. A map is a Python ``dict``."""

from __future__ import annotations

from typing import Any

import numpy as np

from optimizer.runtime.call import Call
from optimizer.runtime.precision import Array, widen
from optimizer.runtime.registry import kernel

ML = "ai.onnx.ml"


def text_array(texts: Any, shape: tuple[int, ...]) -> Array:
    """Strings as a tensor."""
    out = np.empty(len(texts), object)
    out[:] = texts
    return out.reshape(shape)


@kernel("ZipMap", domain=ML, exact=True)
def zip_map(call: Call, x: Array) -> list[dict[Any, Any]]:
    """One map per row: class label to value."""
    labels = call.attr("classlabels_int64s") or call.attr("classlabels_strings") or ()
    rows = x.reshape(1, -1) if x.ndim == 1 else x
    if rows.shape[1] != len(labels):
        raise ValueError(f"{rows.shape[1]} columns for {len(labels)} labels")
    return [dict(zip(labels, row.tolist(), strict=True)) for row in rows]


@kernel("CastMap", domain=ML, exact=True)
def cast_map(call: Call, x: dict[int, Any]) -> Array:
    """The values of a map in the order of its keys, or (``SPARSE``) at the places its keys name."""
    target = call.attr("cast_to", "TO_FLOAT")
    convert: Any = {"TO_FLOAT": float, "TO_INT64": int, "TO_STRING": str}[target]
    values = {key: convert(x[key]) for key in sorted(x)}
    if call.attr("map_form", "DENSE") == "SPARSE":
        size = call.attr("max_map", 1)
        if any(not 0 <= key < size for key in values):
            raise ValueError(f"a key is outside [0, {size})")
        values = {place: values.get(place, convert(0) if convert is not str else "") for place in range(size)}
    if convert is str:
        return text_array(list(values.values()), (1, len(values)))
    return np.array([list(values.values())], call.real(np.float32) if convert is float else np.int64)


@kernel("CategoryMapper", domain=ML, exact=True)
def category_mapper(call: Call, x: Array) -> Array:
    """Strings to integers or back."""
    numbers, texts = call.attr("cats_int64s", ()), call.attr("cats_strings", ())
    flat = x.reshape(-1).tolist()
    if x.dtype.kind == "O":
        to_number = dict(zip(texts, numbers, strict=True))
        default = call.attr("default_int64", -1)
        return np.array([to_number.get(v, default) for v in flat], np.int64).reshape(x.shape)
    to_text = dict(zip(numbers, texts, strict=True))
    unknown = call.attr("default_string", "_Unused")
    return text_array([to_text.get(v, unknown) for v in flat], x.shape)


@kernel("DictVectorizer", domain=ML, exact=True)
def dict_vectorizer(call: Call, x: dict[Any, Any]) -> Array:
    """The values of a map at the places of their keys in a vocabulary, zero elsewhere."""
    vocabulary = call.attr("string_vocabulary") or call.attr("int64_vocabulary") or ()
    values = list(x.values())
    if values and isinstance(values[0], str):
        return text_array([x.get(key, "") for key in vocabulary], (1, len(vocabulary)))
    whole = bool(values) and isinstance(values[0], (int, np.integer))
    return np.array([[x.get(key, 0) for key in vocabulary]], np.int64 if whole else call.real(np.float32))


@kernel("Normalizer", domain=ML)
def normalizer(call: Call, x: Array) -> Array:
    """Rows divided by their maximum, sum of magnitudes, or length; rows of norm zero stay."""
    wide = widen(x).astype(call.real(np.float32))
    norm = call.attr("norm", "MAX")
    if norm == "MAX":
        size = wide.max(-1, keepdims=True)
    elif norm == "L1":
        size = np.abs(wide).sum(-1, keepdims=True)
    elif norm == "L2":
        size = np.sqrt(np.square(wide).sum(-1, keepdims=True))
    else:
        raise ValueError(f"unknown norm '{norm}'")
    out: Array = wide / np.where(size == 0, np.ones((), wide.dtype), size)
    return out


@kernel("Scaler", domain=ML, exact=True)
def scaler(call: Call, x: Array) -> Array:
    """``(x - offset) * scale``."""
    dtype = call.real(np.float32)
    offset, scale = (np.asarray(call.attr(n, d), dtype) for n, d in (("offset", 0.0), ("scale", 1.0)))
    out: Array = (x.astype(dtype) - offset) * scale
    return out


@kernel("Binarizer", domain=ML, exact=True)
def binarizer(call: Call, x: Array) -> Array:
    """One where greater than ``threshold``, else zero."""
    above: Array = np.greater(x, np.asarray(call.attr("threshold", 0.0), x.dtype))
    return above.astype(x.dtype)
