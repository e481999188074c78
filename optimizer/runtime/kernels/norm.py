"""BatchNormalization, the layer-wise normalizations, LRN and LpNormalization."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from optimizer.runtime.call import Call
from optimizer.runtime.kernels.rows import row_loops
from optimizer.runtime.precision import Array, compute_dtype, computed_wide, widen
from optimizer.runtime.registry import kernel


def along_channels(v: Array, rank: int) -> Array:
    """A vector [C] shaped to broadcast over [N, C, *spatial]."""
    return v.reshape(-1, *(1,) * (rank - 2)) if rank >= 2 else v


SMALL_PLANE = 256
"""Up to so many positions constants are spread over the plane: NumPy takes long for short rows."""
BLOCK_ELEMENTS = 96 << 10
"""Elements that are scaled and shifted at a time, so that the second pass finds them in the cache."""


def _affine(
    call: Call,
    x: Array,
    scale: Array,
    bias: Array,
    mean: Array,
    var: Array,
    out: Array | None = None,
    given: bool = True,
) -> Array:
    """scale * (x - mean) / sqrt(var + epsilon) + bias as one multiplication and one addition.

    Args:
        given: mean and variance are the inputs, not statistics of this batch.
    """
    dtype, constant = compute_dtype(x.dtype), given and call.constant(1, 2, 3, 4)
    plane = x.shape[2:] if scale.ndim == 1 and x.ndim > 2 else ()
    spread = plane if constant and math.prod(plane) <= SMALL_PLANE else ()

    def line_of() -> Array:
        line = _line(scale, bias, mean, var, call.attr("epsilon", 1e-5)).astype(dtype)
        return np.ascontiguousarray(np.broadcast_to(_over(line, spread), (*line.shape, *spread)))

    line = call.derived_of((1, 2, 3, 4), (dtype, spread), line_of) if given else line_of()
    wide = widen(x)
    y = np.empty_like(wide, order="C") if out is None else out
    if spread or not plane:
        np.multiply(wide, line[0], out=y)
        y += line[1]
    else:
        _affine_in_blocks(wide, _over(line, plane), y)
    return y.astype(x.dtype, copy=False)


def _over(line: Array, plane: tuple[int, ...]) -> Array:
    """``line`` with a dim of one for each of ``plane``."""
    return line.reshape(*line.shape, *(1,) * len(plane))


def _line(scale: Array, bias: Array, mean: Array, var: Array, epsilon: float) -> Array:
    """[factor, offset] in float64."""
    scale, bias, mean, var = (np.asarray(v, np.float64) for v in (scale, bias, mean, var))
    factor = scale / np.sqrt(var + epsilon)
    return np.stack(np.broadcast_arrays(factor, bias - mean * factor))


def _affine_in_blocks(x: Array, line: Array, y: Array) -> None:
    """``y`` = line[0] * x + line[1] along the channels, some of them at a time."""
    plane = math.prod(x.shape[2:])
    channels = max(1, BLOCK_ELEMENTS // max(1, plane))
    with row_loops(plane):
        for n in range(len(x)):
            for c in range(0, x.shape[1], channels):
                part = (n, slice(c, c + channels))
                np.multiply(x[part], line[0, c : c + channels], out=y[part])
                y[part] += line[1, c : c + channels]


def _affine_over(
    call: Call, out: Array, x: Array, scale: Array, bias: Array, mean: Array, var: Array
) -> Array | None:
    trains = call.attr("training_mode", 0) if call.since >= 14 else call.output_count > 1
    return None if trains or x.dtype.kind != "f" else _affine(call, x, scale, bias, mean, var, out)


@kernel("BatchNormalization", since=1)
@kernel("BatchNormalization", since=6)
def batch_norm_6(
    call: Call, x: Array, scale: Array, bias: Array, mean: Array, var: Array
) -> Array | tuple[Array, ...]:
    """Statistics given (is_test), or of the batch and the running ones updated."""
    if call.attr("is_test", 0) or call.output_count == 1:
        return _affine(call, x, scale, bias, mean, var)
    return _trained(call, x, scale, bias, mean, var, saved=True)


@kernel("BatchNormalization", since=7, into=_affine_over)
@kernel("BatchNormalization", since=9, into=_affine_over)
def batch_norm_7(
    call: Call, x: Array, scale: Array, bias: Array, mean: Array, var: Array
) -> Array | tuple[Array, ...]:
    """Inference with one output, training with five. ``spatial`` 0 (version 7): statistics per element."""
    if call.output_count > 1:
        return _trained(call, x, scale, bias, mean, var, saved=True)
    return _affine(call, x, scale, bias, mean, var)


@kernel("BatchNormalization", since=14, into=_affine_over)
@kernel("BatchNormalization", since=15, into=_affine_over)
def batch_norm_14(
    call: Call, x: Array, scale: Array, bias: Array, mean: Array, var: Array
) -> Array | tuple[Array, ...]:
    """Inference, or with ``training_mode`` the batch's statistics and the updated running ones."""
    if call.attr("training_mode", 0):
        return _trained(call, x, scale, bias, mean, var, saved=False)
    return _affine(call, x, scale, bias, mean, var)


def _trained(
    call: Call, x: Array, scale: Array, bias: Array, mean: Array, var: Array, *, saved: bool
) -> tuple[Array, ...]:
    """(y, running mean, running variance), with ``saved`` also the statistics of the batch.

    Variances are those of the population, as the operator says from version 14 on.
    """
    axes = (0, *range(2, x.ndim)) if call.attr("spatial", 1) else (0,)
    wide = widen(x).astype(np.float64, copy=False)
    batch_mean, batch_var = wide.mean(axes), wide.var(axes)
    y = _affine(call, x, scale, bias, batch_mean, batch_var, given=False)
    momentum = call.attr("momentum", 0.9)
    running = [
        (widen(old).astype(np.float64) * momentum + new * (1 - momentum)).astype(old.dtype)
        for old, new in ((mean, batch_mean), (var, batch_var))
    ]
    if not saved:
        return y, *running
    return y, *running, batch_mean.astype(mean.dtype), batch_var.astype(var.dtype)


@kernel("InstanceNormalization", since=1)
@kernel("InstanceNormalization", since=6)
@computed_wide
def instance_norm(call: Call, x: Array, scale: Array, bias: Array) -> Array:
    """Each plane by its own mean and variance, then scale and bias per channel."""
    flat = x.reshape(*x.shape[:2], math.prod(x.shape[2:]))
    with row_loops(flat.shape[2]):
        y = flat - flat.mean(-1, keepdims=True)
        var = np.einsum("...i,...i->...", y, y) / max(1, flat.shape[-1])
        y *= (scale / np.sqrt(var + x.dtype.type(call.attr("epsilon", 1e-5))))[..., None]
        y += bias[:, None]
    return np.asarray(y.reshape(x.shape))


@kernel("GroupNormalization", since=18)
@kernel("GroupNormalization", since=21)
def group_norm(call: Call, x: Array, scale: Array, bias: Array) -> Array:
    """Channels in groups, each normalized as one. Scale and bias per group (18) or channel (21)."""
    groups = call.attr("num_groups")
    if not groups or x.shape[1] % groups:
        raise ValueError(f"{x.shape[1]} channels do not make {groups} groups")
    wide = widen(x)
    grouped = wide.reshape(x.shape[0], groups, math.prod(x.shape[1:]) // groups)
    y = standardized(grouped, call.attr("epsilon", 1e-5))[0].reshape(x.shape)
    s, b = (widen(v).astype(y.dtype, copy=False) for v in (scale, bias))
    if call.since < 21:
        s, b = np.repeat(s, x.shape[1] // groups), np.repeat(b, x.shape[1] // groups)
    with row_loops(math.prod(x.shape[2:])):
        y *= along_channels(s, x.ndim)
        y += along_channels(b, x.ndim)
    return y.astype(x.dtype, copy=False)


def standardized(x: Array, epsilon: float) -> tuple[Array, Array, Array]:
    """((x - mean) / sqrt(variance + epsilon), mean, 1 / sqrt(...)) over the last axis, dims kept."""
    mean = x.mean(-1, keepdims=True)
    with row_loops(x.shape[-1]):
        y = x - mean
        var = np.einsum("...i,...i->...", y, y)[..., None]
        var /= max(1, x.shape[-1])
        var += x.dtype.type(epsilon)
        inverse = np.reciprocal(np.sqrt(var))
        y *= inverse
    return y, mean, inverse


@kernel("LayerNormalization", since=17)
def layer_norm(call: Call, x: Array, scale: Array, bias: Array | None = None) -> Array | tuple[Array, ...]:
    """Y, Mean and InvStdDev over the axes from ``axis`` on; the statistics in ``stash_type``."""
    axis = _axis(call, x)
    stash = _stash_dtype(call, x)
    # In one order whatever the layout of x: sums round alike before and after a transpose is moved.
    flat = np.ascontiguousarray(x, stash).reshape(*x.shape[:axis], math.prod(x.shape[axis:]))
    y, mean, inverse = standardized(flat, call.attr("epsilon", 1e-5))
    kept = (*x.shape[:axis], *(1,) * (x.ndim - axis))
    y = _scaled(y.reshape(x.shape), x, scale, bias)
    if call.output_count == 1:
        return y
    return y, mean.reshape(kept), inverse.reshape(kept)


def _axis(call: Call, x: Array) -> int:
    axis = int(call.attr("axis", -1))
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"axis {axis} is outside of rank {x.ndim}")
    return axis % x.ndim


def _stash_dtype(call: Call, x: Array) -> np.dtype[np.floating]:
    """The dtype of the statistics: that of stash_type (float by default), never less than x's own.

    float16 and bfloat16 would lose whole digits in the sums, so they too are summed in float32.
    """
    named = call.dtype(call.attr("stash_type", 1))
    return np.dtype(np.float64) if x.dtype == np.float64 else compute_dtype(np.dtype(named))


def _scaled(y: Array, x: Array, scale: Array, bias: Array | None) -> Array:
    factor, offset = widen(scale), None if bias is None else widen(bias)
    with row_loops(scale.size if scale.dtype == y.dtype else 0):
        y *= factor
        if offset is not None:
            y += offset
    return y.astype(x.dtype, copy=False)


@kernel("RMSNormalization", since=23)
def rms_norm(call: Call, x: Array, scale: Array) -> Array:
    """x / sqrt(mean of squares + epsilon) * scale, over the axes from ``axis`` on."""
    return _scaled(root_mean_square(call, x, _axis(call, x))[0], x, scale, None)


def root_mean_square(call: Call, x: Array, axis: int) -> tuple[Array, Array]:
    """(x / rms, 1 / rms) in the dtype of the statistics."""
    sizes = (*x.shape[:axis], math.prod(x.shape[axis:]))
    flat = x.astype(_stash_dtype(call, x), copy=False).reshape(sizes)
    mean = np.einsum("...i,...i->...", flat, flat)[..., None] / max(1, flat.shape[-1])
    inverse = np.reciprocal(np.sqrt(mean + flat.dtype.type(call.attr("epsilon", 1e-5))))
    with row_loops(flat.shape[-1]):
        y = flat * inverse
    return y.reshape(x.shape), inverse.reshape(*x.shape[:axis], *(1,) * (x.ndim - axis))


@kernel("LpNormalization", since=1)
@kernel("LpNormalization", since=22)
@computed_wide
def lp_normalization(call: Call, x: Array) -> Array:
    """x / (sum of |x|^p)^(1/p) along ``axis``, p 1 or 2; zero where the norm is zero."""
    axis, p = call.attr("axis", -1), call.attr("p", 2)
    if p not in (1, 2):
        raise ValueError(f"p is {p} but has to be 1 or 2")
    norm = np.abs(x).sum(axis, keepdims=True) if p == 1 else np.sqrt(np.square(x).sum(axis, keepdims=True))
    return np.asarray(np.divide(x, norm, out=np.zeros_like(x), where=norm != 0))


@kernel("MeanVarianceNormalization", since=1)
@kernel("MeanVarianceNormalization", since=9)
@computed_wide
def mean_variance_norm(call: Call, x: Array) -> Array:
    """(x - mean) / (standard deviation + 1e-9) over ``axes``; version 1: across channels or not."""
    default: Sequence[int] = (0, 2, 3)
    if call.since < 9:
        default = (0, 1, 2, 3) if call.attr("across_channels", 0) else (0, 2, 3)
    axes = tuple(call.attr("axes", default))
    y = x - x.mean(axes, keepdims=True)
    if call.since < 9 and not call.attr("normalize_variance", 1):
        return np.asarray(y)
    y /= np.sqrt(np.square(y).mean(axes, keepdims=True)) + x.dtype.type(1e-9)
    return np.asarray(y)


@kernel("LRN", since=1)
@computed_wide
def lrn(call: Call, x: Array) -> Array:
    """x / (bias + alpha / size * sum of squares over ``size`` neighbouring channels)^beta."""
    size = int(call.attr("size"))
    alpha, beta, bias = call.attr("alpha", 1e-4), call.attr("beta", 0.75), call.attr("bias", 1.0)
    channels, before = x.shape[1], (size - 1) // 2
    squares = np.square(x)
    sums = squares.copy()
    for shift in range(-before, size - before):
        if shift and abs(shift) < channels:
            low, high = max(0, -shift), channels - max(0, shift)
            sums[:, low:high] += squares[:, low + shift : high + shift]
    sums *= x.dtype.type(alpha / size)
    sums += x.dtype.type(bias)
    if beta == 0.75:  # far faster than the general power: t^0.75 = sqrt(t) * sqrt(sqrt(t))
        root = np.sqrt(sums)
        return np.asarray(x / (root * np.sqrt(root)))
    return np.asarray(x / np.power(sums, x.dtype.type(beta)))
