"""A region of the graph whose operators do not care about the order of axes."""

from __future__ import annotations

from collections import defaultdict

from optimizer.ir import Graph, Node, Use, Value
from optimizer.rewrite import Context, Match
from passes.axes import Axes, AxisNames, Perm
from passes.permutable import Permutable, exactness_of, permutable


class Region:
    """Operators and Transposes that hang together.

    Attributes:
        names: the axes of every value.
        operators: how each operator runs permuted, by node id.
        transposes: the Transposes inside and at the border.
    """

    def __init__(self, ctx: Context, graph: Graph, seed: Value) -> None:
        self._ctx, self._graph, self._facts = ctx, graph, ctx.facts(graph)
        self.names = AxisNames()
        self.operators: dict[int, Permutable] = {}
        self.transposes: set[int] = set()
        self._roles: dict[int, Permutable | None] = {}
        rank = self._facts.rank(seed)
        if rank is not None:
            self.names.begin(seed, rank)
            self._grow(seed)

    def axes(self, value: Value) -> Axes:
        """The names of the axes of a value of the region."""
        axes = self.names.of(value)
        assert axes is not None
        return axes

    def data_of(self, node: Node) -> Value:
        """The value whose permutation is that of the operator."""
        value = node.inputs[self.operators[node.id].data[0]]
        assert value is not None
        return value

    def surroundings(self) -> set[int]:
        """The vertices of the region, and those that make or read its values."""
        values = self.names.values()
        return {value.node for value in values} | {u for v in values for u in self._graph.users(v.node)}

    # ---------------------------------------------------------------- growing

    def _grow(self, seed: Value) -> None:
        """Everything connected to ``seed``."""
        queue = [seed]
        while queue:
            value = queue.pop()
            nodes = [self._graph.node(value.node)]
            nodes += [self._graph.node(use.node) for use in self._graph.uses(value)]
            for node in nodes:
                if node.id in self.operators or node.id in self.transposes:
                    continue
                if not node.is_operator or self._ctx.is_kept(node):
                    continue
                before = {v for v in (*node.inputs, *self._results(node)) if v and self.names.of(v)}
                joined = self._join_transpose(node, value) if is_transpose(node) else self._join(node, value)
                queue += [v for v in joined if v not in before]

    def _join_transpose(self, node: Node, value: Value) -> list[Value]:
        source, result, perm = node.inputs[0], node.value(), perm_of(node)
        axes = self.axes(value)
        if source is None or self._graph.tensor(source) is not None or len(axes) != len(perm):
            return []
        before = axes if value == source else tuple(axes[perm.index(i)] for i in range(len(perm)))
        if not self.names.agree({source: before, result: tuple(before[i] for i in perm)}):
            return []
        self.transposes.add(node.id)
        return [source, result]

    def _join(self, node: Node, value: Value) -> list[Value]:
        role = self._role_of(node)
        if role is None:
            return []
        data = [v for v in (node.inputs[i] for i in role.data) if v is not None]
        results = self._results(node)
        if value not in data and value not in results:
            return []
        source = result = self.axes(value)
        if role.parts is not None:
            given = value in results
            carried = self.names.carried(self.axes(value), role.parts, backwards=given)
            if carried is None:
                return []
            own = self.axes(value)  # with the parts that an axis may just have got
            source, result = (carried, own) if given else (own, carried)
        fits = all(self._facts.rank(v) == len(source) for v in data)
        fits &= all(self._facts.rank(v) == len(result) for v in results)
        if not fits or not self.names.agree(
            {**dict.fromkeys(data, source), **dict.fromkeys(results, result)}
        ):
            return []
        self.operators[node.id] = role
        return [*data, *results]

    def _role_of(self, node: Node) -> Permutable | None:
        if node.id not in self._roles:
            admitted = self._ctx.settings.admits(exactness_of(node.op_type))
            role = permutable(Match(self._ctx, self._graph, {}, (node,))) if admitted else None
            self._roles[node.id] = role
        return self._roles[node.id]

    def _results(self, node: Node) -> list[Value]:
        return [node.value(i) for i in range(len(node.outputs))]


class Groups:
    """Values that are the same data: a value, and what Transposes of the region make of it.

    Attributes:
        root: the first of the group that a value is in.
        readers: who reads a group, and as which of its values; the Transposes of the region do not count.
    """

    def __init__(self, graph: Graph, region: Region) -> None:
        self._graph, self._region = graph, region
        self.root: dict[Value, Value] = {value: self._first(value) for value in region.names.values()}
        self.readers: defaultdict[Value, list[tuple[Value, Use]]] = defaultdict(list)
        for value, root in sorted(self.root.items()):
            for use in graph.uses(value):
                if use.node not in region.transposes:
                    self.readers[root].append((value, use))

    def _first(self, value: Value) -> Value:
        while value.node in self._region.transposes:
            source = self._graph.node(value.node).inputs[0]
            assert source is not None
            value = source
        return value

    def roots(self) -> list[Value]:
        """One value of each group, in order."""
        return sorted(set(self.root.values()))

    def reader_in_region(self, use: Use) -> int | None:
        """The operator of the region that reads data here; ``None`` for any other reader."""
        role = self._region.operators.get(use.node)
        return use.node if role is not None and use.slot in role.data else None


def is_transpose(node: Node) -> bool:
    """Whether it is a Transpose that says how it permutes."""
    return node.op_type == "Transpose" and not node.domain and bool(node.attr("perm"))


def perm_of(transpose: Node) -> Perm:
    """The permutation of such a Transpose."""
    return tuple(transpose.attr("perm"))
