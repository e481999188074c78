"""If, Loop, Scan, SequenceMap, functions, sequences and optionals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from optimizer.io import parse
from optimizer.runtime import NONE, ExecutionError, LimitReached, Session

HEADER = '<ir_version: 10, opset_import: ["" : 18]>'


def run(text: str, header: str = HEADER, **feeds: Any) -> dict[str, Any]:
    return Session(parse(header + text)).run(feeds)


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def header_of(opset: int) -> str:
    return f'<ir_version: 10, opset_import: ["" : {opset}]>'


@pytest.mark.parametrize("opset", [8, 9, 11, 13, 16, 18, 19, 21, 23, 24, 25, 27])
def test_if_and_loop_at_every_version(opset: int) -> None:
    header = header_of(opset)
    text = """g (bool c, int64 m, float[1] x) => (float[1] y, float[k,1] z, float[1] w) {
      y = If(c) <then_branch = t () => (float[1] a) { a = Neg(x) },
                 else_branch = e () => (float[1] b) { b = Add(x, x) }>
      w, z = Loop(m, c, y) <body = b (int64 i, bool d, float[1] v)
        => (bool g, float[1] p, float[1] q) { g = Identity(d) p = Add(v, x) q = Neg(v) }> }"""
    for condition, y, trips in ((True, -3, 2), (False, 6, 0)):
        result = run(text, header, c=np.array(condition), m=2, x=f32(3))
        assert result["y"] == y
        assert result["w"] == y + 3 * trips
        assert result["z"][:, 0].tolist() == [-y - 3 * i for i in range(trips)]


@pytest.mark.parametrize("opset", [9, 11, 16, 18, 19, 21, 23, 24, 25])
def test_scan_at_every_version(opset: int) -> None:
    result = run(
        SCAN.replace("ATTRS", ", scan_input_directions = [1]"), header_of(opset), s=f32(0, 0), x=ROWS
    )
    assert result["z"].tolist() == np.cumsum(ROWS[::-1], 0).tolist()


@pytest.mark.parametrize("opset", [15, 18, 28])
def test_optional_at_every_version(opset: int) -> None:
    text = """g (float[1] x) => (bool h, float[1] v, bool n) { o = Optional(x) h = OptionalHasElement(o)
      v = OptionalGetElement(o) e = Optional<type = float[1]>() n = OptionalHasElement(e) }"""
    result = run(
        text.replace("e = Optional<type = float[1]>()", "e = Optional()"), header_of(opset), x=f32(5)
    )
    assert (bool(result["h"]), result["v"].tolist(), bool(result["n"])) == (True, [5], False)


def test_nested_captures() -> None:
    text = """g (bool c, bool d, float[1] x) => (float[1] y) {
      k = Neg(x)
      y = If(c) <then_branch = t () => (float[1] a) {
            a = If(d) <then_branch = tt () => (float[1] p) { p = Add(k, x) },
                       else_branch = te () => (float[1] q) { q = Mul(k, x) }> },
          else_branch = e () => (float[1] b) { b = Identity(x) }> }"""
    x = f32(3)
    yes, no = np.array(True), np.array([False])
    text = text.replace("bool d", "bool[o] d")
    assert run(text, c=yes, d=np.array([True]), x=x)["y"] == 0
    assert run(text, c=yes, d=no, x=x)["y"] == -9
    assert run(text, c=np.array(False), d=no, x=x)["y"] == 3


LOOP = """g (int64 m, bool go, float[1] x) => (float[1] last, float[k,1] all, int64[k] steps) {
  last, all, steps = Loop(M, GO, x) <body = b (int64 i, bool c, float[1] v)
    => (bool d, float[1] w, float[1] u, int64 j) {
    limit = Constant<value = float[1] {100.0}>()
    w = Add(v, v) lt = Less(w, limit) d = Squeeze(lt) u = Add(w, x) j = Identity(i) }> }"""


@pytest.mark.parametrize(
    ("m", "go", "trips"),
    [("m", "go", 3), ("m", "", 3), ("", "go", 7), ("", "", 7)],
)
def test_loop_inputs_may_be_absent(m: str, go: str, trips: int) -> None:
    text = LOOP.replace("Loop(M, GO", f"Loop({m}, {go}")
    result = run(text, m=3, go=True, x=f32(1))
    assert result["last"] == 2**trips
    assert result["all"].tolist() == [[2.0 ** (i + 1) + 1] for i in range(trips)]
    assert result["steps"].tolist() == list(range(trips))


def test_loop_without_trips_has_empty_scan_outputs() -> None:
    for m, go in ((0, True), (3, False)):
        result = run(LOOP.replace("Loop(M, GO", "Loop(m, go"), m=m, go=go, x=f32(1))
        assert result["last"] == 1
        assert (result["all"].shape, result["all"].dtype) == ((0, 1), np.float32)
        assert (result["steps"].shape, result["steps"].dtype) == ((0,), np.int64)


def test_endless_loop_is_stopped() -> None:
    text = """g (float[1] x) => (float[1] y) { y = Loop(, , x) <body = b (int64 i, bool c, float[1] v)
      => (bool d, float[1] w) { d = Identity(c) w = Identity(v) }> }"""
    model = parse(HEADER + text)
    with pytest.raises(ExecutionError, match="still running after 9 iterations"):
        Session(model, max_loop_iterations=9).run({"x": f32(1)})
    with pytest.raises(LimitReached, match="deadline_s"):
        Session(model, deadline_s=0.05).run({"x": f32(1)})
    with pytest.raises(LimitReached, match="max_nodes"):
        Session(model, max_nodes=50).run({"x": f32(1)})


def test_loop_memory_does_not_pile_up() -> None:
    text = """g (int64 m, float[64] x) => (float[64] y) {
      y = Loop(m, , x) <body = b (int64 i, bool c, float[64] v)
      => (bool d, float[64] w) { d = Identity(c) a = Neg(v) w = Neg(a) }> }"""
    session = Session(parse(HEADER + text), max_bytes=4 * 256 + 64)
    session.run({"m": 50, "x": np.zeros(64, np.float32)})
    assert session.context.memory.live <= 256


SCAN = """g (float[2] s, float[3,2] x) => (float[2] t, float[3,2] z) {
  t, z = Scan<num_scan_inputs = 1 ATTRS, body = b (float[2] a, float[2] e) => (float[2] n, float[2] o) {
    n = Add(a, e) o = Identity(n) }>(s, x) }"""
ROWS = np.float32([[1, 2], [3, 4], [5, 6]])


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ("", np.cumsum(ROWS, 0)),
        (", scan_input_directions = [1]", np.cumsum(ROWS[::-1], 0)),
        (", scan_output_directions = [1]", np.cumsum(ROWS, 0)[::-1]),
        (", scan_output_axes = [1]", np.cumsum(ROWS, 0).T),
        (", scan_output_axes = [-1]", np.cumsum(ROWS, 0).T),
    ],
)
def test_scan(attributes: str, expected: np.ndarray) -> None:
    result = run(SCAN.replace("ATTRS", attributes), s=f32(0, 0), x=ROWS)
    assert result["t"].tolist() == [9, 12]
    assert result["z"].tolist() == expected.tolist()


def test_scan_input_axis_and_no_steps() -> None:
    text = SCAN.replace("ATTRS", ", scan_input_axes = [1]").replace("float[3,2] x", "float[2,n] x")
    assert run(text, s=f32(0, 0), x=ROWS.T)["z"].tolist() == np.cumsum(ROWS, 0).tolist()
    assert run(text, s=f32(0, 0), x=ROWS.T[:, :0])["z"].shape == (0, 2)


def test_scan_8_has_batches_of_their_own_length() -> None:
    text = """g (int64[2] n, float[2,1] s, float[2,3,1] x) => (float[2,1] t, float[2,3,1] z) {
      t, z = Scan<num_scan_inputs = 1, body = b (float[1] a, float[1] e) => (float[1] q, float[1] o) {
        q = Add(a, e) o = Identity(q) }>(n, s, x) }"""
    header = '<ir_version: 3, opset_import: ["" : 8]>'
    x = np.arange(6, dtype=np.float32).reshape(2, 3, 1)
    result = run(text, header, n=np.array([3, 1]), s=np.zeros((2, 1), np.float32), x=x)
    assert result["t"].tolist() == [[3], [3]]
    assert result["z"][..., 0].tolist() == [[0, 1, 3], [3, 0, 0]]


@pytest.mark.parametrize("opset", [11, 16, 24])
def test_sequences_made_and_emptied(opset: int) -> None:
    text = """g (float[2] x, float[1] z) => (int64 n, int64 m, seq(float[k]) s) {
      e = SequenceEmpty() s = SequenceInsert(e, x)
      c = SequenceConstruct(x, z, x) n = SequenceLength(c) p = SplitToSequence(x) m = SequenceLength(p) }"""
    result = run(text, header_of(opset), x=f32(1, 2), z=f32(3))
    assert (int(result["n"]), int(result["m"]), len(result["s"])) == (3, 2, 1)


def test_sequence_map_and_sequences() -> None:
    text = """g (seq(float[n]) s, float[1] k) => (seq(float[n]) y, float[m] j, float[n] last, int64 count) {
      y = SequenceMap(s, k) <body = b (float[n] e, float[1] f) => (float[n] o) { o = Mul(e, f) }>
      one = Constant<value = int64 {-1}>()
      last = SequenceAt(y, one) fewer = SequenceErase(y) more = SequenceInsert(fewer, k, one)
      j = ConcatFromSequence<axis = 0>(y) count = SequenceLength(more) }"""
    result = run(text, s=[f32(1, 2), f32(3)], k=f32(10))
    assert [v.tolist() for v in result["y"]] == [[10, 20], [30]]
    assert (result["j"].tolist(), result["last"].tolist(), int(result["count"])) == ([10, 20, 30], [30], 2)


def test_sequence_position_out_of_range() -> None:
    text = (
        """g (seq(float[n]) s) => (float[n] y) { p = Constant<value = int64 {2}>() y = SequenceAt(s, p) }"""
    )
    with pytest.raises(ExecutionError, match="position 2 is outside a sequence of 2"):
        run(text, s=[f32(1), f32(2)])


@pytest.mark.parametrize(
    ("split", "keepdims", "expected"),
    [
        ("", 1, [(1, 2)] * 3),
        ("", 0, [(2,)] * 3),
        ("two", 1, [(2, 2), (1, 2)]),
        ("parts", 1, [(1, 2), (2, 2)]),
    ],
)
def test_split_to_sequence(split: str, keepdims: int, expected: list[tuple[int, ...]]) -> None:
    text = f"""g (float[3,2] x) => (seq(float[a,b]) y) {{ two = Constant<value = int64 {{2}}>()
      parts = Constant<value = int64[2] {{1, 2}}>()
      y = SplitToSequence<axis = 0, keepdims = {keepdims}>(x, {split}) }}"""
    assert [v.shape for v in run(text, x=ROWS)["y"]] == expected


def test_optionals() -> None:
    text = """g (optional(float[1]) o) => (bool h, float[1] v) { h = OptionalHasElement(o)
      v = If(h) <then_branch = t () => (float[1] a) { a = OptionalGetElement(o) },
                 else_branch = e () => (float[1] b) { b = Constant<value = float[1] {-1.0}>() }> }"""
    assert run(text, o=f32(5))["v"] == 5
    for nothing in (None, NONE):
        result = run(text, o=nothing)
        assert (bool(result["h"]), float(result["v"][0])) == (False, -1)
    empty = run("g () => (bool h) { h = OptionalHasElement() }")
    assert not empty["h"]


FUNCTIONS = """
<domain: "f", opset_import: ["" : 12, "f" : 1]> leaky <alpha, axis: int = 1> (x) => (y) {
  a = LeakyRelu<alpha: float = @alpha>(x) y = f.soft<axis: int = @axis>(a) }
<domain: "f", opset_import: ["" : 12]> soft <axis> (x) => (y) { y = Softmax<axis: int = @axis>(x) }
"""


def test_functions_have_attributes_defaults_and_their_own_opset() -> None:
    header = '<ir_version: 10, opset_import: ["" : 18, "f" : 1]>'
    x = np.float32([[[1, -2], [0, 3]]])
    leaky = np.where(x < 0, 0.5 * x, x)
    for attributes, axes in (("", (1, 2)), (", axis = 2", (2,))):
        text = (
            f"g (float[1,2,2] x) => (float[1,2,2] y) {{ y = f.leaky<alpha = 0.5{attributes}>(x) }}"
            + FUNCTIONS
        )
        e = np.exp(leaky)  # Softmax-12 normalizes over all axes from ``axis`` on
        np.testing.assert_allclose(run(text, header, x=x)["y"], e / e.sum(axes, keepdims=True), rtol=1e-6)


def test_function_with_an_omitted_input_and_a_body() -> None:
    header = '<ir_version: 10, opset_import: ["" : 18, "f" : 1]>'
    text = """g (float[n] x, bool c) => (float[n] y) { y = f.pick(x, , c) }
      <domain: "f", opset_import: ["" : 18]> pick (x, low, c) => (y) {
        y = If(c) <then_branch = t () => (a) { a = Clip(x, low) },
                    else_branch = e () => (b) { b = Neg(x) }> }"""
    assert run(text, header, x=f32(-1, 2), c=np.array(True))["y"].tolist() == [-1, 2]
    assert run(text, header, x=f32(-1, 2), c=np.array(False))["y"].tolist() == [1, -2]
