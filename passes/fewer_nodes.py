"""Forms that are fewer nodes and no faster; some only where nodes are what counts."""

from __future__ import annotations

from optimizer.ir import DType, Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.fuse_siblings import PLAIN


@graph_optimizer(
    P.any_of(
        P.Add(P.one_of("Add", "Sum")(P.rest("inner")).once(), "z").commutes(),
        P.Sum(P.rest("terms", least=2)),
    ),
    tag="E2",
)
def merge_sums(m: Match, rw: Rewriter) -> Value:
    """Sum(Sum(a, b), c) -> Sum(a, b, c), and of Add likewise where only nodes count"""
    kinds = ("Add", "Sum") if m.ctx.settings.objective == "nodes" else ("Sum",)
    m.require(m.root.op_type in kinds, "it would be slower")
    m.require(m.dtype(m.root.value()) in (DType.FLOAT, DType.DOUBLE), "not float32 or float64")
    m.require(m.opset() >= 8, "Sum does not broadcast before opset 8")
    terms: list[Value | None] = []
    for term in m.root.inputs:
        inner = m.producer(term)
        own = term is not None and inner is not None and inner.op in kinds and m.single_use(term)
        terms.extend(inner.inputs if inner is not None and own and not m.ctx.is_kept(inner) else [term])
    m.require(len(terms) > len(m.root.inputs), "no term is a sum of its own")
    return rw.op.Sum(*terms)


@graph_optimizer(P.Concat(P.rest("parts", least=2), name="concat"), tag="E0")
def activate_once(m: Match, rw: Rewriter) -> Value:
    """Concat(Relu(a), Relu(b)) -> Relu(Concat(a, b)), and of other activations likewise"""
    m.require(m.ctx.settings.objective == "nodes", "it would be slower")
    nodes = [m.producer(part) for part in m.parts]
    first = nodes[0]
    if first is None or first.op_type not in PLAIN or first.domain:
        return m.refuse("an operand is no activation of its own")
    for node, part in zip(nodes, m.parts, strict=True):
        same = node is not None and (node.op, node.attributes) == (first.op, first.attributes)
        own = same and m.single_use(part) and node is not None and not m.ctx.is_kept(node)
        m.require(own, "an operand is no activation of its own")
    joined = rw.op.Concat(*(node.inputs[0] for node in nodes if node is not None), **m.concat.attributes)
    made: Value = getattr(rw.op, first.op_type)(joined, **first.attributes)
    return made
