"""Products of one value with several constants become one product and a Split: fewer nodes only."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from optimizer.ir import Graph, Node, Tensor, Value
from optimizer.rewrite import Context, Exactness, ScopePass
from passes.cse import attribute_key

NAME = "merge-siblings"
ACTIVATIONS = frozenset(
    ("Relu", "Sigmoid", "Tanh", "LeakyRelu", "HardSigmoid", "HardSwish", "Elu", "Gelu", "Mish", "Softplus")
)


@dataclass(frozen=True, slots=True)
class _Branch:
    """A product with constant weights, the addition of a constant behind it, and an activation."""

    product: Node
    bias: Tensor | None
    nodes: tuple[Node, ...]

    @property
    def result(self) -> Value:
        return self.nodes[-1].value()


def merge(ctx: Context, path: tuple[str, ...], graph: Graph) -> bool:
    """MatMul(x, v), MatMul(x, w) -> Split(MatMul(x, Concat(v, w))), and Conv likewise. O(nodes)."""
    if ctx.settings.objective != "nodes" or not ctx.settings.admits(Exactness.E2) or graph.opset() < 13:
        return False
    groups: dict[Hashable, list[_Branch]] = {}
    for node in graph.topological():
        branch = _branch(ctx, graph, node)
        if branch is not None:
            groups.setdefault(_key(graph, branch), []).append(branch)
    changed = False
    for branches in groups.values():
        if len(branches) < 2 or not _pays(branches):
            continue
        node = branches[0].product
        if not all(ctx.allows(NAME, path, graph, b.product) for b in branches):
            continue
        if not ctx.may_grow(sum(_copied(graph, b) for b in branches)):
            ctx.stats[NAME].refused["the growth budget is used up"] += 1
            continue
        with ctx.application(NAME, graph, node, Exactness.E2, path) as entry:
            entry.pairs = _merge(ctx, graph, branches)
        ctx.stats[NAME].fired += 1
        changed |= ctx.accept(entry)
    return changed


def _pays(branches: list[_Branch]) -> bool:
    """Whether one branch and a Split are fewer nodes than all branches."""
    return sum(len(b.nodes) for b in branches) > max(len(b.nodes) for b in branches) + 1


def _copied(graph: Graph, branch: _Branch) -> int:
    """Bytes of weights that something else reads as well."""
    weights = branch.product.inputs[1]
    tensor = graph.tensor(weights)
    return 0 if tensor is None or weights is None or graph.only_use(weights) else tensor.nbytes


# -------------------------------------------------------------------- finding


def _branch(ctx: Context, graph: Graph, node: Node) -> _Branch | None:
    if node.domain or node.op_type not in ("MatMul", "Conv") or ctx.is_kept(node):
        return None
    weights = graph.tensor(node.input(1))
    if weights is None or any(a.reference for a in node.attributes.values()):
        return None
    if node.op_type == "Conv":
        bias = graph.tensor(node.input(2))
        if node.attr("group", 1) != 1 or (node.input(2) is not None and bias is None):
            return None
        return _with_activation(ctx, graph, _Branch(node, bias, (node,)))
    rank = ctx.facts(graph).rank(node.value())
    if len(weights.shape) != 2 or rank is None or rank < 2:
        return None
    use = graph.only_use(node.value())
    add = None if use is None else graph.node(use.node)
    if add is None or add.op_type != "Add" or add.domain or ctx.is_kept(add):
        return _Branch(node, None, (node,))
    bias = graph.tensor(add.inputs[0] if add.inputs[1] == node.value() else add.inputs[1])
    if (
        bias is None
        or bias.size != weights.shape[1]
        or bias.shape[-1:] != weights.shape[1:]
        or len(bias.shape) > rank
    ):
        return _Branch(node, None, (node,))
    return _Branch(node, bias, (node, add))


def _with_activation(ctx: Context, graph: Graph, branch: _Branch) -> _Branch:
    use = graph.only_use(branch.result)
    node = None if use is None else graph.node(use.node)
    if node is None or node.domain or node.op_type not in ACTIVATIONS or ctx.is_kept(node):
        return branch
    if any(a.reference for a in node.attributes.values()):
        return branch
    return _Branch(branch.product, branch.bias, (*branch.nodes, node))


def _key(graph: Graph, branch: _Branch) -> Hashable:
    """Equal for branches that can be one."""
    weights = graph.tensor(branch.product.inputs[1])
    assert weights is not None
    inner = weights.shape[1:] if branch.product.op_type == "Conv" else weights.shape[:1]
    tail = branch.nodes[1:] if branch.product.op_type == "Conv" else ()
    named = [
        (
            node.op_type,
            *sorted((k, attribute_key(a)) for k, a in node.attributes.items() if k != "kernel_shape"),
        )
        for node in (branch.product, *tail)
    ]
    return branch.product.inputs[0], weights.dtype, inner, repr(named)


# -------------------------------------------------------------------- merging


def _merge(ctx: Context, graph: Graph, branches: list[_Branch]) -> list[tuple[Value, Value]]:
    first = branches[0].product
    is_conv = first.op_type == "Conv"
    weights = [_array(graph, b.product.inputs[1]) for b in branches]
    sizes = [w.shape[0 if is_conv else 1] for w in weights]
    bias = None
    if any(b.bias is not None for b in branches):
        parts = [
            np.zeros(n, w.dtype) if b.bias is None else b.bias.array.reshape(n)
            for b, n, w in zip(branches, sizes, weights, strict=True)
        ]
        bias = graph.add_constant(np.concatenate(parts))
    merged = graph.add_constant(np.concatenate(weights, 0 if is_conv else 1))
    inputs = [first.inputs[0], merged, *([bias] if is_conv and bias is not None else [])]
    result = graph.add(first.op_type, inputs, first.attributes).value()
    if not is_conv and bias is not None:
        result = graph.add("Add", [result, bias]).value()
    for node in branches[0].nodes[1:] if is_conv else ():
        result = graph.add(node.op_type, [result], node.attributes).value()
    rank = ctx.facts(graph).rank(result)
    assert rank is not None
    attributes: dict[str, Any] = {"axis": 1 if is_conv else rank - 1}
    lengths = graph.add_constant(np.array(sizes, np.int64))
    split = graph.add("Split", [result, lengths], attributes, len(branches))
    pairs = []
    for index, branch in enumerate(branches):
        ctx.redirect(graph, branch.result, split.value(index))
        pairs.append((branch.result, split.value(index)))
        ctx.erase_dead(graph, branch.nodes[-1].id)
    return pairs


def _array(graph: Graph, value: Value | None) -> np.ndarray:
    array = graph.const(value)
    assert array is not None
    return array


MERGE_SIBLINGS = ScopePass(NAME, merge)
