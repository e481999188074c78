"""``python -m benchmarks.verification --models DIR``: what checking a result costs, against its bar.

The bar: twice the optimizing time (a run without verification: load, optimize, save), plus 12 inferences
of the original in onnxruntime (optimizations off, one thread; the median of the inputs that the check
itself uses), plus the creation of the two sessions.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

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

    optimizing, local, whole, notes, skipped = [], [], [], (), 0
    optimize(path, verify="off")  # what is imported and cached once is no part of either
    with tempfile.TemporaryDirectory(prefix="oinfer-bench-") as folder:
        result = Path(folder) / "result.onnx"
        for _ in range(rounds):
            optimizing.append(sum(optimize(path, output=result, verify="off").report.seconds.values()))
            report = optimize(path, output=result).report
            local.append(report.local["seconds"])
            whole.append(report.seconds["verify"])
            notes, skipped = report.verification["notes"], sum(report.local["skipped"].values())
        start = time.perf_counter()
        for source in (path, result):
            OnnxRuntime(source)
        sessions = time.perf_counter() - start
    cases = Reference(os.fspath(path)).cases
    inference = statistics.median(case.seconds for case in cases)
    return Cost(
        path.stem, min(optimizing), min(local), min(whole), inference, sessions, skipped, tuple(notes)
    )


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
