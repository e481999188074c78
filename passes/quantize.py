"""Quantization steps that take each other back. They are never folded: runtimes look for them."""

from __future__ import annotations

import numpy as np

from optimizer.ir import DType, Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer


@graph_optimizer(
    P.QuantizeLinear(
        P.DequantizeLinear("x", "s", P.maybe("p"), name="back"), "t", P.maybe("q"), name="again"
    ),
    constants="s t",
    tag="E0",
)
def drop_requantization(m: Match, rw: Rewriter) -> Value:
    """QuantizeLinear(DequantizeLinear(x, s, z), s, z) -> x, of the same scales and zero points

    The quotient of the product is off by less than a half, so it rounds to the integer it was.
    """
    m.require(m.dtype(m.x) in (DType.INT8, DType.UINT8), "not 8 bits")
    m.require(m.dtype(m.x) == m.dtype(m.root.value()), "the element type changes")
    named = ("axis", "block_size")
    same = all(m.back.attr(name) == m.again.attr(name) for name in named)
    m.require(same and np.array_equal(m.f64(m.s), m.f64(m.t)), "the scales differ")
    scales = m.f64(m.s)
    m.require(
        scales.size and (scales > 2.0**-100).all() and (scales < 2.0**100).all(), "the scales are extreme"
    )
    first, second = (np.zeros(()) if v is None else m.f64(v) for v in (m.p, m.q))
    equal = np.array_equal(first, second) or not (first.any() or second.any())
    m.require(equal, "the zero points differ")
    return m.x
