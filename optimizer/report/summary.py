"""What a run did, as data: before and after, per rule, per pass, errors, time."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from optimizer.ir import Model

if TYPE_CHECKING:
    from optimizer.rewrite import Context


@dataclass(frozen=True, slots=True)
class ModelStats:
    """Size of one model.

    Attributes:
        nodes: operator nodes over all scopes; constants are not nodes.
        histogram: operator nodes per op.
        constant_bytes: bytes of all constants.
        file_bytes: bytes of the model and its external data on disk, where it was a file.
    """

    nodes: int
    histogram: Mapping[str, int]
    constant_bytes: int
    file_bytes: int | None = None


def measure(model: Model, file_bytes: int | None = None) -> ModelStats:
    """Counts nodes and bytes of a model; no constant is loaded."""
    histogram = model.histogram()
    constants = 0
    for _, graph in model.graphs():
        tensors = (graph.tensor(value) for value in graph.constants)
        constants += sum(tensor.nbytes for tensor in tensors if tensor is not None)
    return ModelStats(sum(histogram.values()), dict(histogram), constants, file_bytes)


@dataclass(frozen=True, slots=True)
class RejectedRewrite:
    """A rewrite that a check found wrong; it is not in the result."""

    rule: str
    scope: str
    anchor: str
    fault: str


@dataclass(slots=True)
class Report:
    """Everything a run can say about itself; ``to_dict`` gives plain JSON data.

    Attributes:
        fired: applications per rule.
        refused: how often each (rule, reason) held a rewrite back.
        rejected: rewrites found wrong and left out.
        passes: wall seconds per pass, where they were timed.
        seconds: wall seconds per phase (load, optimize, save, verify).
        verified: full | numpy-only | onnxruntime-only | local | none.
        local: how many rewrites were checked where they happened, how many of them briefly, and what was
            not, by reason.
        verification: what the check found, per output and engine; ``across_engines`` is the largest
            difference of the result in the NumPy executor from the original in onnxruntime.
        bit_exact: whether only rewrites that keep every bit were applied.
    """

    before: ModelStats
    after: ModelStats
    fired: dict[str, int] = field(default_factory=dict)
    refused: list[tuple[str, str, int]] = field(default_factory=list)
    rejected: list[RejectedRewrite] = field(default_factory=list)
    passes: dict[str, float] = field(default_factory=dict)
    rules: dict[str, tuple[int, int, float]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    rounds: int = 0
    verified: str = "none"
    reason: str = ""
    local: dict[str, Any] = field(default_factory=dict)
    verification: dict[str, Any] = field(default_factory=dict)
    bit_exact: bool = False
    warnings: list[str] = field(default_factory=list)
    origins: dict[str, str] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)

    @property
    def max_abs_error(self) -> float | None:
        """Largest absolute difference of any output, both models in one engine, where they were compared."""
        found = self.verification.get("max_abs_error")
        return None if found is None else float(found)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; keys are stable."""
        return asdict(self) | {"max_abs_error": self.max_abs_error}

    def to_json(self) -> str:
        """The report as a JSON text."""
        return json.dumps(self.to_dict(), indent=2, sort_keys=True, default=str) + "\n"


def collect(report: Report, ctx: Context, asked_for: Collection[str] = ()) -> None:
    """Fills in what the run's context knows: applications, refusals, rejections, warnings.

    Args:
        asked_for: rules and passes that the caller gave, and wants to hear of when they did nothing.
    """
    entries = ctx.journal.entries
    for entry in entries:
        report.fired[entry.rule] = report.fired.get(entry.rule, 0) + 1
    report.bit_exact = all(entry.tag == 0 for entry in entries)
    refusals = [(rule, why, n) for rule, s in ctx.stats.items() for why, n in s.refused.items()]
    report.refused = sorted(refusals, key=lambda r: (-r[2], r[0], r[1]))
    report.rules = {name: (s.tried, s.fired, s.seconds) for name, s in sorted(ctx.stats.items())}
    report.rejected = [
        RejectedRewrite(r.application.rule, "/".join(r.application.scope), r.application.anchor, r.fault)
        for r in ctx.rejected
    ]
    report.warnings = [*ctx.model.warnings, *ctx.warnings, *_without_effect(report, ctx, asked_for)]
    for _, graph in ctx.model.graphs():
        for node in graph.nodes:
            made = next((info.name for info in node.outputs if info.name), "")
            if node.origin.rule and made:
                report.origins[made] = node.origin.rule


def _without_effect(report: Report, ctx: Context, asked_for: Collection[str]) -> list[str]:
    """A line for each ``keep`` pattern, ``keep_functions`` domain and rule of the caller without effect."""
    lines = []
    if ctx.settings.keep:
        nodes = [node for _, graph in ctx.scopes() for node in graph.nodes]
        names = {name for node in nodes for name in (node.name, *(info.name for info in node.outputs))}
        for pattern in ctx.settings.keep:
            if not fnmatch.filter(names, pattern):
                lines.append(f"option 'keep' '{pattern}' matches no node and no tensor that a node makes")
    domains = {domain for domain, _, _ in ctx.model.functions}
    lines += [
        f"option 'keep_functions' '{domain}': the model calls no function of this domain"
        for domain in ctx.settings.keep_functions
        if domain != "*" and domain not in domains
    ]
    done = report.fired.keys() | {rejected.rule for rejected in report.rejected}
    for name in asked_for:
        if name not in done and name not in ctx.banned:
            refused = ctx.stats[name].refused.most_common(1) if name in ctx.stats else []
            reason = refused[0][0] if refused else "nothing in the model matches"
            lines.append(f"'{name}' was applied nowhere: {reason}")
    return lines
