"""The Python interface, and the code of the README, which is run as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import onnx
import pytest

import optimizer
from optimizer import Session, check, load, optimize, save
from optimizer.cli.optimize import main
from optimizer.io import parse, to_proto
from optimizer.ir import OptimizerError
from optimizer.options import CHOICES
from optimizer.verify.limits import read_limits

ROOT = Path(__file__).parents[2]
TEXT = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[N, 3] x) => (float[N, 2] y) {
    g = Gemm<alpha = 0.5>(x, a, c)
    m = MatMul(g, w)
    y = Mul(m, scale)
}
"""
RNG = np.random.default_rng(1)
CONSTANTS = {
    "a": RNG.standard_normal((3, 4)).astype(np.float32),
    "c": RNG.standard_normal(4).astype(np.float32),
    "w": RNG.standard_normal((4, 2)).astype(np.float32),
    "scale": np.float32(3),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    save(parse(TEXT, CONSTANTS), tmp_path / "model.onnx")
    return tmp_path / "model.onnx"


def test_every_kind_of_source_gives_the_same_result(path: Path) -> None:
    sources = (path, str(path), path.read_bytes(), onnx.load(path))
    results = [optimize(source).model.SerializeToString() for source in sources]
    assert len(set(results)) == 1
    assert optimize(path).verified == "full"


def test_the_source_is_not_changed(path: Path) -> None:
    proto = onnx.load(path)
    before = proto.SerializeToString()
    optimize(proto)
    assert proto.SerializeToString() == before


def test_a_result_is_saved_and_checked(path: Path, tmp_path: Path) -> None:
    result = optimize(path)
    out = result.save(tmp_path / "out.onnx")
    assert onnx.load(out).SerializeToString() == result.model.SerializeToString()
    comparison = check(path, out, max_abs_error=1e-5)
    assert comparison
    assert comparison.max_abs_error is not None
    assert comparison.max_abs_error < 1e-5
    assert not check(path, to_proto(parse(TEXT, CONSTANTS | {"scale": np.float32(2)})))


def test_a_session_runs_a_model(path: Path) -> None:
    x = RNG.standard_normal((5, 3)).astype(np.float32)
    (y,) = Session(path).run({"x": x}).values()
    expected = (0.5 * x @ CONSTANTS["a"] + CONSTANTS["c"]) @ CONSTANTS["w"] * 3
    np.testing.assert_allclose(y, expected, rtol=1e-5)


def test_load_gives_a_model_whose_graph_can_be_read(path: Path) -> None:
    assert load(path).histogram() == {"Gemm": 1, "MatMul": 1, "Mul": 1}


def test_all_public_names_exist_and_others_do_not() -> None:
    for name in optimizer.__all__:
        assert getattr(optimizer, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = optimizer.nonsense


def test_errors_share_a_base_class(tmp_path: Path) -> None:
    with pytest.raises(OptimizerError, match=r"nowhere\.onnx"):
        optimize(tmp_path / "nowhere.onnx")


def python_blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)


def test_the_code_of_the_readme_runs(path: Path) -> None:
    """All blocks in order, in one script, on a model of the name the README uses."""
    blocks = [block.replace("(1, 3, 224, 224)", "(2, 3)") for block in python_blocks()]
    script = "\n".join(blocks) + "\nprint(result.report.fired)\n"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        cwd=path.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    fired = done.stdout.splitlines()[-1]
    assert "fold-gemm-alpha" in fired
    assert (path.parent / "model.opt.onnx").exists()


def test_the_limits_of_the_readme_are_read(tmp_path: Path) -> None:
    found = re.search(r"```toml\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    assert found is not None
    (tmp_path / "limits.toml").write_text(found[1])
    limits = read_limits(tmp_path / "limits.toml")
    assert limits.of("anything").max_abs_error == limits.of("logits").max_abs_error == 1e-4
    assert limits.of("logits").top1 == 1.0
    assert limits.of("sigmoid_0.tmp_0").max_abs_error == 1e-5


def test_a_result_says_what_became_of_the_model(path: Path) -> None:
    result = optimize(path)
    counts = f"{result.report.before.nodes} -> {result.report.after.nodes} nodes"
    assert str(result) == f"<Result: {counts}, verified: full>"


def test_the_readmes_rules_are_those_of_the_example() -> None:
    """The rules in examples/custom_rules.py are the README's, word for word but for annotations."""

    def body(text: str, name: str) -> str:
        found = re.search(rf"def {name}\(.*?\n(?=\n\n|\Z)", text, re.DOTALL)
        assert found is not None
        return found[0].split("\n", 1)[1].rstrip()

    example = (ROOT / "examples/custom_rules.py").read_text("utf-8")
    readme = "\n\n\n".join(python_blocks())
    for name in ("fold_gemm_alpha", "fold_scale_into_matmul"):
        assert body(readme, name) == body(example, name)


@pytest.mark.parametrize("name", ["fold-gemm-alpha", "fold-scale-into-matmul"])
def test_each_example_rule_works_alone(name: str, path: Path) -> None:
    result = optimize(path, [name, "dce"], rules=[ROOT / "examples/custom_rules.py"])
    assert result.report.fired[name] == 1
    assert result.verified == "full"
    assert result.report.rejected == []


@pytest.mark.parametrize("option", [*CHOICES, "opset"])
def test_a_word_that_no_option_knows_is_refused(option: str, path: Path) -> None:
    with pytest.raises(OptimizerError, match=f"{option}='speed': it is "):
        optimize(path, **{option: "speed"})


def test_the_command_offers_the_same_words() -> None:
    offered = {param.name: param.type for param in main.params}
    for option, words in CHOICES.items():
        kind = offered[option]
        assert isinstance(kind, click.Choice)
        assert set(kind.choices) == set(words) - {""}, option


def test_a_wanted_layout_keeps_the_signature(path: Path) -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[N, 4, 6, 6] x) => (float[N, 4, 6, 6] y) { c = Conv(x, p) r = Relu(c) y = Conv(r, p) }
    """
    p = np.random.default_rng(1).standard_normal((4, 4, 1, 1)).astype(np.float32)
    save(parse(text, {"p": p}), path)
    plain, last = optimize(path), optimize(path, layout="nhwc", measure=True)
    assert [node.op_type for node in plain.model.graph.node] == ["Conv", "Relu", "Conv"]
    assert [node.op_type for node in last.model.graph.node] == [
        "Conv",
        "Transpose",
        "Relu",
        "Transpose",
        "Conv",
    ]
    assert last.verified == "full"
    assert [v.SerializeToString() for v in last.model.graph.input] == [
        v.SerializeToString() for v in plain.model.graph.input
    ]
    first = optimize(last.model, layout="nchw")
    assert [node.op_type for node in first.model.graph.node] == ["Conv", "Relu", "Conv"]
