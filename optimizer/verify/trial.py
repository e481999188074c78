"""Running both sides of a region on the same fresh inputs, and what that says."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import Any

import numpy as np

from optimizer.ir import Attribute, Function, Tensor, Value
from optimizer.runtime import ExecutionError, LimitReached, is_exact
from optimizer.runtime.precision import true_value
from optimizer.verify.agreement import bits_differ, nearly_differ
from optimizer.verify.boundary import Assignment, Boundary
from optimizer.verify.draws import Draw
from optimizer.verify.evaluate import Evaluator
from optimizer.verify.implied import with_implied_attributes
from optimizer.verify.metrics import same_kind
from optimizer.verify.random_ops import is_random
from optimizer.verify.region import Region
from optimizer.verify.truth import Roundings, TruthComparison, outputs_of, roundings_of

MAX_RUN = 4_000_000_000
"""Work of one run of one side, in multiplications, above which a region is not judged."""
TOO_LONG = "takes too long to run"
SCALES = (1.0, 0.1, 30.0)
MODERATE = SCALES[:2]
"""For rewrites that rely on an assumption about the data: where nothing saturates, they must hold."""
MAX_ACCEPTED = 3

Functions = Mapping[tuple[str, str, str], Function]


class Undecided(Exception):
    """The region could not be judged: the text says why."""


class Trial:
    """One region on trial.

    Args:
        exact: bit for bit in the model's own element types (E0); else in float64.
        bindings: what the attributes of the function around the region stand for.
        implied: numbers that stand in for written constants of the old side, whose attributes then
            stand for what they mean as well.
        brief: one assignment of sizes and one scale have to do.
        scales: of the values fed.
    """

    def __init__(
        self,
        region: Region,
        functions: Functions,
        *,
        exact: bool,
        bindings: Mapping[str, Attribute] | None = None,
        seed: int = 0,
        implied: Mapping[Value, float] | None = None,
        brief: bool = False,
        scales: Sequence[float] = SCALES,
    ) -> None:
        self._region = region
        self._scales = scales
        self._functions = functions
        self._exact = exact
        self._bindings = bindings or {}
        self._seed = seed
        self._brief = brief
        self._implied = implied
        self._sides: dict[tuple[bool, bool], tuple[Evaluator, dict[Value, Any]]] = {}
        self._results: dict[tuple[bool, bool], dict[Value, Any]] = {}
        self._roundings: Roundings | None = None
        self._compared = False

    def run(self, boundary: Boundary) -> str | None:
        """``None`` where both sides agree on everything tried, else what differs.

        Raises:
            Undecided: the old side accepts none of the sizes tried, or gives nothing but NaN.
            MissingKernel: nothing here can run one of the nodes.
        """
        if not self._region.boundary:
            return self._run_constants()
        accepted = 0
        for number, assignment in enumerate(boundary.assignments()):
            ran = False
            for draw in self._draws(not accepted, boundary.copies(assignment), boundary.can_mix(assignment)):
                feeds = boundary.feed(assignment, self._generator(number, draw), draw)
                verdict = None if feeds is None else self._compare(feeds, draw)
                if verdict is None:
                    break
                ran = True
                if verdict:
                    return f"{verdict} ({_circumstances(draw, assignment)})"
            accepted += ran
            enough = MAX_ACCEPTED + boundary.only_numbers
            if accepted >= (1 if self._brief else enough) or (accepted and number >= enough):
                break
        if not accepted:
            raise Undecided("no sizes tried suit the old nodes")
        if not self._compared:
            raise Undecided("the old nodes give nothing, or nothing but NaN, on the values tried")
        return None

    def _draws(self, first: bool, copies: int, mixed: bool) -> Iterator[Draw]:
        # Past the first sizes (among them ones and zeros) a count of 1 would tell nothing from nothing.
        least = 1 if first else 2
        if self._brief and not self._exact:
            if self._region.fresh:
                yield Draw(sparse=True, mixed=mixed)
            if not mixed or not self._region.fresh:
                yield Draw()
            return
        for copy in range(1 if self._brief else copies):
            if self._exact:
                yield Draw(truth=False, least_count=least, copy=copy)
                if first:
                    yield Draw(30.0, truth=False, special=True, copy=copy)
                continue
            sparse = first and bool(self._region.fresh)
            for scale in self._scales if first else self._scales[:1]:
                both = sparse and mixed and scale == 1.0
                yield Draw(scale, least_count=least, copy=copy, sparse=both, mixed=both)
            if sparse and not mixed:
                yield Draw(sparse=True, copy=copy)
        if first and not self._compared:
            yield Draw(positive=True)

    def _generator(self, number: int, draw: Draw) -> np.random.Generator:
        state = self._seed
        for part in (number, int(draw.scale * 10), int(draw.special), draw.copy):
            state = state * 1009 + part
        return np.random.Generator(np.random.PCG64(state))

    # ---------------------------------------------------------------- running

    def _run(
        self, before: bool, truth: bool, feeds: Mapping[Value, Any]
    ) -> tuple[Evaluator, dict[Value, Any]]:
        side = self._region.before if before else self._region.after
        known = self._sides.get((before, truth))
        if known is None:
            if before and self._implied is not None:
                side = with_implied_attributes(side)
            evaluator = Evaluator(side, self._functions, truth=truth, bindings=self._bindings)
            constants = {side.local[v]: self._constant(v, t, truth) for v, t in side.constants.items()}
            known = self._sides[before, truth] = evaluator, constants
        evaluator, constants = known
        if (before, truth) in self._results:
            return evaluator, self._results[before, truth]
        given = {side.local[v]: true_value(array) if truth else array for v, array in feeds.items()}
        self._results[before, truth] = evaluator.run({**constants, **given}, MAX_RUN)
        return evaluator, self._results[before, truth]

    def _constant(self, value: Value, tensor: Tensor, truth: bool) -> Any:
        if self._implied and value in self._implied:
            return np.full(tensor.shape, self._implied[value], np.float64 if truth else tensor.dtype.numpy)
        return true_value(tensor.array) if truth else tensor.array

    def _run_constants(self) -> str | None:
        """Nothing but constants: the bits our own kernels give, or the right number rounded once."""
        try:
            pairs = self._own_results({})
            if all(not bits_differ(old, new) for old, new in pairs):
                return None
            _, values = self._run(True, True, {})
            if not self._exact and not all(map(_is_finite, values.values())):
                raise Undecided("constants that are not finite")
            return self._truth_verdict({}) or None
        except ExecutionError as error:
            raise Undecided(f"the old nodes do not run: {error}") from error

    def _compare(self, feeds: Mapping[Value, Any], draw: Draw) -> str | None:
        """What differs; empty where nothing does, ``None`` where the old side refuses the inputs."""
        self._results.clear()
        with _no_warnings(feeds):
            try:
                self._run(True, draw.truth, feeds)
            except (ExecutionError, LimitReached):
                return None
            try:
                return self._truth_verdict(feeds) if draw.truth else self._own_verdict(feeds, draw)
            except ExecutionError as error:
                return f"the new nodes fail where the old ones run: {error}"
            except LimitReached as error:
                raise Undecided(TOO_LONG) from error

    # ---------------------------------------------------------------- verdicts

    def _own_results(self, feeds: Mapping[Value, Any]) -> list[tuple[Any, Any]]:
        """The pairs of results in the model's own element types."""
        before, old = self._run(True, False, feeds)
        after, new = self._run(False, False, feeds)
        olds, news = outputs_of(old, before), outputs_of(new, after)
        return list(zip(olds, news, strict=False)) if len(olds) == len(news) else [(olds, news)]

    def _own_verdict(self, feeds: Mapping[Value, Any], draw: Draw) -> str:
        pairs = self._own_results(feeds)
        self._compared |= any(not isinstance(old, np.ndarray) or old.size for old, _ in pairs) or not pairs
        if self._draws_anew:
            return _first(same_kind(old, new) for old, new in pairs)
        fault = _first(bits_differ(old, new) for old, new in pairs)
        if not fault or self._has_exact_kernels:
            return fault
        # A sum or an exponential may round otherwise in another layout: no fault of the rewrite.
        loose = _first(nearly_differ(old, new) for old, new in pairs)
        return loose or ("" if draw.special else self._truth_verdict(feeds))

    def _truth_verdict(self, feeds: Mapping[Value, Any]) -> str:
        before, old = self._run(True, True, feeds)
        after, new = self._run(False, True, feeds)
        if self._draws_anew:
            self._compared = True
            return _first(map(same_kind, outputs_of(old, before), outputs_of(new, after)))
        try:
            if self._roundings is None:
                self._roundings = roundings_of(self._region, before, after)
            fault, compared = TruthComparison(before, after, old, new, self._roundings).fault()
        except ArithmeticError as error:
            raise Undecided(str(error)) from error
        self._compared |= compared
        return fault

    @cached_property
    def _draws_anew(self) -> bool:
        """Whether nodes that the application made draw random numbers: values say nothing then."""
        side = self._region.after
        return any(
            side.origin[node.id] in self._region.added and is_random(side.graph, node, self._functions)
            for node in side.nodes
        )

    @cached_property
    def _has_exact_kernels(self) -> bool:
        return all(
            is_exact(node, side.graph, self._functions)
            for side in (self._region.before, self._region.after)
            for node in side.nodes
        )


def _no_warnings(feeds: Mapping[Value, Any]) -> AbstractContextManager[object]:
    """The mean of nothing is NaN: so be it. Elsewhere NumPy is quiet anyway, and the switch is slow."""
    if all(np.size(array) for array in feeds.values()):
        return nullcontext()
    return warnings.catch_warnings(action="ignore", category=RuntimeWarning)


def _is_finite(value: Any) -> bool:
    floats = isinstance(value, np.ndarray) and value.dtype.kind in "fc"
    return not floats or bool(np.isfinite(value).all())


def _first(faults: Iterator[str] | map[str]) -> str:
    return next(filter(None, faults), "")


def _circumstances(draw: Draw, assignment: Assignment) -> str:
    sizes = ", ".join(f"{atom.name or 'unnamed'}={dim}" for atom, dim in assignment.items())
    values = "with NaN and infinities" if draw.special else f"values of scale {draw.scale:g}"
    return f"{values}, sizes {sizes}" if sizes else values
