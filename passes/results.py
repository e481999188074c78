"""Results of If, Loop and Scan that nothing reads, and values that a Loop carries for nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from networkx import ancestors, descendants

from optimizer.ir import Graph, Node, Value
from optimizer.rewrite import Context


def result_of(body: Graph, slot: int) -> Value:
    """What a body gives as a result, before the Identity that only gives it its name."""
    value = body.outputs[slot]
    named = body.producer(value)
    source = named.inputs[0] if named.op == "Identity" else None
    return value if source is None else source


def only_names_results(graph: Graph, node: Node) -> bool:
    """Whether an Identity is there only for outputs whose names its operand cannot bear.

    That is what is given from outside, and what is an output by another name. A file needs these.
    """
    source = node.inputs[0] if node.op == "Identity" else None
    if source is None:
        return False
    vertex, sink = graph.producer(source), graph.sink.id
    outside = not vertex.is_operator and vertex.op_type in ("Input", "Capture")
    if not outside and all(use.node != sink for use in graph.uses(source)):
        return False
    readers = {use.node for use in graph.uses(node.value())} - {sink}
    return all(graph.node(key).op == "Identity" and set(graph.users(key)) <= {sink} for key in readers)


def drop_unused_results(ctx: Context, graph: Graph, node: Node) -> Node:
    """The node, or a new one in its place that makes only what is read."""
    if node.domain or node.op_type not in ("If", "Loop", "Scan"):
        return node
    used = [i for i in range(len(node.outputs)) if graph.has_uses(node.value(i))]
    if len(used) == len(node.outputs):
        return node
    if node.op_type == "If":
        for _, body in node.bodies:
            _return_only(body, used)
        return _with_outputs(ctx, graph, node, used, node.inputs)
    ((_, body),) = node.bodies
    if node.op_type == "Loop":
        return _loop(ctx, graph, node, body, used)
    return _scan(ctx, graph, node, body, used)


def _loop(ctx: Context, graph: Graph, node: Node, body: Graph, used: Sequence[int]) -> Node:
    carried = len(node.inputs) - 2
    live = _live(body, {0, *(1 + i for i in used)}, {1 + i: 2 + i for i in range(carried)}, ctx.is_kept)
    kept = [i for i in range(len(node.outputs)) if 1 + i in live]
    if len(kept) == len(node.outputs):
        return node
    inputs = [*node.inputs[:2], *(node.inputs[2 + i] for i in kept if i < carried)]
    dropped = [body.inputs[2 + i] for i in range(carried) if i not in kept]
    _return_only(body, [0, *(1 + i for i in kept)])
    _erase(body, dropped)
    return _with_outputs(ctx, graph, node, kept, inputs)


def _scan(ctx: Context, graph: Graph, node: Node, body: Graph, used: Sequence[int]) -> Node:
    """Lists with an entry for each scanned result get shorter as well."""
    states = len(node.inputs) - node.attr("num_scan_inputs", 0)
    kept = sorted(_live(body, set(used), {i: i for i in range(states)}, ctx.is_kept))
    if len(kept) == len(node.outputs) or not kept or graph.opset() < 9:
        return node
    inputs = [node.inputs[i] for i in kept if i < states] + list(node.inputs[states:])
    lists = {
        name: [node.attr(name)[i - states] for i in kept if i >= states]
        for name in ("scan_output_axes", "scan_output_directions")
        if name in node.attributes
    }
    dropped = [body.inputs[i] for i in range(states) if i not in kept]
    _return_only(body, kept)
    _erase(body, dropped)
    return _with_outputs(ctx, graph, graph.set_attrs(node, {**node.attributes, **lists}), kept, inputs)


def _live(
    body: Graph, results: set[int], formal_of: Mapping[int, int], is_kept: Callable[[Node], bool]
) -> set[int]:
    """The results that are wanted, and the carried values that they depend on, from turn to turn.

    Args:
        results: positions of the body's outputs that are read outside.
        formal_of: for the output of a carried value, the input it comes back as.
    """
    needed = {node.id for node in body.nodes if is_kept(node)}
    live, pending = set(results), set(results)
    while pending or needed:
        roots = needed | {body.outputs[i].node for i in pending}
        reached = roots.union(*(ancestors(body.dag, root) for root in roots))
        pending = {i for i, k in formal_of.items() if i not in live and body.inputs[k].node in reached}
        live |= pending
        needed = set()
    return live


def _erase(body: Graph, formals: Sequence[Value]) -> None:
    """Erases formal inputs with all that depends on them alone."""
    below = set().union(*(descendants(body.dag, formal.node) for formal in formals)) if formals else set()
    for node in reversed(body.topological()):
        if node.id in below and not body.users(node.id):
            body.erase(node)
    for formal in formals:
        body.erase(formal.node)


def _return_only(body: Graph, kept: Sequence[int]) -> None:
    outputs, infos = body.outputs, body.sink.outputs
    body.set_outputs([outputs[i] for i in kept], [infos[i] for i in kept])


def _with_outputs(
    ctx: Context, graph: Graph, node: Node, kept: Sequence[int], inputs: Sequence[Value | None]
) -> Node:
    infos = [node.outputs[i] for i in kept]
    old = graph.set_attrs(node, outputs=len(node.outputs))  # the new one bears the names
    fresh = graph.add(
        node.op_type, inputs, old.attributes, infos, captures=old.captures, name=old.name, origin=old.origin
    )
    for position, index in enumerate(kept):
        ctx.redirect(graph, old.value(index), fresh.value(position))
    graph.erase(old)
    return fresh
