"""Chooses between forms of the same thing where fewer nodes and lower latency may conflict.

Each rule here says how something may be spelled otherwise, not when that is better: that is judged by
what the nodes before and after cost (``passes.costs``) and by what the run is to optimize for. At each
node every rule that matches is tried, then what that makes possible, a few steps deep; the best of all
is taken if it is better than what is there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias

from optimizer.ir import Graph, Node
from optimizer.rewrite import Application, Context, Driver, Refusal, Rule, RuleIndex, RulePass
from passes.costs import Costs

DEEPEST = 4
"""Applications in a row that are looked ahead."""
WIDEST = 8
"""Applications that are tried at each step."""
MOST_TRIES = 64
"""Applications that are tried for one node."""
NOISE = 0.03
"""A difference of latency that counts for nothing."""
DOUBT = 0.25
"""A difference of latency up to which the table may be wrong, so that a race may decide."""

_Match: TypeAlias = tuple[Rule, dict[str, Any], tuple[Node, ...]]


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What some applications in a row come to.

    Attributes:
        steps: for each application, its place among those possible then.
        first: the first of them.
        removed: nodes that go.
        nodes: nodes that come, less those that go.
        after: nanoseconds for those that come.
    """

    steps: tuple[int, ...]
    first: Application
    removed: tuple[int, ...]
    nodes: int
    after: float


class ChoosePass(RulePass):
    """Alternatives, each judged with what may follow it.

    Args:
        rules: the alternatives.
        following: further rules, which are looked at only behind one of them.
    """

    def __init__(self, name: str, rules: Sequence[Rule], following: Sequence[Rule] = ()) -> None:
        super().__init__(name, rules)
        self._all = RuleIndex([*rules, *following])

    def run(self, ctx: Context) -> bool:
        """Chooses at every node of every scope that has changed since the last time."""
        changed = False
        for path, graph in ctx.scopes():
            if ctx.mark(self, graph) != len(ctx.journal.touched[graph]):
                changed |= self._choose(ctx, path, graph)
                ctx.set_mark(self, graph)
        return changed

    def sweep(self, ctx: Context) -> bool:
        """The same, wherever that has not been done."""
        return self.run(ctx)

    def _choose(self, ctx: Context, path: tuple[str, ...], graph: Graph) -> bool:
        search = _Search(ctx, path, graph, self._index, self._all)
        changed = False
        for node in list(graph.topological()):
            if node.id in graph and self._index.reach(node):
                changed |= search.improve(node.id)
        return changed


class _Search:
    """The choices in one graph."""

    def __init__(
        self, ctx: Context, path: tuple[str, ...], graph: Graph, first: RuleIndex, then: RuleIndex
    ) -> None:
        self._ctx, self._graph = ctx, graph
        self._first, self._then = (Driver(ctx, graph, path, index) for index in (first, then))
        self._reaches = first.reach
        self._tries = 0

    def improve(self, key: int) -> bool:
        """Applies what is best, if that is better than nothing."""
        best: tuple[tuple[float, float], _Outcome] | None = None
        verdicts: dict[str, str] = {}
        for outcome, before in self._outcomes(key):
            fault = self._fault_of(outcome, before)
            rank: tuple[float, float] = (outcome.after - before, outcome.nodes)
            if self._ctx.settings.objective == "nodes":
                rank = rank[::-1]
            if fault:
                verdicts.setdefault(outcome.first.rule, fault)
            elif best is None or rank < best[0]:
                best = rank, outcome
        if best is not None:
            return bool(self._apply(key, best[1].steps, checked=True))
        for rule, fault in verdicts.items():
            self._ctx.stats[rule].refused[fault] += 1
            self._ctx.declined[rule, self._graph, key] = fault
        return False

    def _outcomes(self, key: int) -> list[tuple[_Outcome, float]]:
        """All that may be done at a node, with what the nodes that would go cost now."""
        self._tries = 0
        found = list(self._explore([key], ()))
        costs = Costs(self._ctx, self._graph)
        return [(outcome, costs.of(outcome.removed)) for outcome in found]

    def _fault_of(self, outcome: _Outcome, before: float) -> str:
        if self._ctx.only is not None:  # a log is replayed, which says what was better then
            return "" if outcome.first.key in self._ctx.only else "it is not in the log"
        objective = self._ctx.settings.objective
        fault = fault_of(objective, outcome.nodes, before, outcome.after)
        if not self._is_doubtful(outcome, before):
            return fault
        decisions = self._ctx.race.decisions if self._ctx.race is not None else {}
        rule = outcome.first.rule
        if rule not in decisions:
            self._race(rule)
        if decisions.get(rule) is None:
            return fault
        return "" if decisions[rule] else "it was measured to be slower"

    # ---------------------------------------------------------------- timing

    def _is_doubtful(self, outcome: _Outcome, before: float) -> bool:
        """Whether latency decides, and the table alone may not tell it."""
        objective = self._ctx.settings.objective
        by_nodes = objective == "nodes" or (objective == "balanced" and outcome.nodes > 0)
        close = abs(outcome.after - before) <= DOUBT * max(before, outcome.after)
        return self._ctx.race is not None and close and not by_nodes

    def _race(self, rule: str) -> None:
        """Times the whole model as it is against one where all doubtful applications of a rule are made."""
        race, journal = self._ctx.race, self._ctx.journal
        assert race is not None
        race.decisions[rule] = None
        before, made = race.snapshot(self._ctx), list[Application]()
        for node in list(self._graph.topological()):
            if node.id not in self._graph or not self._reaches(node):
                continue
            for outcome, cost in self._outcomes(node.id):
                if outcome.first.rule == rule and self._is_doubtful(outcome, cost):
                    made += self._apply(node.id, outcome.steps, checked=False)
                    break
        after = race.snapshot(self._ctx)
        for entry in reversed(made):
            journal.retract(entry)
        race.decisions[rule] = race.is_faster(before, after)

    # ---------------------------------------------------------------- trying

    def _explore(self, keys: Sequence[int], done: tuple[tuple[int, Application], ...]) -> Iterator[_Outcome]:
        """Everything that can be done from here; the graph is as before when it ends."""
        for place, match in enumerate(self._possible(keys, bool(done))):
            if self._tries >= MOST_TRIES:
                return
            self._tries += 1
            try:
                entry = self._driver(bool(done)).attempt(*match)
            except Refusal:
                continue
            if entry is None or not entry.changes:
                continue
            steps = (*done, (place, entry))
            yield self._outcome(steps)
            if len(steps) < DEEPEST:
                yield from self._explore(self._near([entry for _, entry in steps]), steps)
            self._ctx.journal.retract(entry)

    def _driver(self, later: bool) -> Driver:
        return self._then if later else self._first

    def _possible(self, keys: Sequence[int], later: bool) -> list[_Match]:
        nodes = [self._graph.node(key) for key in keys]
        return list(islice((m for node in nodes for m in self._driver(later).matches(node)), WIDEST))

    def _near(self, entries: Sequence[Application]) -> list[int]:
        """What applications made or put in the place of something, and who reads that."""
        changes = [change for entry in entries for _, change in entry.changes]
        made = {c.after.id for c in changes if c.before is None and c.after is not None}
        made |= {new.node for entry in entries for _, new in entry.pairs}
        made = {key for key in made if key in self._graph}
        near = made | {user for key in made for user in self._graph.users(key)}
        return sorted(key for key in near if self._graph.node(key).is_operator)

    def _outcome(self, steps: tuple[tuple[int, Application], ...]) -> _Outcome:
        changes = [change for _, entry in steps for _, change in entry.changes]
        made = {
            c.after.id for c in changes if c.before is None and c.after is not None and c.after.is_operator
        }
        gone = {
            c.before.id for c in changes if c.after is None and c.before is not None and c.before.is_operator
        }
        added, removed = sorted(made - gone), sorted(gone - made)
        after = Costs(self._ctx, self._graph).of(added)
        places = tuple(place for place, _ in steps)
        return _Outcome(places, steps[0][1], tuple(removed), len(added) - len(removed), after)

    def _apply(self, key: int, steps: tuple[int, ...], checked: bool) -> list[Application]:
        """Applies what was found; stops where a check finds a step wrong."""
        keys, made = [key], list[Application]()
        for place in steps:
            entry = self._driver(bool(made)).attempt(*self._possible(keys, bool(made))[place])
            if entry is None or (checked and not self._ctx.accept(entry)):
                break
            self._ctx.stats[entry.rule].fired += checked
            made.append(entry)
            keys = self._near(made)
        return made


def fault_of(objective: str, nodes: int, before: float, after: float) -> str:
    """Why a change of so many nodes and of these costs is not to be made; empty where it is."""
    slower, faster = after > before * (1 + NOISE), after < before * (1 - NOISE)
    if objective == "nodes":
        better, faults = nodes < 0 or (nodes == 0 and faster), (nodes > 0, False)
    elif objective == "latency":
        better, faults = faster or (nodes < 0 and not slower), (False, slower)
    else:
        better, faults = nodes <= 0 and not slower and (nodes < 0 or faster), (nodes > 0, slower)
    if better:
        return ""
    more, slow = faults
    if more:
        return "it would be more nodes"
    return "it would be slower" if slow else "it would gain nothing"
