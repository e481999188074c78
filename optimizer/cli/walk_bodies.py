"""Where two engines part inside bodies and functions: each is run in both on what it got in the executor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from optimizer.cli.walk import Parting, Scope, find_parting, not_given, read_values
from optimizer.io import to_proto
from optimizer.ir import (
    Attribute,
    DType,
    Graph,
    Model,
    Node,
    OptimizerError,
    SequenceType,
    TensorType,
    Value,
    ValueInfo,
    ValueType,
)
from optimizer.runtime import Options, run_between
from optimizer.verify import EngineError, OnnxRuntime
from optimizer.verify.extract import copy_node


@dataclass(frozen=True)
class _BodyModel:
    """A body in onnxruntime.

    Attributes:
        outputs: what it gives, values of the body.
    """

    engine: OnnxRuntime
    inputs: Mapping[Value, str]
    outputs: tuple[Value, ...]


class BodyWalk:
    """Compares the tensors of every body and function that the executor enters, in the order it does.

    A body runs once more in both engines, from the inputs and captures that the executor gave it, so that
    what the engines disagree on outside does not show here. It stops at the first node that gives something
    else and is not explained by what is inside of it.

    Attributes:
        parting: where the engines part, if they do.
        compared: tensors compared.
        left_out: what onnxruntime could not run, and why.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._scope_of = {id(node): graph for _, graph in model.graphs() for node in graph.nodes}
        self._owner_of = {
            id(body): node for _, graph in model.graphs() for node in graph.nodes for _, body in node.bodies
        }
        self._functions = {id(f.graph): f for f in model.functions.values()}
        self._caller: Node | None = None
        self._started: Counter[int] = Counter()  # since the owner was reached
        self._runs: Counter[int] = Counter()
        self._parted_at = 0
        self._places: dict[int, str] = {}
        self._models: dict[Any, _BodyModel | str] = {}
        self._main: Node | None = None
        self._main_of_parting: Node | None = None
        self._entered: set[int] = set()
        self.parting: Parting | None = None
        self.compared = 0
        self.left_out: dict[str, str] = {}

    def options(self, options: Options) -> Options:
        """The options that let it watch a run."""
        return replace(options, before_node=self._before_node, before_body=self._before_body)

    def first(self, main: Parting, nodes: Sequence[Node]) -> Parting:
        """The first place where the engines part, in a body or in the main graph.

        Args:
            main: what a walk over the nodes of the main graph found.
        """
        order = {node.id: place for place, node in enumerate(nodes)}
        at = len(nodes) if main.node is None else order[main.node.id]
        if self.parting is None or self._main_of_parting is None or order[self._main_of_parting.id] > at:
            return main
        before = find_parting(nodes[: order[self._main_of_parting.id]], main.ours, main.theirs)
        largest, where = max((before.largest, before.where), (self.parting.largest, self.parting.where))
        compared = before.compared + self.compared
        return replace(self.parting, compared=compared, largest=largest, where=where)

    def entered(self, node: Node | None) -> bool:
        """Whether all that ran inside a node was compared."""
        return node is not None and id(node) in self._entered and not self.left_out

    # ---------------------------------------------------------------- following the run

    def _before_node(self, node: Node, inputs: Sequence[Any]) -> None:
        self._caller = node
        if self._scope_of.get(id(node)) is self._model.graph:
            self._main = node
        for _, body in node.bodies:
            self._started[id(body)] = 0

    def _before_body(self, graph: Graph, values: Sequence[Any], attributes: Mapping[str, Attribute]) -> None:
        self._entered.add(id(self._main))
        place = self._places[id(graph)] = self._place(graph)
        self._started[id(graph)] += 1
        self._runs[id(graph)] += 1
        if self.parting is not None and not self._refines(graph):
            return
        opsets = graph.opsets or self._model.opsets
        given = dict(zip(graph.inputs + graph.captures, values, strict=True))
        self._compare(Scope(graph, given, opsets, attributes, place))

    def _owner(self, graph: Graph) -> Node | None:
        """The node that runs a body or calls a function, at the moment when it does."""
        return self._caller if id(graph) in self._functions else self._owner_of.get(id(graph))

    def _refines(self, graph: Graph) -> bool:
        """Whether it is the inside of the node where the engines parted, in the same execution."""
        parting = self.parting
        if parting is None or parting.scope is None or self._owner(graph) is not parting.node:
            return False
        return self._runs[id(parting.scope.graph)] == self._parted_at

    def _place(self, graph: Graph) -> str:
        """``iteration 3 of Loop 'decode'``, and what that is in."""
        function = self._functions.get(id(graph))
        owner = self._owner(graph)
        if owner is None:
            return "a body"
        scope = self._scope_of.get(id(owner), self._model.graph)
        label = scope.label(owner)
        name = next((name for name, body in owner.bodies if body is graph), "")
        if function:
            text = f"function {function.domain}::{function.name} called by {label}"
        elif owner.op_type == "If":
            text = f"{name} of {label}"
        else:
            text = f"iteration {self._started[id(graph)]} of {label}"
        around = self._places.get(id(scope))
        return f"{text} in {around}" if around else text

    # ---------------------------------------------------------------- one body

    def _compare(self, scope: Scope) -> None:
        nodes = [node for node in scope.graph.topological() if node.is_operator]
        wanted = read_values(scope.graph, nodes)
        if not wanted:
            return
        try:
            ours = run_between(
                scope.graph,
                scope.given,
                wanted,
                functions=self._model.functions,
                opsets=scope.opsets,
                bindings=scope.attributes,
            )
            theirs = self._theirs(scope, nodes, ours)
        except OptimizerError as error:
            self.left_out.setdefault(scope.place.split(" of ", 1)[-1], str(error))
            return
        found = replace(find_parting(nodes, ours, theirs), scope=scope)
        self.compared += found.compared
        if found.fault:
            self.compared -= self.parting is not None  # the result of its owner
            self.parting, self._main_of_parting = found, self._main
            self._parted_at = self._runs[id(scope.graph)]

    def _theirs(self, scope: Scope, nodes: Sequence[Node], ours: Mapping[Value, Any]) -> dict[Value, Any]:
        types = tuple(None if x is None else _type_of(x) for x in scope.given.values())
        key = (id(scope.graph), tuple(map(id, scope.attributes.values())), types)
        if key not in self._models:
            try:
                self._models[key] = self._body_model(scope, nodes, ours)
            except OptimizerError as error:
                self._models[key] = str(error)
        model = self._models[key]
        if isinstance(model, str):
            raise OptimizerError(model)
        feeds = {name: scope.given[value] for value, name in model.inputs.items()}
        return dict(zip(model.outputs, model.engine.run(feeds).values(), strict=True))

    def _body_model(self, scope: Scope, nodes: Sequence[Node], ours: Mapping[Value, Any]) -> _BodyModel:
        """The body as the main graph of a model whose outputs are all its tensors."""
        source, graph = scope.graph, Graph("body", scope.opsets)
        local: dict[Value, Any] = dict.fromkeys(scope.given)  # None: an input that the call omits
        names = {v: f"body input {i}" for i, (v, x) in enumerate(scope.given.items()) if x is not None}
        for value, name in names.items():
            local[value] = graph.add_input(ValueInfo(name, _type_of(scope.given[value])))
        for value in source.constants:
            local[value] = graph.add_constant(source.tensor(value), source.info(value))
        for node in nodes:
            copy_node(graph, node, local)
        for _, inner in graph.scopes():
            _bind(inner, scope.attributes)
        left_out = not_given(source, ours)
        outputs = tuple(value for value in ours if value not in left_out)
        made = [local[value] for value in outputs]
        graph.set_outputs(made, [f"body value {i}" for i in range(len(made))])
        model = replace(self._model, graph=graph, extras={}, warnings=[]).pruned()
        return _BodyModel(OnnxRuntime(to_proto(model).SerializeToString(), model=model), names, outputs)


def _bind(graph: Graph, attributes: Mapping[str, Attribute]) -> None:
    """Puts what a function was called with in the place of references to its attributes."""
    for node in list(graph.nodes):
        if any(a.reference for a in node.attributes.values()):
            bound = {n: attributes.get(a.reference) if a.reference else a for n, a in node.attributes.items()}
            graph.set_attrs(node, {name: a for name, a in bound.items() if a is not None})


def _type_of(value: Any) -> ValueType:
    """The type of a run-time value, sizes left open.

    Raises:
        EngineError: there is none, or arrays of it cannot be given to onnxruntime.
    """
    if isinstance(value, list) and value:
        return SequenceType(_type_of(value[0]))
    if not isinstance(value, np.ndarray):
        raise EngineError("onnxruntime", "feed", f"a {type(value).__name__}")
    return TensorType(DType.from_numpy(value.dtype), (None,) * value.ndim)
