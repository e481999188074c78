"""``python -m benchmarks.verification --models DIR``: what checking a result costs, against its bar.

The bar: twice the optimizing time (a run without verification: load, optimize, save), plus 12 inferences
of the original in onnxruntime (optimizations off, one thread; the median of the inputs that the check
itself uses), plus the creation of the two sessions. All on one thread and in processor time, so that a busy
machine does not count: the local check is what a run with it takes more than one without, the whole check
what a full run takes more than that.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.process import restart_on_one_thread

if TYPE_CHECKING:
    from optimizer.report import Report
    from optimizer.verify import OnnxRuntime

NETS = "tv_resnet50_ts tv_mobilenet_v3_large_ts hf_bert12_ts_dyn pkg_rapidocr_ch_PP_OCRv4_det_infer"
INFERENCES = 12
SHARE = 2


@dataclass(frozen=True)
class Cost:
    """Seconds of one net, the best of several rounds each."""

    name: str
    optimize: float
    local: float
    whole: float
    inference: float
    sessions: float
    skipped: int
    notes: tuple[str, ...]

    @property
    def verification(self) -> float:
        """What the default verification adds to a run."""
        return self.local + self.whole

    @property
    def bar(self) -> float:
        """What it may add."""
        return SHARE * self.optimize + INFERENCES * self.inference + self.sessions


def main() -> None:
    restart_on_one_thread("benchmarks.verification")
    options = _options()
    wanted = options.only.split(",") if options.only else NETS.split()
    costs = []
    for name in wanted:
        path = options.models / f"{name}.onnx"
        if not path.is_file():
            print(f"{path} is missing: left out", file=sys.stderr)
            continue
        costs.append(measure(path, options.rounds))
    for line in table(costs):
        print(line)
    if any(cost.verification > cost.bar for cost in costs):
        raise SystemExit(1)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.verification", description=__doc__)
    parser.add_argument("--models", type=Path, required=True, metavar="DIR", help="where the nets are")
    parser.add_argument("--only", default="", metavar="A,B,...", help="these nets instead of the four")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="rounds, the best counts [3]")
    return parser.parse_args()


def measure(path: Path, rounds: int) -> Cost:
    """Runs with and without verification in turn; the least of each is taken."""
    from optimizer.api import optimize
    from optimizer.verify import OnnxRuntime, Reference

    optimizing, local, whole = [], [], []
    optimize(path, verify="off")  # what is imported and cached once is no part of either
    with tempfile.TemporaryDirectory(prefix="oinfer-bench-") as folder:
        result = Path(folder) / "result.onnx"

        def run(mode: str) -> tuple[float, Report]:
            start = time.process_time()
            report = optimize(path, output=result, verify=mode).report
            return time.process_time() - start, report

        for _ in range(rounds):
            optimizing.append(run("off")[0])
            local.append(run("local")[0])
            seconds, report = run("full")
            whole.append(seconds)
        start = time.process_time()
        for source in (path, result):
            OnnxRuntime(source)
        sessions = time.process_time() - start
    return Cost(
        path.stem,
        min(optimizing),
        max(0.0, min(local) - min(optimizing)),
        max(0.0, min(whole) - min(local)),
        inference_seconds(OnnxRuntime(path), [case.feeds for case in Reference(os.fspath(path)).cases]),
        sessions,
        report.local["briefly"] + sum(report.local["skipped"].values()),
        tuple(report.verification["notes"]),
    )


def inference_seconds(engine: OnnxRuntime, feeds: list[Mapping[str, Any]]) -> float:
    """The median over the inputs of one run each, after one to warm up."""
    seconds = []
    for given in feeds:
        engine.run(given)
        start = time.process_time()
        engine.run(given)
        seconds.append(time.process_time() - start)
    return statistics.median(seconds)


def table(costs: list[Cost]) -> list[str]:
    """A Markdown table, seconds."""
    titles = "optimizing, local, whole, inference, sessions, verification, bar, of the bar, not checked"
    lines = [f"| net | {titles.replace(', ', ' | ')} |", "|---|" + "---:|" * 9]
    for cost in costs:
        figures = (cost.optimize, cost.local, cost.whole, cost.inference, cost.sessions)
        cells = [f"{figure:.3f}" for figure in (*figures, cost.verification, cost.bar)]
        share = f"{100 * cost.verification / cost.bar:.0f} %"
        lines.append(f"| {' | '.join([cost.name, *cells, share, str(cost.skipped)])} |")
    lines += [f"{cost.name}: {note}" for cost in costs for note in cost.notes]
    return lines


if __name__ == "__main__":
    main()
