"""The graph: mutators, edges with slots, undo, bodies, queries."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from optimizer.ir import (
    Attribute,
    Change,
    DType,
    Graph,
    InvalidGraph,
    Role,
    Tensor,
    TensorType,
    Use,
    Value,
    ValueInfo,
    verify_graph,
)


def chain() -> tuple[Graph, Value, Value, Value]:
    """x -> Relu r -> Add(r, r) a -> output y."""
    graph = Graph("g", {"": 17})
    x = graph.add_input(ValueInfo("x", TensorType(DType.FLOAT, ("N", 3))))
    r = graph.add("Relu", [x], outputs=["r"]).value()
    a = graph.add("Add", [r, r], outputs=["a"]).value()
    graph.set_outputs([a], ["y"])
    return graph, x, r, a


def test_two_reads_of_one_value_are_one_edge_with_two_slots() -> None:
    graph, _, r, a = chain()
    assert graph.dag.edges[r.node, a.node]["slots"] == ((0, 0), (1, 0))
    assert graph.uses(r) == [Use(a.node, 0), Use(a.node, 1)]
    assert graph.only_use(r) is None
    verify_graph(graph)


def test_the_sink_is_a_use_but_not_a_node() -> None:
    graph, _, _, a = chain()
    assert graph.only_use(a) == Use(graph.sink.id, 0)
    assert graph.is_output(a)
    assert [node.op_type for node in graph.nodes] == ["Relu", "Add"]
    assert len(graph) == 2
    assert graph.histogram() == {"Relu": 1, "Add": 1}


def test_roles_follow_their_precedence() -> None:
    graph, x, r, a = chain()
    k = graph.add_constant(np.ones(3, np.float32), "k")
    assert [graph.role(v) for v in (x, k, a, r)] == [
        Role.INPUT,
        Role.CONSTANT,
        Role.OUTPUT,
        Role.INTERMEDIATE,
    ]
    graph.set_outputs([a, k], ["y", "k"])
    assert graph.role(k) is Role.CONSTANT
    assert graph.is_output(k)


def test_replace_uses_moves_the_name_to_an_anonymous_value() -> None:
    graph, x, r, a = chain()
    fresh = graph.add("Abs", [x]).value()
    assert graph.replace_uses(r, fresh) == 2
    assert graph.info(fresh).name == "r"
    assert graph.info(r).name == ""
    assert graph.node(a).inputs == (fresh, fresh)
    graph.erase(r.node)
    verify_graph(graph)


def test_a_value_can_be_wrapped() -> None:
    graph, _, r, a = chain()
    wrapped = graph.add("Neg", [r]).value()
    graph.replace_uses(r, wrapped)
    assert graph.node(wrapped).inputs == (r,)
    assert graph.node(a).inputs == (wrapped, wrapped)
    verify_graph(graph)


def test_only_the_chosen_uses_are_replaced() -> None:
    graph, x, r, a = chain()
    graph.replace_uses(r, x, [Use(a.node, 1)])
    assert graph.node(a).inputs == (r, x)
    assert graph.info(r).name == "r"


def test_erase_refuses_a_used_vertex_and_names_the_reader() -> None:
    graph, _, r, _ = chain()
    with pytest.raises(InvalidGraph, match=r"Relu #\d+ -> 'r': read by Add"):
        graph.erase(r.node)
    with pytest.raises(InvalidGraph, match="the output sink"):
        graph.erase(graph.sink)


def test_reading_a_vertex_that_is_not_there_is_refused() -> None:
    graph, *_ = chain()
    with pytest.raises(InvalidGraph, match="reads vertex 99"):
        graph.add("Relu", [Value(99)])


def test_nodes_may_be_edited_while_looping_over_them() -> None:
    graph, x, _, _ = chain()
    seen = []
    for node in graph.nodes:
        seen.append(node.op_type)
        if node.op_type == "Relu":
            graph.replace_uses(node.value(), graph.add("Abs", [x]).value())
            graph.erase(node)
    assert seen == ["Relu", "Add"]
    assert sorted(graph.histogram()) == ["Abs", "Add"]


def test_every_change_can_be_taken_back_and_ids_return() -> None:
    graph, x, r, a = chain()
    before = graph.copy()
    changes: list[Change] = []
    graph.subscribe(lambda _, change: changes.append(change))
    k = graph.add_constant(np.float32(2), "k")
    doubled = graph.add("Mul", [x, k]).value()
    graph.replace_uses(r, doubled)
    graph.erase(r.node)
    graph.set_attrs(a.node, {"axis": 1}, name="sum")
    verify_graph(graph)
    for change in reversed(list(changes)):
        graph.revert(change)
    verify_graph(graph)
    assert nx.utils.graphs_equal(_shape(graph), _shape(before))
    assert r.node in graph
    assert graph.add("Relu", [x]).id > doubled.node


def _shape(graph: Graph) -> nx.DiGraph:
    plain = nx.DiGraph()
    for key, node in graph.dag.nodes(data="node"):
        plain.add_node(
            key, op=node.op, inputs=node.inputs, names=[o.name for o in node.outputs], label=node.name
        )
    plain.add_edges_from((u, v, dict(d)) for u, v, d in graph.dag.edges(data=True))
    return plain


def test_topological_order_is_stable_and_cycles_are_named() -> None:
    graph, _, r, a = chain()
    assert [n.op_type for n in graph.topological()] == ["Relu", "Add"]
    late = graph.add("Abs", [graph.inputs[0]]).value()
    graph.set_inputs(r.node, [late])
    assert [n.op_type for n in graph.topological()] == ["Abs", "Relu", "Add"]
    graph.set_inputs(late.node, [a])
    with pytest.raises(InvalidGraph, match=r"cycle of 3 nodes in graph 'g'"):
        graph.topological()


def test_deep_graphs_do_not_overflow_the_stack() -> None:
    graph = Graph()
    value = graph.add_input("x")
    first = graph.add("Relu", [value])
    value = first.value()
    for _ in range(20_000):
        value = graph.add("Relu", [value]).value()
    graph.set_outputs([value], ["y"])
    graph.set_inputs(first, [graph.add("Abs", [graph.inputs[0]]).value()])  # no longer in order of ids
    assert len(graph.topological()) == 20_002


def body_with(graph: Graph, *bound: Value) -> tuple[Graph, list[Value]]:
    body = Graph("body", graph.opsets)
    formal = [body.add_capture(f"c{i}") for i in range(len(bound))]
    total = body.add("Sum", formal, outputs=["s"]).value()
    body.set_outputs([total], ["out"])
    return body, formal


def test_bodies_bind_their_captures_by_position() -> None:
    graph, x, r, a = chain()
    cond = graph.add_input("cond")
    then, _ = body_with(graph, x)
    other, _ = body_with(graph, r, a)
    node = graph.add("If", [cond], {"then_branch": then, "else_branch": other}, captures=[x, r, a])
    assert node.captures_of(0) == (x,)
    assert node.captures_of(1) == (r, a)
    assert Use(node.id, 2) in graph.uses(r)
    assert [path for path, _ in graph.scopes()] == [
        (),
        (f"{node.id}.then_branch",),
        (f"{node.id}.else_branch",),
    ]
    verify_graph(graph)
    graph.replace_uses(r, x)
    assert graph.node(node.id).captures == (x, x, a)
    twin = graph.copy()
    twin_then = twin.node(node.id).bodies[0][1]
    twin_then.set_attrs(next(iter(twin_then.nodes)), name="renamed")
    assert next(iter(then.nodes)).name == ""


FAULTS = {
    "captures": lambda g, n: g.set_inputs(n, n.inputs, []),
    "edge": lambda g, n: g._dag.add_edge(g.inputs[0].node, n.id, slots=((5, 0),)),
    "interface": lambda g, n: g._interface["Constant"].append(99),
    "output": lambda g, n: g.set_inputs(n, [Value(g.inputs[0].node, 3)]),
    "name": lambda g, n: g.set_attrs(n, outputs=["x"]),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_verify_finds_each_broken_invariant(fault: str) -> None:
    graph, x, r, _ = chain()
    body, _ = body_with(graph, x)
    node = graph.add("If", [r], {"then_branch": body}, captures=[x])
    verify_graph(graph)
    FAULTS[fault](graph, node)
    with pytest.raises(InvalidGraph):
        verify_graph(graph)


def test_verify_shows_the_neighbours() -> None:
    graph, _, r, a = chain()
    graph._dag.edges[r.node, a.node]["slots"] = ((0, 0),)
    with pytest.raises(
        InvalidGraph, match=r"(?s)do not match its operands.*Relu.*>>> Add.*oinfer.ir::Output"
    ):
        verify_graph(graph)


ATTRIBUTES = [
    (1, "INT"),
    (1.5, "FLOAT"),
    ("s", "STRING"),
    ([1, 2], "INTS"),
    ([1, 2.5], "FLOATS"),
    (True, "INT"),
]


@pytest.mark.parametrize(("value", "kind"), ATTRIBUTES)
def test_attribute_kinds_follow_from_plain_values(value: object, kind: str) -> None:
    assert Attribute.of(value).kind.name == kind


def test_an_empty_list_leaves_the_kind_open() -> None:
    with pytest.raises(TypeError, match="empty list"):
        Attribute.of([])


def test_constants_load_once_and_hash_by_bytes() -> None:
    loads = []

    def load() -> np.ndarray:
        loads.append(1)
        return np.array([0.0, 1.0], np.float32)

    lazy = Tensor(DType.FLOAT, (2,), load)
    assert (lazy.size, lazy.nbytes, loads) == (2, 8, [])
    assert lazy.digest == Tensor.of(np.array([0.0, 1.0], np.float32)).digest
    assert lazy.digest != Tensor.of(np.array([-0.0, 1.0], np.float32)).digest
    assert not lazy.array.flags.writeable
    assert loads == [1]
