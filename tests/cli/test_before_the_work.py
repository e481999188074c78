"""What is found out before the work begins, and what is said of a user's rule that fails."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from optimizer.cli.optimize import main as oinfer_opt
from optimizer.cli.toolbox import main as oinfer
from optimizer.io import parse, save
from optimizer.rewrite.extensions import ENTRY_POINTS, extensions

MODEL = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[N, 2, 6, 6] x) => (float[N, 2, 6, 6] y) { n = Neg (x) y = Relu (n) }
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "in.onnx"
    save(parse(MODEL), path)
    return path


def call(command, *args: object) -> Result:
    return CliRunner().invoke(command, [str(arg) for arg in args])


def one_line(result: Result) -> str:
    """The error a user sees: exactly one line."""
    lines = [line for line in result.stderr.splitlines() if line.startswith(("error: ", "Error: "))]
    assert len(lines) == 1, result.output
    return lines[0]


@pytest.fixture
def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pass runs, no model is compared, no command is asked."""

    def fail(*_: object, **__: object) -> None:
        pytest.fail("the work has begun")

    monkeypatch.setattr("optimizer.rewrite.Pipeline.run", fail)
    monkeypatch.setattr("optimizer.api.check", fail)
    monkeypatch.setattr("optimizer.cli.reduce.Command", fail)


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("options", [["--report"], ["--save-log"]])
def test_a_report_that_cannot_be_written_is_refused_before_the_work(
    options: list[str], model: Path, tmp_path: Path
) -> None:
    result = call(oinfer_opt, model, tmp_path / "out.onnx", *options, tmp_path / "nowhere" / "r.json")
    assert result.exit_code == 4
    assert "r.json: cannot be written" in one_line(result)


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize(
    "words",
    [
        ["check", "M", "M", "--json"],
        ["check", "M", "M", "--junit"],
        ["reduce", "M", "--check", "false", "--output"],
    ],
)
def test_so_are_files_of_the_toolbox(words: list[str], model: Path, tmp_path: Path) -> None:
    words = [str(model) if word == "M" else word for word in words]
    for target in (tmp_path / "nowhere" / "r.json", tmp_path, f"{tmp_path}/r.json/"):
        result = call(oinfer, *words, target)
        assert result.exit_code == 4, result.output
        assert str(target) in one_line(result)


@pytest.mark.usefixtures("no_work")
def test_input_data_that_is_not_there_is_refused_before_the_work(model: Path, tmp_path: Path) -> None:
    result = call(oinfer_opt, model, tmp_path / "out.onnx", "--input-data", tmp_path / "nodir")
    assert result.exit_code == 4
    assert "nodir is not a directory" in one_line(result)
    (tmp_path / "few").mkdir()
    np.save(tmp_path / "few" / "x.npy", np.zeros((1, 3, 6, 6), np.float32))
    result = call(oinfer_opt, model, tmp_path / "out.onnx", "--input-data", tmp_path / "few")
    assert result.exit_code == 2
    assert "data set 'few'" in one_line(result)


FAILING = '''
from optimizer import P, graph_optimizer

@graph_optimizer
def look_too_far(graph):
    """Nothing."""
    return [node.inputs[7] for node in graph.nodes]

@graph_optimizer(P.Relu("x"))
def count_too_far(m, rw):
    """Relu(x) -> x"""
    return [m.x][7]
'''


@pytest.mark.parametrize(("name", "line"), [("look-too-far", 7), ("count-too-far", 12)])
def test_a_rule_that_fails_is_named_with_its_line(name: str, line: int, model: Path, tmp_path: Path) -> None:
    rules, out = tmp_path / "rules.py", tmp_path / "out.onnx"
    rules.write_text(FAILING)
    result = call(oinfer_opt, model, out, "--rules", rules, "--passes", name)
    assert result.exit_code == 2
    text = one_line(result)
    assert f" {name} failed" in text
    assert f"({rules}, line {line}): IndexError: " in text
    assert not out.exists()
    assert not (tmp_path / "out.onnx").exists()


def test_a_plugin_that_fails_to_load_is_named(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = EntryPoints([EntryPoint("acme", "no_such_module_of_acme", ENTRY_POINTS)])
    monkeypatch.setattr(sys.modules[extensions.__module__], "entry_points", lambda group: points)
    result = call(oinfer_opt, model, tmp_path / "out.onnx", "--plugin", "acme")
    assert result.exit_code == 2
    assert "plugin acme fails to load: ModuleNotFoundError: " in one_line(result)
