"""A region of the graph in two orders of axes, and the choice between them as a minimum cut."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import networkx as nx

from optimizer.ir import Graph, Use, Value
from passes.permutable import Perm, Permutable, inverse


@dataclass(slots=True)
class Region:
    """Operators and Transposes that hang together.

    Attributes:
        perm: takes data from order 0 to order 1.
        side: the logical order of each value.
        operators: how each operator runs permuted, by node id.
        transposes: the Transposes between the sides.
    """

    perm: Perm
    side: dict[Value, int] = field(default_factory=dict)
    operators: dict[int, Permutable] = field(default_factory=dict)
    transposes: set[int] = field(default_factory=set)

    def perm_to(self, side: int) -> Perm:
        """The permutation that brings data from the other order into ``side``."""
        return self.perm if side else inverse(self.perm)


class Groups:
    """Values that are the same data: a value, and what Transposes of the region make of it."""

    def __init__(self, graph: Graph, region: Region) -> None:
        self.graph, self.region = graph, region
        self.root: dict[Value, Value] = {}
        for value in region.side:
            self._find(value)
        self.readers: defaultdict[Value, list[tuple[Value, Use]]] = defaultdict(list)
        for value, root in sorted(self.root.items()):
            for use in graph.uses(value):
                if use.node not in region.transposes:
                    self.readers[root].append((value, use))

    def _find(self, value: Value) -> Value:
        chain = [value]
        while chain[-1].node in self.region.transposes:
            source = self.graph.node(chain[-1].node).inputs[0]
            assert source is not None
            chain.append(source)
        for link in chain:
            self.root[link] = chain[-1]
        return chain[-1]

    def home_of(self, key: int) -> int:
        """The logical order of an operator's data."""
        node = self.graph.node(key)
        value = node.inputs[self.region.operators[key].data[0]]
        assert value is not None
        return self.region.side[value]

    def roots(self) -> list[Value]:
        """One value of each group, in order."""
        return sorted(set(self.root.values()))

    def _ends(self, root: Value) -> tuple[int | None, int, Iterator[tuple[int | None, int]]]:
        """Who makes a group and who reads it: (operator of the region or None, logical order)."""
        maker = root.node if root.node in self.region.operators else None

        def readers() -> Iterator[tuple[int | None, int]]:
            for value, use in self.readers[root]:
                role = self.region.operators.get(use.node)
                if role is not None and not role.keeps_rank:
                    continue  # it takes either order for nothing
                inside = role is not None and use.slot in role.data
                yield (use.node if inside else None), self.region.side[value]

        return maker, self.region.side[root], readers()

    def conversions(self, labels: dict[int, int]) -> list[Value]:
        """The groups that are needed in another order than they are made in."""
        found = []
        for root in self.roots():
            maker, side, readers = self._ends(root)
            made = side if maker is None else labels[maker]
            if any((home if key is None else labels[key]) != made for key, home in readers):
                found.append(root)
        return found

    def cut(self, home: dict[int, int], weight: Callable[[Value], int]) -> dict[int, int]:
        """The labels of least total weight; on a tie, those that leave more operators alone."""
        scale = len(home) + 1
        net = nx.DiGraph()
        ends = (("side", 0), ("side", 1))
        for key, side in home.items():
            if self.region.operators[key].keeps_rank:
                edge = (ends[0], ("op", key)) if side == 0 else (("op", key), ends[1])
                net.add_edge(*edge, capacity=1)
        for root in self.roots():
            maker, side, readers = self._ends(root)
            source: tuple[str, object] = ends[side] if maker is None else ("op", maker)
            low, high = ("low", root), ("high", root)
            cost = weight(root) * scale
            net.add_edge(source, low, capacity=cost)
            net.add_edge(high, source, capacity=cost)
            for reader, own in readers:
                read: tuple[str, object] = ends[own] if reader is None else ("op", reader)
                net.add_edge(low, read)
                net.add_edge(read, high)
        net.add_nodes_from(ends)
        _, (first, _) = nx.minimum_cut(net, *ends)
        return {
            key: side if not self.region.operators[key].keeps_rank else int(("op", key) not in first)
            for key, side in home.items()
        }
