"""Applying one rule to many generated graphs, and judging what it does there."""

from __future__ import annotations

import warnings
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from optimizer.ir import Model, OptimizerError
from optimizer.ir.text import dump
from optimizer.rewrite import Application, Context, Driver, Exactness, Rule, RuleIndex, Settings
from optimizer.verify.adversary.grow import Barren, Grower, Growth
from optimizer.verify.adversary.mutate import Mutant, Seed
from optimizer.verify.engines import EngineError, NumPy
from optimizer.verify.local import LocalCheck
from optimizer.verify.metrics import compare_values, same_kind

GRAPHS = 300
"""Graphs a rule is tried on."""
MORE = 40
"""Graphs tried after the first counterexample, to find a smaller one."""
FEW = 4
"""Applications on one graph that are looked at."""
_OBJECTIVES = ("balanced", "latency", "nodes")


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A graph that a rule gets wrong.

    Attributes:
        text: the graph as ONNX text.
        fault: what is wrong with the result.
    """

    text: str
    fault: str
    size: tuple[int, int]


@dataclass(slots=True)
class RuleTrials:
    """What became of a rule on the graphs it was tried on.

    Attributes:
        fired, wrong: graphs on which it was applied; those where that was wrong.
        refused: how often it refused, by reason.
        grown: graphs that could be made.
        worst: the smallest graph it gets wrong.
    """

    rule: str
    grown: int = 0
    fired: int = 0
    wrong: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    worst: Counterexample | None = None

    def __str__(self) -> str:
        text = f"{self.rule}: fired {self.fired}, refused {self.refused.total()}, wrong {self.wrong}"
        text += f" on {self.grown} graphs"
        if not self.fired and not self.wrong:
            text += ": it never fired, so this says nothing"
        if self.worst is not None:
            lines = [self.worst.fault, *self.worst.text.splitlines()]
            text += "".join(f"\n  {line}" for line in lines)
        return text


def try_rule(rule: Rule, *, graphs: int = GRAPHS, seed: int = 0, examples: Sequence[Seed] = ()) -> RuleTrials:
    """Tries a rule on graphs grown from its pattern; the same ones for the same seed.

    Args:
        graphs: how many are to be grown.
        examples: graphs that it is known to match; every other one is one of these, changed a little.
    """
    found = RuleTrials(rule.name)
    base = zlib.crc32(rule.name.encode()) + (seed << 32)

    def grow(attempt: int) -> Growth:
        rng = np.random.default_rng([base, attempt])
        if examples and attempt % 2:
            return Mutant(examples[int(rng.integers(len(examples)))], rng).grow()
        return Grower(rule, rng).grow()

    attempts, last = 0, graphs
    while found.grown < last and attempts < 20 * graphs:
        attempts += 1
        try:
            growth = grow(attempts)
        except Barren:
            continue
        found.grown += 1
        size = growth.size
        target = "onnxruntime" if attempts // 2 % 2 else ""
        settings = Settings(fp="fast", objective=_OBJECTIVES[attempts % 3], target=target, growth=None)
        fault = _apply(rule, growth, growth.settings or settings, found)
        if fault:
            found.wrong += 1
            last = min(last, found.grown + MORE) if found.worst is None else last
            if found.worst is None or size < found.worst.size:
                found.worst = Counterexample(dump(grow(attempts).model), fault, size)
    return found


def _apply(rule: Rule, growth: Growth, settings: Settings, found: RuleTrials) -> str:
    """What is wrong after the rule was applied wherever it can be; empty where nothing is."""
    model = growth.model
    before = model.copy()
    ctx = Context(model, settings)
    check = ctx.check = _Few(LocalCheck())
    try:
        Driver(ctx, model.graph, (), RuleIndex([rule])).run()
    except Enough:
        pass  # a rule that fires on its own result has shown what it does
    except OptimizerError as error:
        return str(error)
    finally:
        found.refused.update(ctx.stats[rule.name].refused)
        ctx.journal.detach()
    found.fired += check.applied > 0
    if ctx.rejected:
        return ctx.rejected[0].fault
    return _compare(before, model, growth.feeds, rule.tag) if check.applied else ""


class Enough(Exception):
    """The rule has been applied often enough on this graph."""


class _Few:
    """Hands the first applications to a check, then ends the run."""

    def __init__(self, check: LocalCheck) -> None:
        self._check = check
        self.applied = 0

    def __call__(self, ctx: Context, application: Application) -> str | None:
        self.applied += 1
        fault = self._check(ctx, application)
        if fault is not None or self.applied < FEW:
            return fault
        raise Enough


def _compare(before: Model, after: Model, feeds: dict[str, Any], tag: Exactness) -> str:
    """Holds the whole graph against itself before, on the inputs it was grown with.

    What differs only in the model's own element types was rounded in another way: in float64 it must not.
    """
    fault = _compare_runs(before, after, feeds, tag)
    if not fault or tag is Exactness.E0:
        return fault
    return fault if _compare_runs(before, after, feeds, tag, truth=True) else ""


def _compare_runs(
    before: Model, after: Model, feeds: dict[str, Any], tag: Exactness, truth: bool = False
) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            own = NumPy(before).run(feeds)
            expected = NumPy(before, truth=True).run(feeds) if truth else own
        except EngineError:
            return ""
        try:
            actual = NumPy(after, truth=truth).run(feeds)
        except EngineError as error:
            return f"the result does not run: {error}"
    for name, value in expected.items():
        found = actual[name]
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and isinstance(found, np.ndarray):
            finite = bool(np.isfinite(value).all())
            value, found = (x.astype(own[name].dtype) for x in (value, found)) if truth else (value, found)
            fault = compare_values(value, found).fault if finite or tag is Exactness.E0 else ""
        elif isinstance(value, np.ndarray) and value.dtype.kind in "biu" and tag is not Exactness.E0:
            fault = same_kind(value, found)  # where rounding breaks a tie, an index is another one
        else:
            fault = compare_values(value, found).fault
        if fault:
            return f"output '{name}': {fault}"
    return ""
