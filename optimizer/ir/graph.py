"""The graph: one ``networkx.DiGraph`` behind five mutators.

Every change, whatever mutator asked for it, is one ``Change(before, after)`` of one vertex and
goes through ``Graph._write``. That is what listeners hear, and what undo turns around.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import networkx as nx
import numpy as np

from optimizer.ir.errors import InvalidGraph
from optimizer.ir.node import (
    IR_DOMAIN,
    Attribute,
    AttributeKind,
    Node,
    Origin,
    Use,
    Value,
    ValueInfo,
    attributes_of,
    infos_of,
)
from optimizer.ir.tensor import Tensor
from optimizer.ir.topology import topological_order


@dataclass(frozen=True, slots=True)
class Change:
    """One vertex before and after: added (no before), erased (no after) or changed."""

    before: Node | None
    after: Node | None

    @property
    def inverse(self) -> Change:
        """The change that takes this one back."""
        return Change(self.after, self.before)


Listener = Callable[["Graph", Change], None]


class Role(Enum):
    """What a tensor is to the model; where several apply, the first in this order."""

    INPUT = "input"
    CONSTANT = "constant"
    OUTPUT = "output"
    INTERMEDIATE = "intermediate"


class Graph:
    """A main graph, a function's graph, or the body of an If, Loop or Scan.

    A body refers to nothing outside itself: the outer values it reads are its Capture
    vertices, bound by position to ``Node.captures`` of the node that owns it.

    Args:
        name: the graph's name in the model.
        opsets: version of each imported operator set, by domain; shared by nested bodies.
    """

    def __init__(self, name: str = "", opsets: Mapping[str, int] | None = None) -> None:
        self.name = name
        self.opsets: dict[str, int] = dict(opsets or {})
        self.doc_string = ""
        self.metadata: tuple[tuple[str, str], ...] = ()
        self._dag: nx.DiGraph = nx.DiGraph()
        # NetworkX builds a view object for each G.succ[n]; these dicts are read a million times.
        self._vertices: dict[int, dict[str, Node]] = self._dag._node
        self._successors: dict[int, dict[int, dict[str, Any]]] = self._dag._succ
        self._next_id = 0
        self._interface: dict[str, list[int]] = {
            "Input": [],
            "Capture": [],
            "Constant": [],
            "Annotation": [],
        }
        self._listeners: list[Listener] = []
        self._order: list[int] | None = None
        self._sink = self._new_node("Output", IR_DOMAIN, outputs=()).id

    # ---------------------------------------------------------------- the five mutators

    def add(
        self,
        op_type: str,
        inputs: Sequence[Value | None] = (),
        attributes: Mapping[str, Any] | None = None,
        outputs: int | Iterable[ValueInfo | str] = 1,
        *,
        domain: str = "",
        captures: Sequence[Value] = (),
        overload: str = "",
        name: str = "",
        origin: Origin | None = None,
    ) -> Node:
        """Adds one vertex and returns it. O(arity).

        Args:
            inputs: what it reads; ``None`` for an omitted optional input.
            attributes: plain Python values or ``Attribute`` objects; ``None`` entries are dropped.
            outputs: a count, names, or declarations.

        Raises:
            InvalidGraph: an input is not a value of this graph.
        """
        node = Node(
            self._next_id,
            op_type,
            domain,
            tuple(inputs),
            attributes_of(attributes or {}),
            infos_of(outputs),
            tuple(captures),
            overload,
            name,
            origin or Origin(),
        )
        self._next_id += 1
        self._write(None, node)
        return node

    def set_inputs(
        self,
        node: Node | int,
        inputs: Sequence[Value | None],
        captures: Sequence[Value] | None = None,
    ) -> Node:
        """Gives a vertex other inputs (and captures, where given). O(old + new arity)."""
        before = self.node(node)
        after = replace(
            before,
            inputs=tuple(inputs),
            captures=before.captures if captures is None else tuple(captures),
        )
        return self._write(before, after)

    def set_attrs(
        self,
        node: Node | int,
        attributes: Mapping[str, Any] | None = None,
        *,
        outputs: int | Iterable[ValueInfo | str] | None = None,
        name: str | None = None,
    ) -> Node:
        """Gives a vertex other attributes, output declarations or another name. O(1).

        ``attributes`` replaces the whole mapping.
        """
        before = self.node(node)
        after = replace(
            before,
            attributes=before.attributes if attributes is None else attributes_of(attributes),
            outputs=before.outputs if outputs is None else infos_of(outputs),
            name=before.name if name is None else name,
        )
        return self._write(before, after)

    def replace_uses(self, old: Value, new: Value, uses: Iterable[Use] | None = None) -> int:
        """Makes the users of ``old`` read ``new``; O(sum of the users' arity).

        Uses by the producer of ``new`` itself are left alone, so that a value can be wrapped.
        An anonymous ``new`` takes over the declaration (name, type) of a fully replaced ``old``.

        Args:
            uses: only these uses; all by default.

        Returns:
            How many uses were changed.
        """
        chosen = [u for u in (self.uses(old) if uses is None else uses) if u.node != new.node]
        for user_id in dict.fromkeys(use.node for use in chosen):
            user = self.node(user_id)
            slots = {use.slot for use in chosen if use.node == user_id}
            operands = [new if i in slots else v for i, v in enumerate(user.operands)]
            split = len(user.inputs)
            self.set_inputs(user, operands[:split], [v for v in operands[split:] if v is not None])
        if chosen and not self.has_uses(old) and old != new:
            self._take_over_declaration(old, new)
        return len(chosen)

    def erase(self, node: Node | int) -> None:
        """Removes a vertex that nothing reads. O(arity).

        Raises:
            InvalidGraph: it is still used, or is the output sink.
        """
        before = self.node(node)
        users = self._successors[before.id]
        if users or before.id == self._sink:
            reader = f"read by {self.label(next(iter(users)))}" if users else "the output sink"
            raise InvalidGraph(f"cannot erase {self.label(before)}: {reader}")
        self._write(before, None)

    # ---------------------------------------------------------------- undo and listeners

    def revert(self, change: Change) -> None:
        """Takes back one change. Changes must be reverted last in, first out."""
        inverse = change.inverse
        self._write(inverse.before, inverse.after)

    def subscribe(self, listener: Listener) -> None:
        """Calls ``listener(graph, change)`` after each change from now on."""
        self._listeners.append(listener)

    def unsubscribe(self, listener: Listener) -> None:
        """Stops calling ``listener``."""
        self._listeners.remove(listener)

    # ---------------------------------------------------------------- queries: vertices

    def node(self, node: Node | Value | int) -> Node:
        """The vertex as it is now.

        Raises:
            InvalidGraph: there is no such vertex (any more).
        """
        key = node if isinstance(node, int) else node.node if isinstance(node, Value) else node.id
        vertex = self._vertices.get(key)
        if vertex is None:
            raise InvalidGraph(f"no vertex {key} in graph '{self.name}'")
        return vertex["node"]

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
        return [node for key in self._order if (node := self._vertices[key]["node"]).is_operator]

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
        yield path, self
        for node in self.nodes:
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

    def only_use(self, value: Value) -> Use | None:
        """The one use of ``value``, or ``None`` where it has no use or several. O(1)."""
        found = None
        for use in self._iter_uses(value):
            if found is not None:
                return None
            found = use
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

    # ---------------------------------------------------------------- building

    def add_input(self, info: ValueInfo | str, default: Tensor | None = None) -> Value:
        """Adds a formal input behind the last one; with ``default``, callers may leave it out."""
        return self.add("Input", (), {"default": default}, [info], domain=IR_DOMAIN).value()

    def add_capture(self, info: ValueInfo | str) -> Value:
        """Adds a formal capture; the owner's ``captures`` must get its binding as well."""
        return self.add("Capture", outputs=[info], domain=IR_DOMAIN).value()

    def add_constant(self, constant: Tensor | np.ndarray | Any, info: ValueInfo | str = "") -> Value:
        """Adds a constant vertex."""
        tensor = constant if isinstance(constant, Tensor) else Tensor.of(constant)
        attribute = Attribute(AttributeKind.TENSOR, tensor)
        return self.add("Constant", (), {"value": attribute}, [info], domain=IR_DOMAIN).value()

    def set_outputs(self, outputs: Sequence[Value], infos: Iterable[ValueInfo | str]) -> None:
        """Declares what the graph returns."""
        self.set_attrs(self._sink, outputs=infos)
        self.set_inputs(self._sink, outputs)

    def copy(self) -> Graph:
        """An independent copy with the same ids; bodies are copied, constants shared."""
        twin = Graph(self.name, self.opsets)
        twin.doc_string, twin.metadata = self.doc_string, self.metadata
        nodes = [_with_copied_bodies(self._vertices[key]["node"]) for key in sorted(self._vertices)]
        for node in nodes:
            if node.id != twin._sink:
                twin._write(None, replace(node, inputs=(), captures=()))
        for node in nodes:
            twin._write(twin._vertices[node.id]["node"], node)
        twin._next_id = self._next_id
        return twin

    # ---------------------------------------------------------------- the one place that writes

    def _new_node(self, op_type: str, domain: str, outputs: tuple[ValueInfo, ...]) -> Node:
        return self.add(op_type, domain=domain, outputs=outputs)

    def _write(self, before: Node | None, after: Node | None) -> Node:
        """Puts ``after`` in the place of ``before``, updates the edges and tells the listeners."""
        node = after or before
        assert node is not None
        if after is not None:
            if before is None:
                self._dag.add_node(after.id)
                self._track_interface(after, present=True)
            self._relink(after.id, before.operands if before else (), after.operands)
            self._vertices[after.id]["node"] = after
        else:
            self._dag.remove_node(node.id)
            self._track_interface(node, present=False)
        if before is None or after is None or before.operands != after.operands:
            self._order = None
        change = Change(before, after)
        for listener in self._listeners:
            listener(self, change)
        return node

    def _relink(self, key: int, old: tuple[Value | None, ...], new: tuple[Value | None, ...]) -> None:
        """Makes the edges into ``key`` match its operands; ``slots`` holds (operand, output)."""
        if old == new:
            return
        slots: dict[int, list[tuple[int, int]]] = {}
        for slot, value in enumerate(new):
            if value is not None:
                slots.setdefault(value.node, []).append((slot, value.output))
        for source in {v.node for v in old if v is not None} - slots.keys():
            self._dag.remove_edge(source, key)
        for source, pairs in slots.items():
            if source not in self._vertices:
                raise InvalidGraph(f"vertex {key} reads vertex {source}, which graph '{self.name}' has not")
            self._dag.add_edge(source, key, slots=tuple(pairs))

    def _track_interface(self, node: Node, present: bool) -> None:
        keys = self._interface.get(node.op_type) if node.domain == IR_DOMAIN else None
        if keys is None:
            return
        if present:
            insort(keys, node.id)
        else:
            del keys[bisect_left(keys, node.id)]

    def _iter_uses(self, value: Value) -> Iterator[Use]:
        for user, edge in self._successors[value.node].items():
            for slot, index in edge["slots"]:
                if index == value.output:
                    yield Use(user, slot)

    def _take_over_declaration(self, old: Value, new: Value) -> None:
        source, target = self.node(old.node), self.node(new.node)
        if target.outputs[new.output].name or not source.outputs[old.output].name:
            return
        self.set_attrs(target, outputs=_with(target.outputs, new.output, source.outputs[old.output]))
        if source.is_operator:
            self.set_attrs(source, outputs=_with(source.outputs, old.output, ValueInfo()))


def _with(infos: tuple[ValueInfo, ...], index: int, info: ValueInfo) -> tuple[ValueInfo, ...]:
    return (*infos[:index], info, *infos[index + 1 :])


def _with_copied_bodies(node: Node) -> Node:
    copied = {}
    for name, attribute in node.attributes.items():
        if attribute.kind is AttributeKind.GRAPH and not attribute.reference:
            copied[name] = replace(attribute, value=attribute.value.copy())
        elif attribute.kind is AttributeKind.GRAPHS:
            copied[name] = replace(attribute, value=tuple(g.copy() for g in attribute.value))
    return replace(node, attributes=attributes_of({**node.attributes, **copied})) if copied else node
