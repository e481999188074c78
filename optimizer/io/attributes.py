"""AttributeProto, in and out, all fourteen kinds and references to a function's attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from onnx import AttributeProto, GraphProto, TypeProto

from optimizer.io.files import ExternalFiles
from optimizer.io.tensors import (
    decode_text,
    encode_text,
    read_sparse,
    read_tensor,
    write_sparse,
    write_tensor,
)
from optimizer.io.typeprotos import read_type, text_of, write_type
from optimizer.ir import Attribute, AttributeKind, DType, Graph, InvalidModel, TensorType, ValueType

_Kind = AttributeKind
_GRAPH, _GRAPHS = int(_Kind.GRAPH), int(_Kind.GRAPHS)
_FIELDS = {
    _Kind.FLOAT: "f",
    _Kind.INT: "i",
    _Kind.STRING: "s",
    _Kind.TENSOR: "t",
    _Kind.GRAPH: "g",
    _Kind.SPARSE_TENSOR: "sparse_tensor",
    _Kind.TYPE_PROTO: "tp",
    _Kind.FLOATS: "floats",
    _Kind.INTS: "ints",
    _Kind.STRINGS: "strings",
    _Kind.TENSORS: "tensors",
    _Kind.GRAPHS: "graphs",
    _Kind.SPARSE_TENSORS: "sparse_tensors",
    _Kind.TYPE_PROTOS: "type_protos",
}


def bodies_of(proto: AttributeProto) -> Iterator[GraphProto]:
    """The graphs an attribute holds."""
    kind = proto.type
    if kind not in (_GRAPH, _GRAPHS, 0) or proto.ref_attr_name:
        return
    if kind == _GRAPH or (not kind and proto.HasField("g")):
        yield proto.g
    elif len(proto.graphs):
        yield from proto.graphs


def read_attribute(
    proto: AttributeProto, files: ExternalFiles, read_body: Callable[[GraphProto], Graph]
) -> Attribute:
    """One attribute.

    Raises:
        InvalidModel: it has neither a value nor a reference, or a kind ONNX does not know.
    """
    number = proto.type
    if number == AttributeProto.INT and not proto.ref_attr_name and not proto.doc_string:
        return Attribute(_Kind.INT, proto.i)  # the most frequent kinds first: there are many attributes
    if number == AttributeProto.INTS and not proto.ref_attr_name and not proto.doc_string:
        return Attribute(_Kind.INTS, tuple(proto.ints))
    kind = _kind(proto)
    if proto.ref_attr_name:
        return Attribute(kind, None, text_of(proto.ref_attr_name), text_of(proto.doc_string))
    return Attribute(kind, _read_value(proto, kind, files, read_body), "", text_of(proto.doc_string))


def _kind(proto: AttributeProto) -> AttributeKind:
    try:
        return AttributeKind(proto.type)
    except ValueError:
        pass
    # Very old files state no type: the field that is set tells.
    set_fields = [kind for kind, field in _FIELDS.items() if _is_set(proto, field)]
    if proto.type or len(set_fields) != 1:
        raise InvalidModel(f"attribute '{proto.name}' has no value of a known kind")
    return set_fields[0]


def _is_set(proto: AttributeProto, field: str) -> bool:
    repeated = field in ("floats", "ints", "strings", "tensors", "graphs", "sparse_tensors", "type_protos")
    return len(getattr(proto, field)) > 0 if repeated else proto.HasField(field)


def _read_value(
    proto: AttributeProto,
    kind: AttributeKind,
    files: ExternalFiles,
    read_body: Callable[[GraphProto], Graph],
) -> Any:
    name = proto.name
    match kind:
        case _Kind.FLOAT:
            return proto.f
        case _Kind.INT:
            return proto.i
        case _Kind.STRING:
            return decode_text(proto.s)
        case _Kind.TENSOR:
            return read_tensor(proto.t, files, name=name)
        case _Kind.GRAPH:
            return read_body(proto.g)
        case _Kind.SPARSE_TENSOR:
            return read_sparse(proto.sparse_tensor, files, name)
        case _Kind.TYPE_PROTO:
            return read_declared(proto.tp)
        case _Kind.FLOATS:
            return tuple(proto.floats)
        case _Kind.INTS:
            return tuple(proto.ints)
        case _Kind.STRINGS:
            return tuple(decode_text(s) for s in proto.strings)
        case _Kind.TENSORS:
            return tuple(read_tensor(t, files, name=name) for t in proto.tensors)
        case _Kind.GRAPHS:
            return tuple(read_body(g) for g in proto.graphs)
        case _Kind.SPARSE_TENSORS:
            return tuple(read_sparse(s, files, name) for s in proto.sparse_tensors)
        case _Kind.TYPE_PROTOS:
            return tuple(read_declared(t) for t in proto.type_protos)


def read_declared(proto: TypeProto) -> ValueType:
    """A type that must be there; one that says nothing is a tensor of unknown element type."""
    return read_type(proto) or TensorType(DType.UNDEFINED)


def write_attribute(
    name: str, attribute: Attribute, proto: AttributeProto, write_body: Callable[[Graph, GraphProto], None]
) -> None:
    """Fills ``proto``, which must be empty. Bodies are written in their order."""
    proto.name = name
    proto.type = int(attribute.kind)  # type: ignore[assignment]
    if attribute.doc_string:
        proto.doc_string = attribute.doc_string
    if attribute.reference:
        proto.ref_attr_name = attribute.reference
        return
    value = attribute.value
    match attribute.kind:
        case _Kind.FLOAT:
            proto.f = value
        case _Kind.INT:
            proto.i = value
        case _Kind.STRING:
            proto.s = encode_text(value)
        case _Kind.TENSOR:
            write_tensor(value, None, proto.t, keep_raw=True)
        case _Kind.GRAPH:
            write_body(value, proto.g)
        case _Kind.SPARSE_TENSOR:
            write_sparse(value, proto.sparse_tensor)
        case _Kind.TYPE_PROTO:
            write_type(value, proto.tp)
        case _Kind.FLOATS:
            proto.floats.extend(value)
        case _Kind.INTS:
            proto.ints.extend(value)
        case _:
            _write_rare_list(attribute, proto, write_body)


def _write_rare_list(
    attribute: Attribute, proto: AttributeProto, write_body: Callable[[Graph, GraphProto], None]
) -> None:
    for item in attribute.value:
        match attribute.kind:
            case _Kind.STRINGS:
                proto.strings.append(encode_text(item))
            case _Kind.TENSORS:
                write_tensor(item, None, proto.tensors.add(), keep_raw=True)
            case _Kind.GRAPHS:
                write_body(item, proto.graphs.add())
            case _Kind.SPARSE_TENSORS:
                write_sparse(item, proto.sparse_tensors.add())
            case _Kind.TYPE_PROTOS:
                write_type(item, proto.type_protos.add())
