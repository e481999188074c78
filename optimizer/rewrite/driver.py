"""The worklist driver: applies rules until none fires, deterministic and bounded."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

import numpy as np

from optimizer.ir import Graph, Node
from optimizer.rewrite.context import Context
from optimizer.rewrite.failure import rule_failed
from optimizer.rewrite.journal import Application
from optimizer.rewrite.match import Match
from optimizer.rewrite.matcher import Matcher
from optimizer.rewrite.pattern import Op
from optimizer.rewrite.rewriter import Rewriter
from optimizer.rewrite.rule import Alternative, Refusal, Rule

FAN_OUT = 64
"""Users of a value with more readers than this are not re-queued one by one; the sweep finds them."""


class StopReason(Enum):
    """Why the driver stopped."""

    SATURATED = "saturated"
    LIMIT = "limit"


@dataclass(slots=True)
class Outcome:
    """What a run of the driver did: applications, why it stopped, and the last rules if bounded."""

    fired: int = 0
    stop: StopReason = StopReason.SATURATED
    oscillating: tuple[str, ...] = ()


Candidates: TypeAlias = tuple[tuple[Rule, Sequence[Op]], ...]


class RuleIndex:
    """Rules by the operator they are rooted at, in the order given.

    Args:
        present: the op types of the graph; rules that need others are left out. All of them by default.
    """

    def __init__(self, rules: Iterable[Rule], present: frozenset[str] | None = None) -> None:
        self._rules = tuple(rules)
        self._by_root: dict[tuple[str, str], dict[Rule, list[Alternative]]] = {}
        self._reach: dict[tuple[str, str], int] = {}
        self._among: dict[frozenset[str], RuleIndex] = {}
        self._candidates: dict[tuple[str, str, frozenset[str]], Candidates] = {}
        for rule in self._rules:
            for alternative in rule.alternatives:
                if present is None or alternative.may_occur(present):
                    self._add(rule, alternative)
        self.depth = max(self._reach.values(), default=0)

    def _add(self, rule: Rule, alternative: Alternative) -> None:
        for op_type in alternative.term.ops:
            root = alternative.term.domain, op_type
            self._by_root.setdefault(root, {}).setdefault(rule, []).append(alternative)
            self._reach[root] = max(alternative.depth, self._reach.get(root, 0))

    def among(self, present: frozenset[str]) -> RuleIndex:
        """What of it may match in a graph of these op types."""
        found = self._among.get(present)
        if found is None:
            found = self._among[present] = RuleIndex(self._rules, present)
        return found

    def reach(self, node: Node) -> int:
        """Operators on the longest path of any pattern rooted at ``node``; 0 where there is none."""
        return self._reach.get((node.domain, node.op_type), 0)

    def candidates(self, node: Node, feeders: frozenset[str]) -> Candidates:
        """The rules that may match at ``node`` fed by these op types, each with its alternatives that may."""
        key = node.domain, node.op_type, feeders
        found = self._candidates.get(key)
        if found is None:
            rules = self._by_root.get((node.domain, node.op_type), {})
            tried = (
                (rule, [a.term for a in alternatives if a.may_match(node.op_type, feeders)])
                for rule, alternatives in rules.items()
            )
            found = self._candidates[key] = tuple((rule, terms) for rule, terms in tried if terms)
        return found


class Driver:
    """Applies a set of rules in one scope.

    The worklist starts with ``seeds`` (all nodes by default). After an application the nodes it
    touched are queued again, with their users as far as the deepest pattern reaches.
    """

    def __init__(self, ctx: Context, graph: Graph, scope: tuple[str, ...], rules: RuleIndex) -> None:
        self._ctx = ctx
        self._graph = graph
        self._scope = scope
        self._rules = rules
        self._log = ctx.journal.touched[graph]
        self._matcher = Matcher(graph, ctx.is_kept if ctx.settings.keep else None)
        self._queue: deque[int] = deque()
        self._queued: set[int] = set()
        self._recent: deque[str] = deque(maxlen=12)

    def run(self, seeds: Iterable[int] | None = None) -> Outcome:
        """Runs to the fixpoint. With ``seeds``, only what they can have enabled is looked at."""
        outcome = Outcome()
        limit = 1000 + 20 * len(self._graph)
        rules = self._possible()
        if seeds is None and rules.depth:
            self._enqueue(node.id for node in self._graph.topological() if rules.reach(node))
        elif seeds is not None:
            self._enqueue(self._reachable(seeds))
        with _unchecked():
            while self._queue:
                if not self._step(outcome, limit):
                    return outcome
        return outcome

    def sweep(self) -> Outcome:
        """Tries every node, until a whole sweep fires nothing."""
        total = Outcome()
        while True:
            outcome = self.run()
            total.fired += outcome.fired
            total.stop, total.oscillating = outcome.stop, outcome.oscillating
            if not outcome.fired or outcome.stop is StopReason.LIMIT:
                return total

    def _step(self, outcome: Outcome, limit: int) -> bool:
        key = self._queue.popleft()
        self._queued.discard(key)
        if key not in self._graph:
            return True
        node = self._graph.node(key)
        mark = len(self._log)
        for rule, options in self._candidates(node):
            if not self._try(rule, options, node):
                continue
            outcome.fired += 1
            self._recent.append(rule.name)
            self._enqueue(self._reachable(self._log[mark:]))
            if outcome.fired >= limit:
                outcome.stop = StopReason.LIMIT
                outcome.oscillating = tuple(dict.fromkeys(self._recent))
                names = ", ".join(outcome.oscillating)
                self._ctx.warnings.append(f"stopped after {limit} rewrites; still firing: {names}")
                return False
            break
        return True

    def _possible(self) -> RuleIndex:
        """The rules that may match somewhere in the graph as it is now."""
        return self._rules.among(self._graph.op_types)

    def _candidates(self, node: Node) -> Candidates:
        feeders = frozenset([self._graph.node(value.node).op_type for value in node.inputs if value])
        return self._possible().candidates(node, feeders)

    def _try(self, rule: Rule, options: Sequence[Op], node: Node) -> bool:
        """Applies ``rule`` at ``node`` where one of the matches of ``options`` is not refused."""
        stats = self._ctx.stats[rule.name]
        if not self._ctx.settings.admits(rule.tag):
            return False
        start = time.perf_counter()
        try:
            for bindings, nodes in self._matcher.matches(options, node):
                stats.tried += 1
                if not self._ctx.allows(rule.name, self._scope, self._graph, node):
                    stats.refused["excluded: a check found it wrong here"] += 1
                    return False
                if self._apply(rule, bindings, nodes):
                    stats.fired += 1
                    return True
            return False
        finally:
            stats.seconds += time.perf_counter() - start

    def _apply(self, rule: Rule, bindings: dict[str, Any], nodes: tuple[Node, ...]) -> bool:
        try:
            entry = self._attempt(rule, bindings, nodes)
        except Refusal as refusal:
            self._ctx.stats[rule.name].refused[refusal.reason] += 1
            return False
        return entry is not None and self._ctx.accept(entry)

    def matches(self, node: Node) -> Iterator[tuple[Rule, dict[str, Any], tuple[Node, ...]]]:
        """Every way in which a rule that may be applied matches at ``node``."""
        for rule, options in self._candidates(node):
            allowed = self._ctx.allows(rule.name, self._scope, self._graph, node)
            if allowed and self._ctx.settings.admits(rule.tag):
                for bindings, nodes in self._matcher.matches(options, node):
                    yield rule, bindings, nodes

    def attempt(self, rule: Rule, bindings: dict[str, Any], nodes: tuple[Node, ...]) -> Application | None:
        """Applies a rule to what its pattern matched, unchecked; ``None`` where it fails and may be left out.

        Raises:
            Refusal: a precondition of the rule does not hold.
        """
        with _unchecked():
            return self._attempt(rule, bindings, nodes)

    def _attempt(self, rule: Rule, bindings: dict[str, Any], nodes: tuple[Node, ...]) -> Application | None:
        match = Match(self._ctx, self._graph, bindings, nodes)
        rewriter = Rewriter(match)
        try:
            replacement = rule.function(match, rewriter)
            looked_around = match.looked_around
            with self._ctx.application(rule.name, self._graph, nodes[0], rule.tag, self._scope) as entry:
                entry.pairs = rewriter.commit(self._ctx, replacement)
                entry.facts = tuple(match.used_facts)
                entry.matched = tuple(node.id for node in nodes)
                entry.looked_around = looked_around
        except Refusal:
            raise
        except Exception as error:
            where = self._graph.label(nodes[0])
            if rule.name in self._ctx.forgiven:
                self._ctx.stats[rule.name].refused[f"it failed: {type(error).__name__}: {error}"] += 1
                self._ctx.warnings.append(f"{rule.name} failed at {where} and was left out there: {error}")
                return None
            raise rule_failed(f"rule {rule.name} failed at {where}", rule.function, error) from error
        return entry

    def _enqueue(self, keys: Iterable[int]) -> None:
        for key in keys:
            if key not in self._queued:
                self._queued.add(key)
                self._queue.append(key)

    def _reachable(self, seeds: Iterable[int]) -> list[int]:
        """The seeds and the users whose patterns reach up to them, each at most ``FAN_OUT`` a step."""
        graph, rules = self._graph, self._possible()
        found: list[int] = []
        level = [key for key in dict.fromkeys(seeds) if key in graph]
        seen = set(level)
        for distance in range(rules.depth):
            found += [key for key in level if rules.reach(graph.node(key)) > distance]
            if distance + 1 < rules.depth:
                near = [user for key in level if graph.fan_out(key) <= FAN_OUT for user in graph.users(key)]
                level = [key for key in dict.fromkeys(near) if key not in seen]
                seen.update(level)
        return found


def _unchecked() -> np.errstate:
    """A weight may overflow, or be NaN: the rule decides, not NumPy."""
    return np.errstate(all="ignore")
