"""Constant affine steps around products of matrices become part of them, or move behind them."""

from __future__ import annotations

import numpy as np

from optimizer.ir import Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.affine import affine_of, batchnorm_step, elementwise_step, require_room
from passes.known import FLOATS, rank_of, shape_of


@graph_optimizer(batchnorm_step(P.MatMul("x", "w", name="matmul").once()), constants="w", tag="E2")
def fold_batchnorm_into_matmul(m: Match, rw: Rewriter) -> Value:
    """BatchNormalization(MatMul(x, w)) -> Gemm(x, w * k, t), of matrices"""
    w = m.f64(m.w)
    m.require(rank_of(m, m.x) == 2 and w.ndim == 2, "not both are matrices")
    m.require(m.opset() >= 7, "Gemm broadcasts differently before opset 7")
    affine = affine_of(m, m.step, m.matmul.value(), 2).along(m, 1, 2, w.shape[1])
    require_room(m, m.w)
    return rw.op.Gemm(m.x, rw.const(w * affine.scale, like=m.w), rw.const(affine.shift, like=m.w))


@graph_optimizer(P.MatMul(batchnorm_step("x").once(), "w"), constants="w", tag="E2")
def fold_batchnorm_before_matmul(m: Match, rw: Rewriter) -> Value:
    """MatMul(BatchNormalization(x), w) -> Gemm(x, k * w, t @ w), of matrices"""
    w, shape = m.f64(m.w), shape_of(m, m.x)
    m.require(len(shape) == 2 and w.ndim == 2, "not both are matrices")
    m.require(shape[1] == w.shape[0], "the width before is not known")
    affine = affine_of(m, m.step, m.x, 2).along(m, 1, 2, w.shape[0])
    require_room(m, m.w)
    bias = affine.shift @ w
    return rw.op.Gemm(m.x, rw.const(w * affine.scale[:, None], like=m.w), rw.const(bias, like=m.w))


@graph_optimizer(
    P.Add(
        P.MatMul(P.any_of(*(step.once() for step in elementwise_step("x"))), "w").once(), P.const("b")
    ).commutes(),
    constants="w",
    tag="E2",
)
def move_shift_behind_matmul(m: Match, rw: Rewriter) -> Value:
    """MatMul(x + t, w) + b -> MatMul(x, w) + (b + t @ w)

    t is one number per row of w, or one for all.
    """
    w, shape, b = m.f64(m.w), shape_of(m, m.x), m.f64(m.b)
    m.require(m.dtype(m.x) in FLOATS, "not a float")
    m.require(w.ndim == 2 and len(shape) > 1 and shape[-1] == w.shape[0], "the width before is not known")
    affine = affine_of(m, m.step, m.x, len(shape)).along(m, len(shape) - 1, len(shape), w.shape[0])
    m.require(affine.is_shift, "the step is no shift")
    bias = b + affine.shift @ w
    m.require(bias.size <= max(b.size, w.shape[1]), "the constant would be larger")
    return rw.op.Add(rw.op.MatMul(m.x, m.w), rw.const(bias, like=m.b))


@graph_optimizer(
    batchnorm_step(P.Add(P.MatMul("x", "w").once(), P.const("b"), name="sum").commutes().once()),
    constants="w",
    tag="E2",
)
def fold_batchnorm_into_biased_matmul(m: Match, rw: Rewriter) -> Value:
    """BatchNormalization(MatMul(x, w) + b) -> Gemm(x, w * k, b * k + t), of matrices"""
    w, b = m.f64(m.w), m.f64(m.b)
    m.require(rank_of(m, m.x) == 2 and w.ndim == 2, "not both are matrices")
    m.require(m.opset() >= 7, "Gemm broadcasts differently before opset 7")
    fits = b.ndim <= 2 and b.size in (1, w.shape[1]) and b.shape[-1:] in ((), (1,), (w.shape[1],))
    m.require(fits, "the bias may stretch the product")
    affine = affine_of(m, m.step, m.sum.value(), 2).along(m, 1, 2, w.shape[1])
    require_room(m, m.w)
    bias = np.broadcast_to(b.reshape(-1), (w.shape[1],)) * affine.scale + affine.shift
    return rw.op.Gemm(m.x, rw.const(w * affine.scale, like=m.w), rw.const(bias, like=m.w))
