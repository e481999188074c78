"""Constant affine steps before and after Conv and ConvTranspose become part of weights and bias."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from optimizer.ir import Node, Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.affine import Affine, affine_of, batchnorm_step, elementwise_step, require_room
from passes.known import constant_of, readers_of, shape_of

Array: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"

CONV = P.one_of("Conv", "ConvTranspose")("x", "w", P.maybe("b"), name="conv")


@graph_optimizer(batchnorm_step(CONV.once()), constants="w", tag="E2")
def fold_batchnorm_into_conv(m: Match, rw: Rewriter) -> Value:
    """BatchNormalization(Conv(x, w, b), scale, shift, mean, var) -> Conv(x, w * k, (b - mean) * k + shift)

    k = scale / sqrt(var + epsilon), one factor per output channel.
    """
    return _fold_after(m, rw)


@graph_optimizer(P.any_of(*elementwise_step(CONV.once())), constants="w", tag="E2")
def fold_affine_into_conv(m: Match, rw: Rewriter) -> Value:
    """Conv(x, w, b) * k + t -> Conv(x, w * k, b * k + t)

    One step at a time: Mul, Div, Add, Sub or Neg by one number per output channel, or one for all.
    """
    return _fold_after(m, rw)


@graph_optimizer(
    P.one_of("Conv", "ConvTranspose")(batchnorm_step("x"), "w", P.maybe("b"), name="conv"),
    constants="w",
    tag="E2",
)
def fold_batchnorm_before_conv(m: Match, rw: Rewriter) -> Value:
    """Conv(BatchNormalization(x, scale, shift, mean, var), w, b) -> Conv(x, w * k, b + sum(w * t))

    k = scale / sqrt(var + epsilon) and t = shift - mean * k, one per input channel.
    """
    return _fold_before(m, rw)


@graph_optimizer(
    P.one_of("Conv", "ConvTranspose")(P.any_of(*elementwise_step("x")), "w", P.maybe("b"), name="conv"),
    constants="w",
    tag="E2",
)
def fold_affine_before_conv(m: Match, rw: Rewriter) -> Value:
    """Conv(x * k + t, w, b) -> Conv(x, w * k, b + sum(w * t))

    One step at a time. Padding adds zeros behind the step, so a shift cannot cross it; a scale can.
    """
    return _fold_before(m, rw)


# -------------------------------------------------------------------- behind the convolution


def _fold_after(m: Match, rw: Rewriter) -> Value:
    rank = len(constant_of(m, m.w).shape)
    affine = affine_of(m, m.step, m.conv.value(), rank)
    return followed_by(m, rw, m.conv, affine.along(m, 1, rank, outputs_of(m, m.conv)))


def outputs_of(m: Match, conv: Node) -> int:
    """How many channels a Conv or ConvTranspose with constant weights makes."""
    shape = constant_of(m, conv.input(1)).shape
    return shape[0] if conv.op_type == "Conv" else shape[1] * int(conv.attr("group", 1))


def followed_by(m: Match, rw: Rewriter, conv: Node, affine: Affine) -> Value:
    """The convolution with a step behind it, one number per output channel, in its weights and bias."""
    x, given, b = (conv.input(slot) for slot in range(3))
    w = m.f64(given)
    assert given is not None
    bias = affine.shift if b is None else affine.scale * m.f64(b) + affine.shift
    new_w = given
    if not affine.is_shift:
        require_room(m, given)
        new_w = rw.const(_on_outputs(conv, w, affine.scale), like=given)
    new_b = rw.const(bias, like=given) if b is not None or bias.any() else None
    made: Value = getattr(rw.op, conv.op_type)(x, new_w, new_b, **conv.attributes)
    return made


def _on_outputs(conv: Node, w: Array, k: Array) -> Array:
    """Multiplies the weights by ``k``, one factor per output channel."""
    if conv.op_type == "Conv":
        return w * k.reshape(-1, *(1,) * (w.ndim - 1))
    # ConvTranspose: w is [inputs, outputs / group, ...]; group g holds outputs g * w.shape[1] onwards.
    group = conv.attr("group", 1)
    grouped = w.reshape(group, -1, *w.shape[1:])
    return (grouped * k.reshape(group, 1, w.shape[1], *(1,) * (w.ndim - 2))).reshape(w.shape)


# -------------------------------------------------------------------- before the convolution


def _fold_before(m: Match, rw: Rewriter) -> Value:
    conv, w, group = m.conv, m.f64(m.w), m.conv.attr("group", 1)
    channels = w.shape[0] if conv.op_type == "ConvTranspose" else w.shape[1] * group
    shape = shape_of(m, m.x)
    m.require(
        len(shape) == w.ndim and shape[1] == channels,
        "the input is not known to have its channels before the step",
    )
    affine = affine_of(m, m.step, m.x, w.ndim).along(m, 1, w.ndim, channels)
    m.require(affine.is_scale or not _pads(conv), "a shift cannot cross zero padding")
    m.require(
        _all_absorb(m, m.step.value(), needs_no_padding=not affine.is_scale), "the step has other readers"
    )
    bias = np.zeros(()) if m.b is None else m.f64(m.b)
    if not affine.is_scale:
        bias = bias + _response(conv, w, affine.shift)
    new_w = m.w
    if not affine.is_shift:
        require_room(m, m.w)
        new_w = rw.const(_on_inputs(conv, w, affine.scale), like=m.w)
    new_b = m.b if affine.is_scale else rw.const(bias, like=m.w)
    made: Value = getattr(rw.op, conv.op_type)(m.x, new_w, new_b, **conv.attributes)
    return made


def _pads(conv: Node) -> bool:
    """Whether something else than ``x`` reaches an output: padding, or any border of ConvTranspose."""
    if conv.op_type == "ConvTranspose" or conv.attr("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        return True
    return conv.attr("auto_pad", "NOTSET") == "NOTSET" and any(conv.attr("pads", ()))


def _all_absorb(m: Match, value: Value, needs_no_padding: bool) -> bool:
    """Whether every reader of the step is a convolution that can take it in, so that it dies."""
    return all(
        reader.op_type in ("Conv", "ConvTranspose")
        and slot == 0
        and m.tensor(reader.input(1)) is not None
        and (reader.input(2) is None or m.tensor(reader.input(2)) is not None)
        and not (needs_no_padding and _pads(reader))
        for reader, slot in readers_of(m, value)
    )


def _on_inputs(conv: Node, w: Array, k: Array) -> Array:
    """Multiplies the weights by ``k``, one factor per input channel."""
    if conv.op_type == "ConvTranspose":
        return w * k.reshape(-1, *(1,) * (w.ndim - 1))
    group = conv.attr("group", 1)
    grouped = w.reshape(group, -1, *w.shape[1:])
    return (grouped * k.reshape(group, 1, w.shape[1], *(1,) * (w.ndim - 2))).reshape(w.shape)


def _response(conv: Node, w: Array, t: Array) -> Array:
    """What a Conv without padding makes of an image of ``t`` per channel: one number per output."""
    response: Array = _on_inputs(conv, w, t).reshape(w.shape[0], -1).sum(axis=1)
    return response
