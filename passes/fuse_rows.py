"""Products of rows: without views around them, and two in a row as one."""

from __future__ import annotations

import math

import numpy as np

from optimizer.analysis import Dim
from optimizer.ir import Node, Value
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
    plain &= m.c is None or m.gemm.attr("beta", 1.0) == 1
    m.require(plain, "the product is scaled, or of the transposed rows")
    joins = len(source) >= 3 and source[-1] == depth and shape_of(m, m.inner.value())[-1] == depth
    m.require(joins, "the view does more than join the leading axes")
    lead = source[:-1]
    m.require(final[: len(lead)] == lead, "the leading axes are not split again")
    one_row = m.c is None or all(dim == 1 for dim in shape_of(m, m.c)[:-1])
    m.require(one_row, "the rows have different biases")
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


@graph_optimizer(
    P.Reshape(
        P.MatMul(P.Reshape("x", P.rest("there"), name="rows").once(), "w", name="product").once(),
        P.rest("back"),
    ),
    constants="w",
    tag="E2",
)
def drop_views_around_matmul(m: Match, rw: Rewriter) -> Value:
    """Reshape(MatMul(Reshape(x), w)) -> MatMul(x, w), where rows stay rows"""
    m.require(m.dtype(m.x) in FLOATS, "not a float")
    m.require(len(constant_of(m, m.w).shape) == 2, "the weights are no matrix")
    source, middle, result = (shape_of(m, v) for v in (m.x, m.rows.value(), m.root.value()))
    m.require(len(source) >= 2 and source[-1] == middle[-1], "the rows are cut otherwise")
    m.require(
        (*source[:-1], shape_of(m, m.product.value())[-1]) == tuple(result), "the result has another shape"
    )
    return rw.op.MatMul(m.x, m.w)


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
    _require_room_for(m, rows * columns)
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
    bias = _bias(m, m.first, m.b, between) @ v + _bias(m, m.second, m.c, columns)
    _require_room_for(m, rows * columns)
    new_bias = rw.const(bias, like=m.w) if bias.any() else None
    return rw.op.Gemm(m.x, rw.const(w @ v, like=m.w), new_bias, transA=m.first.attr("transA", 0))


def _bias(m: Match, gemm: Node, value: Value | None, width: int) -> np.ndarray:
    """The bias of a Gemm as it is added to each row, beta in it; zeros where there is none."""
    if value is None:
        return np.zeros(width)
    bias = m.f64(value) * float(gemm.attr("beta", 1.0))
    one_row = bias.size in (1, width) and bias.shape[:-1] in ((), (1,))
    m.require(one_row, "the rows have different biases")
    return np.broadcast_to(bias.reshape(-1), (width,))


def _require_room_for(m: Match, elements: int) -> None:
    """Refuses a merged constant of so many elements that, less those that die, grows the file too far."""
    dying = sum(constant_of(m, value).size for value in (m.w, m.v) if m.single_use(value))
    itemsize = constant_of(m, m.w).array.itemsize
    m.require(m.ctx.may_grow((elements - dying) * itemsize), "the growth budget is used up")


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
    _require_room_for(m, merged.size)
    new_bias = rw.const(bias, like=m.w) if bias.any() else None
    made: Value = rw.op.Conv(m.x, rw.const(merged, like=m.w), new_bias, **m.second.attributes)
    return made
