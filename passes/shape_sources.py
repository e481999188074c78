"""Dimensions read from another tensor that has them too, where one Shape node less does then."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from optimizer.analysis import Dim, Facts
from optimizer.ir import Graph, Node, Value
from optimizer.rewrite import Context, ScopePass

RULE = "read-dimension-elsewhere"
SEARCH = 4096
"""Operators looked at to see whether a tensor is made in time."""


def read_elsewhere(ctx: Context, path: tuple[str, ...], graph: Graph) -> bool:
    """Gather(Shape(a), i) -> Gather(Shape(b), j), where nothing else reads Shape(a). O(shapes^2 + search)."""
    shapes = [node for node in graph.nodes if node.op == "Shape"] if "Gather" in graph.op_types else []
    changed = False
    for told in shapes if len(shapes) > 1 else ():
        if told.id not in graph or ctx.is_kept(told):
            continue
        gather = _only_reader(graph, told)
        if gather is None or not ctx.allows(RULE, path, graph, gather):
            continue
        others = [node for node in shapes if node is not told and node.id in graph]
        found = _place_elsewhere(ctx.facts(graph), graph, gather, others)
        if found is not None:
            changed |= _apply(ctx, path, graph, gather, *found)
    return changed


def _only_reader(graph: Graph, told: Node) -> Node | None:
    """The Gather that alone reads a Shape, with constant indices."""
    users = graph.users(told.id)
    node = graph.node(next(iter(users))) if len(users) == 1 else None
    if node is None or node.op != "Gather" or node.inputs[0] != told.value():
        return None
    return None if graph.const(node.input(1)) is None else node


def _dims_of(facts: Facts, value: Value) -> list[Dim | None] | None:
    known = facts.of(value).value
    return None if known is None else known.dims()


def _place_elsewhere(
    facts: Facts, graph: Graph, gather: Node, others: Iterable[Node]
) -> tuple[Value, np.ndarray] | None:
    """Another Shape that tells all that is gathered, and the indices there."""
    wanted = _dims_of(facts, gather.value())
    indices = graph.const(gather.input(1))
    if indices is None or not wanted or any(dim is None or dim.is_const for dim in wanted):
        return None
    for other in others:
        told = _dims_of(facts, other.value()) or []
        if all(dim in told for dim in wanted) and not _hangs_on(graph, other, gather):
            places = [told.index(dim) for dim in wanted]
            return other.value(), np.array(places, np.int64).reshape(indices.shape)
    return None


def _hangs_on(graph: Graph, node: Node, source: Node) -> bool:
    """Whether ``node`` is computed from ``source``; true as well where that would take long to find out."""
    stack, seen = [node.id], {node.id}
    while stack:
        for value in graph.node(stack.pop()).operands:
            if value is not None and value.node not in seen:
                seen.add(value.node)
                stack.append(value.node)
        if source.id in seen or len(seen) > SEARCH:
            return True
    return False


def _apply(
    ctx: Context, path: tuple[str, ...], graph: Graph, gather: Node, told: Value, places: np.ndarray
) -> bool:
    with ctx.application(RULE, graph, gather, scope=path) as entry:
        indices = graph.add_constant(places)
        new = graph.add("Gather", (told, indices)).value()
        ctx.redirect(graph, gather.value(), new)
        entry.pairs.append((gather.value(), new))
        ctx.erase_dead(graph, gather.id)
    accepted = ctx.accept(entry)
    ctx.stats[RULE].fired += accepted
    return accepted


SOURCES = ScopePass("read-dimensions-elsewhere", read_elsewhere)
