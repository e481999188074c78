"""Operators of onnxruntime, taken only for that target."""

from __future__ import annotations

import numpy as np

from optimizer.ir import DType, Node, Value
from optimizer.rewrite import Context, Match, P, Rewriter, graph_optimizer
from passes.known import constant_of

MICROSOFT = "com.microsoft"
_FLOAT_MAX = float(np.finfo(np.float32).max)


@graph_optimizer(
    P.one_of("Relu", "Sigmoid", "Tanh", "LeakyRelu", "HardSigmoid", "Clip")(
        P.Conv("x", "w", P.maybe("b"), name="conv").once(), P.rest("bounds"), name="activation"
    ),
    tag="E2",
)
def fuse_conv_activation(m: Match, rw: Rewriter) -> Value:
    """Relu(Conv(x, w, b)) -> com.microsoft.FusedConv(x, w, b, activation=Relu)

    Also Sigmoid, Tanh, LeakyRelu, HardSigmoid and Clip with constant bounds.
    """
    m.require(m.ctx.settings.target == "onnxruntime", "the target is not onnxruntime")
    m.require(m.dtype(m.x) is DType.FLOAT, "not float32")
    parameters = _parameters(m, m.activation)
    m.require(import_domain(m.ctx, m, MICROSOFT, 1), "the model imports another version of com.microsoft")
    attributes = {**m.conv.attributes, "activation": m.activation.op_type}
    if parameters:
        attributes["activation_params"] = parameters
    made: Value = rw.op.FusedConv(m.x, m.w, m.b, domain=MICROSOFT, **attributes)
    return made


def _parameters(m: Match, activation: Node) -> list[float]:
    if activation.op_type == "LeakyRelu":
        return [float(activation.attr("alpha", 0.01))]
    if activation.op_type == "HardSigmoid":
        return [float(activation.attr("alpha", 0.2)), float(activation.attr("beta", 0.5))]
    if activation.op_type != "Clip":
        return []
    bounds = [-_FLOAT_MAX, _FLOAT_MAX]
    for place, name in enumerate(("min", "max")):
        given = activation.input(place + 1)
        if given is not None:
            bounds[place] = float(constant_of(m, given).array.reshape(()))
        elif name in activation.attributes:
            bounds[place] = float(activation.attr(name))
    return bounds


def import_domain(ctx: Context, m: Match, domain: str, version: int) -> bool:
    """Imports an operator set in every scope of the match's model or function; false if it has another.

    Importing what is not used in the end does no harm, so this is not taken back with the rewrite.
    """
    roots = [ctx.model.graph, *(function.graph for function in ctx.model.functions.values())]
    for root in roots:
        scopes = [graph for _, graph in root.scopes()]
        if m.graph in scopes:
            for graph in scopes:
                graph.opsets.setdefault(domain, version)
    return m.opset(domain) == version
