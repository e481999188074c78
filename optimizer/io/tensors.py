"""TensorProto and SparseTensorProto to and from lazy constants, in every encoding ONNX has."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from onnx import SparseTensorProto, TensorProto

from optimizer.io.files import ExternalFiles
from optimizer.io.typeprotos import read_dtype
from optimizer.io.wire import SMALLEST_RAW, Bytes
from optimizer.ir import DType, InvalidModel, SparseTensor, Tensor

_TYPED_FIELDS = ("float_data", "int32_data", "int64_data", "double_data", "uint64_data")
_FIELD_OF: dict[DType, tuple[str, type[np.generic]]] = {
    DType.FLOAT: ("float_data", np.float32),
    DType.COMPLEX64: ("float_data", np.float32),
    DType.INT64: ("int64_data", np.int64),
    DType.DOUBLE: ("double_data", np.float64),
    DType.COMPLEX128: ("double_data", np.float64),
    DType.UINT32: ("uint64_data", np.uint32),
    DType.UINT64: ("uint64_data", np.uint64),
}
"""Field of each element type and what one entry of it holds; all others use ``int32_data``."""


@dataclass(frozen=True, slots=True)
class Stored:
    """Where a constant was read from: ``Tensor.source`` of everything that ``io`` loads.

    ``raw`` holds the elements where they are not in ``proto`` itself: a view into the model
    file's bytes, or into memory-mapped external data.
    """

    proto: TensorProto | SparseTensorProto
    raw: memoryview | None = None

    @property
    def bytes(self) -> Bytes:
        """The serialized elements of a dense constant that has raw data."""
        if self.raw is not None:
            return self.raw
        assert isinstance(self.proto, TensorProto)
        return self.proto.raw_data


def read_tensor(
    proto: TensorProto, files: ExternalFiles, raw: memoryview | None = None, name: str = ""
) -> Tensor:
    """A lazy constant. Sizes are checked now, elements are read on first use.

    Args:
        raw: the elements' bytes, where they were cut out of ``proto``.
        name: what messages call the tensor where it has no name itself.

    Raises:
        InvalidModel: unknown element type, negative size, data missing or of the wrong length.
    """
    name = proto.name or name
    dtype, shape = read_dtype(proto.data_type), tuple(proto.dims)
    if dtype is DType.UNDEFINED or any(size < 0 for size in shape) or proto.HasField("segment"):
        raise InvalidModel(f"tensor '{name}' has no element type, a negative size, or is a segment")
    count = math.prod(shape)
    if proto.data_location == TensorProto.EXTERNAL:
        raw = _external(proto, files, (count * dtype.bits + 7) // 8, name)
    if raw is not None or proto.HasField("raw_data"):
        found = len(proto.raw_data if raw is None else raw)
        if dtype is DType.STRING:
            raise InvalidModel(f"tensor '{name}' of strings has raw data; strings belong in string_data")
        _check_length(name, dtype, shape, "bytes of raw data", found, (count * dtype.bits + 7) // 8)
        return Tensor(
            dtype,
            shape,
            lambda: unpack(proto.raw_data if raw is None else raw, dtype, shape),
            Stored(proto, raw),
        )
    if dtype is DType.STRING:
        _check_length(name, dtype, shape, "entries of string_data", len(proto.string_data), count)
        return Tensor(dtype, shape, lambda: _strings(proto.string_data, shape), Stored(proto))
    field, entry = _FIELD_OF.get(dtype, ("int32_data", np.int32))
    bits = np.dtype(entry).itemsize * 8 if field != "int32_data" else min(max(dtype.bits, 8), 32)
    _check_length(
        name, dtype, shape, f"entries of {field}", len(getattr(proto, field)), -(-count * dtype.bits // bits)
    )
    return Tensor(
        dtype, shape, lambda: _from_entries(getattr(proto, field), entry, bits, dtype, shape), Stored(proto)
    )


def _check_length(
    name: str, dtype: DType, shape: tuple[int, ...], what: str, found: int, wanted: int
) -> None:
    if found != wanted:
        raise InvalidModel(
            f"tensor '{name}' ({dtype.name}{list(shape)}) has {found} {what}, {wanted} are needed"
        )


def _external(proto: TensorProto, files: ExternalFiles, size: int, name: str) -> memoryview:
    entries = {entry.key: entry.value for entry in proto.external_data}
    try:
        offset = int(entries.get("offset") or 0)
        length = int(entries["length"]) if entries.get("length") else size
    except ValueError:
        raise InvalidModel(f"tensor '{name}': offset or length of its external data is no number") from None
    return files.slice(entries.get("location", ""), offset, length, name)


def unpack(data: Bytes, dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
    """Elements from their serialized bytes; a view wherever alignment and element type allow."""
    if dtype.bits < 8:
        return _unpack_bits(np.frombuffer(data, np.uint8), dtype, shape)
    if dtype is DType.BOOL:
        return np.frombuffer(data, np.uint8).astype(np.bool_).reshape(shape)
    array = np.frombuffer(data, dtype.numpy)
    return (array if array.flags.aligned else array.copy()).reshape(shape)


def _unpack_bits(packed: np.ndarray, dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
    """Elements of 2 or 4 bits, the first in the lowest bits of each byte."""
    bits = dtype.bits
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    codes = ((packed[:, None] >> shifts) & ((1 << bits) - 1)).reshape(-1)[: math.prod(shape)]
    if dtype in (DType.INT4, DType.INT2):
        sign = 1 << (bits - 1)
        return ((codes ^ sign).astype(np.int8) - sign).astype(dtype.numpy).reshape(shape)
    if dtype is DType.FLOAT4E2M1:
        return codes.view(dtype.numpy).reshape(shape)
    return codes.astype(dtype.numpy).reshape(shape)


def pack(array: np.ndarray, dtype: DType) -> Bytes:
    """Serialized bytes of the elements; a view wherever possible."""
    if dtype.bits >= 8:
        flat = np.ascontiguousarray(array).reshape(-1)
        return flat.view(np.uint8).data
    bits, per_byte = dtype.bits, 8 // dtype.bits
    codes = (
        array.reshape(-1).view(np.uint8) if dtype is DType.FLOAT4E2M1 else array.reshape(-1).astype(np.int8)
    )
    padded = np.zeros(-(-codes.size // per_byte) * per_byte, np.uint8)
    padded[: codes.size] = codes.astype(np.uint8) & ((1 << bits) - 1)
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    packed: np.ndarray = np.bitwise_or.reduce(padded.reshape(-1, per_byte) << shifts, axis=1)
    return packed.data


def _strings(entries: Sequence[bytes], shape: tuple[int, ...]) -> np.ndarray:
    array = np.empty(len(entries), object)
    array[:] = [decode_text(entry) for entry in entries]
    return array.reshape(shape)


def decode_text(data: bytes) -> str | bytes:
    """Text where the bytes are valid UTF-8, else the bytes."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def encode_text(text: str | bytes) -> bytes:
    """The bytes of ``decode_text``."""
    return text.encode() if isinstance(text, str) else text


def _from_entries(
    entries: Sequence[float], entry: type[np.generic], bits: int, dtype: DType, shape: tuple[int, ...]
) -> np.ndarray:
    """Elements from a typed field, one number per element (or per ``bits`` of packed elements)."""
    data = np.fromiter(entries, np.int64 if entry is np.int32 else entry, len(entries))
    if entry is np.int32:  # small types lie in int32_data: as numbers, or as bit patterns for floats
        data = data.astype(f"u{bits // 8}")
    return unpack(data.view(np.uint8).data, dtype, shape) if data.size else np.empty(shape, dtype.numpy)


# ---------------------------------------------------------------- out


def write_tensor(tensor: Tensor, name: str | None, proto: TensorProto, *, keep_raw: bool) -> Bytes | None:
    """Fills ``proto``, which must be empty. A constant that came from a file is not loaded.

    Args:
        name: the constant's name; ``None`` leaves the one it was read with, if any.
        keep_raw: put the elements' bytes into ``proto``; otherwise bulky ones are only returned.

    Returns:
        Bytes the caller has to put into ``raw_data`` or elsewhere; ``None`` where all is in ``proto``.
    """
    raw: Bytes | None = None
    source = tensor.source
    if isinstance(source, Stored) and isinstance(source.proto, TensorProto):
        proto.CopyFrom(source.proto)
        if source.raw is not None:
            raw = source.raw
            proto.ClearField("external_data")
            proto.ClearField("data_location")
    else:
        proto.data_type = int(tensor.dtype)
        proto.dims.extend(tensor.shape)
        if tensor.dtype is DType.STRING:
            proto.string_data.extend(encode_text(text) for text in tensor.array.flat)
        else:
            raw = pack(tensor.array, tensor.dtype)
    if name is not None:
        proto.name = name
    if raw is not None and (keep_raw or len(raw) < SMALLEST_RAW):
        proto.raw_data = bytes(raw)
        return None
    return raw


def take_out(proto: TensorProto, tensor: Tensor) -> Bytes:
    """Removes the elements (not of strings) from a filled ``proto`` and returns their bytes."""
    raw: Bytes = proto.raw_data if proto.HasField("raw_data") else pack(tensor.array, tensor.dtype)
    for field in ("raw_data", *_TYPED_FIELDS):
        proto.ClearField(field)
    return raw


# ---------------------------------------------------------------- sparse


def read_sparse(proto: SparseTensorProto, files: ExternalFiles, name: str = "") -> SparseTensor:
    """The parts of a sparse constant, checked.

    Raises:
        InvalidModel: values, indices and dims do not fit together.
    """
    name = proto.values.name or name
    values, indices = (
        read_tensor(proto.values, files, name=name),
        read_tensor(proto.indices, files, name=name),
    )
    shape, count = tuple(proto.dims), values.size
    if values.shape != (count,) or any(size < 0 for size in shape):
        raise InvalidModel(f"sparse tensor '{name}': values must be a list, dims not negative")
    if indices.dtype is not DType.INT64 or indices.shape not in ((count,), (count, len(shape))):
        raise InvalidModel(
            f"sparse tensor '{name}': indices must be INT64[{count}] or [{count}, {len(shape)}]"
        )
    return SparseTensor(values, indices, shape)


def densify(sparse: SparseTensor, proto: SparseTensorProto) -> Tensor:
    """The same constant as a lazy dense one; written back as it was read."""

    def load() -> np.ndarray:
        dense = np.zeros(sparse.shape, sparse.values.dtype.numpy)
        if sparse.values.dtype is DType.STRING:
            dense[...] = ""
        where = sparse.indices.array
        positions = where if where.ndim == 1 else np.ravel_multi_index(tuple(where.T), sparse.shape)
        dense.reshape(-1)[positions] = sparse.values.array
        return dense

    return Tensor(sparse.values.dtype, sparse.shape, load, Stored(proto))


def write_sparse(sparse: SparseTensor, proto: SparseTensorProto) -> None:
    """Fills ``proto``, which must be empty."""
    write_tensor(sparse.values, None, proto.values, keep_raw=True)
    write_tensor(sparse.indices, None, proto.indices, keep_raw=True)
    proto.dims.extend(sparse.shape)
