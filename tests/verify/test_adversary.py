"""Rules tried on graphs grown from their patterns: wrong ones are found out."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from wrong_rules import WRONG

from optimizer.cli.toolbox import main
from optimizer.io import parse
from optimizer.rewrite import P, Rule, graph_optimizer
from optimizer.verify.adversary import Seed, try_rule


@pytest.mark.parametrize("rule", [i for i in WRONG if isinstance(i, Rule)], ids=lambda rule: rule.name)
def test_a_wrong_rule_gets_a_counterexample(rule: Rule) -> None:
    found = try_rule(rule, graphs=150)
    assert found.wrong
    assert found.worst is not None
    assert all(line in str(found) for line in found.worst.text.splitlines())
    assert found.worst.size[0] <= 8


def test_the_same_seed_grows_the_same_graphs() -> None:
    rule = next(iter(WRONG))
    assert isinstance(rule, Rule)
    assert str(try_rule(rule, graphs=20)) == str(try_rule(rule, graphs=20))
    assert str(try_rule(rule, graphs=20)) != str(try_rule(rule, graphs=20, seed=1))


SOFTMAX = """<ir_version: 10, opset_import: ["" : 17]>
g (float[N, 4] x) => (float[N, 2] y) <float[4, 2] w = {1, 2, 3, 4, 5, 6, 7, 8}> {
    a = MatMul (x, w) b = Cast <to = 1> (a) y = Softmax (b) }"""


@graph_optimizer(P.Softmax(P.Cast(P.MatMul("x", "w"), name="cast"), name="softmax"), tag="E2")
def always_over_the_last_axis(m, rw):  # type: ignore[no-untyped-def]
    """Softmax<axis=a>(Cast(MatMul(x, w))) -> Softmax(MatMul(x, w))"""
    return rw.op.Softmax(rw.op.MatMul(m.x, m.w), axis=-1)


def test_examples_are_changed_until_a_rule_fails() -> None:
    found = try_rule(always_over_the_last_axis, graphs=60, examples=[Seed(parse(SOFTMAX))])
    assert found.wrong, str(found)
    assert found.fired > 20


RULES = '''
from optimizer.rewrite import P, graph_optimizer

@graph_optimizer(P.Neg(P.Neg("x")), tag="E0")
def cancel(m, rw):
    """Neg(Neg(x)) -> x"""
    return m.x

@graph_optimizer
def nothing(graph):
    """Changes nothing."""
'''


def test_the_command_names_the_graph_and_fails(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text(RULES)
    bad.write_text(RULES.replace('P.Neg(P.Neg("x"))', 'P.Neg(P.Abs("x"))'))
    found = CliRunner().invoke(main, ["check-rules", str(good), "--graphs", "20"])
    assert (found.exit_code, "wrong 0 on 20 graphs" in found.output) == (0, True), found.output
    assert "nothing: has no pattern" in found.output
    found = CliRunner().invoke(main, ["check-rules", str(bad), "--graphs", "20"])
    assert found.exit_code == 1
    assert "Neg (" in found.output
    missing = CliRunner().invoke(main, ["check-rules", str(tmp_path / "no.py")])
    assert (missing.exit_code, "no rule file" in missing.output) == (2, True)
