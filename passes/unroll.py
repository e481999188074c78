"""Loops and scans that run never or a few times: their bodies, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from optimizer.analysis import Dim
from optimizer.ir import Graph, Node, Tensor, Value
from optimizer.rewrite import Context, Refusal
from passes.results import result_of
from passes.splice import splice

MAX_TRIPS = 8
MAX_NODES = {"latency": 64, "balanced": 0, "nodes": 0}
"""Nodes that unrolled bodies may have, beside as many as there were, by objective."""


def known_truth(ctx: Context, graph: Graph, value: Value | None) -> bool | None:
    """A condition that is a constant or known by inference."""
    array = graph.const(value)
    if array is not None:
        return bool(array.item()) if array.size == 1 else None
    contents = None if value is None else ctx.facts(graph).value(value)
    items = [] if contents is None else contents.items
    return items[0] if len(items) == 1 and isinstance(items[0], bool) else None


def known_count(ctx: Context, graph: Graph, value: Value | None) -> int | None:
    """A number that is a constant or known by inference."""
    array = graph.const(value)
    if array is not None:
        return int(array.item()) if array.size == 1 else None
    contents = None if value is None else ctx.facts(graph).value(value)
    items = [] if contents is None else contents.items
    return items[0].value if len(items) == 1 and isinstance(items[0], Dim) else None


def _require_few(ctx: Context, body: Graph, trips: int, extra: int) -> None:
    """Refuses what would have too many nodes.

    Args:
        extra: nodes that take apart and stack what is scanned.
    """
    size = sum(len(scope) for _, scope in body.scopes())
    names = sum(node.op == "Identity" for _, scope in body.scopes() for node in scope.nodes)
    grown = trips * (size - names) + extra  # the Identity that names a result goes with the body
    if trips > MAX_TRIPS or grown > max(MAX_NODES[ctx.settings.objective], size + 1):
        raise Refusal("unrolled it would have more nodes")
    constants = sum(t.nbytes for v in body.constants if (t := body.tensor(v)) is not None)
    if not ctx.may_grow(constants):
        raise Refusal("its constants would exceed the size limit")


# -------------------------------------------------------------------- Loop


def decide_loop(ctx: Context, graph: Graph, node: Node, taken: set[str]) -> list[Value]:
    """The initial values of a Loop that does not run; the chained bodies of one that runs a few times."""
    ((_, body),) = node.bodies
    going = True if node.input(1) is None else known_truth(ctx, graph, node.input(1))
    trips = known_count(ctx, graph, node.input(0))
    trips = None if trips is None else max(trips, 0)
    if trips == 0 or going is False:
        return _untouched(ctx, graph, node, body)
    if trips is None or going is None:
        raise Refusal("how often it runs is not known")
    if trips > 1 and not _goes_on(ctx, body):
        raise Refusal("it may stop early")
    scans = len(node.outputs) - (len(node.inputs) - 2)
    _require_few(ctx, body, trips, scans * (trips + 1))
    return _unrolled(graph, node, body, trips, taken)


def _goes_on(ctx: Context, body: Graph) -> bool:
    """Whether the body never asks to stop once it runs."""
    condition = result_of(body, 0)
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
    step = _stepper(graph, node, body, taken)
    for trip in range(trips):
        counter = graph.add_constant(np.array(trip, np.int64))
        going = graph.add_constant(np.array(True))
        made = step([counter, going, *state])[1:]
        state = made[: len(state)]
        for column, row in zip(scanned, made[len(state) :], strict=True):
            if row is not None:
                column.append(_row(graph, row, 0))
    stacked = [_stacked(graph, column, 0) for column in scanned]
    return [v for v in (*state, *stacked) if v is not None]


def _stepper(
    graph: Graph, node: Node, body: Graph, taken: set[str]
) -> Callable[[Sequence[Value | None]], list[Value | None]]:
    """A function that puts the body into the graph for given inputs; the constants are there once."""
    shared: dict[Value, Value | None] = dict(zip(body.captures, node.captures_of(0), strict=True))
    for value in body.constants:
        tensor = body.tensor(value)
        if tensor is not None and body.has_uses(value):
            shared[value] = graph.add_constant(tensor)

    def step(inputs: Sequence[Value | None]) -> list[Value | None]:
        return splice(graph, body, {**shared, **dict(zip(body.inputs, inputs, strict=True))}, taken)

    return step


def _row(graph: Graph, value: Value, axis: int) -> Value:
    if graph.opset() < 13:
        return graph.add("Unsqueeze", [value], {"axes": [axis]}).value()
    return graph.add("Unsqueeze", [value, graph.add_constant(np.array([axis], np.int64))]).value()


def _stacked(graph: Graph, rows: list[Value], axis: int) -> Value:
    return rows[0] if len(rows) == 1 else graph.add("Concat", rows, {"axis": axis}).value()


# -------------------------------------------------------------------- Scan


def decide_scan(ctx: Context, graph: Graph, node: Node, taken: set[str]) -> list[Value]:
    """The chained bodies of a Scan over a few slices."""
    ((_, body),) = node.bodies
    count = node.attr("num_scan_inputs", 0)
    states = len(node.inputs) - count
    if graph.opset() < 9 or not count:
        raise Refusal("it is of the form before opset 9")
    axes = node.attr("scan_input_axes") or (0,) * count
    places = node.attr("scan_output_axes") or (0,) * (len(node.outputs) - states)
    if min((*axes, *places), default=0) < 0:
        raise Refusal("an axis is counted from the end")
    first = node.inputs[states]
    shape = None if first is None else ctx.facts(graph).shape(first)
    trips = None if shape is None else shape[axes[0]].value
    if not trips:
        raise Refusal("how often it runs is not known")
    _require_few(ctx, body, trips, count * trips + len(places) * (trips + 1))
    return _scanned(graph, node, trips, (axes, places), taken)


def _scanned(
    graph: Graph, node: Node, trips: int, axes: tuple[Sequence[int], Sequence[int]], taken: set[str]
) -> list[Value]:
    ((_, body),) = node.bodies
    states = len(node.inputs) - len(axes[0])
    back_in = node.attr("scan_input_directions") or (0,) * len(axes[0])
    back_out = node.attr("scan_output_directions") or (0,) * len(axes[1])
    state: list[Value | None] = list(node.inputs[:states])
    columns: list[list[Value]] = [[] for _ in axes[1]]
    step = _stepper(graph, node, body, taken)
    for trip in range(trips):
        slices = [
            _slice(graph, value, axis, trips - 1 - trip if back else trip)
            for value, axis, back in zip(node.inputs[states:], axes[0], back_in, strict=True)
        ]
        made = step([*state, *slices])
        state = made[:states]
        for column, value, axis, back in zip(columns, made[states:], axes[1], back_out, strict=True):
            if value is not None:
                column.insert(0 if back else len(column), _row(graph, value, axis))
    stacked = [_stacked(graph, column, axis) for column, axis in zip(columns, axes[1], strict=True)]
    return [v for v in (*state, *stacked) if v is not None]


def _slice(graph: Graph, value: Value | None, axis: int, index: int) -> Value:
    place = graph.add_constant(np.array(index, np.int64))
    return graph.add("Gather", [value, place], {"axis": axis}).value()
