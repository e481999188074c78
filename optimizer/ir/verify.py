"""``verify_graph``: recomputes every invariant of a graph from scratch."""

from __future__ import annotations

from collections.abc import Iterator

import networkx as nx

from optimizer.ir.errors import InvalidGraph
from optimizer.ir.graph import Graph
from optimizer.ir.node import IR_DOMAIN, Node, Value
from optimizer.ir.topology import describe_cycle


def verify_graph(graph: Graph) -> None:
    """Checks edges, operands, interface, names, captures and acyclicity, bodies included. O(V + E).

    Raises:
        InvalidGraph: an invariant is broken; the message shows the faulty node and its neighbours.
    """
    for path, scope in graph.scopes():
        for node, fault in _faults(scope):
            where = " in " + "/".join(path) if path else ""
            raise InvalidGraph(f"{fault}{where}\n{_neighbourhood(scope, node)}")
        if not nx.is_directed_acyclic_graph(scope.dag):
            raise InvalidGraph(describe_cycle(scope))


def _faults(graph: Graph) -> Iterator[tuple[Node, str]]:
    dag = graph.dag
    interface: dict[str, list[int]] = {"Input": [], "Capture": [], "Constant": [], "Annotation": []}
    names: dict[str, int] = {}
    for key, node in sorted(dag.nodes(data="node")):
        if node is None or node.id != key:
            raise InvalidGraph(f"vertex {key} of graph '{graph.name}' holds no node of that id")
        yield from ((node, fault) for fault in _operand_faults(graph, node))
        if _slots(node) != {u: tuple(sorted(d["slots"])) for u, _, d in dag.in_edges(key, data=True)}:
            yield node, f"edges into {graph.label(node)} do not match its operands"
        if node.is_operator:
            yield from ((node, fault) for fault in _body_faults(graph, node))
        elif node.op_type in interface:
            interface[node.op_type].append(key)
        elif key != graph.sink.id:
            yield node, f"unknown vertex kind {node.op_type}"
        for name in {o.name for o in node.outputs if o.name and key != graph.sink.id}:
            if names.setdefault(name, key) != key:
                yield node, f"tensor '{name}' has two producers"
    if interface != graph._interface:
        yield graph.sink, "the interface lists do not match the vertices"


def _operand_faults(graph: Graph, node: Node) -> Iterator[str]:
    for slot, value in enumerate(node.operands):
        if value is None:
            if slot >= len(node.inputs) or node.id == graph.sink.id:
                yield f"{graph.label(node)}: operand {slot} is missing"
        elif value not in graph:
            yield f"{graph.label(node)}: operand {slot} reads vertex {value.node}, which is gone"
        elif not 0 <= value.output < len(graph.node(value).outputs) or value.node == graph.sink.id:
            yield f"{graph.label(node)}: operand {slot} reads output {value.output}, which does not exist"
    if node.id == graph.sink.id and len(node.inputs) != len(node.outputs):
        yield f"{len(node.inputs)} graph outputs, {len(node.outputs)} declarations"


def _slots(node: Node) -> dict[int, tuple[tuple[int, int], ...]]:
    slots: dict[int, list[tuple[int, int]]] = {}
    for slot, value in enumerate(node.operands):
        if value is not None:
            slots.setdefault(value.node, []).append((slot, value.output))
    return {source: tuple(pairs) for source, pairs in slots.items()}


def _body_faults(graph: Graph, node: Node) -> Iterator[str]:
    if node.domain == IR_DOMAIN:
        yield f"{node.op_type} poses as an operator"
    formal = sum(len(body.captures) for _, body in node.bodies)
    if formal != len(node.captures):
        yield f"{graph.label(node)}: {len(node.captures)} captures bound, its bodies have {formal}"


def _neighbourhood(graph: Graph, node: Node) -> str:
    """The node, what makes its operands and who reads it, one line each."""
    before = [v for v in node.operands if v is not None and v in graph]
    after = sorted(set(graph.dag.successors(node.id))) if node in graph else []
    lines = [f"    {graph.label(graph.producer(v))}" for v in dict.fromkeys(before[:5])]
    lines.append(f">>> {graph.label(node)} reads {[_spell(v) for v in node.operands]}")
    lines += [f"    {graph.label(key)}" for key in after[:5]]
    return "\n".join(lines)


def _spell(value: Value | None) -> str:
    return "-" if value is None else f"{value.node}.{value.output}"
