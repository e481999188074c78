"""Naming the first wrong rewrite of a run, and shrinking a model that still shows it."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import optimizer
from optimizer.cli.toolbox import main
from optimizer.io import load, parse, save, to_proto
from optimizer.ir import Model, OptimizerError
from optimizer.rewrite import P, Registry, graph_optimizer
from optimizer.runtime import Session
from optimizer.verify.reduce import NothingToReduce, Reducer, with_body
from optimizer.workflow import VerificationFailed

HEAD = '<ir_version: 9, opset_import: ["": 18]>'
SCRATCH = Registry()


@graph_optimizer(P.Softplus("x"), tag="E2", registry=SCRATCH)
def softplus_to_relu(m, rw):
    """Softplus(x) -> Relu(x)"""
    return rw.op.Relu(m.x)


BAD = '''
from optimizer.rewrite import P, graph_optimizer

@graph_optimizer(P.Softplus("x"), tag="E2")
def softplus_to_relu(m, rw):
    """Softplus(x) -> Relu(x)"""
    return rw.op.Relu(m.x)
'''


def long_net(nodes: int, place: int) -> Model:
    """A net of so many nodes with a Softplus at one place: branches, constants, a body, two inputs."""
    rng = np.random.default_rng(5)
    steps, last = [], "x"
    for i in range(nodes - 2):
        op = "Softplus (v)" if i == place else ("Tanh (v)", "Add (v, k)", "Mul (v, k)", "Neg (v)")[i % 4]
        steps.append(f"t{i} = " + op.replace("v", last))
        last = f"t{i}"
    text = f"""(float[N, 8] x, float[N, 8] z, bool c) => (float[N, 8] y, float[N, 8] e) {{
        {" ".join(steps)}
        y = Add ({last}, z)
        e = If (c) <then_branch = a () => (float[N, 8] p) {{ p = Abs (t3) }},
                    else_branch = b () => (float[N, 8] q) {{ q = Exp (t3) }}> }}"""
    return parse(f"{HEAD} g {text}", {"k": rng.standard_normal(8).astype(np.float32)})


def is_caught(model: Model) -> bool:
    """Whether the local check stops a run with the wrong rule."""
    try:
        data = to_proto(model)
        optimizer.optimize(
            data, passes=["softplus-to-relu"], rules=[softplus_to_relu], verify="local", rollback=False
        )
    except VerificationFailed:
        return True
    except OptimizerError:
        return False
    return False


@pytest.mark.parametrize("place", [3, 251, 497])
def test_a_fault_in_500_nodes_comes_down_to_a_few(place: int) -> None:
    model = long_net(500, place)
    assert sum(model.histogram().values()) >= 500
    reducer = Reducer(is_caught)
    smallest = reducer.reduce(model)
    assert sum(smallest.histogram().values()) <= 5
    assert "Softplus" in smallest.histogram()
    assert is_caught(smallest)
    assert reducer.asked < 200


def test_a_branch_is_taken_out_of_its_body() -> None:
    text = """(float[N] x, bool c) => (float[N] y) {
        y = If (c) <then_branch = a () => (float[N] p) { r = Neg (x) s = Softplus (r) p = Abs (s) },
                    else_branch = b () => (float[N] q) { q = Exp (x) }> }"""
    smallest = Reducer(lambda m: any(n.op_type == "Softplus" for _, g in m.graphs() for n in g.nodes)).reduce(
        parse(f"{HEAD} g {text}")
    )
    assert dict(smallest.histogram()) == {"Softplus": 1}


LOOP = """(float[N] x, int64 n, bool c) => (float[N] y, float[M, N] z) {
    y, z = Loop (n, c, x) <body = b (int64 i, bool t, float[N] v) => (bool u, float[N] w, float[N] s) {
        u = Identity (t) a = Neg (v) p = Softplus (a) w = Abs (p) s = Exp (w) }> }"""
SCAN = """(float[N] x, float[T, N] r) => (float[N] y, float[N, T] z) {
    y, z = Scan <num_scan_inputs = 1, scan_output_axes = [1],
        body = b (float[N] v, float[N] e) => (float[N] w, float[N] s) {
        a = Add (v, e) p = Softplus (a) w = Abs (p) s = Exp (w) }> (x, r) }"""


@pytest.mark.parametrize("text", [LOOP, SCAN], ids=["loop", "scan"])
def test_an_iteration_is_taken_out_of_its_body_and_computes_the_same(text: str) -> None:
    model = parse(f"{HEAD} g {text}")
    smallest = Reducer(lambda m: any(n.op_type == "Softplus" for _, g in m.graphs() for n in g.nodes))
    assert dict(smallest.reduce(model).histogram()) == {"Softplus": 1}
    (owner,) = model.graph.nodes
    flat = with_body(model, owner.id, "body")
    assert flat is not None
    assert not {"Loop", "Scan"} & flat.histogram().keys()
    x, r = np.linspace(-2, 2, 3, dtype=np.float32), np.ones((1, 3), np.float32)
    feeds = {"x": x, "r": r, "n": np.int64(1), "c": np.bool_(True)}
    for one in (model, flat):
        given = {one.graph.info(v).name: feeds[one.graph.info(v).name] for v in one.graph.inputs}
        found = Session(one).run(given)
        expected = np.log1p(np.exp(-x if "Loop" in text else x + 1))
        np.testing.assert_allclose(found["y"], expected, rtol=1e-5)
        np.testing.assert_allclose(found["z"].reshape(-1), np.exp(expected), rtol=1e-5)


def test_what_does_not_fail_is_not_shrunk() -> None:
    with pytest.raises(NothingToReduce, match="does not fail"):
        Reducer(lambda model: False).reduce(long_net(20, 3))


def test_the_commands(tmp_path: Path) -> None:
    source, rules, script = tmp_path / "net.onnx", tmp_path / "rules.py", tmp_path / "check.py"
    save(long_net(12, 5), source)
    rules.write_text(BAD)
    script.write_text("import sys\nsys.exit(3 if b'Softplus' in open(sys.argv[1], 'rb').read() else 0)")
    found = CliRunner().invoke(main, ["bisect", str(source), "--rules", str(rules)])
    assert found.exit_code == 1, found.output
    assert "first wrong rewrite: softplus-to-relu at t5:" in found.output
    found = CliRunner().invoke(main, ["bisect", str(source)])
    assert (found.exit_code, found.output) == (0, "no rewrite is wrong\n")
    target = tmp_path / "small.onnx"
    words = ["reduce", str(source), "--check", f"{sys.executable} {script}", "--output", str(target), "-q"]
    assert CliRunner().invoke(main, words).exit_code == 0
    assert dict(load(target).histogram()) == {"Softplus": 1}
    words[3] = f"{sys.executable} -c pass"
    found = CliRunner().invoke(main, words)
    assert (found.exit_code, "does not fail" in found.output) == (2, True)


def test_each_stops_at_the_first_fault(tmp_path: Path) -> None:
    from optimizer.cli.optimize import main as optimize_command

    source, rules = tmp_path / "net.onnx", tmp_path / "rules.py"
    save(long_net(12, 5), source)
    rules.write_text(BAD)
    words = [str(source), str(tmp_path / "out.onnx"), "--rules", str(rules), "--verify", "each", "--stop"]
    found = CliRunner().invoke(optimize_command, words)
    assert found.exit_code == 1
    assert "softplus-to-relu" in found.output
    assert not (tmp_path / "out.onnx").exists()


def test_a_rule_that_fails_twice_is_out_and_the_result_is_right() -> None:
    text = "(float[N] x) => (float[N] y) { a = Softplus (x) b = Softplus (a) y = Softplus (b) }"
    data = to_proto(parse(f"{HEAD} g {text}"))
    report = optimizer.optimize(data, rules=[softplus_to_relu]).report
    assert [r.rule for r in report.rejected] == ["softplus-to-relu"] * 2
    assert report.after.histogram == {"Softplus": 3}
    assert report.verified == "full"
    assert all("values of scale" in r.fault for r in report.rejected)
