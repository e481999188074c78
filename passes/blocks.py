"""Two steps over blocks of pixels that are one step, or none."""

from __future__ import annotations

from typing import Any

from optimizer.ir import Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer


@graph_optimizer(
    P.any_of(
        P.SpaceToDepth(P.DepthToSpace("x", name="first"), name="second"),
        P.DepthToSpace(P.SpaceToDepth("x", name="first"), name="second"),
    ),
    tag="E0",
)
def drop_blocks_there_and_back(m: Match, rw: Rewriter) -> Value:
    """SpaceToDepth(DepthToSpace(x)) -> x, and the other way round"""
    m.require(m.first.attr("blocksize") == m.second.attr("blocksize"), "the blocks differ")
    modes = {node.attr("mode", "DCR") for node in (m.first, m.second) if node.op_type == "DepthToSpace"}
    m.require(modes == {"DCR"}, "the channels are in another order")
    return m.x


@graph_optimizer(
    P.one_of("MaxPool", "AveragePool")(
        P.one_of("MaxPool", "AveragePool")("x", name="first").once(), name="second"
    ),
    tag="E2",
)
def merge_pools(m: Match, rw: Rewriter) -> Value:
    """MaxPool<2>(MaxPool<3>(x)) -> MaxPool<6>(x), and of AveragePool, of windows side by side"""
    m.require(m.first.op_type == m.second.op_type, "they are of two kinds")
    m.require(len(m.first.outputs) == len(m.second.outputs) == 1, "indices are used")
    kernels = []
    for node in (m.first, m.second):
        kernel = tuple(node.attr("kernel_shape"))
        ones = (1,) * len(kernel)
        m.require(tuple(node.attr("strides", ones)) == kernel, "the windows are not side by side")
        m.require(set(node.attr("dilations", ones)) == {1}, "the windows are not side by side")
        plain = not node.attr("ceil_mode", 0) and node.attr("auto_pad", "NOTSET") in ("NOTSET", "VALID")
        m.require(plain and not any(node.attr("pads", ())), "they pad")
        kernels.append(kernel)
    merged = [a * b for a, b in zip(*kernels, strict=True)]
    attributes: dict[str, Any] = {"kernel_shape": merged, "strides": merged}
    made: Value = getattr(rw.op, m.first.op_type)(m.x, **attributes)
    return made
