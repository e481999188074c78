"""The commands as a user sees them: exit codes, one clear line, nothing half-written."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result

from optimizer.cli.optimize import main as oinfer_opt
from optimizer.cli.toolbox import main as oinfer
from optimizer.io import parse, save

MODEL = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[N, 2, 6, 6] x) => (float[N, 4, 4, 4] y) {
    w_in = Identity(w)
    c = Conv(x, w_in)
    s = Mul(c, k)
    t = Add(s, b)
    y = Relu(t)
}
"""
RNG = np.random.default_rng(3)
CONSTANTS = {
    "w": RNG.standard_normal((4, 2, 3, 3)).astype(np.float32),
    "k": RNG.standard_normal((4, 1, 1)).astype(np.float32),
    "b": RNG.standard_normal((1, 4, 1, 1)).astype(np.float32),
}

WRONG_RULES = {
    "weight": '''
"""A weight off by 1 %."""
from optimizer import graph_optimizer, P

@graph_optimizer(P.Relu(P.Conv("x", "w", "b", name="conv").once()), constants="w b")
def spoil_weight(m, rw):
    """Relu(Conv(x, w, b)) -> Relu(Conv(x, w', b)) with one weight off by 1 %"""
    w = m.f64(m.w).copy()
    if w.flat[7] == 0 or m.tensor(m.w).shape[0] != 4 or m.conv.name == "spoilt":
        m.refuse("no weight to spoil")
    w.flat[7] *= 1.01
    return rw.op.Relu(rw.op.Conv(m.x, rw.const(w, like=m.w), m.b))
''',
    "axis": '''
"""A swapped axis."""
from optimizer import graph_optimizer, P

@graph_optimizer(P.Relu("x"), tag="E0")
def swap_axes(m, rw):
    """Relu(x) -> Relu(x) with the last two axes swapped"""
    m.require(m.rank(m.x) == 4 and m.producer(m.x).op_type != "Transpose", "done already")
    return rw.op.Relu(rw.op.Transpose(m.x, perm=[0, 1, 3, 2]))
''',
}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "in.onnx"
    save(parse(MODEL, CONSTANTS), path)
    return path


def call(command, *args: object) -> Result:
    return CliRunner().invoke(command, [str(arg) for arg in args])


def one_line(result: Result) -> str:
    """The error a user sees: exactly one line."""
    lines = [line for line in result.stderr.splitlines() if line.startswith(("error: ", "Error: "))]
    assert len(lines) == 1, result.output
    assert "Traceback" not in result.output
    return lines[0]


def test_it_optimizes_verifies_writes_and_reports(model: Path, tmp_path: Path) -> None:
    out, report = tmp_path / "out.onnx", tmp_path / "report.json"
    before = model.read_bytes()
    result = call(oinfer_opt, model, out, "--report", report)
    assert result.exit_code == 0, result.output
    assert sorted(node.op_type for node in onnx.load(out).graph.node) == ["Conv", "Relu"]
    assert model.read_bytes() == before
    data = json.loads(report.read_text())
    assert (data["verified"], data["before"]["nodes"], data["after"]["nodes"]) == ("full", 5, 2)
    assert 0 <= data["max_abs_error"] < 1e-5
    assert data["after"]["file_bytes"] == out.stat().st_size
    assert "all nodes" in result.output
    assert "verified: full" in result.output


def test_the_same_input_gives_the_same_bytes(model: Path, tmp_path: Path) -> None:
    for name in ("a.onnx", "b.onnx"):
        assert call(oinfer_opt, model, tmp_path / name, "-q").output == ""
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()


def test_named_passes_run_alone_and_in_order(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.onnx"
    assert call(oinfer_opt, model, out, "--passes", "eliminate,dce").exit_code == 0
    ops = [node.op_type for node in onnx.load(out).graph.node]
    assert ops == ["Conv", "Mul", "Add", "Relu"]


def test_a_single_rule_runs_where_it_is_named(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.onnx"
    assert call(oinfer_opt, model, out, "--passes", "drop-identity").exit_code == 0
    assert call(oinfer_opt, model, out, "--passes", "drop-identty").output.endswith(
        "did you mean drop-identity?\n"
    )


def test_kept_outputs_stay(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.onnx"
    assert call(oinfer_opt, model, out, "--keep", "s").exit_code == 0
    assert "Mul" in [node.op_type for node in onnx.load(out).graph.node]


def test_shapes_and_dims_are_frozen(model: Path, tmp_path: Path) -> None:
    for option in (("--dim", "N=3"), ("--input-shape", "x:3,2,6,6")):
        out = tmp_path / "out.onnx"
        assert call(oinfer_opt, model, out, *option).exit_code == 0
        graph = onnx.load(out).graph
        shapes = [
            [d.dim_value for d in v.type.tensor_type.shape.dim] for v in (graph.input[0], graph.output[0])
        ]
        assert shapes == [[3, 2, 6, 6], [3, 4, 4, 4]]


@pytest.mark.parametrize("kind", WRONG_RULES)
def test_a_wrong_rule_is_caught_named_and_left_out(kind: str, model: Path, tmp_path: Path) -> None:
    rules, out, report = tmp_path / "wrong.py", tmp_path / "out.onnx", tmp_path / "report.json"
    rules.write_text(WRONG_RULES[kind])
    result = call(oinfer_opt, model, out, "--rules", rules, "--report", report)
    assert result.exit_code == 0, result.output
    (rejected,) = {entry["rule"] for entry in json.loads(report.read_text())["rejected"]}
    assert rejected in ("spoil-weight", "swap-axes")
    assert f"left out: {rejected}" in result.output
    assert sorted(node.op_type for node in onnx.load(out).graph.node) == ["Conv", "Relu"]
    assert call(oinfer, "check", model, out).exit_code == 0


@pytest.mark.parametrize("mode", ["local", "whole", "each"])
def test_every_mode_of_verification_catches_a_swapped_axis(mode: str, model: Path, tmp_path: Path) -> None:
    rules, out = tmp_path / "wrong.py", tmp_path / "out.onnx"
    rules.write_text(WRONG_RULES["axis"])
    result = call(oinfer_opt, model, out, "--rules", rules, "--verify", mode)
    assert result.exit_code == 0, result.output
    assert "left out: swap-axes" in result.output
    assert "Transpose" not in [node.op_type for node in onnx.load(out).graph.node]


@pytest.mark.parametrize(("kind", "mode"), [("weight", "full"), ("axis", "full"), ("axis", "whole")])
def test_without_rollback_a_wrong_rule_fails_the_run(
    kind: str, mode: str, model: Path, tmp_path: Path
) -> None:
    rules, out = tmp_path / "wrong.py", tmp_path / "out.onnx"
    rules.write_text(WRONG_RULES[kind])
    out.write_bytes(b"earlier")
    result = call(oinfer_opt, model, out, "--rules", rules, "--no-rollback", "--verify", mode)
    assert result.exit_code == 1
    one_line(result)
    assert out.read_bytes() == b"earlier"


def _text(path: Path) -> None:
    path.write_text("hello, this is no model")


def _directory(path: Path) -> None:
    path.mkdir()


def _truncated(path: Path) -> None:
    save(parse(MODEL, CONSTANTS), path)
    path.write_bytes(path.read_bytes()[:200])


BAD_INPUTS = [
    ("missing", lambda path: None, 4),
    ("empty", lambda path: path.write_bytes(b""), 3),
    ("text", _text, 3),
    ("random", lambda path: path.write_bytes(np.random.default_rng(0).bytes(4096)), 3),
    ("truncated", _truncated, 3),
    ("directory", _directory, 4),
]


@pytest.mark.parametrize(("make", "code"), [b[1:] for b in BAD_INPUTS], ids=[b[0] for b in BAD_INPUTS])
def test_bad_inputs_get_one_line_and_leave_an_earlier_output(make, code: int, tmp_path: Path) -> None:
    source, out = tmp_path / "bad.onnx", tmp_path / "out.onnx"
    make(source)
    out.write_bytes(b"earlier")
    result = call(oinfer_opt, source, out)
    assert result.exit_code == code, result.output
    assert "bad.onnx" in one_line(result)
    assert out.read_bytes() == b"earlier"
    assert sorted(p.name for p in tmp_path.iterdir() if p.name != "bad.onnx") == ["out.onnx"]


BAD_CALLS = [
    ("unknown-pass", ["--passes", "fold,nonsense"], "nonsense"),
    ("bad-shape", ["--input-shape", "x:1,a"], "x:1,a"),
    ("wrong-rank", ["--input-shape", "x:1,2"], "rank 4"),
    ("contradiction", ["--input-shape", "x:1,3,6,6"], "axis 1 is 2"),
    ("unknown-input", ["--input-shape", "z:1"], "inputs are x"),
    ("unknown-dim", ["--dim", "batch=3"], "batch"),
    ("bad-dim", ["--dim", "N"], "NAME=SIZE"),
    ("bad-size", ["--size-limit", "much"], "much"),
    ("no-rules", ["--rules", "nowhere.py"], "nowhere.py"),
    ("no-plugin", ["--plugin", "acme"], "acme"),
    ("bad-opset", ["--opset", "999"], "999"),
    ("bad-print-after", ["--print-after", "nonsense"], "nonsense"),
    ("stop-without-each", ["--stop"], "--verify each"),
]


@pytest.mark.parametrize(("options", "word"), [b[1:] for b in BAD_CALLS], ids=[b[0] for b in BAD_CALLS])
def test_bad_calls_are_usage_errors(options: list[str], word: str, model: Path, tmp_path: Path) -> None:
    result = call(oinfer_opt, model, tmp_path / "out.onnx", *options)
    assert result.exit_code == 2, result.output
    assert word in one_line(result)
    assert not (tmp_path / "out.onnx").exists()


def test_the_input_is_never_the_output(model: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.onnx"
    os.symlink(model, link)
    before = model.read_bytes()
    for target in (model, link):
        result = call(oinfer_opt, model, target)
        assert result.exit_code == 2
        assert "input itself" in one_line(result)
    assert model.read_bytes() == before


@pytest.mark.parametrize("target", ["nowhere/out.onnx", ".", "out.onnx/"])
def test_a_target_that_cannot_be_written_is_named(target: str, model: Path, tmp_path: Path) -> None:
    result = call(oinfer_opt, model, f"{tmp_path}/{target}")
    assert result.exit_code in (2, 4)
    assert "directory" in one_line(result)
    assert not (tmp_path / "out.onnx").exists()


def test_what_a_pass_changed_is_printed(model: Path, tmp_path: Path) -> None:
    result = call(oinfer_opt, model, tmp_path / "out.onnx", "--print-after", "fuse")
    assert "after fuse" in result.output
    assert "after eliminate" not in result.output


def test_check_tells_equal_from_different(model: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.onnx"
    save(parse(MODEL, CONSTANTS | {"k": CONSTANTS["k"] * 1.001}), other)
    assert call(oinfer, "check", model, model).exit_code == 0
    assert call(oinfer, "check", model, other).exit_code == 1
    result = call(oinfer, "check", model, other, "--json")
    assert json.loads(result.stdout)["max_abs_error"] > 1e-4


def test_inspect_describes_models_and_tensors(model: Path) -> None:
    text = call(oinfer, "inspect", model).output
    for word in ("IR version 8", "ai.onnx 17", "input  x: FLOAT[N, 2, 6, 6]", "5 nodes", "c = Conv(x, w_in)"):
        assert word in text
    text = call(oinfer, "inspect", model, "--tensor", "c").output
    assert "c: intermediate" in text
    assert "made by Conv" in text
    assert "similar: " not in text
    result = call(oinfer, "inspect", model, "--tensor", "w_")
    assert result.exit_code == 2
    assert "similar: w_in" in one_line(result)


def test_inspect_infers_types_that_are_not_declared(tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 18]> g (float[N, 4] x, bool c) => (float[k, l] y) {
      [turn] t = Transpose (x)
      y = If (c) <then_branch = a () => (float[p, q] r) { n = Neg (t) r = Abs (n) },
                  else_branch = e () => (float[p, q] o) { o = Identity (t) }> }"""
    save(parse(text), tmp_path / "m.onnx")
    for name, spelled in (
        ("t", "FLOAT[4, N] (inferred)"),
        ("n", "FLOAT[4, N] (inferred)"),
        ("x", "FLOAT[N, 4]"),
    ):
        assert f"  type {spelled}\n" in call(oinfer, "inspect", tmp_path / "m.onnx", "--tensor", name).output


def test_run_takes_and_gives_arrays(model: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((2, 2, 6, 6), np.float32))
    result = call(oinfer, "run", model, "--input", f"x={tmp_path / 'x.npy'}", "--save", tmp_path / "outs")
    assert result.exit_code == 0, result.output
    assert "y: float32 [2, 4, 4, 4]" in result.output
    assert np.load(tmp_path / "outs" / "y.npy").shape == (2, 4, 4, 4)
    assert call(oinfer, "run", model).exit_code == 0
    assert call(oinfer, "run", model, "--input", "z=z.npy").exit_code == 4
