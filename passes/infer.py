"""Writes what is known about each value into the model, as its declared type."""

from __future__ import annotations

from dataclasses import replace

from optimizer.ir import Graph, Node, TensorType, ValueInfo, ValueType
from optimizer.rewrite import Context, ScopePass


def infer(ctx: Context, path: tuple[str, ...], graph: Graph) -> bool:
    """Declares the type of every value of one scope that has none, or a less precise one. O(nodes)."""
    facts = ctx.facts(graph)
    with ctx.application("infer", graph, graph.sink, scope=path) as entry:
        for node in graph.topological():
            known = [facts.of(node.value(i)).to_type() for i in range(len(node.outputs))]
            _declare(graph, node, known)
        known = [facts.of(value).to_type() for value in graph.outputs]
        _declare(
            graph,
            graph.sink,
            [t if i.type is None else None for t, i in zip(known, graph.sink.outputs, strict=True)],
        )
    ctx.stats["infer"].fired += bool(entry.changes)
    return ctx.accept(entry) and bool(entry.changes)


def _declare(graph: Graph, node: Node, known: list[ValueType | None]) -> None:
    infos = [_declared(info, found) for info, found in zip(node.outputs, known, strict=True)]
    if tuple(infos) != node.outputs:
        graph.set_attrs(node, outputs=infos)


def _declared(info: ValueInfo, known: ValueType | None) -> ValueInfo:
    """The declaration with what is known; names that the author gave to dimensions stay."""
    if known is None or known == info.type:
        return info
    if isinstance(info.type, TensorType) and isinstance(known, TensorType):
        if known.shape is None or info.type.shape is None or len(known.shape) != len(info.type.shape):
            shape = known.shape if known.shape is not None else info.type.shape
        else:
            pairs = zip(known.shape, info.type.shape, strict=True)
            shape = tuple(k if isinstance(k, int) or d is None or isinstance(d, int) else d for k, d in pairs)
        return replace(info, type=replace(info.type, dtype=known.dtype, shape=shape))
    return replace(info, type=known)


INFER = ScopePass("infer", infer)
