"""com.microsoft: Conv, Gemm and MatMul with what onnxruntime's optimizer fuses into them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from optimizer.runtime.call import Call
from optimizer.runtime.kernels.conv import conv
from optimizer.runtime.kernels.erf import in_blocks, sigmoid_into
from optimizer.runtime.kernels.linear import gemm_of, product
from optimizer.runtime.kernels.quant import FLOATS, MS
from optimizer.runtime.precision import Array, computed_wide
from optimizer.runtime.registry import kernel


def activated(y: Array, name: str, parameters: Sequence[float]) -> Array:
    """``y`` through a fused activation; ``parameters`` in the order of its own operator's attributes.

    Raises:
        ValueError: unknown activation.
    """
    first = y.dtype.type(parameters[0]) if parameters else None
    second = y.dtype.type(parameters[1]) if len(parameters) > 1 else None
    zero = y.dtype.type(0)

    def hard_sigmoid(v: Array) -> Array:
        alpha = y.dtype.type(0.2) if first is None else first
        beta = y.dtype.type(0.5) if second is None else second
        return np.asarray(np.clip(v * alpha + beta, 0, 1))

    table: dict[str, Callable[[Array], Array]] = {
        "": lambda v: v,
        "Relu": lambda v: np.maximum(v, zero),
        "Sigmoid": lambda v: in_blocks(v, sigmoid_into),
        "Tanh": np.tanh,
        "LeakyRelu": lambda v: np.where(v >= 0, v, v * (y.dtype.type(0.01) if first is None else first)),
        "Clip": lambda v: np.clip(v, first, second),
        "HardSigmoid": hard_sigmoid,
    }
    if name not in table:
        raise ValueError(f"unknown activation {name!r}")
    return np.asarray(table[name](y))


@kernel("FusedConv", domain=MS, dtypes="T...; T: float float16 double")
@computed_wide
def fused_conv(call: Call, x: Array, w: Array, b: Array | None = None, z: Array | None = None) -> Array:
    """activation(Conv(X, W) + B + Z)."""
    y = conv(call, x, w, b)
    if z is not None:
        y = y + z
    return activated(y, call.attr("activation", ""), call.attr("activation_params") or ())


@kernel("NhwcFusedConv", domain=MS, dtypes="T...; T: float float16")
@computed_wide
def nhwc_fused_conv(call: Call, x: Array, w: Array, b: Array | None = None, z: Array | None = None) -> Array:
    """FusedConv of channels-last X and Z; W as usual."""
    first = np.ascontiguousarray(np.moveaxis(x, -1, 1))
    y = np.moveaxis(conv(call, first, w, b), 1, -1)
    if z is not None:
        y = y + z
    return activated(
        np.ascontiguousarray(y), call.attr("activation", ""), call.attr("activation_params") or ()
    )


@kernel("FusedGemm", domain=MS, dtypes="T...; T: float float16 double uint32 uint64 int32 int64")
@computed_wide
def fused_gemm(call: Call, a: Array, b: Array, c: Array | None = None) -> Array:
    """activation(Gemm(A, B, C))."""
    return activated(gemm_of(call, a, b, c), call.attr("activation", ""), _parameters(call))


def _parameters(call: Call) -> tuple[float, ...]:
    return tuple(call.attr(n) for n in ("activation_alpha", "activation_beta") if call.has(n))


@kernel("FusedMatMul", domain=MS, dtypes=FLOATS)
@kernel("FusedMatMulActivation", domain=MS, dtypes=FLOATS)
@kernel("TransposeMatMul", domain=MS, dtypes=FLOATS)
@computed_wide
def fused_matmul(call: Call, a: Array, b: Array) -> Array:
    """activation(alpha * A' B'), operands transposed in the last two dims or with batch dims inside."""
    left = _arranged(a, transpose=call.attr("transA", 0), batch=call.attr("transBatchA", 0))
    right = _arranged(b, transpose=call.attr("transB", 0), batch=call.attr("transBatchB", 0))
    y = product(left, right)
    alpha = call.attr("alpha", 1.0)
    if alpha != 1:
        y = y * y.dtype.type(alpha)
    return activated(y, call.attr("activation", ""), _parameters(call))


def _arranged(x: Array, *, transpose: int, batch: int) -> Array:
    """The matrices of an operand. With ``batch`` they lie in the first and the last dim."""
    if x.ndim < 2:  # a vector has nothing to transpose
        return x
    if batch:
        x = np.moveaxis(x, 0, -2)
    return x.swapaxes(-1, -2) if transpose else x
