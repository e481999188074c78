"""``python -m benchmarks.promises --models DIR``: what is promised of every result, net by net.

- The same file comes out of two processes with different hash seeds, and of its own log replayed.
- Optimizing a result again changes nothing (``--size-limit none``).
- ``--fp strict`` keeps every bit, in the executor and in onnxruntime (optimizations off, one thread, weights
  not prepacked: else onnxruntime takes another kernel for a weight that was folded than for a computed one).
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.process import restart_on_one_thread, run
from optimizer import optimize
from optimizer.io import load
from optimizer.rewrite import read_log
from optimizer.verify import EngineError, NumPy, OnnxRuntime, Reference

RUN = """import sys, optimizer
optimizer.optimize(sys.argv[1], output=sys.argv[2], save_log=sys.argv[3], verify="off")"""
KEPT, NOT_KEPT = "yes", "NO"


@dataclass(frozen=True)
class Promises:
    """One net: its nodes before and after, then what became of each promise."""

    net: str
    nodes: str
    processes: str
    replayed: str
    settled: str
    strict_numpy: str
    strict_onnxruntime: str

    @property
    def kept(self) -> bool:
        """Whether none is broken."""
        return NOT_KEPT not in (
            self.processes, self.replayed, self.settled, self.strict_numpy, self.strict_onnxruntime,
        )  # fmt: skip


def main() -> None:
    restart_on_one_thread("benchmarks.promises")
    parser = argparse.ArgumentParser(prog="python -m benchmarks.promises", description=__doc__)
    parser.add_argument("--models", type=Path, required=True, metavar="DIR", help="nets to try")
    parser.add_argument("--only", default="", metavar="TEXT", help="nets with TEXT in their name")
    options = parser.parse_args()
    titles = ("net", "nodes", "two processes", "replayed", "again", "strict, executor", "strict, onnxruntime")
    print(f"| {' | '.join(titles)} |\n|---|---:|---|---|---|---|---|")
    found = []
    for path in (p for p in sorted(options.models.glob("*.onnx")) if options.only in p.stem):
        with tempfile.TemporaryDirectory(prefix="oinfer-bench-") as folder:
            found.append(of_net(path, Path(folder)))
        print(f"| {' | '.join(vars(found[-1]).values())} |", flush=True)
    broken = sum(not promises.kept for promises in found)
    print(f"\n{len(found)} nets, {broken} of them with a promise broken")
    raise SystemExit(int(broken > 0 or not found))


def of_net(path: Path, folder: Path) -> Promises:
    """Tries everything with one net."""
    log = folder / "log.json"
    files = [_in_a_process(path, folder / f"{seed}.onnx", log, seed) for seed in (1, 2)]
    again = folder / "replayed.onnx"
    optimize(path, output=again, replay=read_log(log), verify="off")
    once, twice = folder / "once.onnx", folder / "twice.onnx"
    report = optimize(path, output=once, size_limit=None, verify="off").report
    optimize(once, output=twice, size_limit=None, verify="off")
    return Promises(
        path.stem,
        f"{report.before.nodes} -> {report.after.nodes}",
        _word(files[0] == files[1]),
        _word(again.read_bytes() == files[0]),
        _word(once.read_bytes() == twice.read_bytes()),
        *_strict(path, folder / "strict.onnx"),
    )


def _in_a_process(path: Path, target: Path, log: Path, seed: int) -> bytes:
    os.environ["PYTHONHASHSEED"] = str(seed)
    done = run([sys.executable, "-c", RUN, str(path), str(target), str(log)], timeout=600)
    if done.failure:
        raise SystemExit(f"benchmarks: {path.name}: {done.failure}")
    return target.read_bytes()


def _strict(path: Path, result: Path) -> tuple[str, str]:
    """Whether a strict result gives the same bits in the executor, and in onnxruntime."""
    report = optimize(path, output=result, fp="strict", verify="off").report
    reference = Reference(str(path), seeds=1, size_count=1)
    if not report.bit_exact:
        return NOT_KEPT, NOT_KEPT
    if not reference.cases:
        return "no inputs", "no inputs"
    feeds = reference.cases[0].feeds
    engines: tuple[Callable[[Path], Any], ...] = (
        lambda source: NumPy(load(source)),
        lambda source: OnnxRuntime(str(source), prepack=False, model=load(source)),
    )
    numpy, onnxruntime = (_same_bits(make, path, result, feeds, reference.random) for make in engines)
    return numpy, onnxruntime


def _same_bits(
    make: Callable[[Path], Any], path: Path, result: Path, feeds: Mapping[str, Any], random: frozenset[str]
) -> str:
    try:
        before = make(path).run(feeds)
    except EngineError:
        return "does not run"
    after = make(result).run(feeds)
    return _word(all(_equal(value, after[name]) for name, value in before.items() if name not in random))


def _equal(before: Any, after: Any) -> bool:
    if isinstance(before, list):
        return len(before) == len(after) and all(map(_equal, before, after))
    a, b = np.asarray(before), np.asarray(after)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return a.tolist() == b.tolist() if a.dtype == object else a.tobytes() == b.tobytes()


def _word(kept: bool) -> str:
    return KEPT if kept else NOT_KEPT


if __name__ == "__main__":
    main()
