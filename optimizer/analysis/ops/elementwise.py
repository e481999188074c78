"""Elementwise operators: the shape broadcasts, small contents are computed."""

from __future__ import annotations

from collections.abc import Callable

from optimizer.analysis import arithmetic
from optimizer.analysis.context import InferContext
from optimizer.analysis.dims import Dim
from optimizer.analysis.elements import Element, Elements
from optimizer.analysis.fact import UNKNOWN, Fact, Shape
from optimizer.analysis.registry import infer
from optimizer.analysis.shapes import broadcast_shapes
from optimizer.ir import DType

# fmt: off
SAME_TYPE = (
    "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BitwiseNot", "Celu", "Cos", "Cosh",
    "CumProd", "CumSum", "Elu", "Erf", "Exp", "Gelu", "HardSigmoid", "HardSwish", "Hardmax", "LRN",
    "LeakyRelu", "Log", "LogSoftmax", "LpNormalization", "MeanVarianceNormalization", "Mish",
    "Reciprocal", "Relu", "RotaryEmbedding", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh",
    "Softmax", "Softplus", "Softsign", "Sqrt", "SwiGLU", "Swish", "Tan", "Tanh", "ThresholdedRelu", "Trilu",
)
# fmt: on


@infer(*SAME_TYPE)
def same_as_input(context: InferContext) -> Fact:
    """Output of the type and shape of the first input."""
    fact = context.inputs[0] or UNKNOWN
    return fact if fact.value is None else fact.without_value()


@infer("Identity")
def identity(context: InferContext) -> Fact:
    """The same fact, contents and all."""
    return context.inputs[0] or UNKNOWN


_UNARY: dict[str, Callable[[Element], Element]] = {
    "Abs": arithmetic.absolute,
    "Ceil": arithmetic.ceiled,
    "Floor": arithmetic.floored,
    "Neg": arithmetic.negated,
    "Not": arithmetic.inverted,
    "Round": arithmetic.rounded,
}


@infer(*_UNARY)
def unary(context: InferContext) -> Fact:
    """Output of the type and shape of the input, contents computed."""
    fact = context.inputs[0] or UNKNOWN
    if fact.value is None:
        return fact
    return Fact(
        fact.dtype, fact.shape, arithmetic.elementwise(_UNARY[context.node.op_type], [fact.value], fact.dtype)
    )


_BINARY: dict[str, Callable[[Element, Element], Element]] = {
    "Add": arithmetic.plus,
    "Sub": arithmetic.minus,
    "Mul": arithmetic.times,
    "Div": arithmetic.divided,
    "Pow": arithmetic.power,
    "And": arithmetic.both,
    "Or": arithmetic.either,
    "Xor": arithmetic.exclusive,
    "Max": arithmetic.larger,
    "Min": arithmetic.smaller,
}
_COMPARISONS: dict[str, Callable[[Element, Element], Element]] = {
    "Equal": arithmetic.equal,
    "Less": arithmetic.less,
    "LessOrEqual": arithmetic.less_or_equal,
    "Greater": lambda a, b: arithmetic.less(b, a),
    "GreaterOrEqual": lambda a, b: arithmetic.less_or_equal(b, a),
}


@infer("Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", since=7)
@infer("PRelu", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", since=7)
def binary(context: InferContext) -> Fact:
    """Multidirectional broadcasting of two inputs of one type."""
    a, b = _two(context)
    if a.value is None or b.value is None or context.node.op_type not in _BINARY:
        if a.shape is b.shape and a.dtype is not None and a.value is None:
            return a
        return Fact(a.dtype if a.dtype is not None else b.dtype, broadcast_shapes(a.shape, b.shape))
    function = _BINARY[context.node.op_type]
    dtype = a.dtype if a.dtype is not None else b.dtype
    return Fact(
        dtype, broadcast_shapes(a.shape, b.shape), arithmetic.elementwise(function, [a.value, b.value], dtype)
    )


@infer("PRelu", since=7)
def prelu(context: InferContext) -> Fact:
    """The slope broadcasts to the input, never the other way."""
    return (context.inputs[0] or UNKNOWN).without_value()


@infer("Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor")
@infer("PRelu")
def binary_before_broadcasting(context: InferContext) -> Fact:
    """Before opset 7 the second input was stretched to the first, by request."""
    return (context.inputs[0] or UNKNOWN).without_value()


@infer(*_COMPARISONS, since=7)
def comparison(context: InferContext) -> Fact:
    """Multidirectional broadcasting, truth values out."""
    a, b = _two(context)
    value = None
    if a.value is not None and b.value is not None:
        function = _COMPARISONS[context.node.op_type]
        value = arithmetic.elementwise(_of_sizes(context, function), [a.value, b.value], DType.BOOL)
    return Fact(DType.BOOL, broadcast_shapes(a.shape, b.shape), value)


def _of_sizes(
    context: InferContext, compare: Callable[[Element, Element], Element]
) -> Callable[[Element, Element], Element]:
    """``compare``, knowing that the size of an axis is never negative."""

    def compared(a: Element, b: Element) -> Element:
        result = compare(a, b)
        if result is None and isinstance(a, Dim) and isinstance(b, Dim) and (a.is_const or b.is_const):
            some = Dim.fresh("size")
            if context.facts.is_size(a if b.is_const else b):
                result = compare(some, b) if b.is_const else compare(a, some)
        return result

    return compared


@infer("Equal", "Less", "Greater")
def comparison_before_broadcasting(context: InferContext) -> Fact:
    """Before opset 7 the second input was stretched to the first."""
    return Fact(DType.BOOL, context.shape(0))


@infer("Mod")
def modulo(context: InferContext) -> Fact:
    """Sign of the divisor, or with ``fmod`` of the dividend."""
    a, b = _two(context)
    function = arithmetic.truncated_remainder if context.attr("fmod", 0) else arithmetic.remainder
    value = arithmetic.elementwise(function, [a.value, b.value], a.dtype)
    return Fact(a.dtype, broadcast_shapes(a.shape, b.shape), value)


@infer("Max", "Min", "Mean", "Sum")
def variadic(context: InferContext) -> Fact:
    """Multidirectional broadcasting of any number of inputs."""
    facts = [fact or UNKNOWN for fact in context.inputs]
    dtype = next((fact.dtype for fact in facts if fact.dtype is not None), None)
    shape: Shape | None = facts[0].shape
    value: Elements | None = facts[0].value
    function = _BINARY.get(context.node.op_type, arithmetic.plus)
    if context.node.op_type == "Mean":
        value = None
    for fact in facts[1:]:
        shape = broadcast_shapes(shape, fact.shape)
        value = arithmetic.elementwise(function, [value, fact.value], dtype)
    return Fact(dtype, shape, value)


@infer("Where")
def where(context: InferContext) -> Fact:
    """Broadcasting of condition and both choices."""
    condition, a, b = (fact or UNKNOWN for fact in context.inputs)
    dtype = a.dtype if a.dtype is not None else b.dtype
    value = arithmetic.elementwise(arithmetic.chosen, [condition.value, a.value, b.value], dtype)
    if value is None and condition.value is not None:
        value = _one_side(condition.value, a, b)
    return Fact(dtype, broadcast_shapes(condition.shape, a.shape, b.shape), value)


def _one_side(condition: Elements, a: Fact, b: Fact) -> Elements | None:
    """The contents where the condition always takes the same side and nothing is stretched."""
    picks = set(condition.items)
    side = a if picks == {True} else b if picks == {False} else None
    shape = broadcast_shapes(a.shape, b.shape)
    if side is None or side.value is None or shape is None:
        return None
    same = side.shape == shape and len(condition.shape) <= len(shape)
    return side.value if same and broadcast_shapes(tuple(side.shape or ()), shape) == shape else None


@infer("Clip")
def clip(context: InferContext) -> Fact:
    """Limits by inputs (opset 11) are applied to small integer contents."""
    fact = context.inputs[0] or UNKNOWN
    value = fact.value
    for index, function in ((1, arithmetic.larger), (2, arithmetic.smaller)):
        if context.has(index) and value is not None:
            value = arithmetic.elementwise(function, [value, context.value(index)], fact.dtype)
    if not context.has(1) and not context.has(2) and context.node.attributes:
        value = None
    return Fact(fact.dtype, fact.shape, value)


@infer("Cast", "CastLike")
def cast(context: InferContext) -> Fact:
    """Numbers keep their values between the wide types."""
    fact = context.inputs[0] or UNKNOWN
    if context.node.op_type == "CastLike":
        target = context.dtype(1)
    else:
        target = _dtype_of(context.attr("to"))
    if target is None or fact.value is None:
        return fact.of_dtype(target)
    value = arithmetic.elementwise(
        lambda a: None if a is None else arithmetic.cast(a, fact.dtype, target), [fact.value], target
    )
    return Fact(target, fact.shape, value)


@infer("BitCast")
def bit_cast(context: InferContext) -> Fact:
    """The same bits as another type of the same width."""
    return Fact(_dtype_of(context.attr("to")), context.shape(0))


@infer("IsNaN", "IsInf")
def test(context: InferContext) -> Fact:
    """A truth value for each element."""
    return (context.inputs[0] or UNKNOWN).of_dtype(DType.BOOL)


@infer("Dropout")
def dropout(context: InferContext) -> list[Fact]:
    """The mask is of the input's type before opset 10."""
    fact = (context.inputs[0] or UNKNOWN).without_value()
    return [fact, fact.of_dtype(DType.BOOL if context.opset >= 10 else fact.dtype)]


def _two(context: InferContext) -> tuple[Fact, Fact]:
    a, b = context.inputs
    return a or UNKNOWN, b or UNKNOWN


def _dtype_of(number: object) -> DType | None:
    try:
        return (
            DType[number] if isinstance(number, str) else DType(number) if isinstance(number, int) else None
        )
    except (KeyError, ValueError):
        return None
