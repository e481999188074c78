"""The journal: one entry per application of a rewrite, undone last in, first out.

Every prefix of the journal is a valid graph, so a fault is found by bisecting it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from types import TracebackType

from optimizer.ir import Change, Graph, Model, Node, Value
from optimizer.rewrite.exactness import Exactness


@dataclass(slots=True)
class Application:
    """One rewrite at one place.

    Attributes:
        rule: name of the rule or pass.
        scope: path of the graph it happened in.
        anchor: the tensor it is anchored at, by its name in the model where it has one.
        changes: what it did, in order.
        pairs: (old, new) values whose uses it redirected, as far as the rewriter knows them.
        facts: upstream properties it relied on.
        matched: the vertices that a pattern matched, root first; empty for a whole-graph pass.
        looked_around: whether it may rest on more of the graph than what it matched.
    """

    rule: str
    tag: Exactness
    scope: tuple[str, ...]
    anchor: str
    graph: Graph
    changes: list[tuple[Graph, Change]] = field(default_factory=list)
    pairs: list[tuple[Value, Value]] = field(default_factory=list)
    facts: tuple[tuple[Value, str], ...] = ()
    matched: tuple[int, ...] = ()
    looked_around: bool = True

    @property
    def key(self) -> tuple[str, tuple[str, ...], str]:
        """What excludes this application from a later run."""
        return self.rule, self.scope, self.anchor

    @property
    def new_constants(self) -> bool:
        """Whether it computed constants that were not there before."""
        return any(_is_constant(c.after) and c.before is None for _, c in self.changes)

    @property
    def node_delta(self) -> int:
        """Operator nodes added minus removed."""
        return sum(_count(c.after) - _count(c.before) for _, c in self.changes)


def _is_constant(node: Node | None) -> bool:
    return node is not None and not node.is_operator and node.op_type == "Constant"


def _count(node: Node | None) -> int:
    return int(node is not None and node.is_operator)


class Recording:
    """The time in which one application is open; see ``Journal.application``."""

    __slots__ = ("_entry", "_journal")

    def __init__(self, journal: Journal, entry: Application) -> None:
        self._journal = journal
        self._entry = entry

    def __enter__(self) -> Application:
        return self._journal.open(self._entry)

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        self._journal.close(self._entry, failed=kind is not None)


class Journal:
    """Listens to every graph of a model and sorts the changes into applications."""

    def __init__(self, model: Model) -> None:
        self.entries: list[Application] = []
        self.cursor = 0
        self.touched: defaultdict[Graph, list[int]] = defaultdict(list)
        self.constant_bytes = 0
        self._open: Application | None = None
        self._moving = False
        self._attached: set[Graph] = set()
        self._model = model
        for _, graph in model.graphs():
            self.attach(graph)
        for _, graph in model.graphs():
            self.constant_bytes += sum(_bytes(graph.node(value)) for value in graph.constants)

    @property
    def current_rule(self) -> str:
        """Name of the rewrite whose application is open."""
        return self._open.rule if self._open else ""

    def attach(self, graph: Graph) -> None:
        """Listens to ``graph`` and its bodies from now on."""
        for _, scope in graph.scopes():
            if scope not in self._attached:
                self._attached.add(scope)
                scope.subscribe(self._hear)

    def detach(self) -> None:
        """Stops listening everywhere."""
        for graph in self._attached:
            graph.unsubscribe(self._hear)
        self._attached.clear()

    def application(self, entry: Application) -> Recording:
        """Records what happens inside as ``entry``; an exception takes all of it back.

        An entry without changes is not kept. Where an application is open already, what happens
        becomes part of it.
        """
        return Recording(self, entry)

    def open(self, entry: Application) -> Application:
        """Begins ``entry``, or goes on with the one that is open."""
        if self._open is None:
            self.forget_undone()
            self._open = entry
        return self._open

    def close(self, entry: Application, failed: bool) -> None:
        """Ends ``entry`` if it is the one that is open; a failed one is taken back."""
        if self._open is not entry:
            return
        self._open = None
        if failed:
            self._revert(entry)
        elif entry.changes:
            self.entries.append(entry)
            self.cursor = len(self.entries)

    def retract(self, entry: Application) -> None:
        """Takes back the last entry and forgets it."""
        assert entry is self.entries[-1]
        assert self.cursor == len(self.entries)
        self._revert(entry)
        self.entries.pop()
        self.cursor -= 1

    def split(self, entry: Application, parts: list[Application]) -> None:
        """Replaces the last entry by several that together do the same."""
        assert entry is self.entries[-1]
        self.entries[-1:] = parts
        self.cursor = len(self.entries)

    def seek(self, cursor: int) -> None:
        """Puts the graph into the state after the first ``cursor`` applications."""
        while self.cursor > cursor:
            self.cursor -= 1
            self._revert(self.entries[self.cursor])
        while self.cursor < cursor:
            self._replay(self.entries[self.cursor])
            self.cursor += 1

    def forget_undone(self) -> None:
        """Drops the entries behind the cursor."""
        del self.entries[self.cursor :]

    def _revert(self, entry: Application) -> None:
        self._moving = True
        try:
            for graph, change in reversed(entry.changes):
                graph.revert(change)
        finally:
            self._moving = False

    def _replay(self, entry: Application) -> None:
        self._moving = True
        try:
            for graph, change in entry.changes:
                graph.revert(change.inverse)
        finally:
            self._moving = False

    def _hear(self, graph: Graph, change: Change) -> None:
        before, after = change
        node = after or before
        assert node is not None
        touched = self.touched[graph]
        touched.append(node.id)
        if not node.is_operator:
            self.constant_bytes += _bytes(after) - _bytes(before)
        if before is not None:
            touched += [v.node for v in before.operands if v is not None]
        if after is not None and after.attributes:
            for _, body in after.bodies:
                self.attach(body)
        if self._open is not None and not self._moving:
            self._open.changes.append((graph, change))


def _bytes(node: Node | None) -> int:
    if node is None or not _is_constant(node):
        return 0
    size: int = node.attributes["value"].value.nbytes
    return size
