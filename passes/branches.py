"""If with a negated condition: the branches change places."""

from __future__ import annotations

from optimizer.ir import Graph, Node
from optimizer.rewrite import Context, ScopePass

RULE = "swap-negated-branches"


def swap(ctx: Context, path: tuple[str, ...], graph: Graph) -> bool:
    """If(not c, a, b) -> If(c, b, a). O(nodes)."""
    changed = False
    for node in graph.topological():
        negation = graph.producer(node.inputs[0]) if node.op == "If" and node.inputs[0] is not None else None
        if negation is None or negation.op != "Not" or ctx.is_kept(node) or ctx.is_kept(negation):
            continue
        if ctx.allows(RULE, path, graph, node):
            with ctx.application(RULE, graph, node, scope=path) as entry:
                _swap(ctx, graph, node, negation)
            ctx.stats[RULE].fired += 1
            changed |= ctx.accept(entry)
    return changed


def _swap(ctx: Context, graph: Graph, node: Node, negation: Node) -> None:
    names = [name for name, _ in node.bodies]
    other = dict(zip(names, reversed(names), strict=True))
    attributes = {name: node.attributes[other.get(name, name)] for name in node.attributes}
    bound = [value for position in (1, 0) for value in node.captures_of(position)]
    graph.set_inputs(graph.set_attrs(node, attributes), [negation.inputs[0]], bound)
    ctx.erase_dead(graph, negation.id)


BRANCHES = ScopePass(RULE, swap)
