"""Writing over dead inputs: when it happens, when it must not, and that nobody can tell by the bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from optimizer.io import parse
from optimizer.runtime import Session, reuse
from optimizer.runtime.registry import Kernel

HEADER = '<ir_version: 10, opset_import: ["" : 20]>'
X = np.linspace(-3, 3, 64 * 32, dtype=np.float32).reshape(64, 32)


@pytest.fixture(autouse=True)
def _everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reuse, "SMALLEST", 0)


def both(text: str, feeds: dict[str, Any], constants: dict[str, Any] | None = None) -> tuple[Session, Any]:
    """The session that reuses, and its outputs, which have to be those of one that does not; twice."""
    kept = {name: value.copy() for name, value in feeds.items()}
    plain = Session(parse(HEADER + text, constants or {}), reuse_memory=False)
    session = Session(parse(HEADER + text, constants or {}), profile_memory=True)
    for _ in range(2):
        expected, got = plain.run(feeds), session.run(feeds)
        assert {k: v.tobytes() for k, v in got.items()} == {k: v.tobytes() for k, v in expected.items()}
    for name, value in feeds.items():
        np.testing.assert_array_equal(value, kept[name])
    return session, got


ONE_INPUT = (
    "Add (t, c)", "Sub (c, t)", "Mul (t, t)", "Div (c, t)", "Max (t, c)", "Min (c, t)", "Sum (t, c)",
    "Abs (t)", "Neg (t)", "Exp (t)", "Sqrt (t)", "Relu (t)", "Sigmoid (t)", "Tanh (t)", "Erf (t)", "Gelu (t)",
    'Gelu <approximate = "tanh"> (t)', "HardSwish (t)", "Clip (t, low, high)", "Clip (t, low)",
    "Clip (t, , high)", "Softmax (t)", "BatchNormalization (t, v, v, v, v)",
)  # fmt: skip


@pytest.mark.parametrize("node", ONE_INPUT)
def test_the_bytes_are_the_same(node: str) -> None:
    constants = {
        "c": X[::-1].copy(),
        "v": np.linspace(0.5, 2, 32, dtype=np.float32),
        "low": np.float32(-1),
        "high": np.float32(2),
    }
    session, _ = both(f" g (float[64,32] x) => (y) {{ t = Neg (x) y = {node} }}", {"x": X}, constants)
    buffers = 2 if "(t, t)" in node else 1  # an input that is read twice is left alone
    assert session.context.memory.peak == buffers * X.nbytes


def test_what_is_read_later_is_left_alone() -> None:
    _, got = both(" g (float[64,32] x) => (y) { t = Neg (x) u = Exp (t) y = Add (u, t) }", {"x": X})
    np.testing.assert_allclose(got["y"], np.exp(-X) - X, rtol=1e-6)


def test_views_share_their_owner() -> None:
    text = " g (float[64,32] x) => (y, z) { t = Neg (x) v = Transpose (t) u = Relu (t)"
    text += " y = Add (u, x) z = Exp (v) }"
    _, got = both(text, {"x": X})
    np.testing.assert_allclose(got["z"], np.exp(-X.T), rtol=1e-6)
    text = " g (float[64,32] x) => (y, t) { t = Neg (x) v = Reshape (t, s) y = Relu (v) }"
    _, got = both(text, {"x": X}, {"s": np.array([-1])})
    np.testing.assert_array_equal(got["t"], -X)


def test_a_view_may_be_written_over_when_it_is_the_last_one() -> None:
    text = " g (float[64,32] x) => (y) { t = Neg (x) v = Reshape (t, s) y = Relu (v) }"
    session, _ = both(text, {"x": X}, {"s": np.array([-1])})
    assert session.context.memory.peak == X.nbytes


def test_feeds_constants_and_outputs_are_left_alone() -> None:
    text = (
        " g (float[64,32] x) => (a, b, t) { a = Relu (x) b = Exp (c) t = Neg (x) u = Relu (t) w = Abs (u) }"
    )
    constant = X.copy()
    _, got = both(text, {"x": X}, {"c": constant})
    np.testing.assert_array_equal(constant, X)
    np.testing.assert_array_equal(got["t"], -X)


def test_constants_of_bodies_and_functions_are_left_alone() -> None:
    branch = " g (bool c, float[4] x) => (y) { i = If (c) <then_branch = t () => (a) { a = Identity (k) },"
    branch += (
        " else_branch = e () => (b) { b = Constant <value = float[4] {1, 2, 3, 4}> () }> y = Add (i, x) }"
    )
    feeds = {"x": np.ones(4, np.float32)}
    for condition in (True, False):
        _, got = both(branch, {"c": np.array(condition), **feeds}, {"k": np.float32([5, 6, 7, 8])})
        assert got["y"].tolist() == ([6, 7, 8, 9] if condition else [2, 3, 4, 5])
    function = """ g (float[4] x) => (y) { i = local.F () y = Add (i, x) }
    <domain: "local", opset_import: ["" : 20]>
    F () => (k) { k = Constant <value = float[4] {1, 2, 3, 4}> () }"""
    header = '<ir_version: 10, opset_import: ["" : 20, "local" : 1]>'
    session = Session(parse(header + function))
    assert [session.run(feeds)["y"].tolist() for _ in range(2)] == [[2, 3, 4, 5]] * 2


def test_a_broadcast_result_takes_the_operand_of_its_shape() -> None:
    text = " g (float[64,32] x, float[32] r) => (y) { t = Neg (x) q = Neg (r) y = Add (q, t) }"
    session, _ = both(text, {"x": X, "r": X[0]})
    assert session.context.memory.peak == X.nbytes + X[0].nbytes
    text = " g (float[64,1] x, float[1,32] r) => (y) { t = Neg (x) q = Neg (r) y = Add (t, q) }"
    both(text, {"x": X[:, :1].copy(), "r": X[:1]})


def test_narrow_types_and_integers_are_left_alone() -> None:
    for kind, array in (("float16", X.astype(np.float16)), ("int32", X.astype(np.int32))):
        both(f" g ({kind}[64,32] x) => (y) {{ t = Neg (x) u = Abs (t) y = Mul (u, x) }}", {"x": array})


def test_a_loop_keeps_what_it_collects() -> None:
    body = "b (int64 i, bool c, float[4] a) => (bool d, float[4] e, float[4] f)"
    body += " { d = Identity (c) t = Neg (a) e = Relu (t) f = Sub (a, e) }"
    text = f" g (int64 n, float[4] x) => (y, s) {{ y, s = Loop (n, , x) <body = {body}> }}"
    _, got = both(text, {"n": np.array(4), "x": np.float32([1, -2, 3, -4])})
    assert got["s"].shape == (4, 4)


def test_hooks_see_both_sides() -> None:
    seen = []

    def after(node: Any, inputs: Any, outputs: Any, seconds: float) -> None:
        seen.append(all(not np.shares_memory(i, o) for i in inputs for o in outputs))

    Session(parse(HEADER + " g (float[64,32] x) => (y) { t = Neg (x) y = Relu (t) }"), after_node=after).run(
        {"x": X}
    )
    assert seen == [True, True]


def test_the_table_of_owners_follows_aliases() -> None:
    def nothing(*_: Any) -> None:
        return None

    plain = Kernel(1, "", "A", nothing, into=nothing, reuses=(0, 1))
    view = Kernel(1, "", "V", nothing, may_alias=True)
    table = reuse.OwnerTable([2])
    assert table.step(plain, [2], [3], [2]) == ()  # a feed
    assert table.step(view, [3], [4], []) == ()
    assert table.step(plain, [3], [5], [3]) == ()  # 4 still looks at it
    assert table.step(plain, [4, 5], [6], [4, 5]) == (0, 1)
    assert table.step(plain, [6, 6], [7], [6]) == ()  # read twice
