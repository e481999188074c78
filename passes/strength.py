"""The same numbers from cheaper operators."""

from __future__ import annotations

import numpy as np

from optimizer.analysis.proofs import NON_NEGATIVE
from optimizer.ir import Node, Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.known import FLOATS, constant_of, rank_of, readers_of, shape_of

# -------------------------------------------------------------------- powers


@graph_optimizer(P.Pow("x", P.scalar(2.0)), tag="E2")
def replace_square_by_product(m: Match, rw: Rewriter) -> Value:
    """x ** 2 -> x * x

    Not in a variance: runtimes look for Pow there.
    """
    _require_float_of_same_rank(m)
    in_variance = any(reader.op_type == "ReduceMean" for reader, _ in readers_of(m, m.root.value()))
    m.require(not in_variance, "it is part of a variance")
    return rw.op.Mul(m.x, m.x)


@graph_optimizer(P.Pow("x", P.scalar(0.5)), tag="E2")
def replace_power_by_root(m: Match, rw: Rewriter) -> Value:
    """x ** 0.5 -> Sqrt(x)

    Of minus infinity the power is infinity, but the root is NaN.
    """
    _require_float_of_same_rank(m)
    m.require(m.fact(m.x, NON_NEGATIVE), "the base may be negative")
    return rw.op.Sqrt(m.x)


@graph_optimizer(P.Pow("x", P.scalar(-1.0)), tag="E2")
def replace_power_by_reciprocal(m: Match, rw: Rewriter) -> Value:
    """x ** -1 -> Reciprocal(x)"""
    _require_float_of_same_rank(m)
    return rw.op.Reciprocal(m.x)


def _require_float_of_same_rank(m: Match) -> None:
    m.require(m.dtype(m.x) in FLOATS, "not a float")
    m.require(rank_of(m, m.x) == rank_of(m, m.root.value()), "the exponent raises the rank")


# -------------------------------------------------------------------- quotients and signs


@graph_optimizer(P.Div("x", "c"), constants="c", tag="E0")
def replace_division_by_power_of_two(m: Match, rw: Rewriter) -> Value:
    """x / 2^k -> x * 2^-k"""
    inverse = _inverse(m)
    m.require((np.abs(np.frexp(inverse)[0]) == 0.5).all(), "not all divisors are powers of two")
    return rw.op.Mul(m.x, rw.const(inverse, like=m.c))


@graph_optimizer(P.Div("x", "c"), constants="c", tag="E2")
def replace_division_by_product(m: Match, rw: Rewriter) -> Value:
    """x / c -> x * (1 / c)

    Not inside Gelu: runtimes look for Div there.
    """
    inverse = _inverse(m)
    in_gelu = any(reader.op_type == "Erf" for reader, _ in readers_of(m, m.root.value()))
    m.require(not in_gelu, "it is part of Gelu")
    return rw.op.Mul(m.x, rw.const(inverse, like=m.c))


def _inverse(m: Match) -> np.ndarray:
    tensor = constant_of(m, m.c)
    m.require(tensor.dtype in FLOATS, "not a float")
    m.require(m.ctx.may_grow(0 if m.single_use(m.c) else tensor.nbytes), "the growth budget is used up")
    divisors = m.f64(m.c)
    largest, smallest = 2.0**126, 2.0**-126
    normal = (np.abs(divisors) <= largest) & (np.abs(divisors) >= smallest)
    m.require(normal.all(), "a divisor or its inverse is not a normal number")
    return 1 / divisors


@graph_optimizer(
    P.any_of(
        P.Mul("y", P.Reciprocal("x").once()).commutes(),
        P.Mul("y", P.Div(P.scalar(1.0), "x").once()).commutes(),
    ),
    tag="E2",
)
def merge_reciprocal_into_division(m: Match, rw: Rewriter) -> Value:
    """y * (1 / x) -> y / x"""
    m.require(m.dtype(m.x) in FLOATS, "not a float")
    rank = max(rank_of(m, m.x), rank_of(m, m.y))
    m.require(rank == rank_of(m, m.root.value()), "the 1 raises the rank")
    return rw.op.Div(m.y, m.x)


@graph_optimizer(
    P.any_of(
        P.Add("x", P.Neg("y").once(), name="step").commutes(), P.Sub("x", P.Neg("y").once(), name="step")
    ),
    tag="E1",
)
def merge_neg_into_sum(m: Match, rw: Rewriter) -> Value:
    """x + -y -> x - y, x - -y -> x + y"""
    return rw.op.Sub(m.x, m.y) if m.step.op_type == "Add" else rw.op.Add(m.x, m.y)


# -------------------------------------------------------------------- images


@graph_optimizer(P.Resize("x", P.rest("settings"), name="resize"), tag="E0")
def simplify_nearest_resize(m: Match, rw: Rewriter) -> Value:
    """Resize<nearest, half_pixel, round>(x) -> Resize<nearest, asymmetric, floor>(x), by whole factors

    Output k * i + j takes element i either way, since (j + 0.5) / k - 0.5 rounds to 0 for 0 <= j < k.
    """
    resize = m.resize
    m.require(m.opset() >= 11, "Resize has one way to count before opset 11")
    m.require(resize.attr("mode", "nearest") == "nearest", "it interpolates")
    half_pixel = resize.attr("coordinate_transformation_mode", "half_pixel") == "half_pixel"
    rounds = resize.attr("nearest_mode", "round_prefer_floor") in ("round_prefer_floor", "round_prefer_ceil")
    m.require(half_pixel and rounds, "it counts in another way")
    _require_whole_factors(m, resize)
    attributes = {
        **resize.attributes,
        "coordinate_transformation_mode": "asymmetric",
        "nearest_mode": "floor",
    }
    made: Value = rw.op.Resize(m.x, *m.settings, **attributes)
    return made


def _require_whole_factors(m: Match, resize: Node) -> None:
    scales = resize.input(2)
    if scales is not None and constant_of(m, scales).size:
        factors = m.f64(scales)
        m.require((factors >= 1).all() and (factors == np.round(factors)).all(), "a factor is not whole")
        return
    for before, after in zip(shape_of(m, m.x), shape_of(m, resize.value()), strict=True):
        factor = after.quotient(before)
        m.require(
            factor is not None and factor.value is not None and factor.value >= 1, "a factor is not whole"
        )


@graph_optimizer(P.MaxPool("x", name="pool"), tag="E1")
def cascade_maxpool(m: Match, rw: Rewriter) -> Value:
    """MaxPool<9>(x), beside MaxPool<5>(x) -> MaxPool<5>(MaxPool<5>(x))

    Of stride 1 and padded by half the window: windows that overlap make a larger one.
    """
    wide = _window(m, m.pool)
    m.require(wide is not None, "not a pool of stride 1 that keeps the size")
    assert wide is not None
    beside = [(node, _window(m, node)) for node, _ in readers_of(m, m.x) if node.op_type == "MaxPool"]
    narrower = [
        (window, node)
        for node, window in beside
        if window is not None and all(1 < n < w for n, w in zip(window, wide, strict=True))
    ]
    m.require(narrower, "no smaller pool is beside it")
    window, node = max(narrower, key=lambda found: found[0])
    rest = [w - n + 1 for w, n in zip(wide, window, strict=True)]
    half = [n // 2 for n in rest]
    return rw.op.MaxPool(node.value(), kernel_shape=rest, pads=[*half, *half], strides=[1] * len(rest))


def _window(m: Match, pool: Node) -> tuple[int, ...] | None:
    """The window of a pool of stride 1 that keeps the size, all of it odd."""
    if any(attribute.reference for attribute in pool.attributes.values()):
        return None
    kernel = tuple(pool.attr("kernel_shape"))
    plain = (
        set(pool.attr("strides", (1,))) == {1}
        and set(pool.attr("dilations", (1,))) == {1}
        and pool.attr("auto_pad", "NOTSET") == "NOTSET"
        and tuple(pool.attr("pads", ())) == tuple(k // 2 for k in (*kernel, *kernel))
        and not any(m.graph.has_uses(pool.value(i)) for i in range(1, len(pool.outputs)))
    )
    return kernel if plain and all(k % 2 for k in kernel) else None
