"""Shrinking a model that fails a check to a small one that still fails it: delta debugging.

After A. Zeller and R. Hildebrandt, Simplifying and Isolating Failure-Inducing Input (2002): ever smaller
chunks of the nodes are left out, as long as the rest fails.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from optimizer.analysis import Facts
from optimizer.analysis.specialize import specialize
from optimizer.ir import Graph, Model, Node, OptimizerError, Value
from optimizer.verify.extract import copy_node, extract
from optimizer.verify.feeds import symbols_of

Fails = Callable[[Model], bool]
SIZES = (1, 2, 3)
"""Sizes tried for open dims."""
CONSTANTS = (0.0, 1.0)
"""Numbers tried for all elements of a constant."""


class NothingToReduce(OptimizerError):
    """The model does not fail, so there is nothing to shrink."""

    exit_code = 2


class Reducer:
    """Shrinks one model.

    Args:
        fails: whether a model still shows the failure; models that cannot be made are not asked about.
        say: is told each time something could be left out.

    Attributes:
        asked: how many models were tried.
    """

    def __init__(self, fails: Fails, say: Callable[[str], None] | None = None) -> None:
        self._fails = fails
        self._say = say or (lambda text: None)
        self.asked = 0

    def reduce(self, model: Model) -> Model:
        """Leaves out nodes, outputs, bodies, inputs, dims and numbers until nothing more can go.

        O(n log n) trials for n nodes where the failure is in one place.

        Raises:
            NothingToReduce: the model does not fail.
        """
        if not self._still(model):
            raise NothingToReduce("the command does not fail on the model itself: there is nothing to shrink")
        while True:
            size = _size(model)
            for step in (self._nodes, self._outputs, self._bodies, self._inputs, self._dims, self._constants):
                model = step(model)
            if _size(model) >= size:
                return model

    def _still(self, model: Model | None) -> bool:
        if model is None:
            return False
        self.asked += 1
        return self._fails(model)

    # ---------------------------------------------------------------- nodes

    def _nodes(self, model: Model) -> Model:
        facts = Facts(model.graph, model.functions)
        kept = [node.id for node in model.graph.topological()]
        best, chunks = model, 2
        while len(kept) > 1:
            for subset in _subsets(kept, chunks):
                smaller = extract(model, facts, frozenset(subset))
                if self._still(smaller) and smaller is not None:
                    self._say(f"nodes: {_describe(smaller)}")
                    best, chunks = smaller, 2 if len(subset) * 2 <= len(kept) else max(chunks - 1, 2)
                    kept = subset
                    break
            else:
                if chunks >= len(kept):
                    break
                chunks = min(len(kept), chunks * 2)
        return best

    def _outputs(self, model: Model) -> Model:
        """A single output, where one is enough."""
        graph = model.graph
        if len(graph.outputs) < 2:
            return model
        facts = Facts(graph, model.functions)
        for value, info in zip(graph.outputs, graph.sink.outputs, strict=True):
            smaller = extract(model, facts, _above(graph, value), [info.name])
            if self._still(smaller) and smaller is not None:
                return smaller
        return model

    def _bodies(self, model: Model) -> Model:
        """Each If as one of its branches, each Loop and Scan as one iteration."""
        for node in model.graph.nodes:
            for name, _ in node.bodies if node.op_type in ("If", "Loop", "Scan") else ():
                smaller = with_body(model, node.id, name)
                if self._still(smaller) and smaller is not None:
                    return self._bodies(self._nodes(smaller))
        return model

    # ---------------------------------------------------------------- inputs, dims, numbers

    def _inputs(self, model: Model) -> Model:
        for value in model.graph.inputs:
            smaller = _with_constant_input(model, value)
            if smaller is not None and self._still(smaller):
                return self._inputs(smaller)
        return model

    def _dims(self, model: Model) -> Model:
        for key in symbols_of(model):
            for size in SIZES:
                smaller = model.copy()
                try:
                    specialize(smaller, {}, {key: size})
                except OptimizerError:
                    continue
                if self._still(smaller):
                    model = smaller
                    break
        return model

    def _constants(self, model: Model) -> Model:
        for value in model.graph.constants:
            for number in CONSTANTS:
                simpler = _with_constant(model, value, number)
                if simpler is not None and self._still(simpler):
                    model = simpler
                    break
        return model


def _subsets(kept: Sequence[int], chunks: int) -> Iterator[list[int]]:
    """Each chunk alone, then all but each chunk."""
    bounds = [round(i * len(kept) / chunks) for i in range(chunks + 1)]
    pieces = [(a, b) for a, b in itertools.pairwise(bounds) if a < b]
    yield from (list(kept[a:b]) for a, b in pieces)
    if chunks > 2:
        yield from ([*kept[:a], *kept[b:]] for a, b in pieces)


def _size(model: Model) -> tuple[int, int, int]:
    graph = model.graph
    return sum(model.histogram().values()), len(graph.inputs) + len(graph.outputs), len(symbols_of(model))


def _describe(model: Model) -> str:
    return f"{sum(model.histogram().values())} nodes left"


def _above(graph: Graph, value: Value) -> frozenset[int]:
    """The operators that a value is computed from."""
    found, stack = set[int](), [value.node]
    while stack:
        key = stack.pop()
        node = graph.node(key)
        if key not in found and node.is_operator:
            found.add(key)
            stack.extend(v.node for v in node.operands if v is not None)
    return frozenset(found)


def with_body(model: Model, key: int, name: str) -> Model | None:
    """The model with a node replaced by what its body does: a branch, or one iteration."""
    twin = model.copy()
    graph = twin.graph
    owner = graph.node(key)
    position = [n for n, _ in owner.bodies].index(name)
    body = dict(owner.bodies)[name]
    given = [value for value in _given_to_body(graph, owner) if value is not None]
    if len(given) != len(body.inputs):
        return None
    local = dict(zip((*body.captures, *body.inputs), (*owner.captures_of(position), *given), strict=True))
    for value in body.constants:
        tensor = body.tensor(value)
        assert tensor is not None
        local[value] = graph.add_constant(tensor)
    for node in body.topological():
        copy_node(graph, _without_names(node), local)
    results = [local[value] for value in body.outputs]
    for index, value in enumerate(_given_by_body(graph, owner, results)):
        graph.replace_uses(owner.value(index), value)
    graph.erase(owner)
    return twin


def _given_to_body(graph: Graph, owner: Node) -> list[Value | None]:
    """What the first iteration of a Loop or Scan sees; nothing for an If."""
    if owner.op_type == "Loop":
        start = [graph.add_constant(np.asarray(x)) for x in (np.int64(0), np.bool_(True))]
        return [*start, *owner.inputs[2:]]
    if owner.op_type == "Scan":
        scanned = owner.attr("num_scan_inputs", 0)
        states, sequences = (
            owner.inputs[: len(owner.inputs) - scanned],
            owner.inputs[len(owner.inputs) - scanned :],
        )
        axes = owner.attr("scan_input_axes") or (0,) * scanned
        first = graph.add_constant(np.int64(0))
        taken = [
            graph.add("Gather", (v, first), {"axis": a}).value() for v, a in zip(sequences, axes, strict=True)
        ]
        return [*states, *taken]
    return []


def _given_by_body(graph: Graph, owner: Node, results: Sequence[Value]) -> list[Value]:
    """The outputs of the owner after one iteration: what is collected is a stack of one."""
    if owner.op_type == "If":
        return list(results)
    scanned = owner.attr("num_scan_inputs", 0) if owner.op_type == "Scan" else 2
    kept, skipped = len(owner.inputs) - scanned, int(owner.op_type == "Loop")
    states, collected = results[skipped : skipped + kept], results[skipped + kept :]
    axes = owner.attr("scan_output_axes") or (0,) * len(collected)
    return [*states, *(_stacked(graph, v, axis) for v, axis in zip(collected, axes, strict=True))]


def _stacked(graph: Graph, value: Value, axis: int) -> Value:
    if graph.opset() < 13:
        return graph.add("Unsqueeze", (value,), {"axes": [axis]}).value()
    return graph.add("Unsqueeze", (value, graph.add_constant(np.asarray([axis])))).value()


def _without_names(node: Node) -> Node:
    return replace(node, outputs=tuple(replace(info, name="") for info in node.outputs))


def _with_constant_input(model: Model, value: Value) -> Model | None:
    """The model with zeros, or ones, instead of an input of a known shape."""
    declared = model.graph.info(value).type
    shape, dtype = getattr(declared, "shape", None), getattr(declared, "dtype", None)
    if len(model.graph.inputs) < 2 or shape is None or not all(isinstance(dim, int) for dim in shape):
        return None
    if dtype is None or not (dtype.is_float or dtype.is_integer):
        return None
    twin = model.copy()
    filler = twin.graph.add_constant(np.ones(shape).astype(dtype.numpy))
    twin.graph.replace_uses(value, filler)
    twin.graph.erase(value.node)
    return twin


def _with_constant(model: Model, value: Value, number: float) -> Model | None:
    """The model with one number in all places of a constant of floats."""
    tensor = model.graph.tensor(value)
    if tensor is None or not tensor.dtype.is_float or tensor.size < 2:
        return None
    plain = np.full(tensor.shape, number).astype(tensor.dtype.numpy)
    if np.array_equal(plain, tensor.array):
        return None
    twin = model.copy()
    twin.graph.replace_uses(value, twin.graph.add_constant(plain))
    twin.graph.erase(value.node)
    return twin
