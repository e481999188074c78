"""Resizing, rearranging and sampling of images and signals."""

from __future__ import annotations

import math

import numpy as np

from optimizer.analysis.computed import scaled
from optimizer.analysis.context import Inconsistent, InferContext, fresh_shape, normal_axis
from optimizer.analysis.dims import Dim
from optimizer.analysis.elements import Ratio
from optimizer.analysis.fact import UNKNOWN, Fact, Shape
from optimizer.analysis.registry import infer
from optimizer.ir import DType

__all__: list[str] = []


@infer("Resize", since=11)
def resize(context: InferContext) -> Fact:
    """By sizes, or by scales: ``floor(size * scale)``."""
    fact = context.inputs[0] or UNKNOWN
    if fact.shape is None:
        return Fact(fact.dtype)
    rank = len(fact.shape)
    axes = context.attr("axes")
    places = [normal_axis(a, rank) for a in axes] if axes else list(range(rank))
    shape = list(fact.shape)
    if context.has(3) and not (context.has(2) and _is_empty(context, 3)):
        sizes = context.dims(3) or [None] * len(places)
        stretch = context.attr("keep_aspect_ratio_policy", "stretch") == "stretch"
        made = [s if s is not None and stretch else Dim.fresh("resize") for s in sizes]
    else:
        made = _scaled(context.fact(2), [shape[axis] for axis in places])
    if len(made) != len(places):
        raise Inconsistent(f"{len(made)} sizes or scales for {len(places)} axes")
    for axis, dim in zip(places, made, strict=True):
        shape[axis] = dim
    return Fact(fact.dtype, tuple(shape))


def _is_empty(context: InferContext, index: int) -> bool:
    shape = context.shape(index)
    return shape is not None and len(shape) == 1 and shape[0].value == 0


def _scaled(scales: Fact | None, dims: list[Dim]) -> list[Dim]:
    value = None if scales is None else scales.value
    if value is None:
        return [Dim.fresh("resize") for _ in dims]
    return [_scaled_dim(dim, item) for dim, item in zip(dims, value.items, strict=True)]


def _scaled_dim(dim: Dim, scale: object) -> Dim:
    if isinstance(scale, float) and math.isfinite(scale):
        return scaled(dim, scale)
    if isinstance(scale, Ratio) and scale.numerator == dim * scale.denominator:
        return dim
    return Dim.fresh("resize")


@infer("Resize", since=10)
@infer("Upsample", since=9)
def resize_by_scales(context: InferContext) -> Fact:
    fact = context.inputs[0] or UNKNOWN
    return Fact(fact.dtype, None if fact.shape is None else tuple(_scaled(context.fact(1), list(fact.shape))))


@infer("Upsample", since=7)
def upsample(context: InferContext) -> Fact:
    fact = context.inputs[0] or UNKNOWN
    scales = [float(np.float32(s)) for s in context.attr("scales", ())]
    return Fact(fact.dtype, None if fact.shape is None else tuple(map(scaled, fact.shape, scales)))


@infer("Upsample")
def upsample_first(context: InferContext) -> Fact:
    fact = context.inputs[0] or UNKNOWN
    if fact.shape is None or len(fact.shape) != 4:
        return Fact(fact.dtype)
    scales = (1.0, 1.0, context.attr("height_scale", 1.0), context.attr("width_scale", 1.0))
    return Fact(fact.dtype, tuple(map(scaled, fact.shape, scales)))


@infer("DepthToSpace")
def depth_to_space(context: InferContext) -> Fact:
    fact, block = context.inputs[0] or UNKNOWN, context.attr("blocksize", 1)
    if fact.shape is None or len(fact.shape) != 4:
        return Fact(fact.dtype)
    n, c, h, w = fact.shape
    return Fact(fact.dtype, (n, c // (block * block), h * block, w * block))


@infer("SpaceToDepth")
def space_to_depth(context: InferContext) -> Fact:
    fact, block = context.inputs[0] or UNKNOWN, context.attr("blocksize", 1)
    if fact.shape is None or len(fact.shape) != 4:
        return Fact(fact.dtype)
    n, c, h, w = fact.shape
    return Fact(fact.dtype, (n, c * (block * block), h // block, w // block))


@infer("RoiAlign")
def roi_align(context: InferContext) -> Fact:
    x, rois = context.shape(0), context.shape(1)
    count = rois[0] if rois else Dim.fresh("rois")
    channels = x[1] if x is not None else Dim.fresh("channels")
    size = (context.attr("output_height", 1), context.attr("output_width", 1))
    return Fact.tensor(context.dtype(0), (count, channels, *size))


@infer("GridSample")
def grid_sample(context: InferContext) -> Fact:
    x, grid = context.shape(0), context.shape(1)
    if x is None or grid is None:
        other = x if x is not None else grid
        return Fact(context.dtype(0), None if other is None else fresh_shape(len(other), "grid"))
    return Fact(context.dtype(0), (x[0], x[1], *grid[1:-1]))


@infer("AffineGrid")
def affine_grid(context: InferContext) -> Fact:
    size = context.dims(1)
    if size is None:
        return Fact(context.dtype(0))
    spatial = [Dim.fresh("grid") if s is None else s for s in (size[0], *size[2:])]
    return Fact.tensor(context.dtype(0), (*spatial, len(size) - 2))


@infer("CenterCropPad")
def center_crop_pad(context: InferContext) -> Fact:
    fact, sizes = context.inputs[0] or UNKNOWN, context.dims(1)
    if fact.shape is None:
        return Fact(fact.dtype)
    axes = context.attr("axes") or range(len(fact.shape))
    shape = list(fact.shape)
    for axis, size in zip(axes, sizes or [None] * len(axes), strict=True):
        shape[normal_axis(axis, len(shape))] = size if size is not None else Dim.fresh("crop")
    return Fact(fact.dtype, tuple(shape))


@infer("Col2Im")
def col2im(context: InferContext) -> Fact:
    x, image, block = context.shape(0), context.dims(1), context.dims(2)
    if x is None or image is None:
        return Fact(context.dtype(0))
    channels: Dim | None = None
    if block is not None and None not in block:
        channels = x[1] // math.prod((d for d in block if d is not None), start=Dim.of(1))
    sizes: Shape = tuple(Dim.fresh("image") if d is None else d for d in image)
    return Fact(context.dtype(0), (x[0], channels or Dim.fresh("channels"), *sizes))


@infer("ImageDecoder")
def image_decoder(context: InferContext) -> Fact:
    channels = 1 if context.attr("pixel_format", "RGB") == "Grayscale" else 3
    return Fact(DType.UINT8, (Dim.fresh("height"), Dim.fresh("width"), Dim.of(channels)))
