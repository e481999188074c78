"""Pad becomes part of the convolution or pooling behind it, or of another Pad."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from optimizer.analysis.proofs import NON_NEGATIVE
from optimizer.ir import Node, Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.known import constant_of, ints_of, rank_of, shape_of

PAD = P.Pad("x", P.rest("settings"), name="pad").once()


@dataclass(frozen=True, slots=True)
class Padding:
    """How many elements a Pad puts before and after each axis, and their value."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    mode: str
    value: float

    @property
    def is_growing(self) -> bool:
        """Whether it only adds elements."""
        return min((*self.before, *self.after), default=0) >= 0


def padding_of(m: Match, pad: Node, rank: int) -> Padding:
    """Reads a Pad in any of its forms (attributes before opset 11, axes from 18 on).

    Raises:
        Refusal: its settings are not constant.
    """
    pads = ints_of(m, pad, "pads", 1) or []
    value = float(pad.attr("value", 0.0))
    if pad.input(2) is not None:
        value = float(np.asarray(constant_of(m, pad.input(2)).array, np.float64).reshape(()))
    axes = ints_of(m, pad, "axes", 3)
    if axes is None:
        axes = list(range(rank))
    before, after = [0] * rank, [0] * rank
    for axis, low, high in zip(axes, pads, pads[len(axes) :], strict=False):
        before[axis], after[axis] = low, high
    return Padding(tuple(before), tuple(after), pad.attr("mode", "constant"), value)


# -------------------------------------------------------------------- into what is behind


@graph_optimizer(
    P.one_of("Conv", "ConvInteger")(PAD, "w", P.maybe("b"), P.maybe("w_zero"), name="conv"), tag="E0"
)
def fold_pad_into_conv(m: Match, rw: Rewriter) -> Value:
    """Conv(Pad(x), w, b) -> Conv(x, w, b, pads=...)

    The value padded must be what Conv itself pads with: 0, or the zero point of ConvInteger.
    """
    padding = _spatial_padding(m, m.conv)
    filler = 0.0
    if m.conv.op_type == "ConvInteger" and m.b is not None:
        filler = float(np.asarray(constant_of(m, m.b).array, np.float64).reshape(()))
    m.require(padding.value == filler, "it pads with another value")
    made: Value = getattr(rw.op, m.conv.op_type)(m.x, m.w, m.b, m.w_zero, **_with_pads(m.conv, padding))
    return made


@graph_optimizer(P.AveragePool(PAD, name="pool"), tag="E0")
def fold_pad_into_averagepool(m: Match, rw: Rewriter) -> Value:
    """AveragePool(Pad(x)) -> AveragePool(x, pads=..., count_include_pad=1)"""
    m.require(m.opset() >= 7, "AveragePool cannot count padding before opset 7")
    padding = _spatial_padding(m, m.pool)
    m.require(padding.value == 0, "it pads with another value")
    counts = m.pool.attr("count_include_pad", 0) or not any(m.pool.attr("pads", ()))
    m.require(counts, "the pool leaves its own padding out of the average")
    _require_pool_fits(m, padding)
    attributes = {**_with_pads(m.pool, padding), "count_include_pad": 1}
    made: Value = rw.op.AveragePool(m.x, **attributes)
    return made


@graph_optimizer(P.MaxPool(PAD, name="pool"), tag="E1")
def fold_pad_into_maxpool(m: Match, rw: Rewriter) -> Value:
    """MaxPool(Pad(x)) -> MaxPool(x, pads=...)

    Where it pads with -infinity, or with 0 and nothing in x is below 0.
    """
    padding = _spatial_padding(m, m.pool)
    m.require(
        not any(m.graph.has_uses(m.pool.value(i)) for i in range(1, len(m.pool.outputs))), "indices are used"
    )
    _require_pool_fits(m, padding)
    loses = padding.value == -np.inf or (padding.value == 0 and m.fact(m.x, NON_NEGATIVE))
    m.require(loses, "the padding may be the maximum")
    made: Value = rw.op.MaxPool(m.x, **_with_pads(m.pool, padding))
    return made


def _spatial_padding(m: Match, behind: Node) -> Padding:
    padding = padding_of(m, m.pad, rank_of(m, m.x))
    m.require(padding.mode == "constant", "it does not pad with a constant")
    m.require(padding.is_growing, "it crops")
    m.require(not any((*padding.before[:2], *padding.after[:2])), "it pads more than the image")
    m.require(behind.attr("auto_pad", "NOTSET") in ("NOTSET", "VALID"), "what is behind pads by its own rule")
    return padding


def _pads(node: Node, axes: int) -> tuple[int, ...]:
    explicit = node.attr("auto_pad", "NOTSET") == "NOTSET"
    return tuple(node.attr("pads", ())) if explicit and node.attr("pads") else (0,) * (2 * axes)


def _with_pads(node: Node, padding: Padding) -> dict[str, Any]:
    """The attributes of a Conv or pool that pads so much more."""
    extra = (*padding.before[2:], *padding.after[2:])
    pads = tuple(a + b for a, b in zip(_pads(node, len(extra) // 2), extra, strict=True))
    return {**{k: v for k, v in node.attributes.items() if k != "auto_pad"}, "pads": pads}


def _require_pool_fits(m: Match, padding: Padding) -> None:
    kernel = m.pool.attr("kernel_shape")
    pads = _with_pads(m.pool, padding)["pads"]
    assert isinstance(pads, tuple)
    m.require(not m.pool.attr("ceil_mode", 0), "the size is rounded up")
    m.require(set(m.pool.attr("dilations", (1,))) == {1}, "the window is dilated")
    m.require(
        all(p < k for p, k in zip(pads, (*kernel, *kernel), strict=True)), "a window would see only padding"
    )


# -------------------------------------------------------------------- Pad after Pad


@graph_optimizer(
    P.Pad(P.Pad("x", P.rest("inner"), name="first").once(), P.rest("outer"), name="second"), tag="E0"
)
def merge_pads(m: Match, rw: Rewriter) -> Value:
    """Pad(Pad(x, a), b) -> Pad(x, a + b)

    Both pad with the same constant, or repeat the edge, and neither crops.
    """
    rank = rank_of(m, m.x)
    a, b = padding_of(m, m.first, rank), padding_of(m, m.second, rank)
    m.require(a.mode == b.mode and a.mode in ("constant", "edge"), "they pad in different ways")
    same = repr(a.value) == repr(b.value)  # tells 0 from -0
    m.require(a.mode == "edge" or same, "they pad with different values")
    m.require(a.is_growing and b.is_growing, "one of them crops")
    total = [p + q for p, q in zip((*a.before, *a.after), (*b.before, *b.after), strict=True)]
    if m.opset() < 11:
        made: Value = rw.op.Pad(m.x, **{**m.first.attributes, "pads": total})
        return made
    value = None if a.mode == "edge" else m.first.input(2)
    return rw.op.Pad(m.x, rw.const(np.array(total, np.int64)), value, mode=a.mode)


# -------------------------------------------------------------------- Slice behind Pad


@graph_optimizer(P.Slice(PAD, P.rest("bounds"), name="slice"), tag="E0")
def cut_padding(m: Match, rw: Rewriter) -> Value:
    """Slice(Pad(x)) -> Pad(x) of less, or Slice(x), or x, along axes of known size"""
    shape = shape_of(m, m.x)
    padding, rank = padding_of(m, m.pad, len(shape)), len(shape)
    m.require(padding.is_growing, "it crops")
    starts, ends = (ints_of(m, m.slice, name, slot) or [] for name, slot in (("starts", 1), ("ends", 2)))
    axes, steps = ints_of(m, m.slice, "axes", 3) or list(range(len(starts))), ints_of(m, m.slice, "steps", 4)
    m.require(set(steps or [1]) == {1}, "it takes steps")
    before, after, crops = list(padding.before), list(padding.after), dict[int, tuple[int, int]]()
    for axis, start, end in zip((a % rank for a in axes), starts, ends, strict=True):
        size = shape[axis].value
        if size is None:
            return m.refuse("the size of an axis is not known")
        first, last, _ = slice(start, end).indices(before[axis] + size + after[axis])
        first, last = first - padding.before[axis], last - padding.before[axis]
        before[axis], after[axis] = max(-first, 0), max(last - size, 0)
        kept = max(first, 0), min(last, size)
        m.require(kept[0] < kept[1], "nothing is left of what was padded")
        if kept != (0, size):
            crops[axis] = kept
    pads = [*before, *after]
    m.require(not (any(pads) and crops), "it would crop and pad")
    if any(pads):
        return _padded(m, rw, pads)
    return _cropped(m, rw, crops) if crops else m.x


def _padded(m: Match, rw: Rewriter, pads: list[int]) -> Value:
    if m.opset() < 11:
        made: Value = rw.op.Pad(m.x, **{**m.pad.attributes, "pads": pads})
    else:
        made = rw.op.Pad(m.x, rw.const(np.array(pads, np.int64)), m.pad.input(2), **m.pad.attributes)
    return made


def _cropped(m: Match, rw: Rewriter, crops: dict[int, tuple[int, int]]) -> Value:
    bounds = [[first for first, _ in crops.values()], [last for _, last in crops.values()], list(crops)]
    if m.opset() < 10:
        return rw.op.Slice(m.x, starts=bounds[0], ends=bounds[1], axes=bounds[2])
    return rw.op.Slice(m.x, *(rw.const(np.array(bound, np.int64)) for bound in bounds))
