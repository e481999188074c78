"""Moves Transposes, or does away with them, by choosing the order of axes for a whole region at once.

A region is what is connected to a Transpose through operators that do not care about the order of
axes. Its values come in two logical orders, one on each side of the Transposes with a permutation
``p`` or its inverse: side 0 and side 1. Physically each value may be kept in either order, and a
Transpose is nothing but the claim that two values are the same data in the two orders. So the
question is in which order each operator runs; values that pass from one order to the other cost a
real Transpose, once each. Two orders and a cost per value is a minimum cut.
"""

from __future__ import annotations

from math import prod

from optimizer.analysis import Facts
from optimizer.ir import Graph, Node, Use, Value
from optimizer.rewrite import Context, Exactness, ScopePass
from passes.permutable import SUMMING, drops_alike, permutable
from passes.region import Groups, Region

NAME = "layout"
NOMINAL = 64
"""Size taken for a dimension that is not a number."""


class _Layout:
    """One run over one graph."""

    def __init__(self, ctx: Context, path: tuple[str, ...], graph: Graph) -> None:
        self.ctx, self.path, self.graph = ctx, path, graph
        self.facts: Facts = ctx.facts(graph)

    def run(self) -> bool:
        """Improves region after region."""
        changed, seen = False, set[int]()
        for key in [node.id for node in self.graph.topological()]:
            if key in seen or key not in self.graph:
                continue
            node = self.graph.node(key)  # as it is now: an earlier region may have changed its inputs
            if not _is_transpose(node):
                continue
            if not self.ctx.allows(NAME, self.path, self.graph, node) or self.ctx.is_kept(node):
                continue
            region = self.region_of(node)
            seen |= region.transposes
            labels = self.best_labels(region)
            if labels is not None:
                tag = self.tag_of(region, labels)
                with self.ctx.application(NAME, self.graph, node, tag, self.path) as entry:
                    entry.pairs = Relabelling(self, region, labels).apply()
                changed |= self.ctx.accept(entry)
                self.facts = self.ctx.facts(self.graph)
        return changed

    def tag_of(self, region: Region, labels: dict[int, int]) -> Exactness:
        """Data movement is exact, but sums may be taken in another order."""
        sums = any(self.graph.node(key).op_type in SUMMING for key in labels)
        return Exactness.E2 if sums else Exactness.E0

    # ---------------------------------------------------------------- finding the region

    def region_of(self, seed: Node) -> Region:
        """Everything connected to ``seed``."""
        region = Region(tuple(seed.attr("perm")))
        assert seed.inputs[0] is not None
        queue: list[tuple[Value, int]] = [(seed.inputs[0], 0)]
        region.side[seed.inputs[0]] = 0
        while queue:
            value, side = queue.pop()
            nodes = [self.graph.node(value.node)]
            nodes += [self.graph.node(use.node) for use in self.graph.uses(value)]
            for node in nodes:
                for found in self._join(region, node, value, side):
                    if found not in region.side:
                        region.side[found] = self._side_of(region, node, value, side, found)
                        queue.append((found, region.side[found]))
        return region

    def _join(self, region: Region, node: Node, value: Value, side: int) -> tuple[Value, ...]:
        """Takes ``node`` into the region if it may be part of it; the values it adds."""
        if node.id in region.operators or node.id in region.transposes or not node.is_operator:
            return ()
        if self.ctx.is_kept(node):
            return ()
        if _is_transpose(node):
            source, result = node.inputs[0], node.value()
            assert source is not None
            goes_to = 1 - side if value == source else side
            fits = tuple(node.attr("perm")) == region.perm_to(goes_to)
            other = result if value == source else source
            if (
                not fits
                or region.side.get(other, 1 - side) != 1 - side
                or self.graph.tensor(source) is not None
            ):
                return ()
            region.transposes.add(node.id)
            return (other,)
        return self._join_operator(region, node, value, side)

    def _join_operator(self, region: Region, node: Node, value: Value, side: int) -> tuple[Value, ...]:
        rank = len(region.perm)
        if node.op_type in SUMMING and not self.ctx.settings.admits(Exactness.E2):
            return ()
        role = permutable(self.graph, self.facts, node, rank)
        if role is None or (role.by_rows and region.perm[-1] != rank - 1):
            return ()
        if not role.keeps_rank:
            if value == node.inputs[0] and drops_alike(
                self.graph, self.facts, node, rank, region.perm_to(1 - side)
            ):
                region.operators[node.id] = role
            return ()
        operands = [node.inputs[i] for i in role.data]
        values = tuple(
            v for v in (*operands, *(node.value(i) for i in range(len(node.outputs)))) if v is not None
        )
        if value not in values or any(region.side.get(v, side) != side for v in values):
            return ()
        if any(self.facts.rank(v) != rank for v in values):
            return ()
        region.operators[node.id] = role
        return values

    def _side_of(self, region: Region, node: Node, value: Value, side: int, found: Value) -> int:
        return 1 - side if node.id in region.transposes and found != value else side

    # ---------------------------------------------------------------- choosing

    def best_labels(self, region: Region) -> dict[int, int] | None:
        """The order each operator should run in; ``None`` where nothing is better than now."""
        groups = Groups(self.graph, region)
        home = {key: groups.home_of(key) for key in region.operators}
        by_node = self.ctx.settings.objective == "nodes"
        before = [groups.root[Value(key)] for key in sorted(region.transposes)]
        for weight in (self._count,) if by_node else (self._bytes, self._count):
            labels = groups.cut(home, weight)
            after = groups.conversions(labels)
            cheaper = sum(map(weight, after)) < sum(map(weight, before))
            if cheaper and len(after) <= len(before):
                return labels
        return None

    def _count(self, value: Value) -> int:
        return 1

    def _bytes(self, value: Value) -> int:
        fact = self.facts.of(value)
        sizes = [NOMINAL if dim.value is None else dim.value for dim in fact.shape or ()]
        return 1 + prod(sizes) * max(fact.dtype.bits if fact.dtype else 32, 8) // 8


class Relabelling:
    """Puts chosen orders into the graph: new operators where the order changed, Transposes between."""

    def __init__(self, run: _Layout, region: Region, labels: dict[int, int]) -> None:
        self.run, self.graph, self.region, self.labels = run, run.graph, region, labels
        self.groups = Groups(run.graph, region)
        self.available: dict[tuple[Value, int], Value] = {}

    def apply(self) -> list[tuple[Value, Value]]:
        """Does it; returns the pairs of values whose uses were redirected."""
        old = [node for node in self.graph.topological() if node.id in self.region.operators]
        for root in self.groups.roots():
            if self.labels.get(root.node, self.region.side[root]) == self.region.side[root]:
                self.available[root, self.region.side[root]] = root
        pairs: list[tuple[Value, Value]] = []
        for node in old:
            self._relabel(node, pairs)
        for root in self.groups.roots():
            for value, use in self.groups.readers[root]:
                role = self.region.operators.get(use.node)
                if role is None or use.slot not in role.data:
                    self._redirect(value, use, self._get(root, self.region.side[value]), pairs)
        for key in [*self.region.transposes, *(node.id for node in reversed(old))]:
            self.run.ctx.erase_dead(self.graph, key)
        return pairs

    def _relabel(self, node: Node, pairs: list[tuple[Value, Value]]) -> None:
        role, label, home = self.region.operators[node.id], self.labels[node.id], self.groups.home_of(node.id)
        node = self.graph.node(node.id)
        if not role.keeps_rank:
            root = self.groups.root[_given(node.inputs[0])]
            label = home if (root, home) in self.available else 1 - home
        if label == home:
            for slot in role.data:
                value = _given(node.inputs[slot])
                self._redirect(value, Use(node.id, slot), self._get(self.groups.root[value], home), pairs)
            return
        inputs = list(node.inputs)
        for slot in role.data:
            inputs[slot] = self._get(self.groups.root[_given(node.inputs[slot])], label)
        operands, attributes = role.rebuild(self.region.perm_to(label), inputs)
        new = self.graph.add(node.op_type, operands, attributes, len(node.outputs), name=node.name)
        for index in range(len(node.outputs)):
            if role.keeps_rank:
                self.available[node.value(index), label] = new.value(index)
            elif self.graph.has_uses(node.value(index)):
                self.graph.replace_uses(node.value(index), new.value(index))
                pairs.append((node.value(index), new.value(index)))

    def _get(self, root: Value, side: int) -> Value:
        """A group's data in the order ``side``; a Transpose is made, or found, where it has the other."""
        found = self.available.get((root, side))
        if found is None:
            source, perm = self.available[root, 1 - side], self.region.perm_to(side)
            for use in self.graph.uses(source):
                node = self.graph.node(use.node)
                if _is_transpose(node) and tuple(node.attr("perm")) == perm:
                    found = node.value()
                    break
            else:
                found = self.graph.add("Transpose", [source], {"perm": perm}).value()
            self.available[root, side] = found
        return found

    def _redirect(self, old: Value, use: Use, new: Value, pairs: list[tuple[Value, Value]]) -> None:
        if old == new:
            return
        facts = self.run.facts
        facts.tighten(new, facts.of(old))
        self.graph.replace_uses(old, new, [use])
        if (old, new) not in pairs:
            pairs.append((old, new))


def _is_transpose(node: Node) -> bool:
    return node.op_type == "Transpose" and not node.domain and bool(node.attr("perm"))


def _given(value: Value | None) -> Value:
    assert value is not None
    return value


def improve_layout(ctx: Context, path: tuple[str, ...], graph: Graph) -> bool:
    """Chooses the order of axes of every region of ``graph``."""
    return _Layout(ctx, path, graph).run()


LAYOUT = ScopePass(NAME, improve_layout)
