"""Which outputs of a model depend on random numbers."""

from __future__ import annotations

from collections.abc import Mapping

from optimizer.ir import Function, Graph, Model, Node

RANDOM_OPS = frozenset(
    {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial"}
)

Functions = Mapping[tuple[str, str, str], Function]


def is_random(graph: Graph, node: Node, functions: Functions, depth: int = 16) -> bool:
    """Whether a node draws random numbers, itself or in a body or function of its own."""
    if not node.domain and node.op_type in RANDOM_OPS:
        return True
    if not node.domain and node.op_type == "Dropout":
        mode = graph.const(node.input(2))
        return node.input(2) is not None and (mode is None or bool(mode.any()))
    inner = [body for _, body in node.bodies]
    function = functions.get((node.domain, node.op_type, node.overload))
    if function is not None and depth:
        inner.append(function.graph)
    return any(is_random(scope, n, functions, depth - 1) for scope in inner for n in scope.nodes)


def random_outputs(model: Model) -> frozenset[str]:
    """Names of the outputs that are computed from random numbers. O(V + E)."""
    graph = model.graph
    tainted: set[int] = set()
    for node in graph.topological():
        above = any(v is not None and v.node in tainted for v in node.operands)
        if above or is_random(graph, node, model.functions):
            tainted.add(node.id)
    return frozenset(
        info.name for info, v in zip(graph.sink.outputs, graph.outputs, strict=True) if v.node in tainted
    )
