"""Products of rows: without views around them, and two in a row as one."""

from __future__ import annotations

import math

import numpy as np

from optimizer.analysis import Dim
from optimizer.ir import Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.affine import require_room
from passes.known import FLOATS, constant_of, shape_of
from passes.target import reshape_target

FLAT = P.one_of("Reshape", "Flatten", "Squeeze")("x", P.rest("there"), name="inner")


@graph_optimizer(
    P.one_of("Reshape", "Unsqueeze")(
        P.Gemm(FLAT, "w", P.maybe("c"), name="gemm").once(), P.rest("back"), name="outer"
    ),
    constants="w",
    tag="E2",
)
def drop_views_around_gemm(m: Match, rw: Rewriter) -> Value:
    """Reshape(Gemm(Reshape(x), w, c)) -> MatMul(x, w) + c

    The views join the leading axes of x to one and split it again.
    """
    m.require(m.opset() >= 7, "Gemm broadcasts differently before opset 7")
    source, final = shape_of(m, m.x), shape_of(m, m.root.value())
    w = constant_of(m, m.w)
    transposed = m.gemm.attr("transB", 0)
    depth, width = w.shape[::-1] if transposed else w.shape
    plain = not m.gemm.attr("transA", 0) and m.gemm.attr("alpha", 1.0) == 1
    m.require(plain, "the product is scaled, or of the transposed rows")
    joins = len(source) >= 3 and source[-1] == depth and shape_of(m, m.inner.value())[-1] == depth
    m.require(joins, "the view does more than join the leading axes")
    lead = source[:-1]
    m.require(final[: len(lead)] == lead, "the leading axes are not split again")
    if m.c is not None:
        m.require(m.gemm.attr("beta", 1.0) == 1, "the product is scaled, or of the transposed rows")
        m.require(all(d == 1 for d in shape_of(m, m.c)[:-1]), "the rows have different biases")
    if transposed:
        require_room(m, m.w)
    weights = rw.const(np.ascontiguousarray(w.array.T)) if transposed else m.w
    result: Value = rw.op.MatMul(m.x, weights)
    if m.c is not None:
        result = rw.op.Add(result, m.c)
    made = (*lead, Dim.of(width))
    if final == made:
        return result
    return rw.op.Reshape(result, rw.const(np.array(reshape_target(m, made, final, None), np.int64)))


# -------------------------------------------------------------------- two products in a row

PRODUCT = P.MatMul("x", "w", name="first").once()


@graph_optimizer(
    P.any_of(P.MatMul(PRODUCT, "v"), P.MatMul(P.Add(PRODUCT, P.const("b")).commutes().once(), "v")),
    constants="w v",
    tag="E2",
)
def merge_products(m: Match, rw: Rewriter) -> Value:
    """MatMul(MatMul(x, w) + b, v) -> MatMul(x, w @ v) + b @ v

    Where the product of the constants is not more work than both.
    """
    w, v = m.f64(m.w), m.f64(m.v)
    m.require(w.ndim == v.ndim == 2, "not both are matrices")
    m.require(constant_of(m, m.w).dtype in FLOATS, "not a float")
    (rows, between), columns = w.shape, v.shape[1]
    m.require(v.shape[0] == between, "the bias widens the rows")
    m.require(rows * columns <= between * (rows + columns), "one product would be more work")
    extra = rows * columns - (m.single_use(m.w) * w.size + m.single_use(m.v) * v.size)
    m.require(m.ctx.may_grow(extra * constant_of(m, m.w).array.itemsize), "the growth budget is used up")
    product: Value = rw.op.MatMul(m.x, rw.const(w @ v, like=m.w))
    if not hasattr(m, "b"):
        return product
    bias = m.f64(m.b)
    m.require(bias.ndim == 1 and bias.size in (1, between), "the rows have different biases")
    return rw.op.Add(product, rw.const(np.broadcast_to(bias, (between,)) @ v, like=m.w))


@graph_optimizer(
    P.Gemm(P.Gemm("x", "w", P.maybe("b"), name="first").once(), "v", P.maybe("c"), name="second"),
    constants="w v",
    tag="E2",
)
def merge_gemms(m: Match, rw: Rewriter) -> Value:
    """Gemm(Gemm(x, w, b), v, c) -> Gemm(x, w @ v, b @ v + c)

    Where the product of the constants is not more work than both.
    """
    m.require(m.opset() >= 11, "Gemm needs a bias before opset 11")
    w, v = (_matrix(m, name, value) for name, value in (("first", m.w), ("second", m.v)))
    (rows, between), columns = w.shape, v.shape[1]
    m.require(rows * columns <= between * (rows + columns), "one product would be more work")
    bias = np.zeros(columns)
    if m.b is not None:
        first = m.f64(m.b) * float(m.first.attr("beta", 1.0))
        m.require(
            first.size in (1, between) and first.shape[:-1] in ((), (1,)), "the rows have different biases"
        )
        bias = np.broadcast_to(first.reshape(-1), (between,)) @ v
    if m.c is not None:
        second = m.f64(m.c) * float(m.second.attr("beta", 1.0))
        m.require(
            second.size in (1, columns) and second.shape[:-1] in ((), (1,)), "the rows have different biases"
        )
        bias = bias + second.reshape(-1)
    extra = rows * columns - (m.single_use(m.w) * w.size + m.single_use(m.v) * v.size)
    m.require(m.ctx.may_grow(extra * constant_of(m, m.w).array.itemsize), "the growth budget is used up")
    new_bias = rw.const(bias, like=m.w) if bias.any() else None
    return rw.op.Gemm(m.x, rw.const(w @ v, like=m.w), new_bias, transA=m.first.attr("transA", 0))


def _matrix(m: Match, name: str, value: Value) -> np.ndarray:
    """The weights of a Gemm as they multiply, alpha in them."""
    gemm = getattr(m, name)
    m.require(name == "first" or not gemm.attr("transA", 0), "the left operand is transposed")
    m.require(constant_of(m, value).dtype in FLOATS, "not a float")
    w = m.f64(value) * float(gemm.attr("alpha", 1.0))
    return w.T if gemm.attr("transB", 0) else w


@graph_optimizer(
    P.Conv(P.Conv("x", "w", P.maybe("b"), name="first").once(), "v", P.maybe("c"), name="second"),
    constants="w v",
    tag="E2",
)
def merge_convs(m: Match, rw: Rewriter) -> Value:
    """Conv(Conv(x, w, b), v, c) -> Conv(x, v @ w, v @ b + c), of a first kernel of one pixel

    Where one convolution is not more work than both. A bias cannot cross padding.
    """
    w, v = m.f64(m.w), m.f64(m.v)
    one = set(w.shape[2:]) <= {1} and not any(m.first.attr("pads", ()))
    m.require(one and set(m.first.attr("strides", (1,))) == {1}, "the first kernel is more than one pixel")
    m.require(
        m.first.attr("auto_pad", "NOTSET") in ("NOTSET", "VALID"), "the first kernel is more than one pixel"
    )
    m.require(m.first.attr("group", 1) == m.second.attr("group", 1) == 1, "the convolution has groups")
    (between, inputs), outputs, window = w.shape[:2], v.shape[0], math.prod(v.shape[2:])
    m.require(
        inputs * outputs * window <= between * (inputs + outputs * window), "one product would be more work"
    )
    pads = m.second.attr("auto_pad", "NOTSET") not in ("NOTSET", "VALID") or any(m.second.attr("pads", ()))
    bias = np.zeros(outputs) if m.c is None else m.f64(m.c)
    if m.b is not None:
        m.require(not pads, "a shift cannot cross zero padding")
        bias = bias + v.reshape(outputs, between, -1).sum(-1) @ m.f64(m.b)
    merged = np.einsum("ok...,ki->oi...", v, w.reshape(between, inputs))
    extra = merged.size - (m.single_use(m.w) * w.size + m.single_use(m.v) * v.size)
    m.require(m.ctx.may_grow(extra * constant_of(m, m.w).array.itemsize), "the growth budget is used up")
    new_bias = rw.const(bias, like=m.w) if bias.any() else None
    made: Value = rw.op.Conv(m.x, rw.const(merged, like=m.w), new_bias, **m.second.attributes)
    return made
