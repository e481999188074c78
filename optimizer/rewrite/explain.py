"""Why a rewrite did not happen: rules are tried once more, and what they refuse with is collected."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from optimizer.ir import Graph, Node, UsageError
from optimizer.rewrite.context import Context
from optimizer.rewrite.match import Match
from optimizer.rewrite.matcher import Matcher
from optimizer.rewrite.rewriter import Rewriter
from optimizer.rewrite.rule import Refusal, Rule, default_registry

NO_MATCH = "the pattern does not match"


class Explainer:
    """An instrument that keeps the context of a run, to be asked about what did not happen.

    Args:
        rules: names of rules that are going to be asked about; those of files are known once a run begins.
    """

    def __init__(self, rules: Iterable[str] = ()) -> None:
        self._ctx: Context | None = None
        self._rules = tuple(rules)

    def before_pass(self, ctx: Context, name: str) -> None:
        """Takes down the context.

        Raises:
            UsageError: a rule to be asked about does not exist.
        """
        if self._ctx is None:
            for rule in self._rules:
                _named(rule)
        self._ctx = ctx

    def after_pass(self, ctx: Context, name: str, changed: bool) -> None:
        """Nothing to do."""

    def why_not(self, name: str) -> list[Miss]:
        """Why the rule of this name is not applied in the result.

        Raises:
            UsageError: there is no such rule.
        """
        rule = _named(name)
        return [] if self._ctx is None else why_not(self._ctx, rule)

    def explain(self, name: str) -> list[Miss]:
        """Why the node of this name, or that makes a tensor of this name, is in the result.

        Raises:
            UsageError: there is no such node.
        """
        return [] if self._ctx is None else explain(self._ctx, _declared(), name)


def _declared() -> list[Rule]:
    return [item for item in default_registry if isinstance(item, Rule)]


def _named(name: str) -> Rule:
    """The rule of this name.

    Raises:
        UsageError: there is none, or what has the name has no pattern to match.
    """
    rules = {rule.name: rule for rule in _declared()}
    if name not in rules:
        if any(item.name == name for item in default_registry):
            raise UsageError(
                f"'{name}' is a function of the whole graph: it has no pattern that could not match"
            )
        near = difflib.get_close_matches(name, rules, n=1)
        hint = f"did you mean {near[0]}?" if near else "oinfer passes lists all"
        raise UsageError(f"no rule '{name}'; {hint}")
    return rules[name]


@dataclass(frozen=True, slots=True)
class Miss:
    """One place where a rule was not applied, and why."""

    rule: str
    scope: str
    place: str
    reason: str

    def __str__(self) -> str:
        inside = f"{self.scope}: " if self.scope else ""
        return f"{self.rule} at {inside}{self.place}: {self.reason}"


def why_not(ctx: Context, rule: Rule) -> list[Miss]:
    """Why ``rule`` is not applied anywhere in the model as it is now; the nearest misses first.

    A match that is refused is nearer than an operator of the right type that does not match.
    """
    refused: list[Miss] = []
    unlike: Counter[str] = Counter()
    for path, graph in ctx.scopes():
        for node in graph.topological():
            if (node.domain, node.op_type) not in set(rule.roots):
                continue
            found = list(_reasons(ctx, graph, rule, node, path))
            refused += [Miss(rule.name, "/".join(path), graph.label(node), reason) for _, reason in found]
            unlike[node.op] += not found
    rest = [Miss(rule.name, "", f"{count} {op}", NO_MATCH) for op, count in sorted(unlike.items()) if count]
    return refused + rest or [Miss(rule.name, "", "the model", f"it has no {_root_names(rule)}")]


def explain(ctx: Context, rules: Iterable[Rule], name: str) -> list[Miss]:
    """Why the rules leave the node of this name, or the one that makes a tensor of this name, alone.

    Raises:
        UsageError: there is no such node.
    """
    path, graph, node = _find(ctx, name)
    misses: list[Miss] = []
    for rule in rules:
        for root in _roots_above(graph, node, rule.depth):
            for nodes, reason in _reasons(ctx, graph, rule, root, path):
                if node.id in {n.id for n in nodes}:
                    misses.append(Miss(rule.name, "/".join(path), graph.label(root), reason))
    return list(dict.fromkeys(misses)) or [Miss("no rule", "/".join(path), graph.label(node), NO_MATCH)]


def _reasons(
    ctx: Context, graph: Graph, rule: Rule, root: Node, path: tuple[str, ...]
) -> Iterator[tuple[Sequence[Node], str]]:
    """What the rule refuses each of its matches at ``root`` with; nothing is changed."""
    feeders = frozenset(graph.node(value.node).op_type for value in root.inputs if value)
    options = [
        alternative.term
        for alternative in rule.alternatives
        if alternative.may_occur(graph.op_types) and alternative.may_match(root.op_type, feeders)
    ]
    if not options:
        return
    if not ctx.settings.admits(rule.tag):
        yield (root,), f"option 'fp' {ctx.settings.fp} does not admit {rule.tag.name}"
        return
    for bindings, nodes in Matcher(graph, ctx.is_kept).matches(options, root):
        match = Match(ctx, graph, bindings, nodes)
        try:
            rule.function(match, Rewriter(match))
        except Refusal as refusal:
            yield nodes, refusal.reason
        except Exception as error:  # the answer to a question, which no run hangs on
            yield nodes, f"it failed: {type(error).__name__}: {error}"
        else:
            allowed = ctx.allows(rule.name, path, graph, root)
            reason = ctx.declined.get((rule.name, graph, root.id), "it was not run")
            yield nodes, reason if allowed else "excluded: a check found it wrong here"


def _root_names(rule: Rule) -> str:
    return ", ".join(sorted({op for _, op in rule.roots}))


def _roots_above(graph: Graph, node: Node, depth: int) -> list[Node]:
    """The node and its users, as far as a pattern of this depth reaches down to it."""
    found, level = {node.id: node}, [node.id]
    for _ in range(depth - 1):
        level = [user for key in level for user in graph.users(key) if user not in found]
        found.update((key, graph.node(key)) for key in level)
    return [n for n in found.values() if n.is_operator]


def _find(ctx: Context, name: str) -> tuple[tuple[str, ...], Graph, Node]:
    for path, graph in ctx.scopes():
        for node in graph.nodes:
            if name == node.name or any(name == info.name for info in node.outputs):
                return path, graph, node
    raise UsageError(f"the result has no node '{name}', and no node that makes a tensor of this name")
