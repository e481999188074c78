"""The graph: one ``networkx.DiGraph`` behind five mutators.

Every change, whatever mutator asked for it, is one ``Change(before, after)`` of one vertex and
goes through ``Graph._write``. That is what listeners hear, and what undo turns around.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

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
from optimizer.ir.queries import GraphQueries
from optimizer.ir.tensor import Tensor


class Change(NamedTuple):
    """One vertex before and after: added (no before), erased (no after) or changed."""

    before: Node | None
    after: Node | None

    @property
    def inverse(self) -> Change:
        """The change that takes this one back."""
        return Change(self.after, self.before)


Listener = Callable[["Graph", Change], None]


class Graph(GraphQueries):
    """A main graph, a function's graph, or the body of an If, Loop or Scan.

    A body refers to nothing outside itself: the outer values it reads are its Capture
    vertices, bound by position to ``Node.captures`` of the node that owns it.

    Args:
        name: the graph's name in the model.
        opsets: version of each imported operator set, by domain; shared by nested bodies.
    """

    def __init__(self, name: str = "", opsets: Mapping[str, int] | None = None) -> None:
        super().__init__(name, opsets)
        self._listeners: list[Listener] = []
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
        bound = before.captures if captures is None else tuple(captures)
        return self._write(before, before.reading(tuple(inputs), bound))

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
        chosen: dict[int, set[int]] = {}
        for use in self.uses(old) if uses is None else uses:
            if use.node != new.node:
                chosen.setdefault(use.node, set()).add(use.slot)
        for user_id, slots in chosen.items():
            user = self.node(user_id)
            operands = [new if i in slots else v for i, v in enumerate(user.operands)]
            split = len(user.inputs)
            captures = tuple([v for v in operands[split:] if v is not None])
            self._write(user, user.reading(tuple(operands[:split]), captures))
        if chosen and not self.has_uses(old) and old != new:
            self._take_over_declaration(old, new)
        return sum(map(len, chosen.values()))

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
                self._count(after.op_type, 1)
                self._track_interface(after, present=True)
            self._relink(after.id, before.operands if before else (), after.operands)
            self._vertices[after.id]["node"] = after
        else:
            self._dag.remove_node(node.id)
            self._count(node.op_type, -1)
            self._track_interface(node, present=False)
        if after is None:
            self._owners.discard(node.id)
        elif after.attributes and after.bodies:
            self._owners.add(node.id)
        if before is None or after is None or before.operands != after.operands:
            self._order = None
        self._operators = None
        change = Change(before, after)
        for listener in self._listeners:
            listener(self, change)
        return node

    def _relink(self, key: int, old: tuple[Value | None, ...], new: tuple[Value | None, ...]) -> None:
        """Makes the edges into ``key`` match its operands; ``slots`` holds (operand, output)."""
        if old == new:
            return
        slots: dict[int, tuple[tuple[int, int], ...]] = {}
        for slot, value in enumerate(new):
            if value is not None:
                source, output = value
                if source not in self._vertices:
                    raise InvalidGraph(
                        f"vertex {key} reads vertex {source}, which graph '{self.name}' has not"
                    )
                slots[source] = (*slots.get(source, ()), (slot, output))
        for source in {v.node for v in old if v is not None} - slots.keys():
            self._dag.remove_edge(source, key)
        for source, read in slots.items():
            edge = self._successors[source].get(key)
            if edge is None:
                self._dag.add_edge(source, key, slots=read)
            else:
                edge["slots"] = read

    def _count(self, op_type: str, change: int) -> None:
        count = self._population[op_type] + change
        if count:
            self._population[op_type] = count
        else:
            del self._population[op_type]
        if count == (1 if change > 0 else 0):  # the first of its kind came, or the last went
            self._op_types = None

    def _track_interface(self, node: Node, present: bool) -> None:
        keys = self._interface.get(node.op_type) if node.domain == IR_DOMAIN else None
        if keys is None:
            return
        if present:
            insort(keys, node.id)
        else:
            del keys[bisect_left(keys, node.id)]

    def _take_over_declaration(self, old: Value, new: Value) -> None:
        source, target = self.node(old.node), self.node(new.node)
        if target.outputs[new.output].name or not source.outputs[old.output].name:
            return
        self._write(target, target.declaring(_with(target.outputs, new.output, source.outputs[old.output])))
        if source.is_operator:
            self._write(source, source.declaring(_with(source.outputs, old.output, _ANONYMOUS)))


_ANONYMOUS = ValueInfo()


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
