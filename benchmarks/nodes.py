"""``python -m benchmarks.nodes``: nodes of our results against the fewest of any other optimizer.

Bodies count, functions as if they were inlined, Constant nodes do not. A result of another optimizer
counts where onnxruntime runs it and it computes the same as the original.
"""

from __future__ import annotations

import argparse
import json
import math
import shlex
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
from onnx import inliner

from benchmarks import models, peer_tools, process, rows

NO_LIMIT = "light_"
"""Nets whose constants are made by operators: they count without the limit on the result's size."""
MADE_UP = "syn_"


@dataclass(frozen=True)
class Count:
    """One model: nodes of the original, of our result (``None``: it failed), of each other's valid one."""

    model: str
    before: int
    ours: int | None
    others: dict[str, int]

    @property
    def best(self) -> int:
        """The fewest nodes that anybody else reaches."""
        return min(self.others.values(), default=self.before)


def main() -> None:
    options = _options()
    known: dict[str, dict[str, int]] = json.loads(options.known.read_text()) if options.known else {}
    counts = []
    with tempfile.TemporaryDirectory(prefix="oinfer-nodes-") as folder:
        plan = rows.Plan(
            process.command_of(options.command), Path(folder), 0, options.timeout, options.peers or ""
        )
        for model in models.candidates(options.models, plan.scratch, options.only):
            if options.peers and model.name not in known:
                known[model.name] = count_others(plan, model)
            count = count_ours(plan, model, shlex.split(options.options), known.get(model.name, {}))
            counts.append(count)
            print(line_of(count), flush=True)
            if options.json:
                options.json.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    print(summary(counts))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.nodes", description=__doc__)
    add = parser.add_argument
    add("--models", type=Path, metavar="DIR", help="measure DIR/*.onnx (default: installed and made ones)")
    add("--only", default="", metavar="PATTERN", help="models with such a name")
    add("--command", default="oinfer-opt", help="the optimizer, called with IN OUT")
    add("--options", default="", metavar="TEXT", help="further options for it, in one text")
    add("--peers", metavar="PYTHON", help="a Python that has other optimizers installed: measure them too")
    add("--known", type=Path, metavar="FILE", help="what --json wrote: others' counts not measured again")
    add("--json", type=Path, metavar="FILE", help="write the others' counts")
    add("--timeout", type=float, default=600, metavar="S", help="seconds for one process (default: 600)")
    return parser.parse_args()


# ------------------------------------------------------------------ one model


def count_ours(
    plan: rows.Plan, model: models.Candidate, options: Sequence[str], others: dict[str, int]
) -> Count:
    target = plan.scratch / "ours.onnx"
    target.unlink(missing_ok=True)
    limit = ["--size-limit", "none"] if NO_LIMIT in model.name else []
    run = process.run([*plan.command, str(model.path), str(target), *limit, *options], timeout=plan.timeout)
    if run.failure:
        print(f"{model.name}: {run.failure}", file=sys.stderr)
    return Count(model.name, count(model.path), count(target) if target.exists() else None, others)


def count_others(plan: rows.Plan, model: models.Candidate) -> dict[str, int]:
    """The nodes of every other optimizer's result, where it is valid."""
    found = {}
    for peer in peer_tools.TOOLS:
        target = plan.scratch / "peer.onnx"
        target.unlink(missing_ok=True)
        command = [plan.peers_python, peer_tools.__file__, peer, str(model.path), str(target)]
        run = process.run(command, timeout=plan.timeout)
        if run.failure or not target.exists():
            continue
        compared: dict[str, Any] = rows.compare_with(plan, model, target)
        right = not compared.get("failure") and compared.get("max_rel", 0.0) <= rows.WRONG_FROM
        if right and set(_domains(target)) <= set(_domains(model.path)) | {""}:
            found[peer] = count(target)
    return found


def count(path: Path) -> int:
    """Nodes as the module says."""
    model = onnx.load(path, load_external_data=False)
    return models.node_count(inliner.inline_local_functions(model) if model.functions else model)


def _domains(path: Path) -> list[str]:
    model = onnx.load(path, load_external_data=False)
    return ["" if node.domain == "ai.onnx" else node.domain for node in model.graph.node]


# ------------------------------------------------------------------ what is printed


def line_of(count: Count) -> str:
    if count.ours is None:
        return f"{count.model:<52} {count.before:>6} -> FAILS"
    mark = "" if count.ours <= count.best else "  MORE"
    ratio = count.ours / count.best
    return f"{count.model:<52} {count.before:>6} -> {count.ours:>5}  best {count.best:>5}  {ratio:.3f}{mark}"


def summary(counts: Sequence[Count]) -> str:
    """Over the models that are not made up: how many have fewer nodes, and the geometric mean."""
    real = [c for c in counts if c.ours is not None and c.others and not c.model.startswith(MADE_UP)]
    if not real:
        return "nothing to compare with"
    ratios = [c.ours / c.best for c in real if c.ours is not None]
    fewer, more = sum(r < 1 for r in ratios), sum(r > 1 for r in ratios)
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    failed = sum(c.ours is None for c in counts)
    return (
        f"{len(real)} models: fewer {fewer} ({fewer / len(real):.0%}), more {more}, failed {failed}; "
        f"geometric mean of ours / best {mean:.3f}"
    )


if __name__ == "__main__":
    main()
