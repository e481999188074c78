"""The two engines that run a model: onnxruntime, and the NumPy executor. Both give values by name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias

import numpy as np

from optimizer.ir import Model, OptimizerError
from optimizer.runtime import NONE, LimitReached, Session
from optimizer.runtime.precision import NARROW_FLOATS, NARROW_INTEGERS
from optimizer.verify.demands import Demands, Refused
from optimizer.verify.effort import Meter
from optimizer.verify.patience import TooLong, run_within
from optimizer.verify.rehearsal import Fatal, Rehearsal
from optimizer.verify.upstream import Watch

Source: TypeAlias = "str | os.PathLike[str] | bytes"

NOT_FED = (NARROW_FLOATS - {np.dtype(np.float16)}) | NARROW_INTEGERS
"""Types that arrays given to onnxruntime cannot have."""

SECONDS = 120.0
"""What onnxruntime may take for one run."""
SECONDS_LOOPING = 10.0
"""The same for a model with a Loop, which may have no end."""


class EngineError(OptimizerError):
    """An engine cannot load or run a model. That is no verdict on the model.

    Attributes:
        engine: its name.
        stage: ``load``, ``feed`` or ``run``; ``survive`` where a run would end the process, ``finish`` where
            it takes too long.
    """

    def __init__(self, engine: str, stage: str, reason: object) -> None:
        lines = [line.strip() for line in str(reason).splitlines() if line.strip()]
        super().__init__(f"{engine} cannot {stage} it: {lines[0] if lines else 'no reason given'}")
        self.engine = engine
        self.stage = stage


class Engine(Protocol):
    """Something that runs one model."""

    name: str

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """The model's outputs by name; raises ``EngineError``."""
        ...


class OnnxRuntime:
    """onnxruntime on the CPU: one thread, silent, graph optimizations off unless asked for.

    Args:
        source: a path (external data is found beside it) or a serialized model.
        optimize: switch all graph optimizations on.
        prepack: bring constant weights into a layout of their own, as by default. Kernels for such weights
            may add up in another order than those for weights that are computed; without it, all are alike.
        model: the same, loaded: then what would end the process, or take all its memory, is found out first
            (see ``Rehearsal`` and ``Demands``).
        timed: somebody takes the time of its runs: each goes to its end in the thread that asks.

    Raises:
        EngineError: it cannot load the model.
    """

    name = "onnxruntime"

    def __init__(
        self,
        source: Source,
        *,
        optimize: bool = False,
        prepack: bool = True,
        model: Model | None = None,
        timed: bool = False,
    ) -> None:
        import onnxruntime

        self._seconds = None if timed else _patience(model)
        self._demands = None if model is None else Demands(model)
        self._rehearsal = None if model is None else Rehearsal(model)
        if optimize and self._rehearsal is not None and self._rehearsal.needed:
            raise EngineError(
                self.name, "load", "it may divide the smallest integer by -1 while it optimizes"
            )

        level = onnxruntime.GraphOptimizationLevel
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = level.ORT_ENABLE_ALL if optimize else level.ORT_DISABLE_ALL
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        if not prepack:
            options.add_session_config_entry("session.disable_prepacking", "1")
        given = source if isinstance(source, bytes) else os.fspath(source)
        try:
            self._session = onnxruntime.InferenceSession(given, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # its exceptions share no base class but this
            raise EngineError(self.name, "load", error) from error
        self._outputs = [output.name for output in self._session.get_outputs()]

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Computes all outputs.

        Raises:
            EngineError: it cannot take the inputs, or the run fails.
        """
        for name, value in feeds.items():
            if isinstance(value, np.ndarray) and value.dtype in NOT_FED:
                raise EngineError(self.name, "feed", f"input '{name}' of {value.dtype.name}")
        self._rehearse(feeds)
        given = {name: _plain(value) for name, value in feeds.items()}
        try:
            found = run_within(self._session, self._outputs, given, self._seconds)
        except TooLong as error:
            raise EngineError(self.name, "finish", error) from error
        except Exception as error:
            raise EngineError(self.name, "run", error) from error
        return dict(zip(self._outputs, found, strict=True))

    def _rehearse(self, feeds: Mapping[str, Any]) -> None:
        try:
            if self._demands is not None:
                self._demands.check(feeds)
            if self._rehearsal is not None:
                self._rehearsal.run(feeds)
        except Fatal as error:
            raise EngineError(self.name, "survive", error) from error
        except Refused as error:
            raise EngineError(self.name, "run", error) from error
        except OptimizerError as error:
            doubt = f"it may divide the smallest integer by -1, and cannot be tried first: {error}"
            raise EngineError(self.name, "run", doubt) from error


class NumPy:
    """The NumPy executor.

    Args:
        model: what to run.
        limit: give up on a run that takes more work, in multiplications.
        truth: compute every float tensor in float64.
        watch: looks at what each node gives.

    Raises:
        EngineError: it has no kernel for one of the operators.
    """

    name = "numpy"

    def __init__(
        self, model: Model, *, limit: int | None = None, truth: bool = False, watch: Watch | None = None
    ) -> None:
        self._meter = Meter(limit)
        try:
            self._session = Session(model, before_node=self._meter, truth=truth, after_node=watch)
        except OptimizerError as error:
            raise EngineError(self.name, "load", error) from error

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Computes all outputs.

        Raises:
            EngineError: a kernel fails, or the limit is reached.
        """
        self._meter.work = 0
        try:
            found = self._session.run(feeds)
        except LimitReached as limit:
            raise EngineError(self.name, "finish", limit) from limit
        except OptimizerError as error:
            raise EngineError(self.name, "run", error) from error
        except (MemoryError, RecursionError) as error:
            raise EngineError(self.name, "run", type(error).__name__) from error
        return {name: None if value is NONE else value for name, value in found.items()}

    @property
    def work(self) -> int:
        """Multiplications of the last run, about."""
        return self._meter.work


def _patience(model: Model | None) -> float:
    loops = model is not None and any("Loop" in scope.op_types for _, scope in model.graph.scopes())
    return SECONDS_LOOPING if loops else SECONDS


def _plain(value: Any) -> Any:
    """Scalars as arrays; the bindings of onnxruntime take nothing else."""
    if isinstance(value, (np.generic, float, int, str, bool)):
        return np.asarray(value)
    return value
