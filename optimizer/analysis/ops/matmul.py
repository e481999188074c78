"""Matrix products."""

from __future__ import annotations

from optimizer.analysis.context import Inconsistent, InferContext
from optimizer.analysis.dims import Dim
from optimizer.analysis.fact import Fact, Shape
from optimizer.analysis.registry import infer
from optimizer.analysis.shapes import broadcast_shapes
from optimizer.ir import DType

__all__ = ["matmul_shape"]


def matmul_shape(context: InferContext, a: Shape | None, b: Shape | None) -> Shape | None:
    """The shape of ``numpy.matmul``.

    Raises:
        Inconsistent: a scalar, or inner dimensions that differ.
    """
    if a is None or b is None:
        return None
    if not a or not b:
        raise Inconsistent("a scalar in a matrix product")
    _require_same(context, a[-1], b[-2] if len(b) > 1 else b[-1])
    batch = broadcast_shapes(a[:-2], b[:-2])
    assert batch is not None
    return (*batch, *a[-2:-1], *(b[-1:] if len(b) > 1 else ()))


def _require_same(context: InferContext, inner: Dim, other: Dim) -> None:
    if inner.eq(other) is False:
        raise Inconsistent(f"inner dimensions {inner} and {other}")
    context.demand(inner, other)


@infer("MatMul")
def matmul(context: InferContext) -> Fact:
    return Fact(context.dtype(0), matmul_shape(context, context.shape(0), context.shape(1)))


@infer("MatMulInteger")
def matmul_integer(context: InferContext) -> Fact:
    return Fact(DType.INT32, matmul_shape(context, context.shape(0), context.shape(1)))


@infer("QLinearMatMul")
def qlinear_matmul(context: InferContext) -> Fact:
    return Fact(context.dtype(7), matmul_shape(context, context.shape(0), context.shape(3)))


@infer("Gemm")
def gemm(context: InferContext) -> Fact:
    a, b = context.shape(0), context.shape(1)
    if (a is not None and len(a) != 2) or (b is not None and len(b) != 2):
        raise Inconsistent("an input that is not a matrix")
    trans_a, trans_b = context.attr("transA", 0), context.attr("transB", 0)
    rows = Dim.fresh("gemm") if a is None else a[1 if trans_a else 0]
    columns = Dim.fresh("gemm") if b is None else b[0 if trans_b else 1]
    if a is not None and b is not None:
        _require_same(context, a[0 if trans_a else 1], b[1 if trans_b else 0])
    return Fact(context.dtype(0), (rows, columns))


@infer("Det")
def det(context: InferContext) -> Fact:
    shape = context.shape(0)
    return Fact(context.dtype(0), None if shape is None else shape[:-2])


@infer("Einsum")
def einsum(context: InferContext) -> Fact:
    """A label's dimension is the same wherever it stands, or 1 and stretched."""
    equation = context.attr("equation", "").replace(" ", "")
    left, _, right = equation.partition("->")
    terms = left.split(",")
    shapes = [context.shape(k) for k in range(len(terms))]
    if any(shape is None for shape in shapes):
        return Fact(context.dtype(0))
    sizes: dict[str, Dim] = {}
    rest: Shape = ()
    for term, shape in zip(terms, shapes, strict=True):
        assert shape is not None
        rest = _bind(term, shape, sizes, rest)
    if "->" not in equation:
        labels = "".join(terms).replace(".", "")
        right = ("..." if "..." in left else "") + "".join(
            sorted(c for c in set(labels) if labels.count(c) == 1)
        )
    head, dots, tail = right.partition("...")
    return Fact(
        context.dtype(0), (*(sizes[c] for c in head), *(rest if dots else ()), *(sizes[c] for c in tail))
    )


def _bind(term: str, shape: Shape, sizes: dict[str, Dim], rest: Shape) -> Shape:
    """Notes the size of each label of one operand; returns what ``...`` stands for so far."""
    head, dots, tail = term.partition("...")
    if len(head) + len(tail) > len(shape) or (not dots and len(head) != len(shape)):
        raise Inconsistent(f"'{term}' for rank {len(shape)}")
    ends = shape[len(shape) - len(tail) :] if tail else ()
    for label, dim in (*zip(head, shape, strict=False), *zip(tail, ends, strict=True)):
        merged = broadcast_shapes((sizes.get(label, dim),), (dim,))
        assert merged is not None
        sizes[label] = merged[0]
    if not dots:
        return rest
    return broadcast_shapes(rest, shape[len(head) : len(shape) - len(tail)]) or ()
