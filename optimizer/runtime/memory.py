"""Live bytes of intermediate tensors, views counted once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np


class LiveMemory:
    """Counts the bytes behind live values by their owners.

    A view keeps its owner alive, so that an owner counts until its last view is gone. Feeds and
    constants belong to others: their owners are ``ignored``.

    Attributes:
        live: bytes now.
        peak: the most bytes ever.
        peak_at: the node that reached it.
    """

    def __init__(self) -> None:
        self.live = 0
        self.peak = 0
        self.peak_at = ""
        self._readers: dict[int, int] = {}
        self._ignored: set[int] = set()

    def ignore(self, values: Iterable[Any]) -> None:
        """Leaves the owners of ``values`` out of the count."""
        self._ignored.update(id(owner) for v in values for owner in _owners(v))

    def add(self, values: Iterable[Any], label: str = "") -> None:
        """``values`` became live; ``label`` says where."""
        for owner in (owner for value in values for owner in _owners(value)):
            if id(owner) in self._ignored:
                continue
            count = self._readers.get(id(owner), 0)
            self._readers[id(owner)] = count + 1
            if not count:
                self.live += owner.nbytes
        if self.live > self.peak:
            self.peak, self.peak_at = self.live, label

    def remove(self, values: Iterable[Any]) -> None:
        """``values`` are dead."""
        for owner in (owner for value in values for owner in _owners(value)):
            count = self._readers.get(id(owner), 0)
            if count == 1:
                self.live -= owner.nbytes
                del self._readers[id(owner)]
            elif count:
                self._readers[id(owner)] = count - 1


def _owners(value: Any) -> Iterable[np.ndarray]:
    if isinstance(value, np.ndarray):
        while isinstance(value.base, np.ndarray):
            value = value.base
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _owners(item)
