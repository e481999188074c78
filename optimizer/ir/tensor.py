"""Constants that load on demand."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from optimizer.ir.types import DType


class Tensor:
    """A constant: element type and shape are known at once, the elements are read on first use.

    Args:
        dtype: element type.
        shape: dimensions, all non-negative.
        load: gives the elements as an array of ``dtype.numpy`` and ``shape``.
        source: what the constant was read from. The layer that made it may use it to write
            the constant back without loading it; nobody else looks inside.
    """

    __slots__ = ("_array", "_digest", "_load", "dtype", "shape", "source")

    def __init__(
        self,
        dtype: DType,
        shape: tuple[int, ...],
        load: Callable[[], np.ndarray],
        source: Any = None,
    ) -> None:
        self.dtype = dtype
        self.shape = shape
        self.source = source
        self._load: Callable[[], np.ndarray] | None = load
        self._array: np.ndarray | None = None
        self._digest: bytes | None = None

    @classmethod
    def of(cls, array: np.ndarray | np.generic | list[Any] | float | int) -> Tensor:
        """A constant that holds ``array``, which must not be changed afterwards."""
        array = np.asarray(array)
        if array.dtype.kind in "SU":
            array = array.astype(object)
        return cls(DType.from_numpy(array.dtype), array.shape, lambda: array)

    @property
    def array(self) -> np.ndarray:
        """The elements, not writeable."""
        if self._array is None:
            assert self._load is not None
            view = np.asarray(self._load()).view()
            view.flags.writeable = False
            self._array, self._load = view, None
        return self._array

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes the elements take in a serialized model, without loading them (strings load)."""
        if self.dtype is DType.STRING:
            return sum(len(s.encode() if isinstance(s, str) else s) for s in self.array.flat)
        return (self.size * self.dtype.bits + 7) // 8

    @property
    def digest(self) -> bytes:
        """A hash of type, shape and bytes: equal digests mean the same constant, bit for bit."""
        if self._digest is None:
            data = self.array
            body = (
                repr(data.tolist()).encode() if data.dtype == object else np.ascontiguousarray(data).tobytes()
            )
            head = f"{int(self.dtype)}:{self.shape}:".encode()
            self._digest = hashlib.blake2b(head + body, digest_size=16).digest()
        return self._digest

    def __repr__(self) -> str:
        return f"Tensor({self.dtype.name}, {list(self.shape)})"
