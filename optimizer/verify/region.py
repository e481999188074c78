"""The part of a graph that one application changed, before and after it.

Both versions read the same boundary: values that the application left as they were. Whatever computes
the old and the new value from there, alone, is evidence for or against the application.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from optimizer.analysis import Fact, Facts
from optimizer.ir import Graph, Node, Value
from optimizer.rewrite import Application
from optimizer.verify.sides import Cone, Edits, Side, build_side, cone_of, with_restored_bodies

MAX_NODES = 300
SEARCH = 64
"""Vertices looked at upstream of a boundary value to see whether it depends on another one."""

Pairs = tuple[tuple[Value, Value], ...]


class TooLarge(Exception):
    """The region has more nodes than a local check is meant for: the text says so."""


@dataclass(slots=True)
class Region:
    """What one application changed in one scope.

    Attributes:
        pairs: (old, new) values of the model's graph that must be equal.
        boundary: unchanged values that both sides compute from.
        added: vertices that the application made.
    """

    pairs: Pairs
    boundary: tuple[Value, ...]
    before: Side
    after: Side
    added: frozenset[int]

    @property
    def fresh(self) -> frozenset[Value]:
        """The constants that only the new side reads."""
        return frozenset(self.after.constants.keys() - self.before.constants.keys())

    @property
    def dropped(self) -> frozenset[Value]:
        """The constants that only the old side reads."""
        return frozenset(self.before.constants.keys() - self.after.constants.keys())


class Views:
    """One scope before and after an application.

    Args:
        bodies: the edits to bodies whose owner this scope has.
    """

    def __init__(self, graph: Graph, edits: Edits, bodies: Mapping[Graph, Edits]) -> None:
        self.graph = graph
        self.edits = edits
        self._bodies = bodies
        self._restored: dict[int, Node] = {}

    def before(self, key: int) -> Node | None:
        """A vertex as it was, bodies included; ``None`` where it did not exist."""
        if key not in self.edits:
            return self.after(key)
        node = self.edits[key][0]
        if node is None or not self._bodies or not node.bodies:
            return node
        if key not in self._restored:
            self._restored[key] = with_restored_bodies(node, self._bodies)
        return self._restored[key]

    def after(self, key: int) -> Node | None:
        """A vertex as it is; ``None`` where it is gone."""
        return self.graph.node(key) if key in self.graph else None

    def pairs(self, whole_users: bool = False) -> Pairs:
        """The (old, new) values that users were moved between.

        A user whose attributes, bodies or arity changed is compared by its own outputs; with
        ``whole_users`` so is one that had several operands changed.
        """
        found: dict[tuple[Value, Value], None] = {}
        for before, after in self.edits.values():
            if before is None or after is None:
                continue
            moved = _moved_operands(before, after)
            whole = moved is None or not self._acts_alike(before, after) or (whole_users and len(moved) > 1)
            chosen = self._own_outputs(before, after) if whole and after.is_operator else moved or ()
            found.update(dict.fromkeys(chosen))
        return tuple(found)

    def _acts_alike(self, before: Node, after: Node) -> bool:
        """Whether only the operands of a node changed, one for one."""
        return (
            len(before.inputs) == len(after.inputs)
            and len(before.captures) == len(after.captures)
            and before.attributes == after.attributes
            and not any(scope in self._bodies for _, b in before.bodies for _, scope in b.scopes())
        )

    def _own_outputs(self, before: Node, after: Node) -> list[tuple[Value, Value]]:
        count = min(len(before.outputs), len(after.outputs))
        values = [after.value(i) for i in range(count)]
        return [(value, value) for value in values if self.graph.has_uses(value)]


def _moved_operands(before: Node, after: Node) -> list[tuple[Value, Value]] | None:
    """The operands that differ; ``None`` where one was added or left out."""
    found = []
    for old, new in zip(before.operands, after.operands, strict=False):
        if old == new:
            continue
        if old is None or new is None:
            return None
        found.append((old, new))
    return list(dict.fromkeys(found))


# -------------------------------------------------------------------- from an application to views


def views_of(application: Application) -> list[Views]:
    """One pair of views per changed scope; a body changed along with its owner belongs to the owner."""
    edits = _edits_of(application)
    owned: set[Graph] = set()
    if len(edits) > 1:
        for scope, changes in edits.items():
            for node in (n for versions in changes.values() for n in versions if n is not None):
                inner = {graph for _, body in node.bodies for _, graph in body.scopes()}
                owned |= (inner & edits.keys()) - {scope}
    bodies = {graph: edits[graph] for graph in owned}
    return [Views(graph, changes, bodies) for graph, changes in edits.items() if graph not in owned]


def _edits_of(application: Application) -> dict[Graph, Edits]:
    """What was done to each scope, first state against present state."""
    first: dict[Graph, dict[int, Node | None]] = {}
    for graph, change in application.changes:
        node = change.before or change.after
        assert node is not None
        first.setdefault(graph, {}).setdefault(node.id, change.before)
    found: dict[Graph, Edits] = {}
    for graph, nodes in first.items():
        for key, before in nodes.items():
            after = graph.node(key) if key in graph else None
            if before is after or (before is not None and after is not None and _same(before, after)):
                continue
            found.setdefault(graph, {})[key] = (before, after)
    return found


def _same(before: Node, after: Node) -> bool:
    """Whether two versions of a vertex compute the same: names do not count."""
    return (
        before.operands == after.operands
        and len(before.inputs) == len(after.inputs)
        and before.attributes == after.attributes
        and before.op == after.op
        and before.overload == after.overload
        and not before.bodies
    )


# -------------------------------------------------------------------- from views to a region


def find_region(
    views: Views,
    pairs: Pairs,
    opsets: Mapping[str, int],
    facts: Facts,
    grow: int = 0,
    extra: frozenset[int] = frozenset(),
    most: int = MAX_NODES,
    enough: int = MAX_NODES,
) -> Region:
    """The smallest region whose boundary values do not depend on each other.

    Where that has many nodes, one whose values do will do at first: it is judged on more inputs than can
    occur.

    Args:
        opsets: those of the model, for bodies that have none of their own.
        facts: about the values of the scope.
        grow: take in so many further levels of producers above the boundary.
        extra: vertices to take in, in any case.
        most: how many nodes it may have.
        enough: with so many nodes, boundary values may depend on each other.

    Raises:
        TooLarge: it has more nodes than that.
    """
    olds, news = [old for old, _ in pairs], [new for _, new in pairs]
    inside = {old.node for old in olds} | extra
    while True:
        taken = views.edits.keys() | inside
        before = cone_of(views.before, olds, taken.__contains__)
        after = cone_of(views.after, news, taken.__contains__)
        if max(len(before.nodes), len(after.nodes)) > most:
            raise TooLarge(f"has more than {most} nodes")
        boundary = tuple(dict.fromkeys((*before.boundary, *after.boundary)))
        read = _read_for_contents((before, olds), (after, news))
        sources = {value.node for value in read if not is_told(facts.of(value))}
        if len(before.nodes) >= enough:
            break
        dependent = _dependent(views, sources) - inside
        if not dependent:
            break
        inside |= dependent
    above = {v.node for v in boundary if (made := views.after(v.node)) is not None and made.is_operator}
    if grow and above:
        return find_region(views, pairs, opsets, facts, grow - 1, frozenset(inside | above), most)
    versions = views.graph.opsets or opsets
    return Region(
        pairs,
        boundary,
        build_side(views.graph, before, boundary, olds, versions),
        build_side(views.graph, after, boundary, news, versions),
        frozenset(key for key, (old, _) in views.edits.items() if old is None),
    )


def _read_for_contents(*cones: tuple[Cone, list[Value]]) -> set[Value]:
    """The boundary values of which more than the shape is read: shapes agree by the facts."""
    found: set[Value] = set()
    for cone, targets in cones:
        found.update(value for value in targets if value in cone.boundary)
        for node in cone.nodes.values():
            if node.op_type not in ("Shape", "Size"):
                found.update(v for v in node.operands if v is not None and v in cone.boundary)
    return found


def is_told(fact: Fact) -> bool:
    """Whether the contents follow from the sizes, so that they agree with all other values."""
    return fact.value is not None and all(item is not None for item in fact.value.items)


def _dependent(views: Views, sources: set[int]) -> set[int]:
    """Those of the vertices that are computed from another one of them, not far above."""
    return {key for key in sources if _reaches(views, key, sources)} if len(sources) > 1 else set()


def _reaches(views: Views, key: int, sources: set[int]) -> bool:
    queue, seen = [key], {key}
    for current in queue:
        node = views.after(current)
        if node is None or not node.is_operator or len(seen) > SEARCH:
            continue
        for value in node.operands:
            if value is None or value.node in seen:
                continue
            if value.node in sources:
                return True
            seen.add(value.node)
            queue.append(value.node)
    return False
