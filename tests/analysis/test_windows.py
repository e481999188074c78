"""Sizes of pools and convolutions over open dims, at every size that onnxruntime runs."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

from optimizer.analysis import Facts
from optimizer.io import load
from optimizer.verify.engines import EngineError, OnnxRuntime

WINDOWS = [
    ("MaxPool", "kernel_shape = [5], strides = [1]"),
    ("MaxPool", "kernel_shape = [5], strides = [2]"),
    ("AveragePool", "kernel_shape = [5], strides = [3]"),
    ("LpPool", "kernel_shape = [5], strides = [7]"),
    ("MaxPool", "kernel_shape = [2], strides = [2]"),
    ("AveragePool", "kernel_shape = [5], strides = [3], pads = [1, 0]"),
    ("MaxPool", "kernel_shape = [3], strides = [2], pads = [1, 1]"),
    ("MaxPool", "kernel_shape = [3], strides = [3], dilations = [2]"),
    ("MaxPool", "kernel_shape = [5], strides = [3], ceil_mode = 1"),
    ("AveragePool", "kernel_shape = [5], strides = [3], ceil_mode = 1, pads = [1, 1]"),
    ("MaxPool", 'kernel_shape = [5], strides = [2], auto_pad = "VALID"'),
    ("MaxPool", 'kernel_shape = [5], strides = [2], auto_pad = "SAME_UPPER"'),
    ("Conv", "strides = [1]"),
    ("Conv", "strides = [3], pads = [1, 0]"),
    ("Conv", 'strides = [2], auto_pad = "SAME_LOWER"'),
]


@pytest.mark.parametrize(("op", "attributes"), WINDOWS)
def test_the_size_is_what_onnxruntime_gives(op: str, attributes: str) -> None:
    operands, weights = ("x, w", "<float[1,1,5] w = {1,1,1,1,1}>") if op == "Conv" else ("x", "")
    proto = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 21]>'
        f"g (float[N,1,L] x) => (float[a,b,c] y) {weights} {{ y = {op} <{attributes}> ({operands}) }}"
    )
    graph = load(proto).graph
    facts = Facts(graph, {})
    made, given = facts.shape(graph.outputs[0]), facts.shape(graph.inputs[0])
    assert made is not None
    assert given is not None
    engine = OnnxRuntime(proto.SerializeToString())
    ran = 0
    for batch, length in np.ndindex(2, 12):
        try:
            found = engine.run({"x": np.zeros((batch, 1, length), np.float32)})["y"].shape
        except EngineError:
            continue
        sizes = {str(given[0]): batch, str(given[2]): length}
        assert tuple(dim.evaluate(sizes) for dim in made) == found, sizes
        ran += 1
    assert ran >= 7
