"""Topological order, stable under edits far away."""

from __future__ import annotations

from typing import TYPE_CHECKING

import networkx as nx

from optimizer.ir.errors import InvalidGraph

if TYPE_CHECKING:
    from optimizer.ir.queries import GraphQueries


def topological_order(graph: GraphQueries) -> list[int]:
    """Vertex ids, producers before users, otherwise by id. Depth-first over the inputs, O(V + E).

    Ids are minted in order, so a graph fresh from a file keeps the order it had there.

    Raises:
        InvalidGraph: the graph has a cycle; the message names its nodes.
    """
    vertices = graph._vertices
    sink = graph.sink.id
    keys = [*(key for key in sorted(vertices) if key != sink), sink]  # the sink is the first ever made
    order: list[int] = []
    done: set[int] = set()
    open_: set[int] = set()
    for root in keys:
        stack = [root]
        while stack:
            key = stack[-1]
            if key in done:
                stack.pop()
                continue
            node = vertices[key]["node"]
            missing = [v[0] for v in node.inputs if v is not None and v[0] not in done]
            if node.captures:
                missing += [v[0] for v in node.captures if v[0] not in done]
            if not missing:
                stack.pop()
                open_.discard(key)
                done.add(key)
                order.append(key)
            elif key in open_:
                raise InvalidGraph(describe_cycle(graph))
            else:
                open_.add(key)
                stack.extend(reversed(missing))
    return order


def describe_cycle(graph: GraphQueries) -> str:
    """One line naming the nodes of a cycle."""
    nodes = [graph.label(source) for source, _ in nx.find_cycle(graph.dag)]
    shown = " -> ".join(nodes[:6]) + (" -> ..." if len(nodes) > 6 else "")
    return f"cycle of {len(nodes)} nodes in graph '{graph.name}': {shown}"
