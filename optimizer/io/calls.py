"""Whether nodes agree with the graphs they run: bodies of control flow, and functions of the model."""

from __future__ import annotations

from collections.abc import Callable

from optimizer.ir import Function, Graph, InvalidModel, Model, Node

MAX_CALLS = 1_000_000
"""Calls that one call of a function may amount to."""
_Key = tuple[str, str, str]


def check_calls(model: Model) -> None:
    """Refuses bodies and calls whose interface is not the one that their node uses.

    Raises:
        InvalidModel: a body has too many or few inputs or outputs, a call has more than its function, or
            a function calls itself, or others without measure.
    """
    for _, graph in model.graphs():
        for node in graph.nodes:
            function = model.functions.get((node.domain, node.op_type, node.overload))
            check = None if node.domain else _BODIES.get(node.op_type)
            if function is not None:
                _check_call(graph, node, function)
            elif check is not None:
                check(graph, node)
    _check_expansion(model)


# ------------------------------------------------------------------ functions


def _check_call(graph: Graph, node: Node, function: Function) -> None:
    """A call may leave out the last inputs and outputs of a function, but not have more."""
    inner = function.graph
    pairs = (
        ("inputs", len(node.inputs), len(inner.inputs)),
        ("outputs", len(node.outputs), len(inner.outputs)),
    )
    for what, given, formal in pairs:
        if given > formal:
            raise InvalidModel(
                f"node {graph.label(node)} has {given} {what}, but function "
                f"'{function.domain}::{function.name}' has {formal}"
            )


def _check_expansion(model: Model) -> None:
    """Calls of functions must come to an end, since nothing in a function decides whether to go on.

    Nor may they take forever to get there: functions that call one another twice double at each step.
    """
    calls: dict[_Key, list[_Key]] = {
        key: [
            called
            for _, scope in function.graph.scopes()
            for node in scope.nodes
            if (called := (node.domain, node.op_type, node.overload)) in model.functions
        ]
        for key, function in model.functions.items()
    }
    finite: dict[_Key, int] = {}
    for key in calls:
        path: list[_Key] = []
        pending = [(key, False)]
        while pending:
            current, left = pending.pop()
            if left:
                path.pop()
                finite[current] = 1 + sum(finite[called] for called in calls[current])
                if finite[current] > MAX_CALLS:
                    name = f"'{current[0]}::{current[1]}'"
                    raise InvalidModel(f"function {name} amounts to {finite[current]} calls of functions")
            elif current in path:
                circle = " => ".join(f"'{domain}::{name}'" for domain, name, _ in (*path, current))
                raise InvalidModel(f"a function calls itself: {circle}")
            elif current not in finite:
                path.append(current)
                pending.append((current, True))
                pending += [(called, False) for called in calls[current]]


# ------------------------------------------------------------------ bodies


def _formal(body: Graph) -> int:
    """The inputs a node must bind: those without a default."""
    return sum(1 for value in body.inputs if body.node(value).attr("default") is None)


def _expect(graph: Graph, node: Node, name: str, body: Graph, inputs: int | None, outputs: int) -> None:
    pairs = (("inputs", inputs, _formal(body)), ("outputs", outputs, len(body.outputs)))
    for what, wanted, given in pairs:
        if wanted is not None and wanted != given:
            raise InvalidModel(
                f"node {graph.label(node)}: its {name} has {given} {what}, where {wanted} belong to "
                f"{len(node.inputs)} inputs and {len(node.outputs)} outputs of the node"
            )


def _if(graph: Graph, node: Node) -> None:
    for name, body in node.bodies:
        _expect(graph, node, name, body, 0, len(node.outputs))


def _loop(graph: Graph, node: Node) -> None:
    for name, body in node.bodies:
        _expect(graph, node, name, body, max(2, len(node.inputs)), len(node.outputs) + 1)


def _scan(graph: Graph, node: Node) -> None:
    count = len(node.inputs) - (1 if graph.opset() < 9 else 0)
    scanned = node.attributes["num_scan_inputs"]
    if not scanned.reference and not 1 <= scanned.value <= count:
        raise InvalidModel(f"node {graph.label(node)} scans {scanned.value} of its {count} inputs")
    for name, body in node.bodies:
        _expect(graph, node, name, body, count, len(node.outputs))


def _sequence_map(graph: Graph, node: Node) -> None:
    for name, body in node.bodies:
        _expect(graph, node, name, body, len(node.inputs), len(node.outputs))


_BODIES: dict[str, Callable[[Graph, Node], None]] = {
    "If": _if,
    "Loop": _loop,
    "Scan": _scan,
    "SequenceMap": _sequence_map,
}
