"""Two states of a model timed against each other in onnxruntime, where a table of costs cannot tell."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from optimizer.io import to_proto
from optimizer.rewrite import Context
from optimizer.verify.engines import EngineError, OnnxRuntime

MOST_RACES = 16
"""Races of one run; after that the table decides alone."""
LARGEST = 1 << 29
"""Bytes of constants above which a model is not raced."""
PAIRS = 21
LOW, HIGH = 5, 15
"""Places among the sorted ratios of ``PAIRS`` between which their median is, with 97 % certainty."""
SHORTEST = 0.002
"""Seconds; shorter runs are timed several at once."""
MOST_REPEATS = 200


class ModelRace:
    """Says which of two states of a model is faster, by CPU time of one thread, run in turns.

    Args:
        find_feeds: gives inputs that the original takes; ``None`` where there are none.

    Attributes:
        decisions: what has been found out, by the rule in question; ``None``: nothing certain.
    """

    def __init__(self, find_feeds: Callable[[], Mapping[str, Any] | None]) -> None:
        self.decisions: dict[str, bool | None] = {}
        self._find_feeds = find_feeds
        self._races = 0

    def snapshot(self, ctx: Context) -> bytes:
        """The model as it is now; empty where it is too large."""
        if ctx.journal.constant_bytes > LARGEST:
            return b""
        message: bytes = to_proto(ctx.model.pruned()).SerializeToString()
        return message

    def is_faster(self, before: bytes, after: bytes) -> bool | None:
        """Whether ``after`` takes less time; ``None`` where that is not certain or cannot be tried."""
        self._races += 1
        feeds = self._find_feeds() if before and after and self._races <= MOST_RACES else None
        if feeds is None:
            return None
        try:
            engines = [OnnxRuntime(model, optimize=True, timed=True) for model in (before, after)]
            longest = max(_seconds(engine, feeds, 1) for engine in engines)
            repeats = min(max(1, int(SHORTEST / max(longest, 1e-6))), MOST_REPEATS)
            ratios = sorted(_ratio(engines, feeds, repeats, turn) for turn in range(PAIRS))
        except EngineError:
            return None
        return True if ratios[HIGH] < 1 else False if ratios[LOW] > 1 else None


def _ratio(engines: list[OnnxRuntime], feeds: Mapping[str, Any], repeats: int, turn: int) -> float:
    """Time of the second by time of the first; who goes first changes, as it finds other caches."""
    order = (0, 1) if turn % 2 else (1, 0)
    taken = {place: _seconds(engines[place], feeds, repeats) for place in order}
    return taken[1] / max(taken[0], 1e-9)


def _seconds(engine: OnnxRuntime, feeds: Mapping[str, Any], repeats: int) -> float:
    start = time.thread_time()
    for _ in range(repeats):
        engine.run(feeds)
    return time.thread_time() - start
