"""Operators that make tensors from shapes, attributes or numbers."""

from __future__ import annotations

import math

import numpy as np

from optimizer.analysis import arithmetic
from optimizer.analysis.computed import maximum
from optimizer.analysis.context import InferContext, normal_axis
from optimizer.analysis.dims import Dim
from optimizer.analysis.elements import MAX_ELEMENTS, Elements
from optimizer.analysis.fact import UNKNOWN, Fact, Shape
from optimizer.analysis.registry import infer
from optimizer.ir import DType, SparseTensor, Tensor

__all__: list[str] = []


@infer("Shape")
def shape(context: InferContext) -> Fact:
    """The dims themselves are the contents."""
    source = context.shape(0)
    if source is None:
        return Fact(DType.INT64, (Dim.fresh("rank"),))
    start, end = context.attr("start", 0), context.attr("end", len(source))
    context.facts.note_sizes(source)
    part = source[start:end] if start > -len(source) or start >= 0 else source[0:end]
    told = [arithmetic.checked(dim, DType.INT64) for dim in part]
    return Fact(DType.INT64, (Dim.of(len(part)),), Elements.of(told))


@infer("Size")
def size(context: InferContext) -> Fact:
    total = (context.inputs[0] or UNKNOWN).numel
    known = None if total is None else arithmetic.checked(total, DType.INT64)
    return Fact(DType.INT64, (), None if known is None else Elements.scalar(known))


@infer("Constant")
def constant(context: InferContext) -> Fact:
    for name, attribute in context.node.attributes.items():
        value = context.attr(name)
        if isinstance(value, SparseTensor):
            return Fact.tensor(value.values.dtype, value.shape)
        if not isinstance(value, Tensor):
            kind = attribute.kind.name
            dtype = np.float32 if kind.startswith("FLOAT") else np.int64 if kind.startswith("INT") else object
            value = Tensor.of(np.array(value, dtype=dtype))
        return Fact.tensor(value.dtype, value.shape, Elements.of_tensor(value))
    return UNKNOWN


@infer("ConstantOfShape")
def constant_of_shape(context: InferContext) -> Fact:
    filler = context.attr("value")
    dtype = filler.dtype if filler is not None else DType.FLOAT
    dims = context.dims(0)
    if dims is None:
        return Fact(dtype)
    made = tuple(Dim.fresh("shape") if d is None else d for d in dims)
    fact = Fact(dtype, made)
    sizes = fact.static_shape
    if sizes is None or math.prod(sizes) > MAX_ELEMENTS:
        return fact
    one = Elements.of_tensor(filler if filler is not None else Tensor.of(np.zeros(1, np.float32)))
    count = math.prod(sizes)
    return fact if one is None else Fact(dtype, made, Elements.of(one.items * count, sizes))


@infer("Range")
def range_(context: InferContext) -> Fact:
    """``max(ceil((limit - start) / delta), 0)`` elements."""
    dtype = context.dtype(0)
    first = [None if v is None or v.array.size != 1 else v.items[0] for v in map(context.value, range(3))]
    start, limit, delta = first
    if isinstance(start, float) and isinstance(limit, float) and isinstance(delta, float):
        return Fact(dtype, (_float_count(start, limit, delta),))
    if (
        not isinstance(start, Dim)
        or not isinstance(limit, Dim)
        or not isinstance(delta, Dim)
        or not delta.value
    ):
        return Fact(dtype, (Dim.fresh("range"),))
    length = maximum((limit - start).ceil_div(delta), 0)
    value = None
    if length.value is not None and length.value <= MAX_ELEMENTS:
        value = Elements.of([start + delta * i for i in range(length.value)])
    return Fact(dtype, (length,), value)


def _float_count(start: float, limit: float, delta: float) -> Dim:
    """Runtimes may divide in another precision: a quotient just beside a whole number is left open."""
    exact = (limit - start) / delta if delta and math.isfinite(limit - start) else math.nan
    if not math.isfinite(exact):
        return Dim.fresh("range")
    near = exact != round(exact) and abs(exact - round(exact)) < 1e-3 * max(1.0, abs(exact))
    return Dim.fresh("range") if near else Dim.of(max(math.ceil(exact), 0))


@infer("EyeLike", "RandomNormalLike", "RandomUniformLike", "Bernoulli")
def like(context: InferContext) -> Fact:
    fact = context.inputs[0] or UNKNOWN
    number = context.attr("dtype")
    return fact.of_dtype(fact.dtype if number is None else DType(number))


@infer("RandomNormal", "RandomUniform")
def random(context: InferContext) -> Fact:
    return Fact.tensor(DType(context.attr("dtype", 1)), context.attr("shape"))


@infer("Multinomial")
def multinomial(context: InferContext) -> Fact:
    batch = context.shape(0)
    rows = batch[0] if batch else Dim.fresh("multinomial")
    return Fact.tensor(DType(context.attr("dtype", 6)), (rows, context.attr("sample_size", 1)))


@infer("OneHot")
def one_hot(context: InferContext) -> Fact:
    indices, depth = context.shape(0), context.dims(1)
    dtype = context.dtype(2)
    if indices is None:
        return Fact(dtype)
    axis = normal_axis(context.attr("axis", -1), len(indices) + 1)
    known = depth[0] if depth else None
    made: Shape = (*indices[:axis], known or Dim.fresh("depth"), *indices[axis:])
    return Fact(dtype, made)


@infer("HannWindow", "HammingWindow", "BlackmanWindow")
def window(context: InferContext) -> Fact:
    length = context.dims(0)
    known = length[0] if length else None
    return Fact(DType(context.attr("output_datatype", 1)), (known or Dim.fresh("window"),))
