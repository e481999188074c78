"""Dims against plain integers: whatever a dim says must hold at every size."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimizer.analysis import Dim, broadcast, maximum, minimum, scaled
from optimizer.analysis.computed import nonzero_or

NAMES = ("N", "H", "W")
Expression = tuple[Dim, Callable[[dict[str, int]], int | None]]


def leaf(name: str) -> Expression:
    return Dim.of(name), lambda sizes: sizes[name]


def number(value: int) -> Expression:
    return Dim.of(value), lambda _: value


def apply(dim_op: Callable[..., Dim], int_op: Callable[..., int | None], *parts: Expression) -> Expression:
    def value(sizes: dict[str, int]) -> int | None:
        operands = [part[1](sizes) for part in parts]
        return None if None in operands else int_op(*operands)

    return dim_op(*(part[0] for part in parts)), value


def _stretch(a: int, b: int) -> int | None:
    return a if a == b or b == 1 else b if a == 1 else None


def _truncated(a: Expression, b: Expression) -> Expression:
    made = a[0].trunc_div(b[0])
    if made is None:
        return a
    return apply(
        lambda *_: made,
        lambda p, q: (abs(p) // abs(q)) * (1 if (p < 0) == (q < 0) else -1) if q else None,
        a,
        b,
    )


BINARY: list[Callable[[Expression, Expression], Expression]] = [
    lambda a, b: apply(lambda p, q: p + q, lambda p, q: p + q, a, b),
    lambda a, b: apply(lambda p, q: p - q, lambda p, q: p - q, a, b),
    lambda a, b: apply(lambda p, q: p * q, lambda p, q: p * q, a, b),
    lambda a, b: apply(lambda p, q: p // q, lambda p, q: p // q if q else None, a, b),
    lambda a, b: apply(lambda p, q: p % q, lambda p, q: p % q if q else None, a, b),
    lambda a, b: apply(lambda p, q: p.ceil_div(q), lambda p, q: -(-p // q) if q else None, a, b),
    lambda a, b: apply(minimum, min, a, b),
    lambda a, b: apply(maximum, max, a, b),
    lambda a, b: apply(nonzero_or, lambda p, q: p or q, a, b),
    lambda a, b: apply(broadcast, _stretch, a, b),
    _truncated,
]
leaves = st.one_of(st.sampled_from(NAMES).map(leaf), st.integers(-3, 9).map(number))
expressions = st.recursive(
    leaves,
    lambda inner: st.tuples(st.sampled_from(BINARY), inner, inner).map(lambda t: t[0](t[1], t[2])),
    max_leaves=8,
)
sizes = st.fixed_dictionaries({name: st.integers(0, 12) for name in NAMES})


@settings(max_examples=250, deadline=None, derandomize=True)
@given(expressions, sizes)
def test_value_and_bounds_hold_at_every_size(expression: Expression, at: dict[str, int]) -> None:
    dim, value = expression
    real = value(at)
    if real is None:  # a division by 0, or a broadcast that fails
        return
    claimed = dim.evaluate(at)
    assert claimed in (real, None)
    if dim.is_known:
        assert claimed == real
    assert dim.bounds[0] <= real <= dim.bounds[1]
    assert dim.substitute({}) == dim


@settings(max_examples=250, deadline=None, derandomize=True)
@given(expressions, expressions, sizes)
def test_comparisons_never_claim_too_much(a: Expression, b: Expression, at: dict[str, int]) -> None:
    p, q = a[1](at), b[1](at)
    if p is None or q is None:
        return
    for claimed, real in (
        (a[0].eq(b[0]), p == q),
        (a[0].ge(b[0]), p >= q),
        (a[0].le(b[0]), p <= q),
        (a[0].gt(b[0]), p > q),
        (a[0].lt(b[0]), p < q),
    ):
        assert claimed in (real, None)
    exact = a[0].quotient(b[0])
    if exact is not None and q:
        assert exact.evaluate(at) in (p / q, None)


N, H, W = (Dim.of(name) for name in NAMES)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((N + 1) * (N - 1), N * N - 1),
        ((H - 1) // 2 + 1, (H + 1) // 2),
        (((H + 1) // 2 + 1) // 2, (H + 3) // 4),
        ((6 * N + 4) // 4, N + (N + 2) // 2),
        ((N * H * W) // (N * W), H),
        ((N * H + N) // (H + 1), N),
        ((N * W) // (N * 2), W // 2),
        (8 * N % 4, Dim.of(0)),
        (maximum(N, 0), N),
        (minimum(N, N + H), N),
        (minimum(H, N, H), minimum(N, H)),
        (broadcast(N, 1), N),
        (broadcast(N, N), N),
        (broadcast(N, 3), Dim.of(3)),
        (broadcast(N, 0), Dim.of(0)),
        (broadcast(N + 2, H), N + 2),
        (broadcast(broadcast(N, H), W), broadcast(W, H, N)),
        (broadcast(minimum(512, N), N), N),
        (broadcast(N, nonzero_or(N, Dim.of(768))), N),
        (nonzero_or(N, N * H), N),
        (nonzero_or(N * 4, N), N * 4),
        (nonzero_or(N, broadcast(N * 2, H)), N),
        (nonzero_or(N, nonzero_or(N * H, N * 3)), N),
        (scaled(H, 2.0), 2 * H),
        (scaled(H, 0.5), H // 2),
        (scaled(Dim.of(10), 0.1), Dim.of(1)),
        (Dim.symbol("S", divisor=8) // 8 * 8, Dim.symbol("S", divisor=8)),
    ],
)
def test_equal_dims_are_one_object(left: Dim, right: Dim) -> None:
    assert left is right
    assert left.eq(right) is True
    assert hash(left) == hash(right)


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        (N.eq(0), None),
        (N.eq(1), None),
        (N.eq(H), None),
        (N.ge(0), True),
        (N.ge(1), None),
        (N.eq(-1), False),
        ((2 * N).eq(2 * H + 1), False),
        ((N // 2).le(N), True),
        ((N % 8).lt(8), True),
        (minimum(N, H).le(H), True),
        (maximum(N, H).ge(N), True),
        (broadcast(N, H).ge(0), True),
        (broadcast(N, H).ge(H), None),  # 0 and 1 broadcast to 0
        (Dim.symbol("B", lo=1, hi=64).eq(0), False),
        (Dim.symbol("B", lo=1, hi=64).le(64), True),
        (Dim.fresh().eq(Dim.fresh()), None),
    ],
)
def test_three_valued_answers(claim: bool | None, expected: bool | None) -> None:
    assert claim is expected


@pytest.mark.parametrize(
    ("dim", "text", "declared"),
    [
        (Dim.of(7), "7", 7),
        (N, "N", "N"),
        (N * H - 2, "H*N - 2", "H*N - 2"),
        (-N + 3, "-N + 3", "-N + 3"),
        ((H + 1) // 2, "((H + 1)//2)", "((H + 1)//2)"),
        (Dim.axis("x", 2), "x:2", None),
        (maximum(W - 4, N), "max(N, W - 4)", "max(N, W - 4)"),
        (3 * Dim.symbol("S", divisor=8), "3*S", "3*S"),
    ],
)
def test_text_and_declaration(dim: Dim, text: str, declared: int | str | None) -> None:
    assert str(dim) == text
    assert dim.to_decl() == declared


def test_numbers_compare_with_integers() -> None:
    assert Dim.of(3) == 3
    assert Dim.of(3) != 4
    assert N != 3
    assert {3: "three"}[Dim.of(3)] == "three"


def test_truncation_needs_proven_signs() -> None:
    assert (N - 3).trunc_div(2) is None
    assert (N + 3).trunc_div(2) == (N + 3) // 2
    assert (-N).trunc_div(2) == -(N // 2)
    assert Dim.of(-7).trunc_div(2) == -3
    assert N.trunc_div(0) is None


def test_dims_that_share_parts_are_walked_part_by_part() -> None:
    """Written out, this one has 3 ** 11 parts."""
    deep, expected = N, 5
    for _ in range(11):
        deep = maximum(deep // 2, (deep + H) // 3, (deep + 9) // 5)
        expected = max(expected // 2, (expected + 7) // 3, (expected + 9) // 5)
    assert len(str(deep)) < 1000
    assert str(deep) != str(maximum(deep // 2, (deep + H) // 3))
    assert deep.evaluate({"N": 5, "H": 7}) == expected
    assert deep.substitute({atom: Dim.of(7) for atom in H.leaves}).evaluate({"N": 5}) == expected
    assert deep.leaves == N.leaves | H.leaves


def test_large_expressions_stay_small_and_right() -> None:
    names = [Dim.of(f"d{i}") for i in range(40)]
    total = sum(names, Dim.of(0)) * math.prod(names[:12], start=Dim.of(1))
    at = {f"d{i}": i % 3 + 1 for i in range(40)}
    expected = sum(at.values()) * math.prod(list(at.values())[:12])
    assert total.evaluate(at) in (expected, None)
    deep = N
    for _ in range(100):
        deep = maximum(deep * 2 - 5, 1)
    assert deep.bounds[0] >= 1


def test_unused_dims_are_forgotten() -> None:
    from optimizer.analysis.dims import _polynomials

    for index in range(20_000):
        Dim.of(f"name{index}") + 1
    gc.collect()
    assert len(_polynomials) < 15_000
