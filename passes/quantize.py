"""Quantization steps that take each other back. They are never folded: runtimes look for them."""

from __future__ import annotations

import numpy as np

from optimizer.ir import DType, Node, Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.known import constant_of


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
    require_inverse(m, m.x, m.back, m.again)
    return m.x


def require_inverse(m: Match, x: Value, back: Node, again: Node) -> None:
    """Refuses a pair of which the second, QuantizeLinear, does not take back the first for every ``x``."""
    m.require(m.dtype(x) in (DType.INT8, DType.UINT8), "not 8 bits")
    m.require(m.dtype(x) == m.dtype(again.value()), "the element type changes")
    m.require(
        all(back.attr(name) == again.attr(name) for name in ("axis", "block_size")), "the scales differ"
    )
    first, second = (constant_of(m, node.inputs[1]) for node in (back, again))
    m.require(first.dtype == second.dtype, "the scales differ")
    scales = m.f64(again.inputs[1])
    m.require(np.array_equal(m.f64(back.inputs[1]), scales), "the scales differ")
    m.require(
        scales.size and (scales > 2.0**-100).all() and (scales < 2.0**100).all(), "the scales are extreme"
    )
    one, other = (np.zeros(()) if node.input(2) is None else m.f64(node.input(2)) for node in (back, again))
    equal = np.array_equal(one, other) or not (one.any() or other.any())
    m.require(equal, "the zero points differ")
