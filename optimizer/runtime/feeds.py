"""Checks of what a caller feeds against what the model declares."""

from __future__ import annotations

from typing import Any

import numpy as np

from optimizer.ir import DType, OptionalType, SequenceType, ShapeDecl, TensorType, ValueInfo
from optimizer.runtime.call import NONE
from optimizer.runtime.errors import BadFeed
from optimizer.runtime.options import Placeholder
from optimizer.runtime.precision import true_dtype


def checked_feed(info: ValueInfo, value: Any, *, truth: bool = False) -> Any:
    """The fed value as the executor wants it.

    Python numbers and lists become arrays of the declared type; NumPy strings become objects.

    Raises:
        BadFeed: kind, element type, rank or a numeric dimension differ from the declaration.
    """
    declared = info.type
    if isinstance(declared, OptionalType):
        if value is None or value is NONE:
            return NONE
        return checked_feed(ValueInfo(info.name, declared.elem), value, truth=truth)
    if isinstance(declared, SequenceType):
        if not isinstance(value, (list, tuple)):
            raise BadFeed(f"input '{info.name}' is a sequence: give a list, not {type(value).__name__}")
        return [checked_feed(ValueInfo(info.name, declared.elem), v, truth=truth) for v in value]
    if not isinstance(declared, TensorType):
        return np.asarray(value) if isinstance(value, np.generic) else value
    return _checked_tensor(info.name, declared, value, truth)


def _checked_tensor(name: str, declared: TensorType, value: Any, truth: bool) -> np.ndarray:
    wanted = declared.dtype.numpy
    if not isinstance(value, (np.ndarray, np.generic)):
        try:
            value = np.asarray(value, wanted)
        except (TypeError, ValueError) as error:
            raise BadFeed(f"input '{name}' cannot be made {declared.dtype.name}: {error}") from error
    array = np.asarray(value)
    if declared.dtype is DType.STRING and array.dtype.kind in "SU":
        array = array.astype(object)
    allowed = (wanted, true_dtype(wanted)) if truth else (wanted,)
    if array.dtype not in allowed and declared.dtype is not DType.UNDEFINED:
        raise BadFeed(f"input '{name}' is {array.dtype.name}, the model wants {wanted.name}")
    if not _fits(array.shape, declared.shape):
        shown = ",".join("?" if d is None else str(d) for d in declared.shape or ())
        raise BadFeed(f"input '{name}' has shape {list(array.shape)}, the model wants [{shown}]")
    return array


def _fits(shape: tuple[int, ...], declared: ShapeDecl) -> bool:
    if declared is None:
        return True
    return len(shape) == len(declared) and all(
        not isinstance(d, int) or d == s for s, d in zip(shape, declared, strict=True)
    )


def placeholder(info: ValueInfo, fill: Placeholder) -> Any:
    """A stand-in for an input: unknown dims are 1, sequences and optionals empty.

    Raises:
        BadFeed: the type or rank of the input is not declared.
    """
    declared = info.type
    if isinstance(declared, OptionalType):
        return NONE
    if isinstance(declared, SequenceType):
        return []
    if not isinstance(declared, TensorType) or declared.shape is None:
        raise BadFeed(f"input '{info.name}' has no declared shape: feed it")
    shape = tuple(d if isinstance(d, int) else 1 for d in declared.shape)
    dtype = declared.dtype.numpy
    if callable(fill):
        return checked_feed(info, fill(info.name, dtype, shape))
    if dtype.kind == "O":
        return np.full(shape, "", object)
    return np.zeros(shape, dtype) if fill == "zeros" else np.ones(shape, dtype)
