"""A part of a model as a model of its own."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from optimizer.analysis import Facts
from optimizer.ir import AttributeKind, Graph, Model, Node, Value, ValueInfo


def extract(model: Model, facts: Facts, kept: Collection[int], outputs: Collection[str] = ()) -> Model | None:
    """The nodes ``kept`` of the main graph; what the others made is an input, what nothing reads an output.

    Args:
        facts: about the main graph: the types of new inputs.
        outputs: names of outputs of the result to keep, where they are not all wanted.

    Returns:
        ``None`` where nothing is left, or where the type of a new input is not known.
    """
    source, graph = model.graph, Graph(model.graph.name, model.graph.opsets)
    local: dict[Value, Value] = {}
    nodes = [node for node in source.topological() if node.id in kept]
    for value in _read_first(source, nodes):
        made = _entry(source, graph, facts, value)
        if made is None:
            return None
        local[value] = made
    for node in nodes:
        copy_node(graph, node, local)
    found = [(v, info) for v, info in _results(source, nodes, facts) if not outputs or info.name in outputs]
    if not found:
        return None
    graph.set_outputs([local[value] for value, _ in found], [info for _, info in found])
    return replace(model, graph=graph, warnings=[], extras={})


def copy_node(graph: Graph, node: Node, local: dict[Value, Value]) -> None:
    """Adds a node to ``graph`` with its operands there, and notes where its outputs are."""
    made = graph.add(
        node.op_type,
        [None if v is None else local[v] for v in node.inputs],
        _with_own_bodies(node),
        node.outputs,
        domain=node.domain,
        captures=[local[v] for v in node.captures],
        overload=node.overload,
        name=node.name,
    )
    local.update((node.value(i), made.value(i)) for i in range(len(node.outputs)))


def _with_own_bodies(node: Node) -> dict[str, object]:
    attributes = dict[str, object](node.attributes)
    for name, attribute in node.attributes.items():
        if attribute.kind is AttributeKind.GRAPH and not attribute.reference:
            attributes[name] = replace(attribute, value=attribute.value.copy())
    return attributes


def _read_first(source: Graph, nodes: list[Node]) -> list[Value]:
    """What the nodes read and none of them makes: the graph's own inputs in their order, then the rest."""
    made = {node.id for node in nodes}
    read = dict.fromkeys(v for n in nodes for v in n.operands if v is not None and v.node not in made)
    inputs = [value for value in source.inputs if value in read]
    return [*inputs, *(value for value in read if value not in inputs)]


def _entry(source: Graph, graph: Graph, facts: Facts, value: Value) -> Value | None:
    """A constant, or an input in the place of whatever made the value."""
    info, tensor = source.info(value), source.tensor(value)
    if tensor is not None:
        return graph.add_constant(tensor, info)
    if value in source.inputs:
        return graph.add_input(info, source.node(value.node).attr("default"))
    declared = _typed(info, value, facts)
    return None if declared.type is None else graph.add_input(declared)


def _results(source: Graph, nodes: list[Node], facts: Facts) -> list[tuple[Value, ValueInfo]]:
    """The outputs of the original that are left, and what no node that is left reads."""
    made = {node.id for node in nodes}
    read = {v for node in nodes for v in node.operands if v is not None}
    named = zip(source.outputs, source.sink.outputs, strict=True)
    found = {value: info for value, info in named if value.node in made}
    for node in nodes:
        for index, info in enumerate(node.outputs):
            value = node.value(index)
            if value not in read and value not in found and (source.has_uses(value) or info.name):
                found[value] = _typed(info, value, facts)
    return [(value, info) for value, info in found.items() if info.type is not None]


def _typed(info: ValueInfo, value: Value, facts: Facts) -> ValueInfo:
    """With a name and the type that is known of it, dims that are no plain names left open."""
    name = info.name or f"value_{value.node}_{value.output}"
    return replace(info, name=name, type=facts.of(value).to_type())
