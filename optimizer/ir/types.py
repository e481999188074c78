"""Element types and the declared types of values, under ONNX's own names and numbers.

A declared dimension is an ``int``, a name (``dim_param``) or ``None`` (unknown). Symbolic
arithmetic on dimensions is the business of ``optimizer.analysis``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np


class DType(IntEnum):
    """Element types, numbered as ``onnx.TensorProto.DataType``."""

    UNDEFINED = 0
    FLOAT = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    STRING = 8
    BOOL = 9
    FLOAT16 = 10
    DOUBLE = 11
    UINT32 = 12
    UINT64 = 13
    COMPLEX64 = 14
    COMPLEX128 = 15
    BFLOAT16 = 16
    FLOAT8E4M3FN = 17
    FLOAT8E4M3FNUZ = 18
    FLOAT8E5M2 = 19
    FLOAT8E5M2FNUZ = 20
    UINT4 = 21
    INT4 = 22
    FLOAT4E2M1 = 23
    FLOAT8E8M0 = 24
    UINT2 = 25
    INT2 = 26

    @property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy (or ml_dtypes) dtype that holds this element type; strings are objects."""
        return _NUMPY[self]

    @property
    def bits(self) -> int:
        """Bits one element takes in a serialized tensor (0 for strings)."""
        return _SUB_BYTE.get(self, 0 if self is DType.STRING else self.numpy.itemsize * 8)

    @property
    def is_float(self) -> bool:
        return self in _FLOATS

    @property
    def is_integer(self) -> bool:
        return self in _INTEGERS

    @classmethod
    def from_numpy(cls, dtype: np.dtype[Any] | type) -> DType:
        """The element type of a NumPy dtype.

        Raises:
            KeyError: the dtype has no ONNX counterpart.
        """
        dtype = np.dtype(dtype)
        return DType.STRING if dtype.kind in "OSU" else _FROM_NUMPY[dtype]


_NUMPY: dict[DType, np.dtype[Any]] = {
    DType.FLOAT: np.dtype(np.float32),
    DType.UINT8: np.dtype(np.uint8),
    DType.INT8: np.dtype(np.int8),
    DType.UINT16: np.dtype(np.uint16),
    DType.INT16: np.dtype(np.int16),
    DType.INT32: np.dtype(np.int32),
    DType.INT64: np.dtype(np.int64),
    DType.STRING: np.dtype(object),
    DType.BOOL: np.dtype(np.bool_),
    DType.FLOAT16: np.dtype(np.float16),
    DType.DOUBLE: np.dtype(np.float64),
    DType.UINT32: np.dtype(np.uint32),
    DType.UINT64: np.dtype(np.uint64),
    DType.COMPLEX64: np.dtype(np.complex64),
    DType.COMPLEX128: np.dtype(np.complex128),
    DType.BFLOAT16: np.dtype(ml_dtypes.bfloat16),
    DType.FLOAT8E4M3FN: np.dtype(ml_dtypes.float8_e4m3fn),
    DType.FLOAT8E4M3FNUZ: np.dtype(ml_dtypes.float8_e4m3fnuz),
    DType.FLOAT8E5M2: np.dtype(ml_dtypes.float8_e5m2),
    DType.FLOAT8E5M2FNUZ: np.dtype(ml_dtypes.float8_e5m2fnuz),
    DType.UINT4: np.dtype(ml_dtypes.uint4),
    DType.INT4: np.dtype(ml_dtypes.int4),
    DType.FLOAT4E2M1: np.dtype(ml_dtypes.float4_e2m1fn),
    DType.FLOAT8E8M0: np.dtype(ml_dtypes.float8_e8m0fnu),
    DType.UINT2: np.dtype(ml_dtypes.uint2),
    DType.INT2: np.dtype(ml_dtypes.int2),
}
_FROM_NUMPY: dict[np.dtype[Any], DType] = {held: dtype for dtype, held in _NUMPY.items()}
_SUB_BYTE = {DType.UINT4: 4, DType.INT4: 4, DType.FLOAT4E2M1: 4, DType.UINT2: 2, DType.INT2: 2}
_FLOATS = frozenset({DType.FLOAT, DType.DOUBLE, DType.FLOAT16, DType.BFLOAT16}) | {
    t for t in DType if t.name.startswith(("FLOAT8", "FLOAT4"))
}
_INTEGERS = frozenset(t for t in DType if t.name.lstrip("U").startswith("INT"))

DimDecl: TypeAlias = int | str | None
"""A declared dimension: a number, a name, or unknown."""

ShapeDecl: TypeAlias = tuple[DimDecl, ...] | None
"""A declared shape; ``None`` means that not even the rank is known."""


@dataclass(frozen=True, slots=True)
class TensorType:
    """A dense tensor (or, with ``sparse``, a sparse one) of ``dtype`` and ``shape``."""

    dtype: DType
    shape: ShapeDecl = None
    denotation: str = ""
    dim_denotations: tuple[str, ...] = ()
    sparse: bool = False


@dataclass(frozen=True, slots=True)
class SequenceType:
    elem: ValueType | None
    denotation: str = ""


@dataclass(frozen=True, slots=True)
class OptionalType:
    elem: ValueType | None
    denotation: str = ""


@dataclass(frozen=True, slots=True)
class MapType:
    key: DType
    value: ValueType | None
    denotation: str = ""


@dataclass(frozen=True, slots=True)
class OpaqueType:
    domain: str
    name: str
    denotation: str = ""


ValueType: TypeAlias = TensorType | SequenceType | OptionalType | MapType | OpaqueType
