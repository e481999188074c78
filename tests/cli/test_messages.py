"""What the commands say: options by their flags, what had no effect, and nothing that tells nothing."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner

from optimizer.cli.errors import spelled
from optimizer.cli.optimize import main as oinfer_opt
from optimizer.cli.toolbox import main as oinfer
from optimizer.io import parse, save
from optimizer.report import ModelStats, Report
from optimizer.report.table import local_summary

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'
TEXT = (
    HEAD
    + """
g (float[N, 3, 6, 6] x) => (float[N, 4, 4, 4] y) {
    c = Conv (x, w)
    d = BatchNormalization (c, s, s, s, s)
    y = Relu (d)
}
"""
)
NEVER_FIRES = '''
"""A rule for a model of another kind."""
from optimizer import P, graph_optimizer

@graph_optimizer(P.Relu("x"))
def refuse_relu(m, rw):
    """Relu(x) -> Neg(x)"""
    m.refuse("it is a Relu")

@graph_optimizer(P.Erf("x"))
def drop_erf(m, rw):
    """Erf(x) -> x"""
    return m.x
'''


@pytest.fixture
def model(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    weights = {"w": rng.standard_normal((4, 3, 3, 3)), "s": rng.random(4) + 0.5}
    path = tmp_path / "in.onnx"
    save(parse(TEXT, {name: array.astype(np.float32) for name, array in weights.items()}), path)
    return path


def run(model: Path, *options: str) -> tuple[int, str]:
    result = CliRunner().invoke(oinfer_opt, [str(model), str(model.with_name("out.onnx")), *options])
    return result.exit_code, result.output


def test_options_of_the_engine_are_spelled_as_flags() -> None:
    text = "option 'fp' strict, option 'freeze_initializers', option 'dims' and option 'rollback'"
    assert spelled(text) == "--fp strict, --freeze-initializers, --dim and --no-rollback"


def test_the_engine_does_not_spell_flags() -> None:
    root = Path(__file__).parents[2] / "optimizer"
    layers = ("ir", "io", "analysis", "runtime", "rewrite", "verify")
    files = [*root.glob("*.py"), *(path for layer in layers for path in (root / layer).rglob("*.py"))]
    flags = re.compile(r"(?<![\w-])--[a-z]")
    assert [str(path) for path in files if flags.search(path.read_text(encoding="utf-8"))] == []


def test_a_ceiling_that_is_not_kept_says_what_to_do(model: Path) -> None:
    code, text = run(model, "--max-abs-error", "1e-12", "--no-rollback")
    assert code == 1
    assert "--max-abs-error allows 1e-12: raise it, or set --fp to strict" in text


@pytest.mark.parametrize("bound", ["nan", "-1"])
def test_a_ceiling_that_means_nothing_is_refused(bound: str, model: Path) -> None:
    code, text = run(model, "--max-abs-error", bound)
    assert code == 2
    assert "is not a number from 0 on" in text


def test_patterns_and_rules_without_effect_are_named(model: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.py"
    rules.write_text(NEVER_FIRES, encoding="utf-8")
    code, text = run(model, "--keep", "elsewhere*", "--keep", "c", "--rules", str(rules))
    assert code == 0
    assert "warning: --keep 'elsewhere*' matches no node" in text
    assert "--keep 'c'" not in text
    assert "warning: 'refuse-relu' was applied nowhere: it is a Relu" in text
    assert "warning: 'drop-erf' was applied nowhere: nothing in the model matches" in text


def test_only_what_says_something_is_printed(model: Path) -> None:
    _, brief = run(model)
    _, full = run(model, "-v")
    assert "most often held back" not in brief
    assert "most often held back" in full
    assert "top-5" not in brief
    assert "rewrites checked one by one: 1" in brief
    assert "the NumPy executor against the original in onnxruntime: max-abs-error" not in brief
    assert "the NumPy executor against the original in onnxruntime: max-abs-error" in full


def test_what_the_verification_notes_stands_under_what_it_found(tmp_path: Path) -> None:
    path = tmp_path / "constant.onnx"
    outputs = [f"y{i}" for i in range(6)]
    steps = " ".join(f"t{i} = Mul (x, z) {name} = Identity (t{i})" for i, name in enumerate(outputs))
    listed = ", ".join(f"float[N, 4] {name}" for name in outputs)
    text = f"{HEAD} g (float[N, 4] x) => ({listed}) <float z = {{0}}> {{ {steps} }}"
    save(parse(text), path)
    _, brief = run(path)
    verified, *notes = brief[brief.index("verified: ") :].splitlines()
    assert verified.startswith("verified: full")
    assert notes[0].startswith("note: output 'y0' is all but constant on the inputs tried")
    assert notes[3:] == ["note: and 3 more with -v"]
    assert all(f"note: output '{name}'" in run(path, "-v")[1] for name in outputs)


def test_how_rewrites_were_checked_is_said_in_words() -> None:
    stats = ModelStats(0, {}, 0)
    report = Report(stats, stats, local={"checked": 140, "briefly": 119, "skipped": {"too large": 3}})
    assert local_summary(report) == (
        "rewrites checked one by one: 140 (119 of them at one size and scale, as others like them had"
        " passed at several); not checked: 3 (too large)"
    )
    assert local_summary(replace(report, local={"checked": 2, "briefly": 0, "skipped": {}})).endswith(": 2")


def test_a_conversion_that_fails_is_one_line_without_source_code(tmp_path: Path) -> None:
    path = tmp_path / "in.onnx"
    onnx.save(onnx.parser.parse_model(HEAD + "g (float[2] x) => (float[2] y) { y = Acosh (x) }"), path)
    code, text = run(path, "--opset", "5")
    assert code == 2
    assert text == "error: cannot convert opset 17 to 5: the older one has no Acosh\n"


def test_a_conversion_downwards_names_the_step_that_fails(tmp_path: Path) -> None:
    path = tmp_path / "in.onnx"
    head = HEAD.replace("17", "12")
    text = "g (float[2] x, float a) => (float[2] y) { y = Clip (x, a) }"
    onnx.save(onnx.parser.parse_model(head + text), path)
    code, text = run(path, "--opset", "9")
    assert code == 2
    assert text == (
        "error: cannot convert opset 12 to 9: onnx's converter cannot take Clip down from opset 11 to 10\n"
    )


def test_help_tells_defaults_and_exit_codes() -> None:
    text = " ".join(CliRunner().invoke(oinfer_opt, ["--help"], terminal_width=80).output.split())
    for default in ("[default]", "[balanced]", "[full]", "70 an error of this program", "130, 143"):
        assert default in text
    text = CliRunner().invoke(oinfer, ["run", "--help"], terminal_width=80).output
    assert "[numpy]" in text.partition("--engine")[2]


def test_summaries_of_commands_are_not_cut() -> None:
    text = CliRunner().invoke(oinfer, ["--help"], terminal_width=80).output
    assert "..." not in text.partition("Commands:")[2]
    assert all(command.short_help for command in oinfer.commands.values())


def test_external_data_of_the_input_is_never_the_output(model: Path, tmp_path: Path) -> None:
    source, data = tmp_path / "ext.onnx", tmp_path / "ext.bin"
    onnx.save(onnx.load(model), source, save_as_external_data=True, location=data.name, size_threshold=0)
    before = data.read_bytes()
    result = CliRunner().invoke(oinfer_opt, [str(source), str(data)])
    assert result.exit_code == 2
    assert "ext.bin holds external data of the input" in result.output
    assert data.read_bytes() == before


@pytest.mark.parametrize("place", [0, 1])
def test_a_dash_is_no_file(place: int, model: Path) -> None:
    files = [str(model), str(model.with_name("out.onnx"))]
    files[place] = "-"
    result = CliRunner().invoke(oinfer_opt, files)
    assert result.exit_code == 2
    assert "'-' is no file" in result.output
