"""The names of a scope, before any vertex is made: who defines what, what is read from outside.

ONNX refers to tensors by name, nodes may stand in any order, and a body may read the names of every
scope around it. A draft answers these questions with names alone, so that building the graph
afterwards is one straight run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from onnx import GraphProto, NodeProto

from optimizer.io.attributes import bodies_of
from optimizer.io.typeprotos import text_of
from optimizer.ir import InvalidModel


class NodeDraft(NamedTuple):
    """A node and the names it touches; ``bodies`` in attribute order."""

    proto: NodeProto
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    bodies: tuple[ScopeDraft, ...]

    @property
    def label(self) -> str:
        """How messages call the node."""
        name = f" '{text_of(self.proto.name)}'" if self.proto.name else ""
        made = next((o for o in self.outputs if o), "")
        return text_of(self.proto.op_type) + name + (f" -> '{made}'" if made else "")

    def reads(self) -> Iterator[str]:
        """Names read by the node itself, then by its bodies from around them."""
        yield from self.inputs
        for body in self.bodies:
            yield from body.free


class ScopeDraft(NamedTuple):
    """A graph's nodes in topological order, and the names it reads from the scopes around it."""

    proto: GraphProto | None
    nodes: Sequence[NodeDraft]
    free: tuple[str, ...]

    def reader_of(self, name: str) -> str:
        """The node, in this scope or a body, that reads ``name`` from outside."""
        for node in self.nodes:
            if name in node.inputs:
                return node.label
            for body in node.bodies:
                if name in body.free:
                    return body.reader_of(name)
        return "a graph output"


@dataclass(slots=True)
class Notes:
    """What loading puts up with: each kind once, with a count and the first example."""

    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, kind: str, example: str) -> None:
        """Counts one more case of ``kind``."""
        self.counts[kind] += 1
        self.examples.setdefault(kind, example)

    def lines(self) -> list[str]:
        """One warning for each kind."""
        return [
            f"{kind}: {self.examples[kind]}" + (f" and {count - 1} more" if count > 1 else "")
            for kind, count in self.counts.items()
        ]


def draft_graph(proto: GraphProto, outer: tuple[frozenset[str], ...], notes: Notes) -> ScopeDraft:
    """The draft of a main graph (no ``outer``) or of a body.

    Args:
        outer: names defined by each enclosing scope.

    Raises:
        InvalidModel: a name defined twice, a cycle, or a read that could mean two tensors.
    """
    given = {info.name: f"graph input '{info.name}'" for info in proto.input}
    if len(given) != len(proto.input):
        twice = next(n for n, count in Counter(i.name for i in proto.input).items() if count > 1)
        raise InvalidModel(f"duplicate producer: graph '{proto.name}' has two inputs '{twice}'")
    if "" in given:
        raise InvalidModel(f"an input of graph '{proto.name}' has no name")
    for tensor in proto.initializer:
        given.setdefault(tensor.name, f"initializer '{tensor.name}'")
    for sparse in proto.sparse_initializer:
        given.setdefault(sparse.values.name, f"sparse initializer '{sparse.values.name}'")
    results = [info.name for info in proto.output]
    return draft_scope(proto.node, given, results, f"graph '{proto.name}'", outer, notes)._replace(
        proto=proto
    )


def draft_scope(
    protos: Iterable[NodeProto],
    given: dict[str, str],
    results: Iterable[str],
    where: str,
    outer: tuple[frozenset[str], ...],
    notes: Notes,
) -> ScopeDraft:
    """The draft of any scope from its nodes.

    Args:
        given: names that inputs and initializers define, with what messages call each.
        results: names of the graph outputs.
    """
    touched = [(proto, tuple(proto.input), tuple(proto.output)) for proto in protos]
    producers = _producers(touched, given, where)
    defined = frozenset(producers).union(given)
    if not all(isinstance(name, str) for name in defined):
        raise InvalidModel(f"a tensor name in {where} is not valid UTF-8")
    for scope in outer:
        for name in sorted(defined & scope):
            notes.add(
                "a body defines a name that exists around it (the body's own is used in it)", f"'{name}'"
            )
    scopes = (*outer, defined)
    nodes = [
        NodeDraft(proto, inputs, outputs, _draft_bodies(proto, scopes, notes) if proto.attribute else ())
        for proto, inputs, outputs in touched
    ]
    nodes = _ordered(nodes, producers, where, outer, notes)
    free: dict[str, None] = {}
    for node in nodes:
        for name in node.reads() if node.bodies else node.inputs:
            if name and name not in defined:
                free[name] = None
    free.update((name, None) for name in results if name and name not in defined)
    return ScopeDraft(None, nodes, tuple(free))


def _draft_bodies(
    proto: NodeProto, scopes: tuple[frozenset[str], ...], notes: Notes
) -> tuple[ScopeDraft, ...]:
    return tuple(draft_graph(body, scopes, notes) for a in proto.attribute for body in bodies_of(a))


_Touched = tuple[NodeProto, tuple[str, ...], tuple[str, ...]]


def _producers(touched: Sequence[_Touched], given: dict[str, str], where: str) -> dict[str, int]:
    """Which node makes each name."""
    producers: dict[str, int] = {}
    for index, (_, _, outputs) in enumerate(touched):
        for name in outputs:
            if not name:
                continue
            if name in given or name in producers:
                first = given[name] if name in given else NodeDraft(*touched[producers[name]], ()).label
                second = NodeDraft(*touched[index], ()).label
                raise InvalidModel(f"duplicate producer of tensor '{name}' in {where}: {first} and {second}")
            producers[name] = index
    return producers


def _ordered(
    nodes: list[NodeDraft],
    producers: dict[str, int],
    where: str,
    outer: tuple[frozenset[str], ...],
    notes: Notes,
) -> list[NodeDraft]:
    """The nodes, producers first, otherwise as they stand in the file."""
    early = _early_read(nodes, producers)
    if early is None:
        return nodes
    reader, name = early
    if any(name in scope for scope in outer):
        raise InvalidModel(
            f"{reader.label} in {where} reads '{name}' before it is made there, "
            f"and a scope around it has a '{name}' too: rename one of them"
        )
    notes.add("nodes are not in topological order (sorted)", f"{reader.label} in {where}")
    return [nodes[i] for i in _kahn(nodes, producers, where)]


def _early_read(nodes: list[NodeDraft], producers: dict[str, int]) -> tuple[NodeDraft, str] | None:
    """The first node that reads a name before its producer stands, and that name."""
    for index, node in enumerate(nodes):
        for name in node.reads() if node.bodies else node.inputs:
            if producers.get(name, -1) >= index:
                return node, name
    return None


def _kahn(nodes: list[NodeDraft], producers: dict[str, int], where: str) -> list[int]:
    before = [{producers[name] for name in node.reads() if name in producers} for node in nodes]
    waiting = [len(sources) for sources in before]
    users: list[list[int]] = [[] for _ in nodes]
    for index, sources in enumerate(before):
        for source in sources:
            users[source].append(index)
    ready = [index for index, count in enumerate(waiting) if not count]
    heapify(ready)
    order: list[int] = []
    while ready:
        index = heappop(ready)
        order.append(index)
        for user in users[index]:
            waiting[user] -= 1
            if not waiting[user]:
                heappush(ready, user)
    if len(order) < len(nodes):
        raise InvalidModel(_describe_cycle(nodes, before, set(range(len(nodes))) - set(order), where))
    return order


def _describe_cycle(nodes: list[NodeDraft], before: list[set[int]], left: set[int], where: str) -> str:
    """Every node left waits for one that is left: walking back must come round."""
    path = [min(left)]
    while path[-1] not in path[:-1]:
        path.append(min(before[path[-1]] & left))
    cycle = [nodes[i].label for i in reversed(path[path.index(path[-1]) :])]
    shown = " => ".join(cycle[:6]) + (" => ..." if len(cycle) > 6 else "")
    return f"cycle of {len(cycle) - 1} nodes in {where}: {shown}"
