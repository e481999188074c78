"""What a whole check reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from optimizer.verify.engines import OnnxRuntime
from optimizer.verify.metrics import OutputError, uncompared

Verified = Literal["full", "numpy-only", "onnxruntime-only", "local", "none"]


@dataclass(frozen=True, slots=True)
class OutputReport:
    """The worst figures of one output over all cases in one engine."""

    name: str
    engine: str
    error: OutputError


@dataclass(frozen=True, slots=True)
class Focus:
    """Where a fault showed: the case and the engine that are enough to see it again.

    Attributes:
        relied: the tensor about which a fact does not hold that a rewrite relied on.
    """

    case: int
    engine: str
    relied: str = ""


@dataclass(frozen=True, slots=True)
class Verification:
    """What a check found.

    Attributes:
        verified: what could be checked.
        reason: why it was not more.
        faults: what is wrong, one line each; empty where the result passes.
        outputs: figures per output and engine.
        cases: the inputs, ``seed 0, N=2``.
        notes: what else a reader should know.
        focus: where the first fault showed, if in a run.
    """

    verified: Verified
    reason: str = ""
    faults: tuple[str, ...] = ()
    outputs: tuple[OutputReport, ...] = ()
    cases: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    focus: Focus | None = None

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong (which says little where nothing could be checked)."""
        return not self.faults

    @property
    def verdict(self) -> Literal["equal", "different", "not compared"]:
        """Whether the outputs are the same; nobody can tell where neither engine ran both models."""
        if self.faults:
            return "different"
        return "not compared" if self.verified in ("local", "none") else "equal"

    @property
    def measured(self) -> tuple[OutputReport, ...]:
        """The outputs in the engine that ran both models: in it nothing but the models differs."""
        in_runtime = tuple(o for o in self.outputs if o.engine == OnnxRuntime.name)
        return in_runtime or self.outputs

    @property
    def worst(self) -> OutputError:
        """The worst figures of all outputs, both models in the same engine."""
        return _worst(self.measured)

    @property
    def across_engines(self) -> float | None:
        """Largest absolute difference of the result in the NumPy executor from the original in onnxruntime.

        ``None`` where only one of them ran. It holds what the engines differ in, too.
        """
        if self.measured == self.outputs:
            return None
        return _worst(tuple(o for o in self.outputs if o not in self.measured)).max_abs

    def __bool__(self) -> bool:
        return self.verdict == "equal"

    def __str__(self) -> str:
        if self.verdict == "not compared":
            return "\n".join([f"not compared: {self.reason}", *(f"note: {note}" for note in self.notes)])
        extent = f"{self.verified}, {self.reason}" if self.reason else self.verified
        lines = [f"{self.verdict}: {self._figures()}(verified: {extent})"]
        return "\n".join([*lines, *self.faults, *(f"note: {note}" for note in self.notes)])

    def _figures(self) -> str:
        worst = self.worst
        if not worst.compared:
            return "no elements were compared "
        figures = f"max-abs-error {worst.max_abs:.3g}"
        if worst.max_rel is not None and worst.cosine is not None:
            figures += f", max-rel {worst.max_rel:.3g}, cosine {worst.cosine:.9g}"
        if self.across_engines is not None and self.across_engines > worst.max_abs:
            figures += f", across engines {self.across_engines:.3g}"
        return f"{figures} "

    @property
    def max_abs_error(self) -> float | None:
        """Largest absolute difference of any output in one engine; ``None`` where nothing was compared."""
        return self.worst.max_abs if self.worst.compared else None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a report; keys are stable."""
        worst = self.worst
        figures = {
            "max_abs_error": self.max_abs_error,
            "max_rel_error": worst.max_rel,
            "cosine": worst.cosine,
            "top5": worst.top5,
            "across_engines": self.across_engines,
        }
        return {**asdict(self), **figures, "ok": self.ok, "verdict": self.verdict}


def _worst(outputs: Sequence[OutputReport]) -> OutputError:
    found = uncompared()
    for output in outputs:
        found = found.worst_of(output.error)
    return found
