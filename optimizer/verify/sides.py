"""One version of a region as a small graph of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from optimizer.ir import IR_DOMAIN, AttributeKind, Graph, Node, Tensor, Value

Edits = dict[int, tuple[Node | None, Node | None]]
"""Vertex id to what it was before an application and what it is now; only what really changed."""

Lookup = Callable[[int], "Node | None"]


@dataclass(slots=True)
class Side:
    """One version of a region. Every constant is an input of its graph, so that it can be varied.

    Attributes:
        local: value of the model's graph to value of ``graph``.
        constants: the constants it reads, by value of the model's graph.
        outputs: values of ``graph`` to compare, in the order of the region's pairs.
        origin: vertex of ``graph`` to vertex of the model's graph.
    """

    graph: Graph
    local: dict[Value, Value] = field(default_factory=dict)
    constants: dict[Value, Tensor] = field(default_factory=dict)
    outputs: tuple[Value, ...] = ()
    origin: dict[int, int] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)


@dataclass(slots=True)
class Cone:
    """What some values are computed from: operators (producers first), constants, boundary values."""

    nodes: dict[int, Node] = field(default_factory=dict)
    boundary: dict[Value, None] = field(default_factory=dict)
    constants: dict[Value, Tensor] = field(default_factory=dict)


def cone_of(lookup: Lookup, targets: Sequence[Value], inside: Callable[[int], bool]) -> Cone:
    """Follows the operands of ``targets`` up through all operators that are ``inside``. O(cone)."""
    cone = Cone()
    stack = [(value, False) for value in reversed(targets)]
    while stack:
        value, ready = stack.pop()
        if value.node in cone.nodes or value in cone.boundary or value in cone.constants:
            continue
        node = lookup(value.node)
        if node is not None and node.domain == IR_DOMAIN and node.op_type == "Constant":
            cone.constants[value] = node.attr("value")
        elif node is None or not node.is_operator or not inside(value.node):
            cone.boundary[value] = None
        elif ready:
            cone.nodes[node.id] = node
        else:
            stack.append((value, True))
            stack.extend((v, False) for v in reversed(node.operands) if v is not None)
    return cone


def build_side(
    source: Graph, cone: Cone, boundary: Sequence[Value], outputs: Sequence[Value], opsets: Mapping[str, int]
) -> Side:
    """The cone as a graph: boundary values and constants in, everything else computed."""
    side = Side(Graph(source.name, opsets), constants=cone.constants)
    given = (*boundary, *cone.constants)
    vertex = side.graph.add("Input", outputs=len(given), domain=IR_DOMAIN)  # one for all: it is cheaper
    side.local.update((value, vertex.value(i)) for i, value in enumerate(given))
    for node in cone.nodes.values():
        made = _add_copy(side.graph, node, side.local)
        side.origin[made.id] = node.id
        side.nodes.append(made)
    side.outputs = tuple(side.local[value] for value in outputs)
    return side


def _add_copy(graph: Graph, node: Node, local: dict[Value, Value]) -> Node:
    made = graph.add(
        node.op_type,
        [None if v is None else local[v] for v in node.inputs],
        node.attributes,
        node.outputs,
        domain=node.domain,
        captures=[local[v] for v in node.captures],
        overload=node.overload,
        name=node.name,
    )
    local.update((node.value(i), made.value(i)) for i in range(len(node.outputs)))
    return made


# -------------------------------------------------------------------- bodies as they were


def with_restored_bodies(node: Node, edits: Mapping[Graph, Edits]) -> Node:
    """The node with copies of its bodies in the state they had before the edits."""
    attributes = dict(node.attributes)
    for name, attribute in node.attributes.items():
        if attribute.kind is AttributeKind.GRAPH and not attribute.reference:
            attributes[name] = replace(attribute, value=_restored(attribute.value, edits))
        elif attribute.kind is AttributeKind.GRAPHS:
            bodies = tuple(_restored(body, edits) for body in attribute.value)
            attributes[name] = replace(attribute, value=bodies)
    return replace(node, attributes=attributes)


def _restored(body: Graph, edits: Mapping[Graph, Edits]) -> Graph:
    if not any(scope in edits for _, scope in body.scopes()):
        return body
    changed = edits.get(body, {})
    nodes = {key: node for key, node in body.dag.nodes(data="node") if key not in changed}
    nodes.update((key, before) for key, (before, _) in changed.items() if before is not None)
    twin, local = Graph(body.name, body.opsets), dict[Value, Value]()
    sink = nodes.pop(body.sink.id)
    for key in sorted(k for k, n in nodes.items() if not n.is_operator and n.op_type != "Annotation"):
        _add_copy(twin, nodes[key], local)
    for node in _producers_first(n for n in nodes.values() if n.is_operator):
        _add_copy(twin, with_restored_bodies(node, edits), local)
    twin.set_outputs([local[v] for v in sink.inputs if v is not None], sink.outputs)
    return twin


def _producers_first(nodes: Iterable[Node]) -> list[Node]:
    found = {node.id: node for node in nodes}
    ends = [node.value() for node in found.values() if node.outputs]
    cone = cone_of(found.get, ends, lambda key: key in found)
    return list(cone.nodes.values())
