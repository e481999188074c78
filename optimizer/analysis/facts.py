"""``Facts``: what is known about every value of one scope, computed when asked for."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from networkx import descendants

from optimizer.analysis import scopes
from optimizer.analysis.atoms import mark
from optimizer.analysis.declared import Names
from optimizer.analysis.dims import Dim, DimLike
from optimizer.analysis.elements import Elements
from optimizer.analysis.equations import Equations
from optimizer.analysis.fact import Fact, Shape, conflict, meet
from optimizer.analysis.inference import Functions, Inference
from optimizer.analysis.ranges import SizeRange
from optimizer.analysis.settling import decide_conditions, settle
from optimizer.ir import Attribute, DType, Function, Graph, InvalidGraph, Node, Value


class Facts(Inference):
    """Facts about the values of one graph. They stay true whatever is rewritten, since a rewrite never
    changes what an existing value computes; values made by an edit are inferred when asked for.

    Args:
        graph: the scope.
        functions: the model's local functions, to infer calls through their bodies.
        dims: what names of dimensions stand for: a number, another dim, or the sizes they may have.
            An unnamed axis of a graph input goes by ``input:axis``.
        least: the smallest size of an open dim that ``dims`` says nothing about.
        outer: for a body, the facts of the scope around it, and the id of the node and the position
            of the body there.
        caller: for a function, the facts of the scope that calls it.
        inputs: what is known of the formal inputs; their declared types otherwise.
        attributes: in a function, the attributes it was called with.

    Attributes:
        demanding: what the operator at hand asks of sizes is taken note of.
        needed: the vertices that always run, while that is looked at.
        failures: where set, nodes that cannot run are noted here, and there is no warning.
        mark: unknown dimensions made at or after it may be particular to this scope.
    """

    def __init__(
        self,
        graph: Graph,
        functions: Functions | None = None,
        *,
        dims: Mapping[str, DimLike | SizeRange] | None = None,
        least: int = 0,
        outer: tuple[Facts, int, int] | None = None,
        caller: Facts | None = None,
        inputs: Mapping[Value, Fact] | None = None,
        attributes: Mapping[str, Attribute] | None = None,
    ) -> None:
        around = outer[0] if outer else caller
        self.graph = graph
        self.functions: Functions = functions or {}
        self.names: Names = Names(dims or {}, least) if around is None else around.names
        self.equations: Equations = Equations() if around is None else around.equations
        self.attributes: Mapping[str, Attribute] = attributes or {}
        self.warnings: list[str] = [] if around is None else around.warnings
        self.mark = mark()
        self._outer = outer
        self._inputs = inputs
        self._known: dict[int, tuple[Fact, ...]] = {}
        self._bodies: dict[tuple[int, int], Facts] = {}
        self._sizes: set[Dim] = set()
        self._depth: int = 0 if caller is None else caller._depth + 1
        self.demanding: bool = caller is not None and caller.demanding
        self.needed: frozenset[int] = frozenset()
        self.failures: list[tuple[int, str]] | None = None

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
            if self.failures is not None:
                known.failures = []
            elif any(inner.op == "If" for inner in graph.nodes):
                decide_conditions(known)
        return known

    def trial(self, node: Node, position: int, inputs: Sequence[Fact]) -> Facts:
        """The facts of a body for supposed facts about its inputs; not remembered."""
        graph = node.bodies[position][1]
        return Facts(
            graph,
            self.functions,
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

    # ---------------------------------------------------------------- what must hold for it to run

    def settle(self) -> Facts:
        """Infers everything, and from it what must hold for the model to run; returns itself.

        Only operators that run whatever the inputs are count: not those in bodies, and not those that
        no output needs. O(nodes), a few times.
        """
        settle(self)
        return self

    def note_equal(self, p: Dim, q: Dim) -> None:
        """Takes note that the operator at hand fails unless the two are equal."""
        if self.demanding and p is not q:
            self.equations.state(p, q)

    def note_at_least(self, dim: Dim, least: int) -> None:
        """Takes note that the operator at hand fails unless ``dim >= least``."""
        if self.demanding:
            self.equations.raise_to(dim, least)

    def resolve(self) -> None:
        """Puts what must be equal into everything that is known."""
        resolve = self.equations.resolve_fact
        self._known = {key: tuple(map(resolve, known)) for key, known in self._known.items()}
        self._bodies.clear()

    def supposing(self, value: Value, contents: Elements, needed: frozenset[int]) -> list[str]:
        """How the scope could not run if ``value`` held ``contents``; empty where that is not found.

        Args:
            needed: the vertices that always run.
        """
        below = descendants(self.graph.dag, value.node)
        twin = Facts(self.graph, self.functions, caller=self, inputs=self._inputs, attributes=self.attributes)
        twin._outer, twin.mark, twin.warnings, twin.demanding = self._outer, self.mark, [], False
        twin._known = {key: known for key, known in self._known.items() if key not in below}
        fact = self.of(value)
        known = twin._known[value.node]
        supposed = Fact(fact.dtype, fact.shape, contents)
        twin._known[value.node] = (*known[: value.output], supposed, *known[value.output + 1 :])
        twin.failures = []
        for key in sorted(below & needed):
            if self.graph.node(key).is_operator:
                twin.of(self.graph.node(key).value())
                if found := [text for place, text in twin.failures if place in needed]:
                    return found
        return []

    # ---------------------------------------------------------------- updates

    def tighten(self, value: Value, fact: Fact) -> None:
        """Adds a statement about ``value``, such as what was known of a value that it replaces."""
        before = self.of(value)
        if fact is before or fact == before:
            return
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
            node = self.graph.node(key)
            if not node.is_operator:
                self._known[key] = before[key] if key in before else self._infer(node)
        for node in self.graph.topological():
            self.demanding = node.id in self.needed
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

    def _callee(
        self, function: Function, inputs: Mapping[Value, Fact], attributes: Mapping[str, Attribute]
    ) -> Facts:
        return Facts(function.graph, self.functions, caller=self, inputs=inputs, attributes=attributes)

    def _impossible(self, node: Node, text: str, *, certain: bool) -> None:
        if self.failures is None:
            self._warn(node, text)
        elif certain:
            self.failures.append((node.id, text))
