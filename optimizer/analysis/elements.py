"""Symbolic contents of small tensors: what a shape computation computes.

An element is a ``Dim`` (of an integer tensor), a ``bool``, a ``float``, a ``Ratio`` (of a floating
tensor) or ``None`` where it is not known. Elements live in NumPy object arrays, so that whatever
only moves elements is the NumPy function of the same name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from optimizer.analysis.dims import Dim, DimLike
from optimizer.ir import DType, Tensor

MAX_ELEMENTS = 256
MAX_FLOATS = 16

INTEGERS = frozenset({DType.INT64, DType.INT32})
FLOATS = frozenset({DType.FLOAT, DType.DOUBLE})


@dataclass(frozen=True, slots=True)
class Ratio:
    """``numerator / denominator``, the floating image of a dim.

    It is what float32 holds as long as the dims stay below 2**24 divided by the coefficients, which
    is taken for granted of dims. Where ``denominator`` is no power of two the value was rounded:
    only flooring and ceiling it are then still exact.
    """

    numerator: Dim
    denominator: int

    @property
    def is_exact(self) -> bool:
        """Whether the floating number is the ratio itself."""
        return self.denominator & (self.denominator - 1) == 0


Element: TypeAlias = Dim | bool | float | Ratio | None


class Elements:
    """The elements of a tensor of static shape, not writeable.

    Attributes:
        array: object array of ``Element``.
    """

    __slots__ = ("array",)

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    @classmethod
    def of(cls, items: Iterable[Element | int], shape: Sequence[int] | None = None) -> Elements:
        """A vector of elements, or a tensor of ``shape`` from its elements in order."""
        flat = [Dim.of(i) if isinstance(i, int) and not isinstance(i, bool) else i for i in items]
        array = np.empty(len(flat), dtype=object)
        array[:] = flat
        return cls(array if shape is None else array.reshape(tuple(shape)))

    @classmethod
    def scalar(cls, item: DimLike | Element) -> Elements:
        """A tensor of rank 0."""
        return cls.of([Dim.of(item) if isinstance(item, (str, Dim)) else item], ())

    @classmethod
    def of_tensor(cls, tensor: Tensor) -> Elements | None:
        """The contents of a small constant; ``None`` where it is too large or of another kind."""
        if tensor.dtype in INTEGERS or tensor.dtype is DType.BOOL:
            limit = MAX_ELEMENTS
        elif tensor.dtype in FLOATS:
            limit = MAX_FLOATS
        else:
            return None
        return cls.of(tensor.array.ravel().tolist(), tensor.shape) if tensor.size <= limit else None

    @property
    def shape(self) -> tuple[int, ...]:
        """Its static shape."""
        return self.array.shape

    @property
    def items(self) -> list[Element]:
        """The elements in row-major order."""
        flat: list[Element] = self.array.ravel().tolist()
        return flat

    def dims(self) -> list[Dim | None]:
        """The elements as dims, ``None`` for those that are not known."""
        return [item if isinstance(item, Dim) else None for item in self.items]

    def ints(self) -> list[int] | None:
        """The elements as numbers, ``None`` unless all of them are."""
        numbers: list[int] = []
        for item in self.items:
            if not isinstance(item, Dim) or item.value is None:
                return None
            numbers.append(item.value)
        return numbers

    def moved(self, move: Callable[[np.ndarray], Any]) -> Elements | None:
        """What ``move``, a NumPy function that only moves elements, makes of it."""
        array = np.asarray(move(self.array), dtype=object)
        return Elements(array) if array.size <= MAX_ELEMENTS else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Elements) and self.shape == other.shape and self.items == other.items

    def __hash__(self) -> int:
        return hash((self.shape, tuple(self.items)))

    def __repr__(self) -> str:
        return f"Elements({self.array.tolist()})"


def joined(
    parts: Sequence[Elements | None], join: Callable[[list[np.ndarray]], np.ndarray]
) -> Elements | None:
    """What ``join``, a NumPy function that moves elements of several tensors, makes of them."""
    known = [part.array for part in parts if part is not None]
    if len(known) != len(parts) or sum(array.size for array in known) > MAX_ELEMENTS:
        return None
    return Elements(np.asarray(join(known), dtype=object))
