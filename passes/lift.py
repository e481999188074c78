"""What a body does that can be done outside of it: once instead of in each branch, or in each iteration."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace

from optimizer.analysis import Dim, same_shape
from optimizer.ir import DType, Graph, Node, Use, Value, ValueInfo
from optimizer.rewrite import Context, ScopePass
from passes.cse import attribute_key, key_of
from passes.permutable import UNARY
from passes.results import result_of
from passes.splice import free_info, names_in

RULE = "lift-out-of-body"
Numbers = dict[Value, Hashable]
"""What a value of a body is, told in terms of the scope around it."""
Lifted = tuple[int, list[tuple[Value, Value]]]
"""The vertex that owns the bodies now, and the values that others have taken the place of."""


def lift(ctx: Context, path: tuple[str, ...], graph: Graph) -> bool:
    """If(c, Relu(x), Relu(z)) -> Relu(If(c, x, z)); invariants of a Loop or Scan -> in front of it.

    O(nodes of the bodies).
    """
    changed = False
    for key in [node.id for node in graph.topological() if node.bodies and not node.domain]:
        owner: Node | None = graph.node(key)
        while owner is not None:
            owner = _step(ctx, path, graph, owner)
            changed |= owner is not None
    return changed


def _step(ctx: Context, path: tuple[str, ...], graph: Graph, node: Node) -> Node | None:
    """Lifts once; the owner of the bodies from then on, or ``None`` where nothing was lifted."""
    if node.op_type not in _LIFTS or ctx.is_kept(node) or not ctx.allows(RULE, path, graph, node):
        return None
    with ctx.application(RULE, graph, node, scope=path) as entry:
        owner, pairs = _LIFTS[node.op_type](ctx, graph, node)
        entry.pairs.extend(pairs)
    if not entry.changes or not ctx.accept(entry):
        return None
    ctx.stats[RULE].fired += 1
    return graph.node(owner)


# -------------------------------------------------------------------- how bodies compare


def _outer_key(body: Graph, node: Node, numbers: Numbers) -> Hashable | None:
    """Equal for nodes of any bodies that compute the same from outer values and constants."""
    inputs = tuple(None if v is None else numbers.get(v) for v in node.inputs)
    given = [number for v, number in zip(node.inputs, inputs, strict=True) if v is not None]
    if node.bodies or None in given or key_of(body, node) is None:
        return None
    if not any(isinstance(number, tuple) and number[0] != "constant" for number in given):
        return None  # folding sees to it
    attributes = tuple(sorted((name, str(attribute_key(a))) for name, a in node.attributes.items()))
    return node.op, node.domain, inputs, attributes, len(node.outputs)


def _numbers(body: Graph, bound: Sequence[Value]) -> Numbers:
    numbers: Numbers = {formal: ("outer", v) for formal, v in zip(body.captures, bound, strict=True)}
    for value in body.constants:
        tensor = body.tensor(value)
        assert tensor is not None
        numbers[value] = ("constant", tensor.digest)
    return numbers


def _independent(
    body: Graph, bound: Sequence[Value], keys: dict[Hashable, int]
) -> tuple[dict[int, Node], Numbers]:
    """The nodes that depend on nothing but outer values, in order, and what their outputs are.

    Args:
        keys: numbers nodes that compute the same alike; grows.
    """
    numbers = _numbers(body, bound)
    found: dict[int, Node] = {}
    for node in body.topological():
        text = _outer_key(body, node, numbers)
        if text is not None:
            key = keys.setdefault(text, len(keys))
            found.setdefault(key, node)
            numbers.update((node.value(i), ("node", key, i)) for i in range(len(node.outputs)))
    return found, numbers


class _Mover:
    """Copies nodes of bodies into the scope around them and has the bodies capture what they give."""

    def __init__(self, ctx: Context, graph: Graph, owner: Node) -> None:
        self._ctx = ctx
        self._graph = graph
        self._owner = owner
        self._taken = names_in(graph)
        self._made: dict[int, Node] = {}

    def copy(self, body: Graph, node: Node, key: int, numbers: Numbers) -> Node:
        """The copy of a node; those it depends on are copied already."""
        inputs = [None if v is None else self.outer(body, v, numbers[v]) for v in node.inputs]
        made = self._graph.add(
            node.op_type,
            inputs,
            node.attributes,
            [free_info(info, self._taken) for info in node.outputs],
            domain=node.domain,
            name=node.name,
            origin=node.origin,
        )
        self._made[key] = made
        return made

    def outer(self, body: Graph, value: Value, number: Hashable) -> Value:
        """What stands for a value of a body outside of it."""
        assert isinstance(number, tuple)
        if number[0] == "outer":
            outer: Value = number[1]
            return outer
        if number[0] == "node":
            return self._made[number[1]].value(number[2])
        tensor = body.tensor(value)
        assert tensor is not None
        return self._graph.add_constant(tensor)

    def replace(self, position: int, node: Node, copy: Node) -> None:
        """Has a body read the copy in the place of its own node."""
        body = self._owner.bodies[position][1]
        parts = [list(self._owner.captures_of(i)) for i in range(len(self._owner.bodies))]
        read = [index for index in range(len(node.outputs)) if body.has_uses(node.value(index))]
        formals = [body.add_capture("") for _ in read]
        parts[position] += [copy.value(index) for index in read]
        captures = [value for part in parts for value in part]
        self._owner = self._graph.set_inputs(self._owner, self._owner.inputs, captures)
        for index, formal in zip(read, formals, strict=True):
            self._ctx.redirect(body, node.value(index), formal)
        body.erase(node)


# -------------------------------------------------------------------- If


def _lift_of_if(ctx: Context, graph: Graph, node: Node) -> Lifted:
    """What both branches begin with, else what they end with. Either is done whichever way is gone."""
    keys: dict[Hashable, int] = {}
    first, second = (
        _independent(body, node.captures_of(position), keys) for position, (_, body) in enumerate(node.bodies)
    )
    common = [key for key in first[0] if key in second[0]]
    if common:
        mover = _Mover(ctx, graph, node)
        body = node.bodies[0][1]
        for key in common:
            copy = mover.copy(body, first[0][key], key, first[1])
            mover.replace(0, first[0][key], copy)
            mover.replace(1, second[0][key], copy)
        return node.id, []
    for index in range(len(node.outputs)):
        slot = _tail(node, index, first[1], second[1])
        if slot is not None:
            return _lift_tail(ctx, graph, node, index, slot, first[1])
    return node.id, []


def _tail(node: Node, index: int, first: Numbers, second: Numbers) -> int | None:
    """The one operand in which the operators differ that give result ``index`` in both branches."""
    (_, a), (_, b) = node.bodies
    p, q = a.producer(a.outputs[index]), b.producer(b.outputs[index])
    if not (p.is_operator and q.is_operator) or _form(a, p) is None or _form(a, p) != _form(b, q):
        return None
    if a.only_use(p.value()) is None or b.only_use(q.value()) is None:
        return None
    differing = [
        slot
        for slot, (v, w) in enumerate(zip(p.inputs, q.inputs, strict=True))
        if (v is None) != (w is None) or (v and w and (v not in first or first[v] != second.get(w)))
    ]
    if len(differing) != 1:
        return None
    v, w = p.inputs[differing[0]], q.inputs[differing[0]]
    made_inside = v and w and a.producer(v).is_operator and b.producer(w).is_operator
    return differing[0] if made_inside else None


def _form(body: Graph, node: Node) -> Hashable | None:
    """Equal for operators that differ in their operands only; ``None`` where they are not compared."""
    if node.bodies or len(node.outputs) != 1 or key_of(body, node) is None:
        return None
    attributes = tuple(sorted((name, str(attribute_key(a))) for name, a in node.attributes.items()))
    return node.op, node.domain, attributes, len(node.inputs)


def _lift_tail(ctx: Context, graph: Graph, node: Node, index: int, slot: int, numbers: Numbers) -> Lifted:
    """The If without its last operator for one result, and that operator behind it."""
    last = [body.producer(body.outputs[index]) for _, body in node.bodies]
    mover, body = _Mover(ctx, graph, node), node.bodies[0][1]
    operands = [
        None if v is None or place == slot else mover.outer(body, v, numbers[v])
        for place, v in enumerate(last[0].inputs)
    ]
    for (_, branch), tail in zip(node.bodies, last, strict=True):
        inner = tail.inputs[slot]
        assert inner is not None
        outputs, infos = list(branch.outputs), list(branch.sink.outputs)
        outputs[index], infos[index] = inner, replace(infos[index], type=None)
        branch.set_outputs(outputs, infos)
        branch.erase(tail)
    infos = [ValueInfo("") if i == index else info for i, info in enumerate(node.outputs)]
    made = node.outputs[index]
    old = graph.set_attrs(node, outputs=len(node.outputs))  # the new ones bear the names
    fresh = graph.add(
        "If", old.inputs, old.attributes, infos, captures=old.captures, name=old.name, origin=old.origin
    )
    operands[slot] = fresh.value(index)
    tail = graph.add(
        last[0].op_type, operands, last[0].attributes, [made], domain=last[0].domain, origin=last[0].origin
    )
    new = [tail.value() if i == index else fresh.value(i) for i in range(len(infos))]
    pairs = [(old.value(i), value) for i, value in enumerate(new)]
    for before, after in pairs:
        ctx.redirect(graph, before, after)
    graph.erase(old)
    return fresh.id, pairs


# -------------------------------------------------------------------- Loop, Scan


def _lift_of_loop(ctx: Context, graph: Graph, node: Node) -> Lifted:
    """What gives the same in every iteration, unless it could fail in one that never comes."""
    pairs = _unchanging(ctx, graph, node)
    if pairs is not None:
        return node.id, pairs
    body = node.bodies[0][1]
    found, numbers = _independent(body, node.captures_of(0), {})
    runs = _runs_at_least_once(ctx, graph, node)
    mover, moved = _Mover(ctx, graph, node), set[Hashable]()
    for key, inner in found.items():
        below = [numbers[v] for v in inner.inputs if v is not None]
        ready = all(n[0] != "node" or n[1] in moved for n in below if isinstance(n, tuple))
        if ready and (runs or cannot_fail(ctx, body, inner)):
            moved.add(key)
            mover.replace(0, inner, mover.copy(body, inner, key, numbers))
    return node.id, []


def _unchanging(ctx: Context, graph: Graph, node: Node) -> list[tuple[Value, Value]] | None:
    """Values that are carried but never change: the body and the users read what they start with.

    Returns:
        What users read instead; ``None`` where there are no such values.
    """
    body = node.bodies[0][1]
    before = 2 if node.op_type == "Loop" else 0  # of the body's inputs
    after = 1 if node.op_type == "Loop" else 0  # of its outputs
    carried = len(node.inputs) - (before or node.attr("num_scan_inputs", 0))
    if node.op_type == "Scan" and graph.opset() < 9:
        return None
    pairs, captures, inner = [], list(node.captures), []
    for index in range(carried):
        formal, initial = body.inputs[before + index], node.inputs[before + index]
        if result_of(body, after + index) != formal or initial is None:
            continue
        inside = _is_read_besides(body, formal, after + index)
        if inside:
            inner.append((formal, body.add_capture("")))
            captures.append(initial)
        if graph.has_uses(node.value(index)):
            pairs.append((node.value(index), initial))
            ctx.redirect(graph, node.value(index), initial)
    if len(captures) > len(node.captures):
        graph.set_inputs(node, node.inputs, captures)
    for formal, capture in inner:
        ctx.redirect(body, formal, capture)
    return pairs if pairs or len(captures) > len(node.captures) else None


def _is_read_besides(body: Graph, formal: Value, slot: int) -> bool:
    """Whether a formal input that result ``slot`` gives back is read for anything else."""
    given_back = body.outputs[slot]
    others = [use for use in body.uses(given_back) if use != Use(body.sink.id, slot)]
    if given_back != formal:
        others += [use for use in body.uses(formal) if use.node != given_back.node]
    return bool(others)


def _runs_at_least_once(ctx: Context, graph: Graph, node: Node) -> bool:
    facts = ctx.facts(graph)
    if node.op_type == "Scan":
        scanned = node.attr("num_scan_inputs", 0)
        value = node.inputs[len(node.inputs) - scanned]
        shape = None if value is None else facts.shape(value)
        axis = (node.attr("scan_input_axes") or (0,))[0]
        return shape is not None and len(shape) > axis >= 0 and shape[axis].bounds[0] >= 1
    limit, going = node.input(0), node.input(1)
    counts = None if limit is None else facts.value(limit)
    starts = None if going is None else facts.value(going)
    enough = limit is None or (
        counts is not None and all(isinstance(n, Dim) and n.bounds[0] >= 1 for n in counts.items)
    )
    return enough and (going is None or (starts is not None and starts.items == [True]))


_BINARY = frozenset({"Add", "Sub", "Mul", "Equal", "Less", "Greater", "And", "Or", "Max", "Min"})
_ALWAYS = (UNARY - {"CastLike", "Clip"}) | {"Shape", "Size", "Transpose", "Softmax"}


def cannot_fail(ctx: Context, graph: Graph, node: Node) -> bool:
    """Whether an operator runs whatever the sizes of its operands turn out to be."""
    facts = ctx.facts(graph)
    if node.domain:
        return False
    if node.op_type in _ALWAYS:
        return not any(facts.dtype(v) is DType.STRING for v in node.inputs if v is not None)
    if node.op_type not in _BINARY or len(node.inputs) != 2 or None in node.inputs:
        return False
    a, b = (facts.shape(v) if v is not None else None for v in node.inputs)
    if a is None or b is None:
        return False
    return same_shape(a, b) or all(dim.value == 1 for dim in a) or all(dim.value == 1 for dim in b)


_LIFTS: dict[str, Callable[[Context, Graph, Node], Lifted]] = {
    "If": _lift_of_if,
    "Loop": _lift_of_loop,
    "Scan": _lift_of_loop,
}
LIFT = ScopePass(RULE, lift, reads_bodies=True)
