"""Forms of operators that take less time, most of them in more nodes: ``passes.choose`` judges where."""

from __future__ import annotations

from typing import Any

import numpy as np

from optimizer.ir import DType, Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.affine import Affine, as_batchnorm
from passes.known import constant_of, rank_of, readers_of, shape_of


@graph_optimizer(
    P.any_of(P.Mul("x", P.Tanh(P.Softplus("x").once()).once()).commutes(), P.Mish("x")), tag="E2"
)
def spell_mish(m: Match, rw: Rewriter) -> Value:
    """x * Tanh(Softplus(x)) -> x * n / (n + 2), n = e * (e + 2), e = Exp(Min(x, 20))

    Tanh(Log(1 + e)) is that quotient; above 20 it is 1.
    """
    m.require(m.dtype(m.x) is DType.FLOAT, "not float32")
    m.require(m.opset() >= 8, "Min does not broadcast before opset 8")
    e = rw.op.Exp(rw.op.Min(m.x, rw.const(20.0, like=m.x)))
    n = rw.op.Mul(e, rw.op.Add(e, rw.const(2.0, like=m.x)))
    return rw.op.Mul(m.x, rw.op.Div(n, rw.op.Add(n, rw.const(2.0, like=m.x))))


@graph_optimizer(P.Softplus("x"), tag="E3")
def spell_softplus(m: Match, rw: Rewriter) -> Value:
    """Softplus(x) -> Relu(x) + Log(1 + Exp(-Abs(x)))

    The relative error is large where x is far below 0.
    """
    m.require(m.dtype(m.x) is DType.FLOAT, "not float32")
    in_mish = any(reader.op_type == "Tanh" for reader, _ in readers_of(m, m.root.value()))
    m.require(not in_mish, "it is part of Mish")
    small = rw.op.Exp(rw.op.Neg(rw.op.Abs(m.x)))
    return rw.op.Add(rw.op.Relu(m.x), rw.op.Log(rw.op.Add(small, rw.const(1.0, like=m.x))))


@graph_optimizer(P.PRelu("x", "slope"), constants="slope", tag="E2")
def spell_prelu(m: Match, rw: Rewriter) -> Value:
    """PRelu(x, s) -> BatchNormalization(Relu(x), 1 - s) + BatchNormalization(x, s)

    Runtimes that block channels keep these blocked.
    """
    m.require(m.dtype(m.x) is DType.FLOAT, "not float32")
    m.require(m.opset() >= 9, "BatchNormalization has a mode before opset 9")
    shape, slope = shape_of(m, m.x), m.f64(m.slope)
    channels = shape[1].value if len(shape) == 4 else None
    m.require(channels, "not an image of a known number of channels")
    assert channels is not None
    affine = Affine(slope, np.zeros(())).along(m, 1, 4, channels)
    positive = as_batchnorm(rw, rw.op.Relu(m.x), Affine(1 - affine.scale, affine.shift), m.x)
    return rw.op.Add(positive, as_batchnorm(rw, m.x, affine, m.x))


@graph_optimizer(P.Conv("x", "w", P.maybe("b"), name="conv"), constants="w", tag="E2")
def widen_depthwise_conv(m: Match, rw: Rewriter) -> Value:
    """Conv(x, w) -> Squeeze(Conv(Unsqueeze(x), Unsqueeze(w))), of sequences, depthwise"""
    m.require(m.dtype(m.x) is DType.FLOAT, "not float32")
    w = constant_of(m, m.w)
    m.require(rank_of(m, m.x) == 3 and len(w.shape) == 3, "not a sequence")
    m.require(
        w.shape[1] == 1 and m.conv.attr("group", 1) == w.shape[0] > 1, "not one filter for each channel"
    )
    padding = m.conv.attr("auto_pad", "NOTSET")
    m.require(padding in ("NOTSET", "VALID"), "the pads depend on the size")
    begin, end = m.conv.attr("pads", (0, 0))
    attributes: dict[str, Any] = {
        "group": w.shape[0],
        "strides": [1, *m.conv.attr("strides", (1,))],
        "dilations": [1, *m.conv.attr("dilations", (1,))],
        "pads": [0, begin, 0, end] if padding == "NOTSET" else [0, 0, 0, 0],
    }
    kernel = rw.const(w.array[:, :, None, :].copy())
    if m.opset() < 13:
        wide = rw.op.Conv(rw.op.Unsqueeze(m.x, axes=[2]), kernel, m.b, **attributes)
        return rw.op.Squeeze(wide, axes=[2])
    there, back = (rw.const(np.array([2], np.int64)) for _ in range(2))
    wide = rw.op.Conv(rw.op.Unsqueeze(m.x, there), kernel, m.b, **attributes)
    return rw.op.Squeeze(wide, back)
