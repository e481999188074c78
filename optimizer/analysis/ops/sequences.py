"""Sequences, optionals and text."""

from __future__ import annotations

from optimizer.analysis.context import InferContext, normal_axis
from optimizer.analysis.dims import Dim
from optimizer.analysis.elements import Elements
from optimizer.analysis.fact import UNKNOWN, VARYING, Fact
from optimizer.analysis.registry import infer
from optimizer.analysis.scopes import element_of, join_elements, varying
from optimizer.analysis.shapes import broadcast_shapes
from optimizer.ir import DType, OptionalType, SequenceType

__all__: list[str] = []


@infer("SequenceEmpty")
def sequence_empty(context: InferContext) -> Fact:
    return Fact.sequence(Fact(DType(context.attr("dtype", 1))))


@infer("SequenceConstruct")
def sequence_construct(context: InferContext) -> Fact:
    first, *others = [varying(fact or UNKNOWN) for fact in context.inputs]
    for other in others:
        first = join_elements(first, other)
    return Fact.sequence(first)


@infer("SequenceInsert")
def sequence_insert(context: InferContext) -> Fact:
    fact, added = context.inputs[0] or UNKNOWN, varying(context.inputs[1] or UNKNOWN)
    if fact.elem is None or (isinstance(fact.elem.type, SequenceType)):
        return Fact(type=fact.type)
    return Fact.sequence(join_elements(fact.elem, added))


@infer("SequenceErase")
def sequence_erase(context: InferContext) -> Fact:
    return context.inputs[0] or UNKNOWN


@infer("SequenceAt")
def sequence_at(context: InferContext) -> Fact:
    return element_of(context.inputs[0] or UNKNOWN)


@infer("SequenceLength")
def sequence_length(context: InferContext) -> Fact:
    return Fact(DType.INT64, (), Elements.scalar(Dim.fresh("length")))


@infer("SplitToSequence")
def split_to_sequence(context: InferContext) -> Fact:
    fact = (context.inputs[0] or UNKNOWN).without_value()
    if fact.shape is None:
        return Fact.sequence(Fact(fact.dtype))
    axis = context.axis(0, len(fact.shape))
    shape = list(fact.shape)
    if not context.has(1) and not context.attr("keepdims", 1):
        del shape[axis]
    else:
        shape[axis] = _part_size(context)
    return Fact.sequence(varying(Fact(fact.dtype, tuple(shape))))


def _part_size(context: InferContext) -> Dim:
    if not context.has(1):
        return Dim.of(1)
    sizes = context.ints(1)
    same = sizes is not None and context.rank(1) == 1 and len(set(sizes)) == 1
    return Dim.of(sizes[0]) if sizes is not None and same else VARYING


@infer("ConcatFromSequence")
def concat_from_sequence(context: InferContext) -> Fact:
    """The elements may differ along the axis; in number, always."""
    elem = element_of(context.inputs[0] or UNKNOWN)
    if elem.shape is None:
        return Fact(elem.dtype)
    new = bool(context.attr("new_axis", 0))
    axis = normal_axis(context.attr("axis", 0), len(elem.shape) + new)
    joined = Dim.fresh("joined")
    return Fact(elem.dtype, (*elem.shape[:axis], joined, *elem.shape[axis + (not new) :]))


@infer("Optional")
def optional(context: InferContext) -> Fact:
    declared = context.attr("type")
    if context.has(0):
        return Fact.optional(context.inputs[0] or UNKNOWN)
    return Fact(type=OptionalType(declared))


@infer("OptionalGetElement")
def optional_get_element(context: InferContext) -> Fact:
    fact = context.inputs[0] or UNKNOWN
    return element_of(fact) if isinstance(fact.type, OptionalType) else fact


@infer("OptionalHasElement")
def optional_has_element(context: InferContext) -> Fact:
    fact = context.fact(0)
    sure = fact is None or (fact.type is None and fact.dtype is not None)
    return Fact(DType.BOOL, (), Elements.scalar(fact is not None) if sure else None)


@infer("StringNormalizer")
def string_normalizer(context: InferContext) -> Fact:
    """Stop words are dropped from the last axis; without any, an empty result still has one element."""
    shape = context.shape(0)
    if shape and not context.attr("stopwords") and shape[-1].bounds[0] >= 1:
        return Fact(DType.STRING, shape)
    return Fact(DType.STRING, None if not shape else (*shape[:-1], Dim.fresh("words")))


@infer("StringConcat")
def string_concat(context: InferContext) -> Fact:
    return Fact(DType.STRING, broadcast_shapes(context.shape(0), context.shape(1)))


@infer("RegexFullMatch")
def regex_full_match(context: InferContext) -> Fact:
    return Fact(DType.BOOL, context.shape(0))


@infer("StringSplit")
def string_split(context: InferContext) -> list[Fact]:
    shape = context.shape(0)
    if shape is None:
        return [Fact(DType.STRING), Fact(DType.INT64)]
    return [Fact(DType.STRING, (*shape, Dim.fresh("parts"))), Fact(DType.INT64, shape)]
