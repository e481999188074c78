"""Results of If, Loop and Scan that nothing reads, and values that a Loop carries for nothing."""

from __future__ import annotations

from collections.abc import Sequence

from optimizer.ir import Graph, Node, Value


def drop_unused_results(graph: Graph, node: Node) -> Node:
    """The node, or a new one in its place that makes only what is read."""
    if node.domain or node.op_type not in ("If", "Loop", "Scan"):
        return node
    used = [graph.has_uses(node.value(i)) for i in range(len(node.outputs))]
    if all(used):
        return node
    if node.op_type == "If":
        kept = [i for i, is_used in enumerate(used) if is_used]
        for _, body in node.bodies:
            _return_only(body, kept)
        return _with_outputs(graph, node, kept, node.inputs)
    ((_, body),) = node.bodies
    if node.op_type == "Loop":
        return _loop(graph, node, body, used)
    return _scan(graph, node, body, used)


def _loop(graph: Graph, node: Node, body: Graph, used: Sequence[bool]) -> Node:
    """A carried value goes where the body does no more than hand it from one turn to the next."""
    carried = len(node.inputs) - 2
    kept = [i for i, is_used in enumerate(used) if is_used or (i < carried and _is_read(body, 2 + i, 1 + i))]
    if len(kept) == len(used):
        return node
    inputs = [*node.inputs[:2], *(node.inputs[2 + i] for i in kept if i < carried)]
    formal = body.inputs
    _return_only(body, [0, *(1 + i for i in kept)])
    fresh = _with_outputs(graph, node, kept, inputs)
    for index in range(carried):
        if index not in kept:
            body.erase(formal[2 + index].node)
    return fresh


def _is_read(body: Graph, formal: int, result: int) -> bool:
    """Whether the body reads a carried value for more than handing it on unchanged."""
    return any(use.node != body.sink.id or use.slot != result for use in body.uses(body.inputs[formal]))


def _scan(graph: Graph, node: Node, body: Graph, used: Sequence[bool]) -> Node:
    states = len(node.inputs) - node.attr("num_scan_inputs", 0)
    kept = [i for i, is_used in enumerate(used) if is_used or i < states]
    lists = ("scan_output_axes", "scan_output_directions")
    if len(kept) == len(used) or graph.opset() < 9 or any(name in node.attributes for name in lists):
        return node
    _return_only(body, kept)
    return _with_outputs(graph, node, kept, node.inputs)


def _return_only(body: Graph, kept: Sequence[int]) -> None:
    outputs, infos = body.outputs, body.sink.outputs
    body.set_outputs([outputs[i] for i in kept], [infos[i] for i in kept])


def _with_outputs(graph: Graph, node: Node, kept: Sequence[int], inputs: Sequence[Value | None]) -> Node:
    infos = [node.outputs[i] for i in kept]
    old = graph.set_attrs(node, outputs=len(node.outputs))  # the new one bears the names
    fresh = graph.add(
        node.op_type, inputs, old.attributes, infos, captures=old.captures, name=old.name, origin=old.origin
    )
    for position, index in enumerate(kept):
        graph.replace_uses(old.value(index), fresh.value(position))
    graph.erase(old)
    return fresh
