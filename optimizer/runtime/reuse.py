"""Which dead inputs may become outputs: owners of memory and who still reads them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from optimizer.runtime.call import Call
from optimizer.runtime.precision import is_narrow
from optimizer.runtime.registry import Kernel, KernelFunction

SMALLEST = 4096
"""Bytes from which on taking an input's memory is cheaper than asking for new memory."""
_FOREIGN = -1
_MOST_OWNERS = 8

Owners = frozenset[int]
_NOT_OURS: Owners = frozenset((_FOREIGN,))


class OwnerTable:
    """The owners of the memory behind each slot, followed through a plan from its first step.

    Whatever a kernel that may alias gives may be a view of any of its inputs, so that it shares their
    owners. Inputs, constants and captures of a plan belong to somebody else for good, and so may what
    comes out of bodies and functions.

    Args:
        foreign: the slots that are filled before the first step.
    """

    def __init__(self, foreign: Iterable[int]) -> None:
        self._owners: dict[int, Owners] = dict.fromkeys(foreign, _NOT_OURS)
        self._readers: Counter[int] = Counter()

    def step(
        self, kernel: Kernel, reads: Sequence[int], writes: Sequence[int], frees: Sequence[int]
    ) -> tuple[int, ...]:
        """Follows one step; returns the inputs whose memory its kernel may take for its output.

        Such an input is read for the last time, and nothing else that is live shares its memory.
        """
        free = tuple(
            position
            for position in kernel.reuses
            if position < len(reads) and self._is_last(position, reads, frees)
        )
        if kernel.runs_graphs:
            owners = _NOT_OURS
        elif kernel.may_alias:
            viewed = reads
            if isinstance(kernel.may_alias, tuple):
                viewed = [reads[i] for i in kernel.may_alias if i < len(reads)]
            owners = self._joined(viewed) or _NOT_OURS
        else:  # one owner for all: outputs of one kernel may be views of one buffer
            owners = frozenset(writes[:1])
        for slot in writes:
            self._owners[slot] = owners
            self._readers.update(owners)
        for slot in frees:
            self._readers.subtract(self._owners.pop(slot, _NOT_OURS))
        return free

    def _is_last(self, position: int, reads: Sequence[int], frees: Sequence[int]) -> bool:
        slot = reads[position]
        owners = self._owners.get(slot, _NOT_OURS)
        return (
            slot in frees
            and reads.count(slot) == 1
            and _FOREIGN not in owners
            and all(self._readers[owner] == 1 for owner in owners)
        )

    def _joined(self, reads: Sequence[int]) -> Owners:
        joined = frozenset[int]().union(*(self._owners.get(slot, frozenset()) for slot in reads))
        return joined if len(joined) <= _MOST_OWNERS else _NOT_OURS


def reusing(kernel: Kernel, positions: tuple[int, ...]) -> KernelFunction:
    """The kernel as one that writes its output over the first fitting of the dead inputs ``positions``."""
    run, into = kernel.run, kernel.into
    assert into is not None

    def run_into(call: Call, *inputs: Any) -> Any:
        for position in positions:
            out = inputs[position]
            if out.__class__ is np.ndarray and out.nbytes >= SMALLEST and not is_narrow(out):
                flags = out.flags
                if flags.c_contiguous and flags.writeable:
                    result = into(call, out, *inputs)
                    if result is not None:
                        return result
        return run(call, *inputs)

    return run_into
