"""``python -m benchmarks.planted_faults --models DIR``: are wrong rewrites caught, and right ones not?

Plants wrong rewrites of fourteen kinds at seeded places of real nets. Each is judged by the local check,
which must name it and undo it, and, left in, by the whole check of the written file alone. Then every
net is optimized with the local check under several seeds, and nothing may be undone.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks import faults
from benchmarks.process import restart_on_one_thread
from optimizer.io import load, save
from optimizer.ir.text import dump
from optimizer.rewrite import Context, Exactness, Settings
from optimizer.verify import Judge, LocalCheck, Reference

PER_KIND = 16
PER_NET = 3
ROUNDS = 3
"""Times that the nets are gone through, for the kinds that few of them have a place for."""
LEAST_CAUGHT = 0.98


@dataclass
class Score:
    """What became of the faults of one kind."""

    planted: int = 0
    caught: int = 0
    undone: int = 0
    seen_by_whole: int = 0
    asked_of_whole: int = 0
    missed: list[str] = field(default_factory=list)
    places: set[tuple[str, str]] = field(default_factory=set)


def main() -> None:
    restart_on_one_thread("benchmarks.planted_faults")
    options = _options()
    paths = sorted(options.models.glob("*.onnx"))
    if not paths:
        raise SystemExit(f"benchmarks: no *.onnx in {options.models}")
    bad = False
    if not options.only_alarms:
        scores = plant_everywhere(paths, options)
        print_scores(scores)
        planted = sum(score.planted for score in scores.values())
        caught = sum(score.caught for score in scores.values())
        bad = caught < LEAST_CAUGHT * planted or any(s.undone < s.caught for s in scores.values())
    if options.alarms:
        bad |= false_alarms(paths, options.alarms) > 0
    raise SystemExit(int(bad))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.planted_faults", description=__doc__)
    add = parser.add_argument
    add("--models", type=Path, required=True, metavar="DIR", help="nets to plant faults in")
    add("--seed", type=int, default=0, metavar="N", help="where faults are planted [0]")
    add("--per-kind", type=int, default=PER_KIND, metavar="N", help=f"faults of each kind [{PER_KIND}]")
    add("--largest", type=int, default=60, metavar="MB", help="leave out larger files when planting [60]")
    add("--whole", type=int, default=PER_KIND, metavar="N", help="of each kind, for the whole check as well")
    add("--alarms", type=int, default=100, metavar="N", help="runs in all that may not undo anything [100]")
    add("--only-alarms", action="store_true", help="plant nothing")
    return parser.parse_args()


# ------------------------------------------------------------------ planting


def plant_everywhere(paths: list[Path], options: argparse.Namespace) -> dict[str, Score]:
    """Goes through the nets in seeded order until there are enough faults of each kind."""
    rng = np.random.default_rng(options.seed)
    scores: defaultdict[str, Score] = defaultdict(Score)
    small = [path for path in paths if path.stat().st_size <= options.largest << 20]
    for _ in range(ROUNDS):
        for number in rng.permutation(len(small)):
            wanted = [kind for kind in faults.KINDS if scores[kind].planted < options.per_kind]
            if wanted:
                _plant_in(small[int(number)], wanted, scores, options, rng)
    return dict(scores)


def _plant_in(
    path: Path,
    kinds: list[str],
    scores: dict[str, Score],
    options: argparse.Namespace,
    rng: np.random.Generator,
) -> None:
    print(path.stem, file=sys.stderr, flush=True)
    options.net = path.stem
    model = load(path)
    if "merged random ops" in kinds:
        faults.with_noise(model.graph, rng, PER_NET)
    ctx = Context(model, Settings(growth=None))
    ctx.check = LocalCheck(seed=options.seed)
    with tempfile.TemporaryDirectory(prefix="oinfer-bench-") as folder:
        original = Path(folder) / "original.onnx"
        save(model, original)
        judge = Judge(Reference(os.fspath(original)))
        for kind in kinds:
            for _ in range(PER_NET):
                score = scores[kind]
                if score.planted < options.per_kind and not _plant_one(ctx, kind, score, judge, options, rng):
                    break


def _plant_one(
    ctx: Context,
    kind: str,
    score: Score,
    judge: Judge,
    options: argparse.Namespace,
    rng: np.random.Generator,
) -> bool:
    """Plants one fault of a kind, has it judged, and makes sure that it is gone again."""
    graph, name = ctx.model.graph, f"planted: {kind}"
    plant, tag, ops = faults.KINDS[kind]
    nodes = [n for n in graph.nodes if n.op_type in ops and not n.domain and graph.has_uses(n.value())]
    before, check = dump(ctx.model), ctx.check
    assert isinstance(check, LocalCheck)
    for key in rng.permutation(len(nodes)):
        node = nodes[int(key)]
        place = options.net, graph.label(node)
        if place in score.places or not ctx.allows(name, (), graph, node):
            continue
        with ctx.application(name, graph, node, Exactness[tag]) as entry:
            wrong = plant(faults.Place(ctx, graph, node, rng))
            if wrong is not None:
                graph.replace_uses(node.value(), wrong)
                entry.matched, entry.looked_around = (node.id,), False
        if wrong is None:
            if entry.changes:
                ctx.journal.retract(entry)
            continue
        score.planted += 1
        score.places.add(place)
        if score.asked_of_whole < options.whole:
            score.asked_of_whole += 1
            score.seen_by_whole += not _passes(ctx, judge)
        check.skipped.clear()
        check.spent = 0
        if ctx.accept(entry):
            reasons = ", ".join(check.skipped) or "passed"
            score.missed.append(f"{entry.anchor} ({node.op_type}): {reasons}")
            ctx.journal.retract(entry)
            ctx.excluded.add(entry.key)
        else:
            score.caught += ctx.rejected[-1].application is entry
            score.undone += dump(ctx.model) == before
        ctx.banned.clear()
        ctx.forget_facts()
        return True
    return False


def _passes(ctx: Context, judge: Judge) -> bool:
    with tempfile.TemporaryDirectory(prefix="oinfer-bench-") as folder:
        path = Path(folder) / "result.onnx"
        save(ctx.model, path)
        return judge.judge(os.fspath(path)).ok


def print_scores(scores: dict[str, Score]) -> None:
    """One row per kind, then what was missed."""
    print("| fault | planted | caught locally | named and undone | seen by the whole check alone |")
    print("|---|---:|---:|---:|---:|")
    total = Score()
    for kind, score in scores.items():
        _print_row(kind, score)
        for name in ("planted", "caught", "undone", "seen_by_whole", "asked_of_whole"):
            setattr(total, name, getattr(total, name) + getattr(score, name))
    _print_row("all", total)
    for kind, score in scores.items():
        for missed in score.missed:
            print(f"missed: {kind} at {missed}")


def _print_row(kind: str, score: Score) -> None:
    whole = f"{score.seen_by_whole} of {score.asked_of_whole}"
    print(f"| {kind} | {score.planted} | {score.caught} | {score.undone} | {whole} |")


# ------------------------------------------------------------------ false alarms


def false_alarms(paths: list[Path], runs: int) -> int:
    """Optimizes the nets in turn, each run with another seed; returns how much was undone."""
    alarms, skipped = 0, Counter[str]()
    for seed, path in _dealt(paths, runs):
        check = LocalCheck(seed=seed)
        for text in _undone(path, check):
            alarms += 1
            print(f"false alarm: {path.stem}, seed {seed}: {text}")
        skipped.update(check.skipped)
    print(f"{alarms} false alarms in {runs} runs over {len(paths)} nets")
    for reason, count in skipped.most_common():
        print(f"  {count} rewrites {reason}")
    return alarms


def _dealt(paths: list[Path], runs: int) -> Iterator[tuple[int, Path]]:
    for run in range(runs):
        yield run // len(paths) + 1, paths[run % len(paths)]


def _undone(path: Path, check: LocalCheck) -> list[str]:
    from passes import pipelines

    ctx = Context(load(path), Settings())
    ctx.check = check
    pipelines.default_pipeline((), ()).run(ctx)
    return [f"{r.application.rule} at {r.application.anchor}: {r.fault}" for r in ctx.rejected]


if __name__ == "__main__":
    main()
