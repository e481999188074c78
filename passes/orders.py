"""Which operator of a region runs in which order of axes: expansion moves, each a minimum cut.

Every operator runs in one of a few orders; a group of values that is needed in another order than it is
made in costs a Transpose for each such order, however many read it. A move decides for all operators at
once whether to stay as they are or to take one certain order, which is a minimum cut; where there are two
orders in all, one move finds the optimum.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import networkx as nx
from networkx.algorithms.flow import boykov_kolmogorov

from optimizer.ir import Graph, Value
from passes.axes import Axes, Order, Perm, perm_to
from passes.region import Groups, Region

MOST_ORDERS = 6
"""Orders that are considered for one region."""
MOST_ROUNDS = 3
"""How often each order is tried."""

Labels = dict[int, int]
"""The order that each operator runs in, as its place among the orders."""


@dataclass(frozen=True, slots=True)
class _Group:
    """One piece of data: who makes it and who reads it, each an operator or, for others, an order.

    Attributes:
        ordered: its axes as they lie in each of the orders considered.
    """

    root: Value
    ordered: tuple[Axes, ...]
    maker: int | Axes
    readers: tuple[int | Axes, ...]


class Orders:
    """The choice for one region.

    Attributes:
        orders: those considered.
        home: the order that each operator runs in now; those that run in none of ``orders`` stay.
    """

    def __init__(self, graph: Graph, region: Region, orders: Sequence[Order]) -> None:
        self._graph, self._region, self.orders = graph, region, tuple(orders)
        self._known_perms: dict[Axes, list[Perm | None]] = {}
        groups = Groups(graph, region)
        self._perms = {key: self._perms_of(key) for key in region.operators}
        self.home: Labels = {}
        for key, perms in self._perms.items():
            found = [
                i for i, pair in enumerate(perms) if pair and all(p == tuple(range(len(p))) for p in pair)
            ]
            if found:
                self.home[key] = found[0]
        self._groups = [self._group(groups, root) for root in groups.roots()]

    def perms(self, key: int, label: int) -> tuple[Perm, Perm] | None:
        """How an operator's data and its result are permuted; ``None`` where it cannot run so."""
        return self._perms[key][label]

    def _perms_of(self, key: int) -> list[tuple[Perm, Perm] | None]:
        node, role = self._graph.node(key), self._region.operators[key]
        data = self._perms_to(self._region.axes(self._region.data_of(node)))
        result = self._perms_to(self._region.axes(node.value()))
        return [
            None if p is None or q is None or not role.admits(p, q) else (p, q)
            for p, q in zip(data, result, strict=True)
        ]

    def _perms_to(self, axes: Axes) -> list[Perm | None]:
        """What brings the axes into each order."""
        found = self._known_perms.get(axes)
        if found is None:
            found = self._known_perms[axes] = [perm_to(axes, order) for order in self.orders]
        return found

    def _group(self, groups: Groups, root: Value) -> _Group:
        def party(key: int | None, value: Value) -> int | Axes:
            return key if key in self.home else self._region.axes(value)

        made = party(root.node if root.node in self._region.operators else None, root)
        readers = [party(groups.reader_in_region(use), value) for value, use in groups.readers[root]]
        axes = self._region.axes(root)
        ordered = tuple([self.in_order(axes, label) for label in range(len(self.orders))])
        return _Group(root, ordered, made, tuple(dict.fromkeys(readers)))

    def in_order(self, axes: Axes, label: int) -> Axes:
        """The axes as they lie in an order."""
        perm = self._perms_to(axes)[label]
        return axes if perm is None else tuple([axes[i] for i in perm])

    # ---------------------------------------------------------------- what a choice costs

    def conversions(self, labels: Labels) -> list[Value]:
        """The data that is needed in another order than it is made in, once for each other order."""
        found = []
        for group in self._groups:
            made = self._order(group, group.maker, labels)
            orders = {self._order(group, party, labels) for party in group.readers} - {made}
            found += [group.root] * len(orders)
        return found

    def _order(self, group: _Group, party: int | Axes, labels: Labels) -> Axes:
        return group.ordered[labels[party]] if isinstance(party, int) else party

    # ---------------------------------------------------------------- choosing

    def best(self, weight: Callable[[Value], int], unwanted: Callable[[int, int], int]) -> Labels:
        """The labels of least weight of conversions, with what ``unwanted`` adds for operators and labels."""
        scale = len(self.home) + 1

        def own(key: int, label: int) -> int:
            return unwanted(key, label) * scale + (label != self.home[key])

        def total(labels: Labels) -> int:
            moved = sum(weight(root) for root in self.conversions(labels)) * scale
            return moved + sum(own(key, label) for key, label in labels.items())

        labels = {key: 0 if self._perms[key][0] else home for key, home in self.home.items()}
        best, least = labels, total(labels)
        idle = 0
        for label in self._moves():
            labels = self._expanded(best, label, lambda root: weight(root) * scale, own)
            cost = total(labels)
            idle = 0 if cost < least else idle + 1
            if cost < least:
                best, least = labels, cost
            elif idle >= len(self.orders):
                break
        return best

    def _moves(self) -> Iterator[int]:
        """The first order is what all begin with; with two of them the second decides it all."""
        yield from range(1, len(self.orders))
        if len(self.orders) > 2:
            for _ in range(MOST_ROUNDS - 1):
                yield from range(len(self.orders))

    def _expanded(
        self, labels: Labels, label: int, weight: Callable[[Value], int], own: Callable[[int, int], int]
    ) -> Labels:
        """The best choice in which every operator keeps its label or takes this one."""
        movable = {key for key, now in labels.items() if now != label and self._perms[key][label]}
        if not movable:
            return labels
        net = _Net(movable)
        for key in net.movable:
            net.prefer(key, own(key, labels[key]), own(key, label))
        for group in self._groups:
            parties = group.maker, *group.readers
            if movable.isdisjoint(parties):
                continue  # it costs the same whatever moves
            orders = [self._order(group, party, labels) for party in parties]
            net.add(group, orders[0], orders[1:], group.ordered[label], weight(group.root))
        moved = net.moved()
        return {key: label if key in moved else now for key, now in labels.items()}


class _Net:
    """The network of one move: what is on the side of the source stays, the rest moves."""

    def __init__(self, movable: set[int]) -> None:
        self.movable = sorted(movable)
        self._is_movable = movable
        self._net = nx.DiGraph()
        self._net.add_nodes_from(("stay", "move"))

    def prefer(self, key: int, staying: int, moving: int) -> None:
        """What an operator costs by itself."""
        self._edge(("op", key), "move", staying)
        self._edge("stay", ("op", key), moving)

    def add(self, group: _Group, made: Axes, needed: Sequence[Axes], target: Axes, weight: int) -> None:
        """What a group costs: ``weight`` for each order it is needed in and not made in."""
        maker = self._place(group.maker)
        classes: defaultdict[Axes, list[object]] = defaultdict(list)
        for party, order in zip(group.readers, needed, strict=True):
            classes[order].append(self._place(party))
        for order, places in classes.items():
            if order != target:
                stays = self._any("stay", group.root, order, places)
                self._edge(stays, "move" if order != made else maker, weight)
        if made != target:
            places = [p for places in classes.values() for p in places if p != "stay"]
            places += ["move"] * (target in classes)
            self._edge(maker, self._any("move", group.root, target, places), weight)

    def _place(self, party: int | Axes) -> object:
        return ("op", party) if party in self._is_movable else "stay"

    def _any(self, side: str, root: Value, order: Axes, places: Sequence[object]) -> object:
        """A vertex that is on ``side`` where any of ``places`` is."""
        if side in places or len(places) == 1:
            return side if side in places else places[0]
        vertex = (side, root, order)
        for place in places:
            source, target = (place, vertex) if side == "stay" else (vertex, place)
            self._edge(source, target, None)
        return vertex

    def _edge(self, source: object, target: object, capacity: int | None) -> None:
        if source == target or capacity == 0:
            return
        known = self._net.get_edge_data(source, target)
        if known is None:
            self._net.add_edge(source, target, **({} if capacity is None else {"capacity": capacity}))
        elif capacity is not None and "capacity" in known:
            known["capacity"] += capacity

    def moved(self) -> set[int]:
        """The operators that move in the cheapest cut."""
        _, (stays, _) = nx.minimum_cut(self._net, "stay", "move", flow_func=boykov_kolmogorov)
        return {key for key in self.movable if ("op", key) not in stays}
