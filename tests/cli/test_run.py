"""``oinfer run``: engines, traces, pictures, limits and what goes wrong."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from PIL import Image

from optimizer.cli.toolbox import main as oinfer
from optimizer.cli.walk import find_parting
from optimizer.io import parse, save
from optimizer.runtime import registry
from optimizer.verify import FILLS

HEADER = '<ir_version: 8, opset_import: ["" : 17]>'
NET = (
    HEADER
    + """ net (float[N,3,8,8] image) => (float[N,2] y) {
  c = Conv <pads=[1,1,1,1]> (image, w)
  [relu] r = Relu (c)
  g = GlobalAveragePool (r)
  f = Flatten (g)
  y = Gemm (f, m)
}"""
)
LOGS = (
    HEADER
    + """ logs (float[2] x, int64[3] ids) => (float[2] y) {
  a = Neg (x)
  [bad] b = Log (a)
  p = Gather (table, ids)
  s = ReduceSum <keepdims=0> (p)
  y = Add (b, s)
}"""
)


@pytest.fixture
def net(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    constants = {
        "w": rng.standard_normal((4, 3, 3, 3)).astype(np.float32),
        "m": rng.standard_normal((4, 2)).astype(np.float32),
    }
    return _saved(tmp_path, NET, constants)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return _saved(tmp_path, LOGS, {"table": np.arange(10, dtype=np.float32).reshape(5, 2)})


def _saved(folder: Path, text: str, constants: dict[str, np.ndarray] | None = None) -> Path:
    path = folder / "model.onnx"
    save(parse(text, constants or {}), path)
    return path


def run(*args: object) -> Result:
    return CliRunner().invoke(oinfer, ["run", *(str(arg) for arg in args)])


def error_of(result: Result, code: int) -> str:
    assert result.exit_code == code, result.output
    lines = [line for line in result.stderr.splitlines() if line.startswith(("error: ", "Error: "))]
    assert len(lines) == 1, result.output
    return lines[0]


def test_inputs_come_from_the_seed(net: Path, tmp_path: Path) -> None:
    first, again, other = (
        run(net, "--seed", seed, "--save", tmp_path / str(i)) for i, seed in enumerate((3, 3, 4))
    )
    assert first.exit_code == again.exit_code == other.exit_code == 0, first.output
    a, b, c = (np.load(tmp_path / str(i) / "y.npy") for i in range(3))
    assert np.array_equal(a, b)
    assert not np.array_equal(a, c)


def test_seeded_indices_stay_inside_the_table(logs: Path) -> None:
    assert run(logs, "--stop-at", "p").exit_code == 0


def test_trace_shows_every_node_and_the_first_nan(logs: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.float32([1, -1]))
    result = run(logs, "--trace", "--input", f"x={tmp_path / 'x.npy'}")
    assert result.exit_code == 0, result.output
    assert "Log 'bad' -> b: float32 [2] min 0 max 0 (1 not finite)" in result.output
    assert result.output.count(" ms  ") == 5 + 1
    assert "first NaN: Log 'bad' -> b at [0]; it was made there" in result.output


def test_trace_of_onnxruntime_has_times_too(net: Path) -> None:
    result = run(net, "--trace", "--engine", "onnxruntime")
    assert result.exit_code == 0, result.output
    (line,) = [line for line in result.output.splitlines() if "Relu 'relu' -> r" in line]
    assert float(line.split()[0]) > 0
    assert "no NaN" in result.output


def test_memory_names_the_place_of_the_peak(net: Path) -> None:
    result = run(net, "--memory")
    assert "MB of intermediates at most, reached at Relu" in result.output
    assert "MB of constants" in result.output
    assert "use --engine numpy" in error_of(run(net, "--memory", "--engine", "onnxruntime"), 2)


def test_both_engines_agree(net: Path) -> None:
    result = run(net, "--engine", "both")
    assert result.exit_code == 0, result.output
    assert "both engines agree on all 5 tensors" in result.output
    assert "of the largest magnitude in a tensor" in result.output
    assert "y: float32" in result.output


def test_what_is_as_good_as_zero_is_not_the_largest_difference() -> None:
    graph = parse(f"{HEADER} g (float[2] x) => (float[2] y) {{ t = Sigmoid (x) y = Exp (t) }}").graph
    nodes = graph.topological()
    tiny, usual = (node.value() for node in nodes)
    ours = {tiny: np.float32([0, 1e-40]), usual: np.float32([1, 2])}
    theirs = {tiny: np.float32([1e-40, 0]), usual: np.float32([1, 2.000002])}
    found = find_parting(nodes, ours, theirs)
    assert (found.fault, found.compared, found.where) == ("", 2, "y")
    assert 0 < found.largest < 1e-5


def test_both_engines_show_where_they_part(net: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = registry.REGISTRY.find("", "Relu", 17)
    assert right is not None
    wrong = registry.Kernel(right.since, "", "Relu", lambda call, x: np.maximum(x, 0) * x.dtype.type(1.001))
    monkeypatch.setitem(registry.REGISTRY._kernels, ("", "Relu"), [wrong])
    result = run(net, "--engine", "both")
    assert result.exit_code == 1
    assert "the engines part at" in result.output
    assert "-> r: " in result.output
    assert "the 1 tensors before it agree" in result.output


def test_stop_at_and_max_nodes_run_less(net: Path, tmp_path: Path) -> None:
    for engine in ("numpy", "onnxruntime", "both"):
        result = run(net, "--stop-at", "r", "--engine", engine, "--save", tmp_path / engine)
        assert result.exit_code == 0, result.output
        assert "r: float32" in result.output
        assert "y: " not in result.output
    assert "both engines agree on all 2 tensors" in result.output
    left, right = (np.load(tmp_path / engine / "r.npy") for engine in ("numpy", "onnxruntime"))
    np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-5)
    result = run(net, "--max-nodes", 2)
    assert "stopped after 2 nodes" in result.output
    assert [line.partition(":")[0] for line in result.output.splitlines()[1:]] == ["r"]
    assert "no tensor 'q'" in error_of(run(net, "--stop-at", "q"), 2)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_a_picture_is_resized_scaled_and_laid_out(layout: str, tmp_path: Path) -> None:
    dims = "1,3,4,6" if layout == "NCHW" else "1,4,6,3"
    model = _saved(tmp_path, HEADER + f" g (float[{dims}] x) => (float[{dims}] y) {{ y = Identity(x) }}")
    Image.new("RGB", (12, 8), (255, 51, 0)).save(tmp_path / "photo.png")
    result = run(
        model, "--input", f"x={tmp_path / 'photo.png'}", "--mean", "0.5,0,0", "--std", "0.5,2,1",
        "--save", tmp_path,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    y = np.load(tmp_path / "y.npy")
    pixel = y[0, :, 1, 1] if layout == "NCHW" else y[0, 1, 1]
    np.testing.assert_allclose(pixel, [1, 0.1, 0], atol=1e-6)


def test_a_picture_for_integers_and_open_sizes(tmp_path: Path) -> None:
    model = _saved(tmp_path, HEADER + " g (uint8[N,H,W,3] x) => (uint8[N,H,W,3] y) { y = Identity(x) }")
    Image.new("RGB", (5, 7), (1, 2, 3)).save(tmp_path / "photo.bmp")
    result = run(model, "--input", f"x={tmp_path / 'photo.bmp'}", "--save", tmp_path)
    assert result.exit_code == 0, result.output
    assert np.load(tmp_path / "y.npy")[0, 6, 4].tolist() == [1, 2, 3]


def test_pictures_need_pillow(net: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    Path(tmp_path / "photo.png").write_bytes(b"")
    assert "oinfer-opt[images]" in error_of(run(net, "--input", f"image={tmp_path / 'photo.png'}"), 2)


def test_what_does_not_fit_is_said(net: Path, logs: Path, tmp_path: Path) -> None:
    (tmp_path / "photo.png").write_bytes(b"no picture")
    np.save(tmp_path / "x.npy", np.zeros((1, 3, 8, 9), np.float32))
    net = _saved(tmp_path, NET, {"w": np.zeros((4, 3, 3, 3), "f4"), "m": np.zeros((4, 2), "f4")})
    cases = (
        (("--input", f"image={tmp_path / 'photo.png'}"), 4, "cannot read a picture"),
        (("--input", f"image={tmp_path / 'nothing.npy'}"), 4, "cannot read an array"),
        (("--input", f"image={tmp_path / 'x.npy'}"), 2, "input 'image' has shape [1, 3, 8, 9]"),
        (("--input", f"z={tmp_path / 'x.npy'}"), 2, "no input is called 'z'"),
        (("--mean", "a"), 2, "not a list of numbers"),
    )
    for arguments, code, message in cases:
        assert message in error_of(run(net, *arguments), code)
    Image.new("RGB", (8, 8)).save(tmp_path / "photo.png")
    for arguments in (("--mean", "1,2"), ("--std", "0"), ("--std", "1,2")):
        error_of(run(net, "--input", f"image={tmp_path / 'photo.png'}", *arguments), 2)


def test_fills_of_inputs_that_are_not_given(logs: Path, tmp_path: Path) -> None:
    for fill in FILLS:
        result = run(logs, "--fill", fill)
        assert result.exit_code == 0, result.output  # the ids stay inside the table
        assert fill in run("--help").output
    zeros, ones = (run(logs, "--fill", fill, "--stop-at", "a").output for fill in ("zeros", "ones"))
    assert "a: float32 [2] min 0 max 0" in zeros.replace("-0", "0")
    assert "a: float32 [2] min -1 max -1" in ones
    assert "not finite" in run(logs, "--fill", "nonfinite", "--stop-at", "a").output
    said = error_of(run(logs, "--fill", "anything"), 2)
    assert said.endswith("there is no fill 'anything'; there are " + ", ".join(FILLS))


BODIES = """<ir_version: 10, opset_import: ["" : 18, "f" : 1]>
g (float[N,4] x, bool c, int64 n) => (float[k,l] y) {
  a = Relu (x)
  [choose] z = If (c) <then_branch = t () => (float[p,q] r) { q = Neg (a) r = Abs (q) },
                       else_branch = e () => (float[p,q] same) { same = Identity (x) }>
  [call] w = f.scaled <k = 2.0> (z)
  [repeat] v, all = Loop (n, , w) <
    body = b (int64 i, bool m, float[s,t] s) => (bool d, float[s,t] u, float o) {
      d = Identity (m) f = Cast <to = 1> (i) o = Sqrt (f)
      [inside] u = If (m) <then_branch = tt () => (float[s,t] r2) { r2 = Sub (s, o) },
                           else_branch = ee () => (float[s,t] r3) { r3 = Identity (s) }> }>
  y = Neg (v)
}
<domain: "f", opset_import: ["" : 18]>
scaled <k> (i) => (o) { e = Elu <alpha : float = @k> (i) o = Exp (e) }"""


@pytest.mark.parametrize(
    ("op", "when", "said"),
    [
        ("Abs", lambda x: True, r"part in then_branch of If 'choose' -> 'z' at Abs #\d+ -> 'r' -> r: "),
        ("Elu", lambda x: True, r"in function f::scaled called by f::scaled 'call' -> 'w' at Elu"),
        ("Sqrt", lambda x: x > 1, r"part in iteration 2 of Loop 'repeat' -> 'v' at Sqrt #\d+ -> 'o"),
        ("Sub", lambda x: True, "part in then_branch of If 'inside' -> 'u' in iteration 0 of Loop 'repeat'"),
    ],
)  # fmt: skip
def test_both_engines_show_where_they_part_in_a_body(
    op: str, when: Callable[[Any], bool], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = _saved(tmp_path, BODIES)
    np.save(tmp_path / "c.npy", np.bool_(True))
    np.save(tmp_path / "n.npy", np.int64(4))
    given = ("--engine", "both", "--input", f"c={tmp_path / 'c.npy'}", "--input", f"n={tmp_path / 'n.npy'}")
    result = run(model, *given)
    assert result.exit_code == 0, result.output
    assert "agree on all 5 tensors and 24 in bodies and functions" in result.output
    right = registry.REGISTRY.find("", op, 18)
    assert right is not None

    def wrong(call: Any, x: Any, *others: Any) -> Any:
        y = right.run(call, x, *others)
        return y * y.dtype.type(1.01) + y.dtype.type(0.5) if when(x) else y

    monkeypatch.setitem(registry.REGISTRY._kernels, ("", op), [registry.Kernel(right.since, "", op, wrong)])
    result = run(model, *given)
    assert result.exit_code == 1
    assert re.search(said, result.output), result.output
    assert "computed in float64, " in result.output


def test_what_onnxruntime_cannot_be_given_is_named(tmp_path: Path) -> None:
    text = (
        HEADER
        + """ g (float[2] x, bool c) => (float[2] y) {
      b = Cast <to = 16> (x)
      [choose] y = If (c) <then_branch = t () => (float[2] r) { r = Cast <to = 1> (b) },
                           else_branch = e () => (float[2] o) { o = Cast <to = 1> (b) }> }"""
    )
    result = run(_saved(tmp_path, text), "--engine", "both")
    assert result.exit_code == 0, result.output
    assert "not compared: the inside of If 'choose' -> 'y': " in result.output


def test_traces_tell_the_kinds_of_all_values(tmp_path: Path) -> None:
    text = (
        HEADER
        + """ g (float[2] x) => (float[4] y, int64 n, optional(float[2]) o) {
      s = SequenceConstruct (x, x) n = SequenceLength (s) y = ConcatFromSequence <axis = 0> (s)
      o = Optional <type : type_proto = float[2]> () }"""
    )
    model = _saved(tmp_path, text)
    result = run(model, "--trace")
    assert result.exit_code == 0, result.output
    assert "-> s: sequence of 2 float32" in result.output
    assert "o: empty optional" in result.output
