"""Moves Transposes, or does away with them, by choosing the order of axes for a whole region at once.

A region is what is connected to a Transpose through operators that do not care about the order of
axes. A Transpose in it is nothing but the claim that two values are the same data in two orders, so the
question is in which order each operator runs; data that is needed in another order than it is made in
costs a real Transpose, once for all its readers. The choice is a minimum cut (``passes.orders``).

``arrange`` asks the same question for a layout that the user wants: the axes of images in the order that
convolutions have in ONNX (``nchw``), or with the channels last (``nhwc``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod

from optimizer.ir import Graph, Node, Value
from optimizer.rewrite import Context, Exactness, ScopePass
from passes.axes import Axes, Axis, Order
from passes.cost_table import PER_NODE, PER_UNIT
from passes.costs import batches_of, nominal
from passes.orders import MOST_ORDERS, Labels, Orders
from passes.permutable import exactness_of, op_types_in
from passes.region import Region, is_transpose
from passes.relabelling import Relabelling

NAME = "layout"
ARRANGE_NAME = "arrange"
MOST_ROUNDS = 3
"""How often what has just been improved is looked at again."""
IMAGES = op_types_in(
    """AveragePool BatchNormalization Conv ConvInteger ConvTranspose DeformConv DepthToSpace GlobalAveragePool
    GlobalLpPool GlobalMaxPool GridSample GroupNormalization InstanceNormalization LpPool LRN MaxPool
    QLinearConv SpaceToDepth"""
)
"""Operators whose first operand has its channels in axis 1."""


def improve_layout(ctx: Context, path: tuple[str, ...], graph: Graph) -> bool:
    """Transpose(Relu(Transpose(x))) -> Relu(x), and whatever else has less data transposed in a region."""
    log, start = ctx.journal.touched[graph], ctx.mark(LAYOUT, graph)
    touched = None if start is None else set(log[start:])
    changed = False
    for _ in range(MOST_ROUNDS):
        mark = len(log)
        if not _improve_regions(ctx, path, graph, touched):
            break
        changed, touched = True, set(log[mark:])
    return changed


def _improve_regions(ctx: Context, path: tuple[str, ...], graph: Graph, touched: set[int] | None) -> bool:
    """Improves every region once, or those that have to do with what was touched."""
    changed, seen = False, set[int]()
    for key in [node.id for node in graph.topological()]:
        if key in seen or key not in graph or not is_transpose(graph.node(key)):
            continue
        node = graph.node(key)  # as it is now: an earlier region may have changed its inputs
        if not ctx.allows(NAME, path, graph, node) or ctx.is_kept(node) or node.inputs[0] is None:
            continue
        region = Region(ctx, graph, node.inputs[0])
        seen |= region.transposes
        if touched is None or not touched.isdisjoint(region.surroundings()):
            changed |= _Choice(ctx, graph, region).improve(path, node)
    return changed


def arrange(ctx: Context, path: tuple[str, ...], graph: Graph) -> bool:
    """Relu(Transpose(x)) -> Transpose(Relu(x)), and the like: all that can runs in the wanted layout."""
    if not ctx.settings.layout:
        return False
    changed, seen = False, set[Value]()
    for key in [node.id for node in graph.topological() if _is_image(node)]:
        if key not in graph or not ctx.allows(ARRANGE_NAME, path, graph, graph.node(key)):
            continue
        node = graph.node(key)
        for value in (node.inputs[0], node.value()):
            if value is None or value in seen or ctx.facts(graph).rank(value) is None:
                continue
            region = Region(ctx, graph, value)
            seen |= set(region.names.values())
            changed |= _Choice(ctx, graph, region).arrange(path, node)
    return changed


def _is_image(node: Node) -> bool:
    return node.op_type in IMAGES and not node.domain


class _Choice:
    """The choice for one region."""

    def __init__(self, ctx: Context, graph: Graph, region: Region) -> None:
        self.ctx, self.graph, self.region, self.facts = ctx, graph, region, ctx.facts(graph)
        self._batches = batches_of(ctx)
        self._sizes: dict[Value, int] = {}

    def improve(self, path: tuple[str, ...], node: Node) -> bool:
        """Has less data transposed, or fewer Transposes where nodes are what counts."""
        orders = self._orders(())
        before = self._transposed()
        for weight in self._weights(before):
            labels = orders.best(weight, lambda key, label: 0)
            after = orders.conversions(labels)
            few = len(after) <= len(before) or self.ctx.settings.objective == "latency"
            if few and sum(map(weight, after)) < sum(map(weight, before)):
                return self._apply(NAME, path, node, orders, labels)
        return False

    def _weights(self, before: list[Value]) -> tuple[Callable[[Value], int], ...]:
        """What each Transpose weighs; a second weight counts where nothing is better by the first."""
        objective = self.ctx.settings.objective
        if objective == "nodes":
            whole = 1 + sum(map(self._bytes, before))
            return (lambda value: whole + self._bytes(value),)
        if objective == "latency":
            return (lambda value: round(PER_NODE + PER_UNIT["Transpose"] * self._elements(value)),)
        return self._bytes, lambda value: 1

    def arrange(self, path: tuple[str, ...], node: Node) -> bool:
        """Has more operators run in the wanted layout, or as many with less data transposed."""
        images = self._images()
        last = [(axes[0], *axes[2:], axes[1]) for axes in images]
        layout = last if self.ctx.settings.layout == "nhwc" else images
        wanted = {self.region.names.order_of(axes): None for axes in layout}
        others = {self.region.names.order_of(axes): None for axes in images if axes not in layout}
        orders = self._orders((*wanted, *others))
        before = self._transposed()

        def fits(key: int, label: int) -> bool:
            data = self.region.data_of(self.graph.node(key))
            axes, long = self.region.axes(data), self._long_axes(data)
            found = [[axis for axis in orders.in_order(axes, i) if axis in long] for i in (label, *goals)]
            return len(axes) < 3 or found[0] in found[1:]

        goals = [i for i, order in enumerate(orders.orders) if order in wanted]
        most = 1 + sum(self._bytes(v) for v in self.region.names.values()) * (len(orders.orders) + 1)
        labels = orders.best(self._bytes, lambda key, label: 0 if fits(key, label) else most)

        def cost(labels: Labels, moved: Iterable[Value]) -> tuple[int, int]:
            return sum(not fits(*own) for own in labels.items()), sum(map(self._bytes, moved))

        if cost(labels, orders.conversions(labels)) >= cost(orders.home, before):
            return False
        return self._apply(ARRANGE_NAME, path, node, orders, labels)

    def _long_axes(self, value: Value) -> set[Axis]:
        """The axes that may be longer than 1: the others lie as well in one place as in another."""
        axes = self.region.axes(value)
        shape = self.facts.shape(value) or (None,) * len(axes)
        return {axis for axis, dim in zip(axes, shape, strict=True) if dim is None or dim.value != 1}

    def _transposed(self) -> list[Value]:
        """What the Transposes of the region move now."""
        return [Value(key) for key in sorted(self.region.transposes)]

    def _images(self) -> list[Axes]:
        """The axes of images, known by the operators that make or read them."""
        found: dict[Axes, None] = {}
        for value in self.region.names.values():
            makers = [self.graph.node(value.node)] if not value.output else []
            readers = [self.graph.node(use.node) for use in self.graph.uses(value) if use.slot == 0]
            axes = self.region.axes(value)
            if len(axes) >= 3 and any(map(_is_image, (*makers, *readers))):
                found[axes] = None
        return list(found)

    def _orders(self, first: tuple[Order, ...]) -> Orders:
        """Orders to consider: these first, then those on both sides of Transposes, most bytes first."""
        weights: dict[Axes, int] = {}
        moved = [Value(key) for key in sorted(self.region.transposes)]
        for value in moved + [v for key in moved if (v := self.graph.node(key.node).inputs[0])]:
            axes = self.region.axes(value)
            weights[axes] = weights.get(axes, 0) + self._bytes(value)
        chosen = list(first)
        for axes in sorted(weights, key=lambda axes: (-weights[axes], axes)):
            place = [{name: i for i, name in enumerate(order)} for order in chosen]
            names = [name for axis in axes for name in axis]
            if not any(names == sorted(names, key=at.__getitem__) for at in place):
                chosen.append(self.region.names.order_of(axes))
        return Orders(self.graph, self.region, chosen[:MOST_ORDERS])

    def _bytes(self, value: Value) -> int:
        dtype = self.facts.of(value).dtype
        return 1 + self._elements(value) * max(dtype.bits if dtype else 32, 8) // 8

    def _elements(self, value: Value) -> int:
        if value not in self._sizes:
            shape = self.facts.shape(value) or ()
            self._sizes[value] = prod(nominal(dim, self._batches) for dim in shape)
        return self._sizes[value]

    def _apply(self, rule: str, path: tuple[str, ...], node: Node, orders: Orders, labels: Labels) -> bool:
        """Does it; data movement is exact, but elements may be taken in another order."""
        tag = max((exactness_of(self.graph.node(key).op_type) for key in labels), default=Exactness.E0)
        with self.ctx.application(rule, self.graph, node, tag, path) as entry:
            entry.pairs = Relabelling(self.ctx, self.graph, self.region, orders, labels).apply()
        return self.ctx.accept(entry)


LAYOUT = ScopePass(NAME, improve_layout)
ARRANGE = ScopePass(ARRANGE_NAME, arrange)
