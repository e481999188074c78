"""What is wrong with a model or its inputs is one clear error; nothing hangs and nothing crashes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from optimizer.io import parse
from optimizer.runtime import ExecutionError, LimitReached, MissingKernel, Session

HEADER = '<ir_version: 10, opset_import: ["" : 18, "com.acme" : 3]>'
ZEROS = np.zeros((3, 2), np.float32)
HUGE = 1 << 40


def ints(*values: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array(values, np.int64)


CASES: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("Gather (x, i)", {"x": ZEROS, "i": ints(3)}, "index 3 is outside an axis of 3"),
    ("Gather (x, i)", {"x": ZEROS, "i": ints(-4)}, "index -4 is outside an axis of 3"),
    ("GatherElements (x, i)", {"x": ZEROS, "i": ints(5, 0)[None]}, "index 5 is outside an axis of 3"),
    ("GatherND (x, i)", {"x": ZEROS, "i": ints(7)[None]}, "index 7 is outside an axis of 3"),
    ("ScatterND (x, i, u)", {"x": ZEROS, "i": ints(9)[None], "u": ZEROS[:1]}, "index 9 is outside"),
    ("ScatterElements (x, i, u)", {"x": ZEROS, "i": ints(9, 0)[None], "u": ZEROS[:1]}, "index 9 is outside"),
    ("Div (x, i)", {"x": ints(1, 2), "i": ints(1, 0)}, "integer division by zero"),
    ("Mod (x, i)", {"x": ints(1, 2), "i": ints(1, 0)}, "integer modulo by zero"),
    ("Mod <fmod = 1> (x, i)", {"x": ints(1, 2), "i": ints(1, 0)}, "integer modulo by zero"),
    ("ConstantOfShape (x)", {"x": ints(HUGE, 1 << 20)}, r"a result of shape \[\d+, \d+\] would take"),
    ("ConstantOfShape (x)", {"x": ints(-1, 2)}, "negative dimensions"),
    ("Tile (x, i)", {"x": ZEROS, "i": ints(1 << 30, 1 << 30)}, "would take"),
    ("Pad (x, i)", {"x": ZEROS[0], "i": ints(HUGE, 0)}, "would take"),
    ("Range (x, i, u)", {"x": np.int64(0), "i": np.int64(HUGE), "u": np.int64(1)}, "would take"),
    ("Range (x, i, u)", {"x": np.int64(0), "i": np.int64(5), "u": np.int64(0)}, "delta is zero"),
    ("TopK (x, i)", {"x": ZEROS, "i": ints(5)}, "k = 5 on an axis of 2"),
    ("Reshape (x, i)", {"x": ZEROS, "i": ints(5)}, "cannot reshape"),
    ("MatMul (x, u)", {"x": ZEROS, "u": ZEROS}, "mismatch in its core dimension"),
    ("Add (x, u)", {"x": ZEROS, "u": ZEROS.T}, "could not be broadcast"),
    ("Concat <axis = 4> (x, x)", {"x": ZEROS}, "axis 4"),
    ("Softmax <axis = 4> (x)", {"x": ZEROS}, "axis 4"),
    ("Conv (x, u)", {"x": ZEROS[None], "u": ZEROS[None, :2]}, "disagree"),
)  # fmt: skip


@pytest.mark.parametrize(("node", "feeds", "said"), CASES)
def test_the_error_names_op_version_and_tensor(node: str, feeds: dict[str, Any], said: str) -> None:
    kinds = {"float32": "float", "int64": "int64"}
    declared = ", ".join(
        f"{kinds[v.dtype.name]}[{','.join('?' * v.ndim)}] {name}".replace("[]", "")
        for name, v in feeds.items()
    )
    outputs = "y, other" if node.startswith("TopK") else "y"
    model = parse(HEADER + f" g ({declared}) => (y) {{ [here] {outputs} = {node} }}")
    op = node.split()[0]
    with pytest.raises(ExecutionError, match=rf"^{op}-18 'here' -> 'y' failed on \(.*\): .*{said}"):
        Session(model).run(feeds)


def test_a_view_that_nobody_can_hold_is_not_made() -> None:
    model = parse(HEADER + " g (float[1] x, int64[2] s) => (y) { v = Expand (x, s) y = Neg (v) }")
    with pytest.raises(
        ExecutionError, match=r"Expand-18 -> 'v' failed on .*: a result of \d+ elements does not fit"
    ):
        Session(model).run({"x": ZEROS[0, :1], "s": ints(1 << 30, 1 << 30)})


def test_unknown_operators_are_refused_before_anything_runs() -> None:
    for node, said in (
        ("Nonsense (x)", "'here' .*no kernel for Nonsense version 18"),
        ("com.acme.Foo (x)", "'here' .*no kernel for com.acme::Foo version 3"),
    ):
        with pytest.raises(MissingKernel, match=said):
            Session(parse(HEADER + f" g (float[1] x) => (y) {{ [here] y = {node} }}"))


ENDLESS = """ g (float[1] x) => (y) {
  go = Constant <value = bool {1}> ()
  [here] y = Loop (, go, x) <body = b (int64 i, bool c, float[1] s) => (bool d, float[1] t)
    { d = Identity (c) t = Neg (s) }>
}"""


def test_a_loop_without_end_ends() -> None:
    feeds = {"x": np.float32([1])}
    with pytest.raises(ExecutionError, match=r"Loop-18 'here' -> 'y' failed on .*: .*100 iterations"):
        Session(parse(HEADER + ENDLESS), max_loop_iterations=100).run(feeds)
    with pytest.raises(LimitReached, match="max_nodes"):
        Session(parse(HEADER + ENDLESS), max_nodes=1000).run(feeds)
    with pytest.raises(LimitReached, match="deadline_s"):
        Session(parse(HEADER + ENDLESS), deadline_s=0.05).run(feeds)
