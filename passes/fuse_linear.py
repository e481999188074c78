"""Constant affine steps around Gemm and MatMul; MatMul with Add; Transpose in front of Gemm."""

from __future__ import annotations

from typing import Any

import numpy as np

from optimizer.ir import Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.affine import Affine, affine_of, batchnorm_step, elementwise_step, require_room
from passes.known import FLOATS, constant_of, rank_of, shape_of

GEMM = P.Gemm("a", "w", P.maybe("c"), name="gemm")
MATMUL = P.MatMul("x", "w", name="matmul")

# -------------------------------------------------------------------- behind Gemm


@graph_optimizer(
    P.any_of(batchnorm_step(GEMM.once()), *elementwise_step(GEMM.once())), constants="w", tag="E2"
)
def fold_affine_into_gemm(m: Match, rw: Rewriter) -> Value:
    """Gemm(a, w, c) * k + t -> Gemm(a, w * k, c * k + t)

    One step at a time, BatchNormalization too: one number per column of the result, or one for all.
    """
    m.require(m.opset() >= 7, "Gemm broadcasts differently before opset 7")
    w, transposed = m.f64(m.w), m.gemm.attr("transB", 0)
    columns = w.shape[0 if transposed else 1]
    affine = affine_of(m, m.step, m.gemm.value(), 2).along(m, 1, 2, columns)
    new_w = m.w
    if not affine.is_shift:
        require_room(m, m.w)
        new_w = rw.const(w * (affine.scale[:, None] if transposed else affine.scale), like=m.w)
    bias = affine.shift if m.c is None else _gemm_bias(m) * affine.scale + affine.shift
    new_c = rw.const(bias, like=m.w) if m.c is not None or bias.any() or m.opset() < 11 else None
    return _gemm(m, rw, m.a, new_w, new_c)


@graph_optimizer(
    P.Gemm(P.any_of(batchnorm_step("x"), *elementwise_step("x")), "w", P.maybe("c"), name="gemm"),
    constants="w",
    tag="E2",
)
def fold_affine_before_gemm(m: Match, rw: Rewriter) -> Value:
    """Gemm(x * k + t, w, c) -> Gemm(x, k * w, c + t @ w)

    k and t are one number per column of x, or one for all.
    """
    m.require(m.opset() >= 7, "Gemm broadcasts differently before opset 7")
    m.require(not m.gemm.attr("transA", 0), "the left operand is transposed")
    m.require(m.single_use(m.step.value()), "the step has other readers")
    w, transposed = m.f64(m.w), m.gemm.attr("transB", 0)
    rows = w.shape[1 if transposed else 0]
    shape = shape_of(m, m.x)
    m.require(len(shape) == 2 and shape[1] == rows, "the width before is not known")
    affine = affine_of(m, m.step, m.x, 2).along(m, 1, 2, rows)
    new_w = m.w
    if not affine.is_shift:
        require_room(m, m.w)
        new_w = rw.const(w * (affine.scale if transposed else affine.scale[:, None]), like=m.w)
    if affine.is_scale:
        return _gemm(m, rw, m.x, new_w, m.c, keeps_beta=True)
    response = float(m.gemm.attr("alpha", 1.0)) * ((w @ affine.shift) if transposed else (affine.shift @ w))
    bias = response if m.c is None else _gemm_bias(m) + response
    return _gemm(m, rw, m.x, new_w, rw.const(bias, like=m.w))


def _gemm_bias(m: Match) -> np.ndarray:
    return float(m.gemm.attr("beta", 1.0)) * m.f64(m.c)


def _gemm(m: Match, rw: Rewriter, a: Value, w: Value, c: Value | None, keeps_beta: bool = False) -> Value:
    """The matched Gemm with other operands; ``c`` has beta in it already unless it is kept."""
    attributes: dict[str, Any] = dict(m.gemm.attributes)
    if not keeps_beta:
        attributes.pop("beta", None)
    made: Value = rw.op.Gemm(a, w, c, **attributes)
    return made


# -------------------------------------------------------------------- around MatMul


@graph_optimizer(P.any_of(*elementwise_step(MATMUL.once())), constants="w", tag="E2")
def fold_scale_into_matmul(m: Match, rw: Rewriter) -> Value:
    """MatMul(x, w) * k -> MatMul(x, w * k)

    k is one number per column of w, or one for all.
    """
    return rw.op.MatMul(m.x, _scaled_columns(m, rw, _step_after_matmul(m)))


@graph_optimizer(
    P.any_of(*elementwise_step(P.Add(MATMUL.once(), P.const("b"), name="add").commutes().once())),
    constants="w",
    tag="E2",
)
def fold_scale_into_biased_matmul(m: Match, rw: Rewriter) -> Value:
    """(MatMul(x, w) + b) * k -> MatMul(x, w * k) + b * k"""
    columns, bias = constant_of(m, m.w).shape[-1], m.f64(m.b)
    rank = rank_of(m, m.add.value())
    m.require(rank == rank_of(m, m.matmul.value()), "the bias stretches the product")
    affine = affine_of(m, m.step, m.add.value(), rank).along(m, rank - 1, rank, columns)
    m.require(affine.is_scale, "the step is no scale")
    product = rw.op.MatMul(m.x, _scaled_columns(m, rw, affine))
    return rw.op.Add(product, rw.const(bias * affine.scale, like=m.b))


@graph_optimizer(P.MatMul(P.any_of(*elementwise_step("x")), "w", name="matmul"), constants="w", tag="E2")
def fold_scale_before_matmul(m: Match, rw: Rewriter) -> Value:
    """MatMul(x * k, w) -> MatMul(x, k * w)

    k is one number per row of w, or one for all.
    """
    m.require(m.single_use(m.step.value()), "the step has other readers")
    w, shape = m.f64(m.w), shape_of(m, m.x)
    m.require(w.ndim >= 2 and shape and shape[-1] == w.shape[-2], "the width before is not known")
    affine = affine_of(m, m.step, m.x, len(shape)).along(m, len(shape) - 1, len(shape), w.shape[-2])
    m.require(affine.is_scale, "the step is no scale")
    require_room(m, m.w)
    return rw.op.MatMul(m.x, rw.const(w * affine.scale[:, None], like=m.w))


def _step_after_matmul(m: Match) -> Affine:
    rank, w = rank_of(m, m.matmul.value()), constant_of(m, m.w)
    m.require(len(w.shape) >= 2, "the weights are a vector")
    affine = affine_of(m, m.step, m.matmul.value(), rank).along(m, rank - 1, rank, w.shape[-1])
    m.require(affine.is_scale, "the step is no scale")
    return affine


def _scaled_columns(m: Match, rw: Rewriter, affine: Affine) -> Value:
    require_room(m, m.w)
    return rw.const(m.f64(m.w) * affine.scale, like=m.w)


@graph_optimizer(P.Add(P.MatMul("a", "b", name="matmul").once(), "c").commutes(), tag="E2")
def fuse_matmul_add(m: Match, rw: Rewriter) -> Value:
    """MatMul(a, b) + c -> Gemm(a, b, c)

    Only where both are matrices and c broadcasts to the product without stretching it.
    """
    m.require(m.opset() >= 7, "Gemm broadcasts differently before opset 7")
    m.require(m.dtype(m.a) in FLOATS, "not a float")
    m.require(m.rank(m.a) == 2 and m.rank(m.b) == 2, "not both are matrices")
    _require_fits(m, m.c, m.matmul.value())
    return rw.op.Gemm(m.a, m.b, m.c)


@graph_optimizer(P.Add(P.Gemm("a", "b", P.maybe("zero"), name="gemm").once(), "c").commutes(), tag="E2")
def fuse_gemm_add(m: Match, rw: Rewriter) -> Value:
    """Gemm(a, b) + c -> Gemm(a, b, c)

    Where c broadcasts to the product without stretching it, and Gemm adds nothing so far.
    """
    m.require(m.opset() >= 7, "Gemm broadcasts differently before opset 7")
    adds_nothing = m.zero is None or m.gemm.attr("beta", 1.0) == 0 or not np.any(m.f64(m.zero))
    m.require(adds_nothing, "Gemm adds something already")
    _require_fits(m, m.c, m.gemm.value())
    made: Value = rw.op.Gemm(m.a, m.b, m.c, **{k: v for k, v in m.gemm.attributes.items() if k != "beta"})
    return made


def _require_fits(m: Match, bias: Value, product: Value) -> None:
    small, large = shape_of(m, bias), shape_of(m, product)
    m.require(len(small) <= 2, "the bias has too many axes")
    fits = all(a == 1 or a == b for a, b in zip(reversed(small), reversed(large), strict=False))
    m.require(fits, "the bias may stretch the product")


# -------------------------------------------------------------------- Transpose


@graph_optimizer(P.Gemm(P.Transpose("a", name="transpose"), "b", P.maybe("c"), name="gemm"), tag="E2")
def fold_transpose_into_gemm_left(m: Match, rw: Rewriter) -> Value:
    """Gemm(Transpose(a), b, c) -> Gemm(a, b, c, transA=not transA)"""
    _require_swap(m, m.a)
    flipped = 1 - m.gemm.attr("transA", 0)
    made: Value = rw.op.Gemm(m.a, m.b, m.c, **{**m.gemm.attributes, "transA": flipped})
    return made


@graph_optimizer(P.Gemm("a", P.Transpose("b", name="transpose"), P.maybe("c"), name="gemm"), tag="E2")
def fold_transpose_into_gemm_right(m: Match, rw: Rewriter) -> Value:
    """Gemm(a, Transpose(b), c) -> Gemm(a, b, c, transB=not transB)"""
    _require_swap(m, m.b)
    flipped = 1 - m.gemm.attr("transB", 0)
    made: Value = rw.op.Gemm(m.a, m.b, m.c, **{**m.gemm.attributes, "transB": flipped})
    return made


@graph_optimizer(P.MatMul(P.Transpose("a", name="transpose"), "b"), tag="E2")
def fold_transpose_into_matmul_left(m: Match, rw: Rewriter) -> Value:
    """MatMul(Transpose(a), b) -> Gemm(a, b, transA=1), of matrices"""
    _require_matmul_swap(m, m.a, m.b)
    return rw.op.Gemm(m.a, m.b, transA=1)


@graph_optimizer(P.MatMul("a", P.Transpose("b", name="transpose")), tag="E2")
def fold_transpose_into_matmul_right(m: Match, rw: Rewriter) -> Value:
    """MatMul(a, Transpose(b)) -> Gemm(a, b, transB=1), of matrices"""
    _require_matmul_swap(m, m.b, m.a)
    return rw.op.Gemm(m.a, m.b, transB=1)


def _require_matmul_swap(m: Match, transposed: Value, other: Value) -> None:
    m.require(m.opset() >= 11, "Gemm needs a bias before opset 11")
    m.require(m.dtype(other) in FLOATS, "not a float")
    m.require(m.rank(other) == 2, "not both are matrices")
    _require_swap(m, transposed)


def _require_swap(m: Match, transposed: Value) -> None:
    m.require(m.rank(transposed) == 2, "not both are matrices")
    m.require(tuple(m.transpose.attr("perm", (1, 0))) == (1, 0), "the transposition does nothing")
    m.require(m.single_use(m.transpose.value()), "the transposed matrix has other readers")
