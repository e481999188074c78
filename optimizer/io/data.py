"""Arrays from files: .npy, .npz, and .pb as in the test data sets that come with ONNX models."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias
from zipfile import BadZipFile

import numpy as np
from google.protobuf.message import DecodeError
from onnx import TensorProto

from optimizer.io.files import ExternalFiles
from optimizer.io.tensors import read_tensor
from optimizer.ir import OptimizerError, StorageError, UsageError

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
DataSet: TypeAlias = tuple[str, dict[str, Array]]

_BROKEN = (ValueError, EOFError, BadZipFile, zlib.error)


def read_data_sets(folder: Path, inputs: Sequence[str]) -> list[DataSet]:
    """The inputs found in a folder, each set with a label.

    A set is a folder with NAME.npy files or input_0.pb, input_1.pb, ...; the folder itself may be one, its
    folders may be, and each .npz file in it is one.

    Args:
        inputs: names of the model's inputs, in order.

    Raises:
        UsageError: the folder has no data, a file holds something else, or the model has no such input.
        StorageError: there is no such folder, or a file cannot be read.
    """
    if not folder.is_dir():
        raise StorageError(f"{folder} is not a directory with input data")
    try:
        found = _sets_in(folder, inputs)
    except OSError as error:
        raise StorageError(f"{error.filename or folder} cannot be read: {error.strerror or error}") from error
    if not found:
        raise UsageError(f"{folder} has no .npy, .npz or input_0.pb files, nor folders with such files")
    for label, arrays in found:
        for name in arrays:
            if name not in inputs:
                raise UsageError(f"data set '{label}': the model has no input '{name}' ({', '.join(inputs)})")
    return found


def _sets_in(folder: Path, inputs: Sequence[str]) -> list[DataSet]:
    found = []
    for place in (folder, *sorted(p for p in folder.iterdir() if p.is_dir())):
        arrays = _set_of(place, inputs)
        if arrays:
            found.append((place.name, arrays))
    for path in sorted(folder.glob("*.npz")):
        found.append((path.name, _of_npz(path)))
    return found


def _set_of(folder: Path, inputs: Sequence[str]) -> dict[str, Array]:
    arrays = {path.stem: _of_npy(path) for path in sorted(folder.glob("*.npy"))}
    found = [(re.fullmatch(r"input_(\d+)", path.stem), path) for path in folder.glob("input_*.pb")]
    for number, path in sorted((int(match[1]), path) for match, path in found if match):
        name, array = _of_pb(path)
        if not name and number >= len(inputs):
            raise UsageError(f"{path} is the input number {number} of a model with {len(inputs)}")
        arrays[name or inputs[number]] = array
    return arrays


def _of_npy(path: Path) -> Array:
    try:
        with path.open("rb") as file:  # np.load itself leaves it open where it fails
            array = np.load(file, allow_pickle=False)
            if isinstance(array, np.ndarray):
                return array
    except _BROKEN as error:
        raise UsageError(f"{path} cannot be read as .npy: {error}") from error
    raise UsageError(f"{path} holds several arrays; call it .npz")


def _of_npz(path: Path) -> dict[str, Array]:
    try:
        with path.open("rb") as file:
            found = np.load(file, allow_pickle=False)
            if not isinstance(found, np.ndarray):
                return dict(found.items())
    except _BROKEN as error:
        raise UsageError(f"{path} cannot be read as .npz: {error}") from error
    raise UsageError(f"{path} holds a single array; call it NAME.npy after an input")


def _of_pb(path: Path) -> tuple[str, Array]:
    proto = TensorProto()
    try:
        proto.ParseFromString(path.read_bytes())
        return proto.name, read_tensor(proto, ExternalFiles(path.parent)).array
    except (DecodeError, OptimizerError, ValueError) as error:
        raise UsageError(f"{path} cannot be read as a tensor: {error}") from error
