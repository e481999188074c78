"""The passes and rules that there are, as text and as a page of documentation."""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Mapping, Sequence
from itertools import groupby

from optimizer.ir import UsageError
from optimizer.rewrite import ModelPass, Pass, Rule, RulePass, ScopePass

Passes = Mapping[str, Sequence[Pass]]

INTRODUCTION = """\
# Rewrites

Made by `oinfer passes --markdown`. Passes in the order of the default pipeline; each rule with what it
turns into what, and how exactly the outputs stay:

- **E0** bit for bit, **E1** exactly for finite inputs, **E2** up to rounding: all of these by default
  (`--fp strict`: E0 only);
- **E3** approximates, or assumes something about the data: with `--fp fast`.
"""


def listing(passes: Passes) -> str:
    """One line for each pass, and below it one for each of its rules."""
    lines = []
    for name, steps in passes.items():
        lines.append(name)
        for step in steps:
            if isinstance(step, RulePass):
                lines += [f"  {rule.name:<40} {rule.tag.name}  {rule.lhs_rhs}" for rule in step.rules]
            else:
                lines.append(f"  {step.name:<40}     {_summary(step)}")
    return "\n".join(lines)


def describe(passes: Passes, name: str) -> str:
    """All about one pass or rule.

    Raises:
        UsageError: there is none of this name.
    """
    if name in passes:
        return listing({name: passes[name]})
    known: dict[str, str] = {}
    for steps in passes.values():
        for step in steps:
            if isinstance(step, RulePass):
                known.update((rule.name, _text_of(rule)) for rule in step.rules)
            else:
                known[step.name] = f"{step.name}\n\n{_doc(step)}"
    if name not in known:
        near = difflib.get_close_matches(name, [*known, *passes], n=1)
        hint = f"did you mean {near[0]}?" if near else "oinfer passes lists all"
        raise UsageError(f"no pass or rule '{name}'; {hint}")
    return known[name]


def markdown(passes: Passes) -> str:
    """The page of documentation."""
    parts = [INTRODUCTION.rstrip()]
    for name, steps in passes.items():
        parts.append(f"## {name}")
        for step in steps:
            if not isinstance(step, RulePass):
                parts.append(f"**{step.name}**: {_summary(step)}")
                continue
            for module, rules in groupby(step.rules, lambda rule: rule.key[0]):
                parts.append(f"### {_title(module)}")
                parts.append("\n".join(["| rule | | what |", "|---|---|---|", *map(_row, rules)]))
    return "\n\n".join(parts) + "\n"


def _row(rule: Rule) -> str:
    what = rule.lhs_rhs.replace("|", "\\|")
    return f"| `{rule.name}` | {rule.tag.name} | `{what}` |"


def _title(module: str) -> str:
    """The first sentence of the family's documentation."""
    found = inspect.getdoc(importlib.import_module(module)) or module
    return found.partition("\n")[0].rstrip(".")


def _text_of(rule: Rule) -> str:
    return f"{rule.name} ({rule.tag.name})\n\n{inspect.getdoc(rule.function) or ''}"


def _summary(step: Pass) -> str:
    return _doc(step).partition("\n")[0]


def _doc(step: Pass) -> str:
    """What a whole-graph pass says about itself."""
    function = step.function if isinstance(step, (ScopePass, ModelPass)) else type(step)
    return inspect.getdoc(function) or ""
