"""Nodes and graphs that no reading gives a meaning are refused when the model is loaded, in one line."""

from __future__ import annotations

import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper

from optimizer.io import load, parse
from optimizer.ir import InvalidModel

HEAD = '<ir_version: 10, opset_import: ["": 21]>\n'
LOCAL = '<ir_version: 10, opset_import: ["": 21, "l": 1]>\n'
FUNCTION = '<domain: "l", opset_import: ["": 21, "l": 1]>\n'
BRANCHES = "g (bool c, float x) => (float y) {{ y = If (c) <then_branch = {}, else_branch = {}> }}"
LOOP = "g (int64 n, bool c, float x) => (float y) {{ y = Loop (n, c, x) <body = {}> }}"
SCAN = "g (float[3,4] x) => (float[3,4] y) {{ y = Scan <num_scan_inputs = {}, body = {}> (x) }}"
POOL = "g (float[1,1,4,4] x) => (float[a,b,c,d] y) {{ y = MaxPool <{}> (x) }}"

ILL_FORMED = [
    ("g (float x) => (float y) { y = Add (x) }", "Add #2 -> 'y' has 1 input, where 2 are asked for"),
    ("g (float x) => (float y) { y = Concat <axis = 0> () }", "0 inputs, where at least 1 is asked for"),
    ("g (float x) => (float y) { y, z = Relu (x) }", "2 outputs, where 1 is asked for"),
    ("g (float x) => (float y) { y = Softmax <foo = 1> (x) }", "an attribute 'foo', which Softmax-13"),
    ('g (float x) => (float y) { y = Softmax <axis = "a"> (x) }', "of kind STRING, where INT is asked for"),
    ("g (float x, int64 z) => (float y) { y = Add (x, z) }", "reads both float and int64"),
    ("g (float x) => (float y) <int64 w = {1}> { y = Add (x, w) }", "reads both float and int64"),
    ("g (bool x) => (bool y) { y = Relu (x) }", "reads bool as its input 'X', which Relu-14"),
    ("g (float[2,2] x) => (float[2,2] y) { y = Transpose <perm = [0, 0]> (x) }", "perm [0, 0]"),
    ("g (float x) => (float y) { y = Cast <to = 999> (x) }", "element type 999"),
    ("g (float[4] x) => (float[a] y) { y = Split <num_outputs = 0> (x) }", "into 0 parts"),
    (POOL.format("kernel_shape = [0, 2]"), "kernel_shape [0, 2], where positive"),
    (POOL.format("kernel_shape = [2, 2], strides = [0, 1]"), "strides [0, 1], where positive"),
    (POOL.format("kernel_shape = [2, 2], pads = [1, 1]"), "kernel_shape [2, 2], pads [1, 1]"),
    (POOL.format('kernel_shape = [2, 2], auto_pad = "SAME"'), "auto_pad 'SAME', which does not exist"),
    (
        BRANCHES.format(
            "t () => (float u) { u = Relu (x) }", "e () => (float v, float w) { v = Neg (x) w = Abs (x) }"
        ),
        "its else_branch has 2 outputs, where 1",
    ),
    (
        BRANCHES.format("t (float q) => (float u) { u = Relu (q) }", "e () => (float v) { v = Neg (x) }"),
        "its then_branch has 1 inputs, where 0",
    ),
    (
        LOOP.format("b (int64 i, bool k) => (bool l, float z) { l = Identity (k) z = Relu (x) }"),
        "its body has 2 inputs, where 3",
    ),
    (LOOP.format("b (int64 i, bool k, float a) => (bool l) { l = Identity (k) }"), "its body has 1 outputs"),
    (SCAN.format(5, "b (float[4] i) => (float[4] o) { o = Relu (i) }"), "scans 5 of its 1 inputs"),
    (SCAN.format(-1, "b (float[4] i) => (float[4] o) { o = Relu (i) }"), "scans -1 of its 1 inputs"),
    (SCAN.format(1, "b (float[4] i, float[4] j) => (float[4] o) { o = Relu (i) }"), "its body has 2 inputs"),
    (SCAN.format(1, "b (float[4] i) => (float[4] o, float[4] p) { o = Relu (i) p = Neg (i) }"), "2 outputs"),
    ("g (float x) => () { y = Relu (x) }", "graph 'g' has no outputs"),
    ("g (float[9223372036854775807] x) => (float[n] y) { y = Relu (x) }", "'x' is declared of shape"),
    ("g (float[4294967296, 4294967296] x) => (float[n] y) { y = Relu (x) }", "no tensor is that large"),
]
CALLS = [
    ("f (a) => (b) { b = l.f (a) }", "calls itself: 'l::f' => 'l::f'"),
    (
        "f (a) => (b) { b = l.h (a) }\n" + FUNCTION + "h (a) => (b) { b = l.f (a) }",
        "'l::f' => 'l::h' => 'l::f'",
    ),
    ("f () => (b) { b = Constant <value = float {1}> () }", "1 inputs, but function 'l::f' has 0"),
]


def message_of(model: onnx.ModelProto) -> str:
    with pytest.raises(InvalidModel) as caught:
        load(model)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(("text", "words"), ILL_FORMED, ids=[words for _, words in ILL_FORMED])
def test_an_ill_formed_node_is_refused(text: str, words: str) -> None:
    assert words in message_of(onnx.parser.parse_model(HEAD + text))


@pytest.mark.parametrize(("text", "words"), CALLS, ids=[words for _, words in CALLS])
def test_an_ill_formed_function_is_refused(text: str, words: str) -> None:
    call = "g (float x) => (float y) { y = l.f (x) }\n"
    assert words in message_of(onnx.parser.parse_model(LOCAL + call + FUNCTION + text))


def test_functions_that_double_at_each_step_are_refused() -> None:
    steps = [f"f{i} (a) => (b) {{ c = l.f{i + 1} (a) b = l.f{i + 1} (c) }}" for i in range(25)]
    text = "\n".join(FUNCTION + step for step in [*steps, "f25 (a) => (b) { b = Relu (a) }"])
    call = "g (float x) => (float y) { y = l.f0 (x) }\n"
    assert "calls of functions" in message_of(onnx.parser.parse_model(LOCAL + call + text))


def test_a_missing_operand_is_refused_unless_it_is_optional() -> None:
    model = onnx.parser.parse_model(HEAD + "g (float x, float z) => (float y) { y = Add (x, z) }")
    model.graph.node[0].input[0] = ""
    assert "leaves out its input 'A', which is required" in message_of(model)
    load(onnx.parser.parse_model(HEAD + "g (float x, float z) => (float y) { y = Clip (x, , z) }"))


@pytest.mark.parametrize(
    ("domain", "version", "words"),
    [
        ("", 99, "opset 99 of domain 'ai.onnx' is newer than"),
        ("ai.onnx.ml", 99, "opset 99 of domain 'ai.onnx.ml' is newer than"),
        ("", 0, "no opset is imported for the default domain"),
        ("", -3, "no opset is imported for the default domain"),
    ],
)
def test_an_operator_set_that_does_not_exist_is_refused(domain: str, version: int, words: str) -> None:
    node = helper.make_node("Relu", ["x"], ["y"])
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy"]
    opsets = {"": 21, domain: version}
    model = helper.make_model(helper.make_graph([node], "g", info[:1], info[1:]))
    del model.opset_import[:]
    model.opset_import.extend(helper.make_opsetid(*entry) for entry in opsets.items())
    assert words in message_of(model)


def test_a_file_format_that_is_not_known_yet_is_refused() -> None:
    model = onnx.parser.parse_model(HEAD + "g (float x) => (float y) { y = Relu (x) }")
    model.ir_version = 99
    assert "ir_version 99 is newer than" in message_of(model)


@pytest.mark.parametrize(
    "text",
    [
        "g (float x) => (float y) { y = com.acme.Relu <foo = 1> (x, x, x) }",
        "g (float x) => (float y) { y = Affine <alpha = 1.0> (x) }",
        "g (float x) => (float y) { y = Identity (x) }",
        "g (float[1,1,2,2] x, float[4] s) => (float[a,b,c,d] y) { y = Resize (x, , s) }",
        "g (float[9223372036854775807, 0] x) => (float[a, 0] y) { y = Relu (x) }",
        "g (float x) => (float y) { y = Relu <__note = 1> (x) }",
    ],
)
def test_what_is_merely_unusual_is_loaded(text: str) -> None:
    parse('<ir_version: 10, opset_import: ["": 21, "com.acme": 1]>' + text)
