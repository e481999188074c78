"""Matrix products of transposed operands, and transposes in front of a product's constant weights."""

from __future__ import annotations

from math import prod

import numpy as np

from optimizer.analysis import Dim
from optimizer.ir import Node, Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.affine import require_room
from passes.known import constant_of, known_sizes, rank_of, shape_of
from passes.view_chain import perm_of


@graph_optimizer(
    P.Transpose(P.MatMul("w", P.Transpose("x", name="inner").once()).once(), name="outer"),
    constants="w",
    tag="E2",
)
def turn_product_around(m: Match, rw: Rewriter) -> Value:
    """Transpose(MatMul(w, Transpose(x))) -> MatMul(x, Transpose(w)), of the last two axes"""
    _require_swap(m, m.inner)
    _require_swap(m, m.outer)
    w = constant_of(m, m.w)
    m.require(len(w.shape) == 2, "the weights are no matrix")
    require_room(m, m.w)
    return rw.op.MatMul(m.x, rw.const(np.ascontiguousarray(w.array.T)))


@graph_optimizer(
    P.MatMul(P.Transpose("a", name="left").once(), P.Transpose("b", name="right").once()), tag="E2"
)
def transpose_product(m: Match, rw: Rewriter) -> Value:
    """MatMul(Transpose(a), Transpose(b)) -> Transpose(MatMul(b, a)), of the last two axes"""
    _require_swap(m, m.left)
    _require_swap(m, m.right)
    rank = rank_of(m, m.a)
    m.require(rank_of(m, m.b) == rank, "the operands have different numbers of axes")
    return rw.op.Transpose(rw.op.MatMul(m.b, m.a), perm=[*range(rank - 2), rank - 1, rank - 2])


def _require_swap(m: Match, transpose: Node) -> None:
    rank = rank_of(m, transpose.value())
    perm = perm_of(transpose, rank)
    m.require(rank >= 2 and perm == (*range(rank - 2), rank - 1, rank - 2), "other axes are permuted")


# -------------------------------------------------------------------- rows that are images laid out flat

FLAT = P.one_of("Reshape", "Flatten")(
    P.Transpose("x", name="transpose").once(), P.rest("target"), name="flat"
).once()


@graph_optimizer(
    P.any_of(
        P.Gemm(FLAT, "w", P.maybe("c"), name="product"),
        P.MatMul(FLAT, "w", name="product"),
    ),
    constants="w",
    tag="E2",
)
def permute_rows_of_weights(m: Match, rw: Rewriter) -> Value:
    """Gemm(Flatten(Transpose(x)), w) -> Gemm(Flatten(x), w'), whose rows are in the order of x

    The first axis stays, and all others are laid out flat.
    """
    shape = shape_of(m, m.x)
    flat = shape_of(m, m.flat.value())
    perm = perm_of(m.transpose, len(shape))
    m.require(perm[0] == 0, "the first axis moves")
    sizes = known_sizes(shape[1:])
    if sizes is None or 0 in sizes:
        m.refuse("the size of a row is not known")
    rows = (shape[0], Dim.of(prod(sizes)))
    m.require(flat == rows, "not all is laid out flat")
    m.require(not m.product.attr("transA", 0), "the left operand is transposed")
    require_room(m, m.w)
    w, along = constant_of(m, m.w).array, 1 if m.product.attr("transB", 0) else 0
    m.require(w.ndim == 2, "the weights are no matrix")
    order = np.arange(prod(sizes)).reshape(sizes).transpose([axis - 1 for axis in perm[1:]])
    weights = rw.const(np.take(w, np.argsort(order.reshape(-1)), along))
    flattened = rw.op.Flatten(m.x, axis=1)
    if m.product.op_type == "MatMul":
        return rw.op.MatMul(flattened, weights)
    return rw.op.Gemm(flattened, weights, m.c, **m.product.attributes)
