"""Einsum as the matrix product, sum or permutation that it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optimizer.ir import Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.known import FLOATS, rank_of


@graph_optimizer(P.Einsum("x", name="einsum"), tag="E2")
def replace_einsum_of_one(m: Match, rw: Rewriter) -> Value:
    """Einsum<"ij->ji">(x) -> Transpose(x), and Einsum<"ij->i">(x) -> ReduceSum(x)"""
    (labels,), result = _labels(m, 1)
    left = [a for a in labels if a in result]
    gone = [i for i, a in enumerate(labels) if a not in result]
    m.require(not gone or left == list(result), "it sums and permutes")
    if not gone:
        perm = [labels.index(a) for a in result]
        x: Value = m.x
        return x if perm == sorted(perm) else rw.op.Transpose(m.x, perm=perm)
    m.require(m.dtype(m.x) in FLOATS, "not a float")
    if m.opset() < 13:
        return rw.op.ReduceSum(m.x, axes=gone, keepdims=0)
    return rw.op.ReduceSum(m.x, rw.const(np.array(gone, np.int64)), keepdims=0)


@dataclass(frozen=True, slots=True)
class _Product:
    """Labels of a matrix product: common to all three, of one operand and the result, contracted."""

    batch: str
    left: str
    right: str
    inner: str


@graph_optimizer(P.Einsum("a", "b", name="einsum"), tag="E2")
def replace_einsum_by_matmul(m: Match, rw: Rewriter) -> Value:
    """Einsum<"bik,bkj->bij">(a, b) -> MatMul(a, b), with Transposes where the axes lie otherwise"""
    (first, second), result = _labels(m, 2)
    m.require(m.dtype(m.a) in FLOATS, "not a float")
    product = _product_of(m, first, second, result)
    dims = [
        dict(zip(names, m.shape(value) or (), strict=False)) for names, value in ((first, m.a), (second, m.b))
    ]
    shared = product.batch + product.inner
    m.require(
        all(a in dims[0] and dims[0][a] == dims[1].get(a) for a in shared), "shared axes may be broadcast"
    )
    left = product.batch + product.left + product.inner
    right = product.batch + product.inner + product.right
    made = product.batch + product.left + product.right
    c = rw.op.MatMul(_operand(m, rw, m.a, first, left), _operand(m, rw, m.b, second, right))
    perm = _perm(made, result)
    return c if perm is None else rw.op.Transpose(c, perm=perm)


def _labels(m: Match, count: int) -> tuple[list[str], str]:
    """The labels of each operand and of the result.

    Raises:
        Refusal: a label occurs twice in one term, or there is an ellipsis.
    """
    left, arrow, result = str(m.einsum.attr("equation")).replace(" ", "").partition("->")
    terms = left.split(",")
    explicit = arrow and "." not in left and len(terms) == count and set(result) <= set("".join(terms))
    m.require(explicit, "the equation leaves axes open")
    plain = all(len(set(term)) == len(term) for term in (*terms, result))
    m.require(plain, "a label occurs twice in one term")
    ranks = [None if value is None else rank_of(m, value) for value in m.root.inputs]
    m.require(ranks == [len(term) for term in terms], "the equation leaves axes open")
    return terms, result


def _product_of(m: Match, first: str, second: str, result: str) -> _Product:
    both = [a for a in first if a in second]
    batch = "".join(a for a in result if a in both)
    inner = "".join(a for a in both if a not in result)
    left = "".join(a for a in result if a in first and a not in both)
    right = "".join(a for a in result if a in second and a not in both)
    m.require(len(batch + left + inner) == len(first), "a label of one operand alone is summed")
    m.require(len(batch + right + inner) == len(second), "a label of one operand alone is summed")
    single = len(right) == len(inner) == 1 and (len(left) == 1 or (left and not batch))
    m.require(single, "it is no matrix product")
    return _Product(batch, left, right, inner)


def _perm(have: str, want: str) -> list[int] | None:
    perm = [have.index(label) for label in want]
    return None if perm == sorted(perm) else perm


def _operand(m: Match, rw: Rewriter, value: Value, have: str, want: str) -> Value:
    """An operand with axes labelled ``have`` in the order ``want``; a constant is permuted in the file."""
    perm, array = _perm(have, want), m.array(value)
    if perm is None:
        return value
    return rw.op.Transpose(value, perm=perm) if array is None else rw.const(array.transpose(perm).copy())
