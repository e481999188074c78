"""``save``: a ``Model`` becomes a file, and where it is large a second one with the weights.

Nothing appears under the target's name before all is written: the model goes to a temporary file in
the same folder, which a caller may inspect (``stage``), and is renamed last. External data goes to
``<target>-<16 hex digits of its hash>.data``: a name no other content has, so a model that is there
keeps its own data whatever happens. Data of an older model of that name is left where it is, since a
copy of the model may still refer to it.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedWriter
from pathlib import Path

from onnx import TensorProto

from optimizer.io.files import reason
from optimizer.io.tensors import take_out
from optimizer.io.wire import Bytes, join
from optimizer.io.writer import Bulk, Names, Written, write_model
from optimizer.ir import Model, StorageError, UsageError

PROTOBUF_LIMIT = 2**31 - 1
"""Bytes a serialized message may have."""

_PAGE, _LINE = 4096, 64


@dataclass(frozen=True, slots=True)
class SaveResult:
    """What was written.

    Attributes:
        path: the model.
        data_path: its external data, if any.
        bytes: size of both together.
        names: the name each value has in the file, by scope path and value. A name differs from
            the value's own (``Graph.info``) where that was taken or empty.
    """

    path: Path
    data_path: Path | None
    bytes: int
    names: Names


class Staged:
    """A model written to a temporary file beside its target: ``commit`` or ``discard`` it.

    Attributes:
        path: the temporary file; external data already has its final name, so that it loads.
        names: the name each value has in the file (see ``SaveResult``).
    """

    def __init__(self, path: Path, target: Path, data_path: Path | None, data_is_new: bool, names: Names):
        self.path = path
        self._target = target
        self._data_path = data_path
        self._data_is_new = data_is_new
        self.names = names

    def commit(self) -> SaveResult:
        """Gives the model its name.

        Raises:
            StorageError: the system refuses; then nothing new is left behind.
        """
        size = self.path.stat().st_size + (self._data_path.stat().st_size if self._data_path else 0)
        try:
            with _storage_errors(self._target):
                os.replace(self.path, self._target)
        except StorageError:
            self.discard()
            raise
        self._data_is_new = False  # it belongs to the model now
        return SaveResult(self._target, self._data_path, size, self.names)

    def discard(self) -> None:
        """Removes what was written; nothing once it has its name."""
        self.path.unlink(missing_ok=True)
        if self._data_path is not None and self._data_is_new:
            self._data_path.unlink(missing_ok=True)


def save(
    model: Model,
    path: str | os.PathLike[str],
    *,
    external_data: bool | None = None,
    annotate: bool = False,
) -> SaveResult:
    """Writes a model; what was at ``path`` is there until all is written.

    Args:
        external_data: put weights into a file of their own; ``None``: only if the model is too large for one.
        annotate: note in each node's ``metadata_props`` which rule made it, and from what.

    Raises:
        StorageError: the file cannot be written; nothing is left behind then.
    """
    return stage(model, path, external_data=external_data, annotate=annotate).commit()


def stage(
    model: Model,
    path: str | os.PathLike[str],
    *,
    external_data: bool | None = None,
    annotate: bool = False,
) -> Staged:
    """Like ``save``, but leaves the last step, the renaming, to the caller.

    Raises:
        StorageError: see ``save``.
        UsageError: constants of the model lie in the file to write, which would be lost for the original.
    """
    target = _target(path)
    if os.fspath(target) in model.external_files:
        raise UsageError(f"{path} holds external data of the input; choose another file to write")
    written = write_model(model, annotate=annotate)
    size = written.proto.ByteSize() + sum(len(b.raw) + 16 for b in written.bulk if b.raw is not None)
    if external_data is None:
        external_data = size > PROTOBUF_LIMIT
    data_path, is_new = _write_data(written.bulk, target) if external_data else (None, False)
    staged = Staged(_sibling(target, "tmp"), target, data_path, is_new, written.names)
    try:
        _write_message(written, staged.path, target, inline=not external_data)
    except BaseException:
        staged.discard()
        raise
    return staged


def _target(path: str | os.PathLike[str]) -> Path:
    """The file to write, behind any symbolic links."""
    with _storage_errors(Path(path)):
        target = Path(os.path.realpath(path))
        if target.is_dir() or os.fspath(path).endswith(("/", os.sep)):
            raise StorageError(f"{path}: is a directory, not a file to write to")
        if target.exists() and not target.is_file():
            raise StorageError(f"{path}: is not a regular file")
        if not target.parent.is_dir():
            raise StorageError(f"{path}: there is no folder {target.parent}")
    return target


def _write_message(written: Written, path: Path, target: Path, inline: bool) -> None:
    raw: dict[int, Bytes] = {}
    for bulk in written.bulk if inline else ():
        if bulk.raw is not None and bulk.position is not None:
            raw[bulk.position] = bulk.raw
        elif bulk.raw is not None:
            bulk.proto.raw_data = bytes(bulk.raw)
    if written.proto.ByteSize() + sum(len(data) + 16 for data in raw.values()) > PROTOBUF_LIMIT:
        advice = "save it with external data" if inline else "its nodes alone exceed what a file can hold"
        raise StorageError(f"{target}: the model is larger than 2 GB: {advice}")
    with _storage_errors(target), path.open("xb") as file:
        file.writelines(join(written.proto, raw))


def _write_data(bulk: Iterable[Bulk], target: Path) -> tuple[Path, bool]:
    """Streams the weights into a file named by its content; returns its path and whether it is new."""
    temporary = _sibling(target, "data.tmp")
    try:
        with _storage_errors(target), temporary.open("xb") as file:
            digest, placed = _stream(bulk, file)
        path = target.with_name(f"{target.name}-{digest}.data")
        for proto, offset, length in placed:
            proto.data_location = TensorProto.EXTERNAL
            for key, value in (("location", path.name), ("offset", str(offset)), ("length", str(length))):
                proto.external_data.add(key=key, value=value)
        with _storage_errors(target):
            if path.exists():  # the same content; another model may have it mapped
                return path, False
            os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return path, True


def _stream(bulk: Iterable[Bulk], file: BufferedWriter) -> tuple[str, list[tuple[TensorProto, int, int]]]:
    """Writes the elements one tensor at a time; returns a hash and where each tensor lies."""
    digest = hashlib.blake2b(digest_size=8)
    placed: list[tuple[TensorProto, int, int]] = []
    at = 0
    for entry in bulk:
        raw = take_out(entry.proto, entry.tensor) if entry.raw is None else entry.raw
        # Mapping needs whole pages; small tensors only need their element type's alignment.
        padding = -at % (_PAGE if len(raw) >= _PAGE else _LINE)
        for piece in (bytes(padding), raw):
            digest.update(piece)
            file.write(piece)
        placed.append((entry.proto, at + padding, len(raw)))
        at += padding + len(raw)
    return digest.hexdigest(), placed


def _sibling(target: Path, suffix: str) -> Path:
    """A hidden temporary name beside the target: only there a rename is atomic.

    What a process that was killed has left of that name is never read again, and may be deleted.
    """
    return target.with_name(f".{target.name}.oinfer-{secrets.token_hex(4)}.{suffix}")


@contextmanager
def _storage_errors(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(f"{target}: cannot be written: {reason(error)}") from error
