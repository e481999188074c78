"""The protobuf wire format, as far as it saves copies of the weights.

A protobuf message owns its bytes: parsing a model copies every weight into the message, and reading a
weight copies it once more. So the bulky ``raw_data`` of the main graph's initializers is cut out of a
serialized model before parsing (``split``), and put back behind it on writing (``join``). What the
format means: https://protobuf.dev/programming-guides/encoding/.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onnx import ModelProto

Bytes = bytes | bytearray | memoryview

SMALLEST_SPLIT = 1 << 20
"""Models of fewer bytes are parsed whole."""
SMALLEST_RAW = 1 << 10
"""Tensors of fewer bytes stay in the message."""

_GRAPH = ModelProto.GRAPH_FIELD_NUMBER
_INITIALIZER = 5
_RAW_DATA = 9
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5


def split(data: bytes) -> tuple[bytes, dict[int, memoryview]]:
    """Cuts the bulky ``raw_data`` of the main graph's initializers out of a serialized model.

    Returns:
        The model without them, and the cut bytes (views into ``data``) by position in
        ``graph.initializer``. Data that is no model comes back as it is: parsing will say so.
    """
    if len(data) < SMALLEST_SPLIT:
        return data, {}
    try:
        return _split_model(memoryview(data))
    except (IndexError, ValueError):
        return data, {}


def join(model: ModelProto, raw: dict[int, Bytes]) -> Iterator[Bytes]:
    """Serializes ``model`` with ``raw`` as the ``raw_data`` of its initializers, piece by piece.

    Args:
        raw: bytes by position in ``model.graph.initializer``. The graph of ``model`` is used up.
    """
    headers = [tensor.SerializeToString() for tensor in model.graph.initializer]
    del model.graph.initializer[:]
    graph = model.graph.SerializeToString()
    model.ClearField("graph")
    initializers = [_framed(header, raw.get(i)) for i, header in enumerate(headers)]
    size = len(graph) + sum(len(piece) for pieces in initializers for piece in pieces)
    yield model.SerializeToString()
    yield _prefix(_GRAPH, size)
    yield graph
    for pieces in initializers:
        yield from pieces


def _framed(header: bytes, raw: Bytes | None) -> Sequence[Bytes]:
    """One initializer as a field of the graph."""
    if raw is None:
        return (_prefix(_INITIALIZER, len(header)), header)
    inner = _prefix(_RAW_DATA, len(raw))
    return (_prefix(_INITIALIZER, len(header) + len(inner) + len(raw)), header, inner, raw)


def _split_model(data: memoryview) -> tuple[bytes, dict[int, memoryview]]:
    raw: dict[int, memoryview] = {}
    kept: list[Bytes] = []
    seen = 0
    for number, start, body, end in _fields(data, 0, len(data)):
        if number != _GRAPH:
            kept.append(data[start:end])
            continue
        parts: list[Bytes] = []
        mark = body
        for inner, inner_start, inner_body, inner_end in _fields(data, body, end):
            if inner == _INITIALIZER:
                if inner_end - inner_body >= SMALLEST_RAW:
                    header, found = _split_tensor(data, inner_body, inner_end)
                    if found is not None:
                        raw[seen] = found
                        parts += [data[mark:inner_start], _prefix(_INITIALIZER, len(header)), header]
                        mark = inner_end
                seen += 1
        parts.append(data[mark:end])
        kept += [_prefix(_GRAPH, sum(map(len, parts))), *parts]
    return b"".join(kept), raw


def _split_tensor(data: memoryview, start: int, end: int) -> tuple[bytes, memoryview | None]:
    header: list[memoryview] = []
    raw = None
    for number, field_start, body, field_end in _fields(data, start, end):
        if number == _RAW_DATA:
            raw = data[body:field_end]
        else:
            header.append(data[field_start:field_end])
    if raw is None or len(raw) < SMALLEST_RAW:
        return b"", None
    return b"".join(header), raw


def _fields(data: memoryview, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """The fields in ``data[at:end]``: number, start, start of the payload, end."""
    while at < end:
        start = at
        tag = data[at]
        at += 1
        if tag >= 0x80:
            tag, at = _varint(data, start)
        kind = tag & 7
        if kind == _LENGTH:
            size = data[at]
            at += 1
            if size >= 0x80:
                size, at = _varint(data, at - 1)
            body, at = at, at + size
        elif kind == _VARINT:
            body = at
            _, at = _varint(data, at)
        elif kind in (_FIXED64, _FIXED32):
            body, at = at, at + (8 if kind == _FIXED64 else 4)
        else:
            raise ValueError("groups are not used by ONNX")
        if at > end:
            raise ValueError("field longer than its message")
        yield tag >> 3, start, body, at


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("varint longer than ten bytes")


def _prefix(number: int, size: int) -> bytes:
    """Tag and length of a length-delimited field."""
    encoded = bytearray([number << 3 | _LENGTH])
    while size >= 0x80:
        encoded.append(size & 0x7F | 0x80)
        size >>= 7
    encoded.append(size)
    return bytes(encoded)
