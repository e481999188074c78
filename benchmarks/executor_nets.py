"""The nets of the executor's benchmark: two made here, six that onnx brings along."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, helper, numpy_helper

LIGHT = ("squeezenet", "resnet50", "shufflenet", "inception_v1", "densenet121", "bvlc_alexnet")
NAMES = ("bert_like", "mobilenetv2_like", *(f"light_{name}" for name in LIGHT))


def nets() -> Iterator[tuple[str, ModelProto, dict[str, np.ndarray]]]:
    """(name, model, feeds) of each net."""
    yield "bert_like", *bert_like(np.random.default_rng(1))
    yield "mobilenetv2_like", *mobilenetv2_like(np.random.default_rng(2))
    for name in LIGHT:
        yield f"light_{name}", *light(name, np.random.default_rng(3))


class _Builder:
    """Collects nodes and weights of a model with one input."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.nodes: list[NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def op(self, op_type: str, *inputs: str, outputs: int = 1, **attributes: object) -> str:
        names = [f"t{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op_type, list(inputs), names, **attributes))
        return names[0]

    def constant(self, value: np.ndarray) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(value, name))
        return name

    def weight(self, *shape: int) -> str:
        """He-scaled: the fan-in is everything but the first dim of a kernel, the rows of a matrix."""
        fan_in = shape[0] if len(shape) == 2 else math.prod(shape[1:])
        return self.constant(_normal(self.rng, shape, math.sqrt(2 / fan_in)))

    def bias(self, size: int) -> str:
        return self.constant(_normal(self.rng, (size,), 0.1))

    def model(self, inputs: list[onnx.ValueInfoProto], output: str) -> ModelProto:
        result = helper.make_tensor_value_info(output, onnx.TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, "net", inputs, [result], self.weights)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        return onnx.shape_inference.infer_shapes(made)


def _normal(rng: np.random.Generator, shape: tuple[int, ...], scale: float) -> np.ndarray:
    return (rng.standard_normal(shape) * scale).astype(np.float32)


# -------------------------------------------------------------------- a small encoder

HIDDEN, HEADS, TOKENS, LAYERS, WORDS = 256, 4, 128, 4, 1000


def bert_like(rng: np.random.Generator) -> tuple[ModelProto, dict[str, np.ndarray]]:
    """Four encoder layers, hidden size 256, 128 tokens, Gelu spelled out with Erf."""
    b = _Builder(rng)
    x = b.op("Gather", b.constant(_normal(rng, (WORDS, HIDDEN), 1.0)), "ids")
    x = b.op("Add", x, b.constant(_normal(rng, (TOKENS, HIDDEN), 1.0)))
    x = _layer_norm(b, x)
    for _ in range(LAYERS):
        x = _layer_norm(b, b.op("Add", _self_attention(b, x), x))
        x = _layer_norm(b, b.op("Add", _feed_forward(b, x), x))
    ids = helper.make_tensor_value_info("ids", onnx.TensorProto.INT64, [1, TOKENS])
    return b.model([ids], x), {"ids": rng.integers(0, WORDS, (1, TOKENS))}


def _layer_norm(b: _Builder, x: str) -> str:
    scale = b.constant(np.ones(HIDDEN, np.float32) + _normal(b.rng, (HIDDEN,), 0.1))
    return b.op("LayerNormalization", x, scale, b.bias(HIDDEN), axis=-1, epsilon=1e-12)


def _linear(b: _Builder, x: str, inside: int, outside: int) -> str:
    return b.op("Add", b.op("MatMul", x, b.weight(inside, outside)), b.bias(outside))


def _self_attention(b: _Builder, x: str) -> str:
    split = b.constant(np.array([1, TOKENS, HEADS, HIDDEN // HEADS]))
    parts = [
        b.op("Transpose", b.op("Reshape", _linear(b, x, HIDDEN, HIDDEN), split), perm=perm)
        for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
    ]
    scores = b.op("MatMul", parts[0], parts[1])
    scores = b.op("Div", scores, b.constant(np.float32(math.sqrt(HIDDEN // HEADS))))
    mixed = b.op("MatMul", b.op("Softmax", scores, axis=-1), parts[2])
    joined = b.constant(np.array([1, TOKENS, HIDDEN]))
    return _linear(b, b.op("Reshape", b.op("Transpose", mixed, perm=[0, 2, 1, 3]), joined), HIDDEN, HIDDEN)


def _feed_forward(b: _Builder, x: str) -> str:
    x = _linear(b, x, HIDDEN, 4 * HIDDEN)
    bent = b.op("Erf", b.op("Div", x, b.constant(np.float32(math.sqrt(2)))))
    bent = b.op("Mul", x, b.op("Add", bent, b.constant(np.float32(1))))
    return _linear(b, b.op("Mul", bent, b.constant(np.float32(0.5))), 4 * HIDDEN, HIDDEN)


# -------------------------------------------------------------------- a small image net

_BLOCKS = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
"""(expansion, channels, repeats, stride) of MobileNetV2's stages."""


def mobilenetv2_like(rng: np.random.Generator) -> tuple[ModelProto, dict[str, np.ndarray]]:
    """MobileNetV2 with its batch norms folded, on one image of 96 x 96."""
    b = _Builder(rng)
    low, high = b.constant(np.float32(0)), b.constant(np.float32(6))

    def conv(x: str, inside: int, outside: int, size: int, stride: int = 1, group: int = 1) -> str:
        pad = size // 2
        return b.op(
            "Conv", x, b.weight(outside, inside // group, size, size), b.bias(outside),
            kernel_shape=[size, size], pads=[pad] * 4, strides=[stride, stride], group=group,
        )  # fmt: skip

    def clipped(x: str) -> str:
        return b.op("Clip", x, low, high)

    x, channels = clipped(conv("image", 3, 32, 3, 2)), 32
    for expansion, width, repeats, first in _BLOCKS:
        for stride in (first, *(1,) * (repeats - 1)):
            wide, inner = x, channels * expansion
            if expansion > 1:
                wide = clipped(conv(x, channels, inner, 1))
            wide = clipped(conv(wide, inner, inner, 3, stride, inner))
            narrow = conv(wide, inner, width, 1)
            x = b.op("Add", x, narrow) if stride == 1 and channels == width else narrow
            channels = width
    x = b.op("Flatten", b.op("GlobalAveragePool", clipped(conv(x, channels, 1280, 1))))
    x = b.op("Gemm", x, b.weight(1280, 1000), b.bias(1000))
    image = helper.make_tensor_value_info("image", onnx.TensorProto.FLOAT, [1, 3, 96, 96])
    return b.model([image], x), {"image": _normal(rng, (1, 3, 96, 96), 1.0)}


# -------------------------------------------------------------------- the light nets of onnx


def light(name: str, rng: np.random.Generator) -> tuple[ModelProto, dict[str, np.ndarray]]:
    """A net of onnx's backend tests, its constant fills replaced by He-scaled random weights."""
    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    model = onnx.load(folder / f"light_{name}.onnx")
    graph = model.graph
    given = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    draw = _drawer(graph, rng)
    kept = []
    for node in graph.node:
        if node.op_type == "ConstantOfShape" and node.input[0] in given:
            shape = tuple(int(d) for d in given[node.input[0]])
            graph.initializer.append(numpy_helper.from_array(draw(node.output[0], shape), node.output[0]))
        else:
            kept.append(node)
    del graph.node[:]
    graph.node.extend(kept)
    shapes = {
        info.name: [d.dim_value for d in info.type.tensor_type.shape.dim]
        for info in graph.input
        if info.name not in given
    }
    return model, {key: _normal(rng, tuple(shape), 1.0) for key, shape in shapes.items()}


def _drawer(graph: onnx.GraphProto, rng: np.random.Generator) -> Callable[[str, tuple[int, ...]], np.ndarray]:
    norms = [node for node in graph.node if node.op_type == "BatchNormalization"]
    positive = {node.input[i] for node in norms for i in (1, 4)}

    def draw(name: str, shape: tuple[int, ...]) -> np.ndarray:
        if len(shape) > 1:
            return _normal(rng, shape, math.sqrt(2 / max(1, math.prod(shape[1:]))))
        if name in positive:
            return rng.uniform(0.5, 1.5, shape).astype(np.float32)
        return _normal(rng, shape, 0.1)

    return draw
