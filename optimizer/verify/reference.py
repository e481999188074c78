"""The original model as the measure of its results: inputs, outputs and its own noise, computed once."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from optimizer.analysis import SizeRange
from optimizer.analysis.specialize import specialize
from optimizer.io import load, read_data_sets
from optimizer.ir import Model, UsageError
from optimizer.verify.effort import NUMPY_LIMIT
from optimizer.verify.engines import Engine, EngineError, NumPy, OnnxRuntime, Source
from optimizer.verify.feeds import FeedMaker, NoFeed, check_feed
from optimizer.verify.metrics import OutputError, compare_values
from optimizer.verify.random_ops import random_outputs
from optimizer.verify.sizes import FoundSizes, Sizes, find_sizes
from optimizer.verify.states import STEPS, next_feeds, state_pairs
from optimizer.verify.values import Fill, generator

CHAOTIC = 1e-2
"""Relative noise of a model above which its inputs are drawn in another way."""


@dataclass(slots=True)
class Case:
    """One input and what the original makes of it.

    Attributes:
        seconds: how long the original took.
        name: what it is called where it is not made from sizes and a seed.
    """

    sizes: Sizes
    seed: int
    feeds: dict[str, Any]
    expected: dict[str, Any]
    seconds: float
    name: str = ""

    @property
    def elements(self) -> int:
        """Elements of all inputs: what the work grows with."""
        return sum(np.size(value) for value in self.feeds.values() if isinstance(value, np.ndarray))

    @property
    def label(self) -> str:
        """``seed 0, N=2``."""
        return self.name or ", ".join([f"seed {self.seed}", *(f"{k}={v}" for k, v in self.sizes.items())])


@dataclass(frozen=True, slots=True)
class Noise:
    """What an output does when nothing that matters changes.

    Attributes:
        floor: largest difference relative to the largest magnitude.
        differing: largest share of elements that are not the same.
        unstable: even shape, or what is NaN, changes.
    """

    floor: float = 0.0
    differing: float = 0.0
    unstable: bool = False


class Reference:
    """An original model, its test cases and its outputs; may judge any number of results.

    Args:
        source: the original, untouched file (or its bytes).
        seeds: inputs per assignment of sizes.
        size_count: assignments of sizes to its open dims.
        input_shapes, dims: sizes that the user fixed, as ``optimizer.analysis.specialize`` takes them.
        ranges: sizes that open dims may have; no other is tried.
        freeze_initializers: initializers that are also inputs were taken for constants.
        data: a folder with inputs to take instead of made ones (see ``optimizer.io.read_data_sets``).
        model: what ``source`` holds, where it has just been loaded; nobody else may change it.

    Attributes:
        model: the original, with the fixed sizes.
        notes: what a report should say about the cases.
    """

    def __init__(
        self,
        source: Source,
        *,
        seeds: int = 2,
        size_count: int = 2,
        input_shapes: Mapping[str, Sequence[int]] | None = None,
        dims: Mapping[str, int] | None = None,
        ranges: Mapping[str, SizeRange] | None = None,
        freeze_initializers: bool = False,
        data: str | os.PathLike[str] | None = None,
        model: Model | None = None,
    ) -> None:
        self.model = load(source, freeze_initializers=freeze_initializers) if model is None else model
        if input_shapes or dims:
            specialize(self.model, input_shapes or {}, dims or {})
        self.notes: list[str] = []
        self._source = source
        self._data = None if data is None else Path(data)
        self._seeds = seeds
        self._size_count = size_count
        self._ranges = ranges or {}
        self._maker = FeedMaker(self.model)
        self._noise: dict[int, dict[str, Noise]] = {}
        self._moved: dict[int, dict[str, Noise]] = {}
        self._reason = ""

    @cached_property
    def engine(self) -> Engine | None:
        """What runs the original: onnxruntime, else the NumPy executor, else nothing."""
        for make in (
            lambda: OnnxRuntime(self._source, model=self.model),
            lambda: NumPy(self.model, limit=NUMPY_LIMIT),
        ):
            try:
                return make()
            except EngineError as error:
                self._reason = self._reason or str(error)
        return None

    @property
    def reason(self) -> str:
        """Why onnxruntime does not run the original, or why there are no cases."""
        return self._reason

    @cached_property
    def random(self) -> frozenset[str]:
        """Outputs that depend on random numbers."""
        return random_outputs(self.model)

    @cached_property
    def cases(self) -> tuple[Case, ...]:
        """Inputs that the original accepts, with its outputs; empty where there are none."""
        if self._data is not None:
            return self._given_cases(self._data)
        found: list[Case] = []

        def run(sizes: Mapping[str, int]) -> None:
            found.append(self._case(dict(sizes), 0))

        try:
            sizes = self._find_sizes(run)
        except NoFeed as error:
            self._reason = str(error)
            return ()
        if sizes is None or not found:
            return ()
        for case in list(found):
            for seed in range(1, self._seeds):
                try:
                    found.append(self._case(case.sizes, seed))
                except EngineError as error:
                    self.notes.append(f"the original does not run with seed {seed}: {error}")
        return (*found, *self._further_steps(found[0]))

    def _given_cases(self, folder: Path) -> tuple[Case, ...]:
        """The user's own inputs.

        Raises:
            UsageError: the original does not take them.
        """
        if self.engine is None:
            return ()
        infos = [self.model.graph.info(value) for value in self.model.graph.inputs]
        found = []
        for label, feeds in read_data_sets(folder, [info.name for info in infos]):
            for info in infos:
                check_feed(label, info, feeds)
            try:
                found.append(self._run_case(Case({}, 0, dict(feeds), {}, 0.0, f"data set {label}")))
            except EngineError as error:
                raise UsageError(f"data set '{label}' does not suit the model: {error}") from error
        return tuple(found)

    def _further_steps(self, first: Case) -> list[Case]:
        """A stateful model goes on from its own states for a few steps."""
        pairs = state_pairs(self.model)
        steps: list[Case] = []
        for step in range(1, STEPS) if pairs else ():
            fresh = self._maker.make(first.seed + step, first.sizes)
            before = (steps or [first])[-1]
            feeds = next_feeds(pairs, fresh, before.expected)
            name = f"{first.label}, step {step + 1}"
            try:
                steps.append(self._run_case(Case(first.sizes, step, feeds, {}, 0.0, name)))
            except EngineError:
                break
        return steps

    def noise(self, index: int, *, brief: bool = False) -> Mapping[str, Noise]:
        """How much each output of case ``index`` changes when nothing that matters does.

        Args:
            brief: only what moving the inputs does; onnxruntime's optimizations are left out.
        """
        known = self._moved if brief else self._noise
        if index not in known:
            case = self.cases[index]
            known[index] = self._when_moved(case) if brief else self._when_optimized(case, index)
        return known[index]

    # ---------------------------------------------------------------- cases

    def _find_sizes(self, run: Any) -> FoundSizes | None:
        if self.engine is None:
            return None
        try:
            sizes = find_sizes(self.model, run, self._size_count, ranges=self._ranges)
        except EngineError as error:  # it cannot take such inputs at all
            if isinstance(self.engine, NumPy):
                self._reason = str(error)
                return None
            self._reason = str(error)
            try:
                self.engine = NumPy(self.model, limit=NUMPY_LIMIT)
            except EngineError:
                self.engine = None
                return None
            return self._find_sizes(run)
        if not sizes.accepted:
            self._reason = (
                f"the original rejects all {sizes.tried} sizes tried; the last time: {sizes.reason}"
            )
        return sizes

    def _case(self, sizes: Sizes, seed: int, fill: Fill = "normal") -> Case:
        return self._run_case(Case(sizes, seed, self._maker.make(seed, sizes, fill), {}, 0.0))

    def _run_case(self, case: Case) -> Case:
        """Lets the original run on the inputs of a case."""
        assert self.engine is not None
        start = time.perf_counter()
        case.expected = self.engine.run(case.feeds)
        case.seconds = time.perf_counter() - start
        return case

    # ---------------------------------------------------------------- noise

    def _when_moved(self, case: Case) -> dict[str, Noise]:
        """The inputs moved by one unit in the last place, twice."""
        assert self.engine is not None
        found = dict.fromkeys((name for name in case.expected if name not in self.random), Noise())
        for seed in (0, 1):
            found = _heard(found, case, self.engine, _nudged(case.feeds, seed))
        return found

    def _when_optimized(self, case: Case, index: int) -> dict[str, Noise]:
        """The same, and onnxruntime's optimizations on against off."""
        moved = dict(self.noise(index, brief=True))
        return moved if self._optimized is None else _heard(moved, case, self._optimized, case.feeds)

    @cached_property
    def _optimized(self) -> OnnxRuntime | None:
        if not isinstance(self.engine, OnnxRuntime):
            return None
        try:
            return OnnxRuntime(self._source, optimize=True, model=self.model)
        except EngineError:
            return None

    def redraw(self, index: int) -> bool:
        """Draws the inputs of a case uniformly from [0, 1) instead, where that makes it less chaotic."""
        old = self.cases[index]
        if old.name:  # the user's own, or a step that follows from others
            return False
        before = _loudest(self.noise(index))
        try:
            calmer = self._case(old.sizes, old.seed, "uniform")
        except EngineError:
            return False
        noise = self._when_moved(calmer)
        if _loudest(noise) >= before:
            return False
        how = "unstable" if before[0] else f"{before[1]:.1g}"
        self.notes.append(f"chaotic on normal values ({how}): inputs in [0, 1) taken for {old.label}")
        self.cases = (*self.cases[:index], calmer, *self.cases[index + 1 :])
        self._noise.pop(index, None)
        self._moved[index] = noise
        return True


def _heard(
    noise: Mapping[str, Noise], case: Case, engine: Engine, feeds: Mapping[str, Any]
) -> dict[str, Noise]:
    """The noise, with what these feeds change against the case; as it is where they do not run."""
    try:
        outputs = engine.run(feeds)
    except EngineError:
        return dict(noise)
    return {
        name: _louder(known, compare_values(case.expected[name], outputs[name]))
        for name, known in noise.items()
    }


def _loudest(noise: Mapping[str, Noise]) -> tuple[bool, float]:
    """The noise of the worst output, to be compared."""
    found = noise.values()
    return any(n.unstable for n in found), max((n.floor for n in found), default=0.0)


def _louder(noise: Noise, found: OutputError) -> Noise:
    if found.differing == 0.0 and found.fault:  # kind or shape: nothing was compared
        return Noise(noise.floor, noise.differing, True)
    unstable = noise.unstable or found.max_abs == float("inf")
    relative = noise.floor if unstable else max(noise.floor, found.relative)
    return Noise(relative, max(noise.differing, found.differing), unstable)


def _nudged(feeds: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """The feeds with every float one unit in the last place up or down."""
    moved = dict(feeds)
    for name, value in feeds.items():
        if isinstance(value, np.ndarray) and value.dtype in (np.float16, np.float32, np.float64):
            up = generator(f"nudge {name}", seed).integers(0, 2, value.shape).astype(bool)
            infinity = value.dtype.type(np.inf)
            moved[name] = np.where(up, np.nextafter(value, infinity), np.nextafter(value, -infinity))
    return moved
