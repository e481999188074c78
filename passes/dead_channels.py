"""Channels that a convolution or matrix product makes for nobody: their weights go, and their work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from optimizer.ir import Graph, Node, Value
from optimizer.rewrite import Context, Exactness, Match, ScopePass
from passes.channel_picks import Pick, picks_of
from passes.channel_steps import is_step, keeps_zero, put_over
from passes.known import readers_of

NAME = "drop-dead-channels"


@dataclass(slots=True)
class _Cone:
    """What is computed of a product, channel by channel, down to those who take channels.

    Attributes:
        product: the Conv, Gemm or MatMul with constant weights.
        count: how many channels it makes.
        axis: where they lie.
        steps: operators that treat each channel alone.
        picks: who takes some of the channels.
        products: products with constant weights that take all channels: (reader, value that it reads).
    """

    product: Node
    count: int
    axis: int
    steps: list[Node] = field(default_factory=list)
    picks: list[Pick] = field(default_factory=list)
    products: list[tuple[Node, Value]] = field(default_factory=list)


def drop(ctx: Context, path: tuple[str, ...], graph: Graph) -> bool:
    """Slice(Relu(Conv(x, w, b)), channels) -> Relu(Conv(x, w', b')), for all who read the channels.

    Channels are dead where nobody takes them, and where they are 0 and only products take them. What
    takes them in another order gets them in that order. O(nodes).
    """
    if not ctx.settings.admits(Exactness.E2):
        return False
    changed = False
    for key in [n.id for n in graph.topological() if n.op_type in _WEIGHTS and not n.domain]:
        if key not in graph or not ctx.allows(NAME, path, graph, graph.node(key)):
            continue
        m = Match(ctx, graph, {}, (graph.node(key),))
        cone = _cone_of(m, graph.node(key))
        kept = None if cone is None else _kept(m, cone)
        if cone is None or kept is None:
            continue
        if not ctx.may_grow(_copied(graph, cone)):
            ctx.stats[NAME].refused["copying a shared constant would exceed the growth budget"] += 1
            continue
        with ctx.application(NAME, graph, cone.product, Exactness.E2, path) as entry:
            entry.pairs = _rebuild(m, cone, kept)
        ctx.stats[NAME].fired += 1
        changed |= ctx.accept(entry)
    return changed


# -------------------------------------------------------------------- finding

_WEIGHTS = {"Conv": 1, "Gemm": 1, "MatMul": 1}


def _outputs_of(m: Match, node: Node) -> tuple[int, int] | None:
    """(axis, count) of the channels that a product with constant operands makes."""
    w = m.tensor(node.input(1))
    rank = m.rank(node.value())
    bias = m.tensor(node.input(2))
    if w is None or rank is None or any(a.reference for a in node.attributes.values()) or m.ctx.is_kept(node):
        return None
    if node.input(2) is not None and bias is None:
        return None
    if node.op_type == "Conv":
        return (1, w.shape[0]) if node.attr("group", 1) == 1 and rank > 2 else None
    if len(w.shape) != 2 or rank < 2:
        return None
    if node.op_type == "Gemm":
        fits = bias is None or len(bias.shape) <= 1 or bias.shape[0] == 1
        return (1, w.shape[0 if node.attr("transB", 0) else 1]) if fits and m.opset() >= 7 else None
    return rank - 1, w.shape[1]


def _cone_of(m: Match, product: Node) -> _Cone | None:
    """``None`` where the channels are mixed, or read as a whole."""
    made = _outputs_of(m, product)
    if made is None:
        return None
    cone = _Cone(product, made[1], made[0])
    values = {product.value()}
    queue = [product.value()]
    for value in queue:
        for reader, slot in readers_of(m, value):
            if m.ctx.is_kept(reader) or not _admit(m, cone, reader, slot, value):
                return None
            if reader in cone.steps and reader.value() not in values:
                values.add(reader.value())
                queue.append(reader.value())
    inputs = [v for node in cone.steps for v in node.inputs if v is not None and m.tensor(v) is None]
    return cone if all(v in values for v in inputs) else None


def _admit(m: Match, cone: _Cone, reader: Node, slot: int, value: Value) -> bool:
    """Puts a reader of the channels where it belongs; ``False`` where it reads them in another way."""
    if not reader.is_operator:
        return False
    if reader in cone.steps or is_step(m, reader, cone.axis):
        if reader not in cone.steps:
            cone.steps.append(reader)
        return True
    if slot:
        return False
    if _takes_all(m, reader, cone):
        cone.products.append((reader, value))
        return True
    picks = picks_of(m, _end_of_shuffle(m, reader), cone.axis)
    cone.picks += picks
    return bool(picks) and all(pick.source == value and pick.taken for pick in picks)


def _end_of_shuffle(m: Match, node: Node) -> Node:
    """The last of three operators that may be a shuffle of channels, or the node itself."""
    for expected in ("Transpose", "Reshape"):
        use = m.graph.only_use(node.value()) if node.op_type in ("Reshape", "Transpose") else None
        if use is None or m.graph.node(use.node).op != expected:
            return node
        node = m.graph.node(use.node)
    return node


def _takes_all(m: Match, reader: Node, cone: _Cone) -> bool:
    made = _outputs_of(m, reader) if reader.op_type in _WEIGHTS and not reader.domain else None
    if made is None or (reader.op_type == "Conv") != (cone.product.op_type == "Conv"):
        return False
    return not reader.attr("transA", 0)


def _kept(m: Match, cone: _Cone) -> list[int] | None:
    """The channels that are left, in their new order; ``None`` where all stay as they are."""
    if not cone.picks and not cone.products:
        return None
    if len(cone.picks) == 1 and not cone.products:
        taken = list(cone.picks[0].taken)
        shorter = len(set(taken)) == len(taken) and (len(taken) < cone.count or taken != sorted(taken))
        return taken if shorter else None
    needed = {channel for pick in cone.picks if m.graph.has_uses(pick.result) for channel in pick.taken}
    if cone.products:
        zero = _zero_channels(m, cone)
        needed |= set(range(cone.count)) - zero
    return sorted(needed) if 0 < len(needed) < cone.count else None


def _zero_channels(m: Match, cone: _Cone) -> set[int]:
    """Channels that are 0 wherever they are read."""
    if not all(keeps_zero(m.graph, step) for step in cone.steps):
        return set()
    w, bias = m.array(cone.product.inputs[1]), m.array(cone.product.input(2))
    assert w is not None
    rows = (w if _along(cone.product, w) == 0 else w.swapaxes(0, 1)).reshape(cone.count, -1)
    zero = set(np.flatnonzero(rows[:, :1].any(axis=1) == 0).tolist())  # most are told apart by one number
    zero = {channel for channel in zero if not rows[channel].any()}
    if bias is not None:
        added = np.broadcast_to(bias.reshape(-1), (cone.count,))
        zero = {channel for channel in zero if added[channel] == 0}
    return zero if not zero or all(_is_finite(m, reader) for reader, _ in cone.products) else set()


def _is_finite(m: Match, reader: Node) -> bool:
    w = m.array(reader.inputs[1])
    return w is not None and bool(np.isfinite(w).all())


def _along(product: Node, w: np.ndarray) -> int:
    """The axis of the weights that the channels made lie along."""
    return 0 if product.op_type == "Conv" or (product.op_type == "Gemm" and product.attr("transB", 0)) else 1


def _copied(graph: Graph, cone: _Cone) -> int:
    """Bytes of weights that others read as well."""
    weights = [cone.product.inputs[1], *(reader.inputs[1] for reader, _ in cone.products)]
    tensors = [(graph.tensor(w), w) for w in weights if w is not None]
    return sum(t.nbytes for t, w in tensors if t is not None and graph.only_use(w) is None)


# -------------------------------------------------------------------- rebuilding


def _rebuild(m: Match, cone: _Cone, kept: Sequence[int]) -> list[tuple[Value, Value]]:
    """The same over the channels ``kept`` only; the pairs of values that took each other's places."""
    graph, product = m.graph, cone.product
    w, bias = m.array(product.inputs[1]), m.array(product.input(2))
    assert w is not None
    inputs = [product.inputs[0], graph.add_constant(np.take(w, kept, _along(product, w)))]
    if bias is not None:
        picked = np.take(bias, kept, -1) if bias.ndim and bias.shape[-1] > 1 else bias
        inputs.append(graph.add_constant(picked))
    made = {product.value(): graph.add(product.op_type, inputs, product.attributes).value()}
    order = {node.id: place for place, node in enumerate(graph.topological())}
    for step in sorted(cone.steps, key=lambda node: order[node.id]):
        operands = [v if v is None else made.get(v, v) for v in step.inputs]
        made[step.value()] = put_over(m, step, operands, kept, cone.axis).value()
    place = {channel: index for index, channel in enumerate(kept)}
    pairs = []
    for pick in cone.picks:
        if graph.has_uses(pick.result):
            result = _taken(m, pick, made[pick.source], [place[c] for c in pick.taken], len(kept), cone.axis)
            pairs.append((pick.result, result))
    pairs += [(reader.value(), _fed(m, reader, made[value], kept)) for reader, value in cone.products]
    for old, new in pairs:
        m.ctx.redirect(graph, old, new)
    for old, _ in pairs:
        m.ctx.erase_dead(graph, old.node)
    return pairs


def _fed(m: Match, reader: Node, value: Value, kept: Sequence[int]) -> Value:
    """A product of the channels that are left."""
    w = m.array(reader.inputs[1])
    assert w is not None
    weights = m.graph.add_constant(np.take(w, kept, 1 - _along(reader, w)))
    made = m.graph.add(reader.op_type, [value, weights, *reader.inputs[2:]], reader.attributes)
    return made.value()


def _taken(m: Match, pick: Pick, value: Value, places: list[int], count: int, axis: int) -> Value:
    """The channels at ``places`` of the ``count`` that ``value`` has."""
    if places == list(range(count)):
        return value
    index = m.graph.add_constant(np.array(places, np.int64))
    if places != list(range(places[0], places[-1] + 1)):
        return m.graph.add("Gather", [value, index], {"axis": axis}).value()
    bounds = {"starts": [places[0]], "ends": [places[-1] + 1], "axes": [axis]}
    if m.opset() < 10:
        return m.graph.add("Slice", [value], bounds).value()
    given = [m.graph.add_constant(np.array(bound, np.int64)) for bound in bounds.values()]
    return m.graph.add("Slice", [value, *given]).value()


DEAD_CHANNELS = ScopePass(NAME, drop)
