"""Arrays from files: .npy, .npz, and .pb as in the test data sets that come with ONNX models."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from google.protobuf.message import DecodeError
from onnx import TensorProto

from optimizer.io.files import ExternalFiles
from optimizer.io.tensors import read_tensor
from optimizer.ir import OptimizerError, StorageError, UsageError

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
DataSet: TypeAlias = tuple[str, dict[str, Array]]

MOST = 64
"""Data sets read from one folder; the first ones by name."""


def read_data_sets(folder: Path, inputs: Sequence[str]) -> list[DataSet]:
    """The inputs found in a folder, each set with a label.

    A set is a folder with NAME.npy files or input_0.pb, input_1.pb, ...; the folder itself may be one, its
    folders may be, and each .npz file in it is one.

    Args:
        inputs: names of the model's inputs, in order.

    Raises:
        UsageError: the folder has no data, a file cannot be read, or the model has no such input.
        StorageError: there is no such folder.
    """
    if not folder.is_dir():
        raise StorageError(f"{folder} is not a directory with input data")
    found = []
    for place in (folder, *sorted(p for p in folder.iterdir() if p.is_dir())):
        arrays = _set_of(place, inputs)
        if arrays:
            found.append((place.name, arrays))
    for path in sorted(folder.glob("*.npz")):
        found.append((path.name, dict(_of_npz(path))))
    if not found:
        raise UsageError(f"{folder} has no .npy, .npz or input_0.pb files, nor folders with such files")
    for label, arrays in found:
        for name in arrays:
            if name not in inputs:
                raise UsageError(f"data set '{label}': the model has no input '{name}' ({', '.join(inputs)})")
    return found[:MOST]


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
        return np.asarray(np.load(path, allow_pickle=False))
    except (ValueError, EOFError) as error:
        raise UsageError(f"{path} cannot be read as .npy: {error}") from error


def _of_npz(path: Path) -> Iterator[tuple[str, Array]]:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            yield from arrays.items()
    except (ValueError, EOFError, OSError) as error:
        raise UsageError(f"{path} cannot be read as .npz: {error}") from error


def _of_pb(path: Path) -> tuple[str, Array]:
    proto = TensorProto()
    try:
        proto.ParseFromString(path.read_bytes())
        return proto.name, read_tensor(proto, ExternalFiles(path.parent)).array
    except (DecodeError, OptimizerError, ValueError) as error:
        raise UsageError(f"{path} cannot be read as a tensor: {error}") from error
