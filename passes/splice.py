"""Copies what one graph computes into another: a branch to its owner, a function to its caller."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from optimizer.ir import Attribute, AttributeKind, Graph, Node, Value, ValueInfo, attributes_of

Attributes = Mapping[str, Attribute]
_NONE: Attributes = {}


def names_in(graph: Graph) -> set[str]:
    """The names that values of ``graph`` bear. O(nodes)."""
    vertices = [*map(graph.node, (*graph.inputs, *graph.captures, *graph.constants)), *graph.nodes]
    return {info.name for node in (*vertices, graph.sink) for info in node.outputs if info.name}


def splice(
    target: Graph,
    source: Graph,
    bound: dict[Value, Value | None],
    taken: set[str],
    given: Attributes | None = None,
) -> list[Value | None]:
    """Adds the operators and constants of ``source`` to ``target``; returns what stands for its outputs.

    A value keeps its name where no other value of ``target`` bears it. Bodies are copied.

    Args:
        bound: what stands for the inputs and captures of ``source``; filled with everything else.
        taken: names that are in use in ``target``; grows.
        given: in a function, the attributes it is called with, which references in it stand for.
    """
    for value in source.constants:
        tensor = source.tensor(value)
        assert tensor is not None
        if source.has_uses(value) and value not in bound:
            bound[value] = target.add_constant(tensor, free_info(source.info(value), taken))
    for node in source.topological():
        made = target.add(
            node.op_type,
            _trimmed(node, [None if v is None else bound[v] for v in node.inputs]),
            _resolved(node.attributes, given),
            [free_info(info, taken) for info in node.outputs],
            domain=node.domain,
            captures=[b for v in node.captures if (b := bound[v]) is not None],
            overload=node.overload,
            name=node.name,
            origin=node.origin,
        )
        bound.update((node.value(i), made.value(i)) for i in range(len(node.outputs)))
    return [bound[value] for value in source.outputs]


def _trimmed(node: Node, inputs: list[Value | None]) -> list[Value | None]:
    """The inputs without those at the end that the caller left out."""
    while inputs and inputs[-1] is None and node.inputs[len(inputs) - 1] is not None:
        inputs.pop()
    return inputs


def free_info(info: ValueInfo, taken: set[str]) -> ValueInfo:
    """``info``, without its name where that is taken already; the name is taken from now on."""
    if not info.name or info.name in taken:
        return replace(info, name="")
    taken.add(info.name)
    return info


def _resolved(attributes: Attributes, given: Attributes | None) -> Attributes:
    """The attributes with references looked up and bodies copied; a reference to nothing is dropped."""
    found: dict[str, Attribute] = {}
    for name, attribute in attributes.items():
        if attribute.reference and given is not None:
            if attribute.reference in given:
                found[name] = given[attribute.reference]
        elif attribute.kind is AttributeKind.GRAPH:
            found[name] = replace(attribute, value=_copy(attribute.value, given))
        elif attribute.kind is AttributeKind.GRAPHS:
            found[name] = replace(attribute, value=tuple(_copy(body, given) for body in attribute.value))
        else:
            found[name] = attribute
    return attributes_of(found)


def _copy(body: Graph, given: Attributes | None) -> Graph:
    twin = body.copy()
    if given is not None:
        for node in twin.nodes:
            if node.attributes:
                twin.set_attrs(node, _resolved(node.attributes, given))
    return twin
