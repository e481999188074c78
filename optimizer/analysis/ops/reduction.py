"""Reductions, and operators that look for the largest or smallest along an axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from optimizer.analysis import arithmetic
from optimizer.analysis.context import InferContext, fresh_shape, normal_axis
from optimizer.analysis.dims import Dim
from optimizer.analysis.elements import Element, Elements
from optimizer.analysis.fact import UNKNOWN, Fact, Shape
from optimizer.analysis.registry import infer
from optimizer.ir import DType

__all__ = ["reduced", "reduced_by_attribute"]

ONE = Dim.of(1)

_FOLDS: dict[str, Callable[[Element, Element], Element]] = {
    "ReduceProd": arithmetic.times,
    "ReduceSum": arithmetic.plus,
    "ReduceMax": arithmetic.larger,
    "ReduceMin": arithmetic.smaller,
}


@infer(
    *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean"),
    *("ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"),
)
def reduce(context: InferContext) -> Fact:
    """Axes by attribute or, in newer versions, by input; none means all unless told otherwise."""
    fact = context.inputs[0] or UNKNOWN
    if fact.shape is None:
        return Fact(fact.dtype)
    keep = bool(context.attr("keepdims", 1))
    axes = context.ints_of("axes", 1)
    if not axes and context.attr("noop_with_empty_axes", 0) and (axes is not None or not context.has(1)):
        return fact
    if axes is None and context.has(1):
        count = context.dims(1)
        if keep:
            return Fact(fact.dtype, fresh_shape(len(fact.shape), "reduce"))
        left = None if not count or context.attr("noop_with_empty_axes", 0) else len(fact.shape) - len(count)
        return Fact(fact.dtype, None if left is None else fresh_shape(left, "reduce"))
    gone = {normal_axis(a, len(fact.shape)) for a in axes or range(len(fact.shape))}
    shape = reduced(fact.shape, gone, keep)
    return Fact(fact.dtype, shape, _folded(context, fact, shape))


def reduced(shape: Shape, axes: set[int], keep: bool) -> Shape:
    """``shape`` with ``axes`` made 1, or dropped."""
    if keep:
        return tuple(ONE if axis in axes else dim for axis, dim in enumerate(shape))
    return tuple(dim for axis, dim in enumerate(shape) if axis not in axes)


def _folded(context: InferContext, fact: Fact, shape: Shape) -> Elements | None:
    """The contents, where one number is left of a small integer tensor."""
    function = _FOLDS.get(context.node.op_type)
    if fact.value is None or function is None or any(d.value != 1 for d in shape) or not fact.value.items:
        return None
    total, *others = fact.value.items
    for item in others:
        total = arithmetic.checked(function(total, item), fact.dtype)
    return Elements.of([total], [1] * len(shape))


def reduced_by_attribute(context: InferContext) -> Shape | None:
    """The shape of a reduction whose axes are an attribute."""
    shape = context.shape(0)
    if shape is None:
        return None
    axes = context.attr("axes") or range(len(shape))
    gone = {normal_axis(axis, len(shape)) for axis in axes}
    return reduced(shape, gone, bool(context.attr("keepdims", 1)))


@infer("ArgMax", "ArgMin")
def arg_extreme(context: InferContext) -> Fact:
    shape = context.shape(0)
    if shape is None:
        return Fact(DType.INT64)
    return Fact(DType.INT64, reduced(shape, {context.axis(0, len(shape))}, bool(context.attr("keepdims", 1))))


@infer("TopK")
def top_k(context: InferContext) -> list[Fact]:
    fact = context.inputs[0] or UNKNOWN
    if fact.shape is None:
        return [Fact(fact.dtype), Fact(DType.INT64)]
    axis = context.axis(-1, len(fact.shape))
    given = context.attr("k")
    wanted: Sequence[Dim | None] | None = [Dim.of(given)] if given is not None else context.dims(1)
    count = wanted[0] if wanted else None
    shape = (*fact.shape[:axis], count or Dim.fresh("k"), *fact.shape[axis + 1 :])
    return [Fact(fact.dtype, shape), Fact(DType.INT64, shape)]


@infer("NonZero")
def non_zero(context: InferContext) -> Fact:
    fact = context.inputs[0] or UNKNOWN
    if fact.rank == 1 and fact.value is not None:
        known = [
            arithmetic.cast(item, fact.dtype, DType.BOOL) if item is not None else None
            for item in fact.value.items
        ]
        if None not in known:
            places = [index for index, item in enumerate(known) if item]
            return Fact.tensor(DType.INT64, (1, len(places)), Elements.of(places, (1, len(places))))
    rank = Dim.of(fact.rank) if fact.rank else Dim.fresh("rank")
    return Fact(DType.INT64, (rank, Dim.fresh("nonzero")))


@infer("Unique")
def unique(context: InferContext) -> list[Fact]:
    fact, count = context.inputs[0] or UNKNOWN, Dim.fresh("unique")
    axis = context.attr("axis")
    shape: Shape | None = (count,)
    inverse = fact.numel if axis is None else None
    if axis is not None:
        shape = None
        if fact.shape is not None:
            axis = normal_axis(axis, len(fact.shape))
            inverse = fact.shape[axis]
            shape = (*fact.shape[:axis], count, *fact.shape[axis + 1 :])
    index = Fact(DType.INT64, (count,))
    return [Fact(fact.dtype, shape), index, Fact(DType.INT64, (inverse or Dim.fresh("unique"),)), index]


@infer("NonMaxSuppression")
def non_max_suppression(context: InferContext) -> Fact:
    return Fact(DType.INT64, (Dim.fresh("selected"), Dim.of(3)))


@infer("TfIdfVectorizer")
def tf_idf_vectorizer(context: InferContext) -> Fact:
    """A column for each place that an n-gram counts at."""
    shape, places = context.shape(0), context.attr("ngram_indexes", ())
    columns = Dim.of(max(places) + 1 if places else 0)
    return Fact(DType.FLOAT, None if shape is None else (*shape[:-1], columns))


@infer("NegativeLogLikelihoodLoss")
def negative_log_likelihood_loss(context: InferContext) -> Fact:
    """A number, or one for each target."""
    shape = context.shape(1) if context.attr("reduction", "mean") == "none" else ()
    return Fact(context.dtype(0), shape)


@infer("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy_loss(context: InferContext) -> list[Fact]:
    """A number, or one for each label; and the logarithms of probability."""
    shape = context.shape(1) if context.attr("reduction", "mean") == "none" else ()
    return [Fact(context.dtype(0), shape), Fact(context.dtype(0), context.shape(0))]
