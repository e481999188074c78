"""The names of tensors in a written model, be it a file or a text.

Graph inputs and outputs keep their names exactly, every other value keeps its name where no enclosing
scope and no sibling took it, and the rest gets fresh names. Names are unique over a main graph with
all its bodies, and over a function with all of its.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from optimizer.ir.errors import InvalidGraph
from optimizer.ir.graph import Graph
from optimizer.ir.node import Node, Value


@dataclass(slots=True)
class ScopeNames:
    """Names of one scope.

    ``values`` has the name of each value, ``outputs`` the name of each graph output, and ``aliases``
    the outputs that need an Identity because no value can bear their name.
    """

    values: dict[Value, str] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)
    aliases: list[tuple[str, Value]] = field(default_factory=list)


class Namer:
    """Gives out the names of one main graph or function, scope by scope, outer before inner.

    Args:
        root: the main graph or the function's graph.
        fresh: what to call an output without a name; made unique by a number.
        may_be_omitted: whether an output without name and use may stay without.
        keep: whether values inside keep the names they have.
    """

    def __init__(
        self,
        root: Graph,
        fresh: Callable[[Node, int], str],
        may_be_omitted: Callable[[Graph, Value], bool],
        *,
        keep: bool = True,
    ) -> None:
        self._fresh_name = fresh
        self._may_be_omitted = may_be_omitted
        self._keep_names = keep
        self._taken: set[str] = set()
        self._known = _all_names(root) if keep else set()
        self._counts: Counter[str] = Counter()

    def name(
        self, graph: Graph, captured: Sequence[str], vertices: Iterable[Node], *, fixed: bool
    ) -> ScopeNames:
        """Names one scope.

        Args:
            vertices: its constants and operators, in the order in which fresh names are given.
            captured: the names of the outer values behind its captures.
            fixed: inputs and outputs must keep their names (main graphs and functions); those of a
                body are found by position and may change.

        Raises:
            InvalidGraph: an output has the name of an input but returns something else.
        """
        scope = ScopeNames(dict(zip(graph.captures, captured, strict=True)))
        for value in graph.inputs:
            scope.values[value] = self._interface(graph, value, graph.info(value).name, fixed)
        self._name_outputs(graph, scope, fixed)
        left: list[Value] = []
        taken, values = self._taken, scope.values
        for vertex in vertices:
            for index, info in enumerate(vertex.outputs):
                value = Value(vertex.id, index)
                if value in values:
                    continue
                name = info.name
                if name and name not in taken and self._keep_names:
                    taken.add(name)
                    values[value] = name
                else:
                    left.append(value)
        for value in left:
            needed = graph.info(value).name or graph.has_uses(value) or not self._may_be_omitted(graph, value)
            values[value] = self._make(graph, value) if needed else ""
        return scope

    def _name_outputs(self, graph: Graph, scope: ScopeNames, fixed: bool) -> None:
        """Each value bears one output name, its own if possible; further names become aliases."""
        wanted = [info.name for info in graph.sink.outputs]
        served: dict[Value, list[int]] = {}
        for position, value in enumerate(graph.outputs):
            served.setdefault(value, []).append(position)
        bearer: dict[int, Value] = {}
        for value, positions in served.items():
            own = graph.info(value).name
            kind = "" if graph.node(value).is_operator else graph.node(value).op_type
            named = [p for p in positions if wanted[p] == own]
            if kind == "Capture" or (kind == "Input" and not named):
                continue
            bearer[(named or positions)[0]] = value
        for position, value in enumerate(graph.outputs):
            if bearer.get(position) != value:
                name = self._interface(graph, value, wanted[position], fixed)
                scope.aliases.append((name, value))
            elif value in scope.values:
                name = scope.values[value]
            else:
                name = scope.values[value] = self._interface(graph, value, wanted[position], fixed)
            scope.outputs.append(name)

    def _interface(self, graph: Graph, value: Value, name: str, fixed: bool) -> str:
        """The name of an input, or of an output, which ``value`` gives."""
        if name and name not in self._taken and (fixed or self._keep_names):
            self._taken.add(name)
            return name
        if fixed:
            raise InvalidGraph(f"graph '{graph.name}' cannot give the name '{name}' to two different tensors")
        return self._make(graph, value)

    def _make(self, graph: Graph, value: Value) -> str:
        """A name nobody has or had."""
        node = graph.node(value)
        base = (self._keep_names and node.outputs[value.output].name) or self._fresh_name(node, value.output)
        while True:
            count = self._counts[base]
            self._counts[base] += 1
            name = f"{base}_{count}" if count else base
            if name not in self._taken and name not in self._known:
                self._taken.add(name)
                return name


def _all_names(root: Graph) -> set[str]:
    vertices = (entry["node"] for _, graph in root.scopes() for entry in graph.dag.nodes.values())
    return {info.name for vertex in vertices for info in vertex.outputs}
