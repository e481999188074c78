"""Rules tried on graphs grown from their patterns: wrong ones are found out, ours are not."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from wrong_rules import WRONG

import passes.pipelines
from optimizer.cli.toolbox import main
from optimizer.rewrite import Rule, default_registry
from optimizer.verify.adversary import try_rule

CATALOGUE = [i for i in default_registry if isinstance(i, Rule) and i.key[0].startswith("passes.")]


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


@pytest.mark.parametrize("rule", CATALOGUE[1::8], ids=lambda rule: rule.name)
def test_some_rules_of_the_catalogue_pass_on_a_few_graphs(rule: Rule) -> None:
    found = try_rule(rule, graphs=8)
    assert not found.wrong, str(found)


@pytest.mark.sweep
@pytest.mark.parametrize("rule", CATALOGUE, ids=lambda rule: rule.name)
def test_the_whole_catalogue_passes(rule: Rule) -> None:
    found = try_rule(rule, graphs=150)
    assert not found.wrong, str(found)


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


assert passes.pipelines.PASSES
