"""What holds for every rewrite of the catalogue."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest
from harness import all_rows

import passes.pipelines
from optimizer.rewrite import GraphPass, Rule, default_registry

CATALOGUE = Path(passes.pipelines.__file__).parent
DECLARED = [item for item in default_registry if item.key[0].startswith("passes.")]
RULES = [item for item in DECLARED if isinstance(item, Rule)]


def test_names_are_unique() -> None:
    counts = Counter([*(item.name for item in DECLARED), *passes.pipelines.PASSES])
    assert [name for name, count in counts.items() if count > 1] == []


def test_every_rule_is_in_a_pass() -> None:
    steps = [step for steps in passes.pipelines.PASSES.values() for step in steps]
    used = {rule.key for step in steps for rule in getattr(step, "rules", ())}
    assert [item.name for item in RULES if item.key not in used] == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_says_what_it_does_and_a_row_shows_it(rule: Rule) -> None:
    assert " -> " in rule.lhs_rhs
    assert any(row.rewrite is rule and row.after is not None for row in all_rows())


def test_passes_are_documented() -> None:
    assert [item.name for item in DECLARED if isinstance(item, GraphPass) and not item.doc] == []


def reasons(path: Path) -> list[str]:
    """The literal reasons that the code of one family refuses with."""
    found = []
    for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(call, ast.Call) and isinstance(call.func, (ast.Attribute, ast.Name)):
            name = call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id
            position = {"require": 1, "refuse": 0, "Refusal": 0}.get(name)
            if position is not None and len(call.args) > position:
                given = call.args[position]
                if isinstance(given, ast.Constant) and isinstance(given.value, str):
                    found.append(given.value)
    return found


@pytest.mark.parametrize("path", sorted(CATALOGUE.glob("*.py")), ids=lambda path: path.stem)
def test_every_reason_has_a_row(path: Path) -> None:
    shown = {row.reason for row in all_rows()}
    assert [reason for reason in reasons(path) if reason not in shown] == []
