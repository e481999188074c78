"""Graphs that a rule is known to match, changed a little: what a pattern alone would seldom grow into."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from optimizer.analysis import Facts
from optimizer.io.schemas import admits
from optimizer.ir import DType, Model, OptimizerError, TensorType, ValueInfo
from optimizer.rewrite import Settings
from optimizer.verify.adversary.edits import Edits
from optimizer.verify.adversary.grow import Barren, Growth
from optimizer.verify.adversary.site import SIZES
from optimizer.verify.engines import EngineError, NumPy
from optimizer.verify.feeds import make_feeds, symbols_of


@dataclass(frozen=True, slots=True)
class Seed:
    """A graph to start from.

    Attributes:
        sizes: of its open dims, by name; each is tried.
        feeds: inputs that must not be random.
        settings: under which it matches; tried as often as others.
    """

    model: Model
    sizes: Sequence[Mapping[str, int]] = ()
    feeds: Mapping[str, Any] = field(default_factory=dict)
    settings: Settings | None = None


class Mutant:
    """Changes one seed in up to three places.

    Args:
        rng: decides everything.
    """

    def __init__(self, seed: Seed, rng: np.random.Generator) -> None:
        self._seed = seed
        self._rng = rng
        self._model = seed.model.copy()
        self._graph = self._model.graph
        self._edits = Edits(self._model, rng)

    def grow(self) -> Growth:
        """One model.

        Raises:
            Barren: what came of it does not run.
        """
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore", RuntimeWarning)
            try:
                for _ in range(int(self._rng.choice((0, 1, 1, 2, 2, 3)))):
                    self._edits.make_one()
                self._check()
                feeds = self._feeds()
                self._declare({})
                found = NumPy(self._model).run(feeds)
            except (EngineError, OptimizerError, ValueError, IndexError, KeyError, TypeError) as error:
                raise Barren(str(error)) from error
        self._declare(found)
        return Growth(self._model, feeds, self._seed.settings if self._rng.random() < 0.5 else None)

    def _check(self) -> None:
        """Makes sure that the standard allows all nodes: the executor takes more than that."""
        facts = Facts(self._graph, self._model.functions)
        for node in self._graph.nodes:
            held = [None if v is None else facts.of(v) for v in node.inputs]
            dtypes = [None if fact is None else fact.dtype for fact in held]
            unknown = any(f is not None and (f.dtype is None or f.type is not None) for f in held)
            names = tuple(None if dtype is None else dtype.name.lower() for dtype in dtypes)
            version = self._graph.opset()
            if (
                not node.domain
                and not unknown
                and not admits(node.op_type, "", version, names, frozenset(node.attributes))
            ):
                raise Barren(f"no such {node.op_type} at opset {version}")

    def _feeds(self) -> dict[str, Any]:
        sizes = {key: int(self._rng.choice(SIZES)) for key in symbols_of(self._model)}
        if self._seed.sizes and self._rng.random() < 0.7:
            sizes.update(self._seed.sizes[int(self._rng.integers(len(self._seed.sizes)))])
        feeds = make_feeds(self._model, int(self._rng.integers(1, 1 << 30)), sizes)
        for name, array in {**self._seed.feeds, **self._edits.given}.items():
            made = feeds.get(name)
            if isinstance(made, np.ndarray) and isinstance(array, np.ndarray) and made.shape == array.shape:
                feeds[name] = array.astype(made.dtype)
        return feeds

    def _declare(self, found: Mapping[str, Any]) -> None:
        """Outputs of the type and rank they have in a run; of none, before there is one."""
        graph = self._graph
        old = graph.sink.outputs
        names = [*(info.name for info in old), *(f"shown{i}" for i in range(len(self._edits.shown)))]
        infos = []
        for name, info in zip(names, [*old, *[ValueInfo("")] * len(self._edits.shown)], strict=True):
            value = found.get(name)
            if isinstance(value, np.ndarray):
                dtype = DType.STRING if value.dtype.kind in "OU" else DType.from_numpy(value.dtype)
                info = replace(info, type=TensorType(dtype, (None,) * value.ndim))
            elif isinstance(info.type, TensorType):
                info = replace(info, type=None)
            infos.append(replace(info, name=name))
        graph.set_outputs([*graph.outputs, *self._edits.shown], infos)
        self._edits.shown = []
