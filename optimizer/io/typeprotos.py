"""TypeProto and ValueInfoProto, in and out."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache

from onnx import StringStringEntryProto, TensorShapeProto, TypeProto, ValueInfoProto

from optimizer.ir import (
    DimDecl,
    DType,
    InvalidModel,
    MapType,
    OpaqueType,
    OptionalType,
    SequenceType,
    ShapeDecl,
    TensorType,
    ValueInfo,
    ValueType,
)

_LARGEST = 1 << 60
"""Elements of a tensor: its bytes are counted in 63 bits."""


def read_dtype(number: int) -> DType:
    """The element type with a number of ``TensorProto.DataType``.

    Raises:
        InvalidModel: there is no such number.
    """
    try:
        return DType(number)
    except ValueError:
        raise InvalidModel(f"unknown element type {number}") from None


def read_type(proto: TypeProto) -> ValueType | None:
    """A declared type; ``None`` where the message declares nothing. Negative sizes count as unknown."""
    return _read_serialized(proto.SerializeToString())


@lru_cache(maxsize=4096)
def _read_serialized(data: bytes) -> ValueType | None:
    # A model declares the same few types over and over; reading one field by field costs ten times more.
    return _read(TypeProto.FromString(data))


def _read(proto: TypeProto) -> ValueType | None:
    note = text_of(proto.denotation)
    match proto.WhichOneof("value"):
        case "tensor_type":
            return _read_tensor_type(proto.tensor_type, note, sparse=False)
        case "sparse_tensor_type":
            return _read_tensor_type(proto.sparse_tensor_type, note, sparse=True)
        case "sequence_type":
            return SequenceType(_read(proto.sequence_type.elem_type), note)
        case "optional_type":
            return OptionalType(_read(proto.optional_type.elem_type), note)
        case "map_type":
            return MapType(read_dtype(proto.map_type.key_type), _read(proto.map_type.value_type), note)
        case "opaque_type":
            opaque = proto.opaque_type
            return OpaqueType(text_of(opaque.domain), text_of(opaque.name), note)
    return None


def _read_tensor_type(
    proto: TypeProto.Tensor | TypeProto.SparseTensor, note: str, sparse: bool
) -> TensorType:
    shape: ShapeDecl = None
    notes: tuple[str, ...] = ()
    if proto.HasField("shape"):
        shape = tuple(_read_dim(dim) for dim in proto.shape.dim)
        notes = tuple(text_of(dim.denotation) for dim in proto.shape.dim)
    return TensorType(read_dtype(proto.elem_type), shape, note, notes if any(notes) else (), sparse)


def _read_dim(dim: TensorShapeProto.Dimension) -> DimDecl:
    if dim.HasField("dim_value"):
        return dim.dim_value if dim.dim_value >= 0 else None
    return text_of(dim.dim_param) or None


def has_negative_dim(proto: TypeProto) -> bool:
    """Whether a declared tensor shape (of an element, for a container) has a negative size."""
    match proto.WhichOneof("value"):
        case "tensor_type":
            return any(dim.dim_value < 0 for dim in proto.tensor_type.shape.dim)
        case "sequence_type":
            return has_negative_dim(proto.sequence_type.elem_type)
        case "optional_type":
            return has_negative_dim(proto.optional_type.elem_type)
    return False


def write_type(declared: ValueType, proto: TypeProto) -> None:
    """Fills ``proto``, which must be empty."""
    proto.MergeFromString(_serialized(declared))


@lru_cache(maxsize=4096)
def _serialized(declared: ValueType) -> bytes:
    proto = TypeProto()
    _write(declared, proto)
    return bytes(proto.SerializeToString())


def _write(declared: ValueType, proto: TypeProto) -> None:
    if declared.denotation:
        proto.denotation = declared.denotation
    match declared:
        case TensorType():
            target = proto.sparse_tensor_type if declared.sparse else proto.tensor_type
            target.elem_type = int(declared.dtype)
            if declared.shape is not None:
                _write_shape(declared, target.shape)
        case SequenceType(elem):
            proto.sequence_type.SetInParent()
            if elem is not None:
                _write(elem, proto.sequence_type.elem_type)
        case OptionalType(elem):
            proto.optional_type.SetInParent()
            if elem is not None:
                _write(elem, proto.optional_type.elem_type)
        case MapType(key, value):
            proto.map_type.key_type = int(key)
            if value is not None:
                _write(value, proto.map_type.value_type)
        case OpaqueType(domain, name):
            proto.opaque_type.SetInParent()
            if domain:
                proto.opaque_type.domain = domain
            if name:
                proto.opaque_type.name = name


def _write_shape(declared: TensorType, proto: TensorShapeProto) -> None:
    proto.SetInParent()
    for axis, size in enumerate(declared.shape or ()):
        dim = proto.dim.add()
        if isinstance(size, int):
            dim.dim_value = size
        elif size:
            dim.dim_param = size
        if declared.dim_denotations and declared.dim_denotations[axis]:
            dim.denotation = declared.dim_denotations[axis]


def read_info(proto: ValueInfoProto) -> ValueInfo:
    """Name, type and texts of a value."""
    return ValueInfo(
        proto.name,
        read_type(proto.type) if proto.HasField("type") else None,
        text_of(proto.doc_string),
        read_metadata(proto.metadata_props),
    )


def read_input(proto: ValueInfoProto) -> ValueInfo:
    """``read_info`` of what a graph is given.

    Raises:
        InvalidModel: its size is past all that tensors can be.
    """
    info = read_info(proto)
    shape = info.type.shape if isinstance(info.type, TensorType) and info.type.shape else ()
    sizes = [size for size in shape if isinstance(size, int)]
    if len(sizes) == len(shape) and math.prod(sizes) > _LARGEST:
        raise InvalidModel(f"input '{info.name}' is declared of shape {sizes}: no tensor is that large")
    return info


def write_info(info: ValueInfo, name: str, proto: ValueInfoProto) -> None:
    """Fills ``proto``, which must be empty, under the name given."""
    proto.name = name
    if info.type is not None:
        write_type(info.type, proto.type)
    if info.doc_string:
        proto.doc_string = info.doc_string
    if info.metadata:
        write_metadata(info.metadata, proto.metadata_props)


def text_of(text: str | bytes) -> str:
    """Any text but a tensor's name. Protobuf gives bytes where it is not valid UTF-8; they get escaped."""
    return text if isinstance(text, str) else text.decode(errors="backslashreplace")


def read_metadata(entries: Iterable[StringStringEntryProto]) -> tuple[tuple[str, str], ...]:
    """``metadata_props`` as pairs, in order."""
    return tuple((text_of(entry.key), text_of(entry.value)) for entry in entries)


def write_metadata(pairs: Iterable[tuple[str, str]], entries: object) -> None:
    """Appends pairs to a ``metadata_props`` field."""
    add = entries.add  # type: ignore[attr-defined]
    for key, value in pairs:
        add(key=key, value=value)
