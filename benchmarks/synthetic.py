"""Models made from a seed. ``python -m benchmarks.synthetic FOLDER`` writes the ones measured."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import count, cycle
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET, IR_VERSION = 17, 9
WIDTH = 16
FACTORS = 64


def chain(nodes: int, seed: int = 0) -> onnx.ModelProto:
    """One elementwise chain of ``nodes`` nodes or one more, on float [batch, 16].

    Rounds of 18 nodes hold what exporters leave behind: an Identity, transposes that cancel, a
    Cast to the same type, neutral factors and addends, a dead branch, a repeated operator, constant
    arithmetic, an activation applied twice and two views that end where they began. Six nodes of a
    round are needed.
    """
    rng = np.random.default_rng(seed)
    constants = {
        "one": np.ones(1, np.float32),
        "zero": np.zeros(1, np.float32),
        "flat": np.array([-1], np.int64),
        "rows": np.array([-1, WIDTH], np.int64),
        **{f"w{i}": rng.normal(0, 0.01, WIDTH).astype(np.float32) for i in range(FACTORS)},
    }
    made: list[onnx.NodeProto] = []
    factors = (f"w{i % FACTORS}" for i in count())

    def op(kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"t{len(made) + 1}"
        made.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def branches(x: str) -> str:
        op("Sigmoid", x)  # nobody reads it
        return op("Add", op("Tanh", x), op("Tanh", x))

    steps: tuple[Callable[[str], str], ...] = (
        lambda x: op("Identity", x),
        lambda x: op("Transpose", op("Transpose", x, perm=[1, 0]), perm=[1, 0]),
        lambda x: op("Cast", x, to=TensorProto.FLOAT),
        lambda x: op("Add", op("Mul", x, "one"), "zero"),
        branches,
        lambda x: op("Add", x, op("Mul", next(factors), next(factors))),
        lambda x: op("Mul", op("Add", x, next(factors)), next(factors)),
        lambda x: op("Relu", op("Relu", x)),
        lambda x: op("Reshape", op("Reshape", x, "flat"), "rows"),
    )
    x = "x"
    for step in cycle(steps):
        if len(made) >= nodes:
            break
        x = step(x)
    made.append(helper.make_node("Identity", [x], ["y"]))
    shape: list[str | int] = ["batch", WIDTH]
    return _model("chain", made, constants, {"x": shape}, {"y": shape})


def convnet(blocks: int = 8, channels: int = 16, seed: int = 0) -> onnx.ModelProto:
    """Conv, BatchNormalization and an activation per block, then a classifier; batch is free."""
    rng = np.random.default_rng(seed)
    constants: dict[str, np.ndarray] = {}
    made: list[onnx.NodeProto] = []

    def weight(name: str, *shape: int, low: float | None = None) -> str:
        drawn = rng.normal(0, 0.2, shape) if low is None else rng.uniform(low, low + 1, shape)
        constants[name] = drawn.astype(np.float32)
        return name

    x, width = "x", 3
    for i in range(blocks):
        kernel = weight(f"kernel{i}", channels, width, 3, 3)
        made.append(helper.make_node("Conv", [x, kernel], [f"c{i}"], pads=[1, 1, 1, 1]))
        scales = [weight(f"scale{i}", channels, low=0.5), weight(f"shift{i}", channels)]
        moments = [weight(f"mean{i}", channels), weight(f"var{i}", channels, low=0.5)]
        made.append(helper.make_node("BatchNormalization", [f"c{i}", *scales, *moments], [f"n{i}"]))
        made.append(helper.make_node("Relu", [f"n{i}"], [f"r{i}"]))
        x, width = f"r{i}", channels
    made.append(helper.make_node("GlobalAveragePool", [x], ["pooled"]))
    made.append(helper.make_node("Flatten", ["pooled"], ["flat"]))
    made.append(helper.make_node("MatMul", ["flat", weight("head", channels, 10)], ["scores"]))
    made.append(helper.make_node("Add", ["scores", weight("bias", 10)], ["y"]))
    return _model("convnet", made, constants, {"x": ["batch", 3, 64, 64]}, {"y": ["batch", 10]})


def _model(
    name: str,
    nodes: list[onnx.NodeProto],
    constants: dict[str, np.ndarray],
    inputs: dict[str, list[str | int]],
    outputs: dict[str, list[str | int]],
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n, shape in inputs.items()],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n, shape in outputs.items()],
        [numpy_helper.from_array(array, n) for n, array in constants.items()],
    )
    opsets = [helper.make_opsetid("", OPSET)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(chain(1_000), folder / "made_chain_1k.onnx")
    onnx.save(convnet(), folder / "made_convnet.onnx")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
