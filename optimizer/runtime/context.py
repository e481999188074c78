"""What all nodes of one session share while it runs: options, limits, random state."""

from __future__ import annotations

import time

import numpy as np

from optimizer.runtime.errors import LimitReached
from optimizer.runtime.memory import LiveMemory
from optimizer.runtime.options import Options


class ExecutionContext:
    """State of a run. One session runs one call at a time.

    Attributes:
        executed: nodes run so far, those of bodies included.
        memory: live bytes of intermediates, kept only where a limit or a profile asks for it.
    """

    def __init__(self, options: Options | None = None) -> None:
        self.options = options or Options()
        self.executed = 0
        self.memory = LiveMemory()
        self._cache_left = self.options.cache_bytes
        self._generators: dict[tuple[int, float | None], np.random.Generator] = {}
        self._deadline = float("inf")

    def begin(self) -> None:
        """Starts a run: counters, clock and random generators start afresh."""
        self.executed = 0
        self.memory = LiveMemory()
        self._generators.clear()
        limit = self.options.deadline_s
        self._deadline = time.monotonic() + limit if limit is not None else float("inf")

    def generator(self, key: int, seed: float | None) -> np.random.Generator:
        """The generator of node ``key``; an explicit ``seed`` attribute replaces the node's place."""
        found = self._generators.get((key, seed))
        if found is None:
            # A float seed is spread over its bits, so that 1.0 and 1.5 differ.
            place = key if seed is None else int(np.float32(seed).view(np.uint32))
            found = np.random.default_rng((self.options.seed, place))
            self._generators[key, seed] = found
        return found

    def grant_cache(self, size: int) -> bool:
        """Takes ``size`` bytes off the budget for derived constants, if it still has them."""
        granted = size <= self._cache_left
        self._cache_left -= size if granted else 0
        return granted

    def count_node(self) -> None:
        """Counts one executed node and checks node and time limits.

        Raises:
            LimitReached: one of them is exceeded.
        """
        self.executed += 1
        limit = self.options.max_nodes
        if limit is not None and self.executed > limit:
            raise LimitReached(f"stopped after {limit} nodes (max_nodes)")
        self.check_deadline()

    def check_memory(self) -> None:
        """Raises LimitReached when live intermediates exceed ``max_bytes``."""
        limit = self.options.max_bytes
        if limit is not None and self.memory.live > limit:
            raise LimitReached(f"{self.memory.live} bytes of live tensors exceed {limit} (max_bytes)")

    def check_deadline(self) -> None:
        """Raises LimitReached when ``deadline_s`` is over. For loops inside kernels."""
        if time.monotonic() > self._deadline:
            raise LimitReached(f"stopped after {self.options.deadline_s:g} s (deadline_s)")
