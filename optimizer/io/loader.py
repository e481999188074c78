"""``load``: a file, bytes or a ModelProto becomes a ``Model``."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from onnx import FunctionProto, ModelProto, OperatorSetIdProto, ValueInfoProto

from optimizer.io.attributes import read_attribute
from optimizer.io.calls import check_calls
from optimizer.io.draft import Notes, draft_graph, draft_scope
from optimizer.io.files import ExternalFiles, decode, read_bytes
from optimizer.io.pause import no_garbage_collection
from optimizer.io.required import check_requirements
from optimizer.io.scope import Reader, canonical_domain
from optimizer.io.typeprotos import has_negative_dim, read_metadata, text_of
from optimizer.io.wire import split
from optimizer.ir import Function, InvalidModel, Model

DECLARED = "declared"
"""Key of ``Model.extras``: graph inputs and outputs whose declaration the IR cannot hold word for word."""
_EXTRAS = ("training_info", "configuration")
_PROTOBUF_LIMIT = 2**31 - 1


def load(
    source: str | os.PathLike[str] | bytes | ModelProto,
    *,
    freeze_initializers: bool = False,
    check_types: bool = True,
) -> Model:
    """Reads a model.

    Weights are not read yet: they stay views of the file's bytes, or memory-mapped external data.

    Args:
        source: path of a file, a serialized model, or a ModelProto (not kept, not changed).
        freeze_initializers: make constants of initializers that callers could override.
        check_types: refuse operators that read constants or inputs of types they do not take. Not for the
            result of a rewrite: a constant may show what was wrong with the original, but hidden, before.

    Raises:
        StorageError: the file is not there or may not be read.
        InvalidModel: it is no ONNX model, or one that cannot mean anything.
    """
    path = Path(source) if isinstance(source, (str, os.PathLike)) else None
    try:
        with no_garbage_collection():
            files = ExternalFiles(path.parent if path else None)
            proto, raw = _parse(source, path)
            model = _build(proto, Reader(files, raw, Notes()), freeze_initializers)
            check_requirements(model, types=check_types)
            check_calls(model)
            model.external_files = files.used
            return model
    except InvalidModel as error:
        line = " ".join(str(error).splitlines())  # names may hold anything
        raise InvalidModel(f"{path}: {line}" if path else line) from error


def _parse(
    source: str | os.PathLike[str] | bytes | ModelProto, path: Path | None
) -> tuple[ModelProto, dict[int, memoryview]]:
    if isinstance(source, ModelProto):
        if source.ByteSize() > _PROTOBUF_LIMIT:
            return source, {}
        source = source.SerializeToString()  # the caller may go on changing it
    if path is not None:
        source = read_bytes(path)
    assert isinstance(source, (bytes, bytearray, memoryview))
    data = bytes(source)
    if not data:
        raise InvalidModel("not an ONNX model: no bytes")
    header, raw = split(data)
    return decode(header, data), raw


def _build(proto: ModelProto, reader: Reader, freeze: bool) -> Model:
    notes = reader.notes
    reader.ir_version = proto.ir_version
    opsets = _opsets(proto.opset_import, notes)
    if not opsets and proto.ir_version < 3:
        opsets = {"": 1}  # files this old have no import: operator set 1
    draft = draft_graph(proto.graph, (), notes)
    if draft.free:
        name = draft.free[0]
        raise InvalidModel(f"undefined tensor '{name}', read by {draft.reader_of(name)}")
    graph = reader.read_graph(draft, opsets, freeze=freeze, main=True)
    functions = [_function(function, reader) for function in proto.functions]
    model = Model(
        graph,
        proto.ir_version,
        {function.key: function for function in functions},
        text_of(proto.producer_name),
        text_of(proto.producer_version),
        text_of(proto.domain),
        proto.model_version,
        text_of(proto.doc_string),
        read_metadata(proto.metadata_props),
        extras=_extras(proto, notes),
    )
    if len(model.functions) != len(functions):
        raise InvalidModel("two functions have the same domain, name and overload")
    reader.note_unknown_operators(model.functions)
    model.warnings = notes.lines()
    return model


def _opsets(imports: Iterable[OperatorSetIdProto], notes: Notes) -> dict[str, int]:
    opsets: dict[str, int] = {}
    for entry in imports:
        domain = canonical_domain(entry.domain)
        if opsets.setdefault(domain, entry.version) != entry.version:
            notes.add("a domain is imported in two versions (the higher one is taken)", f"'{domain}'")
            opsets[domain] = max(opsets[domain], entry.version)
    return opsets


def _function(proto: FunctionProto, reader: Reader) -> Function:
    where = f"function '{proto.domain}::{proto.name}'"
    given = {name: f"input '{name}'" for name in proto.input}
    if len(given) != len(proto.input):
        raise InvalidModel(f"duplicate producer: {where} has two inputs of one name")
    if "" in given:
        raise InvalidModel(f"an input of {where} has no name")
    draft = draft_scope(proto.node, given, proto.output, where, (), reader.notes)
    if draft.free:
        name = draft.free[0]
        raise InvalidModel(f"undefined tensor '{name}' in {where}, read by {draft.reader_of(name)}")
    graph = reader.read_function(draft, proto, _opsets(proto.opset_import, reader.notes))
    return Function(
        canonical_domain(proto.domain),
        text_of(proto.name),
        graph,
        text_of(proto.overload),
        tuple(map(text_of, proto.attribute)),
        {text_of(a.name): read_attribute(a, reader.files, reader.no_body) for a in proto.attribute_proto},
        text_of(proto.doc_string),
        read_metadata(proto.metadata_props),
    )


def _extras(proto: ModelProto, notes: Notes) -> dict[str, tuple[bytes, ...]]:
    extras = {
        name: tuple(message.SerializeToString() for message in getattr(proto, name))
        for name in _EXTRAS
        if len(getattr(proto, name))
    }
    if proto.training_info:
        notes.add("training information is kept as it is", f"{len(proto.training_info)} part(s)")
    odd = [info for info in (*proto.graph.input, *proto.graph.output) if _is_odd(info, notes)]
    if odd:
        extras[DECLARED] = tuple(info.SerializeToString() for info in odd)
    return extras


def _is_odd(info: ValueInfoProto, notes: Notes) -> bool:
    if not has_negative_dim(info.type):
        return False
    notes.add("negative sizes are declared (taken as unknown)", f"'{info.name}'")
    return True
