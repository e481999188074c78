"""``oinfer passes``, ``--why-not``, ``--explain``, and the page of documentation."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from click.testing import CliRunner
from onnx import parser

from optimizer.api import rules_page
from optimizer.cli import optimize, toolbox

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLE = Path(__file__).parents[2] / "examples" / "custom_rules.py"
TEXT = """<ir_version: 9, opset_import: ["" : 17]>
g (float[N,4] x, float[4,4] w) => (float[N,4] y) { a = MatMul(x, w) b = Softplus(a) y = Add(b, w) }"""


def run(tmp_path: Path, *options: str) -> tuple[int, str]:
    source = tmp_path / "in.onnx"
    onnx.save(parser.parse_model(TEXT), source)
    arguments = [str(source), str(tmp_path / "out.onnx"), "-q", "--verify", "off", *options]
    result = CliRunner().invoke(optimize.main, arguments)
    return result.exit_code, result.output


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--why-not", "spell-softplus"], "--fp default does not admit E3"),
        (["--why-not", "spell-softplus", "--fp", "fast"], "Softplus #4 -> 'b': it would be more nodes"),
        (["--why-not", "fuse-softsign"], "the model: it has no Div"),
        (["--why-not", "fuse-gemm-add"], "fuse-gemm-add at 1 Add: the pattern does not match"),
        (["--why-not", "fuse-matmul-add"], "fuse-matmul-add at 1 Add: the pattern does not match"),
        (["--explain", "y"], "no rule at Add #5 -> 'y': the pattern does not match"),
        (["--explain", "b", "--fp", "fast"], "spell-softplus at Softplus #4 -> 'b': it would be more nodes"),
    ],
)
def test_the_answer_names_the_reason(tmp_path: Path, options: list[str], expected: str) -> None:
    status, output = run(tmp_path, *options)
    assert status == 0
    assert expected in output


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("fuse-gemm-ad", "no rule 'fuse-gemm-ad'; did you mean fuse-gemm-add?"),
        ("fold-gemm-alpha", "'fold-gemm-alpha' is a function of the whole graph"),
    ],
)
def test_a_rule_that_is_not_there_is_found_out_before_the_work(
    tmp_path: Path, name: str, expected: str
) -> None:
    status, output = run(tmp_path, "--rules", str(EXAMPLE), "--why-not", name)
    assert status == 2
    assert expected in output
    assert not (tmp_path / "out.onnx").exists()


def test_a_node_that_is_not_there_is_a_warning(tmp_path: Path) -> None:
    status, output = run(tmp_path, "--explain", "nothing", "--explain", "y")
    assert status == 0
    assert "warning: --explain: the result has no node 'nothing'" in output
    assert "no rule at Add #5 -> 'y'" in output


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "fold-batchnorm-into-conv"),
        (["fuse"], "BatchNormalization(Conv(x, w, b), scale, shift, mean, var) -> Conv("),
        (["fuse-attention"], "With a mask it is only faster"),
        (["layout"], "has less data transposed"),
        (["fuse-atention"], "did you mean fuse-attention?"),
    ],
)
def test_passes_are_listed(arguments: list[str], expected: str) -> None:
    assert expected in CliRunner().invoke(toolbox.main, ["passes", *arguments]).output


def test_the_page_is_up_to_date() -> None:
    assert (DOCS / "rules.md").read_text(encoding="utf-8") == rules_page(), "oinfer passes --markdown"
