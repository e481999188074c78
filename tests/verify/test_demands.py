"""onnxruntime is not given what would take all memory, end the process, or never end."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from optimizer.cli.optimize import main as optimize_command
from optimizer.cli.toolbox import main as toolbox
from optimizer.io import parse, save, to_proto
from optimizer.ir import Model
from optimizer.verify import EngineError, OnnxRuntime, Reference, find_sizes
from optimizer.verify import engines as engines_module
from optimizer.verify.demands import Demands, Refused
from optimizer.verify.sizes import MOST_ELEMENTS

HEAD = '<ir_version: 10, opset_import: ["" : 20]> g '
BIG = "<int64[1] big = {1099511627776}, int64 zero = {0}, int64 one = {1}, int64[1] first = {1}>"
ENDLESS = (
    HEAD
    + """(float[2] x) => (float[2] y) <int64 trips = {4611686018427387904}> {
    go = Constant <value = bool {1}> ()
    y = Loop (trips, go, x) <body = b (int64 i, bool c, float[2] a) => (bool more, float[2] next) {
        more = Identity (c) next = Sin (a) }> }"""
)


def model(signature: str, body: str) -> Model:
    return parse(f"{HEAD} {signature} {BIG} {{ {body} }}")


HUGE = (
    ("(float[1] x, int64[1] n) => (y)", "k = Mul (n, big) y = Expand (x, k)"),
    ("(float[1] x) => (y)", "y = Expand (x, big)"),
    ("(int64[1] n) => (y)", "k = Mul (n, big) y = ConstantOfShape (k)"),
    ("(int64[1] n) => (y)", "k = Mul (n, big) s = Squeeze (k) y = Range (zero, s, one)"),
    ("(float[1] x) => (y)", "s = Shape (x) k = Mul (s, big) y = Expand (x, k)"),
    ("(float[1] x, int64[1] n) => (y)", "k = Mul (n, big) y = Tile (x, k)"),
    ("(float[1, 64, 1] x) => (y)", "w = HannWindow (one) l = Sub (one, one) y = STFT (x, l, w, one)"),
    ("() => (y)", "y = RandomNormal <shape = [1099511627776]> ()"),
)


@pytest.mark.parametrize(("signature", "body"), HUGE)
def test_values_that_ask_for_too_much_are_refused(signature: str, body: str) -> None:
    given = model(signature, body)
    feeds = {"x": np.ones((1, 64, 1) if "64" in signature else 1, np.float32), "n": np.ones(1, np.int64)}
    names = {given.graph.info(v).name for v in given.graph.inputs}
    with pytest.raises(Refused, match=r"does not fit|never reaches"):
        Demands(given).check({name: value for name, value in feeds.items() if name in names})


def test_modest_values_are_run() -> None:
    given = model("(float[1] x, int64[1] n) => (y)", "k = Mul (n, first) y = Expand (x, k)")
    engine = OnnxRuntime(to_proto(given).SerializeToString(), model=given)
    found = engine.run({"x": np.ones(1, np.float32), "n": np.array([5])})
    assert found["y"].shape == (5,)
    with pytest.raises(EngineError, match=r"onnxruntime cannot run it: Expand .*does not fit"):
        engine.run({"x": np.ones(1, np.float32), "n": np.array([1 << 40])})


@pytest.mark.parametrize(
    ("signature", "body"),
    [
        ("(float[N, 3] x) => (y)", 'y = Einsum <equation = "ij->ji"> (x)'),
        ("(float[N] x) => (y)", "y = Unique (x)"),
        ("(float[N] x) => (y)", "z = NonZero (x) y = Unique (z)"),
        ("(float[N, 4] x) => (y)", "a = Slice (x, big, big) y = InstanceNormalization (a, a, a)"),
        ("(float[S, N, 2] x, float[1, 6, 2] w) => (y)", "y = GRU <hidden_size = 2> (x, w, w)"),
    ],
)
def test_what_ends_the_process_on_tensors_without_elements_is_refused(signature: str, body: str) -> None:
    given = model(signature, body)
    shape = (3, 0, 2) if "S, N" in signature else (0,) if "[N]" in signature else (0, 3)
    feeds = {"x": np.zeros(shape, np.float32)}
    if "NonZero" in body:
        feeds["x"] = np.zeros(4, np.float32)
    if "Slice" in body:
        feeds["x"] = np.ones((2, 4), np.float32)
    if "GRU" in body:
        feeds["w"] = np.zeros((1, 6, 2), np.float32)
    with pytest.raises(Refused, match="a tensor without elements"):
        Demands(given).check(feeds)


def test_shapes_need_no_look() -> None:
    given = model("(float[N, 4] x) => (y)", "e = Exp (x) s = Shape (e) y = Expand (x, s)")
    assert not Demands(given)._sized


def test_a_loop_without_end_is_stopped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(engines_module, "SECONDS_LOOPING", 0.2)
    save(parse(ENDLESS), tmp_path / "m.onnx")
    start = time.perf_counter()
    reference = Reference(tmp_path / "m.onnx")
    assert not reference.cases
    assert "still running after 0.2 s" in reference.reason
    arguments = [str(tmp_path / "m.onnx"), str(tmp_path / "o.onnx")]
    result = CliRunner().invoke(optimize_command, arguments)
    assert result.exit_code == 0
    assert "still running after 0.2 s" in " ".join(result.output.split())
    assert time.perf_counter() - start < 30


def test_what_could_not_be_compared_is_not_equal(tmp_path: Path) -> None:
    path = str(tmp_path / "m.onnx")
    save(model("(float[1] x) => (y)", "y = Expand (x, big)"), path)
    result = CliRunner().invoke(toolbox, ["check", path, path, "--junit", str(tmp_path / "r.xml")])
    assert result.exit_code == 3
    assert result.output.startswith("not compared: the original rejects")
    assert 'errors="1"' in (tmp_path / "r.xml").read_text()


@pytest.mark.parametrize("bound", ["nan", "-1"])
def test_check_takes_no_bound_that_means_nothing(tmp_path: Path, bound: str) -> None:
    path = str(tmp_path / "m.onnx")
    save(model("(float[1] x) => (y)", "y = Relu (x)"), path)
    assert CliRunner().invoke(toolbox, ["check", path, path, "--max-abs-error", bound]).exit_code == 2
    assert CliRunner().invoke(toolbox, ["check", path, path, "--max-abs-error", "0"]).exit_code == 0


def test_sizes_of_enormous_inputs_are_not_tried() -> None:
    given = parse(HEAD + "(float[1, A, B, C] x) => (y) { y = Relu (x) }")
    tried: list[int] = []

    def run(sizes: dict[str, int]) -> None:
        tried.append(sizes["A"] * sizes["B"] * sizes["C"])
        raise EngineError("onnxruntime", "run", "no")

    assert not find_sizes(given, run).accepted
    assert max(tried[1:]) <= MOST_ELEMENTS
    assert len(tried) > 10


def test_no_larger_size_follows_a_run_that_was_stopped() -> None:
    given = parse(HEAD + "(float[A] x) => (y) { y = Relu (x) }")
    tried: list[dict[str, int]] = []

    def run(sizes: dict[str, int]) -> None:
        tried.append(dict(sizes))
        if len(tried) > 1:
            raise EngineError("onnxruntime", "finish", "it was still running")

    found = find_sizes(given, run, wanted=3)
    assert (len(found.accepted), len(tried)) == (1, 2)


def test_images_that_regions_are_taken_from_exist() -> None:
    given = parse(
        HEAD
        + """(float[N, 1, 8, 8] x, float[R, 4] r, int64[R] which) => (y) {
        y = RoiAlign <output_height = 2, output_width = 2> (x, r, which) }"""
    )
    cases = Reference(to_proto(given).SerializeToString()).cases
    assert cases
    assert all((case.feeds["which"] < case.feeds["x"].shape[0]).all() for case in cases)


def test_a_domain_of_keep_functions_that_is_not_there_is_named(tmp_path: Path) -> None:
    save(model("(float[1] x) => (y)", "y = Relu (x)"), tmp_path / "m.onnx")
    paths = [str(tmp_path / "m.onnx"), str(tmp_path / "o.onnx")]
    said = "--keep-functions 'acme': the model calls no function of this domain"
    assert said in CliRunner().invoke(optimize_command, [*paths, "--keep-functions=acme"]).output
    assert said not in CliRunner().invoke(optimize_command, [*paths, "--keep-functions"]).output
