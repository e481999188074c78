"""Operands and attributes that suit an operator, at random: what a pattern alone does not say."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from optimizer.verify.adversary.site import Site
from optimizer.verify.adversary.views import (
    concat,
    expand,
    flatten,
    gather,
    pad,
    reshape,
    slice_,
    split,
    squeeze,
    tile,
    transpose,
    unsqueeze,
)

Recipe = Callable[[Site], None]


def elementwise(site: Site) -> None:
    """Operands that broadcast: the same shape, its tail, ones here and there, one per channel, a scalar."""
    base = next((s for i in range(len(site.operands)) if (s := site.shape(i)) is not None), None)
    shape = site.dims(int(site.rng.integers(0, 5))) if base is None else base
    for slot in range(len(site.operands)):
        if site.is_open(slot):
            site.floats(slot, shape if base is None and slot == 0 else _broadcastable(site, shape))


def _broadcastable(site: Site, shape: tuple[int, ...]) -> tuple[int, ...]:
    kind = int(site.rng.integers(7))
    if kind == 0 or not shape:
        return () if site.rng.random() < 0.5 else (1,)
    if kind == 1:
        return shape[int(site.rng.integers(len(shape))) :]
    if kind == 2:
        return tuple(1 if site.rng.random() < 0.5 else size for size in shape)
    if kind == 3 and len(shape) > 1:
        return (shape[1], *[1] * (len(shape) - 2))
    if kind == 4:
        return (*site.dims(1), *shape) if len(shape) < 4 else shape
    if kind == 5:
        return tuple(int(site.pick(2, 3)) if size == 1 else size for size in shape)
    return shape


def matmul(site: Site) -> None:
    """Matrices, stacks of them, vectors."""
    a, b = site.shape(0), site.shape(1)
    if a is None and b is None:
        a = site.first(2, 3, 4, 1)
    if a is None:
        assert b is not None
        inner = b[-2] if len(b) > 1 else b[0]
        site.floats(0, (*site.dims(1 + int(site.rng.integers(2))), inner))
        return
    batch = a[:-2] if site.rng.random() < 0.3 else ()
    inner = a[-1] if a else 1
    site.floats(1, (*batch, inner, site.pick(inner, *site.dims(1))))


def gemm(site: Site) -> None:
    """Two matrices, either transposed, and a bias that broadcasts."""
    left, right = int(site.rng.random() < 0.3), int(site.rng.random() < 0.5)
    a = site.first(2)
    if len(a) != 2:
        raise ValueError("Gemm needs matrices")
    rows, inner = (a[1], a[0]) if left else a
    columns = site.pick(inner, *site.dims(1))
    site.floats(1, (columns, inner) if right else (inner, columns))
    site.floats(2, site.pick((columns,), (1, columns), (rows, columns), (), (rows, 1)))
    site.sets(transA=left or None, transB=right or None)
    site.sets(alpha=site.pick(None, None, 0.5), beta=site.pick(None, None, 2.0))


def conv(site: Site) -> None:
    """Images and kernels: groups, pads, strides."""
    x = site.first(4, 4, 3)
    spatial = len(x) - 2
    if spatial < 1:
        raise ValueError("Conv needs images")
    weight = site.shape(1)
    kernel = tuple(int(site.pick(1, 1, 2, 3)) for _ in range(spatial)) if weight is None else weight[2:]
    divisors = [g for g in range(1, x[1] + 1) if x[1] % g == 0]
    group = int(site.pick(1, 1, *divisors))
    out = group * int(site.pick(1, 1, 2)) if site.op == "Conv" else int(site.pick(1, 2, 3))
    if site.op == "Conv":
        site.floats(1, (site.pick(out, x[1]) if group == 1 else out, x[1] // group, *kernel))
    else:
        site.floats(1, (x[1], out, *kernel))
    made = site.shape(1) or ()
    channels = made[0] if site.op == "Conv" else made[1] * group
    site.floats(2, (channels,))
    site.sets(group=group if group > 1 else None, kernel_shape=site.pick(None, kernel))
    if site.rng.random() < 0.5:
        site.sets(pads=tuple(int(p) for p in site.rng.integers(0, 2, 2 * spatial)))
    if site.rng.random() < 0.3:
        site.sets(strides=tuple(int(s) for s in site.rng.integers(1, 3, spatial)))


def batch_norm(site: Site) -> None:
    """One number per channel, the variance positive."""
    x = site.first(4, 3, 2)
    if len(x) < 2:
        raise ValueError("no channels")
    for slot in (1, 2, 3):
        site.floats(slot, (x[1],))
    site.give(4, np.abs(site.rng.standard_normal(x[1])) + 0.1, site.dtype)
    site.sets(epsilon=site.pick(None, 1e-3, 0.1))


def layer_norm(site: Site) -> None:
    """A scale and a bias for the last axes."""
    x = site.first(3, 2, 4)
    axis = site.pick(-1, len(x) - 1, 1)
    tail = x[axis:]
    site.floats(1, tail)
    site.floats(2, tail)
    site.sets(axis=axis, epsilon=site.pick(None, 1e-3))


def instance_norm(site: Site) -> None:
    """One number per channel."""
    x = site.first(3, 4)
    site.floats(1, (x[1],))
    site.floats(2, (x[1],))


def pool(site: Site) -> None:
    """Windows over images."""
    x = site.first(4, 4, 3)
    spatial = len(x) - 2
    site.sets(kernel_shape=tuple(int(k) for k in site.rng.integers(1, 4, spatial)))
    if site.rng.random() < 0.4:
        site.sets(pads=tuple(int(p) for p in site.rng.integers(0, 2, 2 * spatial)))
    if site.rng.random() < 0.4:
        site.sets(strides=tuple(int(s) for s in site.rng.integers(1, 3, spatial)))
    if site.op == "AveragePool":
        site.sets(count_include_pad=site.pick(None, 1))


def planes(site: Site) -> None:
    """Images."""
    site.first(4, 3)


def reduce(site: Site) -> None:
    """One axis or two, or all of them."""
    rank = len(site.first(1, 2, 3, 4))
    axes = sorted({site.axis(rank) % rank for _ in range(int(site.pick(1, 1, 2)))})
    axes = site.pick(axes, [axis - rank for axis in axes])
    if site.is_open(1):
        site.give(1, axes, np.int64)
    else:
        site.sets(axes=site.pick(axes, axes, axes, None))
    site.sets(keepdims=site.pick(None, 0, 1))


def along_axis(site: Site) -> None:
    """Any axis."""
    rank = len(site.first(2, 3, 4))
    site.sets(axis=site.pick(None, site.axis(rank), -1))
    if site.op.startswith("Arg"):
        site.sets(keepdims=site.pick(None, 0))


def clip(site: Site) -> None:
    """Two limits."""
    site.first(1, 2, 3)
    low, high = sorted(site.pick((0.0, 6.0), (-1.0, 1.0), (0.0, 1.0), (2.0, 3.0), (-3.0, -1.0), (0.0, 100.0)))
    site.give(1, low, site.dtype)
    site.give(2, high, site.dtype)


def where(site: Site) -> None:
    """A mask that broadcasts."""
    elementwise_shape = site.shape(1) or site.shape(2) or site.dims(int(site.pick(1, 2, 3)))
    site.give(0, site.rng.integers(0, 2, _broadcastable(site, elementwise_shape)), bool)
    elementwise(site)


def cast(site: Site) -> None:
    """Another element type."""
    site.first(0, 1, 2)
    site.sets(to=int(site.pick(1, 1, 6, 7, 9, 10, 11, 2, 3)))


def resize(site: Site) -> None:
    """Factors or sizes."""
    x = site.first(4)
    site.operands[1:2] = [None] if site.is_open(1) else site.operands[1:2]
    if site.is_open(3):
        site.give(3, [*x[:2], int(site.pick(1, 2)) * x[2], 2 * x[3]], np.int64)
        site.operands[2] = None
    else:
        site.give(2, [1.0, 1.0, float(site.pick(1, 2, 0.5)), float(site.pick(1, 2))], np.float32)
    site.sets(mode=site.pick(None, "nearest", "linear"))


def blocks(site: Site) -> None:
    """Channels and blocks of pixels."""
    size = 2
    if site.is_open(0):
        n, c, h, w = site.dims(4)
        site.floats(0, (n, c * 4, h, w) if site.op == "DepthToSpace" else (n, c, 2 * h, 2 * w))
    site.sets(blocksize=size, mode=site.pick(None, "CRD") if site.op == "DepthToSpace" else None)


def alpha(site: Site) -> None:
    """The parameters of activations."""
    site.first(0, 1, 2, 3)
    site.sets(alpha=site.pick(None, 0.1, 0.5, 2.0))
    if site.op == "HardSigmoid":
        site.sets(alpha=site.pick(None, 1 / 6), beta=site.pick(None, 0.5))
    if site.op == "Gelu":
        site.attributes.pop("alpha", None)
        site.sets(approximate=site.pick(None, "tanh", "none"))


_FAMILIES: dict[Recipe, str] = {
    matmul: "MatMul",
    gemm: "Gemm",
    conv: "Conv ConvTranspose",
    batch_norm: "BatchNormalization",
    layer_norm: "LayerNormalization RMSNormalization",
    instance_norm: "InstanceNormalization",
    pool: "MaxPool AveragePool",
    planes: "GlobalAveragePool GlobalMaxPool",
    transpose: "Transpose",
    reshape: "Reshape",
    squeeze: "Squeeze",
    unsqueeze: "Unsqueeze",
    concat: "Concat",
    split: "Split",
    slice_: "Slice",
    gather: "Gather",
    expand: "Expand",
    tile: "Tile",
    reduce: "ReduceMean ReduceSum ReduceMax ReduceMin ReduceProd ReduceSumSquare ReduceL1 ReduceL2 "
    "ReduceLogSum ReduceLogSumExp",
    along_axis: "Softmax LogSoftmax ArgMax ArgMin",
    flatten: "Flatten",
    pad: "Pad",
    clip: "Clip",
    where: "Where",
    cast: "Cast",
    resize: "Resize",
    blocks: "DepthToSpace SpaceToDepth",
    alpha: "LeakyRelu Elu HardSigmoid Gelu Celu ThresholdedRelu Swish",
}
RECIPES: dict[str, Recipe] = {op: recipe for recipe, ops in _FAMILIES.items() for op in ops.split()}
"""By operator; all others are taken for elementwise ones."""
