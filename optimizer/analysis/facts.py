"""``Facts``: what is known about every value of one scope, computed when asked for."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace

from optimizer.analysis import onnx_fallback, scopes
from optimizer.analysis.atoms import mark
from optimizer.analysis.context import Inconsistent, InferContext
from optimizer.analysis.dims import Dim, DimLike
from optimizer.analysis.elements import Elements
from optimizer.analysis.fact import UNKNOWN, Fact, Shape, conflict, from_type, meet
from optimizer.analysis.registry import InferResult, rule_for
from optimizer.ir import (
    IR_DOMAIN,
    Attribute,
    DType,
    Function,
    Graph,
    InvalidGraph,
    Node,
    TensorType,
    Value,
    ValueInfo,
    ValueType,
)

Functions = Mapping[tuple[str, str, str], Function]
MAX_CALL_DEPTH = 32


class Facts:
    """Facts about the values of one graph. They stay true whatever is rewritten, since a rewrite never
    changes what an existing value computes; values made by an edit are inferred when asked for.

    Args:
        graph: the scope.
        functions: the model's local functions, to infer calls through their bodies.
        dims: what names of dimensions stand for: a number, another dim, or ``Dim.symbol`` with bounds.
        outer: for a body, the facts of the scope around it, and the id of the node and the position
            of the body there.
        inputs: what is known of the formal inputs; their declared types otherwise.
        attributes: in a function, the attributes it was called with.

    Attributes:
        warnings: contradictions found so far, one line each; shared by all scopes of a model.
        mark: unknown dimensions made at or after it may be particular to this scope.
    """

    def __init__(
        self,
        graph: Graph,
        functions: Functions | None = None,
        *,
        dims: Mapping[str, DimLike] | None = None,
        outer: tuple[Facts, int, int] | None = None,
        inputs: Mapping[Value, Fact] | None = None,
        attributes: Mapping[str, Attribute] | None = None,
    ) -> None:
        self.graph = graph
        self.functions: Functions = functions or {}
        self.dims = {name: Dim.of(dim) for name, dim in (dims or {}).items()}
        self.attributes: Mapping[str, Attribute] = attributes or {}
        self.warnings: list[str] = outer[0].warnings if outer else []
        self.mark = mark()
        self._outer = outer
        self._inputs = inputs
        self._known: dict[int, tuple[Fact, ...]] = {}
        self._bodies: dict[tuple[int, int], Facts] = {}
        self._sizes: set[Dim] = set()
        self._depth = 0

    # ---------------------------------------------------------------- queries

    def of(self, value: Value) -> Fact:
        """Everything known about ``value``.

        Raises:
            InvalidGraph: there is no such value.
        """
        known = self._known.get(value.node)
        if known is None or value.output >= len(known):
            self._known.pop(value.node, None)
            self._reach(value.node)
            known = self._known[value.node]
        return known[value.output]

    def shape(self, value: Value) -> Shape | None:
        """Its dimensions; ``None`` where not even the rank is known."""
        return self.of(value).shape

    def dtype(self, value: Value) -> DType | None:
        """Its element type."""
        return self.of(value).dtype

    def rank(self, value: Value) -> int | None:
        """Number of its dimensions."""
        return self.of(value).rank

    def value(self, value: Value) -> Elements | None:
        """Its contents, where it is small and they are known at least in part."""
        return self.of(value).value

    def body(self, node: Node | int, position: int) -> Facts:
        """The facts of a body of ``node``, its inputs and captures seen with the facts of this scope."""
        node = self.graph.node(node)
        graph = node.bodies[position][1]
        known = self._bodies.get((node.id, position))
        if known is None or known.graph is not graph:
            for value in node.operands:
                if value is not None:
                    self.of(value)  # unknowns of the outside must be older than those of the body
            start = mark()
            known = self.trial(node, position, scopes.body_inputs(self, node, position))
            known.mark = start
            self._bodies[node.id, position] = known
        return known

    def trial(self, node: Node, position: int, inputs: Sequence[Fact]) -> Facts:
        """The facts of a body for supposed facts about its inputs; not remembered."""
        graph = node.bodies[position][1]
        return Facts(
            graph,
            self.functions,
            dims=self.dims,
            outer=(self, node.id, position),
            inputs=dict(zip(graph.inputs, inputs, strict=False)),
            attributes=self.attributes,
        )

    def note_sizes(self, dims: Sequence[Dim]) -> None:
        """Remembers that some tensor that every run of this scope makes has these dimensions."""
        self._sizes.update(dim for dim in dims if dim.bounds[0] < 0)

    def is_size(self, dim: Dim) -> bool:
        """Whether ``dim`` is never negative: by its bounds, or as the size of an axis."""
        outer = self._outer
        return dim.bounds[0] >= 0 or dim in self._sizes or (outer is not None and outer[0].is_size(dim))

    # ---------------------------------------------------------------- updates

    def tighten(self, value: Value, fact: Fact) -> None:
        """Adds a statement about ``value``, such as what was known of a value that it replaces."""
        before = self.of(value)
        fault = conflict(before, fact)
        if fault:
            self._warn(self.graph.node(value), f"two facts about its output contradict each other: {fault}")
        after = meet(before, fact)
        if after is not before:
            known = self._known[value.node]
            self._known[value.node] = (*known[: value.output], after, *known[value.output + 1 :])

    def spread(self, value: Value) -> None:
        """Infers the users of ``value`` again, and theirs, as far as that teaches anything new.

        What was known stays known; users nobody has asked about yet are left for when they are.
        """
        queue = deque(self.graph.users(value.node))
        while queue:
            key = queue.popleft()
            old = self._known.get(key)
            if old is None or not (node := self.graph.node(key)).is_operator:
                continue
            for operand in node.operands:
                if operand is not None:
                    self.of(operand)  # an edit may have made it after the node was inferred
            for position in range(len(node.bodies)):
                if (key, position) in self._bodies:
                    self._spread_into(self._bodies[key, position], node.captures_of(position))
            made = self._infer(node)
            new = (*map(meet, old, made), *made[len(old) :])
            if new != old:
                self._known[key] = new
                queue.extend(self.graph.users(key))

    def _spread_into(self, body: Facts, bound: Sequence[Value]) -> None:
        for capture, outer in zip(body.graph.captures, bound, strict=True):
            before = body.of(capture)
            body.tighten(capture, self.of(outer))
            if body.of(capture) != before:
                body.spread(capture)

    def refresh(self) -> None:
        """Infers everything again in topological order, so that what was learnt reaches all users.

        What was known and could not be found again stays known. O(nodes).
        """
        before, self._known, self._bodies = self._known, {}, {}
        for key in self.graph.dag:
            if not self.graph.node(key).is_operator and key in before:
                self._known[key] = before[key]
        for node in self.graph.topological():
            made = self._infer(node)
            old = before.get(node.id, ())
            self._known[node.id] = (*map(meet, old, made), *made[len(old) :])

    # ---------------------------------------------------------------- inference

    def _reach(self, key: int) -> None:
        """Infers a vertex and, before it, all that it depends on. No recursion: graphs are deep."""
        known, stack, opened = self._known, [key], set[int]()
        while stack:
            key = stack[-1]
            if key in known:
                stack.pop()
                continue
            node = self.graph.node(key)
            missing = [v.node for v in node.operands if v is not None and v.node not in known]
            if not missing:
                known[key] = self._infer(node)
                stack.pop()
            elif key in opened:
                raise InvalidGraph(f"{self.graph.label(key)} is part of a cycle")
            else:
                opened.add(key)
                stack.extend(missing)

    def _infer(self, node: Node) -> tuple[Fact, ...]:
        if node.domain == IR_DOMAIN:
            return (self._vertex(node),) * len(node.outputs)
        known = self._known
        inputs = [None if v is None else known[v.node][v.output] for v in node.inputs]
        context = InferContext(node, self, inputs)
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
            self._warn(node, str(fault))
        except Exception as fault:  # a rule of a user, or attributes that mean nothing
            self._warn(node, f"its shape could not be inferred ({type(fault).__name__}: {fault})")
        facts = (made,) if isinstance(made, Fact) else made or ()
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
        callee = Facts(function.graph, self.functions, dims=self.dims, inputs=seeds, attributes=given)
        callee.warnings, callee._depth = self.warnings, self._depth + 1
        return [callee.of(value) for value in function.graph.outputs]

    # ---------------------------------------------------------------- what is not an operator

    def _vertex(self, node: Node) -> Fact:
        if node.op_type == "Constant":
            tensor = node.attr("value")
            return Fact.tensor(tensor.dtype, tensor.shape, Elements.of_tensor(tensor))
        if node.op_type == "Capture" and self._outer is not None:
            outer, owner, position = self._outer
            index = self.graph.captures.index(node.value())
            return outer.of(outer.graph.node(owner).captures_of(position)[index])
        if node.op_type not in ("Input", "Capture"):
            return UNKNOWN
        declared = self._declared(node.outputs[0])
        seed = None if self._inputs is None else self._inputs.get(node.value())
        return declared if seed is None else seed

    def _declared(self, info: ValueInfo) -> Fact:
        """What the type of a graph input (or of an opaque node's output) states."""
        if not isinstance(info.type, TensorType) or info.type.shape is None:
            return from_type(info.type, None)
        nameable = self._outer is None and self._inputs is None
        shape = []
        for axis, dim in enumerate(info.type.shape):
            if isinstance(dim, int) and dim >= 0:
                shape.append(Dim.of(dim))
            elif isinstance(dim, str) and dim:
                shape.append(self.dims[dim] if dim in self.dims else Dim.symbol(dim))
            else:
                shape.append(Dim.axis(info.name, axis) if nameable and info.name else Dim.fresh(info.name))
        return from_type(info.type, tuple(shape))

    def _reconciled(self, node: Node, info: ValueInfo, inferred: Fact, opaque: bool) -> Fact:
        """The inferred fact, held against the declared type; the declared one where nothing infers it."""
        if info.type is None:
            return inferred
        if opaque:
            return self._declared(info)
        plain = from_type(info.type, _literal(info.type))
        fault = conflict(inferred, plain)
        if fault:
            self._warn(node, f"'{info.name}' is declared otherwise than inferred: {fault} (declared)")
        if inferred.dtype is None and inferred.type is None:
            return replace(inferred, dtype=plain.dtype, type=plain.type, elem=plain.elem and UNKNOWN)
        return inferred

    def _warn(self, node: Node, text: str) -> None:
        line = f"{self.graph.label(node)}: {text}"
        if line not in self.warnings:
            self.warnings.append(line)


def _any_declared(node: Node) -> bool:
    return any(info.type is not None for info in node.outputs)


def _literal(declared: ValueType) -> Shape | None:
    """The declared numbers; unknowns in the place of names, which state nothing that can be wrong."""
    if not isinstance(declared, TensorType) or declared.shape is None:
        return None
    return tuple(Dim.of(d) if isinstance(d, int) and d >= 0 else _SOME for d in declared.shape)


_SOME = Dim.fresh("any", lo=float("-inf"))
