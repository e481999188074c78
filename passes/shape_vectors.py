"""Integer vectors whose contents are known, made anew from the shapes of tensors in fewer nodes.

Exporters take a shape apart into numbers, compute with them, and join them again. What comes out is often
a part of the shape of some tensor, with constants before and behind it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from optimizer.analysis import Dim, Facts
from optimizer.ir import DType, Graph, Node, Value
from optimizer.rewrite import Context, ScopePass

RULE = "rebuild-shape-vector"
LONGEST = 8
"""Elements of a vector that is looked at."""
SEARCH = 4096
"""Nodes looked at to see whether a tensor is made in time."""
PLACES = 6
"""Axes, the earliest ones, that are remembered for each dimension."""


@dataclass(frozen=True, slots=True)
class Part:
    """Dimensions ``start`` to ``end`` of the shape of ``source``; constants where there is none."""

    source: Value | None
    start: int
    end: int


def rebuild(ctx: Context, path: tuple[str, ...], graph: Graph) -> bool:
    """Concat(Gather(Shape(x), 0), Gather(Shape(x), 1)) -> Shape<end=2>(x), users first. O(nodes)."""
    vectors = [node for node in graph.topological() if _contents(ctx.facts(graph), node) is not None]
    if not vectors:
        return False
    search = _Search(ctx, graph)
    changed = False
    for node in reversed(vectors):
        if node.id not in graph or ctx.is_kept(node) or not ctx.allows(RULE, path, graph, node):
            continue
        contents = _contents(search.facts, node)
        parts = None if contents is None else search.cheaper(node, contents)
        if contents is not None and parts is not None and _apply(ctx, path, graph, node, contents, parts):
            changed = True
            if search.moved:  # an edge goes back in the order that the search goes by
                search = _Search(ctx, graph)
    return changed


def _contents(facts: Facts, node: Node) -> list[Dim] | None:
    """The elements of a vector that a node makes, where all are known and not all are numbers."""
    if len(node.outputs) != 1 or node.op == "Constant" or node.bodies:
        return None
    fact = facts.of(node.value())
    if fact.value is None or fact.dtype is not DType.INT64 or len(fact.value.shape) != 1:
        return None
    items = [item for item in fact.value.dims() if item is not None]
    if len(items) != fact.value.array.size or not 0 < len(items) <= LONGEST:
        return None
    return None if all(item.is_const for item in items) else items


def _apply(
    ctx: Context,
    path: tuple[str, ...],
    graph: Graph,
    node: Node,
    contents: Sequence[Dim],
    parts: Sequence[Part],
) -> bool:
    with ctx.application(RULE, graph, node, scope=path) as entry:
        pieces = [_piece(graph, part, contents, offset) for offset, part in _placed(parts)]
        new = pieces[0] if len(pieces) == 1 else graph.add("Concat", pieces, {"axis": 0}).value()
        ctx.redirect(graph, node.value(), new)
        entry.pairs.append((node.value(), new))
        ctx.erase_dead(graph, node.id)
    accepted = ctx.accept(entry)
    ctx.stats[RULE].fired += accepted
    return accepted


def _placed(parts: Sequence[Part]) -> Iterator[tuple[int, Part]]:
    offset = 0
    for part in parts:
        yield offset, part
        offset += part.end - part.start


def _piece(graph: Graph, part: Part, contents: Sequence[Dim], offset: int) -> Value:
    if part.source is None:
        numbers = [dim.value for dim in contents[offset : offset + part.end - part.start]]
        return graph.add_constant(np.array(numbers, np.int64))
    found = _told(graph, part)
    if found is not None:
        return found
    if graph.opset() >= 15:
        return graph.add("Shape", [part.source], {"start": part.start, "end": part.end}).value()
    return graph.add("Shape", [part.source]).value()


def _told(graph: Graph, part: Part, but: frozenset[int] = frozenset()) -> Value | None:
    """What a Shape in the graph already tells of it."""
    assert part.source is not None
    for use in graph.uses(part.source):
        node = graph.node(use.node)
        if node.op == "Shape" and node.id not in but:
            plain = "start" not in node.attributes and "end" not in node.attributes
            told = (0, None) if plain else (node.attr("start", 0), node.attr("end"))
            if told in ((part.start, part.end), (0, None) if _is_whole(graph, part) else ()):
                return node.value()
    return None


def _is_whole(graph: Graph, part: Part) -> bool:
    return part.start == 0 and graph.opset() < 15


class _Search:
    """Which axes have which dimension, at the start of the pass.

    Attributes:
        moved: whether the parts found last come later in the order of the nodes than what will read them.
    """

    def __init__(self, ctx: Context, graph: Graph) -> None:
        self.facts = ctx.facts(graph)
        self._ctx = ctx
        self._graph = graph
        self._position: dict[int, int] = {}
        self._axes: dict[Dim, list[tuple[Value, int]]] = {}
        self._tellers = tellers = set[int]()
        self._below: dict[int, set[int] | None] = {}
        self.moved = False
        for value in (*graph.inputs, *graph.captures):
            self._note(value)
        for position, node in enumerate(graph.topological()):
            self._position[node.id] = position
            if self._only_tells_shapes(node, tellers):
                tellers.add(node.id)
                continue
            for index in range(len(node.outputs)):
                self._note(node.value(index))

    def _only_tells_shapes(self, node: Node, tellers: set[int]) -> bool:
        if node.op in ("Shape", "Size"):
            return True
        read = [v for v in node.operands if v is not None and self._graph.tensor(v) is None]
        return bool(read) and all(value.node in tellers for value in read)

    def _note(self, value: Value) -> None:
        for axis, dim in enumerate(self.facts.shape(value) or ()):
            places = self._axes.setdefault(dim, [])
            if not dim.is_const and len(places) < PLACES:
                places.append((value, axis))

    def cheaper(self, node: Node, contents: Sequence[Dim]) -> list[Part] | None:
        """Parts to join instead, where that takes fewer nodes than die with ``node``."""
        dying = self._dying(node)
        users = [self._position.get(key, len(self._position)) for key in self._graph.users(node.id)]
        before = min(users, default=0)
        best: list[tuple[int, list[Part]] | None] = [(0, [])]
        for end in range(1, len(contents) + 1):
            best.append(None)
            for start in range(end):
                head, part = best[start], self._part(contents[start:end], before, dying, node)
                if head is None or part is None:
                    continue
                cost = head[0] + self._cost(part, dying)
                found = best[end]
                if found is None or (cost, len(head[1]) + 1) < (found[0], len(found[1])):
                    best[end] = cost, [*head[1], part]
        total = best[-1]
        if total is None or total[0] + (len(total[1]) > 1) >= len(dying):
            return None
        sources = (part.source for part in total[1] if part.source is not None)
        self.moved = any(self._position.get(source.node, -1) >= before for source in sources)
        return total[1]

    def _cost(self, part: Part, dying: frozenset[int]) -> int:
        return int(part.source is not None and _told(self._graph, part, dying) is None)

    def _part(self, dims: Sequence[Dim], before: int, dying: frozenset[int], node: Node) -> Part | None:
        """Constants, or consecutive dimensions of one tensor that is there before the users are."""
        if all(dim.is_const for dim in dims):
            return Part(None, 0, len(dims))
        anchor = next(index for index, dim in enumerate(dims) if not dim.is_const)
        for value, axis in self._axes.get(dims[anchor], ()):
            start = axis - anchor
            shape = self.facts.shape(value) or ()
            if start < 0 or tuple(shape[start : start + len(dims)]) != tuple(dims):
                continue
            whole = start == 0 and len(dims) == len(shape)
            if (
                self._is_there(value, before, node)
                and value.node not in dying
                and (whole or self._graph.opset() >= 15)
            ):
                return Part(value, start, start + len(dims))
        return None

    def _is_there(self, value: Value, before: int, node: Node) -> bool:
        """Whether it is made in time, and for more than to tell its shape."""
        if value not in self._graph:
            return False
        if value.node not in self._position:
            return True  # an input
        needed = any(use.node not in self._tellers for use in self._graph.uses(value))
        return needed and (self._position[value.node] < before or not self._hangs_on(value, node))

    def _hangs_on(self, value: Value, node: Node) -> bool:
        """Whether a value is computed from ``node``; true as well where that takes long to find out."""
        if node.id not in self._below:
            found, queue = {node.id}, [node.id]
            for key in queue:
                fresh = [user for user in self._graph.users(key) if user not in found]
                found.update(fresh)
                queue.extend(fresh)
                if len(found) > SEARCH:
                    break
            self._below[node.id] = found if len(found) <= SEARCH else None
        below = self._below[node.id]
        return below is None or value.node in below

    def _dying(self, node: Node) -> frozenset[int]:
        """The nodes that nothing would read any more without ``node``."""
        dying = {node.id}
        pending = [node]
        while pending:
            for value in pending.pop().operands:
                if value is None or value.node in dying:
                    continue
                above = self._graph.node(value.node)
                if (
                    above.is_operator
                    and not self._ctx.is_kept(above)
                    and set(self._graph.users(above.id)) <= dying
                ):
                    dying.add(above.id)
                    pending.append(above)
        return frozenset(dying)


REBUILD = ScopePass("rebuild-shape-vectors", rebuild)
