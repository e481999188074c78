"""Control flow that is decided: an If with one way to go, a Loop that runs never or a few times."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from optimizer.ir import Change, Graph, Node, Value
from optimizer.rewrite import Context, Refusal, ScopePass
from passes.cse import fingerprint
from passes.splice import names_in, splice
from passes.unroll import decide_loop, decide_scan, known_truth


def simplify(ctx: Context, path: tuple[str, ...], graph: Graph) -> bool:
    """If(true, a, b) -> a; a Loop or Scan that runs never or a few times -> its bodies in a row. O(nodes)."""
    changed = False
    pending = [node.id for node in graph.topological() if node.op in _SIMPLIFY]
    taken = names_in(graph) if pending else set()
    while pending:
        key = pending.pop()
        if key not in graph:
            continue  # it went with one that was decided before
        node = graph.node(key)
        if ctx.is_kept(node) or not ctx.allows("control", path, graph, node):
            continue
        try:
            with ctx.application("control", graph, node, scope=path) as entry:
                results = _SIMPLIFY[node.op](ctx, graph, node, taken)
                for index, result in enumerate(results):
                    ctx.redirect(graph, node.value(index), result)
                entry.pairs.extend((node.value(i), result) for i, result in enumerate(results))
                ctx.erase_dead(graph, node.id)
                new = _added(graph, entry.changes)
                for key in reversed(new):
                    ctx.erase_dead(graph, key)
        except Refusal as refusal:
            ctx.stats["control"].refused[refusal.reason] += 1
            continue
        if ctx.accept(entry):
            ctx.stats["control"].fired += 1
            changed = True
            pending.extend(key for key in new if key in graph and graph.node(key).op in _SIMPLIFY)
    return changed


def _added(graph: Graph, changes: Sequence[tuple[Graph, Change]]) -> list[int]:
    """The vertices that the changes added to one graph."""
    made = [c.after.id for scope, c in changes if scope is graph and c.before is None and c.after]
    return [key for key in made if key in graph]


# -------------------------------------------------------------------- If


def _decide_if(ctx: Context, graph: Graph, node: Node, taken: set[str]) -> list[Value]:
    """The results of the branch that is taken, or of either where both are the same."""
    bodies = dict(node.bodies)
    names = list(bodies)
    decided = known_truth(ctx, graph, node.inputs[0])
    if decided is not None:
        branch = "then_branch" if decided else "else_branch"
    elif len({fingerprint(body, node.captures_of(i)) for i, body in enumerate(bodies.values())}) == 1:
        branch = "then_branch"
    else:
        raise Refusal("the condition is not known")
    body = bodies[branch]
    bound: dict[Value, Value | None] = dict(
        zip(body.captures, node.captures_of(names.index(branch)), strict=True)
    )
    return [v for v in splice(graph, body, bound, taken) if v is not None]


_SIMPLIFY: dict[str, Callable[[Context, Graph, Node, set[str]], list[Value]]] = {
    "If": _decide_if,
    "Loop": decide_loop,
    "Scan": decide_scan,
}
CONTROL = ScopePass("control", simplify, reads_bodies=True)
