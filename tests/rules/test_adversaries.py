"""Every rule of the catalogue on graphs grown from its pattern, and on its rows changed a little."""

from __future__ import annotations

from collections import defaultdict
from functools import cache

import pytest
from harness import all_rows

import passes.pipelines
from optimizer.ir import OptimizerError
from optimizer.rewrite import Rule, default_registry
from optimizer.verify.adversary import Seed, try_rule

CATALOGUE = [i for i in default_registry if isinstance(i, Rule) and i.key[0].startswith("passes.")]
assert passes.pipelines.PASSES

MOST_REFUSALS = 8
"""Rows that must not fire, of those a rule is tried on: the more, the less it fires."""


@cache
def examples() -> dict[str, list[Seed]]:
    """The rows of each rule, by name; what it matches first."""
    found: dict[str, list[Seed]] = defaultdict(list)
    refusals: dict[str, int] = defaultdict(int)
    for row in sorted(all_rows(), key=lambda row: row.after is None):
        name = row.rewrite.name
        refusals[name] += row.after is None
        if refusals[name] > MOST_REFUSALS:
            continue
        try:
            model = row.setup.model(row.before)
        except OptimizerError:
            continue  # a row about what cannot be
        found[name].append(Seed(model, row.setup.sizes, row.setup.feeds, row.setup.settings))
    return found


@pytest.mark.parametrize("rule", CATALOGUE[1::12], ids=lambda rule: rule.name)
def test_some_rules_are_right_on_a_few_graphs(rule: Rule) -> None:
    found = try_rule(rule, graphs=8, examples=examples()[rule.name])
    assert not found.wrong, str(found)


@pytest.mark.sweep
@pytest.mark.parametrize("rule", CATALOGUE, ids=lambda rule: rule.name)
def test_every_rule_is_right_and_fires(rule: Rule) -> None:
    found = try_rule(rule, graphs=150, examples=examples()[rule.name])
    assert not found.wrong, str(found)
    assert found.fired, str(found)
