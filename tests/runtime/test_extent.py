"""Work that values ask for, whatever the shapes: refused at once by the executor, never begun."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from optimizer.io import parse
from optimizer.runtime import ExecutionError, Session
from optimizer.runtime.extent import extent

HUGE = 1 << 40
X = np.ones((1, 1, 4, 4), np.float32)
LINE = np.ones((2,), np.float32)


def ints(*values: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array(values, np.int64)


def floats(*values: float) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.array(values, np.float32)


BOXES = np.array([[0, 0, 1e9, 1e9]], np.float32)
SMALL_BOXES = np.array([[0, 0, 3, 3]], np.float32)
ROI = "RoiAlign <output_height = 2, output_width = 2, {}> (x, i, u)"

CASES: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (
    ("Expand (x, i)", {"x": LINE, "i": ints(HUGE, 2)}, {"i": ints(3, 2)}),
    ("Resize (x,,, i)", {"x": X, "i": ints(1, 1, HUGE, 4)}, {"i": ints(1, 1, 8, 4)}),
    ("Resize (x,, i)", {"x": X, "i": floats(1, 1, 1e12, 1)}, {"i": floats(1, 1, 2, 1)}),
    ("CenterCropPad (x, i)", {"x": LINE, "i": ints(HUGE)}, {"i": ints(3)}),
    ("AffineGrid (x, i)", {"x": np.ones((1, 2, 3), np.float32), "i": ints(1, 1, HUGE, 4)},
     {"i": ints(1, 1, 2, 4)}),
    ("HannWindow (i)", {"i": np.int64(HUGE)}, {"i": np.int64(8)}),
    ("HammingWindow (i)", {"i": np.int64(HUGE)}, {"i": np.int64(8)}),
    ("BlackmanWindow (i)", {"i": np.int64(HUGE)}, {"i": np.int64(8)}),
    ("DFT (x, i)", {"x": np.ones((1, 4, 1), np.float32), "i": np.int64(HUGE)}, {"i": np.int64(8)}),
    ("STFT (x, u, i)", {"x": np.ones((1, 16, 1), np.float32), "u": np.int64(0), "i": np.ones(4, np.float32)},
     {"u": np.int64(4)}),
    (ROI.format("sampling_ratio = 0"), {"x": X, "i": BOXES, "u": ints(0)}, {"i": SMALL_BOXES}),
    (ROI.format("sampling_ratio = 1000000"), {"x": X, "i": SMALL_BOXES, "u": ints(0)}, {}),
    ("Conv <pads = [1099511627776, 0]> (x, i)",
     {"x": np.ones((1, 1, 4), np.float32), "i": np.ones((1, 1, 2), np.float32)}, {}),
    ("ConvTranspose <strides = [1099511627776]> (x, i)",
     {"x": np.ones((1, 1, 4), np.float32), "i": np.ones((1, 1, 2), np.float32)}, {}),
    ("MaxPool <kernel_shape = [2], pads = [1099511627776, 1]> (x)",
     {"x": np.ones((1, 1, 4), np.float32)}, {}),
    ("MaxRoiPool <pooled_shape = [1000000, 1000000]> (x, i)",
     {"x": X, "i": np.zeros((1, 5), np.float32)}, {}),
    ("Multinomial <sample_size = 1099511627776> (x)", {"x": np.ones((1, 4), np.float32)}, {}),
)  # fmt: skip


@pytest.mark.parametrize(("node", "feeds", "modest"), CASES)
def test_what_no_machine_could_do_is_an_error(
    node: str, feeds: dict[str, Any], modest: dict[str, Any]
) -> None:
    kinds = {"float32": "float", "int64": "int64"}
    declared = ", ".join(
        f"{kinds[v.dtype.name]}[{','.join('?' * v.ndim)}] {name}".replace("[]", "")
        for name, v in feeds.items()
    )
    opset = 18 if "Resize" in node or "Pool" in node else 20
    model = parse(f'<ir_version: 10, opset_import: ["" : {opset}]> g ({declared}) => (y) {{ y = {node} }}')
    with pytest.raises(ExecutionError, match=r"does not fit into the memory|never reaches the end"):
        Session(model).run(feeds)
    if modest:
        assert Session(model).run({**feeds, **modest})["y"].size < 1 << 16


def test_a_result_that_is_known_from_values_is_known_exactly() -> None:
    graph = parse(
        """<ir_version: 10, opset_import: ["" : 20]> g (float[2] x, int64[1] n, int64 s) => (a, b, c, d) {
        a = Expand (x, n) b = Range (s, s, s) c = Pad (x, n) d = OneHot (n, s, x) }"""
    ).graph
    nodes = {node.op_type: node for node in graph.nodes}
    assert extent(nodes["Expand"], (LINE, ints(7))) == 7
    assert extent(nodes["Expand"], (None, None)) == 0
    assert extent(nodes["Range"], (ints(0), ints(10), ints(3))) == 4
    assert extent(nodes["Range"], (ints(10), ints(0), ints(-3))) == 4
    assert extent(nodes["Pad"], (LINE, ints(1, 5))) == 8
    assert extent(nodes["OneHot"], (ints(1, 2), np.int64(9) + ints(0), LINE)) == 18
