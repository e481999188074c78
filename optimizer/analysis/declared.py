"""What declared types state, and how far they are believed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from optimizer.analysis.dims import Dim, DimLike
from optimizer.analysis.fact import UNKNOWN, Fact, Shape, conflict, from_type
from optimizer.analysis.ranges import SizeRange
from optimizer.ir import TensorType, ValueInfo, ValueType


class Names:
    """What the names of open dims stand for.

    Args:
        dims: a number, another dim, or the sizes it may have, by name; ``input:axis`` for an unnamed axis.
        least: the smallest size of all other open dims.
    """

    def __init__(self, dims: Mapping[str, DimLike | SizeRange], least: int = 0) -> None:
        self._ranges = {name: dim for name, dim in dims.items() if isinstance(dim, SizeRange)}
        self._dims = {name: Dim.of(dim) for name, dim in dims.items() if not isinstance(dim, SizeRange)}
        self._least = least

    def named(self, name: str) -> Dim:
        """The dim of a ``dim_param``."""
        return self._dims[name] if name in self._dims else Dim.symbol(name, *self._limits(name))

    def unnamed(self, name: str, axis: int) -> Dim:
        """The dim of an axis of the graph input ``name`` that is declared without a name."""
        key = f"{name}:{axis}"
        return self._dims[key] if key in self._dims else Dim.axis(name, axis, *self._limits(key))

    def _limits(self, key: str) -> tuple[int, int | None, int]:
        limits = self._ranges.get(key)
        return (self._least, None, 1) if limits is None else (limits.lo, limits.hi, limits.divisor)


def declared_fact(info: ValueInfo, names: Names, *, nameable: bool) -> Fact:
    """What the declared type of a value states.

    Args:
        nameable: it is an input of the main graph, so that an axis without a name can be called by
            input and number.
    """
    if not isinstance(info.type, TensorType) or info.type.shape is None:
        return from_type(info.type, None)
    shape = []
    for axis, dim in enumerate(info.type.shape):
        if isinstance(dim, int) and dim >= 0:
            shape.append(Dim.of(dim))
        elif isinstance(dim, str) and dim:
            shape.append(names.named(dim))
        else:
            shape.append(names.unnamed(info.name, axis) if nameable and info.name else Dim.fresh(info.name))
    return from_type(info.type, tuple(shape))


def clash(inferred: Fact, info: ValueInfo) -> str:
    """How the declared type contradicts what is inferred; empty where it does not."""
    fault = conflict(inferred, _plain(info))
    return fault and f"'{info.name}' is declared otherwise than inferred: {fault} (declared)"


def with_declared_type(inferred: Fact, info: ValueInfo) -> Fact:
    """``inferred``, with the declared element type where none is inferred. Declared sizes never count."""
    if inferred.dtype is not None or inferred.type is not None:
        return inferred
    plain = _plain(info)
    return replace(inferred, dtype=plain.dtype, type=plain.type, elem=plain.elem and UNKNOWN)


def _plain(info: ValueInfo) -> Fact:
    return from_type(info.type, _literal(info.type))


def _literal(declared: ValueType | None) -> Shape | None:
    """The declared numbers; unknowns in the place of names, which state nothing that can be wrong."""
    if not isinstance(declared, TensorType) or declared.shape is None:
        return None
    return tuple(Dim.of(d) if isinstance(d, int) and d >= 0 else _SOME for d in declared.shape)


_SOME = Dim.fresh("any", lo=float("-inf"))
