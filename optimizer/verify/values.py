"""Seeded contents for one tensor, by its purpose."""

from __future__ import annotations

import hashlib
from typing import Any, Literal, TypeAlias

import numpy as np

from optimizer.ir import DType
from optimizer.verify.purpose import Purpose

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Fill = Literal["normal", "uniform", "positive"]

MAX_INDEX = 30_000
"""Indices stay below this whatever the table: rare tokens say no more than common ones."""
_WORDS = ("", "a", "oinfer", "Zebra 12", "x,y", "ünïcode", "0", "The quick brown fox")


def generator(name: str, seed: int) -> np.random.Generator:
    """The random generator of one named tensor: another tensor more or less does not move it."""
    digest = hashlib.blake2b(f"{name}\0{seed}".encode(), digest_size=16).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "little")))


def make_values(
    purpose: Purpose,
    dtype: DType,
    shape: tuple[int, ...],
    rng: np.random.Generator,
    *,
    fill: Fill = "normal",
    seed: int = 0,
) -> Array:
    """An array of ``dtype`` and ``shape``.

    Floats are N(0, 1) (``normal``), within [0, 1) (``uniform``) or |N(0, 1)| + 0.1 (``positive``).
    Masks are ones for seed 0 and runs of ones of random length after that.
    """
    if purpose.kind == "mask" and dtype is not DType.STRING:
        return _mask(shape, rng, seed).astype(dtype.numpy)
    if dtype is DType.STRING:
        words = np.empty(shape, object)
        words.reshape(-1)[:] = [_WORDS[i] for i in rng.integers(0, len(_WORDS), words.size)]
        return words
    if dtype is DType.BOOL:
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.is_integer:
        return _integers(purpose, dtype, shape, rng, seed).astype(dtype.numpy)
    if purpose.kind == "shape":
        return rng.integers(1, 4, shape).astype(dtype.numpy)
    if dtype in (DType.COMPLEX64, DType.COMPLEX128):
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype.numpy)
    return _floats(shape, rng, fill).astype(dtype.numpy)


def _floats(shape: tuple[int, ...], rng: np.random.Generator, fill: Fill) -> Array:
    if fill == "uniform":
        return np.asarray(rng.random(shape))
    drawn = np.asarray(rng.standard_normal(shape))
    return np.abs(drawn) + 0.1 if fill == "positive" else drawn


def _integers(
    purpose: Purpose, dtype: DType, shape: tuple[int, ...], rng: np.random.Generator, seed: int
) -> Array:
    if purpose.kind == "index":
        rows = min(purpose.limit if purpose.limit is not None else 2, MAX_INDEX, _largest(dtype))
        return rng.integers(1 if rows > 2 else 0, max(rows, 1), shape)
    if purpose.kind == "position":
        rows = purpose.limit or _largest(dtype)
        line = np.arange(shape[-1] if shape else 1) % max(rows, 1)
        return np.broadcast_to(line if shape else line[0], shape)
    if purpose.kind == "choice":
        return np.full(shape, purpose.choices[seed % len(purpose.choices)])
    if purpose.kind == "shape":
        return rng.integers(1, 4, shape)
    if dtype.bits <= 8:
        low = 0 if dtype.name.startswith("U") else -(1 << (dtype.bits - 1))
        return rng.integers(low, low + (1 << dtype.bits), shape)
    return rng.integers(0, 8, shape)


def _mask(shape: tuple[int, ...], rng: np.random.Generator, seed: int) -> Array:
    if seed == 0 or not shape or not shape[-1]:
        return np.ones(shape, np.int64)
    lengths = rng.integers(1, shape[-1] + 1, (*shape[:-1], 1))
    return (np.arange(shape[-1]) < lengths).astype(np.int64)


def _largest(dtype: DType) -> int:
    return (1 << (dtype.bits - (0 if dtype.name.startswith("U") else 1))) - 1
