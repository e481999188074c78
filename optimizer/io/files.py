"""Bytes from files: the model itself and the external data beside it."""

from __future__ import annotations

import mmap
import os
import stat
from pathlib import Path

from google.protobuf.message import DecodeError
from onnx import IR_VERSION, ModelProto

from optimizer.ir import InvalidModel, StorageError

NEWEST_IR: int = IR_VERSION


def read_bytes(path: Path) -> bytes:
    """The content of a model file.

    Raises:
        StorageError: it is not there, not a file, or may not be read.
        InvalidModel: it is empty.
    """
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise StorageError(f"{path}: is a directory, not a model file")
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
            raise StorageError(f"{path}: is not a regular file")
        data = path.read_bytes()
    except FileNotFoundError:
        raise StorageError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        raise StorageError(f"{path}: cannot be read: {reason(error)}") from error
    if not data:
        raise InvalidModel("the file is empty")
    return data


def decode(data: bytes, original: bytes) -> ModelProto:
    """A parsed model.

    Args:
        data: the model, possibly without its bulky weights.
        original: the whole file, which tells what it is instead when it is not a model.

    Raises:
        InvalidModel: the bytes are no ONNX model.
    """
    model = ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError:
        raise InvalidModel(_diagnose(original)) from None
    graph = model.graph
    if not (model.HasField("graph") and (graph.node or graph.output)):
        held = "it holds functions, but no graph" if model.functions else "it holds no graph"
        raise InvalidModel(f"not an ONNX model: {_guess(original) or held}")
    if model.ir_version < 1:
        raise InvalidModel("not an ONNX model: it states no ir_version")
    if model.ir_version > NEWEST_IR:
        raise InvalidModel(
            f"ir_version {model.ir_version} is newer than {NEWEST_IR}, the newest that the installed onnx "
            f"knows; upgrade onnx"
        )
    if not graph.output:
        raise InvalidModel(f"graph '{graph.name}' has no outputs: nothing it computes can be read")
    return model


def _diagnose(data: bytes) -> str:
    return f"not an ONNX model: {_guess(data) or 'truncated, or another format'}"


def _guess(data: bytes) -> str:
    """What a file that is not an ONNX model may be instead."""
    head = data[:4096]
    if head.startswith(b"version https://git-lfs"):
        return "a Git LFS pointer; fetch the file itself with 'git lfs pull'"
    if head[4:8] == b"ORTM":
        return "an onnxruntime .ort file; give the ONNX file it was made from"
    if head.startswith(b"PK\x03\x04"):
        return "a zip archive"
    try:
        text = head.decode("utf-8", "strict" if len(data) <= len(head) else "ignore")
    except UnicodeDecodeError:
        return ""
    return "it is a text file" if all(c.isprintable() or c in "\t\r\n\f" for c in text) else ""


def reason(error: BaseException) -> str:
    """The system's own words for an error, on one line."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(text.split())


class ExternalFiles:
    """Memory-maps the external data of one model.

    Args:
        folder: where the model file lies; ``None`` where the model did not come from a file.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._maps: dict[str, memoryview] = {}
        self._paths: list[str] = []

    def slice(self, location: str, offset: int, length: int | None, tensor: str) -> memoryview:
        """``length`` bytes (to the end, where ``None``) of a file beside the model, not yet read.

        Raises:
            InvalidModel: the file is missing, too short, or outside the model's folder.
        """
        if location not in self._maps:
            self._maps[location] = self._map(location, tensor)
        whole = self._maps[location]
        end = len(whole) if length is None else offset + length
        if offset < 0 or end < offset or end > len(whole):
            raise InvalidModel(
                f"tensor '{tensor}': external data file '{location}' is too short: "
                f"bytes {offset} to {end} wanted, it has {len(whole)}"
            )
        return whole[offset:end]

    @property
    def used(self) -> tuple[str, ...]:
        """Paths of the files that hold tensors read so far."""
        return tuple(self._paths)

    def _map(self, location: str, tensor: str) -> memoryview:
        path = self._resolve(location, tensor)
        self._paths.append(os.fspath(path))
        try:
            with path.open("rb") as file:
                if not os.fstat(file.fileno()).st_size:
                    return memoryview(b"")
                return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except OSError as error:
            raise InvalidModel(
                f"tensor '{tensor}': external data file '{location}' cannot be read: {reason(error)}"
            ) from error

    def _resolve(self, location: str, tensor: str) -> Path:
        what = f"tensor '{tensor}': external data file '{location}'"
        if self._folder is None:
            raise InvalidModel(f"{what} cannot be found: the model was not loaded from a file; give its path")
        if not location or "\0" in location or os.path.isabs(location):
            raise InvalidModel(f"{what}: the location must be a path relative to the model's folder")
        folder = self._folder.resolve()
        path = (folder / location).resolve()
        if not path.is_relative_to(folder):
            raise InvalidModel(f"{what} lies outside the model's folder {folder}")
        if not path.is_file():
            raise InvalidModel(f"{what} is missing in {folder}")
        return path
