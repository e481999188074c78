"""Sizes that a user states."""

from __future__ import annotations

import pytest

from optimizer.analysis import Dim, Facts, SizeRange
from optimizer.io import parse
from optimizer.ir import UsageError


@pytest.mark.parametrize(
    ("limits", "size", "nearest"),
    [
        (SizeRange(), 7, 7),
        (SizeRange(1, 64), 0, 1),
        (SizeRange(1, 64), 100, 64),
        (SizeRange(divisor=8), 7, 8),
        (SizeRange(divisor=8), 3, 8),
        (SizeRange(divisor=8), 1, 8),
        (SizeRange(divisor=8), 0, 8),
        (SizeRange(), 0, 1),
        (SizeRange(0, 7, 8), 3, 0),
        (SizeRange(1, divisor=8), 3, 8),
        (SizeRange(10, 30, 8), 100, 24),
        (SizeRange(10, 30, 8), 1, 16),
    ],
)
def test_the_nearest_size(limits: SizeRange, size: int, nearest: int) -> None:
    assert limits.nearest(size) == nearest
    assert nearest in limits
    others = [n for n in range(1, 300) if n in limits] or [0]
    assert abs(nearest - size) == min(abs(n - size) for n in others)


def test_ranges_join() -> None:
    both = SizeRange(3, 64, 4) & SizeRange(5, None, 6)
    assert both == SizeRange(5, 64, 12)
    assert (both.first, both.only) == (12, None)
    assert SizeRange(8, 9, 8).only == 8
    assert -1 not in both
    assert "12" not in both


@pytest.mark.parametrize("make", [lambda: SizeRange(5, 4), lambda: SizeRange(-1), lambda: SizeRange(1, 7, 8)])
def test_no_size_at_all_is_an_error(make: object) -> None:
    with pytest.raises(UsageError, match="no size is"):
        make()


def test_facts_know_the_limits_of_named_and_unnamed_dims() -> None:
    graph = parse(
        '<ir_version: 10, opset_import: ["" : 21]> g (float[N,?,M] x) => (float y) { y = Relu(x) }'
    ).graph
    facts = Facts(graph, dims={"N": SizeRange(1, 64), "x:1": SizeRange(divisor=8)}, least=1)
    n, second, m = facts.shape(graph.outputs[0]) or ()
    assert n.bounds == (1, 64)
    assert second % 8 == 0
    assert second.bounds[0] == 0
    assert m.ge(1) is True
    assert Dim.of("M").ge(1) is None
    assert str(facts.of(graph.outputs[0])) == "float[N, x:1, M]"
