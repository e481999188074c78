"""``Inference``: what one vertex tells, given what is known about its inputs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias, cast

from optimizer.analysis import onnx_fallback
from optimizer.analysis.context import Inconsistent, InferContext
from optimizer.analysis.declared import Names, clash, declared_fact, with_declared_type
from optimizer.analysis.elements import Elements
from optimizer.analysis.equations import Equations
from optimizer.analysis.fact import UNKNOWN, Fact
from optimizer.analysis.registry import InferResult, rule_for
from optimizer.ir import IR_DOMAIN, Attribute, Function, Graph, InvalidGraph, Node, Value, ValueInfo

if TYPE_CHECKING:
    from optimizer.analysis.facts import Facts

Functions: TypeAlias = Mapping[tuple[str, str, str], Function]
MAX_CALL_DEPTH = 32


class Inference:
    """Applies the inference rules in one scope. The part of ``Facts`` that remembers nothing.

    Attributes:
        names: what names of dimensions stand for.
        equations: what must be equal for the model to run, as far as it was looked for.
        warnings: contradictions found so far, one line each; shared by all scopes of a model.
    """

    graph: Graph
    functions: Functions
    names: Names
    equations: Equations
    attributes: Mapping[str, Attribute]
    warnings: list[str]
    _outer: tuple[Facts, int, int] | None
    _inputs: Mapping[Value, Fact] | None
    _known: dict[int, tuple[Fact, ...]]
    _depth: int

    def _infer(self, node: Node) -> tuple[Fact, ...]:
        if node.domain == IR_DOMAIN:
            return (self._vertex(node),) * len(node.outputs)
        known = self._known
        inputs = [None if v is None else known[v.node][v.output] for v in node.inputs]
        context = InferContext(node, cast("Facts", self), inputs)
        rule = rule_for(node.domain, node.op_type, self.graph.opset(node.domain))
        function = None if rule else self.functions.get((node.domain, node.op_type, node.overload))
        made: InferResult = None
        opaque = False
        try:
            if rule is not None:
                made = rule(context)
            elif function is not None:
                made = self._call(function, context)
            else:
                made = onnx_fallback.infer_node(context)
                opaque = made is None
        except Inconsistent as fault:
            self._impossible(node, str(fault), certain=fault.certain)
        except Exception as fault:  # a rule of a user, or attributes that mean nothing
            self._warn(node, f"its shape could not be inferred ({type(fault).__name__}: {fault})")
        facts = (made,) if isinstance(made, Fact) else made or ()
        if any(_has_negative_dim(fact) for fact in facts):
            self._impossible(node, f"its output would have a negative size ({facts[0]})", certain=True)
            facts = [Fact(fact.dtype) if fact and _has_negative_dim(fact) else fact for fact in facts]
        if len(facts) == len(node.outputs) and None not in facts and not _any_declared(node):
            return tuple(fact or UNKNOWN for fact in facts)
        padded = (*facts, *(None,) * len(node.outputs))
        return tuple(
            self._reconciled(node, info, fact or UNKNOWN, opaque)
            for info, fact in zip(node.outputs, padded, strict=False)
        )

    def _call(self, function: Function, context: InferContext) -> InferResult:
        if self._depth >= MAX_CALL_DEPTH:
            return None
        given = dict(function.defaults)
        for name, attribute in context.node.attributes.items():
            bound = self.attributes.get(attribute.reference) if attribute.reference else attribute
            if bound is not None:
                given[name] = bound
        seeds = {v: f or UNKNOWN for v, f in zip(function.graph.inputs, context.inputs, strict=False)}
        callee = self._callee(function, seeds, given)
        return [callee.of(value) for value in function.graph.outputs]

    @abstractmethod
    def _callee(
        self, function: Function, inputs: Mapping[Value, Fact], attributes: Mapping[str, Attribute]
    ) -> Facts:
        """The facts of a function, called from here."""

    @abstractmethod
    def _impossible(self, node: Node, text: str, *, certain: bool) -> None:
        """Takes note that ``node`` cannot run."""

    # ---------------------------------------------------------------- what is not an operator

    def _vertex(self, node: Node) -> Fact:
        if node.op_type == "Constant":
            tensor = node.attr("value")
            return Fact.tensor(tensor.dtype, tensor.shape, Elements.of_tensor(tensor))
        if node.op_type == "Capture" and self._outer is not None:
            outer, owner, position = self._outer
            if not _owns(outer.graph, owner, position, self.graph):  # another node has got the body
                self._outer = outer, owner, position = outer, *_owner_of(outer.graph, self.graph)
            index = self.graph.captures.index(node.value())
            return outer.of(outer.graph.node(owner).captures_of(position)[index])
        if node.op_type not in ("Input", "Capture"):
            return UNKNOWN
        declared = self._declared(node.outputs[0])
        seed = None if self._inputs is None else self._inputs.get(node.value())
        return declared if seed is None else seed

    def _declared(self, info: ValueInfo) -> Fact:
        """What the type of a graph input (or of an opaque node's output) states."""
        nameable = self._outer is None and self._inputs is None
        return self.equations.resolve_fact(declared_fact(info, self.names, nameable=nameable))

    def _reconciled(self, node: Node, info: ValueInfo, inferred: Fact, opaque: bool) -> Fact:
        """The inferred fact, held against the declared type; the declared one where nothing infers it."""
        if info.type is None:
            return inferred
        if opaque:
            return self._declared(info)
        fault = clash(inferred, info)
        if fault:
            self._warn(node, fault)
        return with_declared_type(inferred, info)

    def _warn(self, node: Node, text: str) -> None:
        line = f"{self.graph.label(node)}: {text}"
        if line not in self.warnings:
            self.warnings.append(line)


def _owns(graph: Graph, owner: int, position: int, body: Graph) -> bool:
    if owner not in graph:
        return False
    bodies = graph.node(owner).bodies
    return position < len(bodies) and bodies[position][1] is body


def _owner_of(graph: Graph, body: Graph) -> tuple[int, int]:
    for node in graph.nodes:
        for position, (_, owned) in enumerate(node.bodies):
            if owned is body:
                return node.id, position
    raise InvalidGraph(f"no node of graph '{graph.name}' has the body '{body.name}'")


def _has_negative_dim(fact: Fact | None) -> bool:
    return fact is not None and any(d.value is not None and d.value < 0 for d in fact.shape or ())


def _any_declared(node: Node) -> bool:
    return any(info.type is not None for info in node.outputs)
