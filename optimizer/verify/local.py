"""``LocalCheck``: judges every rewrite where it happens, right after it happened."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Any

from optimizer.analysis import Fact, Facts
from optimizer.ir import Attribute, InvalidGraph, OptimizerError, Value
from optimizer.rewrite import Application, Context, Exactness
from optimizer.verify.boundary import Boundary, Memory, Unsupported
from optimizer.verify.cost import MAX_WORK, SMALL_WORK, smaller_sizes, window_reach, work_of
from optimizer.verify.implied import has_implied_attributes, implied_values
from optimizer.verify.origins import MANY, origins
from optimizer.verify.region import MAX_NODES, Pairs, Region, TooLarge, Views, find_region, is_told, views_of
from optimizer.verify.repeats import has_large_constants, region_key, structure_key
from optimizer.verify.trial import MODERATE, SCALES, TOO_LONG, Trial, Undecided

REPEATS = 2
"""How often regions that look the same but for the contents of large constants are checked."""
LEVELS = 3
"""Levels of producers taken in above a region that fails, or cannot be judged, on its own."""
ENOUGH = 12
"""Nodes of a region from which on its boundary values may depend on each other at first."""
ATTEMPTS = ((0, ENOUGH), *((level, MAX_NODES) for level in range(LEVELS + 1)))
"""Regions that are judged, one after the other, until one is found right."""
ALL_WORK = 50_000_000_000
"""Work that all checks together may take, in multiplications: about half a minute."""
PATIENCE = 8
"""Factor on that for rewrites that computed new constants."""
FULL_WORK = 100_000_000
"""Work of one run above which one size and scale has to do."""
REPEATED = "the same as others that were checked"
BRIEFLY = "at one size and scale only"


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
        self._passed: Counter[Hashable] = Counter()
        self._sizes: Memory = {}

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a report.

        ``briefly``: those among the checked ones that one size and scale had to do for, since others like
        them had passed at all; ``skipped``: those not checked, by reason.
        """
        return {
            "checked": sum(self.checked.values()),
            "briefly": self.skipped[BRIEFLY],
            "skipped": {reason: n for reason, n in sorted(self.skipped.items()) if reason != BRIEFLY},
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
        fault, reason, alone = None, "", False
        boundary: tuple[Value, ...] | None = None
        matched, facts = _matched(application, views), ctx.facts(views.graph)
        for level, enough in ATTEMPTS:
            try:
                region = find_region(views, pairs, ctx.model.opsets, facts, level, matched, enough=enough)
                if region.boundary == boundary:
                    if alone:
                        break
                    continue
                boundary = region.boundary
                found = self._judge(ctx, application, views, region)
            except Repeated:
                self.skipped[REPEATED] += 1
                return None
            except (Undecided, Unsupported, TooLarge, InvalidGraph) as error:
                reason = reason or str(error)
                continue
            except OptimizerError as error:
                reason = reason or str(error)
                break
            except Exception as error:  # a check that fails says nothing about the rewrite
                reason = reason or f"the check itself failed: {type(error).__name__}: {error}"
                break
            fault = fault or found
            if found is None or self._is_drawn_wrong(ctx, application, views, region):
                self.checked[application.rule] += 1
                return None
            alone = not application.facts and _stands_alone(application, region, facts)
            if alone and enough > ENOUGH:
                break
        if fault is None:
            self.skipped[reason] += 1
        return fault

    def _is_drawn_wrong(self, ctx: Context, application: Application, views: Views, region: Region) -> bool:
        """Whether the sides agree where what is not free to be anything is computed instead of drawn."""
        facts, opsets, functions = ctx.facts(views.graph), ctx.model.opsets, ctx.model.functions
        numbers = not _computed_weights(region)
        inside = origins(views, region.boundary, facts, functions, numbers)
        if not inside:
            return False
        try:
            inside = inside.union(region.before.origin.values(), region.after.origin.values())
            wider = find_region(views, region.pairs, opsets, facts, extra=inside, most=MANY)
            return self._judge(ctx, application, views, wider) is None
        except Repeated:
            return True
        except Exception:  # it cannot be judged that way
            return False

    def _judge(self, ctx: Context, application: Application, views: Views, region: Region) -> str | None:
        known = ctx.facts(views.graph)
        facts = {value: known.of(value) for value in region.boundary}
        bindings = _bindings(ctx, application)
        sides = (region.before, region.after)
        attributes = [a for side in sides for node in side.nodes for a in node.attributes.values()]
        open_ones = {attribute.reference for attribute in attributes if attribute.reference}
        if not open_ones <= bindings.keys():
            raise Undecided("an attribute of the function around it is open")
        relied = tuple(value in [v for v, _ in application.facts] for value in region.boundary)
        around = application.rule, relied, application.scope if open_ones else ()
        key = region_key(region, facts)
        if key is not None:
            # Where no constant is large either, the same inputs would be tried once more.
            often = REPEATS if has_large_constants(region) else 1
            if self._passed["same", key, around] >= often:
                raise Repeated
        look = structure_key(region, facts, numbers=not _computed_weights(region))
        brief = self._passed["like", look, around] > 0
        fault = self._try(ctx, application, region, facts, bindings, brief)
        if fault is None:
            self._passed.update([("same", key, around), ("like", look, around)])
            if brief:
                self.skipped[BRIEFLY] += 1
        return fault

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

        def trial(
            boundary: Boundary, work: int, brief: bool, implied: Mapping[Value, float] | None = None
        ) -> str | None:
            judge = Trial(
                region,
                ctx.model.functions,
                exact=exact,
                bindings=bindings,
                seed=self._seed,
                implied=implied,
                brief=brief or work > FULL_WORK,
                scales=MODERATE if application.tag is Exactness.E3 else SCALES,
            )
            self.spent += work * (2 if brief else 6)
            return judge.run(boundary)

        reach = window_reach(region)
        plain = Boundary(region, facts, relied, reach=reach, memory=self._sizes)
        shapes = plain.first_shapes()
        work = work_of(region, shapes)
        smaller = smaller_sizes(region, shapes) if work > SMALL_WORK else {}
        brief = brief and not plain.only_numbers
        if smaller:
            small = Boundary(region, facts, relied, smaller, reach, self._sizes)
            less = work_of(region, small.first_shapes())
            try:
                fault = trial(small, less, brief)
                if fault is None or work > MAX_WORK:
                    return fault
            except Undecided:
                pass  # its own sizes decide
        if work > MAX_WORK:
            raise Undecided(TOO_LONG)
        fault = trial(plain, work, brief)
        if fault and not exact:
            implied = implied_values(region)
            if (implied or has_implied_attributes(region)) and trial(plain, work, brief, implied) is None:
                return None
        return fault


def _matched(application: Application, views: Views) -> frozenset[int]:
    return frozenset(application.matched) if application.graph is views.graph else frozenset()


def _stands_alone(application: Application, region: Region, facts: Facts) -> bool:
    """Whether nothing above the region could mend a fault of it.

    So it is where the rewrite computed weights, where all that is fed follows from the sizes, and where
    a rule took real numbers for granted that it neither matched nor stated a fact about.
    """
    boundary = [facts.of(value) for value in region.boundary]
    if _computed_weights(region) or all(map(is_told, boundary)):
        return True
    return not application.looked_around and all(
        is_told(fact) or (fact.dtype is not None and fact.dtype.is_float) for fact in boundary
    )


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
