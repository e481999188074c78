"""``python -m benchmarks.executor``: speed and memory of the NumPy executor, against their bars.

Everything runs on one thread. Two engines are timed in turns within one process, in CPU time of that
thread; the median of the ratios counts, so that a busy machine does not.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import numpy as np
import onnx
import onnxruntime

from benchmarks import executor_layers, executor_nets
from benchmarks.process import restart_on_one_thread
from optimizer.runtime import Session

Run = Callable[[], Any]
Feeds = Mapping[str, np.ndarray]

SAMPLE_SECONDS = 0.004
SCRATCH_LIMIT = 64 << 20


@dataclass(frozen=True)
class NetRow:
    """One net: milliseconds, ratios, megabytes."""

    name: str
    nodes: int
    onnxruntime_ms: float
    ours_ms: float
    ratio: float
    reference_ms: float
    gain: float
    live_mb: float
    ideal_mb: float
    scratch_mb: float
    error: float


@dataclass(frozen=True)
class LayerRow:
    """One layer: milliseconds and ratio."""

    name: str
    onnxruntime_ms: float
    ours_ms: float
    ratio: float
    limit: float


def main() -> None:
    restart_on_one_thread("benchmarks.executor")
    parser = argparse.ArgumentParser(prog="python -m benchmarks.executor", description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="nets and layers with TEXT in their name")
    parser.add_argument("--pairs", type=int, default=15, metavar="N", help="timed pairs (default: 15)")
    parser.add_argument("--no-reference", action="store_true", help="leave onnx.reference out (minutes)")
    parser.add_argument("--no-nets", action="store_true", help="layers only")
    parser.add_argument("--no-layers", action="store_true", help="nets only")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything measured")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    nets = [] if options.no_nets else _nets(options)
    layers = [] if options.no_layers else _layers(options)
    bars = _bars(nets, layers, with_reference=not options.no_reference)
    for text, value, limit, held in bars:
        print(f"{'ok  ' if held else 'MISS'} {text}: {value:.2f} ({limit})")
    if options.json:
        found = {
            "machine": _machine(),
            "nets": [asdict(row) for row in nets],
            "layers": [asdict(row) for row in layers],
            "bars": [dict(zip(("text", "value", "limit", "held"), bar, strict=True)) for bar in bars],
        }
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    sys.exit(0 if all(held for *_, held in bars) else 1)


# -------------------------------------------------------------------- time


def onnxruntime_session(model: bytes) -> onnxruntime.InferenceSession:
    """onnxruntime as it comes, on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def in_turns(first: Run, second: Run, pairs: int) -> tuple[float, float, float]:
    """(seconds of the first, of the second, median of second / first); CPU time of this thread."""
    first(), second()
    repeats = [max(1, math.ceil(SAMPLE_SECONDS / max(_seconds(run, 1), 1e-6))) for run in (first, second)]
    samples: tuple[list[float], list[float]] = ([], [])
    for turn in range(pairs):
        for index in (0, 1) if turn % 2 else (1, 0):
            samples[index].append(_seconds((first, second)[index], repeats[index]))
    ratios = [b / a for a, b in zip(*samples, strict=True)]
    return median(samples[0]), median(samples[1]), median(ratios)


def _seconds(run: Run, repeats: int) -> float:
    start = time.thread_time()
    for _ in range(repeats):
        run()
    return (time.thread_time() - start) / repeats


def _nets(options: argparse.Namespace) -> list[NetRow]:
    rows = []
    print(
        f"{'net':24} nodes  ort ms  ours ms  x ort    ref ms  ref/ours  live / ideal MB  scratch MB   error"
    )
    for name, model, feeds in executor_nets.nets():
        if options.only in name:
            rows.append(_net(name, model, feeds, options))
            _print_net(rows[-1])
    return rows


def _net(name: str, model: onnx.ModelProto, feeds: Feeds, options: argparse.Namespace) -> NetRow:
    data = model.SerializeToString()
    theirs, ours = onnxruntime_session(data), Session(data)
    expected, got = theirs.run(None, dict(feeds)), list(ours.run(feeds).values())
    error = max(float(np.abs(a - b).max() / np.abs(a).max()) for a, b in zip(expected, got, strict=True))
    ort_s, ours_s, ratio = in_turns(
        lambda: theirs.run(None, dict(feeds)), lambda: ours.run(feeds), options.pairs
    )
    reference_s = math.nan if options.no_reference else _reference_seconds(model, feeds)
    live, ideal, scratch = _memory(data, feeds)
    return NetRow(
        name, len(model.graph.node), 1e3 * ort_s, 1e3 * ours_s, ratio, 1e3 * reference_s,
        reference_s / ours_s, live / 1e6, ideal / 1e6, scratch / 1e6, error,
    )  # fmt: skip


def _reference_seconds(model: onnx.ModelProto, feeds: Feeds) -> float:
    from onnx.reference import ReferenceEvaluator

    evaluator = ReferenceEvaluator(model)
    once = _seconds(lambda: evaluator.run(None, dict(feeds)), 1)
    return (
        once if once > 1 else median(_seconds(lambda: evaluator.run(None, dict(feeds)), 1) for _ in range(3))
    )


def _print_net(row: NetRow) -> None:
    print(
        f"{row.name:24} {row.nodes:5} {row.onnxruntime_ms:7.1f} {row.ours_ms:8.1f} {row.ratio:6.2f}"
        f" {row.reference_ms:9.0f} {row.gain:9.1f} {row.live_mb:8.2f} / {row.ideal_mb:5.2f}"
        f" {row.scratch_mb:11.2f} {row.error:7.1e}",
        flush=True,
    )


def _layers(options: argparse.Namespace) -> list[LayerRow]:
    cases = [(layer.name, *layer.model(), layer.limit) for layer in executor_layers.layers()]
    cases.append(("Loop 50 x (MatMul, Tanh)", *executor_layers.loop(), executor_layers.MOST))
    cases.append(("chain of 1000 tiny Adds", *executor_layers.chain(), 8.0))
    rows = []
    print(f"{'layer':36} ort ms  ours ms   x ort")
    for name, model, feeds, limit in cases:
        if options.only not in name:
            continue
        data = model.SerializeToString()
        # Folding would leave nothing to time: the chain runs as it is.
        theirs, ours = onnxruntime_session(data), Session(data)
        measured = in_turns(lambda: theirs.run(None, feeds), lambda: ours.run(feeds), options.pairs)  # noqa: B023
        rows.append(LayerRow(name, 1e3 * measured[0], 1e3 * measured[1], measured[2], limit))
        row = rows[-1]
        print(f"{name:36} {row.onnxruntime_ms:6.3f} {row.ours_ms:8.3f} {row.ratio:7.2f}", flush=True)
    return rows


# -------------------------------------------------------------------- memory


def _memory(data: bytes, feeds: Feeds) -> tuple[float, float, float]:
    """Bytes: peak of live intermediates, the same freed at their last use, and scratch besides.

    The ideal counts every tensor from the node that makes it to the last one that reads it, views
    with their owners, nothing written over anything. Scratch is what NumPy allocated at most beyond
    the live peak, in a second run (forms of weights that are kept belong to neither).
    """
    ideal = _last_use_peak(data, feeds)
    session = Session(data, profile_memory=True)
    session.run(feeds)
    tracemalloc.start()
    session.run(feeds)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    live = session.context.memory.peak
    return live, ideal, max(0, peak - live)


def _last_use_peak(data: bytes, feeds: Feeds) -> int:
    from optimizer.io import load
    from optimizer.runtime.memory import LiveMemory

    model = load(data)
    graph = model.graph
    last = {v: node.id for node in graph.nodes for v in node.operands if v is not None}
    ends, memory = set(graph.outputs), LiveMemory()
    memory.ignore(feeds.values())
    memory.ignore(x for x in (graph.const(v) for v in graph.constants) if x is not None)
    kept: dict[Any, Any] = {}

    def after(node: Any, inputs: Any, outputs: Any, seconds: float) -> None:
        made = {node.value(i): x for i, x in enumerate(outputs) if x is not None}
        kept.update(made)
        memory.add(made.values())
        dead = [v for v in kept if last.get(v, -1) <= node.id and v not in ends]
        memory.remove([kept.pop(v) for v in dead])

    Session(model, after_node=after).run(feeds)
    return memory.peak


# -------------------------------------------------------------------- bars

Bar = tuple[str, float, str, bool]


def _bars(nets: list[NetRow], layers: list[LayerRow], *, with_reference: bool) -> list[Bar]:
    bars: list[Bar] = []

    def at_most(text: str, value: float, limit: float) -> None:
        bars.append((text, value, f"at most {limit:g}", value <= limit))

    def at_least(text: str, value: float, limit: float) -> None:
        bars.append((text, value, f"at least {limit:g}", value >= limit))

    if nets:
        at_most("geometric mean of nets, x onnxruntime", geometric_mean(row.ratio for row in nets), 2.0)
    limits = {"light_resnet50": 1.5, "bert_like": 1.8, "mobilenetv2_like": 5.5, "light_shufflenet": 5.5}
    for row in nets:
        if row.name in limits:
            at_most(f"{row.name}, x onnxruntime", row.ratio, limits[row.name])
        at_most(f"{row.name}, live peak / last-use ideal", row.live_mb / row.ideal_mb, 1.1)
        at_most(f"{row.name}, scratch MB", row.scratch_mb, SCRATCH_LIMIT / 1e6)
    if nets and with_reference:
        at_least("geometric mean, faster than onnx.reference", geometric_mean(r.gain for r in nets), 25)
        at_least("least gain over onnx.reference", min(r.gain for r in nets), 5)
    for layer in layers:
        at_most(f"{layer.name}, x onnxruntime", layer.ratio, layer.limit)
    return bars


def _machine() -> dict[str, str]:
    return {
        "processor": platform.processor() or platform.machine(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "onnx": onnx.__version__,
        "onnxruntime": onnxruntime.__version__,
    }


if __name__ == "__main__":
    main()
