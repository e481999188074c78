"""Common subexpressions: what is computed twice is computed once, constants are held once."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from optimizer.io.schemas import RANDOM, schema_of
from optimizer.ir import Attribute, AttributeKind, Graph, Node, SparseTensor, Tensor, Value
from optimizer.rewrite import Context, ScopePass

COMMUTATIVE = frozenset({"Add", "Mul", "And", "Or", "Xor", "Equal", "BitwiseAnd", "BitwiseOr", "BitwiseXor"})
"""Operators that give the same bits with their two inputs swapped. (Min and Max do not for -0.)"""


def share(ctx: Context, path: tuple[str, ...], graph: Graph) -> bool:
    """Relu(x) + Relu(x) -> z + z, of z = Relu(x): equal constants are merged, then equal nodes, in one scope.

    O(nodes), and the bytes of constants that could be equal.
    """
    changed = _share_constants(ctx, path, graph)
    alone: dict[Hashable, Node | None] = {}
    numbers: dict[Hashable, Node] = {}
    for key_in_order in [node.id for node in graph.topological()]:
        node = graph.node(key_in_order)
        if ctx.is_kept(node):
            continue
        # Most nodes are the only one of their operator that reads these inputs; attributes need no look then.
        form = node.op_type, node.domain, _in_any_order(node)
        if form not in alone:
            alone[form] = node
            continue
        earlier, alone[form] = alone[form], None
        if earlier is not None and (key := key_of(graph, earlier)) is not None:
            numbers[key] = earlier
        key = key_of(graph, node)
        if key is None:
            continue
        first = numbers.setdefault(key, node)
        if first is not node and ctx.allows("cse", path, graph, node):
            pairs = [(node.value(i), first.value(i)) for i in range(len(node.outputs))]
            changed |= _merge(ctx, path, graph, node, pairs)
    return changed


def _merge(
    ctx: Context, path: tuple[str, ...], graph: Graph, node: Node, pairs: list[tuple[Value, Value]]
) -> bool:
    with ctx.application("cse", graph, node, scope=path) as entry:
        for old, new in pairs:
            ctx.redirect(graph, old, new)
        entry.pairs.extend(pairs)
        graph.erase(node)
    ctx.stats["cse"].fired += 1
    return ctx.accept(entry)


# -------------------------------------------------------------------- nodes


def key_of(graph: Graph, node: Node) -> Hashable | None:
    """Equal for nodes that compute the same; ``None`` for one that must stay alone.

    Operators that the standard does not know, and functions, may have state or effects. An Identity
    goes by itself, or is there because outputs have names of their own.
    """
    if node.op == "Identity":
        return None
    if node.op == "If":
        bodies = (fingerprint(body, node.captures_of(i)) for i, (_, body) in enumerate(node.bodies))
        return "If", node.inputs, tuple(bodies), len(node.outputs)
    schema = schema_of(node.op_type, node.domain, graph.opset(node.domain))
    if schema is None or node.overload or (node.op_type in RANDOM and not node.domain):
        return None
    attributes = {name: (type(value).__name__, value) for name, value in schema.defaults.items()}
    for name, attribute in node.attributes.items():
        plain = attribute_key(attribute)
        if plain is None:
            return None
        attributes[name] = plain
    named = tuple(sorted(attributes.items()))
    return node.domain, node.op_type, _in_any_order(node), named, len(node.outputs)


def _in_any_order(node: Node) -> tuple[Value | None, ...]:
    """The inputs, sorted where their order does not matter."""
    if node.op_type not in COMMUTATIVE or node.domain:
        return node.inputs
    return tuple(sorted(node.inputs, key=lambda v: (-1, -1) if v is None else v))


def fingerprint(body: Graph, captures: tuple[Value, ...]) -> Hashable:
    """Equal for bodies that compute the same from the same outer values, node by node in order."""
    number: dict[Value, Hashable] = {
        formal: ("outer", v) for formal, v in zip(body.captures, captures, strict=True)
    }
    for value in body.constants:
        tensor = body.tensor(value)
        assert tensor is not None
        number[value] = ("constant", tensor.digest)
    lines: list[Hashable] = []
    for node in body.topological():
        if node.op == "Identity" and node.inputs[0] is not None:
            number[node.value()] = number.get(node.inputs[0], ("input", node.inputs[0]))
            continue
        if node.bodies or key_of(body, node) is None:
            lines.append(("unlike any other", id(body), node.id))
        attributes = tuple(sorted((name, str(attribute_key(a))) for name, a in node.attributes.items()))
        inputs = tuple(None if v is None else number.get(v, ("input", v)) for v in node.inputs)
        number.update((node.value(i), ("node", len(lines), i)) for i in range(len(node.outputs)))
        lines.append((node.op, inputs, attributes, len(node.outputs)))
    return tuple(lines), tuple(number.get(v, ("input", v)) for v in body.outputs)


def attribute_key(attribute: Attribute) -> tuple[str, Any] | None:
    """Equal for attributes that mean the same; ``None`` where they are not compared (bodies, types)."""
    value = attribute.value
    if attribute.reference:
        return "reference", attribute.reference
    if attribute.kind is AttributeKind.FLOAT:
        return "float", value if value else repr(value)
    if isinstance(value, Tensor):
        return "Tensor", value.digest
    if isinstance(value, SparseTensor):
        return "SparseTensor", (value.values.digest, value.indices.digest, value.shape)
    if attribute.kind in (AttributeKind.INT, AttributeKind.STRING, AttributeKind.INTS, AttributeKind.STRINGS):
        return type(value).__name__, value
    if attribute.kind is AttributeKind.FLOATS:
        return "tuple", tuple(map(repr, value))
    return None


# -------------------------------------------------------------------- constants


def _share_constants(ctx: Context, path: tuple[str, ...], graph: Graph) -> bool:
    """Merges constants of the same type, shape and bytes; a hash is only made of likely candidates."""
    changed = False
    likely: dict[Hashable, list[Value]] = {}
    for value in graph.constants:
        tensor = graph.tensor(value)
        assert tensor is not None
        likely.setdefault((tensor.dtype, tensor.shape), []).append(value)
    for same_type in likely.values():
        firsts: dict[Hashable, Value] = {}
        peeks: dict[Hashable, list[Value]] = {}
        for value in same_type if len(same_type) > 1 else ():
            peeks.setdefault(_peek(graph, value), []).append(value)
        for candidates in peeks.values():
            for value in candidates if len(candidates) > 1 else ():
                tensor = graph.tensor(value)
                assert tensor is not None
                first = firsts.setdefault(tensor.digest, value)
                node = graph.node(value)
                if first != value and ctx.allows("cse", path, graph, node):
                    changed |= _merge(ctx, path, graph, node, [(value, first)])
    return changed


def _peek(graph: Graph, value: Value) -> bytes:
    """A few bytes of a constant, to tell most of them apart without reading them whole."""
    array = graph.const(value)
    assert array is not None
    if array.dtype == object or array.size == 0:
        return b""
    flat = array.reshape(-1)
    return np.concatenate([flat[:4], flat[-4:]]).tobytes()


CSE = ScopePass("cse", share, reads_bodies=True)
