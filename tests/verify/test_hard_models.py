"""Models that are hard to check: chaos, traps of the processor, facts that do not hold, broken runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import optimizer
from optimizer.analysis.proofs import NON_NEGATIVE
from optimizer.cli.optimize import main as optimize_command
from optimizer.cli.toolbox import main as toolbox
from optimizer.io import parse, save, to_proto
from optimizer.ir import Graph, StorageError, UsageError, Value
from optimizer.rewrite import Match, P, Registry, Rewriter, graph_optimizer, read_log
from optimizer.verify import NumPy, OnnxRuntime, Reference, verify_files
from optimizer.verify.rehearsal import Rehearsal

HEAD = '<ir_version: 9, opset_import: ["": 18]>'
SCRATCH = Registry()


def data(text: str) -> bytes:
    return to_proto(parse(f"{HEAD} g {text}")).SerializeToString()


# ---------------------------------------------------------------- chaos

CHAOTIC = """(float[N] x) => (float[N] y, float[N] z) <float k = {{1e9}}> {{
    a = Mul (x, k) b = Mul (a, {factor}) y = Sin (b) z = Relu (x) }}"""


def test_a_chaotic_output_is_said_to_be_unchecked() -> None:
    steady = "(float[N] x) => (float[N] y) { y = Sin (x) }"
    assert verify_files(data(steady), data(steady)).verified == "full"
    wild = CHAOTIC.format(factor="k")
    other = wild.replace("a = Mul (x, k) b = Mul (a, k)", "a = Mul (k, k) b = Mul (x, a)")
    found = verify_files(data(wild), data(other), local=True)
    assert (found.ok, found.verified) == (True, "local")
    assert found.reason == "the original is chaotic at output 'y'"
    assert any("'y' of the original is chaotic" in note for note in found.notes)
    assert verify_files(data(wild), data(other)).verified == "none"
    assert not verify_files(data(wild), data(other.replace("Relu", "Abs"))).ok


def test_a_shape_that_hangs_on_the_last_bit_is_chaotic_too() -> None:
    wild = """(float[N] x) => (int64[1, M] y) <float k = {1e9}, float zero = {0}> {
        a = Mul (x, k) b = Mul (a, k) c = Sin (b) d = Greater (c, zero) y = NonZero (d) }"""
    other = wild.replace("a = Mul (x, k) b = Mul (a, k)", "a = Mul (k, k) b = Mul (x, a)")
    found = verify_files(data(wild), data(other))
    assert (found.ok, found.verified) == (True, "none"), found
    assert "chaotic" in found.reason


def test_the_optimizer_does_not_call_a_chaotic_model_fully_verified(tmp_path: Path) -> None:
    @graph_optimizer(P.Mul(P.Mul("x", "k"), "k"), tag="E2", registry=SCRATCH)
    def regroup(m: Match, rw: Rewriter) -> Value:
        """Mul(Mul(x, k), k) -> Mul(x, Mul(k, k))"""
        return rw.op.Mul(m.x, rw.op.Mul(m.k, m.k))

    source = data(CHAOTIC.format(factor="k"))
    report = optimizer.optimize(source, passes=["regroup"], rules=[regroup]).report
    assert report.fired["regroup"] == 1
    assert report.verified == "local"
    with pytest.raises(optimizer.OptimizerError, match="chaotic"):
        optimizer.optimize(source, passes=["regroup"], rules=[regroup], require_verified=True)


# ---------------------------------------------------------------- what would end the process

SMALLEST = -(2**63)
TRAPS = {
    "constants": f"(int64[N] x) => (int64[N] y) <int64 m = {{{SMALLEST}}}, int64 c = {{-1}}> "
    "{ z = Sub (x, x) a = Add (z, m) y = Div (a, c) }",
    "divisor-fed": f"(int64[N] x) => (int64[N] y) <int64 m = {{{SMALLEST}}}, int64 c = {{-1}}> "
    "{ z = Sub (x, x) d = Add (z, c) y = Div (m, d) }",
    "narrower": "(int32[N] x) => (int32[N] y) <int32 m = {-2147483648}, int32 c = {-1}> "
    "{ z = Sub (x, x) a = Add (z, m) y = Div (a, c) }",
    "in-a-body": f"(int64[N] x, bool c) => (int64[N] y) <int64 m = {{{SMALLEST}}}, int64 n = {{-1}}> "
    "{ y = If (c) <then_branch = a () => (int64[N] p) { z = Sub (x, x) s = Add (z, m) p = Div (s, n) }, "
    "else_branch = b () => (int64[N] q) { z = Sub (x, x) s = Add (z, m) q = Div (s, n) }> }",
}


@pytest.mark.parametrize("text", TRAPS.values(), ids=TRAPS)
def test_onnxruntime_is_not_given_what_would_end_it(text: str) -> None:
    found = verify_files(data(text), data(text))
    assert (found.ok, found.verified) == (True, "numpy-only")
    assert "would end the process" in found.reason
    assert Reference(data(text)).engine.__class__ is NumPy or Reference(data(text)).cases
    assert optimizer.optimize(data(text)).report.verified == "numpy-only"


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        ("(float[N] x) => (float[N] y) <float c = {-1}> { y = Div (x, c) }", False),
        ("(float[N] x) => (float[N] y) { s = Sqrt (x) y = Div (x, s) }", False),
        ("(int64[N] x) => (int64[N] y) <int64 c = {-2}> { y = Div (x, c) }", False),
        ("(int8[N] x) => (int8[N] y) <int8 c = {-1}> { y = Div (x, c) }", False),
        ("(int64[N] x) => (int64[1] y) <int64[1] c = {7}> { s = Shape (x) y = Div (c, s) }", False),
        ("(int64[N] x) => (int64[N] y) <int64 c = {-1}> { y = Div (x, c) }", True),
        ("(int64[N] x, int64[N] c) => (int64[N] y) { y = Div (x, c) }", True),
    ],
)
def test_the_executor_goes_first_only_where_it_must(text: str, needed: bool) -> None:
    assert Rehearsal(parse(f"{HEAD} g {text}")).needed == needed


def test_inputs_that_are_harmless_are_run() -> None:
    model = parse(f"{HEAD} g (int64[N] x, int64[N] c) => (int64[N] y) {{ y = Div (x, c) }}")
    engine = OnnxRuntime(to_proto(model).SerializeToString(), model=model)
    feeds = {"x": np.array([7, SMALLEST]), "c": np.array([-1, 2])}
    np.testing.assert_array_equal(engine.run(feeds)["y"], [-7, SMALLEST // 2])
    with pytest.raises(optimizer.OptimizerError, match="divides the smallest int64 by -1"):
        engine.run({"x": np.array([SMALLEST]), "c": np.array([-1])})


# ---------------------------------------------------------------- facts taken for granted


@graph_optimizer(P.Abs("x"), tag="E0", registry=SCRATCH)
def drop_abs(m: Match, rw: Rewriter) -> Value:
    """Abs(x) -> x, where x is not negative"""
    m.require(m.fact(m.x, NON_NEGATIVE), "it may be negative")
    return m.x


RULE_FILE = '''
from optimizer.rewrite import P, graph_optimizer

@graph_optimizer(P.Abs("x"), tag="E0")
def drop_abs(m, rw):
    """Abs(x) -> x, where x is not negative"""
    m.require(m.fact(m.x, "non-negative"), "it may be negative")
    return m.x
'''
HIDDEN = """(float[N] x) => (bool[N] y) <float k = {3}, float limit = {1000}> {
    a = Mul (x, k) b = Abs (a) y = Less (b, limit) }"""


@pytest.mark.parametrize("gone", [False, True], ids=["left", "gone"])
def test_a_fact_that_does_not_hold_undoes_the_rewrite_though_no_output_shows_it(
    monkeypatch: pytest.MonkeyPatch, gone: bool
) -> None:
    def proves_anything(graph: Graph, value: Value, kind: str) -> bool:
        return True

    @graph_optimizer(P.Mul("x", "k"), tag="E0", registry=SCRATCH)
    def same_again(m: Match, rw: Rewriter) -> Value:
        """Mul(x, k) -> Mul(k, x)"""
        m.require(m.graph.tensor(m.k) is not None, "it is done")
        return rw.op.Mul(m.k, m.x)

    monkeypatch.setattr("optimizer.rewrite.match.prove", proves_anything)
    names, rules = (
        (["drop-abs", "same-again"], [drop_abs, same_again]) if gone else (["drop-abs"], [drop_abs])
    )
    report = optimizer.optimize(data(HIDDEN), passes=names, rules=rules).report
    assert report.verified == "full"
    assert not report.fired.get("drop-abs")
    (undone,) = report.rejected
    assert "relied on what does not hold: 'a' is taken for non-negative, but it has -" in undone.fault


def test_what_the_whole_check_undid_is_in_no_log(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("optimizer.rewrite.match.prove", lambda graph, value, kind: True)
    log, out, again = tmp_path / "log.json", tmp_path / "out.onnx", tmp_path / "again.onnx"
    source = data(HIDDEN.replace("a = Mul (x, k)", "e = Identity (x) a = Mul (e, k)"))
    (tmp_path / "rules.py").write_text(RULE_FILE)
    how: dict[str, Any] = {"passes": ["drop-abs", "eliminate"], "rules": [str(tmp_path / "rules.py")]}
    report = optimizer.optimize(source, output=out, save_log=log, **how).report
    assert "drop-abs" in [undone.rule for undone in report.rejected]
    assert {rule for rule, _, _ in read_log(log).applications} == {"drop-identity"}
    replayed = optimizer.optimize(source, output=again, replay=read_log(log), **how).report
    assert not replayed.rejected
    assert again.read_bytes() == out.read_bytes()


def test_a_fact_that_holds_stands() -> None:
    text = HIDDEN.replace("Mul (x, k)", "Relu (x)").replace("float k = {3}, ", "")
    report = optimizer.optimize(data(text), passes=["drop-abs"], rules=[drop_abs]).report
    assert (report.fired["drop-abs"], report.verified) == (1, "full")


# ---------------------------------------------------------------- files


def test_a_run_that_breaks_off_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no report today")

    monkeypatch.setattr("optimizer.workflow.single_run.collect", broken)
    with pytest.raises(RuntimeError, match="no report today"):
        optimizer.optimize(data(HIDDEN), output=tmp_path / "out.onnx")
    assert list(tmp_path.iterdir()) == []


def test_replaying_with_the_arguments_in_the_wrong_order_says_so(tmp_path: Path) -> None:
    source, log = tmp_path / "in.onnx", tmp_path / "log.json"
    source.write_bytes(data(HIDDEN))
    found = CliRunner().invoke(
        optimize_command, [str(source), str(tmp_path / "out.onnx"), "--save-log", str(log)]
    )
    assert found.exit_code == 0, found.output
    found = CliRunner().invoke(toolbox, ["replay", str(log), str(source), str(tmp_path / "again.onnx")])
    assert found.exit_code == 2
    assert f"{source} is no JSON file, so no log of a run; the order is IN L.json OUT" in found.output
    with pytest.raises(UsageError, match="no JSON"):
        read_log(source)


def test_data_sets_are_all_read_and_what_is_no_file_is_an_error(tmp_path: Path) -> None:
    model, folder = tmp_path / "m.onnx", tmp_path / "data"
    save(parse(f"{HEAD} g (float[N] x) => (float[N] y) {{ y = Relu (x) }}"), model)
    for i in range(70):
        (folder / f"set{i:02}").mkdir(parents=True)
        np.save(folder / f"set{i:02}" / "x.npy", np.ones(2, np.float32))
    assert len(Reference(str(model), data=folder).cases) == 70
    (folder / "set00" / "x.npy").unlink()
    (folder / "set00" / "x.npy").mkdir()
    with pytest.raises(StorageError, match=r"x\.npy cannot be read"):
        _ = Reference(str(model), data=folder).cases


BROKEN = [b"PK\x03\x04 no archive", b"\x93NUMPY\x01\x00garbage"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.npy", b""),
        ("x.npz", b""),  # but an empty .pb is a tensor without elements
        *((name, content) for name in ("x.npy", "x.npz", "input_0.pb") for content in BROKEN),
    ],
)
def test_broken_data_is_an_error(tmp_path: Path, name: str, content: bytes) -> None:
    model, folder = data(HIDDEN), tmp_path
    (folder / name).write_bytes(content)
    with pytest.raises(UsageError, match=name.replace(".", r"\.")):
        _ = Reference(model, data=folder).cases
