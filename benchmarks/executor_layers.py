"""Single layers of the executor's benchmark: what a kernel costs against onnxruntime's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, helper

MOST = 12.0
"""A layer may take so many times the time of onnxruntime."""
MOST_SCALAR = 150.0
"""The same for the two that are loops over boxes."""


@dataclass(frozen=True)
class Layer:
    """One node and its inputs; ``constant`` inputs become initializers, as weights are."""

    name: str
    op_type: str
    inputs: tuple[np.ndarray, ...]
    attributes: dict[str, Any] = field(default_factory=dict)
    opset: int = 17
    constant: tuple[int, ...] = ()
    limit: float = MOST
    outputs: tuple[str, ...] = ("y",)

    def model(self) -> tuple[ModelProto, dict[str, np.ndarray]]:
        """A model of the node alone, and its feeds."""
        arrays = {f"x{i}": x for i, x in enumerate(self.inputs)}
        node = helper.make_node(self.op_type, list(arrays), list(self.outputs), **self.attributes)
        return one_graph([node], arrays, [f"x{i}" for i in self.constant], self.opset)


def one_graph(
    nodes: Sequence[onnx.NodeProto], arrays: dict[str, np.ndarray], constant: Sequence[str], opset: int
) -> tuple[ModelProto, dict[str, np.ndarray]]:
    """A model of ``nodes`` with output ``y``; ``arrays`` are its inputs and constants."""
    feeds = {name: array for name, array in arrays.items() if name not in constant}
    declared = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for name, x in feeds.items()
    ]
    weights = [onnx.numpy_helper.from_array(arrays[name], name) for name in constant]
    graph = helper.make_graph(nodes, "layer", declared, [onnx.ValueInfoProto(name="y")], weights)
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9), feeds


def layers() -> Iterator[Layer]:
    """Every layer, with seeded inputs."""
    rng = np.random.default_rng(0)
    for family in (_convolutions, _pools, _products, _norms, _elementwise, _movement, _rest):
        yield from family(rng)


def chain(length: int = 1000) -> tuple[ModelProto, dict[str, np.ndarray]]:
    """``length`` additions of a constant to a vector of eight."""
    names = ["x", *(f"t{i}" for i in range(length - 1)), "y"]
    nodes = [helper.make_node("Add", [a, "one"], [b]) for a, b in pairwise(names)]
    arrays = {"x": np.zeros(8, np.float32), "one": np.ones(8, np.float32)}
    return one_graph(nodes, arrays, ["one"], 17)


def _floats(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def _conv(
    rng: np.random.Generator, name: str, x: tuple[int, ...], w: tuple[int, ...], **attributes: Any
) -> Layer:
    inputs = (_floats(rng, 1, *x), _floats(rng, *w) / np.float32(10), _floats(rng, w[0]))
    return Layer(name, "Conv", inputs, attributes, constant=(1, 2))


def _convolutions(rng: np.random.Generator) -> Iterator[Layer]:
    yield _conv(rng, "Conv 3x3 64 @56", (64, 56, 56), (64, 64, 3, 3), pads=[1] * 4)
    yield _conv(rng, "Conv 3x3 256 @14", (256, 14, 14), (256, 256, 3, 3), pads=[1] * 4)
    yield _conv(rng, "Conv 1x1 256->64 @56", (256, 56, 56), (64, 256, 1, 1))
    yield _conv(rng, "Conv 7x7s2 @224", (3, 224, 224), (64, 3, 7, 7), pads=[3] * 4, strides=[2, 2])
    yield _conv(rng, "Conv dw 3x3 144 @56", (144, 56, 56), (144, 1, 3, 3), pads=[1] * 4, group=144)
    yield _conv(
        rng, "Conv dw 5x5s2 240 @28", (240, 28, 28), (240, 1, 5, 5), pads=[2] * 4, strides=[2, 2], group=240
    )
    yield _conv(rng, "Conv group 32 @28", (128, 28, 28), (128, 4, 3, 3), pads=[1] * 4, group=32)
    yield _conv(rng, "Conv dilation 4 @56", (64, 56, 56), (64, 64, 3, 3), pads=[4] * 4, dilations=[4, 4])
    yield _conv(rng, "Conv1D k9", (128, 1000), (128, 128, 9), pads=[4, 4])
    yield _conv(rng, "Conv3D", (16, 16, 28, 28), (32, 16, 3, 3, 3), pads=[1] * 6)
    half = tuple(v.astype(np.float16) for v in (_floats(rng, 1, 64, 28, 28), _floats(rng, 64, 64, 3, 3) / 10))
    yield Layer("Conv fp16 3x3 64 @28", "Conv", half, {"pads": [1] * 4}, constant=(1,))
    transposed = (_floats(rng, 1, 32, 14, 14), _floats(rng, 32, 16, 4, 4))
    yield Layer(
        "ConvTranspose 4x4s2 32->16 @14",
        "ConvTranspose",
        transposed,
        {"strides": [2, 2], "pads": [1] * 4},
        constant=(1,),
    )
    x, w = rng.integers(0, 256, (1, 64, 28, 28)), rng.integers(-63, 64, (64, 64, 3, 3))
    scale, zero = np.float32(0.02), np.uint8(128)
    inputs = (x.astype(np.uint8), scale, zero, w.astype(np.int8), scale, np.int8(0), np.float32(0.5), zero)
    yield Layer(
        "QLinearConv 3x3 64 @28",
        "QLinearConv",
        tuple(np.asarray(v) for v in inputs),
        {"pads": [1] * 4},
        constant=tuple(range(1, 8)),
    )


def _pools(rng: np.random.Generator) -> Iterator[Layer]:
    square = {"kernel_shape": [3, 3], "pads": [1] * 4}
    yield Layer("AveragePool 3x3 64 @28", "AveragePool", (_floats(rng, 1, 64, 28, 28),), square)
    yield Layer(
        "MaxPool 3x3s2 64 @112", "MaxPool", (_floats(rng, 1, 64, 112, 112),), {**square, "strides": [2, 2]}
    )


def _products(rng: np.random.Generator) -> Iterator[Layer]:
    a, b = _floats(rng, 128, 768), _floats(rng, 768, 768)
    yield Layer("Gemm 128x768x768", "Gemm", (a, b, _floats(rng, 768)), constant=(1, 2))
    yield Layer("MatMul 128x768x768", "MatMul", (a, b), constant=(1,))
    yield Layer("MatMul fp16", "MatMul", (a.astype(np.float16), b.astype(np.float16)), constant=(1,))
    whole = (
        rng.integers(0, 256, (64, 256)).astype(np.uint8),
        rng.integers(0, 128, (256, 256)).astype(np.uint8),
    )
    yield Layer("MatMulInteger 64x256x256", "MatMulInteger", whole, constant=(1,))
    yield Layer(
        "Einsum bhid,bhjd->bhij",
        "Einsum",
        (_floats(rng, 1, 4, 64, 32), _floats(rng, 1, 4, 64, 32)),
        {"equation": "bhid,bhjd->bhij"},
    )


def _norms(rng: np.random.Generator) -> Iterator[Layer]:
    image, text = _floats(rng, 1, 64, 56, 56), _floats(rng, 1, 128, 768)
    vector = np.abs(_floats(rng, 64)) + 1
    yield Layer("Softmax 12x128x128", "Softmax", (_floats(rng, 12, 128, 128),), {"axis": -1})
    yield Layer("LayerNorm 128x768", "LayerNormalization", (text, text[0, 0], text[0, 1]), constant=(1, 2))
    yield Layer("BatchNorm 64 @56", "BatchNormalization", (image, *(vector,) * 4), constant=(1, 2, 3, 4))
    yield Layer("InstanceNorm 64 @56", "InstanceNormalization", (image, vector, vector), constant=(1, 2))
    yield Layer("LRN 64 @56", "LRN", (image,), {"size": 5})


def _elementwise(rng: np.random.Generator) -> Iterator[Layer]:
    image, wide = _floats(rng, 1, 64, 56, 56), _floats(rng, 128, 3072)
    for op in ("Relu", "Sigmoid", "Tanh"):
        yield Layer(f"{op} 64 @56", op, (image,))
    yield Layer("Erf 128x3072", "Erf", (wide,))
    yield Layer("Gelu 128x3072", "Gelu", (wide,), opset=20)
    for op in ("Add", "Mul"):
        yield Layer(f"{op} 64 @56", op, (image, image.copy()))
    yield Layer("Pow 64 @56", "Pow", (np.abs(image), np.float32([2])), constant=(1,))
    yield Layer("Where 64 @56", "Where", (image > 0, image, -image))
    yield Layer("Clip 64 @56", "Clip", (image, np.array(0, "f4"), np.array(6, "f4")), constant=(1, 2))
    tiny = _floats(rng, 4)
    yield Layer("tiny Add", "Add", (tiny, tiny.copy()))
    yield Layer("tiny Reshape", "Reshape", (tiny, np.array([2, 2])), constant=(1,))


def _movement(rng: np.random.Generator) -> Iterator[Layer]:
    image, text = _floats(rng, 1, 64, 56, 56), _floats(rng, 1, 128, 12, 64)
    yield Layer("Transpose 0213", "Transpose", (text,), {"perm": [0, 2, 1, 3]})
    cut = (image, np.array([4, 4]), np.array([50, 50]), np.array([2, 3]))
    yield Layer("Slice @56", "Slice", cut, constant=(1, 2, 3))
    yield Layer("Concat @56", "Concat", (image, image.copy()), {"axis": 1})
    yield Layer("Pad @56", "Pad", (image, np.array([0, 0, 1, 1, 0, 0, 1, 1])), constant=(1,))
    yield Layer("Gather rows", "Gather", (_floats(rng, 1000, 256), rng.integers(0, 1000, 128)), constant=(0,))
    spots = rng.integers(0, 128, (64, 256))
    yield Layer("ScatterElements", "ScatterElements", (_floats(rng, 128, 256), spots, _floats(rng, 64, 256)))
    pairs = np.stack([rng.integers(0, 128, 512), rng.integers(0, 256, 512)], 1)
    yield Layer("GatherND", "GatherND", (_floats(rng, 128, 256, 8), pairs))
    places = np.stack(np.unravel_index(rng.permutation(128 * 256)[:512], (128, 256)), 1)
    yield Layer("ScatterND", "ScatterND", (_floats(rng, 128, 256, 8), places, _floats(rng, 512, 8)))
    nothing = np.zeros(0, np.float32)
    scales = np.float32([1, 1, 2, 2])
    for mode in ("nearest", "linear"):
        yield Layer(
            f"Resize {mode} 16 @56 x2",
            "Resize",
            (_floats(rng, 1, 16, 56, 56), nothing, scales),
            {"mode": mode},
            constant=(1, 2),
        )


def _rest(rng: np.random.Generator) -> Iterator[Layer]:
    image = _floats(rng, 1, 64, 56, 56)
    for op in ("ReduceMean", "ReduceMax"):
        yield Layer(f"{op} @56", op, (image,), {"axes": [2, 3]})
    yield Layer("ArgMax @56", "ArgMax", (image,), {"axis": 1})
    yield Layer("CumSum @56", "CumSum", (image, np.array(3)), constant=(1,))
    best = (_floats(rng, 1, 8400), np.array([100]))
    yield Layer("TopK 100 of 8400", "TopK", best, constant=(1,), outputs=("y", "places"))
    grid = rng.uniform(-1, 1, (1, 14, 14, 2)).astype(np.float32)
    yield Layer(
        "GridSample bilinear 4 @14", "GridSample", (_floats(rng, 1, 4, 14, 14), grid), {"mode": "bilinear"}
    )
    corner = rng.uniform(0, 80, (400, 2))
    boxes = np.concatenate([corner, corner + rng.uniform(5, 20, (400, 2))], 1).astype(np.float32)[None]
    scores = rng.random((1, 4, 400), np.float32)
    limits = (np.array([100]), np.float32([0.5]), np.float32([0.1]))
    yield Layer(
        "NonMaxSuppression 400 x 4 classes",
        "NonMaxSuppression",
        (boxes, scores, *limits),
        constant=(2, 3, 4),
        limit=MOST_SCALAR,
    )
    start = rng.uniform(0, 100, (20, 2))
    rois = np.concatenate([start, start + rng.uniform(20, 100, (20, 2))], 1).astype(np.float32)
    yield Layer(
        "RoiAlign 20 rois",
        "RoiAlign",
        (_floats(rng, 1, 16, 28, 28), rois, np.zeros(20, np.int64)),
        {"output_height": 7, "output_width": 7, "sampling_ratio": 2, "spatial_scale": 0.125},
        limit=MOST_SCALAR,
    )
    for op, gates in (("LSTM", 4), ("GRU", 3)):
        weights = (_floats(rng, 1, gates * 64, 64) / 8, _floats(rng, 1, gates * 64, 64) / 8)
        yield Layer(
            f"{op} T32 H64", op, (_floats(rng, 32, 1, 64), *weights), {"hidden_size": 64}, constant=(1, 2)
        )


def loop(trips: int = 50) -> tuple[ModelProto, dict[str, np.ndarray]]:
    """A Loop of MatMul and Tanh on a vector of 64."""
    rng = np.random.default_rng(0)
    info = helper.make_tensor_value_info
    body = helper.make_graph(
        [
            helper.make_node("MatMul", ["state", "w"], ["product"]),
            helper.make_node("Tanh", ["product"], ["next"]),
            helper.make_node("Identity", ["go"], ["goes_on"]),
        ],
        "body",
        [
            info("i", TensorProto.INT64, []),
            info("go", TensorProto.BOOL, []),
            info("state", TensorProto.FLOAT, [1, 64]),
        ],
        [info("goes_on", TensorProto.BOOL, []), info("next", TensorProto.FLOAT, [1, 64])],
    )
    node = helper.make_node("Loop", ["trips", "", "x"], ["y"], body=body)
    arrays = {"x": _floats(rng, 1, 64), "w": _floats(rng, 64, 64) / 8, "trips": np.array(trips)}
    return one_graph([node], arrays, ["w", "trips"], 17)
