"""``LocalCheck``: judges every rewrite where it happens, right after it happened."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Any

from optimizer.analysis import Fact
from optimizer.ir import Attribute, InvalidGraph, OptimizerError, Value
from optimizer.rewrite import Application, Context, Exactness
from optimizer.verify.boundary import Boundary, Unsupported
from optimizer.verify.cost import MAX_WORK, SMALL_WORK, smaller_sizes, window_reach, work_of
from optimizer.verify.implied import implied_values
from optimizer.verify.region import Pairs, Region, TooLarge, Views, find_region, views_of
from optimizer.verify.repeats import region_key, structure_key
from optimizer.verify.trial import TOO_LONG, Trial, Undecided

REPEATS = 2
"""How often regions that look the same in every respect are checked."""
LEVELS = 3
"""Levels of producers taken in above a region that fails, or cannot be judged, on its own."""
ALL_WORK = 50_000_000_000
"""Work that all checks together may take, in multiplications: about half a minute."""
PATIENCE = 8
"""Factor on that for rewrites that computed new constants."""
FULL_WORK = 100_000_000
"""Work of one run above which one size and scale has to do."""
REPEATED = "looks like one that was checked"
BRIEFLY = "checked at one size and scale only, others like it at all"


class LocalCheck:
    """Checks single applications: the region before and after, run on the same fresh inputs.

    Both are run in float64 at scales 0.1, 1 and 30, each compared on its own, at several sizes; what
    may differ is what rounding the new constants once allows, and 1e-10 of the largest magnitude any
    intermediate takes. Rewrites tagged E0 are run in the model's own element types and compared bit
    for bit, with -0, NaN and infinities among the values. Upstream facts that the rule recorded hold
    for the inputs. A region that fails is given up to three levels of its producers before that counts,
    since a rewrite may rest on them.

    Args:
        seed: of the inputs.
        work: what all checks together may take, in estimated multiplications (eight times as much
            where constants were computed). What is left out is counted.

    Attributes:
        checked: applications checked, by rule.
        skipped: applications not checked, or not at all sizes and scales, by reason.
        seconds: time spent checking; nothing depends on it.
        spent: work spent.
    """

    def __init__(self, *, seed: int = 0, work: int = ALL_WORK) -> None:
        self.checked: Counter[str] = Counter()
        self.skipped: Counter[str] = Counter()
        self.seconds = 0.0
        self.spent = 0
        self._seed = seed
        self._allowed = work
        self._seen: Counter[Hashable] = Counter()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a report."""
        return {
            "checked": sum(self.checked.values()),
            "skipped": dict(sorted(self.skipped.items())),
            "seconds": self.seconds,
        }

    def __call__(self, ctx: Context, application: Application) -> str | None:
        """``None`` where the application is right or cannot be judged, else what is wrong."""
        start = time.perf_counter()
        if self.spent >= self._allowed * (PATIENCE if application.new_constants else 1):
            self.skipped["the work for all checks is used up"] += 1
            return None
        try:
            return self._check(ctx, application)
        finally:
            self.seconds += time.perf_counter() - start

    def _check(self, ctx: Context, application: Application) -> str | None:
        for views in views_of(application):
            pairs = views.pairs()
            fault = self._check_pairs(ctx, application, views, pairs) if pairs else None
            if fault is None:
                continue
            whole = views.pairs(whole_users=True)
            if whole == pairs or self._check_pairs(ctx, application, views, whole) is not None:
                return fault
        return None

    def _check_pairs(self, ctx: Context, application: Application, views: Views, pairs: Pairs) -> str | None:
        """Judges the smallest region first, then with more and more of what is above it."""
        fault, reason = None, ""
        boundary: tuple[Value, ...] | None = None
        for level in range(LEVELS + 1):
            try:
                region = find_region(views, pairs, ctx.model.opsets, ctx.facts(views.graph), level)
                if region.boundary == boundary:
                    break
                boundary = region.boundary
                found = self._judge(ctx, application, views, region)
            except Repeated:
                reason = REPEATED
                break
            except (Undecided, Unsupported, TooLarge, InvalidGraph) as error:
                reason = reason or str(error)
                continue
            except OptimizerError as error:
                reason = reason or str(error)
                break
            except Exception as error:  # a check that fails says nothing about the rewrite
                reason = reason or f"the check itself failed: {type(error).__name__}: {error}"
                break
            if found is None:
                self.checked[application.rule] += 1
                return None
            fault = fault or found
            if not application.facts and _computed_weights(region):
                break
        if fault is None:
            self.skipped[reason] += 1
        return fault

    def _judge(self, ctx: Context, application: Application, views: Views, region: Region) -> str | None:
        known = ctx.facts(views.graph)
        facts = {value: known.of(value) for value in region.boundary}
        key = region_key(region, facts)
        if key is not None:
            self._seen[application.rule, key] += 1
            if self._seen[application.rule, key] > REPEATS:
                raise Repeated
        bindings = _bindings(ctx, application)
        for side in (region.before, region.after):
            for attribute in (a for node in side.nodes for a in node.attributes.values()):
                if attribute.reference and attribute.reference not in bindings:
                    raise Undecided("an attribute of the function around it is open")
        look = application.rule, structure_key(region, facts)
        self._seen[look] += 1
        brief = self._seen[look] > 1
        if brief:
            self.skipped[BRIEFLY] += 1
        return self._try(ctx, application, region, facts, bindings, brief)

    def _try(
        self,
        ctx: Context,
        application: Application,
        region: Region,
        facts: Mapping[Value, Fact],
        bindings: Mapping[str, Attribute],
        brief: bool,
    ) -> str | None:
        exact = application.tag is Exactness.E0
        relied = frozenset(value for value, _ in application.facts)

        def trial(boundary: Boundary, implied: Mapping[Value, float] | None = None) -> str | None:
            judge = Trial(
                region,
                ctx.model.functions,
                exact=exact,
                bindings=bindings,
                seed=self._seed,
                implied=implied,
                brief=brief or work > FULL_WORK,
            )
            self.spent += work * (2 if brief else 6)
            return judge.run(boundary)

        reach = window_reach(region)
        plain = Boundary(region, facts, relied, reach=reach)
        shapes = plain.first_shapes()
        work = work_of(region, shapes)
        smaller = smaller_sizes(region, shapes) if work > SMALL_WORK else {}
        if smaller:
            try:
                if trial(Boundary(region, facts, relied, smaller, reach)) is None:
                    return None
            except Undecided:
                pass  # its own sizes decide
        if work > MAX_WORK:
            raise Undecided(TOO_LONG)
        fault = trial(plain)
        if fault and not exact:
            implied = implied_values(region)
            if implied and trial(plain, implied) is None:
                return None
        return fault


def _computed_weights(region: Region) -> bool:
    """Whether the rewrite computed weights: what is above them may hide, but not mend, a wrong one."""
    fresh = (region.after.constants[value] for value in region.fresh)
    return any(tensor.dtype.is_float and tensor.size > 1 for tensor in fresh)


class Repeated(Exception):
    """A region that looks the same has been checked often enough."""


def _bindings(ctx: Context, application: Application) -> Mapping[str, Attribute]:
    """The defaults of the function the application happened in."""
    scope = application.scope[0] if application.scope else ""
    for function in ctx.model.functions.values():
        if scope == f"{function.domain}::{function.name}":
            return function.defaults
    return {}
