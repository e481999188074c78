"""``oinfer check`` in people's builds: their data, thresholds, a baseline, JUnit; and what is bad input."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import onnx
import pytest
from click.testing import CliRunner

import optimizer
from optimizer.cli.optimize import main as optimize_command
from optimizer.cli.toolbox import main
from optimizer.io import parse, save
from optimizer.verify import Reference, check_models
from optimizer.verify.states import state_pairs

HEAD = '<ir_version: 9, opset_import: ["": 18]>'
RNG = np.random.default_rng(11)
W = RNG.standard_normal((6, 9)).astype(np.float32)


def write(path: Path, text: str, **constants: np.ndarray) -> Path:
    save(parse(f"{HEAD} g {text}", constants), path)
    return path


def classifier(path: Path, error: float = 0.0) -> Path:
    w = W.copy()
    w[0, 0] += error
    return write(
        path, "(float[N, 6] x) => (float[N, 9] y, float[N, 9] z) { y = MatMul (x, w) z = Neg (y) }", w=w
    )


def invoke(*words: object) -> tuple[int, str]:
    found = CliRunner().invoke(main, [str(word) for word in words])
    return found.exit_code, found.output


@pytest.fixture
def models(tmp_path: Path) -> tuple[Path, Path]:
    return classifier(tmp_path / "a.onnx"), classifier(tmp_path / "b.onnx", 1e-3)


def test_a_baseline_holds_errors_down(models: tuple[Path, Path], tmp_path: Path) -> None:
    a, b = models
    stored = tmp_path / "results.json"
    assert invoke("check", a, b, "--max-abs-error", 1, "--json", stored)[0] == 0
    assert json.loads(stored.read_text())["ok"] is True
    assert invoke("check", a, b, "--max-abs-error", 1, "--baseline", stored)[0] == 0
    worse = classifier(tmp_path / "worse.onnx", 2e-3)
    code, text = invoke("check", a, worse, "--max-abs-error", 1, "--baseline", stored)
    assert code == 1
    assert "before" in text
    (tmp_path / "no.json").write_text("{}")
    assert invoke("check", a, b, "--baseline", tmp_path / "no.json")[0] == 2


THRESHOLDS = [
    ("max_abs_error = 1e-6", 1),
    ("max_abs_error = 1e-1", 0),
    ("max_abs_error = 1e-6\n[outputs.y]\nmax_abs_error = 1.0\n[outputs.z]\nmax_abs_error = 1.0", 0),
    ("max_abs_error = 1.0\n[outputs.z]\nmax_abs_error = 1e-6", 1),
    ("max_abs_error = 1.0\ncosine = 0.9999999999999", 1),
    ("max_abs_error = 1.0\nmax_rel_error = 1e-9", 1),
    ("max_abs_error = 1.0\ntop5 = 0.5", 0),
    ("cosinus = 1.0", 2),
    ("cosine = 'one'", 2),
    ("max_abs_error = nan", 2),
    ("outputs = 3", 2),
    ("= nothing", 2),
]


@pytest.mark.parametrize(("text", "code"), THRESHOLDS)
def test_thresholds(models: tuple[Path, Path], tmp_path: Path, text: str, code: int) -> None:
    path = tmp_path / "limits.toml"
    path.write_text(text)
    found = invoke("check", *models, "--thresholds", path)
    assert found[0] == code, found[1]


WRONG_OUTPUTS = [
    ("[outputs.yy]", "no output is called 'yy'; did you mean 'y'?"),
    ("[outputs.logits]", "no output is called 'logits'; there are 'y', 'z'"),
    ("[outputs.y.0.out]", 'a name with dots is quoted: [outputs."y.0.out"]'),
]


@pytest.mark.parametrize(("table", "said"), WRONG_OUTPUTS)
def test_limits_of_an_output_that_is_not_there(
    models: tuple[Path, Path], tmp_path: Path, table: str, said: str
) -> None:
    path = tmp_path / "limits.toml"
    path.write_text(f"{table}\nmax_abs_error = 1.0")
    code, text = invoke("check", *models, "--thresholds", path)
    assert code == 2
    assert text.startswith(f"error: {path}: ")
    assert said in text


def test_figures_are_of_one_engine(tmp_path: Path) -> None:
    """What the engines differ in is no difference of the models; it has a name of its own."""
    w = RNG.standard_normal((512, 64)).astype(np.float32)
    path = write(tmp_path / "a.onnx", "(float[N, 512] x) => (float[N, 64] y) { y = MatMul (x, w) }", w=w)
    found = check_models(path, path)
    assert found.max_abs_error == 0.0
    assert found.across_engines is not None
    assert 0.0 < found.across_engines < 1e-3
    assert f"max-abs-error 0, max-rel 0, cosine 1, across engines {found.across_engines:.3g} " in str(found)
    stored = tmp_path / "stored.json"
    assert invoke("check", path, path, "--json", stored)[0] == 0
    assert json.loads(stored.read_text())["across_engines"] == found.across_engines
    moved = write(
        tmp_path / "b.onnx",
        "(float[N, 512] x) => (float[N, 64] y) { y = MatMul (x, w) }",
        w=w * np.float32(1 + 1e-7),
    )
    assert invoke("check", path, moved)[0] == 0
    assert invoke("check", path, moved, "--baseline", stored)[0] == 1


def test_the_time_is_not_estimated_by_empty_inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = classifier(tmp_path / "a.onnx")
    for name, size in (("empty", 0), ("one", 1), ("two", 2)):
        (tmp_path / "data").mkdir(exist_ok=True)
        np.savez(tmp_path / "data" / f"{name}.npz", x=np.ones((size, 6), np.float32))
    monkeypatch.setattr("optimizer.verify.whole.PER_SECOND", 10)
    found = check_models(path, path, data=tmp_path / "data")
    (note,) = [note for note in found.notes if "executor ran" in note]
    assert "ran data set one.npz only" in note


def test_no_figures_where_nothing_was_compared(models: tuple[Path, Path], tmp_path: Path) -> None:
    other = write(tmp_path / "c.onnx", "(float[3] q) => (float[3] r) { r = Neg (q) }")
    code, text = invoke("check", models[0], other)
    assert code == 1
    assert text.startswith("different: no elements were compared (verified: none)\n")
    shape = write(
        tmp_path / "d.onnx",
        "(float[N] x) => (float[N, 1] y) { a = Constant<value_ints=[-1, 1]>() y = Reshape (x, a) }",
    )
    flat = write(tmp_path / "e.onnx", "(float[N] x) => (float[M] y) { y = Identity (x) }")
    found = check_models(shape, flat)
    assert found.verdict == "different"
    assert found.max_abs_error is None
    assert "max-abs-error" not in str(found)


def test_junit(models: tuple[Path, Path], tmp_path: Path) -> None:
    path = tmp_path / "result.xml"
    assert invoke("check", *models, "--junit", path)[0] == 1
    suite = ElementTree.parse(path).getroot()
    assert suite.tag == "testsuite"
    assert int(suite.get("failures", "0")) >= 1
    assert int(suite.get("tests", "0")) == len(suite.findall("testcase"))
    assert invoke("check", models[0], models[0], "--junit", path)[0] == 0
    assert ElementTree.parse(path).getroot().get("failures") == "0"


# -------------------------------------------------------------------- the user's own data


def data_sets(folder: Path, x: np.ndarray) -> dict[str, Path]:
    made = {name: folder / name for name in ("npy", "npz", "pb")}
    for place in made.values():
        place.mkdir(parents=True)
    np.save(made["npy"] / "x.npy", x)
    np.savez(made["npz"] / "first.npz", x=x)
    (made["pb"] / "test_data_set_0").mkdir()
    tensor = onnx.numpy_helper.from_array(x)
    (made["pb"] / "test_data_set_0" / "input_0.pb").write_bytes(tensor.SerializeToString())
    return made


@pytest.mark.parametrize("kind", ["npy", "npz", "pb"])
def test_data_of_each_kind(models: tuple[Path, Path], tmp_path: Path, kind: str) -> None:
    x = np.zeros((3, 6), np.float32)  # the weight that differs meets nothing but zeros
    folder = data_sets(tmp_path / "data", x)[kind]
    assert invoke("check", *models)[0] == 1
    code, text = invoke("check", *models, "--input-data", folder)
    assert code == 0, text
    out = tmp_path / "out.onnx"
    words = [str(models[0]), str(out), "--input-data", str(folder), "--report", str(tmp_path / "r.json")]
    assert CliRunner().invoke(optimize_command, words).exit_code == 0
    (case,) = json.loads((tmp_path / "r.json").read_text())["verification"]["cases"]
    assert case.startswith("data set")


BAD_DATA = [
    (np.zeros((3, 5), np.float32), "x", "the model wants [N, 6]"),
    (np.zeros((3, 6), np.float64), "x", "the model wants float"),
    (np.zeros((3, 6), np.float32), "nobody", "no input 'nobody'"),
]


@pytest.mark.parametrize(("array", "name", "message"), BAD_DATA, ids=["shape", "type", "name"])
def test_data_that_does_not_fit(
    models: tuple[Path, Path], tmp_path: Path, array: np.ndarray, name: str, message: str
) -> None:
    np.save(tmp_path / f"{name}.npy", array)
    code, text = invoke("check", *models, "--input-data", tmp_path)
    assert (code, message in text) == (2, True), text


def test_folders_without_data(models: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert invoke("check", *models, "--input-data", tmp_path / "empty")[0] == 2
    assert invoke("check", *models, "--input-data", tmp_path / "none")[0] == 4
    (tmp_path / "empty" / "x.npy").write_text("no array")
    assert invoke("check", *models, "--input-data", tmp_path / "empty")[0] == 2


# -------------------------------------------------------------------- states


STATEFUL = (
    "(float[1, 6] x, float[1, 6] h0) => (float[1, 6] y, float[1, 6] hn) { hn = Add (h0, x) y = Neg (hn) }"
)


def test_a_stateful_model_is_run_for_some_steps(tmp_path: Path) -> None:
    path = write(tmp_path / "a.onnx", STATEFUL)
    reference = Reference(str(path), seeds=1)
    assert state_pairs(reference.model) == {"h0": "hn"}
    first, second, third = reference.cases
    np.testing.assert_array_equal(second.feeds["h0"], first.expected["hn"])
    np.testing.assert_array_equal(third.feeds["h0"], second.expected["hn"])
    assert not np.array_equal(second.feeds["x"], first.feeds["x"])
    assert third.label.endswith("step 3")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("state", "stateN"),
        ("past.0.key", "present.0.key"),
        ("c_in", "c_out"),
        ("h", "hn"),
        ("cell", "new_cell"),
    ],
)
def test_names_of_states(tmp_path: Path, before: str, after: str) -> None:
    text = STATEFUL.replace("h0", "IN").replace("hn", "OUT")
    model = parse(f"{HEAD} g {text.replace('IN', 'a').replace('OUT', 'b')}")
    graph = model.graph
    for value in graph.inputs:
        info = graph.info(value)
        if info.name == "a":
            graph.set_attrs(value.node, outputs=[type(info)(before, info.type)])
    graph.set_outputs(
        graph.outputs, [type(i)(after if i.name == "b" else i.name, i.type) for i in graph.sink.outputs]
    )
    assert state_pairs(model) == {before: after}


# -------------------------------------------------------------------- models that are hard to check


def test_outputs_that_are_nan(tmp_path: Path) -> None:
    text = "(float[N] x) => (float[N] y) { a = Abs (x) n = Neg (a) l = Log (n) y = Identity (l) }"
    report = optimizer.optimize(write(tmp_path / "a.onnx", text)).report
    assert (report.verified, report.after.nodes) == ("full", 3)


def test_a_model_with_an_operator_nobody_knows(tmp_path: Path) -> None:
    text = "(float[N] x) => (float[N] y) { a = Identity (x) b = elsewhere.Thing (a) y = Identity (b) }"
    path = tmp_path / "a.onnx"
    head = '<ir_version: 9, opset_import: ["": 18, "elsewhere": 1]>'
    save(parse(f"{head} g {text}"), path)
    report = optimizer.optimize(path).report
    assert report.verified == "local"
    assert report.reason
    code, output = invoke("check", path, path)
    assert code == 3
    assert output.startswith("not compared: ")


def test_shapes_that_depend_on_data(tmp_path: Path) -> None:
    text = "(float[N] x) => (int64[1, M] y) { a = Identity (x) z = NonZero (a) y = Identity (z) }"
    report = optimizer.optimize(write(tmp_path / "a.onnx", text)).report
    assert report.verified == "full"


def test_indices_are_found_by_role(tmp_path: Path) -> None:
    table = RNG.standard_normal((5, 3)).astype(np.float32)
    text = "(int64[N] ids) => (float[N, 3] y) { i = Identity (ids) y = Gather (t, i) }"
    assert optimizer.optimize(write(tmp_path / "a.onnx", text, t=table)).report.verified == "full"


def test_a_rate_is_one_of_those_it_is_compared_with(tmp_path: Path) -> None:
    text = """(float[1, L] x, int64 sr) => (float[1, M] y) <int64 k = {16000}, int64 l = {8000}> {
        a = Equal (sr, k)
        y = If (a) <then_branch = p () => (float[1, M] u) <int64[2] s = {1, 32}> { u = Reshape (x, s) },
                    else_branch = q () => (float[1, M] v) { b = Equal (sr, l) v = If (b) <
                        then_branch = r () => (float[1, M] w) <int64[2] t = {1, 64}> { w = Reshape (x, t) },
                        else_branch = o () => (float[1, M] z) <int64[2] e = {7, 99}> {
                            z = Reshape (x, e) }> }> }"""
    found = check_models(str(write(tmp_path / "a.onnx", text)), str(tmp_path / "a.onnx"))
    assert found.ok
    assert found.verified == "full"


KINDS = [
    "(string[N] x) => (string[N] y) { a = Identity (x) y = Identity (a) }",
    "(float[N] x) => (seq(float[N]) y) { a = Identity (x) y = SequenceConstruct (a, x) }",
    "(float[N] x) => (optional(float[N]) y) { a = Identity (x) y = Optional (a) }",
]


@pytest.mark.parametrize("text", KINDS, ids=["string", "sequence", "optional"])
def test_outputs_of_other_kinds(tmp_path: Path, text: str) -> None:
    report = optimizer.optimize(write(tmp_path / "a.onnx", text)).report
    assert report.verified in ("full", "numpy-only", "onnxruntime-only"), report.reason
    assert report.after.nodes < 3
