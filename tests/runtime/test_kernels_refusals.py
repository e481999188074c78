"""Options of onnxruntime's operators that are not implemented are refused, never ignored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernel_oracle import run_kernel

MS = "com.microsoft"
X = np.ones((1, 2, 8), np.float32)
LAST, TOTAL = np.array([1], np.int32), np.array([2], np.int32)
GROUPED = ([X, X, X, None, None, LAST, TOTAL], {"num_heads": 2, "kv_num_heads": 2})
WIDE = ([X, np.ones((8, 24), np.float32)], {"num_heads": 2})

CASES: tuple[tuple[str, Any, dict[str, Any], list[Any], int, str], ...] = (
    ("GroupQueryAttention", GROUPED, {"smooth_softmax": 1}, [], 3, "'smooth_softmax' = 1"),
    ("GroupQueryAttention", GROUPED, {"k_quant_type": "PER_TENSOR"}, [], 3, "'k_quant_type'"),
    ("GroupQueryAttention", GROUPED, {"invented": 0}, [], 3, "'invented'"),
    ("GroupQueryAttention", GROUPED, {}, [None, None, None, None, np.ones(2, np.float32)], 3, "input 11"),
    ("GroupQueryAttention", GROUPED, {}, [], 4, "output 3"),
    ("Attention", WIDE, {"do_rotary": 1}, [], 2, "'do_rotary' = 1"),
    ("Attention", WIDE, {}, [None, None, None, None, np.array(1, np.int32)], 2, "input 6"),
    ("MultiHeadAttention", ([X, X, X], {"num_heads": 2}), {}, [None] * 5 + [LAST], 1, "input 8"),
)


@pytest.mark.parametrize(("op_type", "case", "attributes", "inputs", "outputs", "said"), CASES)
def test_refused(
    op_type: str, case: Any, attributes: dict[str, Any], inputs: list[Any], outputs: int, said: str
) -> None:
    given, known = case
    assert run_kernel(op_type, given, known, opset=1, domain=MS, outputs=min(outputs, 3))
    with pytest.raises(ValueError, match=f"{said}.* is not implemented"):
        run_kernel(op_type, given + inputs, known | attributes, opset=1, domain=MS, outputs=outputs)


def test_values_that_change_nothing_are_taken() -> None:
    given, known = GROUPED
    plain = run_kernel("GroupQueryAttention", given, known, opset=1, domain=MS, outputs=3)
    spelled = {**known, "smooth_softmax": 0, "qk_output": 0, "causal": 1, "k_quant_type": "NONE"}
    again = run_kernel("GroupQueryAttention", [*given, None, None], spelled, opset=1, domain=MS, outputs=3)
    for a, b in zip(plain, again, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("op_type", ["QLinearConv", "ConvInteger"])
def test_weights_that_are_no_constants_are_not_remembered(op_type: str) -> None:
    """A form of the weights is kept only where everything it depends on is constant."""
    from optimizer.io import parse
    from optimizer.runtime import Session

    rng = np.random.default_rng(0)
    constants = {"s": np.array(0.01, np.float32), "z": np.array(0, np.uint8)}
    node = "QLinearConv (x, s, z, w, s, z, s, z)" if op_type == "QLinearConv" else "ConvInteger (x, w)"
    model = parse(
        '<ir_version: 10, opset_import: ["" : 18]> g (uint8[1,64,16,16] x, uint8[32,64,3,3] w) => (y)'
        f" {{ y = {node} }}",
        constants,
    )
    session = Session(model)
    x = rng.integers(0, 9, (1, 64, 16, 16)).astype(np.uint8)
    first, second = (rng.integers(0, 3, (32, 64, 3, 3)).astype(np.uint8) for _ in range(2))
    session.run({"x": x, "w": first})
    again = session.run({"x": x, "w": second})["y"]
    np.testing.assert_array_equal(again, Session(model).run({"x": x, "w": second})["y"])
