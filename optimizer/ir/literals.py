"""How types, constants and attributes are spelled in ONNX text syntax."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from optimizer.ir.node import Attribute, AttributeKind, SparseTensor
from optimizer.ir.tensor import Tensor
from optimizer.ir.types import (
    DimDecl,
    DType,
    MapType,
    OpaqueType,
    OptionalType,
    SequenceType,
    TensorType,
    ValueType,
)

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEYWORDS = {dtype.name.lower() for dtype in DType} | {"seq", "map", "optional", "sparse_tensor"}
_FLOAT_WORDS = {"inf", "infinity", "nan"}
_EMPTY_LISTS = {kind: kind.name.lower() for kind in AttributeKind if kind.name.endswith("S")}
_SINGLE = {
    AttributeKind.FLOATS: AttributeKind.FLOAT,
    AttributeKind.INTS: AttributeKind.INT,
    AttributeKind.STRINGS: AttributeKind.STRING,
    AttributeKind.TENSORS: AttributeKind.TENSOR,
    AttributeKind.GRAPHS: AttributeKind.GRAPH,
    AttributeKind.SPARSE_TENSORS: AttributeKind.SPARSE_TENSOR,
    AttributeKind.TYPE_PROTOS: AttributeKind.TYPE_PROTO,
}
_AS_NUMBERS = frozenset(
    {DType.FLOAT, DType.DOUBLE, DType.COMPLEX64, DType.COMPLEX128, DType.BOOL, DType.STRING}
    | {dtype for dtype in DType if dtype.is_integer and dtype.bits >= 8}
)
"""Element types whose elements are written as such; of all others the bit patterns are."""


def string(text: str | bytes) -> str:
    """A string literal."""
    if isinstance(text, bytes):
        text = text.decode(errors="backslashreplace")
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def identifier(name: str) -> str:
    """A name, in quotes where it is no plain word."""
    return name if _PLAIN.fullmatch(name) and name not in _KEYWORDS else string(name)


def word(name: str, otherwise: str) -> str:
    """A name where no quotes may stand: other characters become underscores."""
    name = re.sub(r"\W", "_", name, flags=re.ASCII) or otherwise
    return name if _PLAIN.fullmatch(name) and name not in _KEYWORDS | _FLOAT_WORDS else f"_{name}"


def spell_type(declared: ValueType | None) -> str:
    """A type; ``float`` is a scalar, ``float[]`` a tensor of unknown rank."""
    match declared:
        case TensorType(dtype, shape):
            dims = "[]" if shape is None else f"[{','.join(map(_dim, shape))}]" if shape else ""
            tensor = dtype.name.lower() + dims
            return f"sparse_tensor({tensor})" if declared.sparse else tensor
        case SequenceType(elem):
            return f"seq({spell_type(elem)})"
        case OptionalType(elem):
            return f"optional({spell_type(elem)})"
        case MapType(key, value):
            return f"map({key.name.lower()}, {spell_type(value)})"
        case OpaqueType(domain, name):
            return f"opaque({domain}, {name})"
    return "?"


def _dim(size: DimDecl) -> str:
    return "?" if size is None else str(size) if isinstance(size, int) else identifier(size)


def tensor_type(tensor: Tensor) -> str:
    """The type of a constant."""
    return spell_type(TensorType(tensor.dtype, tensor.shape))


def elements(tensor: Tensor) -> str:
    """The elements in braces, as the parser takes them: small and packed floats as bit patterns."""
    return "{" + ", ".join(_entries(tensor)) + "}"


def remark(tensor: Tensor) -> str:
    """The elements for a reader, where ``elements`` spells bit patterns; otherwise empty."""
    if tensor.dtype in _AS_NUMBERS:
        return ""
    return ", ".join(_number(float(x)) for x in tensor.array.flat)


def _entries(tensor: Tensor) -> list[str]:
    array, dtype = tensor.array.reshape(-1), tensor.dtype
    if dtype is DType.STRING:
        return [string(text) for text in array]
    if dtype not in _AS_NUMBERS:
        return [str(int(code)) for code in _bit_patterns(array, dtype)]
    if dtype in (DType.COMPLEX64, DType.COMPLEX128):
        array = array.view(array.real.dtype)
    if array.dtype.kind == "f":
        return [_number(x) for x in array]
    return [str(int(x)) for x in array]


def _bit_patterns(array: np.ndarray, dtype: DType) -> np.ndarray:
    """One number per element; of elements below a byte, one per byte, the first in the lowest bits."""
    if dtype.bits >= 8:
        return array.view(f"u{array.itemsize}")
    codes = array.view(np.uint8) if dtype is DType.FLOAT4E2M1 else array.astype(np.int8).view(np.uint8)
    per_byte = 8 // dtype.bits
    padded = np.zeros(-(-codes.size // per_byte) * per_byte, np.uint8)
    padded[: codes.size] = codes & ((1 << dtype.bits) - 1)
    shifts = np.arange(0, 8, dtype.bits, dtype=np.uint8)
    packed: np.ndarray = np.bitwise_or.reduce(padded.reshape(-1, per_byte) << shifts, axis=1)
    return packed


def _number(value: float | np.floating[Any]) -> str:
    text = str(value)
    return text[:-2] if text.endswith(".0") else text


def spell_attribute(
    name: str, attribute: Attribute, max_elements: int | None, spell_graph: Callable[[Any], str]
) -> str:
    """``name = value``, with the kind where the value does not show it."""
    kind = attribute.kind
    if attribute.reference:
        return f"{name}: {kind.name.lower()} = @{identifier(attribute.reference)}"
    if kind in _SINGLE:
        items = [_spell_item(_SINGLE[kind], item, max_elements, spell_graph) for item in attribute.value]
        return f"{name} = [{', '.join(items)}]" if items else f"{name}: {_EMPTY_LISTS[kind]} = []"
    typed = ": type_proto" if kind is AttributeKind.TYPE_PROTO else ""
    return f"{name}{typed} = {_spell_item(kind, attribute.value, max_elements, spell_graph)}"


def _spell_item(
    kind: AttributeKind, value: Any, max_elements: int | None, spell_graph: Callable[[Any], str]
) -> str:
    match kind:
        case AttributeKind.FLOAT:
            return str(np.float32(value))
        case AttributeKind.INT:
            return str(int(value))
        case AttributeKind.STRING:
            return string(value)
        case AttributeKind.TENSOR:
            shown = elements(value) if is_short(value, max_elements) else "{...}"
            return f"{tensor_type(value)} {shown}"
        case AttributeKind.GRAPH:
            return spell_graph(value)
        case AttributeKind.TYPE_PROTO:
            return spell_type(value)
    assert isinstance(value, SparseTensor)
    declared = TensorType(value.values.dtype, value.shape, sparse=True)
    return f"{spell_type(declared)} {{{value.values.size} values}}"


def is_short(tensor: Tensor, max_elements: int | None) -> bool:
    """Whether a constant is to be written out."""
    return max_elements is None or tensor.size <= max_elements
