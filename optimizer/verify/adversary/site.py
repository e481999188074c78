"""One operator of a pattern being given operands: what is known of them, what is still to be made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
SIZES = (1, 1, 2, 2, 3, 4, 5)
"""Dims of generated tensors: small, so that ones and equal neighbours are frequent."""


class Leaf:
    """An operand that the pattern leaves open."""


@dataclass
class Site:
    """The operands of one operator, in order; ``None`` where one is absent.

    Attributes:
        attributes: those that the pattern fixes, and those that a recipe adds.
        outputs: how many it has.
    """

    op: str
    rng: np.random.Generator
    opset: int
    dtype: np.dtype[Any]
    operands: list[Array | Leaf | None]
    fixed: Mapping[str, Any]
    outputs: int = 1
    attributes: dict[str, Any] = field(default_factory=dict)

    def is_open(self, slot: int) -> bool:
        """Whether there is such an operand, still to be made."""
        return slot < len(self.operands) and isinstance(self.operands[slot], Leaf)

    def shape(self, slot: int) -> tuple[int, ...] | None:
        """Shape of an operand that is known."""
        found = self.operands[slot] if slot < len(self.operands) else None
        return found.shape if isinstance(found, np.ndarray) else None

    def give(self, slot: int, array: Any, dtype: Any = None) -> None:
        """Makes an operand, unless it is known or absent."""
        if self.is_open(slot):
            self.operands[slot] = np.asarray(array, dtype)

    def floats(self, slot: int, shape: Sequence[int]) -> None:
        """Makes an operand of the type at hand: usually random numbers, sometimes telling ones."""
        if self.is_open(slot):
            self.operands[slot] = self.numbers(tuple(shape))

    def first(self, *ranks: int) -> tuple[int, ...]:
        """The shape of operand 0, made with one of these ranks where it is open."""
        if self.is_open(0):
            self.floats(0, self.dims(int(self.rng.choice(ranks))))
        return self.shape(0) or ()

    def dims(self, rank: int) -> tuple[int, ...]:
        """A random shape."""
        return tuple(int(size) for size in self.rng.choice(SIZES, rank))

    def axis(self, rank: int) -> int:
        """A random axis, counted from either end."""
        return int(self.rng.integers(-rank, rank)) if rank else 0

    def pick(self, *options: Any) -> Any:
        """One of several."""
        return options[int(self.rng.integers(len(options)))]

    def sets(self, **attributes: Any) -> None:
        """Attributes, but for those that the pattern fixes to be absent or otherwise."""
        for name, value in attributes.items():
            if name not in self.fixed and value is not None:
                self.attributes[name] = value

    def numbers(self, shape: tuple[int, ...]) -> Array:
        """Random numbers; at times zeros, ones, minus ones, one number throughout, or a NaN among them."""
        rng = self.rng
        if self.dtype.kind == "b":
            return rng.integers(0, 2, shape).astype(bool)
        if self.dtype.kind in "iu":
            low = 0 if self.dtype.kind == "u" else -6
            return rng.integers(low, 7, shape).astype(self.dtype)
        kind = rng.random()
        if kind < 0.3:
            return np.full(shape, self.pick(0.0, 1.0, 1.0, -1.0, 0.5, 6.0)).astype(self.dtype)
        drawn = rng.standard_normal(shape)
        if kind < 0.5:
            drawn = np.abs(drawn) + 0.1
        elif kind < 0.55 and drawn.size:
            drawn.reshape(-1)[int(rng.integers(drawn.size))] = self.pick(np.nan, np.inf, 0.0, -0.0)
        return drawn.astype(self.dtype)
