"""Activations: one in-place formula each, run over cache-sized blocks."""

from __future__ import annotations

import numpy as np

from optimizer.runtime.call import Call
from optimizer.runtime.kernels.elementwise import over_input
from optimizer.runtime.kernels.erf import (
    InPlace,
    erf_into,
    gelu_into,
    gelu_tanh_into,
    in_blocks,
    over_input_in_blocks,
    sigmoid_into,
)
from optimizer.runtime.precision import Array, computed_wide
from optimizer.runtime.registry import kernel

FEW_ELEMENTS = 2048
"""Below, the call of ``np.clip`` costs more than its loop saves."""


def relu_of(x: Array, out: Array | None = None) -> Array:
    """max(x, 0), written to ``out`` (may be ``x``) if given.

    NumPy's clip is 2 to 3.5 times as fast as its maximum with a scalar.
    """
    zero = x.dtype.type(0)
    if x.size < FEW_ELEMENTS or x.dtype.kind != "f":
        return np.asarray(np.maximum(x, zero, out=out))
    return np.asarray(np.clip(x, zero, x.dtype.type(np.inf), out=out))


@kernel("Relu", since=1, exact=True, into=over_input(relu_of))
@computed_wide
def relu(call: Call, x: Array) -> Array:
    """max(x, 0)."""
    return relu_of(x)


@kernel("Sigmoid", since=1, into=over_input_in_blocks(sigmoid_into))
@computed_wide
def sigmoid(call: Call, x: Array) -> Array:
    """1 / (1 + exp(-x))."""
    return in_blocks(x, sigmoid_into)


@kernel("Tanh", since=1, into=over_input(np.tanh))
@computed_wide
def tanh(call: Call, x: Array) -> Array:
    """Hyperbolic tangent."""
    return np.tanh(x)


@kernel("Erf", since=9, into=over_input_in_blocks(erf_into))
@computed_wide
def erf(call: Call, x: Array) -> Array:
    """The error function; integers by way of float64."""
    if x.dtype.kind != "f":
        return in_blocks(x.astype(np.float64), erf_into).astype(x.dtype)
    return in_blocks(x, erf_into)


def _gelu_over(call: Call, out: Array, x: Array) -> Array | None:
    return in_blocks(x, _gelu_formula(call), out) if x.dtype.kind == "f" else None


def _gelu_formula(call: Call) -> InPlace:
    mode = call.attr("approximate", "none")
    if mode not in ("none", "tanh"):
        raise ValueError(f"unknown approximate {mode!r}")
    return gelu_tanh_into if mode == "tanh" else gelu_into


@kernel("Gelu", since=20, into=_gelu_over)
@computed_wide
def gelu(call: Call, x: Array) -> Array:
    """x * Phi(x), exact or by the tanh formula."""
    return in_blocks(x, _gelu_formula(call))


def _below_zero(x: Array, y: Array) -> None:
    if x.dtype.kind == "f":
        np.clip(x, x.dtype.type(-np.inf), x.dtype.type(0), out=y)
    else:
        np.minimum(x, x.dtype.type(0), out=y)


def _add_positive(x: Array, y: Array) -> None:
    y += relu_of(x)


@kernel("Elu", since=1)
@computed_wide
def elu(call: Call, x: Array) -> Array:
    """x above zero, alpha * (exp(x) - 1) below."""
    alpha = x.dtype.type(call.attr("alpha", 1.0))

    def part(x: Array, y: Array) -> None:
        _below_zero(x, y)
        np.expm1(y, out=y)
        y *= alpha
        _add_positive(x, y)

    return in_blocks(x, part)


@kernel("Selu", since=1)
@computed_wide
def selu_1(call: Call, x: Array) -> Array:
    """Version 1: defaults rounded to four digits."""
    return _selu(x, call.attr("alpha", 1.6732), call.attr("gamma", 1.0507))


@kernel("Selu", since=6)
@computed_wide
def selu(call: Call, x: Array) -> Array:
    """gamma * (x above zero, alpha * (exp(x) - 1) below)."""
    return _selu(
        x, call.attr("alpha", 1.67326319217681884765625), call.attr("gamma", 1.05070102214813232421875)
    )


def _selu(x: Array, alpha: float, gamma: float) -> Array:
    slope, scale = x.dtype.type(alpha), x.dtype.type(gamma)

    def part(x: Array, y: Array) -> None:
        _below_zero(x, y)
        np.expm1(y, out=y)
        y *= slope
        _add_positive(x, y)
        y *= scale

    return in_blocks(x, part)


@kernel("Celu", since=12)
@computed_wide
def celu(call: Call, x: Array) -> Array:
    """max(x, 0) + min(0, alpha * (exp(x / alpha) - 1))."""
    alpha = x.dtype.type(call.attr("alpha", 1.0))
    if alpha == 0:
        raise ValueError("alpha is 0")

    def part(x: Array, y: Array) -> None:
        np.divide(x, alpha, out=y)
        if alpha > 0:  # for positive x the minimum is 0: keep exp from overflowing
            _below_zero(y, y)
        np.expm1(y, out=y)
        y *= alpha
        _below_zero(y, y)
        _add_positive(x, y)

    return in_blocks(x, part)


@kernel("LeakyRelu", since=1)
@computed_wide
def leaky_relu(call: Call, x: Array) -> Array:
    """x above zero, alpha * x below."""
    return _leaky(x, np.asarray(call.attr("alpha", 0.01), x.dtype))


def _leaky(x: Array, slope: Array) -> Array:
    if not np.isfinite(slope).all():  # times the zero that stands for what is not below zero, it is NaN
        return np.where(x < 0, x * slope, x)
    if slope.size == 1:
        return in_blocks(x, lambda part, y: _leaky_into(part, y, slope.reshape(())))
    y = np.minimum(x, x.dtype.type(0)) * slope
    _add_positive(x, y)
    return np.asarray(y)


def _leaky_into(x: Array, y: Array, slope: Array) -> None:
    _below_zero(x, y)
    y *= slope
    _add_positive(x, y)


@kernel("PRelu", since=1)
@kernel("PRelu", since=6)
@computed_wide
def prelu_1(call: Call, x: Array, slope: Array) -> Array:
    """Versions before 7: one slope, or one for each channel."""
    if slope.size > 1 and x.ndim > 1 and slope.ndim == 1:
        slope = slope.reshape(-1, *(1,) * (x.ndim - 2))
    return _leaky(x, slope)


@kernel("PRelu", since=7)
@computed_wide
def prelu(call: Call, x: Array, slope: Array) -> Array:
    """x above zero, slope * x below; the slope broadcasts to x."""
    if np.broadcast_shapes(x.shape, slope.shape) != x.shape:
        raise ValueError(f"slope {list(slope.shape)} does not broadcast to X {list(x.shape)}")
    return _leaky(x, slope)


@kernel("HardSigmoid", since=1)
@computed_wide
def hard_sigmoid(call: Call, x: Array) -> Array:
    """max(0, min(1, alpha * x + beta))."""
    alpha, beta = call.attr("alpha", 0.2), call.attr("beta", 0.5)
    return in_blocks(x, lambda part, y: _clamped_line(part, y, alpha, beta))


def _clamped_line(x: Array, y: Array, alpha: float, beta: float) -> None:
    np.multiply(x, x.dtype.type(alpha), out=y)
    y += x.dtype.type(beta)
    np.clip(y, x.dtype.type(0), x.dtype.type(1), out=y)


def _hard_swish_into(x: Array, y: Array) -> None:
    _clamped_line(x, y, 1 / 6, 0.5)
    y *= x


@kernel("HardSwish", since=14, into=over_input_in_blocks(_hard_swish_into))
@computed_wide
def hard_swish(call: Call, x: Array) -> Array:
    """x * max(0, min(1, x / 6 + 1 / 2))."""
    return in_blocks(x, _hard_swish_into)


@kernel("Mish", since=18)
@computed_wide
def mish(call: Call, x: Array) -> Array:
    """x * tanh(ln(1 + exp(x))).

    With t = e (e + 2), e = exp(x), the tangent is t / (t + 2): no logarithm, no cancellation.
    """

    def part(x: Array, y: Array) -> None:
        np.minimum(x, x.dtype.type(40), out=y)  # from about 20 on the factor is 1 in any dtype
        np.exp(y, out=y)
        y *= y + 2
        y /= y + 2
        y *= x

    return in_blocks(x, part)


@kernel("Softplus", since=1)
@computed_wide
def softplus(call: Call, x: Array) -> Array:
    """ln(1 + exp(x)), as max(x, 0) + ln(1 + exp(-|x|))."""

    def part(x: Array, y: Array) -> None:
        np.abs(x, out=y)
        np.negative(y, out=y)
        np.exp(y, out=y)
        np.log1p(y, out=y)
        _add_positive(x, y)

    return in_blocks(x, part)


@kernel("Softsign", since=1)
@computed_wide
def softsign(call: Call, x: Array) -> Array:
    """x / (1 + |x|)."""
    y: Array = np.asarray(np.abs(x))
    y += 1
    np.divide(x, y, out=y)
    return y


@kernel("ThresholdedRelu", since=1, exact=True)
@kernel("ThresholdedRelu", since=10, exact=True)
@computed_wide
def thresholded_relu(call: Call, x: Array) -> Array:
    """x above alpha, else 0."""
    return np.where(x > x.dtype.type(call.attr("alpha", 1.0)), x, x.dtype.type(0))


@kernel("Shrink", since=9)
@computed_wide
def shrink(call: Call, x: Array) -> Array:
    """x + bias below -lambd, x - bias above lambd, else 0."""
    lambd, bias = call.attr("lambd", 0.5), call.attr("bias", 0.0)
    if x.dtype.kind == "f":
        lambd, bias = x.dtype.type(lambd), x.dtype.type(bias)
    y = np.where(x < -lambd, x + bias, np.where(x > lambd, x - bias, 0))
    return y.astype(x.dtype, copy=False)


@kernel("Swish", since=24)
@computed_wide
def swish(call: Call, x: Array) -> Array:
    """x * sigmoid(alpha * x)."""
    return times_sigmoid(x, call.attr("alpha", 1.0))


def times_sigmoid(x: Array, alpha: float) -> Array:
    """x * sigmoid(alpha * x)."""
    scale = x.dtype.type(alpha)

    def part(x: Array, y: Array) -> None:
        sigmoid_into(x * scale, y)
        y *= x

    return in_blocks(x, part)
