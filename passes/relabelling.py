"""Puts a choice of orders into the graph: new operators where the order changed, Transposes between."""

from __future__ import annotations

from optimizer.ir import Graph, Node, Use, Value
from optimizer.rewrite import Context
from passes.axes import Axes
from passes.orders import Labels, Orders
from passes.region import Groups, Region, is_transpose, perm_of


class Relabelling:
    """One region that is written anew."""

    def __init__(self, ctx: Context, graph: Graph, region: Region, orders: Orders, labels: Labels) -> None:
        self.ctx, self.graph, self.region, self.orders, self.labels = ctx, graph, region, orders, labels
        self.groups = Groups(graph, region)
        self.available: dict[Value, dict[Axes, Value]] = {}

    def apply(self) -> list[tuple[Value, Value]]:
        """Does it; returns the pairs of values whose uses were redirected."""
        old = [node for node in self.graph.topological() if node.id in self.region.operators]
        moved = {node.id for node in old if self._is_moved(node.id)}
        for root in self.groups.roots():
            self.available[root] = {} if root.node in moved else {self.region.axes(root): root}
        pairs: list[tuple[Value, Value]] = []
        for node in old:
            self._run(node, node.id in moved, pairs)
        for root in self.groups.roots():
            for value, use in self.groups.readers[root]:
                if self.groups.reader_in_region(use) is None:
                    self._redirect(value, use, self._get(root, self.region.axes(value)), pairs)
        for key in [*self.region.transposes, *(node.id for node in reversed(old))]:
            self.ctx.erase_dead(self.graph, key)
        return pairs

    def _is_moved(self, key: int) -> bool:
        return key in self.labels and self.labels[key] != self.orders.home[key]

    def _run(self, node: Node, moved: bool, pairs: list[tuple[Value, Value]]) -> None:
        """Gives an operator its data as it wants them now; one that runs in another order is made anew."""
        node = self.graph.node(node.id)
        role = self.region.operators[node.id]
        inputs, results = list(node.inputs), [node.value(i) for i in range(len(node.outputs))]
        for slot in role.data:
            value = _given(node.inputs[slot])
            axes = self.region.axes(value)
            wanted = self.orders.in_order(axes, self.labels[node.id]) if moved else axes
            inputs[slot] = self._get(self.groups.root[value], wanted)
            if not moved:
                self._redirect(value, Use(node.id, slot), _given(inputs[slot]), pairs)
        if not moved:
            return
        perms = self.orders.perms(node.id, self.labels[node.id])
        assert perms is not None
        operands, attributes = role.rebuild(*perms, inputs)
        kind = role.becomes or node.op_type
        new = self.graph.add(kind, operands, attributes, len(results), name=node.name)
        for index, result in enumerate(results):
            order = self.orders.in_order(self.region.axes(result), self.labels[node.id])
            self.available[result][order] = new.value(index)

    def _get(self, root: Value, order: Axes) -> Value:
        """A group's data in an order; a Transpose is made, or found, where there is another only."""
        known = self.available[root]
        if order not in known:
            own, source = next(iter(known.items()))
            perm = tuple(own.index(axis) for axis in order)
            for use in self.graph.uses(source):
                node = self.graph.node(use.node)
                if is_transpose(node) and perm_of(node) == perm:
                    known[order] = node.value()
                    break
            else:
                known[order] = self.graph.add("Transpose", [source], {"perm": perm}).value()
        return known[order]

    def _redirect(self, old: Value, use: Use, new: Value, pairs: list[tuple[Value, Value]]) -> None:
        if old == new:
            return
        facts = self.ctx.facts(self.graph)
        facts.tighten(new, facts.of(old))
        self.graph.replace_uses(old, new, [use])
        if (old, new) not in pairs:
            pairs.append((old, new))


def _given(value: Value | None) -> Value:
    assert value is not None
    return value
