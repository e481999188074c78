"""RMSNormalization and RotaryEmbedding spelled out."""

from __future__ import annotations

import numpy as np

from optimizer.analysis import Dim
from optimizer.ir import DType, Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.affine import affine_of, elementwise_step, require_room
from passes.idiom_norm import epsilon_of, within
from passes.known import axes_of, constant_of, rank_of, shape_of
from passes.target import reshape_target

SQUARE = P.any_of(P.Pow("x", P.scalar(2.0)).once(), P.Mul("x", "x").once())
MEAN_SQUARE = (
    P.Add(P.ReduceMean(SQUARE, P.maybe("axes"), name="mean").once(), P.const("epsilon")).commutes().once()
)
ROOT = P.any_of(P.Sqrt(MEAN_SQUARE).once(), P.Pow(MEAN_SQUARE, P.scalar(0.5)).once())
INVERSE = P.any_of(
    P.Reciprocal(ROOT).once(), P.Div(P.scalar(1.0), ROOT).once(), P.Pow(MEAN_SQUARE, P.scalar(-0.5)).once()
)


@graph_optimizer(P.any_of(P.Div("x", ROOT), P.Mul("x", INVERSE).commutes()), tag="E2")
def fuse_rmsnorm(m: Match, rw: Rewriter) -> Value:
    """x / Sqrt(ReduceMean(x^2) + epsilon) -> RMSNormalization(x, 1, epsilon)

    The mean runs over the last axes, whose sizes are known.
    """
    m.require(m.opset() >= 23, "RMSNormalization needs opset 23")
    m.require(m.dtype(m.x) in (DType.FLOAT, DType.FLOAT16), "not float32 or float16")
    shape = shape_of(m, m.x)
    axes = axes_of(m, m.mean, 1, len(shape))
    m.require(m.mean.attr("keepdims", 1), "an axis is dropped")
    m.require(axes and axes == tuple(range(axes[0], len(shape))), "it does not run over the last axes")
    assert axes is not None
    sizes = [shape[axis].value for axis in axes]
    known = [size for size in sizes if size is not None]
    m.require(len(known) == len(sizes), "the sizes of the normalized axes are not known")
    scale = rw.const(np.ones(known), like=m.x)
    return rw.op.RMSNormalization(m.x, scale, axis=axes[0] - len(shape), epsilon=epsilon_of(m))


@graph_optimizer(
    P.any_of(*elementwise_step(P.RMSNormalization("x", "scale", name="norm").once())),
    constants="scale",
    tag="E2",
)
def fold_scale_into_rmsnorm(m: Match, rw: Rewriter) -> Value:
    """RMSNormalization(x, scale) * k -> RMSNormalization(x, scale * k)"""
    rank = rank_of(m, m.x)
    sizes = constant_of(m, m.scale).shape
    m.require(len(sizes) == rank - m.norm.attr("axis", -1) % rank, "the scale is broadcast")
    affine = affine_of(m, m.step, m.norm.value(), rank)
    m.require(affine.is_scale, "the step is no scale")
    require_room(m, m.scale)
    scale = rw.const(m.f64(m.scale) * within(m, affine.scale, sizes), like=m.scale)
    made: Value = rw.op.RMSNormalization(m.x, scale, **m.norm.attributes)
    return made


# -------------------------------------------------------------------- rotary embedding

LEFT = P.Slice("x", P.rest("left_bounds", least=2), name="left")
RIGHT = P.Slice("x", P.rest("right_bounds", least=2), name="right")
SPLIT = P.Split("x", P.rest("sizes"), name="split")
TURNED = P.any_of(
    P.Concat(P.Neg(RIGHT).once(), LEFT, name="turned").once(),
    P.Concat(P.Neg(SPLIT.out(1)).once(), SPLIT, name="turned").once(),
)


@graph_optimizer(
    P.Add(P.Mul("x", "cos").commutes().once(), P.Mul(TURNED, "sin").commutes().once()).commutes(), tag="E2"
)
def fuse_rotary_embedding(m: Match, rw: Rewriter) -> Value:
    """x * cos + Concat(-x2, x1) * sin -> RotaryEmbedding(x, half of cos, half of sin)

    x1 and x2 are the halves of the last of four axes, (batch, heads, tokens, size); both halves of cos
    and sin are equal.
    """
    m.require(m.opset() >= 23, "RotaryEmbedding needs opset 23")
    m.require(m.dtype(m.x) in (DType.FLOAT, DType.FLOAT16), "not float32 or float16")
    shape = shape_of(m, m.x)
    size = shape[-1].value
    m.require(len(shape) == 4 and size and size % 2 == 0, "not four axes, the last one even")
    assert size is not None
    m.require(m.turned.attr("axis") in (-1, 3), "another axis is turned")
    _require_halves(m, size)
    tokens = shape[2]
    angles = [_half_of(m, rw, v, (shape[0], tokens), size) for v in (m.cos, m.sin)]
    return rw.op.RotaryEmbedding(m.x, *angles)


def _require_halves(m: Match, size: int) -> None:
    """Refuses where x1 and x2 are not the halves of the last axis."""
    if hasattr(m, "split"):
        widths = [shape_of(m, m.split.value(i))[-1] for i in range(len(m.split.outputs))]
        m.require(m.split.attr("axis", 0) in (-1, 3), "another axis is turned")
        m.require(widths == [size // 2] * 2, "the parts are not the halves")
        return
    for node, bounds in ((m.left, (0, size // 2)), (m.right, (size // 2, size))):
        m.require(axes_of(m, node, 3, 4) == (3,), "another axis is turned")
        steps = node.input(4)
        given = [int(constant_of(m, node.inputs[slot]).array.reshape(-1)[0]) for slot in (1, 2)]
        start, end = (b + size if b < 0 else min(b, size) for b in given)
        m.require(steps is None or (constant_of(m, steps).array == 1).all(), "the parts are not the halves")
        m.require((start, end) == bounds, "the parts are not the halves")


def _half_of(m: Match, rw: Rewriter, value: Value, wanted: tuple[Dim, Dim], size: int) -> Value:
    """The first half of cos or sin as (batch, tokens, size / 2).

    Raises:
        Refusal: the second half is not proven to be the same, or it has another shape.
    """
    shape = shape_of(m, value)
    lead = (Dim.of(1),) * (4 - len(shape)) + tuple(shape)
    m.require(len(lead) == 4 and lead[1] == 1 and lead[3] == size, "the angles differ between heads")
    m.require(lead[2] == wanted[1], "there is not one angle for each token")
    stretched = lead[0] != wanted[0]
    m.require(not stretched or lead[0] == 1, "there is not one angle for each token")
    half = _first_half(m, rw, value, size, 4)
    if len(half[1]) != 3:
        target = reshape_target(m, half[1], [lead[0], lead[2], Dim.of(size // 2)], None)
        half = rw.op.Reshape(half[0], rw.const(np.array(target, np.int64))), ()
    if not stretched:
        return half[0]
    batch = rw.op.Shape(m.x, start=0, end=1)
    return rw.op.Expand(half[0], rw.op.Concat(batch, rw.const(np.array([1, 1], np.int64)), axis=0))


def _first_half(m: Match, rw: Rewriter, value: Value, size: int, depth: int) -> tuple[Value, tuple[Dim, ...]]:
    """A value equal to the first half of the last axis, and its shape, maybe without axes of size 1."""
    node, array, shape = m.producer(value), m.array(value), shape_of(m, value)
    halved = (*shape[:-1], Dim.of(size // 2))
    if array is not None:
        m.require(np.array_equal(array[..., : size // 2], array[..., size // 2 :]), "the halves differ")
        return rw.const(array[..., : size // 2]), halved
    if node is None or not depth:
        m.refuse("the halves differ")
    source = node.inputs[0]
    assert source is not None
    if node.op_type == "Concat":
        equal = len(node.inputs) == 2 and node.inputs[0] == node.inputs[1]
        m.require(equal and node.attr("axis") in (-1, len(shape) - 1), "the halves differ")
        return source, halved
    if node.op_type in ("Cos", "Sin"):
        inner, of_inner = _first_half(m, rw, source, size, depth - 1)
        return getattr(rw.op, node.op_type)(inner), of_inner
    if node.op_type in ("Unsqueeze", "Reshape"):
        before = shape_of(m, source)
        same = [d for d in before if d != 1] == [d for d in shape if d != 1] and before[-1] == size
        m.require(same, "the halves differ")
        return _first_half(m, rw, source, size, depth - 1)
    if node.op_type == "Gather" and node.attr("axis", 0) == 0:
        inner, _ = _first_half(m, rw, source, size, depth - 1)
        return rw.op.Gather(inner, node.inputs[1], axis=0), halved
    return m.refuse("the halves differ")
