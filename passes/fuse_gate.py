"""A value multiplied by a gate and added to itself: the gate takes the addition."""

from __future__ import annotations

import numpy as np

from optimizer.ir import DType, Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.affine import require_room
from passes.known import FLOATS, shape_of


@graph_optimizer(P.Add(P.Mul("x", "gate").commutes().once(), "x").commutes(), tag="E2")
def factor_gated_residual(m: Match, rw: Rewriter) -> Value:
    """x * gate + x -> x * (gate + 1)

    Where the gate is one number for a whole image, so that it is the smaller thing to add to.
    """
    m.require(m.dtype(m.x) in FLOATS, "not a float")
    shape, gate = shape_of(m, m.x), shape_of(m, m.gate)
    m.require(len(shape) == len(gate) >= 3, "not an image and its gate")
    spatial = list(zip(shape, gate, strict=True))[2:]
    m.require(all(g == 1 for _, g in spatial), "the gate differs within the image")
    m.require(any(s != 1 for s, _ in spatial), "the image is one pixel")
    return rw.op.Mul(m.x, rw.op.Add(m.gate, rw.const(1.0, like=m.x)))


@graph_optimizer(
    P.Add(
        P.HardSigmoid(P.Conv("x", "w", P.maybe("b"), name="conv").once(), name="gate").once(), P.const("t")
    ).commutes(),
    constants="w",
    tag="E2",
)
def fold_gate_shift_into_conv(m: Match, rw: Rewriter) -> Value:
    """HardSigmoid(Conv(x, w, b)) + t -> Clip(Conv(x, alpha * w, alpha * b + beta + t), t, 1 + t)"""
    m.require(m.opset() >= 11, "the bounds of Clip are attributes before opset 11")
    m.require(m.dtype(m.x) is DType.FLOAT, "not float32")
    alpha, beta = float(m.gate.attr("alpha", 0.2)), float(m.gate.attr("beta", 0.5))
    w, t = m.f64(m.w), m.f64(m.t)
    m.require(t.size == 1 and t.ndim <= w.ndim, "the shift is no scalar")
    shift = float(t.reshape(()))
    bias = np.full(w.shape[0], beta + shift) + (0 if m.b is None else alpha * m.f64(m.b))
    require_room(m, m.w)
    bounds = (rw.const(bound, like=m.w) for bound in (shift, 1 + shift))
    new_w, new_b = rw.const(alpha * w, like=m.w), rw.const(bias, like=m.w)
    conv: Value = rw.op.Conv(m.x, new_w, new_b, **m.conv.attributes)
    return rw.op.Clip(conv, *bounds)
