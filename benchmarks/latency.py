"""Latency of a result against its original, insensitive to how busy the machine is.

Both models run in one process, in turns, and only the CPU time of the one thread that runs them
counts. Each turn gives a ratio; the median of the ratios is reported with 95 % bounds.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import onnxruntime as ort

WARM_UP = 3
SHORTEST_SAMPLE = 0.005  # seconds; a shorter run is repeated until a sample is that long


@dataclass(frozen=True)
class Latency:
    """Milliseconds per run of the original, and result / original with its 95 % bounds."""

    original_ms: float
    ratio: float
    low: float
    high: float
    pairs: int


def session(path: Path, level: ort.GraphOptimizationLevel) -> ort.InferenceSession:
    """A session on one thread of the CPU."""
    options = ort.SessionOptions()
    options.graph_optimization_level = level
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def compare_latency(original: Path, result: Path, feeds: dict[str, np.ndarray], pairs: int) -> Latency:
    """Times ``pairs`` pairs of runs with all of onnxruntime's optimizations on."""
    everything = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    first, second = (_runner(session(path, everything), feeds) for path in (original, result))
    repeats = max(1, math.ceil(SHORTEST_SAMPLE / max(_warm(first), _warm(second), 1e-6)))
    before: list[float] = []
    after: list[float] = []
    for turn in range(pairs):
        # Who goes first changes every time: the second of a pair finds other caches.
        for run, samples in ((first, before), (second, after))[:: 1 if turn % 2 else -1]:
            samples.append(_cpu_seconds(run, repeats))
    ratios = sorted(b / a for a, b in zip(before, after, strict=True))
    low, high = median_bounds(pairs)
    return Latency(1e3 * median(before) / repeats, median(ratios), ratios[low], ratios[high], pairs)


def median_bounds(count: int, confidence: float = 0.95) -> tuple[int, int]:
    """Positions in a sorted sample between which its population's median lies.

    Distribution-free: the number of samples below the median is binomial(count, 1/2).
    """
    tail, position = 0.0, 0
    while position < count // 2:
        tail += math.comb(count, position) / 2**count
        if tail > (1 - confidence) / 2:
            break
        position += 1
    position = max(position - 1, 0)
    return position, count - 1 - position


def _runner(runtime: ort.InferenceSession, feeds: dict[str, np.ndarray]) -> Callable[[], object]:
    names = {value.name for value in runtime.get_inputs()}
    given = {name: array for name, array in feeds.items() if name in names}
    return lambda: runtime.run(None, given)


def _warm(run: Callable[[], object]) -> float:
    return min(_cpu_seconds(run, 1) for _ in range(WARM_UP))


def _cpu_seconds(run: Callable[[], object], repeats: int) -> float:
    start = time.thread_time()
    for _ in range(repeats):
        run()
    return time.thread_time() - start
