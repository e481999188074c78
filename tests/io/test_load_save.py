"""Loading and saving a model is the identity, and the graph in between is what the file means."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from optimizer.io import load, parse, to_proto
from optimizer.ir import Attribute, AttributeKind, DType, TensorType, Value, ValueInfo, verify_graph
from optimizer.ir.text import dump

HEAD = '<ir_version: 10, opset_import: ["": 21]>\n'
IF = (
    "g (float[2] x, bool c) => (float[2] y) <float[2] w = {1, 2}> { a = Neg(x)"
    " y = If(c) <then_branch = t () => (float[2] r) <float[2] k = {5, 6}> { b = Add(a, k) r = Mul(b, w) },"
    " else_branch = e () => (float[2] r) { r = Sub(w, a) }> }"
)
NESTED = (
    "g (float[2] x, bool c) => (float[2] y) { a = Neg(x)"
    " y = If(c) <then_branch = t () => (float[2] r) {"
    "   r = If(c) <then_branch = tt () => (float[2] s) { s = Add(a, x) },"
    "              else_branch = te () => (float[2] u) { u = Relu(a) }> },"
    " else_branch = e () => (float[2] v) { v = Relu(x) }> }"
)
LOOP = (
    "g (float[2] x, int64 n) => (float[2] y, float[K, 2] z) { t = Constant <value = bool {1}> ()"
    " y, z = Loop(n, t, x) <body = b (int64 i, bool cin, float[2] v) => (bool cin, float[2] w, float[2] o) {"
    "   w = Add(v, x) o = Identity(v) }> }"
)
FUNCTION = (
    "g (float[2] x) => (float[2] y) { y = d.f <alpha = 2.0> (x) }\n"
    '<domain: "d", opset_import: ["": 21]>\n'
    "f <alpha, beta: float = 3.0> (p) => (q) {"
    " a = Constant <value_float: float = @alpha> () b = Constant <value_float: float = @beta> ()"
    " k = Constant <value = float[2] {1, 2}> () s = Mul(p, a) t = Add(s, b) q = Add(t, k) }"
)
FUNCTION_HEAD = '<ir_version: 10, opset_import: ["": 21, "d": 1]>\n'
FEEDS = {"x": np.array([1, -2], np.float32), "n": np.array(3), "c": np.array(True), "d": np.array(False)}


def run(model: onnx.ModelProto, **feeds: np.ndarray) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    wanted = {i.name: feeds.get(i.name, FEEDS[i.name]) for i in session.get_inputs()}
    return list(session.run(None, wanted))


ROWS = {
    "plain": HEAD + "g (float[2] x) => (float[2] y) { a = Relu(x) y = Add(a, x) }",
    "if": HEAD + IF,
    "nested": HEAD + NESTED,
    "loop": HEAD + LOOP,
    "function": FUNCTION_HEAD + FUNCTION,
    "input is output": HEAD + "g (float[2] x) => (float[2] x, float[2] y) { y = Relu(x) }",
    "constant is output": HEAD
    + "g (float[2] x) => (float[2] y, float[2] w) <float[2] w = {1, 2}> { y = Add(x, w) }",
    "body returns a constant": HEAD
    + "g (float[2] x, bool c) => (float[2] y) { y = If(c) <then_branch = t () => (float[2] w)"
    + " <float[2] w = {1, 2}> { }, else_branch = e () => (float[2] s) { s = Neg(x) }> }",
    "omitted": HEAD
    + 'g (float[2] x) => (float[2] y) { m = Constant <value = float {1}> () y = Clip(x, "", m) }',
}
UNSORTED = HEAD + "g (float[2] x) => (float[2] y) { y = Add(b, a) b = Neg(a) a = Exp(x) }"
UNSORTED_CAPTURE = (
    HEAD
    + "g (float[2] x, bool c) => (float[2] y) {"
    + " y = If(c) <then_branch = t () => (float[2] r) { r = Relu(a) },"
    + " else_branch = e () => (float[2] s) { s = Neg(a) }> a = Exp(x) }"
)


@pytest.mark.parametrize("text", ROWS.values(), ids=ROWS.keys())
def test_same_outputs(text: str) -> None:
    original = onnx.parser.parse_model(text)
    model = load(original)
    for _, graph in model.graphs():
        verify_graph(graph)
    written = to_proto(model)
    onnx.checker.check_model(written, full_check=True)
    assert written.graph.input == original.graph.input
    assert written.graph.output == original.graph.output
    for c in (np.array(True), np.array(False)):
        for got, want in zip(run(written, c=c), run(original, c=c), strict=True):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("text", ROWS.values(), ids=ROWS.keys())
def test_second_save_changes_nothing(text: str) -> None:
    once = to_proto(parse(text)).SerializeToString()
    assert to_proto(load(once)).SerializeToString() == once


def test_captures_pass_through_every_level() -> None:
    graph = parse(HEAD + NESTED).graph
    (outer,) = (node for node in graph.nodes if node.op_type == "If")
    bodies = dict(outer.bodies)
    assert [graph.info(v).name for v in outer.captures_of(0)] == ["c", "a", "x"]
    assert [graph.info(v).name for v in outer.captures_of(1)] == ["x"]
    then = bodies["then_branch"]
    (inner,) = then.nodes
    assert [then.info(v).name for v in inner.captures_of(0)] == ["a", "x"]
    assert [then.info(v).name for v in inner.captures_of(1)] == ["a"]
    assert {v.node for v in inner.operands if v is not None} == {v.node for v in then.captures}


def test_a_body_may_shadow_an_outer_name() -> None:
    text = (
        "g (float[2] x, bool c) => (float[2] y) { w = Exp(x) q = If(c) <then_branch = t () => (float[2] w)"
        " { w = Relu(x) }, else_branch = e () => (float[2] z) { w = Neg(x) z = Abs(w) }> y = Add(q, w) }"
    )
    model = parse(HEAD + text)
    assert len(model.warnings) == 1
    assert "'w' and 1 more" in model.warnings[0]
    written = to_proto(model)
    onnx.checker.check_model(written, full_check=True)
    x = FEEDS["x"]
    for c, inner in ((True, np.maximum(x, 0)), (False, np.abs(x))):
        np.testing.assert_allclose(run(written, c=np.array(c))[0], np.exp(x) + inner, rtol=1e-6)


def test_unsorted_nodes_are_sorted() -> None:
    model = parse(UNSORTED)
    assert [node.op_type for node in model.graph.topological()] == ["Exp", "Neg", "Add"]
    assert [word in model.warnings[0] for word in ("order", "Add -> 'y'")] == [True, True]
    x = FEEDS["x"]
    np.testing.assert_allclose(run(to_proto(model))[0], np.exp(x) - np.exp(x))
    np.testing.assert_allclose(run(to_proto(parse(UNSORTED_CAPTURE)))[0], np.exp(x), rtol=1e-6)


def overridable(ir_version: int) -> onnx.ModelProto:
    text = "g (float[2] x, float[2] w = {1, 2}) => (float[2] y) { y = Add(x, w) }"
    return onnx.parser.parse_model(f'<ir_version: {ir_version}, opset_import: ["": 7]>' + text)


@pytest.mark.parametrize(
    ("ir_version", "freeze", "inputs", "constants", "written_version"),
    [(3, False, 1, 1, 4), (4, False, 2, 0, 4), (8, False, 2, 0, 8), (8, True, 1, 1, 8)],
)
def test_initializers_that_are_inputs(
    ir_version: int, freeze: bool, inputs: int, constants: int, written_version: int
) -> None:
    model = load(overridable(ir_version), freeze_initializers=freeze)
    graph = model.graph
    assert (len(graph.inputs), len(graph.constants)) == (inputs, constants)
    written = to_proto(model)
    assert [info.name for info in written.graph.input] == ["x", "w"][:inputs]
    assert [tensor.name for tensor in written.graph.initializer] == ["w"]
    assert written.ir_version == written_version
    if inputs == 2:
        default = graph.node(graph.inputs[1]).attr("default")
        assert default.array.tolist() == [1, 2]
        assert ["option 'freeze_initializers'" in line and "'w'" in line for line in model.warnings] == [True]
    else:
        assert model.warnings == []
        assert graph.info(graph.constants[0]).type == TensorType(DType.FLOAT, (2,))


def test_negative_sizes_are_kept_where_they_were_declared() -> None:
    original = onnx.parser.parse_model(HEAD + "g (float[-1, 3] x) => (float[-1, 3] y) { y = Relu(x) }")
    model = load(original)
    assert model.graph.info(model.graph.inputs[0]).type == TensorType(DType.FLOAT, (None, 3))
    assert ["'x' and 1 more" in line for line in model.warnings] == [True]
    written = to_proto(model)
    assert written.graph.input == original.graph.input
    assert written.graph.output == original.graph.output
    narrowed = TensorType(DType.FLOAT, (4, 3))
    graph = model.graph
    graph.set_attrs(graph.inputs[0].node, outputs=[ValueInfo("x", narrowed)])
    assert [d.dim_value for d in to_proto(model).graph.input[0].type.tensor_type.shape.dim] == [4, 3]


def test_declarations() -> None:
    graph = parse(
        HEAD + "g (float[N] x) => (float[N] y) <float[N] a> { a = Relu(x) b = Neg(a) y = Exp(b) }"
    ).graph
    declared = {graph.info(Value(n.id)).name: graph.info(Value(n.id)).type for n in graph.nodes}
    assert declared == {"a": TensorType(DType.FLOAT, ("N",)), "b": None, "y": None}
    assert graph.sink.outputs[0].type == TensorType(DType.FLOAT, ("N",))


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("g (float x) => (float y) { [n] a = Relu(x) [n] y = Relu(a) }", "names are not unique: 'n'"),
        ("g (float x) => (float y) { y = Foo(x) }", "without a schema (left as they are): Foo (1)"),
        ("g (float x) => (float y) { y = a.b.Foo(x) }", "not imported: 'a.b::Foo'"),
        ("g (float x) => (float y) <float w = {1}, float w = {1}> { y = Add(x, w) }", "twice: 'w'"),
    ],
)
def test_warnings(text: str, word: str) -> None:
    model = parse(HEAD + text)
    assert [word in line for line in model.warnings] == [True], model.warnings


def test_annotation_of_a_missing_tensor_is_dropped() -> None:
    proto = onnx.parser.parse_model(ROWS["plain"])
    entry = proto.graph.quantization_annotation.add(tensor_name="a")
    entry.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="gone")
    model = load(proto)
    assert not model.graph.annotations
    assert ["annotations" in line for line in model.warnings] == [True]


def test_empty_domain_has_one_spelling() -> None:
    proto = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["ai.onnx": 17]> g (float x) => (float y) { y = ai.onnx.Relu(x) }'
    )
    model = load(proto)
    assert model.opsets == {"": 17}
    assert [node.op for node in model.graph.nodes] == ["Relu"]
    assert to_proto(model).graph.node[0].domain == ""


def test_texts_that_are_not_utf8_are_accepted() -> None:
    data = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17], doc_string: "abcd"> g (float x) => (float y) { y = Relu(x) }'
    )
    broken = data.SerializeToString().replace(b"abcd", b"ab\xffd")
    assert load(broken).doc_string == "ab\\xffd"


def test_references_stay_operators_in_functions() -> None:
    model = parse(FUNCTION_HEAD + FUNCTION)
    (function,) = model.functions.values()
    assert function.attributes == ("alpha",)
    assert function.defaults == {"beta": Attribute(AttributeKind.FLOAT, 3.0)}
    assert [node.op_type for node in function.graph.topological()].count("Constant") == 2
    assert len(function.graph.constants) == 1
    written = to_proto(model).functions[0]
    assert [node.op_type for node in written.node].count("Constant") == 3


def test_source_is_not_kept() -> None:
    proto = onnx.parser.parse_model(
        HEAD + "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }"
    )
    model = load(proto)
    proto.graph.initializer[0].float_data[0] = 9
    array = model.graph.const(model.graph.constants[0])
    assert array is not None
    assert array.tolist() == [1, 2]


def test_parse_takes_constants() -> None:
    halves = np.array([0.5, 1.5], np.float16)
    model = parse(
        HEAD + "g (float16[2] x) => (float16[2] y) <float16[2] w, float16[2] v = {0, 0}>"
        " { a = Add(x, w) y = Add(a, v) }",
        {"w": halves, "v": halves * 2},
    )
    graph = model.graph
    found = {graph.info(v).name: np.asarray(graph.const(v)).tolist() for v in graph.constants}
    assert found == {"w": [0.5, 1.5], "v": [1, 3]}


def test_large_weights_survive_the_split() -> None:
    """Models of a megabyte and more take the way around the message for their bulky weights."""
    rng = np.random.default_rng(0)
    arrays = {"big": rng.standard_normal((300, 1000)).astype(np.float32), "small": np.ones(3, np.float32)}
    arrays["large"] = rng.integers(0, 9, (700, 500)).astype(np.int16)
    graph = helper.make_graph(
        [], "g", [], [], [numpy_helper.from_array(a, name) for name, a in arrays.items()]
    )
    for name, array in arrays.items():
        graph.output.append(
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    proto.graph.initializer[0].doc_string = "big one"
    model = load(proto.SerializeToString())
    for value in model.graph.constants:
        np.testing.assert_array_equal(model.graph.const(value), arrays[model.graph.info(value).name])
    assert to_proto(model) == proto
    assert dump(load(to_proto(model))) == dump(model)
