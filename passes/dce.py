"""Dead code: what no output depends on, in every scope, down to single outputs and captures."""

from __future__ import annotations

from optimizer.io.schemas import schema_of
from optimizer.ir import IR_DOMAIN, Graph, Node, Value
from optimizer.rewrite import Context
from passes.results import drop_unused_results

_TRAINS = frozenset({"BatchNormalization", "Dropout"})
"""Operators whose further outputs may say that they train; they are left out only where they do not."""


class DeadCodeElimination:
    """Goes: what no output depends on, all of the main graph or of a function as one application."""

    name = "dce"

    def run(self, ctx: Context) -> bool:
        """Runs where anything has changed since it last ran. O(nodes)."""
        changed = False
        functions = [((f"{f.domain}::{f.name}",), f.graph) for f in ctx.model.functions.values()]
        for path, root in [((), ctx.model.graph), *functions]:
            scopes = [scope for _, scope in root.scopes()]
            if all(ctx.mark(self, scope) == len(ctx.journal.touched[scope]) for scope in scopes):
                continue
            if ctx.allows(self.name, path, root, root.sink):
                with ctx.application(self.name, root, root.sink, scope=path) as entry:
                    _sweep(ctx, root)
                ctx.stats[self.name].fired += bool(entry.changes)
                changed |= ctx.accept(entry) and bool(entry.changes)
            for _, scope in root.scopes():
                ctx.set_mark(self, scope)
        return changed


def _sweep(ctx: Context, graph: Graph) -> None:
    """Users before producers; a body after what its owner reads of it, before what the owner reads."""
    _drop_annotations(graph)
    for node in reversed(graph.topological()):
        if not ctx.is_kept(node):
            if not graph.fan_out(node.id):
                graph.erase(node)
                continue
            if node.bodies:
                node = drop_unused_results(ctx, graph, node)
            elif len(node.outputs) > 1:
                node = _drop_unused_outputs(graph, node)
        for _, body in node.bodies:
            _sweep(ctx, body)
        if node.captures:
            drop_unused_captures(graph, node)
    for value in graph.constants:
        if not graph.has_uses(value):
            graph.erase(value.node)


def _drop_annotations(graph: Graph) -> None:
    """An annotation does not keep the tensor alive that it describes."""
    for note in graph.annotations:
        described = note.inputs[0]
        if described is None or all(_is_annotation(graph, use.node) for use in graph.uses(described)):
            graph.erase(note)


def _is_annotation(graph: Graph, key: int) -> bool:
    node = graph.node(key)
    return node.domain == IR_DOMAIN and node.op_type == "Annotation"


def _drop_unused_outputs(graph: Graph, node: Node) -> Node:
    """Takes unused optional outputs off the end."""
    schema = schema_of(node.op_type, node.domain, graph.opset(node.domain))
    if schema is None or (node.op_type in _TRAINS and graph.opset() < 12):
        return node
    if node.op_type == "BatchNormalization" and (graph.opset() < 14 or node.attr("training_mode", 0)):
        return node
    count, least = len(node.outputs), schema.optional_from
    if node.op == "Attention" and node.input(4) is not None:
        least = 3  # onnxruntime refuses a cache that is not given back
    while count > least and not graph.has_uses(node.value(count - 1)):
        count -= 1
    return node if count == len(node.outputs) else graph.set_attrs(node, outputs=node.outputs[:count])


def drop_unused_captures(graph: Graph, node: Node) -> Node:
    """The node without the captures that its bodies do not read."""
    slots: list[Value] = []
    for position, (_, body) in enumerate(node.bodies):
        for formal, bound in zip(body.captures, node.captures_of(position), strict=True):
            if body.has_uses(formal):
                slots.append(bound)
    if len(slots) == len(node.captures):
        return node
    for _, body in node.bodies:
        for formal in body.captures:
            if not body.has_uses(formal):
                body.erase(formal.node)
    return graph.set_inputs(node, node.inputs, slots)


DCE = DeadCodeElimination()
