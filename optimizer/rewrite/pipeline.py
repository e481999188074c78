"""Passes and pipelines: what runs, over which scopes, in which order, how often."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from optimizer.ir import Graph
from optimizer.rewrite.context import Context
from optimizer.rewrite.driver import Driver, RuleIndex
from optimizer.rewrite.function_pass import FunctionPass
from optimizer.rewrite.instruments import Instrument
from optimizer.rewrite.rule import Declared, Rule


class Pass(Protocol):
    """One named step of a pipeline. It sees to every scope itself."""

    name: str

    def run(self, ctx: Context) -> bool:
        """Runs to its own fixpoint; true where it changed the model."""
        ...


class RulePass:
    """A set of rules, applied together by the driver in every scope.

    After its first run in a scope it only looks at what has changed there since.
    """

    def __init__(self, name: str, rules: Iterable[Rule]) -> None:
        self.name = name
        self.rules = tuple(rules)
        self._index = RuleIndex(self.rules)

    def run(self, ctx: Context) -> bool:
        """Applies the rules in every scope until none fires."""
        fired = 0
        for path, graph in ctx.scopes():
            driver = Driver(ctx, graph, path, self._index)
            seen = ctx.mark(self, graph)
            log = ctx.journal.touched[graph]
            if seen is None:
                fired += driver.run().fired
            elif seen < len(log):
                fired += driver.run(log[seen:]).fired
            ctx.set_mark(self, graph)
        return fired > 0

    def sweep(self, ctx: Context) -> bool:
        """Tries every node of every scope until a whole sweep fires nothing."""
        fired = sum(Driver(ctx, graph, path, self._index).sweep().fired for path, graph in ctx.scopes())
        for _, graph in ctx.scopes():
            ctx.set_mark(self, graph)
        return fired > 0


ScopeFunction = Callable[[Context, tuple[str, ...], Graph], bool]


class ScopePass:
    """A whole-graph pass, run in every scope that has changed since it last ran there.

    Args:
        reads_bodies: what it does in a scope hangs on the bodies below it, so it runs where one of
            those has changed too.
    """

    def __init__(self, name: str, function: ScopeFunction, reads_bodies: bool = False) -> None:
        self.name = name
        self.function = function
        self.reads_bodies = reads_bodies

    def run(self, ctx: Context) -> bool:
        """Runs the function in each scope, outer ones first."""
        changed = False
        for path, graph in ctx.scopes():
            if any(self._is_new(ctx, *read) for read in self._reads(graph)):
                changed |= self.function(ctx, path, graph)
                for step, scope in self._reads(graph):
                    ctx.set_mark(step, scope)
        return changed

    def _reads(self, graph: Graph) -> list[tuple[object, Graph]]:
        """The graphs that are looked at, with the key of the mark: a body has one for itself too."""
        bodies = [scope for _, scope in graph.scopes()][1:] if self.reads_bodies else []
        return [(self, graph), *(((self, graph), body) for body in bodies)]

    def _is_new(self, ctx: Context, step: object, scope: Graph) -> bool:
        return ctx.mark(step, scope) != len(ctx.journal.touched[scope])


class ModelPass:
    """A pass that needs the whole model at once."""

    def __init__(self, name: str, function: Callable[[Context], bool]) -> None:
        self.name = name
        self.function = function

    def run(self, ctx: Context) -> bool:
        """Runs the function."""
        return self.function(ctx)


def pass_of(declared: Declared) -> Pass:
    """A declared rule or function as a pass of its own."""
    return RulePass(declared.name, [declared]) if isinstance(declared, Rule) else FunctionPass(declared)


@dataclass(frozen=True, slots=True)
class Group:
    """Passes that belong together, run in order."""

    name: str
    passes: tuple[Pass, ...]


class Pipeline:
    """Groups of passes.

    Args:
        groups: in order.
        repeat: repeat all groups until a round changes nothing; else each pass runs once.
        last: groups that run then, repeated in the same way, where the first of them has something to do.
    """

    def __init__(self, groups: Sequence[Group], repeat: bool = True, last: Sequence[Group] = ()) -> None:
        self.groups = tuple(groups)
        self.repeat = repeat
        self.last = tuple(last)

    def run(self, ctx: Context, instruments: Sequence[Instrument] = ()) -> int:
        """Runs the pipeline; returns the number of rounds it took.

        A repeated pipeline ends with a sweep of every rule over every node; where that still
        fires, another round follows. Reaching ``max_rounds`` leaves a warning.
        """
        rounds = self._repeat(self.groups, ctx, instruments)
        if self.last and sum(self._run_pass(p, ctx, instruments) for p in self.last[0].passes):
            rounds += self._repeat(self.last, ctx, instruments)
        return rounds

    def _repeat(self, groups: Sequence[Group], ctx: Context, instruments: Sequence[Instrument]) -> int:
        rounds = 0
        while rounds < (ctx.settings.max_rounds if self.repeat else 1):
            rounds += 1
            changes = sum(self._run_pass(p, ctx, instruments) for g in groups for p in g.passes)
            if not changes and not (self.repeat and self._sweep(groups, ctx)):
                return rounds
        if self.repeat:
            ctx.warnings.append(f"stopped after {rounds} rounds while rewrites still fired")
        return rounds

    def _run_pass(self, step: Pass, ctx: Context, instruments: Sequence[Instrument]) -> bool:
        for instrument in instruments:
            instrument.before_pass(ctx, step.name)
        changed = step.run(ctx)
        for instrument in reversed(instruments):
            instrument.after_pass(ctx, step.name, changed)
        return changed

    def _sweep(self, groups: Sequence[Group], ctx: Context) -> bool:
        rules = [p for g in groups for p in g.passes if isinstance(p, RulePass)]
        return sum(step.sweep(ctx) for step in rules) > 0
