"""Spectra."""

from __future__ import annotations

from optimizer.analysis.context import InferContext, fresh_shape, normal_axis
from optimizer.analysis.dims import Dim
from optimizer.analysis.fact import Fact, Shape
from optimizer.analysis.ops.movement import taken
from optimizer.analysis.registry import infer
from optimizer.ir import DType

__all__: list[str] = []


@infer("DFT", since=20)
def dft(context: InferContext) -> Fact:
    """The axis, -2 by default, is an input."""
    axes = context.ints(2) if context.has(2) else [-2]
    return _dft(context, axes[0] if axes else None)


@infer("DFT")
def dft_by_attribute(context: InferContext) -> Fact:
    return _dft(context, context.attr("axis", 1))


def _dft(context: InferContext, axis: int | None) -> Fact:
    dtype, shape = context.dtype(0), context.shape(0)
    onesided, inverse = context.attr("onesided", 0), context.attr("inverse", 0)
    if shape is None:
        return Fact(dtype)
    if axis is None:
        others = fresh_shape(len(shape) - 1, "dft") if onesided or context.has(1) else shape[:-1]
        return Fact(dtype, (*others, Dim.of(1 if onesided and inverse else 2)))
    axis = normal_axis(axis, len(shape))
    lengths = context.dims(1) if context.has(1) else [shape[axis]]
    length = (lengths[0] if lengths else None) or Dim.fresh("dft")
    if onesided and inverse and not context.has(1):
        length = (shape[axis] - 1) * 2
    kept = length // 2 + 1 if onesided and not inverse else length
    return Fact(dtype, (*taken(shape, axis, kept)[:-1], Dim.of(1 if onesided and inverse else 2)))


@infer("STFT")
def stft(context: InferContext) -> Fact:
    """[batch, frames, bins, 2]"""
    dtype, signal = context.dtype(0), context.shape(0)
    if signal is None or len(signal) < 2:
        return Fact(dtype, fresh_shape(4, "stft"))
    window = context.shape(2)
    length: Dim | None = signal[1]
    if context.has(3):
        length = _scalar(context, 3)
    elif context.has(2):
        length = window[0] if window else None
    step = _scalar(context, 1)
    frames = Dim.fresh("frames") if step is None or length is None else (signal[1] - length) // step + 1
    bins = Dim.fresh("bins") if length is None else length // 2 + 1 if context.attr("onesided", 1) else length
    shape: Shape = (signal[0], frames, bins, Dim.of(2))
    return Fact(dtype, shape)


@infer("MelWeightMatrix")
def mel_weight_matrix(context: InferContext) -> Fact:
    bins, length = _scalar(context, 0), _scalar(context, 1)
    spectrum = Dim.fresh("spectrum") if length is None else length // 2 + 1
    return Fact(DType(context.attr("output_datatype", 1)), (spectrum, bins or Dim.fresh("mel")))


def _scalar(context: InferContext, index: int) -> Dim | None:
    value = context.value(index)
    dims = value.dims() if value is not None else []
    return dims[0] if len(dims) == 1 else None
