"""Quantization."""

from __future__ import annotations

from optimizer.analysis.context import InferContext
from optimizer.analysis.fact import UNKNOWN, Fact
from optimizer.analysis.registry import infer
from optimizer.ir import DType

__all__: list[str] = []


@infer("QuantizeLinear")
@infer("QuantizeLinear", domain="com.microsoft")
def quantize_linear(context: InferContext) -> Fact:
    """The type of the zero point, or of an attribute, or uint8."""
    fact = context.inputs[0] or UNKNOWN
    if context.has(2):
        return fact.of_dtype(context.dtype(2))
    return fact.of_dtype(DType(context.attr("output_dtype", 0) or DType.UINT8))


@infer("DequantizeLinear")
@infer("DequantizeLinear", domain="com.microsoft")
def dequantize_linear(context: InferContext) -> Fact:
    """The type of the scale, or of an attribute."""
    number = context.attr("output_dtype", 0)
    return (context.inputs[0] or UNKNOWN).of_dtype(DType(number) if number else context.dtype(1))


@infer("DynamicQuantizeLinear")
def dynamic_quantize_linear(context: InferContext) -> list[Fact]:
    fact = context.inputs[0] or UNKNOWN
    return [fact.of_dtype(DType.UINT8), Fact(DType.FLOAT, ()), Fact(DType.UINT8, ())]
