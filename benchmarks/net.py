"""Small models written as Python expressions, for benchmarks of single rewrites."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Net:
    """A model under construction; values are names."""

    def __init__(self, opset: int = 17) -> None:
        self.opset = opset
        self.nodes: list[onnx.NodeProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.constants: list[onnx.TensorProto] = []
        self._random = np.random.default_rng(7)

    def input(self, *shape: int | str, dtype: int = TensorProto.FLOAT) -> str:
        """An input of this shape."""
        name = f"x{len(self.inputs)}"
        self.inputs.append(helper.make_tensor_value_info(name, dtype, list(shape)))
        return name

    def const(self, value: Any, dtype: Any = np.float32) -> str:
        """A constant."""
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def weight(self, *shape: int, positive: bool = False) -> str:
        """Random numbers, scaled as trained weights are."""
        array = self._random.standard_normal(shape) / max(1, np.prod(shape[1:])) ** 0.5
        return self.const(np.abs(array) + 0.5 if positive else array)

    def ints(self, *numbers: int) -> str:
        """A vector of integers."""
        return self.const(numbers, np.int64)

    def op(self, op_type: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """The result of an operator; a list where it has several."""
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op_type, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def conv(
        self, x: str, outputs: int, inputs: int, size: int = 1, bias: bool = True, **attributes: Any
    ) -> str:
        """A convolution that keeps the size of the image."""
        pads = attributes.pop("pads", [size // 2] * 4)
        operands = [x, self.weight(outputs, inputs // attributes.get("group", 1), size, size)]
        made: str = self.op(
            "Conv", *operands, *([self.weight(outputs)] if bias else []), pads=pads, **attributes
        )
        return made

    def model(self, *outputs: str, dtypes: Sequence[int] = ()) -> onnx.ModelProto:
        """The finished model; the shapes of its outputs are left open."""
        kinds = [*dtypes, *[TensorProto.FLOAT] * len(outputs)]
        named = [helper.make_tensor_value_info(o, k, None) for o, k in zip(outputs, kinds, strict=False)]
        graph = helper.make_graph(self.nodes, "net", self.inputs, named, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=10)
