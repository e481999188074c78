"""Logs that are replayed, results that are optimized again, and that nothing depends on the process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import optimizer
from optimizer.cli.optimize import main as optimize_command
from optimizer.cli.toolbox import main as toolbox
from optimizer.io import load, parse, save
from optimizer.ir import UsageError
from optimizer.rewrite import read_log

CORPUS = Path(os.environ.get("OINFER_MODELS", "/nowhere"))
NETS = sorted(CORPUS.glob("*.onnx"))

HEAD = '<ir_version: 9, opset_import: ["": 18]>'


def net(seed: int, path: Path) -> Path:
    """A small net with something for many rules: weights from the seed, structure always the same."""
    rng = np.random.default_rng(seed)

    def weights(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32)

    text = """(float[N, 4, H, W] x) => (float[N, 10] y) <float sixth = {0.16666667}, float three = {3},
        float zero = {0}, float six = {6}, int64[2] target = {0, -1}> {
        c = Conv <pads = [1, 1, 1, 1]> (x, w1)
        b = BatchNormalization (c, s, t, m, v)
        p = Add (b, three) q = Clip (p, zero, six) r = Mul (b, q) h = Mul (r, sixth)
        d = Identity (h) e = Identity (d)
        i = Transpose <perm = [0, 2, 3, 1]> (e) j = Transpose <perm = [0, 3, 1, 2]> (i)
        g = GlobalAveragePool (j) f = Reshape (g, target)
        u = MatMul (f, w2) y = Add (u, w3) }"""
    constants = {
        "w1": weights(8, 4, 3, 3), "s": weights(8), "t": weights(8), "m": weights(8), "v": np.abs(weights(8)),
        "w2": weights(8, 10), "w3": weights(10),
    }  # fmt: skip
    save(parse(f"{HEAD} g {text}", constants), path)
    return path


def structure(path: Path) -> list[tuple[str, int]]:
    return [(node.op, len(node.inputs)) for node in load(path).graph.topological()]


def test_a_replayed_log_gives_the_same_bytes_and_the_same_structure_with_new_weights(tmp_path: Path) -> None:
    log, out, again = tmp_path / "log.json", tmp_path / "out.onnx", tmp_path / "again.onnx"
    source = net(0, tmp_path / "a.onnx")
    found = CliRunner().invoke(optimize_command, [str(source), str(out), "--save-log", str(log), "-q"])
    assert found.exit_code == 0, found.output
    assert CliRunner().invoke(toolbox, ["replay", str(source), str(log), str(again)]).exit_code == 0
    assert again.read_bytes() == out.read_bytes()
    other, result = net(1, tmp_path / "b.onnx"), tmp_path / "b.out.onnx"
    found = CliRunner().invoke(toolbox, ["replay", str(other), str(log), str(result)])
    assert found.exit_code == 0, found.output
    assert "verified: full" in found.output
    assert structure(result) == structure(out)
    assert result.read_bytes() != out.read_bytes()


def test_a_replay_applies_nothing_but_the_log(tmp_path: Path) -> None:
    log, out = tmp_path / "log.json", tmp_path / "out.onnx"
    source = net(0, tmp_path / "a.onnx")
    optimizer.optimize(source, passes=["eliminate"], output=out, save_log=log, verify="off")
    replayed = optimizer.optimize(source, replay=read_log(log), verify="off")
    fired = {rule for rule, _, _ in read_log(log).applications}
    assert replayed.report.fired.keys() == fired
    assert replayed.report.before.nodes > replayed.report.after.nodes
    small = tmp_path / "small.onnx"
    save(parse(f"{HEAD} g (float[N] x) => (float[N] y) {{ d = Identity (x) y = Relu (d) }}"), small)
    partial = optimizer.optimize(small, replay=read_log(log), verify="off")
    assert any(" rewrites of the log do not apply, first " in text for text in partial.report.warnings)


def test_a_log_of_another_model_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    log, out = tmp_path / "log.json", tmp_path / "out.onnx"
    optimizer.optimize(net(0, tmp_path / "a.onnx"), output=out, save_log=log, verify="off")
    small, result = tmp_path / "small.onnx", tmp_path / "result.onnx"
    save(parse(f"{HEAD} g (float[N] x) => (float[N] y) {{ y = Relu (x) }}"), small)
    found = CliRunner().invoke(toolbox, ["replay", str(small), str(log), str(result)])
    assert found.exit_code == 1, found.output
    assert "rewrites of the log do not apply, first " in found.output
    assert not result.exists()
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("text", ["", "[]", '{"oinfer-log": 9}', '{"oinfer-log": 1, "applications": [1]}'])
def test_what_is_no_log_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "log.json"
    path.write_text(text)
    with pytest.raises(UsageError, match="log"):
        read_log(path)


RUN = """import sys, optimizer
report = optimizer.optimize(sys.argv[1], output=sys.argv[2]).report
data = report.to_dict()
data["seconds"] = data["passes"] = data["rules"] = None
data["local"].pop("seconds"), data["verification"].pop("seconds")
print(data)
"""


def run_in_a_process(source: Path, target: Path, seed: str) -> str:
    environment = os.environ | {"PYTHONHASHSEED": seed, "OMP_NUM_THREADS": "1"}
    words = [sys.executable, "-c", RUN, str(source), str(target)]
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout


def test_two_processes_write_the_same_file_and_report(tmp_path: Path) -> None:
    source = net(0, tmp_path / "a.onnx")
    first = run_in_a_process(source, tmp_path / "1.onnx", "1")
    assert first == run_in_a_process(source, tmp_path / "2.onnx", "2")
    assert "verified': 'full'" in first
    assert (tmp_path / "1.onnx").read_bytes() == (tmp_path / "2.onnx").read_bytes()


def settles(source: Path, folder: Path) -> None:
    once, twice = folder / "once.onnx", folder / "twice.onnx"
    optimizer.optimize(source, output=once, size_limit=None, verify="off")
    report = optimizer.optimize(once, output=twice, size_limit=None, verify="off").report
    assert structure(twice) == structure(once), report.fired


def test_optimizing_a_result_again_changes_nothing(tmp_path: Path) -> None:
    settles(net(0, tmp_path / "a.onnx"), tmp_path)


@pytest.mark.sweep
@pytest.mark.parametrize("path", NETS, ids=lambda path: path.stem)
def test_nets_settle(path: Path, tmp_path: Path) -> None:
    settles(path, tmp_path)


@pytest.mark.sweep
@pytest.mark.parametrize("path", NETS, ids=lambda path: path.stem)
def test_nets_are_written_alike_and_replayed(path: Path, tmp_path: Path) -> None:
    log, files = tmp_path / "log.json", [tmp_path / f"{i}.onnx" for i in range(3)]
    code = (
        "import sys, optimizer\n"
        "optimizer.optimize(sys.argv[1], output=sys.argv[2], verify='off', save_log=sys.argv[3])"
    )
    for seed, target in enumerate(files[:2]):
        environment = os.environ | {"PYTHONHASHSEED": str(seed + 1)}
        words = [sys.executable, "-c", code, str(path), str(target), str(log)]
        subprocess.run(words, env=environment, check=True)
    found = CliRunner().invoke(toolbox, ["replay", str(path), str(log), str(files[2]), "--no-verify"])
    assert found.exit_code == 0, found.output
    assert files[0].read_bytes() == files[1].read_bytes() == files[2].read_bytes()


@pytest.mark.sweep
@pytest.mark.parametrize("path", NETS, ids=lambda path: path.stem)
def test_strict_results_of_nets_have_the_same_bits(path: Path, tmp_path: Path) -> None:
    from optimizer.verify import NumPy, OnnxRuntime, Reference

    result = tmp_path / "result.onnx"
    report = optimizer.optimize(path, output=result, fp="strict", verify="off").report
    assert report.bit_exact
    reference = Reference(str(path), seeds=1, size_count=1)
    if not reference.cases or reference.random:
        pytest.skip("nothing to compare")
    (case, *_) = reference.cases
    # With prepacking, a weight that was folded would be multiplied by another kernel than a computed one.
    for make in (lambda p: OnnxRuntime(str(p), prepack=False), lambda p: NumPy(load(p))):
        before, after = make(path).run(case.feeds), make(result).run(case.feeds)
        for name, value in before.items():
            np.testing.assert_array_equal(value, after[name], err_msg=name)
