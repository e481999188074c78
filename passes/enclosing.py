"""What a body computes although the scope around it has it already: the body reads it from there."""

from __future__ import annotations

from collections.abc import Hashable

from optimizer.ir import Graph, Node, Value
from optimizer.rewrite import Context, ScopePass
from passes.cse import attribute_key, key_of
from passes.dce import drop_unused_captures

RULE = "share-with-enclosing-scope"
Computed = dict[Hashable, Node]
"""The operators of a scope by what they compute, from values of that scope and constants."""


def share(ctx: Context, path: tuple[str, ...], graph: Graph) -> bool:
    """Has bodies capture what the scope around them computes anyway. O(nodes of both).

    What a body computes from captured values alone, the scope around it computes without waiting for
    the owner of the body, so that no cycle can come of it; and it does so whichever branch is taken.
    """
    owners = [node.id for node in graph.topological() if node.bodies and not node.domain]
    if not owners:
        return False
    inside = {node.op for key in owners for _, body in graph.node(key).bodies for node in body.nodes}
    computed = _computed(graph, inside)
    changed = False
    for key in owners:
        owner = graph.node(key)
        if ctx.is_kept(owner) or not ctx.allows(RULE, path, graph, owner):
            continue
        with ctx.application(RULE, graph, owner, scope=path) as entry:
            for position in range(len(owner.bodies)):
                owner = _share_in(ctx, graph, owner, position, computed)
        if entry.changes and ctx.accept(entry):
            ctx.stats[RULE].fired += 1
            changed = True
    return changed


def _computed(graph: Graph, ops: set[str]) -> Computed:
    """Those of ``ops`` alone: a key holds a hash of each constant that is read."""
    found: Computed = {}
    for node in graph.topological():
        key = _key(graph, node, {}) if node.op in ops else None
        if key is not None:
            found.setdefault(key, node)
    return found


def _key(graph: Graph, node: Node, outside: dict[Value, Value]) -> Hashable | None:
    """Equal for operators that compute the same from values of the outer scope and constants.

    Args:
        outside: for a node of a body, what its values are outside; empty for one of the outer scope.
    """
    if node.bodies or key_of(graph, node) is None:
        return None
    inputs: list[Hashable] = []
    for value in node.inputs:
        tensor = graph.tensor(value)
        if value is None or tensor is not None:
            inputs.append(None if tensor is None else ("constant", tensor.digest))
        elif outside and value not in outside:
            return None
        else:
            inputs.append(outside.get(value, value))
    attributes = tuple(sorted((name, str(attribute_key(a))) for name, a in node.attributes.items()))
    return node.op, node.domain, tuple(inputs), attributes, len(node.outputs)


def _share_in(ctx: Context, graph: Graph, owner: Node, position: int, computed: Computed) -> Node:
    """The owner, one of whose bodies captures all that the scope around it has."""
    body = owner.bodies[position][1]
    outside = dict(zip(body.captures, owner.captures_of(position), strict=True))
    twins = []
    for node in body.topological() if outside else ():
        key = _key(body, node, outside)
        twin = None if key is None or ctx.is_kept(node) else computed.get(key)
        if twin is not None:
            twins.append((node, twin))
            outside.update((node.value(i), twin.value(i)) for i in range(len(node.outputs)))
    if not twins:
        return owner
    parts = [list(owner.captures_of(i)) for i in range(len(owner.bodies))]
    read = [(node.value(i), twin.value(i)) for node, twin in twins for i in range(len(node.outputs))]
    shared = [(inner, body.add_capture(""), outer) for inner, outer in read if body.has_uses(inner)]
    parts[position] += [outer for _, _, outer in shared]
    owner = graph.set_inputs(owner, owner.inputs, [value for part in parts for value in part])
    for inner, formal, _ in shared:
        ctx.redirect(body, inner, formal)
    for node, _ in reversed(twins):
        body.erase(node)
    return drop_unused_captures(graph, owner)


ENCLOSING = ScopePass(RULE, share, reads_bodies=True)
