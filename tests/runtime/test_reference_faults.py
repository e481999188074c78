"""Where onnx.reference is wrong or refuses: each case against onnxruntime or a formula in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from kernel_oracle import assert_close, run_kernel, run_onnxruntime
from onnx import TensorProto, helper, numpy_helper

from optimizer.io import load
from optimizer.runtime import Session

RNG = np.random.default_rng(7)


def floats(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return RNG.standard_normal(shape).astype(np.float32)


IMAGE = floats(1, 2, 6, 7)
PAIR = {"pads": [1, 1, 1, 1]}
SEQUENCE, LENGTHS = floats(5, 3, 4), np.array([5, 2, 3], np.int32)
POINTS = RNG.uniform(-1, 1, (1, 3, 3, 2)).astype(np.float32)
ROIS = np.float32([[0, 0, 4, 4], [1, 1, 5, 5]])
BOXES = np.float32([[0, 0, 0, 3, 3], [0, 2, 1, 6, 5]])


def gates(count: int, size: int = 6, directions: int = 1) -> list[np.ndarray[Any, Any]]:
    return [floats(directions, count * size, 4), floats(directions, count * size, size)]


def lstm(direction: str, **more: Any) -> tuple[list[Any], dict[str, Any]]:
    n = 2 if direction == "bidirectional" else 1
    inputs = [SEQUENCE, *gates(4, 6, n), floats(n, 48), LENGTHS, None, None, floats(n, 18)]
    return inputs, {"hidden_size": 6, "direction": direction, **more}


Case = tuple[str, int, list[Any], dict[str, Any], int]
CUBE = floats(2, 3, 4)
CASES: dict[str, Case] = {
    "Softmax flattens before 13": ("Softmax", 11, [CUBE], {"axis": 1}, 1),
    "LogSoftmax flattens before 13": ("LogSoftmax", 11, [CUBE], {"axis": 1}, 1),
    "Hardmax flattens before 13": ("Hardmax", 11, [CUBE], {"axis": 1}, 1),
    "GatherElements from more than 32 rows": (
        "GatherElements", 13, [floats(50, 4), RNG.integers(-50, 50, (40, 4))], {"axis": 0}, 1,
    ),
    "Resize-10": ("Resize", 10, [IMAGE, np.float32([1, 1, 2, 1.5])], {"mode": "linear"}, 1),
    "BatchNormalization-9": (
        "BatchNormalization", 9, [IMAGE, *(np.abs(floats(2)) for _ in range(4))], {}, 1,
    ),
    "Pow of integers": ("Pow", 15, [np.array([1, 2, -3, -1]), np.array([3, 2, 3, 5])], {}, 1),
    "GlobalLpPool": ("GlobalLpPool", 2, [IMAGE], {"p": 3}, 1),
    "GlobalMaxPool 3-D": ("GlobalMaxPool", 1, [floats(2, 3, 5)], {}, 1),
    "GlobalMaxPool 5-D": ("GlobalMaxPool", 1, [floats(1, 2, 4, 3, 5)], {}, 1),
    "ConvTranspose group": ("ConvTranspose", 11, [floats(1, 4, 5, 5), floats(4, 3, 3, 3)], {"group": 2}, 1),
    "ConvTranspose group, stride": (
        "ConvTranspose", 11, [floats(1, 4, 5, 5), floats(4, 3, 3, 3)], {"group": 2, "strides": [2, 2]}, 1,
    ),
    "ConvTranspose group, output padding, dilation": (
        "ConvTranspose", 11, [floats(1, 4, 5, 5), floats(4, 3, 3, 3)],
        {"group": 2, "strides": [2, 2], "output_padding": [1, 1], "dilations": [2, 2]}, 1,
    ),
    "ConvTranspose output_shape": (
        "ConvTranspose", 11, [floats(1, 2, 5, 5), floats(2, 2, 3, 3)],
        {"output_shape": [10, 10], "strides": [2, 2]}, 1,
    ),
    "ConvTranspose output_shape of one channel": (
        "ConvTranspose", 11, [floats(1, 1, 5, 5), floats(1, 1, 3, 3)],
        {"output_shape": [10, 10], "strides": [2, 2], "auto_pad": "SAME_UPPER"}, 1,
    ),
    **{
        f"LSTM {direction}, lengths and peepholes": ("LSTM", 14, *lstm(direction), 3)
        for direction in ("forward", "reverse", "bidirectional")
    },
    "LSTM clip": ("LSTM", 14, *lstm("forward", clip=0.3), 3),
    "LSTM activations": ("LSTM", 14, *lstm("forward", activations=["HardSigmoid", "Relu", "Softsign"]), 3),
    "GRU lengths": ("GRU", 14, [SEQUENCE, *gates(3), floats(1, 36), LENGTHS], {"hidden_size": 6}, 2),
    "GRU activations": (
        "GRU", 14, [SEQUENCE, *gates(3)], {"hidden_size": 6, "activations": ["HardSigmoid", "Relu"]}, 2,
    ),
    "RNN lengths": ("RNN", 14, [SEQUENCE, *gates(1), floats(1, 12), LENGTHS], {"hidden_size": 6}, 2),
    "RNN Relu": ("RNN", 14, [SEQUENCE, *gates(1)], {"hidden_size": 6, "activations": ["Relu"]}, 2),
    "LpNormalization p = 1": ("LpNormalization", 1, [floats(3, 4)], {"p": 1, "axis": 1}, 1),
    "DequantizeLinear-10": (
        "DequantizeLinear", 10,
        [np.uint8([[3, 200], [9, 0]]), np.array(0.5, np.float32), np.array(7, np.uint8)], {}, 1,
    ),
    "DequantizeLinear-13": (
        "DequantizeLinear", 13,
        [np.int8([[3, -100], [9, 0]]), np.float32([0.5, 2]), np.int8([7, -1])], {"axis": 1}, 1,
    ),
    "MaxRoiPool": (
        "MaxRoiPool", 1, [IMAGE, BOXES], {"pooled_shape": [2, 2], "spatial_scale": 1.0}, 1,
    ),
    "RoiAlign-10": (
        "RoiAlign", 10, [IMAGE, ROIS, np.array([0, 0])], {"output_height": 2, "output_width": 3}, 1,
    ),
    "Pad by less than nothing": ("Pad", 13, [IMAGE, np.array([0, 0, -1, 2, 0, 0, 1, -3])], {}, 1),
    "GridSample bicubic": ("GridSample", 16, [IMAGE, POINTS], {"mode": "bicubic"}, 1),
    "MaxPool SAME_LOWER": (
        "MaxPool", 12, [IMAGE], {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_LOWER"}, 1,
    ),
    "Cast to string": ("Cast", 13, [np.float32([1.5, -0.25])], {"to": TensorProto.STRING}, 1),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_kernels_agree_with_onnxruntime(name: str) -> None:
    op_type, opset, inputs, attributes, outputs = CASES[name]
    expected = run_onnxruntime(op_type, inputs, attributes, opset=opset, outputs=outputs)
    got = run_kernel(op_type, inputs, attributes, opset=opset, outputs=outputs)
    for g, e in zip(got, expected, strict=True):
        assert_close(g, e)


def test_a_negative_integer_power_truncates() -> None:
    (got,) = run_kernel("Pow", [np.array([1, -1, 2, -3]), np.array([-2, -3, -1, -1])], opset=15)
    assert got.tolist() == [1, -1, 0, 0]


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("size", [3, 4])
def test_lrn_sums_over_neighbouring_channels(batch: int, size: int) -> None:
    x = floats(batch, 8, 2, 2)
    (got,) = run_kernel("LRN", [x], {"size": size, "alpha": 0.3, "beta": 0.6, "bias": 1.5}, opset=13)
    wide, expected = x.astype(np.float64), np.empty(x.shape)
    for c in range(8):
        low, high = max(0, c - (size - 1) // 2), min(7, c + size // 2)
        total = np.square(wide[:, low : high + 1]).sum(1)
        expected[:, c] = wide[:, c] / (1.5 + 0.3 / size * total) ** 0.6
    assert_close(got, expected.astype(np.float32))


def test_half_precision_sums_do_not_overflow() -> None:
    (got,) = run_kernel("ReduceMean", [np.full(4000, 100, np.float16)], {"axes": [0]}, opset=13)
    assert got.tolist() == [100]
    x = (RNG.standard_normal((2, 64)) * 300).astype(np.float16)
    scale, bias = np.ones(64, np.float16), np.zeros(64, np.float16)
    (got,) = run_kernel("LayerNormalization", [x, scale, bias], opset=17)
    wide = x.astype(np.float64)
    expected = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    assert_close(got, expected.astype(np.float16))


def test_multinomial_draws_by_the_weights() -> None:
    logits = np.log(np.float32([[0.7, 0.3, 1e-30], [1e-30, 1e-30, 1]]))
    (got,) = run_kernel("Multinomial", [logits], {"sample_size": 4000, "seed": 1.0}, opset=7)
    assert got.dtype == np.int32
    assert abs((got[0] == 0).mean() - 0.7) < 0.04
    assert (got[1] == 2).all()


# -------------------------------------------------------------------- control flow

INT, BOOL, FLOAT = TensorProto.INT64, TensorProto.BOOL, TensorProto.FLOAT
info = helper.make_tensor_value_info
node = helper.make_node


def check_against_onnxruntime(model: onnx.ModelProto, feeds: dict[str, Any]) -> list[np.ndarray[Any, Any]]:
    """The outputs of both; onnxruntime with optimizations off."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    got = list(Session(load(model)).run(feeds).values())
    for g, e in zip(got, session.run(None, feeds), strict=True):
        assert_close(g, e)
    return got


def a_model(nodes: list[Any], inputs: list[Any], outputs: list[Any], opset: int = 13, **more: Any) -> Any:
    graph = helper.make_graph(nodes, "g", inputs, outputs, **more)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def a_loop(element: list[int], condition: bool = True) -> Any:
    body = helper.make_graph(
        [node("Add", ["s", "s"], ["t"]), node("Identity", ["t"], ["kept"]), node("Identity", ["c"], ["d"])],
        "body",
        [info("i", INT, []), info("c", BOOL, []), info("s", FLOAT, element)],
        [info("d", BOOL, []), info("t", FLOAT, element), info("kept", FLOAT, element)],
    )
    start = "go" if condition else ""
    inputs = [info("n", INT, []), info("x", FLOAT, element)] + ([info("go", BOOL, [])] if condition else [])
    return a_model(
        [node("Loop", ["n", start, "x"], ["y", "all"], body=body)],
        inputs,
        [info("y", FLOAT, element), info("all", FLOAT, [None, *element])],
    )


@pytest.mark.parametrize("element", [[], [2, 3]])
@pytest.mark.parametrize("trips", [0, 3])
def test_loop_stacks_its_scan_outputs(element: list[int], trips: int) -> None:
    feeds = {"n": np.array(trips), "x": floats(*element), "go": np.array(True)}
    got = check_against_onnxruntime(a_loop(element), feeds)
    assert got[1].shape == (trips, *element)


def test_a_loop_without_a_condition_runs() -> None:
    x = np.float32([1, 2])
    got = check_against_onnxruntime(a_loop([2], condition=False), {"n": np.array(3), "x": x})
    assert got[0].tolist() == (8 * x).tolist()


@pytest.mark.parametrize(
    "attributes",
    [
        {"scan_input_directions": [1]},
        {"scan_output_directions": [1]},
        {"scan_input_axes": [1]},
        {"scan_output_axes": [1], "scan_input_directions": [1]},
    ],
)
def test_scan_directions_and_axes(attributes: dict[str, Any]) -> None:
    body = helper.make_graph(
        [node("Add", ["s", "e"], ["t"]), node("Identity", ["t"], ["out"])],
        "body",
        [info("s", FLOAT, [3]), info("e", FLOAT, [3])],
        [info("t", FLOAT, [3]), info("out", FLOAT, [3])],
    )
    scan = node("Scan", ["s0", "x"], ["y", "all"], body=body, num_scan_inputs=1, **attributes)
    inputs = [info("s0", FLOAT, [3]), info("x", FLOAT, [3, 3])]
    outputs = [info("y", FLOAT, [3]), info("all", FLOAT, [3, 3])]
    check_against_onnxruntime(a_model([scan], inputs, outputs), {"s0": floats(3), "x": floats(3, 3)})


def test_scan_8_has_a_batch_and_lengths() -> None:
    body = helper.make_graph(
        [node("Add", ["s", "e"], ["t"]), node("Identity", ["t"], ["out"])],
        "body",
        [info("s", FLOAT, [2]), info("e", FLOAT, [2])],
        [info("t", FLOAT, [2]), info("out", FLOAT, [2])],
    )
    scan = node("Scan", ["", "s0", "x"], ["y", "all"], body=body, num_scan_inputs=1)
    inputs = [info("s0", FLOAT, [2, 2]), info("x", FLOAT, [2, 4, 2])]
    outputs = [info("y", FLOAT, [2, 2]), info("all", FLOAT, [2, 4, 2])]
    feeds = {"s0": floats(2, 2), "x": floats(2, 4, 2)}
    got = check_against_onnxruntime(a_model([scan], inputs, outputs, opset=8), feeds)
    assert_close(got[1], feeds["s0"][:, None] + feeds["x"].cumsum(1, dtype=np.float32))


# -------------------------------------------------------------------- models


@pytest.mark.parametrize("given", [True, False])
def test_functions_bind_attributes_and_defaults(given: bool) -> None:
    leaky = node("LeakyRelu", ["a"], ["b"])
    leaky.attribute.append(
        onnx.AttributeProto(name="alpha", ref_attr_name="alpha", type=onnx.AttributeProto.FLOAT)
    )
    opsets = [helper.make_opsetid("", 18)]
    function = helper.make_function(
        "local", "F", ["a"], ["b"], [leaky], opsets, [] if not given else ["alpha"]
    )
    if not given:
        function.attribute_proto.append(helper.make_attribute("alpha", 0.25))
    call = node("F", ["x"], ["y"], domain="local", **({"alpha": 0.5} if given else {}))
    graph = helper.make_graph([call], "g", [info("x", FLOAT, [2])], [info("y", FLOAT, [2])])
    imports = [*opsets, helper.make_opsetid("local", 1)]
    model = helper.make_model(graph, opset_imports=imports, functions=[function], ir_version=9)
    got = check_against_onnxruntime(model, {"x": np.float32([-4, 4])})
    assert got[0].tolist() == [-2 if given else -1, 4]


def test_nodes_may_stand_in_any_order() -> None:
    nodes = [node("Neg", ["t"], ["y"]), node("Exp", ["x"], ["t"])]
    model = a_model(nodes, [info("x", FLOAT, [2])], [info("y", FLOAT, [2])])
    check_against_onnxruntime(model, {"x": floats(2)})


def test_sparse_initializers_are_filled_up() -> None:
    values = numpy_helper.from_array(np.float32([5, 7]), "w")
    sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(np.array([1, 3])), [2, 2])
    model = a_model(
        [node("Add", ["x", "w"], ["y"])],
        [info("x", FLOAT, [2, 2])],
        [info("y", FLOAT, [2, 2])],
        sparse_initializer=[sparse],
    )
    got = check_against_onnxruntime(model, {"x": np.zeros((2, 2), np.float32)})
    assert got[0].tolist() == [[0, 5], [0, 7]]


def test_the_long_name_of_the_main_domain() -> None:
    model = a_model(
        [node("Relu", ["x"], ["y"], domain="ai.onnx")], [info("x", FLOAT, [2])], [info("y", FLOAT, [2])]
    )
    check_against_onnxruntime(model, {"x": floats(2)})
