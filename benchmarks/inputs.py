"""Valid inputs for a model: general rules, and a short table for models that need more.

General rules: floats are N(0, 1); an integer input that ends up as the indices of a Gather stays
within its table; masks are ones with a padded tail; free dims take ``FREE`` sizes by their place,
and a symbol has one size wherever it stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import TensorProto, helper

Feeds = dict[str, np.ndarray]

BATCH = (2, 3)
PLANE = (64, 96, 224, 32)  # axes 2 and on of a rank-4 input
LENGTH = (16, 11, 32)  # any other free axis
MAX_TOKEN = 30_000


@dataclass(frozen=True)
class Recipe:
    """What the general rules can't know about a model.

    Attributes:
        sizes: by input, the free dims' sizes as ``{axis: (first, second)}``.
        fixed: inputs with one valid value.
        ranges: integer inputs with their half-open range.
        images: inputs that are pictures: uniform in [0, 1).
        full_masks: masks that may have no padding.
    """

    sizes: dict[str, dict[int, tuple[int, int]]] = field(default_factory=dict)
    fixed: dict[str, int] = field(default_factory=dict)
    ranges: dict[str, tuple[int, int]] = field(default_factory=dict)
    images: tuple[str, ...] = ()
    full_masks: tuple[str, ...] = ()


RECIPES: tuple[tuple[str, Recipe], ...] = (
    # Text detection halves the picture five times.
    (r"PP_?-?OCRv\d_det", Recipe({"x": {0: (1, 1), 2: (160, 224), 3: (192, 128)}})),
    # Recognition and direction read lines of text 48 pixels high.
    (r"PP_?-?OCRv\d_rec", Recipe({"x": {0: (1, 2), 2: (48, 48), 3: (320, 160)}})),
    (r"ppocr_mobile_v2.*cls", Recipe({"x": {0: (1, 3), 2: (48, 48), 3: (192, 192)}})),
    (r"ddddocr_common$", Recipe({"input1": {3: (160, 224)}})),
    # Voice activity: windows of 512 samples behind 64 samples of context, at 16 kHz.
    (
        r"silero_vad(_16k_op15|_op18_ifless)?$",
        Recipe({"input": {0: (1, 2), 1: (576, 576)}, "state": {1: (1, 2)}}, fixed={"sr": 16_000}),
    ),
    (r"silero_vad_v6$", Recipe({"input": {0: (3, 7)}})),
    (r"basicpitch|basic_pitch", Recipe({"serving_default_input_2:0": {0: (1, 2)}})),
    (r"magika", Recipe(ranges={"bytes": (0, 256)})),
    # Detectors: box decoding wants pictures, not noise, and sides in steps of 32.
    (
        r"yolov\d",
        Recipe({"images": {0: (1, 2), 2: (320, 256), 3: (256, 192)}}, images=("images",)),
    ),
    (r"fasterrcnn", Recipe({"image": {1: (240, 200), 2: (320, 260)}}, images=("image",))),
    (r"unet", Recipe({"x": {2: (64, 96), 3: (96, 64)}})),
    # Text and pictures have batches of their own.
    (r"clip", Recipe({"input_ids": {0: (2, 3), 1: (12, 9)}, "pixel_values": {0: (2, 4)}})),
    # Fully masked rows of a causal decoder have no defined value.
    (r"gpt2|llama", Recipe(full_masks=("attention_mask",))),
)


def candidates(model: onnx.ModelProto, name: str, seed: int = 0) -> Iterator[tuple[str, Feeds]]:
    """Feeds at different sizes (where any are free), each with a text that tells the sizes."""
    recipe = next((r for pattern, r in RECIPES if re.search(pattern, name)), Recipe())
    initializers = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in initializers]
    tables = _table_sizes(model.graph)
    words = _known_strings(model.graph)
    for attempt in range(len(PLANE)):
        rng = np.random.default_rng([seed, attempt])
        symbols: dict[str, int] = {}
        feeds = {}
        for value in inputs:
            shape = _shape(value, recipe, attempt, symbols)
            feeds[value.name] = _content(value, shape, recipe, tables, words, rng)
        sizes = " ".join(f"{key}:{'x'.join(map(str, a.shape)) or 'scalar'}" for key, a in feeds.items())
        yield sizes, feeds


def _shape(
    value: onnx.ValueInfoProto, recipe: Recipe, attempt: int, symbols: dict[str, int]
) -> tuple[int, ...]:
    dims = value.type.tensor_type.shape.dim
    chosen = recipe.sizes.get(value.name, {})
    shape = []
    for axis, dim in enumerate(dims):
        if dim.HasField("dim_value") and dim.dim_value >= (0 if axis not in chosen else 1):
            shape.append(dim.dim_value)
            continue
        options = chosen.get(axis) or _free_sizes(axis, len(dims))
        size = options[min(attempt, len(options) - 1)]
        shape.append(symbols.setdefault(dim.dim_param, size) if dim.dim_param not in ("", "?") else size)
    return tuple(shape)


def _free_sizes(axis: int, rank: int) -> tuple[int, ...]:
    if axis == 0:
        return BATCH
    return PLANE if rank == 4 else LENGTH


def _content(
    value: onnx.ValueInfoProto,
    shape: tuple[int, ...],
    recipe: Recipe,
    tables: dict[str, int],
    words: list[str],
    rng: np.random.Generator,
) -> np.ndarray:
    name, kind = value.name, value.type.tensor_type.elem_type
    if kind == TensorProto.STRING:
        return np.array(rng.choice(words, size=shape), dtype=object)
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    if name in recipe.fixed:
        return np.full(shape, recipe.fixed[name], dtype)
    if "mask" in name.lower() and dtype.kind in "iub":
        return _mask(shape, dtype, padded=name not in recipe.full_masks)
    if dtype.kind in "iu":
        low, high = recipe.ranges.get(name) or _token_range(tables.get(name, 2))
        return rng.integers(low, high, shape).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if name in recipe.images:
        return rng.random(shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def _mask(shape: tuple[int, ...], dtype: np.dtype, padded: bool) -> np.ndarray:
    mask = np.ones(shape, dtype)
    if padded and len(shape) > 1 and shape[-1] > 3:
        mask[1:, ..., -3:] = 0
    return mask


def _token_range(rows: int) -> tuple[int, int]:
    """Token 0 often means padding; a table of two rows tells kinds of tokens apart."""
    return (1, min(rows, MAX_TOKEN)) if rows > 2 else (0, rows)


def _table_sizes(graph: onnx.GraphProto) -> dict[str, int]:
    """Rows of the smallest constant table that each value indexes, seen through casts and views."""
    rows = {tensor.name: tensor.dims[0] for tensor in graph.initializer if tensor.dims}
    source: dict[str, str] = {}
    sizes: dict[str, int] = {}
    for node in graph.node:
        if node.op_type in ("Cast", "Identity", "Reshape", "Unsqueeze", "Squeeze", "Flatten"):
            source[node.output[0]] = source.get(node.input[0], node.input[0])
        elif node.op_type == "Constant" and node.attribute and node.attribute[0].t.dims:
            rows[node.output[0]] = node.attribute[0].t.dims[0]
        elif node.op_type == "Gather" and node.input[0] in rows:
            index = source.get(node.input[1], node.input[1])
            sizes[index] = min(rows[node.input[0]], sizes.get(index, MAX_TOKEN))
    return sizes


def _known_strings(graph: onnx.GraphProto) -> list[str]:
    """Categories that encoders of the model know; a string they do not know may be an error."""
    found = [
        text.decode()
        for node in graph.node
        for attribute in node.attribute
        if attribute.name in ("cats_strings", "keys_strings")
        for text in attribute.strings
    ]
    return found or ["a", "b", "c"]
