"""Data that is only moved between dequantizing and quantizing again: the integers are moved instead.

And what quantization does anyway: it saturates.
"""

from __future__ import annotations

import numpy as np

from optimizer.ir import DType, Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.clip import interval_of
from passes.quantize import require_inverse

MOVES = (
    "Transpose",
    "Reshape",
    "Flatten",
    "Squeeze",
    "Unsqueeze",
    "Slice",
    "Gather",
    "GatherElements",
    "GatherND",
    "Expand",
    "Tile",
    "DepthToSpace",
    "SpaceToDepth",
    "MaxPool",
)
"""Operators that pass on elements as they are. MaxPool is one, since quantization is monotone."""


@graph_optimizer(
    P.QuantizeLinear(
        P.one_of(*MOVES)(
            P.DequantizeLinear("x", "s", P.maybe("p"), name="back"), P.rest("settings"), name="move"
        ).once(),
        "t",
        P.maybe("q"),
        name="again",
    ),
    constants="s t",
    tag="E0",
)
def move_quantized(m: Match, rw: Rewriter) -> Value:
    """QuantizeLinear(Reshape(DequantizeLinear(x, s, z)), s, z) -> Reshape(x), and other moves likewise

    Of one scale and zero point for all elements.
    """
    require_inverse(m, m.x, m.back, m.again)
    m.require(m.f64(m.s).size == 1, "the scales lie along an axis")
    m.require(len(m.move.outputs) == 1, "the places of the maxima are asked for")
    if m.move.op_type == "MaxPool":
        m.require(m.opset() >= 12, "the pool takes no integers before opset 12")
    made: Value = getattr(rw.op, m.move.op_type)(m.x, *m.settings, **m.move.attributes)
    return made


@graph_optimizer(
    P.QuantizeLinear(
        P.Concat(P.rest("parts", least=1), name="concat").once(), "t", P.maybe("q"), name="again"
    ),
    constants="t",
    tag="E0",
)
def join_quantized(m: Match, rw: Rewriter) -> Value:
    """QuantizeLinear(Concat(DequantizeLinear(a, s, z), DequantizeLinear(b, s, z)), s, z) -> Concat(a, b)

    Of one scale and zero point for all elements.
    """
    m.require(m.f64(m.t).size == 1, "the scales lie along an axis")
    sources = []
    for part in m.parts:
        back = m.producer(part)
        if back is None or back.op != "DequantizeLinear" or back.inputs[0] is None or m.ctx.is_kept(back):
            return m.refuse("an operand is not dequantized")
        require_inverse(m, back.inputs[0], back, m.again)
        sources.append(back.inputs[0])
    return rw.op.Concat(*sources, **m.concat.attributes)


# -------------------------------------------------------------------- saturation


@graph_optimizer(
    P.QuantizeLinear(
        P.any_of(P.Relu("x", name="clamp").once(), P.Clip("x", P.rest("bounds"), name="clamp").once()),
        "s",
        P.maybe("z"),
        name="quantize",
    ),
    constants="s",
    tag="E0",
)
def drop_clamp_before_quantization(m: Match, rw: Rewriter) -> Value:
    """QuantizeLinear(Relu(x), s, lowest) -> QuantizeLinear(x, s, lowest), and of Clip likewise

    Where all that is clamped saturates anyway.
    """
    dtype = m.dtype(m.root.value())
    m.require(dtype in (DType.INT8, DType.UINT8, DType.INT16, DType.UINT16), "not 8 or 16 bits")
    assert dtype is not None
    scale, zero = m.f64(m.s), np.zeros(()) if m.z is None else m.f64(m.z)
    m.require(scale.size and (scale > 0).all() and np.isfinite(scale).all(), "a scale is not positive")
    limits = np.iinfo(dtype.numpy)
    low, high = ((end - zero) * scale for end in (limits.min, limits.max))
    least, most = interval_of(m, m.clamp)
    # Half a step further out everything rounds to what saturation gives; a little less, for the quotient's
    # own rounding.
    half = 0.49 * scale
    m.require(
        (least <= low + half).all() and (most >= high - half).all(), "it clamps more than saturation does"
    )
    m.require(
        least <= most and (least <= high).all() and (most >= low).all(), "it clamps more than saturation does"
    )
    made: Value = rw.op.QuantizeLinear(m.x, m.s, m.z, **m.quantize.attributes)
    return made
