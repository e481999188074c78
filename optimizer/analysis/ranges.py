"""``SizeRange``: what a user states about an open dimension."""

from __future__ import annotations

import math
from dataclasses import dataclass

from optimizer.ir import UsageError


@dataclass(frozen=True, slots=True)
class SizeRange:
    """The sizes from ``lo`` to ``hi`` (``None``: no limit) that are multiples of ``divisor``.

    Raises:
        UsageError: there is no such size, or a number is negative.
    """

    lo: int = 0
    hi: int | None = None
    divisor: int = 1

    def __post_init__(self) -> None:
        if self.lo < 0 or self.divisor < 1 or (self.hi is not None and self.first > self.hi):
            raise UsageError(f"no size is {self}")

    @property
    def first(self) -> int:
        """The smallest size."""
        return -(-self.lo // self.divisor) * self.divisor

    @property
    def only(self) -> int | None:
        """The size, where there is just one."""
        return self.first if self.hi is not None and self.first + self.divisor > self.hi else None

    def __contains__(self, size: object) -> bool:
        if not isinstance(size, int):
            return False
        return self.lo <= size and (self.hi is None or size <= self.hi) and size % self.divisor == 0

    def __and__(self, other: SizeRange) -> SizeRange:
        limits = [limit for limit in (self.hi, other.hi) if limit is not None]
        divisor = math.lcm(self.divisor, other.divisor)
        return SizeRange(max(self.lo, other.lo), min(limits, default=None), divisor)

    def nearest(self, size: int) -> int:
        """The size of the range next to ``size``, the larger one of two as near.

        Never 0 where the range has another size: a tensor without elements shows nothing.
        """
        below = size // self.divisor * self.divisor
        above = below if below == size else below + self.divisor
        chosen = above if above - size <= size - below else below
        chosen = max(chosen, self.first, self.divisor)
        return chosen if self.hi is None else min(chosen, self.hi // self.divisor * self.divisor)

    def __str__(self) -> str:
        text = f"{self.lo}..{'' if self.hi is None else self.hi}"
        return text if self.divisor == 1 else f"{text}, a multiple of {self.divisor}"
