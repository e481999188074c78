"""com.microsoft operators that take and give quantized tensors: dequantize, compute, quantize."""

from __future__ import annotations

import numpy as np

from optimizer.runtime.call import Call
from optimizer.runtime.kernels.activation import leaky_relu
from optimizer.runtime.kernels.erf import in_blocks, sigmoid_into
from optimizer.runtime.kernels.pool import average_pool, global_average_pool
from optimizer.runtime.kernels.quant import MS
from optimizer.runtime.kernels.quant_linear import real, stored
from optimizer.runtime.kernels.softmax import softmax, softmax_flattened
from optimizer.runtime.precision import Array
from optimizer.runtime.registry import kernel

_ONE = "T float T float T; T: uint8 int8"
_TWO = "T float T T float T float T; T: uint8 int8"
"""Element types of a tensor (two tensors), its scale and zero point, and those of the result."""


@kernel("QLinearAdd", domain=MS, dtypes=_TWO)
@kernel("QLinearMul", domain=MS, dtypes=_TWO)
def qlinear_binary(
    call: Call,
    a: Array,
    a_scale: Array,
    a_zero: Array | None,
    b: Array,
    b_scale: Array,
    b_zero: Array | None,
    y_scale: Array,
    y_zero: Array | None = None,
) -> Array:
    """Sum or product of two quantized tensors, broadcast."""
    left, right = real(a, a_scale, a_zero), real(b, b_scale, b_zero)
    y = left + right if call.op_type == "QLinearAdd" else left * right
    return stored(np.asarray(y), y_scale, y_zero, a)


@kernel("QLinearSigmoid", domain=MS, dtypes=_ONE)
@kernel("QLinearLeakyRelu", domain=MS, dtypes=_ONE)
@kernel("QLinearSoftmax", domain=MS, dtypes=_ONE)
@kernel("QLinearAveragePool", domain=MS, dtypes=_ONE)
@kernel("QLinearGlobalAveragePool", domain=MS, dtypes=_ONE)
def qlinear_unary(
    call: Call,
    x: Array,
    x_scale: Array,
    x_zero: Array | None,
    y_scale: Array,
    y_zero: Array | None = None,
) -> Array:
    """One function of a quantized tensor. The pools know a channels_last layout."""
    value = real(x, x_scale, x_zero)
    last = bool(call.attr("channels_last", 0))
    if last:
        value = np.ascontiguousarray(np.moveaxis(value, -1, 1))
    y = _apply(call, value)
    return stored(np.moveaxis(y, 1, -1) if last else y, y_scale, y_zero, x)


def _apply(call: Call, x: Array) -> Array:
    if call.op_type == "QLinearSigmoid":
        return in_blocks(x, sigmoid_into)
    if call.op_type == "QLinearLeakyRelu":
        return np.asarray(leaky_relu(call, x))
    if call.op_type == "QLinearAveragePool":
        return np.asarray(average_pool(call, x))
    if call.op_type == "QLinearGlobalAveragePool":
        return np.asarray(global_average_pool(call, x))
    named = Call("Softmax", {"axis": call.attr("axis", -1)}, opset=call.attr("opset", 13))
    return np.asarray((softmax if named.opset >= 13 else softmax_flattened)(named, x))


@kernel("QLinearConcat", domain=MS, dtypes="float uint8|int8 uint8|int8|float...")
def qlinear_concat(call: Call, y_scale: Array, y_zero: Array, *tensors: Array) -> Array:
    """(tensor, scale, zero point) triples joined along ``axis`` in the result's own scale."""
    parts = [real(*tensors[i : i + 3]) for i in range(0, len(tensors), 3)]
    return stored(np.concatenate(parts, call.attr("axis")), y_scale, y_zero, tensors[0])
