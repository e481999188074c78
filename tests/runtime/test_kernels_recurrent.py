"""RNN, GRU and LSTM against onnxruntime: every attribute, seeded."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_oracle import assert_close, check, run_kernel

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
FUNCTIONS = {"RNN": 1, "GRU": 2, "LSTM": 3}
NAMES = [
    "Sigmoid",
    "Tanh",
    "Relu",
    "Affine",
    "LeakyRelu",
    "ScaledTanh",
    "HardSigmoid",
    "Elu",
    "Softsign",
    "Softplus",
]
PARAMETERS = {"Affine": 2, "LeakyRelu": 1, "ScaledTanh": 2, "HardSigmoid": 2, "Elu": 1}


def _case(op: str, seed: int) -> tuple[list[np.ndarray | None], dict[str, object]]:
    r = np.random.default_rng(seed)
    steps, batch, features, hidden = 5, 3, 4, 3
    direction = ["forward", "reverse", "bidirectional"][seed % 3]
    directions = 2 if seed % 3 == 2 else 1
    gates = GATES[op]

    def normal(*shape: int) -> np.ndarray:
        return (r.standard_normal(shape) * 0.6).astype(np.float32)

    inputs: list[np.ndarray | None] = [
        normal(steps, batch, features),
        normal(directions, gates * hidden, features),
        normal(directions, gates * hidden, hidden),
        normal(directions, 2 * gates * hidden) if r.random() < 0.7 else None,
        r.integers(1, steps + 1, batch).astype(np.int32) if r.random() < 0.6 else None,
        normal(directions, batch, hidden) if r.random() < 0.6 else None,
    ]
    attributes: dict[str, object] = {"hidden_size": hidden, "direction": direction}
    if op == "LSTM":
        inputs.append(normal(directions, batch, hidden) if r.random() < 0.6 else None)
        inputs.append(normal(directions, 3 * hidden) if r.random() < 0.5 else None)
        attributes["input_forget"] = int(r.random() < 0.3)
    if op == "GRU":
        attributes["linear_before_reset"] = int(r.random() < 0.5)
    if r.random() < 0.4:
        attributes["clip"] = 0.4
    if r.random() < 0.5:
        names = [str(n) for n in r.choice(NAMES, FUNCTIONS[op] * directions)]
        attributes["activations"] = names
        attributes["activation_alpha"] = [0.3 for n in names if n in PARAMETERS] or [0.0]
        attributes["activation_beta"] = [0.6 for n in names if PARAMETERS.get(n) == 2] or [0.0]
    while inputs[-1] is None:
        inputs.pop()
    return inputs, attributes


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("seed", range(45))
@pytest.mark.parametrize("opset", [7, 14])
def test_recurrent(op: str, seed: int, opset: int) -> None:
    inputs, attributes = _case(op, seed)
    check(op, inputs, attributes, opset=opset, outputs=3 if op == "LSTM" else 2, scale=4)


@pytest.mark.parametrize("op", GATES)
def test_batch_major_layout(op: str) -> None:
    """onnxruntime has no layout 1: the same numbers as layout 0, transposed."""
    inputs, attributes = _case(op, 2)
    inputs = inputs[:4]
    count = 3 if op == "LSTM" else 2
    plain = run_kernel(op, inputs, attributes, opset=14, outputs=count)
    assert inputs[0] is not None
    swapped = run_kernel(
        op, [inputs[0].transpose(1, 0, 2), *inputs[1:]], {**attributes, "layout": 1}, opset=14, outputs=count
    )
    assert_close(swapped[0], plain[0].transpose(2, 0, 1, 3))
    for a, b in zip(swapped[1:], plain[1:], strict=True):
        assert_close(a, b.transpose(1, 0, 2))


def test_thresholded_relu_and_case() -> None:
    inputs, _ = _case("RNN", 0)
    attributes = {"hidden_size": 3, "activations": ["thresholdedRELU"], "activation_alpha": [0.2]}
    y = run_kernel("RNN", inputs[:3], attributes, opset=14, outputs=2)[0]
    assert ((y == 0) | (y >= np.float32(0.2))).all()
    assert (y == 0).any()
    assert (y > 0).any()


def test_double_precision_and_float16() -> None:
    inputs, attributes = _case("LSTM", 3)
    wide = [None if v is None else v.astype(np.float64) if v.dtype == np.float32 else v for v in inputs]
    exact = run_kernel("LSTM", wide, attributes, opset=14, outputs=3)
    single = run_kernel("LSTM", inputs, attributes, opset=14, outputs=3)
    for a, b in zip(single, exact, strict=True):
        assert b.dtype == np.float64
        assert_close(a, b.astype(np.float32), scale=4)
    half = [None if v is None else v.astype(np.float16) if v.dtype == np.float32 else v for v in inputs]
    assert all(y.dtype == np.float16 for y in run_kernel("LSTM", half, attributes, opset=14, outputs=3))


def test_refuses() -> None:
    inputs, attributes = _case("GRU", 0)
    with pytest.raises(ValueError, match="disagree"):
        run_kernel("GRU", inputs[:3], {**attributes, "hidden_size": 5}, opset=14, outputs=2)
    with pytest.raises(ValueError, match="activation"):
        run_kernel("GRU", inputs[:3], {**attributes, "activations": ["Tanh", "Gelu"]}, opset=14, outputs=2)
