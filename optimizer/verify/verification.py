"""What a whole check reports."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from optimizer.verify.metrics import OutputError

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
    def worst(self) -> OutputError:
        """The worst figures of all outputs."""
        found = OutputError()
        for output in self.outputs:
            found = found.worst_of(output.error)
        return found

    def __bool__(self) -> bool:
        return self.verdict == "equal"

    def __str__(self) -> str:
        worst = self.worst
        if self.verdict == "not compared":
            return "\n".join([f"not compared: {self.reason}", *(f"note: {note}" for note in self.notes)])
        figures = f"max-abs-error {worst.max_abs:.3g}"
        if worst.max_rel is not None and worst.cosine is not None:
            figures += f", max-rel {worst.max_rel:.3g}, cosine {worst.cosine:.9g}"
        extent = f"{self.verified}, {self.reason}" if self.reason else self.verified
        lines = [f"{self.verdict}: {figures} (verified: {extent})"]
        return "\n".join([*lines, *self.faults, *(f"note: {note}" for note in self.notes)])

    @property
    def max_abs_error(self) -> float | None:
        """Largest absolute difference of any output; ``None`` where nothing was compared."""
        return self.worst.max_abs if self.outputs else None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a report; keys are stable."""
        worst = self.worst
        figures = {
            "max_abs_error": self.max_abs_error,
            "max_rel_error": worst.max_rel,
            "cosine": worst.cosine,
            "top5": worst.top5,
        }
        return {**asdict(self), **figures, "ok": self.ok, "verdict": self.verdict}
