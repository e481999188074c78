"""What all nodes of one session share while it runs: options, limits, random state."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Hashable, Sequence
from functools import cache
from typing import Any, TypeVar

import numpy as np

from optimizer.ir import Tensor
from optimizer.runtime.errors import LimitReached
from optimizer.runtime.memory import LiveMemory
from optimizer.runtime.options import Options
from optimizer.runtime.precision import Array, true_value

_Made = TypeVar("_Made")


class ExecutionContext:
    """State of a run. One session runs one call at a time.

    Attributes:
        watched: whether every node needs looking at (see ``Options.watched``).
        counts_memory: whether ``memory`` is kept.
        depth: how many plans are running inside each other.
        executed: nodes run so far, those of bodies included.
        memory: live bytes of intermediates, kept only where a limit or a profile asks for it.
    """

    def __init__(self, options: Options | None = None) -> None:
        self.options = options or Options()
        self.watched = self.options.watched
        self.counts_memory = self.options.counts_memory
        self.executed = 0
        self.depth = 0
        self.memory = LiveMemory()
        self._cache_left = self.options.cache_bytes
        self._generators: dict[tuple[int, float | None], np.random.Generator] = {}
        self._constants: dict[int, tuple[Tensor, Array]] = {}
        self._workspaces: dict[Hashable, Any] = {}
        self._workspace_left = 16 << 20
        self._deadline = float("inf")

    def begin(self) -> None:
        """Starts a run: counters, clock and random generators start afresh."""
        self.executed = self.depth = 0
        self.memory = LiveMemory()
        self._generators.clear()
        limit = self.options.deadline_s
        self._deadline = time.monotonic() + limit if limit is not None else float("inf")

    def generator(self, key: int, seed: float | None) -> np.random.Generator:
        """The generator of node ``key``.

        An explicit ``seed`` attribute stands instead of session seed and node. Seeded that way, the
        stream of ``random()`` is that of ``numpy.random.RandomState(int(seed))``, on which the
        expected masks of ONNX's own Dropout tests rest.
        """
        found = self._generators.get((key, seed))
        if found is None:
            if seed is None:
                found = np.random.default_rng((self.options.seed, key))
            else:
                state: Any = np.random.RandomState(_whole(seed)).get_state(legacy=False)
                bits = np.random.MT19937()
                bits.state = state
                found = np.random.Generator(bits)
            self._generators[key, seed] = found
        return found

    def constant(self, tensor: Tensor) -> Array:
        """The elements of a constant as kernels want them; forms that had to be made are kept."""
        made = self._constants.get(id(tensor))
        if made is not None:
            return made[1]
        array = tensor.array
        ready: Array = true_value(array) if self.options.truth else array
        if not ready.flags.aligned:
            ready = ready.copy()  # BLAS would copy an unaligned (memory-mapped) weight on every call
        if ready is not array:
            self._constants[id(tensor)] = tensor, ready  # holding the tensor keeps its id its own
        return ready

    def grant_cache(self, size: int) -> bool:
        """Takes ``size`` bytes off the budget for derived constants, if it still has them."""
        granted = size <= self._cache_left
        self._cache_left -= size if granted else 0
        return granted

    def workspace(self, key: Hashable, size: int, make: Callable[[], _Made]) -> _Made:
        """Buffers of ``size`` bytes that ``make`` makes, kept for the next kernel that asks with ``key``.

        For buffers that are dear to lay out. All that are kept take no more than 16 MiB together.
        """
        found: _Made | None = self._workspaces.get(key)
        if found is None:
            found = make()
            if size <= self._workspace_left:
                self._workspace_left -= size
                self._workspaces[key] = found
        return found

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

    def check_size(self, shape: Sequence[int], dtype: np.dtype[Any]) -> None:
        """For kernels whose output has nothing to do with the size of their inputs.

        Raises:
            LimitReached: a tensor of ``shape`` alone would exceed ``max_bytes``.
            ValueError: it would not fit into the memory of this machine.
        """
        size = math.prod(int(d) for d in shape) * dtype.itemsize
        limit = self.options.max_bytes
        if limit is not None and size > limit:
            raise LimitReached(f"a tensor of {size} bytes exceeds {limit} (max_bytes)")
        if size > machine_memory() // 2:
            raise ValueError(f"a result of shape {list(shape)} would take {size} bytes")

    def check_memory(self) -> None:
        """Raises LimitReached when intermediates that were live at once exceed ``max_bytes``."""
        limit = self.options.max_bytes
        if limit is not None and self.memory.peak > limit:
            raise LimitReached(f"{self.memory.peak} bytes of live tensors exceed {limit} (max_bytes)")

    def check_deadline(self) -> None:
        """Raises LimitReached when ``deadline_s`` is over. For loops inside kernels."""
        if time.monotonic() > self._deadline:
            raise LimitReached(f"stopped after {self.options.deadline_s:g} s (deadline_s)")


@cache
def machine_memory() -> int:
    """Bytes of memory of this machine; 16 GiB where the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 16 << 30


def _whole(seed: float) -> int:
    """A seed as an integer; one with a fraction is spread over its bits, so that 1.0 and 1.5 differ."""
    return int(seed) & 0xFFFFFFFF if seed == int(seed) else int(np.float32(seed).view(np.uint32))
