"""Names on export: the interface keeps its own, survivors keep theirs, nothing collides or shadows."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from optimizer.io import parse, save, to_proto
from optimizer.ir import DType, Graph, InvalidGraph, Model, TensorType, Value, ValueInfo

HEAD = '<ir_version: 10, opset_import: ["": 21]>\n'
PAIR = TensorType(DType.FLOAT, (2,))
CHAIN = "g (float[2] x) => (float[2] y) { [p] a = Relu(x) [q] b = Neg(a) [r] y = Exp(b) }"
IF = (
    "g (float[2] x, bool c) => (float[2] y) { a = Neg(x)"
    " y = If(c) <then_branch = t () => (float[2] r) { r = Relu(a) },"
    " else_branch = e () => (float[2] s) { s = Abs(a) }> }"
)


def node(graph: Graph, op: str):
    return next(n for n in graph.nodes if n.op_type == op)


def replaced(graph: Graph) -> None:
    """``b`` gets a stand-in, which takes its name."""
    graph.replace_uses(node(graph, "Neg").value(), graph.add("Abs", [node(graph, "Relu").value()]).value())


def replaced_and_kept(graph: Graph) -> None:
    """The stand-in of ``y`` bears the output's name; the old ``y`` lives on under another."""
    old = node(graph, "Exp").value()
    new = graph.add("Abs", [old])
    graph.set_inputs(graph.sink, [new.value()])


def anonymous(graph: Graph) -> None:
    new = graph.add("Sin", [node(graph, "Relu").value()])
    graph.set_inputs(node(graph, "Exp"), [graph.add("Sin", [new.value()]).value()])


def output_is_input(graph: Graph) -> None:
    graph.set_inputs(graph.sink, [graph.inputs[0]])


def two_outputs_of_one_value(graph: Graph) -> None:
    value = node(graph, "Neg").value()
    graph.set_outputs([value, value], [ValueInfo("first", PAIR), ValueInfo("b", PAIR)])


def output_is_constant(graph: Graph) -> None:
    graph.set_outputs([graph.add_constant(np.ones(2, np.float32), "k")], [ValueInfo("y", PAIR)])


def same_node_names(graph: Graph) -> None:
    graph.set_attrs(node(graph, "Neg"), name="p")


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (replaced, "a=Relu(x) =Neg(a) y=Exp(b) b=Abs(a)"),
        (replaced_and_kept, "a=Relu(x) b=Neg(a) y_1=Exp(b) y=Abs(y_1)"),
        (anonymous, "a=Relu(x) b=Neg(a) Sin=Sin(a) Sin_1=Sin(Sin) y=Exp(Sin_1)"),
        (output_is_input, "a=Relu(x) b=Neg(a) y_1=Exp(b) y=Identity(x)"),
        (two_outputs_of_one_value, "a=Relu(x) b=Neg(a) y=Exp(b) first=Identity(b)"),
        (output_is_constant, "a=Relu(x) b=Neg(a) y_1=Exp(b)"),
        (same_node_names, "a=Relu(x) b=Neg(a) y=Exp(b)"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_main_graph(edit: object, expected: str) -> None:
    model = parse(HEAD + CHAIN)
    assert callable(edit)
    edit(model.graph)
    proto = to_proto(model)
    made = [f"{','.join(n.output)}={n.op_type}({','.join(n.input)})" for n in proto.graph.node]
    if edit is replaced:  # an unused output without a name is one that Neg cannot leave out
        made = [line.replace("Neg=", "=") for line in made]
    assert sorted(made) == sorted(expected.split())
    onnx.checker.check_model(proto)
    names = [n.name for n in proto.graph.node if n.name]
    assert len(set(names)) == len(names)
    assert [i.name for i in proto.graph.input] == ["x"]
    if edit is output_is_constant:
        assert [t.name for t in proto.graph.initializer] == ["y"]


def body_returns_its_capture(model: Model) -> None:
    body = node(model.graph, "If").bodies[0][1]
    body.set_inputs(body.sink, [body.captures[0]])


def body_name_taken_outside(model: Model) -> None:
    graph = model.graph
    graph.set_attrs(node(graph, "Neg"), outputs=["r"])


def owner_reads_another_value(model: Model) -> None:
    graph = model.graph
    new = graph.add("Sin", [graph.inputs[0]])
    graph.replace_uses(node(graph, "Neg").value(), new.value())


@pytest.mark.parametrize(
    ("edit", "then", "otherwise"),
    [
        (body_returns_its_capture, "r_1=Relu(a) r=Identity(a)", "s=Abs(a)"),
        (body_name_taken_outside, "r_1=Relu(r)", "s=Abs(r)"),
        (owner_reads_another_value, "r=Relu(a)", "s=Abs(a)"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_bodies(edit: object, then: str, otherwise: str) -> None:
    model = parse(HEAD + IF)
    assert callable(edit)
    edit(model)
    proto = to_proto(model)
    onnx.checker.check_model(proto, full_check=True)
    (owner,) = (n for n in proto.graph.node if n.op_type == "If")
    bodies = [[f"{n.output[0]}={n.op_type}({n.input[0]})" for n in a.g.node] for a in owner.attribute]
    assert [" ".join(body) for body in bodies] == [then, otherwise]


def test_impossible_output_name() -> None:
    model = parse(HEAD + "g (float[2] x) => (float[2] x) { a = Relu(x) }")
    model.graph.set_inputs(model.graph.sink, [node(model.graph, "Relu").value()])
    with pytest.raises(InvalidGraph, match="'x'"):
        to_proto(model)


def test_unused_outputs() -> None:
    """Optional outputs may be left out; those of a variadic list may not."""
    model = parse(
        HEAD + "g (float[4] x) => (float[2] y) <bool t = {0}, float r = {0.5}> {"
        ' y, "" = Split <num_outputs = 2> (x) d, "" = Dropout(x, r, t) }'
    )
    split, dropout = to_proto(model).graph.node
    assert list(split.output) == ["y", "Split"]
    assert list(dropout.output) == ["d", ""]


def test_result_tells_every_name(tmp_path) -> None:
    model = parse(HEAD + IF)
    body_name_taken_outside(model)
    names = save(model, tmp_path / "m.onnx").names
    graph, owner = model.graph, node(model.graph, "If")
    assert names[()][node(graph, "Neg").value()] == "r"
    assert names[()][Value(owner.id)] == "y"
    path = next(path for path, scope in graph.scopes() if path and scope is owner.bodies[0][1])
    relu = node(owner.bodies[0][1], "Relu")
    assert names[path][relu.value()] == "r_1"
    assert names[path][owner.bodies[0][1].captures[0]] == "r"
