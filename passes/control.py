"""Control flow that is decided: an If with one way to go, a Loop that runs never or a few times."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from optimizer.ir import Change, Graph, Node, Tensor, Value
from optimizer.rewrite import Context, Refusal, ScopePass
from passes.cse import fingerprint
from passes.splice import names_in, splice

MAX_TRIPS = 8
MAX_NODES = 64


def simplify(ctx: Context, path: tuple[str, ...], graph: Graph) -> bool:
    """Decides what can be decided in one scope, what that uncovers included. O(nodes)."""
    changed = False
    pending = [node.id for node in graph.topological() if node.op in _SIMPLIFY]
    taken = names_in(graph) if pending else set()
    while pending:
        key = pending.pop()
        node = graph.node(key)
        if ctx.is_kept(node) or not ctx.allows("control", path, graph, node):
            continue
        try:
            with ctx.application("control", graph, node, scope=path) as entry:
                results = _SIMPLIFY[node.op](ctx, graph, node, taken)
                for index, result in enumerate(results):
                    graph.replace_uses(node.value(index), result)
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


def known_truth(ctx: Context, graph: Graph, value: Value | None) -> bool | None:
    """A condition that is a constant or known by inference."""
    array = graph.const(value)
    if array is not None:
        return bool(array.item()) if array.size == 1 else None
    contents = None if value is None else ctx.facts(graph).value(value)
    items = [] if contents is None else contents.items
    return items[0] if len(items) == 1 and isinstance(items[0], bool) else None


# -------------------------------------------------------------------- Loop


def _decide_loop(ctx: Context, graph: Graph, node: Node, taken: set[str]) -> list[Value]:
    """The initial values of a Loop that does not run; the chained bodies of one that runs a few times."""
    ((_, body),) = node.bodies
    limit = graph.const(node.input(0))
    going = True if node.input(1) is None else known_truth(ctx, graph, node.input(1))
    trips = None if limit is None else max(int(limit.item()), 0)
    if trips == 0 or going is False:
        return _untouched(ctx, graph, node, body)
    if trips is None or going is None:
        raise Refusal("how often it runs is not known")
    if trips > 1 and not _goes_on(ctx, body):
        raise Refusal("it may stop early")
    size = sum(len(scope) for _, scope in body.scopes())
    scans = len(node.outputs) - (len(node.inputs) - 2)
    grown = trips * size + scans * (trips + 1)
    if trips > MAX_TRIPS or grown > (MAX_NODES if ctx.settings.objective == "latency" else size + 1):
        raise Refusal("unrolled it would have more nodes")
    return _unrolled(graph, node, body, trips, taken)


def _goes_on(ctx: Context, body: Graph) -> bool:
    """Whether the body never asks to stop once it runs."""
    condition = body.outputs[0]
    return condition == body.inputs[1] or known_truth(ctx, body, condition) is True


def _untouched(ctx: Context, graph: Graph, node: Node, body: Graph) -> list[Value]:
    carried = [v for v in node.inputs[2:] if v is not None]
    results: list[Value] = list(carried)
    for index in range(len(carried), len(node.outputs)):
        fact = ctx.facts(graph).of(node.value(index))
        shape = None if fact.shape is None else [dim.value for dim in fact.shape[1:]]
        if shape is None or fact.dtype is None or None in shape:
            raise Refusal("the shape of an empty scan output is not known")
        empty = np.zeros([0, *(size or 0 for size in shape)], fact.dtype.numpy)
        results.append(graph.add_constant(Tensor.of(empty)))
    return results


def _unrolled(graph: Graph, node: Node, body: Graph, trips: int, taken: set[str]) -> list[Value]:
    state: list[Value | None] = list(node.inputs[2:])
    scanned: list[list[Value]] = [[] for _ in range(len(node.outputs) - len(state))]
    captures = dict(zip(body.captures, node.captures_of(0), strict=True))
    shared: dict[Value, Value | None] = {}
    for value in body.constants:
        tensor = body.tensor(value)
        if tensor is not None and body.has_uses(value):
            shared[value] = graph.add_constant(tensor)
    for trip in range(trips):
        counter = graph.add_constant(np.array(trip, np.int64))
        going = graph.add_constant(np.array(True))
        formal = dict(zip(body.inputs, [counter, going, *state], strict=True))
        made = splice(graph, body, {**shared, **captures, **formal}, taken)[1:]
        state = made[: len(state)]
        for column, row in zip(scanned, made[len(state) :], strict=True):
            if row is not None:
                column.append(_row(graph, row))
    stacked = [_stacked(graph, column) for column in scanned]
    return [v for v in (*state, *stacked) if v is not None]


def _row(graph: Graph, value: Value) -> Value:
    if graph.opset() < 13:
        return graph.add("Unsqueeze", [value], {"axes": [0]}).value()
    return graph.add("Unsqueeze", [value, graph.add_constant(np.array([0], np.int64))]).value()


def _stacked(graph: Graph, rows: list[Value]) -> Value:
    return rows[0] if len(rows) == 1 else graph.add("Concat", rows, {"axis": 0}).value()


_SIMPLIFY: dict[str, Callable[[Context, Graph, Node, set[str]], list[Value]]] = {
    "If": _decide_if,
    "Loop": _decide_loop,
}
CONTROL = ScopePass("control", simplify)
