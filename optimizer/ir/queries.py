"""What can be asked of a graph. Nothing here writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, cast

import networkx as nx
import numpy as np

from optimizer.ir.errors import InvalidGraph
from optimizer.ir.node import IR_DOMAIN, Node, Use, Value, ValueInfo
from optimizer.ir.tensor import Tensor
from optimizer.ir.topology import topological_order

if TYPE_CHECKING:
    from optimizer.ir.graph import Graph


class Role(Enum):
    """What a tensor is to the model; where several apply, the first in this order."""

    INPUT = "input"
    CONSTANT = "constant"
    OUTPUT = "output"
    INTERMEDIATE = "intermediate"


class GraphQueries:
    """The reading half of ``Graph``: vertices, values, uses, order."""

    def __init__(self, name: str, opsets: Mapping[str, int] | None) -> None:
        self.name = name
        self.opsets: dict[str, int] = dict(opsets or {})
        self.doc_string = ""
        self.metadata: tuple[tuple[str, str], ...] = ()
        self._dag: nx.DiGraph = nx.DiGraph()
        # NetworkX builds a view object for each G.succ[n]; these dicts are read a million times.
        self._vertices: dict[int, dict[str, Node]] = self._dag._node
        self._successors: dict[int, dict[int, dict[str, Any]]] = self._dag._succ
        self._interface: dict[str, list[int]] = {
            "Input": [],
            "Capture": [],
            "Constant": [],
            "Annotation": [],
        }
        self._population: Counter[str] = Counter()
        self._op_types: frozenset[str] | None = None
        self._owners: set[int] = set()  # the nodes that have bodies: few, and asked for often
        self._next_id = 0
        self._order: list[int] | None = None
        self._operators: list[Node] | None = None
        self._sink = 0

    # ---------------------------------------------------------------- queries: vertices

    def node(self, node: Node | Value | int) -> Node:
        """The vertex as it is now.

        Raises:
            InvalidGraph: there is no such vertex (any more).
        """
        key = node if isinstance(node, int) else node.node if isinstance(node, Value) else node.id
        try:
            return self._vertices[key]["node"]
        except KeyError:
            raise InvalidGraph(f"no vertex {key} in graph '{self.name}'") from None

    def __contains__(self, node: Node | Value | int) -> bool:
        key = node if isinstance(node, int) else node.node if isinstance(node, Value) else node.id
        return key in self._vertices

    def __len__(self) -> int:
        """Number of operator nodes of this graph, bodies not counted."""
        return len(self._vertices) - 1 - sum(map(len, self._interface.values()))

    @property
    def nodes(self) -> Iterator[Node]:
        """Operator nodes in order of creation. A loop over it may edit the graph as it goes."""
        for key in sorted(self._vertices):
            vertex = self._vertices.get(key)
            if vertex is not None and vertex["node"].is_operator:
                yield vertex["node"]

    def topological(self) -> list[Node]:
        """Operator nodes, producers before users; stable. O(V + E), cached until an edit.

        Raises:
            InvalidGraph: the graph has a cycle.
        """
        if self._order is None:
            self._order = topological_order(self)
        if self._operators is None:
            ordered = [self._vertices[key]["node"] for key in self._order]
            self._operators = [node for node in ordered if node.is_operator]
        return list(self._operators)

    @property
    def op_types(self) -> frozenset[str]:
        """The op types that occur among the vertices, those of the IR itself included. Cached."""
        if self._op_types is None:
            self._op_types = frozenset(self._population)
        return self._op_types

    @property
    def dag(self) -> nx.DiGraph:
        """A read-only view for any networkx algorithm."""
        return self._dag.copy(as_view=True)

    @property
    def sink(self) -> Node:
        """The one vertex that reads the graph's outputs."""
        return self.node(self._sink)

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The formal inputs, in order."""
        return tuple(Value(key) for key in self._interface["Input"])

    @property
    def captures(self) -> tuple[Value, ...]:
        """The formal captures of a body, in order."""
        return tuple(Value(key) for key in self._interface["Capture"])

    @property
    def constants(self) -> tuple[Value, ...]:
        """The constants of this scope."""
        return tuple(Value(key) for key in self._interface["Constant"])

    @property
    def annotations(self) -> tuple[Node, ...]:
        """The quantization annotations: vertices that read a tensor and its parameters."""
        return tuple(self.node(key) for key in self._interface["Annotation"])

    @property
    def outputs(self) -> tuple[Value, ...]:
        """The values the graph returns, in order."""
        return tuple(v for v in self.sink.inputs if v is not None)

    def scopes(self, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Graph]]:
        """This graph and all nested bodies, outer first, each with its path."""
        yield path, cast("Graph", self)
        for node in [self.node(key) for key in sorted(self._owners)]:
            for name, body in node.bodies:
                yield from body.scopes((*path, f"{node.name or node.id}.{name}"))

    def histogram(self) -> Counter[str]:
        """Operator nodes per op, nested bodies included."""
        return Counter(node.op for _, graph in self.scopes() for node in graph.nodes)

    # ---------------------------------------------------------------- queries: values

    def producer(self, value: Value) -> Node:
        """The vertex that makes ``value``."""
        return self.node(value.node)

    def info(self, value: Value) -> ValueInfo:
        """Name and declared type of ``value``."""
        return self.node(value.node).outputs[value.output]

    def uses(self, value: Value) -> list[Use]:
        """Every use of ``value``, by the sink and by captures too, sorted. O(users)."""
        return sorted(self._iter_uses(value))

    def has_uses(self, value: Value) -> bool:
        """Whether anything (an operator, the sink, a body) reads ``value``. O(1)."""
        return next(self._iter_uses(value), None) is not None

    def users(self, key: int) -> list[int]:
        """Ids of the vertices that read any output of vertex ``key``, sorted."""
        users = self._successors[key]
        return sorted(users) if len(users) > 1 else list(users)

    def fan_out(self, key: int) -> int:
        """How many vertices read any output of vertex ``key``. O(1)."""
        return len(self._successors[key])

    def only_use(self, value: Value) -> Use | None:
        """The one use of ``value``, or ``None`` where it has no use or several. O(1)."""
        found = None
        for user, edge in self._successors[value.node].items():
            for slot, output in edge["slots"]:
                if output == value.output:
                    if found is not None:
                        return None
                    found = Use(user, slot)
        return found

    def is_output(self, value: Value) -> bool:
        """Whether the graph returns ``value``."""
        return any(use.node == self._sink for use in self._iter_uses(value))

    def tensor(self, value: Value | None) -> Tensor | None:
        """The constant behind ``value``, not loaded; ``None`` where it is not a constant."""
        if value is None:
            return None
        node = self._vertices[value.node]["node"]
        if node.op_type == "Constant" and node.domain == IR_DOMAIN:
            tensor: Tensor = node.attributes["value"].value
            return tensor
        return None

    def const(self, value: Value | None) -> np.ndarray | None:
        """The elements of a constant (loads them); ``None`` where it is not a constant."""
        tensor = self.tensor(value)
        return None if tensor is None else tensor.array

    def role(self, value: Value) -> Role:
        """INPUT, CONSTANT, OUTPUT or INTERMEDIATE, in this precedence."""
        node = self.node(value.node)
        if not node.is_operator:
            return Role.CONSTANT if node.op_type == "Constant" else Role.INPUT
        return Role.OUTPUT if self.is_output(value) else Role.INTERMEDIATE

    def opset(self, domain: str = "") -> int:
        """Imported version of ``domain`` (0 where it is not imported)."""
        return self.opsets.get(domain, 0)

    def label(self, node: Node | int) -> str:
        """``Conv 'name' -> tensor``: how messages call a vertex."""
        node = self.node(node)
        made = next((o.name for o in node.outputs if o.name), "")
        return (
            node.op + (f" '{node.name}'" if node.name else f" #{node.id}") + (f" -> '{made}'" if made else "")
        )

    def _iter_uses(self, value: Value) -> Iterator[Use]:
        for user, edge in self._successors[value.node].items():
            for slot, index in edge["slots"]:
                if index == value.output:
                    yield Use(user, slot)
