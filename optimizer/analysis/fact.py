"""``Fact``: what is known to be true about one value."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

from optimizer.analysis.dims import Dim, DimLike
from optimizer.analysis.elements import Elements
from optimizer.ir import DType, MapType, OptionalType, SequenceType, TensorType, ValueType

Shape: TypeAlias = tuple[Dim, ...]

VARYING = Dim.fresh("varies")
"""Stands in the shape of a sequence's elements for a dimension that differs between them."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A true statement about a value. What is not known is ``None``.

    Attributes:
        dtype: element type of a tensor.
        shape: its dimensions; ``None`` where not even the rank is known.
        value: its contents, where it is small and they are (partly) known.
        type: declared type of a value that is not a tensor.
        elem: for a sequence or an optional, what holds for each element.
    """

    dtype: DType | None = None
    shape: Shape | None = None
    value: Elements | None = None
    type: ValueType | None = None
    elem: Fact | None = None

    @classmethod
    def tensor(
        cls, dtype: DType | None, shape: Iterable[DimLike] | None, value: Elements | None = None
    ) -> Fact:
        """A tensor, with numbers and names allowed as dimensions."""
        return cls(dtype, None if shape is None else tuple(map(Dim.of, shape)), value)

    @classmethod
    def sequence(cls, elem: Fact) -> Fact:
        """A sequence of ``elem``."""
        return cls(type=SequenceType(elem.to_type()), elem=elem)

    @classmethod
    def optional(cls, elem: Fact) -> Fact:
        """An optional ``elem``."""
        return cls(type=OptionalType(elem.to_type()), elem=elem)

    @property
    def rank(self) -> int | None:
        """Number of dimensions."""
        return None if self.shape is None else len(self.shape)

    @property
    def static_shape(self) -> tuple[int, ...] | None:
        """The shape as numbers; ``None`` unless every dimension is one."""
        if self.shape is None:
            return None
        sizes = [dim.value for dim in self.shape if dim.value is not None]
        return tuple(sizes) if len(sizes) == len(self.shape) else None

    @property
    def numel(self) -> Dim | None:
        """Number of elements."""
        if self.shape is None:
            return None
        total = Dim.of(1)
        for dim in self.shape:
            total = total * dim
        return total

    @property
    def is_tensor(self) -> bool:
        """Whether it is, or may be, a tensor."""
        return self.type is None

    def of_shape(self, shape: Shape | None) -> Fact:
        """The same element type with another shape, contents unknown."""
        return self if shape is self.shape and self.value is None else Fact(self.dtype, shape)

    def of_dtype(self, dtype: DType | None) -> Fact:
        """The same shape with another element type, contents unknown."""
        return self if dtype is self.dtype and self.value is None else Fact(dtype, self.shape)

    def without_value(self) -> Fact:
        """The same with unknown contents."""
        return self if self.value is None else replace(self, value=None)

    def to_type(self) -> ValueType | None:
        """The type to declare for it; ``None`` where the element type is not known."""
        if isinstance(self.type, (SequenceType, OptionalType)) and self.elem is not None:
            return replace(self.type, elem=self.elem.to_type())
        if self.type is not None:
            return self.type
        if self.dtype is None:
            return None
        return TensorType(self.dtype, None if self.shape is None else tuple(d.to_decl() for d in self.shape))

    def __str__(self) -> str:
        name = "?" if self.dtype is None else self.dtype.name.lower()
        if self.type is not None:
            return f"{type(self.type).__name__.removesuffix('Type').lower()}({self.elem or ''})"
        return name + ("" if self.shape is None else f"[{', '.join(map(str, self.shape))}]")


UNKNOWN = Fact()
"""Nothing is known."""


def from_type(declared: ValueType | None, shape: Shape | None) -> Fact:
    """The fact that ``declared`` states, with ``shape`` for the dimensions of a tensor."""
    if declared is None:
        return UNKNOWN
    if isinstance(declared, TensorType):
        return Fact(None if declared.dtype is DType.UNDEFINED else declared.dtype, shape)
    if isinstance(declared, MapType) or not isinstance(declared, (SequenceType, OptionalType)):
        return Fact(type=declared)
    inner = declared.elem.shape if isinstance(declared.elem, TensorType) else None
    dims = (
        None
        if inner is None
        else tuple(Dim.of(d) if isinstance(d, int) and d >= 0 else VARYING for d in inner)
    )
    return Fact(type=declared, elem=from_type(declared.elem, dims))


def conflict(a: Fact, b: Fact) -> str:
    """Why ``a`` and ``b`` cannot both be true; empty where they can."""
    if a.dtype is not None and b.dtype is not None and a.dtype is not b.dtype:
        return f"element type {a.dtype.name} against {b.dtype.name}"
    if a.shape is None or b.shape is None or a.shape is b.shape:
        return ""
    if len(a.shape) != len(b.shape):
        return f"rank {len(a.shape)} against {len(b.shape)}"
    for axis, (p, q) in enumerate(zip(a.shape, b.shape, strict=True)):
        if p is not q and p.eq(q) is False:
            return f"axis {axis} is {p} against {q}"
    return ""


def meet(a: Fact, b: Fact) -> Fact:
    """Both statements in one, the more precise of the two at each place; ``a`` wins a conflict."""
    if a is b or b is UNKNOWN:
        return a
    if a is UNKNOWN or conflict(a, b):
        return b if a is UNKNOWN else a
    elem = a.elem if b.elem is None else b.elem if a.elem is None else meet(a.elem, b.elem)
    return Fact(
        a.dtype if a.dtype is not None else b.dtype,
        _meet_shapes(a.shape, b.shape),
        _meet_values(a.value, b.value),
        a.type or b.type,
        elem,
    )


def _meet_shapes(a: Shape | None, b: Shape | None) -> Shape | None:
    if a is None or b is None or a == b:
        return a if b is None else b if a is None else a
    return tuple(_more_precise(p, q) for p, q in zip(a, b, strict=True))


def _more_precise(a: Dim, b: Dim) -> Dim:
    return b if (b.is_const and not a.is_const) or (b.is_known and not a.is_known) else a


def _meet_values(a: Elements | None, b: Elements | None) -> Elements | None:
    if a is None or b is None or a.shape != b.shape:
        return a if a is not None else b
    return Elements.of(
        [
            q if p is None or (isinstance(p, Dim) and isinstance(q, Dim) and _more_precise(p, q) is q) else p
            for p, q in zip(a.items, b.items, strict=True)
        ],
        a.shape,
    )
