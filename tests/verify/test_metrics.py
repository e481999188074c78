"""The comparison of two values: what passes, what does not, and the figures that are reported."""

from __future__ import annotations

import numpy as np
import pytest

from optimizer.runtime import NONE
from optimizer.verify import compare_arrays, compare_values, network_tolerance, node_tolerance

F32 = network_tolerance(np.dtype(np.float32))
NAN, INF = float("nan"), float("inf")


def f(*values: float, dtype=np.float32) -> np.ndarray:
    return np.array(values, dtype)


ROWS = [
    ("equal", f(1, 2, 3), f(1, 2, 3), ""),
    ("one unit in the last place", f(1, 2, 3), f(1, 2, np.nextafter(np.float32(3), INF)), ""),
    ("relative to the largest", f(1000, 0.001), f(1000, 0.002), ""),
    ("beyond the tolerance", f(1, 2, 3), f(1, 2.001, 3), "2 became 2.00099993 at [1]"),
    ("shape", f(1, 2), f(1, 2, 3), "shape [2] became [3]"),
    ("rank", f(1), np.float32(1).reshape(()), "shape [1] became []"),
    ("element type", f(1, 2), f(1, 2, dtype=np.float64), "element type float32 became float64"),
    ("NaN in the same places", f(NAN, 2), f(NAN, 2), ""),
    ("NaN elsewhere", f(NAN, 2), f(2, NAN), "not the same"),
    ("NaN for a number", f(1, 2), f(1, NAN), "2 became nan at [1]"),
    ("the same infinity", f(INF, -INF, 1), f(INF, -INF, 1), ""),
    ("the other infinity", f(INF, 1), f(-INF, 1), "inf became -inf"),
    ("integers", np.array([1, 2]), np.array([1, 3]), "2 became 3 at [1]"),
    ("booleans", np.array([True]), np.array([False]), "True became False"),
    ("strings", np.array(["a", "b"], object), np.array(["a", "c"], object), "b became c"),
    ("same strings", np.array(["a"], object), np.array(["a"]), ""),
    ("nothing", f(), f(), ""),
    ("complex", np.array([1 + 1j], np.complex64), np.array([1 + 1.01j], np.complex64), "became"),
    ("half", f(1, 2, dtype=np.float16), f(1, 2.002, dtype=np.float16), ""),
]


@pytest.mark.parametrize(("expected", "actual", "fault"), [r[1:] for r in ROWS], ids=[r[0] for r in ROWS])
def test_arrays(expected: np.ndarray, actual: np.ndarray, fault: str) -> None:
    found = compare_arrays(expected, actual, network_tolerance(expected.dtype))
    assert found.ok == (not fault)
    assert fault in found.fault


VALUES = [
    ([f(1), f(2)], [f(1), f(2)], ""),
    ([f(1), f(2)], [f(1), f(3)], "[1]: 2 became 3"),
    ([f(1)], [f(1), f(2)], "a sequence of 1 became a sequence of 2"),
    ([f(1)], f(1), "became a tensor of float32"),
    (None, NONE, ""),
    (f(1), None, "a tensor of float32 became an empty optional"),
    ([{"a": 0.5}], [{"a": 0.5}], ""),
    ([{"a": 0.5}], [{"a": 0.75}], "0.5 became 0.75"),
    ({"a": 0.5}, {"b": 0.5}, "a map of 1 became a map of 1"),
]


@pytest.mark.parametrize(("expected", "actual", "fault"), VALUES)
def test_values_that_are_not_tensors(expected: object, actual: object, fault: str) -> None:
    found = compare_values(expected, actual)
    assert found.ok == (not fault)
    assert fault in found.fault


def test_figures() -> None:
    found = compare_arrays(f(4, -2, 0), f(4.5, -2, 0), F32)
    assert found.max_abs == 0.5
    assert found.max_rel == 0.125
    assert found.scale == 4
    assert found.relative == 0.125
    assert found.differing == pytest.approx(1 / 3)
    assert found.cosine == pytest.approx(np.dot([4, -2], [4.5, -2]) / np.sqrt(20 * 24.25))


def test_top_scores_agree_but_for_ties() -> None:
    scores = np.arange(16, dtype=np.float32).reshape(2, 8)
    swapped = scores.copy()
    swapped[0, [7, 6]] = scores[0, [6, 7]]
    found = compare_arrays(scores, swapped, F32)
    assert (found.top1, found.top5) == (0.5, 1.0)
    tied = compare_arrays(np.ones((1, 8), np.float32), np.ones((1, 8), np.float32), F32)
    assert (tied.top1, tied.top5) == (1.0, 1.0)


def test_a_floor_explains_noise_and_a_ceiling_still_holds() -> None:
    expected, actual = f(1, 2, 3), f(1, 2.001, 3)
    noisy = F32.with_floor(1e-3)
    assert compare_arrays(expected, actual, noisy).ok
    assert not compare_arrays(expected, f(1, 2.1, 3), noisy).ok
    assert not compare_arrays(expected, actual, noisy.with_ceiling(1e-4)).ok
    assert compare_arrays(expected, f(1, 2.1, 3), F32.with_ceiling(0.2, only=True)).ok
    assert not compare_arrays(expected, f(1, 2.3, 3), F32.with_ceiling(0.2, only=True)).ok


def test_one_operator_is_held_to_less_than_a_net() -> None:
    expected, actual = f(1.0, 0.001), f(1.0, 0.001 + 7e-6)
    assert compare_arrays(expected, actual, F32).ok
    assert not compare_arrays(expected, actual, node_tolerance(np.dtype(np.float32))).ok


def test_floats_of_maps_are_float32() -> None:
    assert compare_values([{"a": 0.587128997}], [{"a": 0.587129056}]).ok
    assert not compare_values([{"a": 0.5871}], [{"a": 0.5872}]).ok
