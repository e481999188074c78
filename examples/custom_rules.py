"""Rewrites of your own, in both forms.

oinfer-opt model.onnx out.onnx --rules examples/custom_rules.py
"""

from __future__ import annotations

from optimizer import graph_optimizer
from optimizer.ir import Graph, Value
from optimizer.rewrite import Match, P, Rewriter


@graph_optimizer
def fold_gemm_alpha(graph: Graph) -> bool:
    """Gemm(a, w, c, alpha) -> Gemm(a, alpha * w, c)"""
    changed = False
    for node in graph.nodes:
        if node.op != "Gemm" or node.attr("alpha", 1.0) == 1.0:
            continue
        weight = graph.const(node.input(1))
        if weight is None or weight.dtype.kind != "f":
            continue
        scaled = graph.add_constant((weight * node.attr("alpha")).astype(weight.dtype))
        inputs = [node.input(0), scaled, *node.inputs[2:]]
        gemm = graph.add("Gemm", inputs, {**node.attributes, "alpha": 1.0})
        graph.replace_uses(node.value(), gemm.value())
        changed = True
    return changed


@graph_optimizer(P.Mul(P.MatMul("x", "w").once(), "scale").commutes(), constants="w scale")
def fold_scale_into_matmul(m: Match, rw: Rewriter) -> Value:
    """Mul(MatMul(x, w), scale) -> MatMul(x, w * scale)"""
    m.require(m.array(m.w).dtype.kind == "f", "weights are not floats")
    m.require(m.array(m.scale).size == 1, "scale is not one number")
    return rw.op.MatMul(m.x, rw.const(m.f64(m.w) * m.f64(m.scale).item(), like=m.w))
