"""The text dump: legal ONNX text that parses back, and canonical texts to compare graphs by."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx.parser
import pytest
from onnx import helper, numpy_helper

from optimizer.io import load, parse, to_proto
from optimizer.ir import (
    Attribute,
    AttributeKind,
    DType,
    Graph,
    MapType,
    OpaqueType,
    OptionalType,
    SequenceType,
    Tensor,
    TensorType,
    ValueInfo,
)
from optimizer.ir.literals import identifier, spell_attribute, spell_type, word
from optimizer.ir.text import dump

HEAD = '<\n  ir_version: 10,\n  opset_import: ["": 21]\n>\n'


def test_layout() -> None:
    text = (
        'g (float[N,3] "x/a:0", bool c) => (float[N,3] y)\n'
        "<\n"
        "  float[3] w = {1, -2.5, inf},\n"
        "  float16[2] h = {14336, 15360}  # 0.5, 1\n"
        ">\n"
        "{\n"
        '  [first] a, "" = Dropout (x0)  # float[N,3]\n'
        "  y = If <then_branch = t () => (float[N,3] r)\n"
        "  {\n"
        "    r = Add (a, w)\n"
        "  }, else_branch = e () => (float[N,3] s)\n"
        "  <\n"
        "    float[3] k = {0, 0, 0}\n"
        "  >\n"
        "  {\n"
        "    s = Sub (a, k)\n"
        "  }> (c)\n"
        "}\n"
    ).replace("x0", '"x/a:0"')
    model = parse(HEAD + text.replace("\n{", "\n{", 1))
    (dropout,) = (n for n in model.graph.nodes if n.op_type == "Dropout")
    declared = ValueInfo("a", TensorType(DType.FLOAT, ("N", 3)))
    model.graph.set_attrs(dropout, outputs=[declared, dropout.outputs[1]])
    assert dump(model) == HEAD + text
    assert dump(model.graph) == text


TYPES = "float[N,3,?] x, float s, float[] u, seq(float[2]) q, optional(int64) o, map(int64, string) m"
ATTRIBUTES = (
    'i = 1, f = 2.0, s = "q\\"t\\\\", is = [1, -2], fs = [1.5, inf], ss = ["a", "b"], e: ints = [],'
    " es: strings = [], t = float[2] {1, nan}, tp: type_proto = seq(float[N]), nan = nan"
)
CONSTANTS = (
    'bool[2] b = {1, 0}, double d = {1e-310}, uint64 u = {18446744073709551615}, string[2] s = {"a", "b"},'
    " int4[3] i = {33, 2}, uint2[5] t = {228, 1}, float4e2m1[3] f = {33, 2}, float8e5m2[2] e = {1, 2},"
    " bfloat16 h = {16256}, complex64[1] c = {1, 2}, float[0] z = {}"
)
LOOP = (
    "y = Loop(n, t, x) <body = b (int64 i, bool ci, float v) => (bool ci, float w) <float k = {1}>"
    " { a = Add(v, k) w = If(t) <then_branch = p () => (float r) { r = Add(a, x) },"
    " else_branch = e () => (float z) { z = Neg(v) }> }>"
)
FUNCTION = (
    ' <domain: "d", opset_import: ["": 21], overload: "o", doc_string: "text">'
    " f <alpha, beta: float = 2.0> (p) => (q)"
    " { k = Constant <value = float {2}> () q = Foo <a: int = @alpha> (p, k) }"
)
ROWS = {
    "types": f"g ({TYPES}) => (float y) {{ y = Foo(x) }}",
    "default": "g (float x) => (float y) <float x = {3}> { y = Relu(x) }",
    "attributes": f'g (float x) => (float y) {{ y = a.b.Foo:v <{ATTRIBUTES}> (x, "", x) }}',
    "declarations": "g (float x) => (float y) <float[N] a, int64[2] b> { a, b = Foo(x) y = Bar(a, b) }",
    "odd names": 'g (float "float") => (float y) { "" , "a b" = Foo("float") y = Relu("a b") }',
    "constants": f"g (float x) => (float y) <{CONSTANTS}> {{ y = Foo(x, b, d, u, s, i, t, f, e, h, c, z) }}",
    "bodies": f"g (float x, int64 n, bool t) => (float y) {{ {LOOP} }}",
    "function": "g (float x) => (float y) { y = d.f <alpha = 1> (x) }" + FUNCTION,
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_complete_texts_parse_back(row: str) -> None:
    model = parse(HEAD + row)
    text = dump(model, max_elements=None)
    again = parse(text)
    assert dump(again, max_elements=None) == text
    assert to_proto(again) == to_proto(model)


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_canonical_texts_do_not_depend_on_names(row: str) -> None:
    """Renaming inner tensors, labelling nodes and copying through a file leave the text as it is."""
    model = parse(HEAD + row)
    text = dump(model, canonical=True)
    assert dump(load(to_proto(model)), canonical=True) == text
    for _, graph in model.graphs():
        for node in list(graph.nodes):
            kept = {info.name for info in graph.sink.outputs}
            renamed = [
                o if o.name in kept or not o.name else ValueInfo(f"r{node.id}_{i}", o.type)
                for i, o in enumerate(node.outputs)
            ]
            graph.set_attrs(node, outputs=renamed, name=f"n{node.id}")
    assert dump(model, canonical=True) == text


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("{ a = Relu(x) b = Neg(x) y = Sub(a, b) }", "{ q = Neg(x) p = Relu(x) y = Sub(p, q) }", True),
        ("{ a = Relu(x) b = Neg(x) y = Sub(a, b) }", "{ a = Relu(x) b = Neg(x) y = Sub(b, a) }", False),
        ("{ y = Relu(x) z = Neg(x) }", "{ y = Relu(x) }", True),
        ("<float k = {1}> { y = Add(x, k) }", "<float c = {1}> { y = Add(x, c) }", True),
        ("<float k = {1}> { y = Add(x, k) }", "<float k = {2}> { y = Add(x, k) }", False),
        ("{ y = Foo <a = 1, b = 2> (x) }", "{ y = Foo <b = 2, a = 1> (x) }", True),
        ("{ y = Foo <a = 1> (x) }", "{ y = Foo <a = 1.0> (x) }", False),
        (
            "{ a = Relu(x) b = Neg(x) y = Holder(x) <p = p () => (float r) { r = Sub(a, b) }> }",
            "{ b = Relu(x) a = Neg(x) y = Holder(x) <p = p () => (float s) { s = Sub(b, a) }> }",
            True,
        ),
        (
            "{ a = Relu(x) b = Neg(x) y = Holder(x) <p = p () => (float r) { r = Sub(a, b) }> }",
            "{ a = Relu(x) b = Neg(x) y = Holder(x) <p = p () => (float r) { r = Sub(b, a) }> }",
            False,
        ),
    ],
)
def test_canonical_texts_tell_graphs_apart(first: str, second: str, same: bool) -> None:
    texts = [dump(parse(f"{HEAD} g (float x) => (float y) {row}"), canonical=True) for row in (first, second)]
    assert (texts[0] == texts[1]) is same


def test_long_constants_are_elided_and_can_be_given_back() -> None:
    array = np.arange(9, dtype=np.float32)
    proto = onnx.parser.parse_model(HEAD + "g (float[9] x) => (float[9] y) { y = Add(x, w) }")
    proto.graph.initializer.append(numpy_helper.from_array(array, "w"))
    model = load(proto)
    text = dump(model)
    assert "  float[9] w  # 9 elements\n" in text
    assert "{0, 1, 2" in dump(model, max_elements=9)
    again = parse(text, {"w": array})
    assert dump(again, max_elements=None) == dump(model, max_elements=None)
    proto.graph.node[0].attribute.append(helper.make_attribute("__t", numpy_helper.from_array(array)))
    assert "__t = float[9] {...}" in dump(load(proto))


def test_values_without_a_name() -> None:
    graph = Graph("g", {"": 21})
    x = graph.add_input(ValueInfo("_4", TensorType(DType.FLOAT, ())))
    split = graph.add("Foo", [x], outputs=2)
    used = graph.add("Bar", [split.value(1), graph.add_constant(Tensor.of(np.float32(1)))])
    graph.set_outputs([used.value(), x, used.value()], ["y", "z", "w"])
    assert dump(graph).splitlines()[1:] == [
        "<",
        "  float _3 = {1}",
        ">",
        "{",
        '  "", _2_1 = Foo (_4)',
        "  y = Bar (_2_1, _3)",
        "  z = Identity (_4)",
        "  w = Identity (y)",
        "}",
    ]


@pytest.mark.parametrize(
    ("declared", "text"),
    [
        (TensorType(DType.FLOAT, (2, "N", None)), "float[2,N,?]"),
        (TensorType(DType.BFLOAT16, ("a b",)), 'bfloat16["a b"]'),
        (TensorType(DType.INT8, ()), "int8"),
        (TensorType(DType.INT8), "int8[]"),
        (TensorType(DType.FLOAT, (2,), sparse=True), "sparse_tensor(float[2])"),
        (SequenceType(OptionalType(TensorType(DType.STRING, ()))), "seq(optional(string))"),
        (MapType(DType.INT64, None), "map(int64, ?)"),
        (OpaqueType("d", "n"), "opaque(d, n)"),
        (None, "?"),
    ],
)
def test_types(declared: object, text: str) -> None:
    assert spell_type(declared) == text


@pytest.mark.parametrize(
    ("name", "quoted", "plain"),
    [("x", "x", "x"), ("x.1", '"x.1"', "x_1"), ("float", '"float"', "_float"), ("1x", '"1x"', "_1x"),
     ("", '""', "body"), ("inf", "inf", "_inf"), ('a"b', '"a\\"b"', "a_b"), ("é", '"é"', "_")],
)  # fmt: skip
def test_words(name: str, quoted: str, plain: str) -> None:
    assert identifier(name) == quoted
    assert word(name, "body") == plain


@pytest.mark.parametrize(
    ("attribute", "text"),
    [
        (Attribute.of(2.0), "a = 2.0"),
        (Attribute.of(0.1), "a = 0.1"),
        (Attribute.of(b"\xff"), 'a = "\\\\xff"'),
        (Attribute(AttributeKind.GRAPHS, ()), "a: graphs = []"),
        (Attribute(AttributeKind.INT, None, "outer"), "a: int = @outer"),
        (Attribute.of(np.ones((1, 2), ml_dtypes.bfloat16)), "a = bfloat16[1,2] {16256, 16256}"),
    ],
)
def test_attributes(attribute: Attribute, text: str) -> None:
    assert spell_attribute("a", attribute, 8, str) == text
