"""``--dim`` and ``--assume-nonzero-dims`` from the command line to the written file."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result

from optimizer import SizeRange, optimize
from optimizer.cli import parsing
from optimizer.cli.optimize import main as oinfer_opt
from optimizer.cli.toolbox import main as oinfer
from optimizer.io import parse, save

REST_IN_THE_MIDDLE = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[N, S, 8] x) => (float[N, T, 4] y) {
    shape = Shape(x)
    n = Gather(shape, zero)
    s = Gather(shape, one)
    twice = Mul(s, two)
    a = Unsqueeze(n, axes)
    b = Unsqueeze(twice, axes)
    target = Concat<axis=0>(a, b, four)
    y = Reshape(x, target)
}
"""
CONSTANTS = {
    "zero": np.array(0),
    "one": np.array(1),
    "two": np.array(2),
    "axes": np.array([0]),
    "four": np.array([4]),
}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "in.onnx"
    save(parse(REST_IN_THE_MIDDLE, CONSTANTS), path)
    return path


def call(command: click.Command, *args: object) -> Result:
    return CliRunner().invoke(command, [str(arg) for arg in args])


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["batch=8"], {"batch": 8}),
        (["batch=1..64"], {"batch": SizeRange(1, 64)}),
        (["batch=1.."], {"batch": SizeRange(1)}),
        (["batch=..64"], {"batch": SizeRange(0, 64)}),
        (["seq%8=0", "seq=1..512"], {"seq": SizeRange(1, 512, 8)}),
        (["seq=3..3"], {"seq": 3}),
        (["x:0=4", "a=b=2"], {"x:0": 4, "a=b": 2}),
    ],
)
def test_dims_are_read(texts: list[str], expected: dict[str, object]) -> None:
    assert parsing.dims(texts) == expected


@pytest.mark.parametrize("text", ["batch", "batch=", "=8", "batch=a", "seq%0=0", "seq%8=1", "n=9..3", "n=-1"])
def test_what_means_nothing_is_a_usage_error(text: str, model: Path, tmp_path: Path) -> None:
    result = call(oinfer_opt, model, tmp_path / "out.onnx", "--dim", text)
    assert result.exit_code == 2
    assert not (tmp_path / "out.onnx").exists()


def test_a_dim_that_no_input_has_is_a_usage_error(model: Path, tmp_path: Path) -> None:
    result = call(oinfer_opt, model, tmp_path / "out.onnx", "--dim", "M=1..4")
    assert result.exit_code == 2
    assert "no input has a dim called 'M'" in result.stderr


def _ops(path: Path) -> list[str]:
    return sorted(node.op_type for node in onnx.load(path).graph.node)


def test_a_rest_beside_a_dim_that_may_be_zero_is_left_to_the_model(model: Path, tmp_path: Path) -> None:
    """[0, -1, 4] would not be accepted for N = 0, the original is."""
    out = tmp_path / "out.onnx"
    assert call(oinfer_opt, model, out).exit_code == 0
    assert len(_ops(out)) > 1


@pytest.mark.parametrize("option", [("--dim", "N=1.."), ("--dim", "N=1..64"), ("--assume-nonzero-dims",)])
def test_a_dim_that_is_never_zero_frees_the_target(
    option: tuple[str, ...], model: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.onnx"
    result = call(oinfer_opt, model, out, *option)
    assert result.exit_code == 0, result.output
    assert "verified: full" in result.output
    assert _ops(out) == ["Reshape"]
    dims = [d.dim_param for d in onnx.load(out).graph.input[0].type.tensor_type.shape.dim]
    assert dims == ["N", "S", ""]


def test_verification_keeps_to_the_sizes_that_are_stated(tmp_path: Path) -> None:
    """What is true for S >= 20 only would be found wrong at any other size."""
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[N, S] x) => (float[N, T] y) {
        shape = Shape(x)
        s = Gather(shape, one)
        limit = Constant<value_int = 20>()
        kept = Min(s, limit)
        ends = Unsqueeze(kept, axes)
        y = Slice(x, axes, ends, ones)
    }
    """
    constants = {"one": np.array(1), "axes": np.array([0]), "ones": np.array([1])}
    save(parse(text, constants), tmp_path / "in.onnx")
    result = optimize(tmp_path / "in.onnx", dims={"S": SizeRange(20, divisor=4)})
    assert result.verified == "full"
    assert [n.op_type for n in result.model.graph.node] == ["Slice"]
    assert not result.report.rejected


def test_an_unnamed_axis_can_be_fixed(tmp_path: Path) -> None:
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[?, 4] x) => (float[?, 4] y) { y = Relu(x) }'
    save(parse(text), tmp_path / "in.onnx")
    result = optimize(tmp_path / "in.onnx", dims={"x:0": 3})
    assert [d.dim_value for d in result.model.graph.input[0].type.tensor_type.shape.dim] == [3, 4]


# ---------------------------------------------------------------- oinfer inspect --shapes


def test_inspect_prints_every_tensor(model: Path) -> None:
    result = call(oinfer, "inspect", model, "--shapes")
    assert result.exit_code == 0
    lines = {line.split()[0]: " ".join(line.split()[1:]) for line in result.output.splitlines()}
    assert lines["x"] == "float[N, S, 8]"
    assert lines["target"] == "int64[3]"
    assert lines["y"] == "float[orelse(N, N), orelse(2*S, S), 4]" or lines["y"].startswith("float[N, ")


def test_inspect_shows_what_onnxruntime_produced(model: Path) -> None:
    result = call(oinfer, "inspect", model, "--check-shapes")
    assert result.exit_code == 0, result.output
    assert "0 of" in result.output.splitlines()[-1]
    (line,) = (line for line in result.output.splitlines() if line.startswith("y "))
    assert line.count("float[") == 3


def test_a_wrong_inference_is_seen_at_once(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from optimizer.analysis import Fact, InferContext, registry

    def wrong(context: InferContext) -> Fact:
        return Fact.tensor(context.dtype(0), (7,))

    monkeypatch.setitem(registry._rules[("", "Gather")], 1, wrong)
    registry.rule_for.cache_clear()
    try:
        result = call(oinfer, "inspect", model, "--check-shapes")
    finally:
        monkeypatch.undo()
        registry.rule_for.cache_clear()
    assert result.exit_code == 1
    assert "<- wrong" in result.output
    assert " 0 of" not in result.output.splitlines()[-1]
