"""Seeded contents for one tensor, by its purpose."""

from __future__ import annotations

import hashlib
from typing import Any, Literal, TypeAlias, get_args

import ml_dtypes
import numpy as np

from optimizer.ir import DType
from optimizer.verify.purpose import Purpose

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Fill = Literal[
    "normal",
    "uniform",
    "positive",
    "zeros",
    "signed-zeros",
    "ones",
    "large",
    "denormal",
    "nonfinite",
    "edges",
]
FILLS: tuple[Fill, ...] = get_args(Fill)
"""What plain values may be drawn from (see ``make_values``)."""

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

    Floats are, by ``fill``:

    - ``normal``: N(0, 1); ``uniform``: within [0, 1); ``positive``: abs(N(0, 1)) + 0.1;
    - ``zeros``, ``ones``; ``signed-zeros``: zeros of both signs;
    - ``large``: 100 to 10 000 of either sign; ``denormal``: below the smallest normal number, either sign;
    - ``nonfinite``: normal, one in eight NaN or an infinity, as far as the type has them;
    - ``edges``: a mixture of zeros of both signs, 1, -1, large, denormal, and the largest numbers.

    Integers and booleans follow as far as they can: ``large`` and ``edges`` go to the ends of the type.
    Only plain values do. What has another purpose keeps to it under every fill: indices stay within
    their table (``zeros``, ``large`` and ``edges`` pick its first and last rows), shapes and scales are
    positive. Masks are ones for seed 0 and runs of ones of random length after that.
    """
    if purpose.kind == "mask" and dtype is not DType.STRING:
        return _mask(shape, rng, seed).astype(dtype.numpy)
    if dtype is DType.STRING:
        words = np.empty(shape, object)
        words.reshape(-1)[:] = [_WORDS[i] for i in rng.integers(0, len(_WORDS), words.size)]
        return words
    if dtype is DType.BOOL:
        constant = {"zeros": 0, "signed-zeros": 0, "ones": 1}.get(fill)
        return (rng.integers(0, 2, shape) if constant is None else np.full(shape, constant)).astype(bool)
    if dtype.is_integer:
        return _integers(purpose, dtype, shape, rng, seed, fill).astype(dtype.numpy)
    if purpose.kind == "shape":
        return rng.integers(1, 4, shape).astype(dtype.numpy)
    if purpose.kind == "factor":
        return _factors(shape, rng).astype(dtype.numpy)
    if purpose.kind == "step":
        return np.asarray((np.abs(rng.standard_normal(shape)) + 0.1) / 16).astype(dtype.numpy)
    if dtype in (DType.COMPLEX64, DType.COMPLEX128):
        part = DType.FLOAT if dtype is DType.COMPLEX64 else DType.DOUBLE
        real, imaginary = (_floats(part, shape, rng, fill) for _ in range(2))
        return (real + 1j * imaginary).astype(dtype.numpy)
    return _floats(dtype, shape, rng, fill)


def _factors(shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """How much a picture grows along each axis: batch and channels stay as they are."""
    factors = rng.integers(1, 4, shape)
    factors[..., : max(factors.shape[-1] - 2, 0) if shape else 0] = 1
    return factors


def _floats(dtype: DType, shape: tuple[int, ...], rng: np.random.Generator, fill: Fill) -> Array:
    """Floats of any format, by ``fill``."""
    limits: Any = ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]
    sign = rng.choice([-1.0, 1.0], shape) if fill in ("signed-zeros", "large", "denormal", "edges") else 1.0
    if fill == "uniform":
        made = np.asarray(rng.random(shape))
    elif fill in ("zeros", "signed-zeros"):
        made = np.zeros(shape) * sign
    elif fill == "ones":
        made = np.ones(shape)
    elif fill == "large":
        made = np.minimum(10 ** rng.uniform(2, 4, shape), float(limits.max)) * sign
    elif fill == "denormal":
        made = rng.uniform(0, 1, shape) * float(limits.smallest_normal) * sign
    elif fill == "edges":
        tiny = float(limits.smallest_normal)
        known = [0.0, 1.0, min(1e4, float(limits.max)), tiny / 2, tiny, float(limits.max)]
        made = rng.choice(known, shape) * sign
    else:
        made = np.asarray(rng.standard_normal(shape))
        made = np.abs(made) + 0.1 if fill == "positive" else made
    if dtype is DType.FLOAT8E8M0:  # powers of two: neither signs nor zero
        made = np.maximum(np.abs(made), float(limits.smallest_normal))
    with np.errstate(all="ignore"):
        held = np.asarray(made).astype(dtype.numpy)
        return _with_nonfinite(held, rng) if fill == "nonfinite" else held


def _with_nonfinite(x: Array, rng: np.random.Generator) -> Array:
    """One element in eight, and at least one, replaced by NaN or an infinity where the type has such."""
    special = np.array([np.nan, np.inf, -np.inf]).astype(x.dtype)
    special = special[~np.isfinite(special.astype(np.float32))]
    if special.size and x.size:
        places = rng.permutation(x.size)[: max(x.size // 8, 1)]
        x.reshape(-1)[places] = special[rng.integers(0, special.size, places.size)]
    return x


def _integers(
    purpose: Purpose, dtype: DType, shape: tuple[int, ...], rng: np.random.Generator, seed: int, fill: Fill
) -> Array:
    if purpose.kind == "index":
        return _indices(purpose.limit if purpose.limit is not None else 2, dtype, shape, rng, fill)
    if purpose.kind == "position":
        rows = purpose.limit or _largest(dtype)
        line = np.arange(shape[-1] if shape else 1) % max(rows, 1)
        return np.broadcast_to(line if shape else line[0], shape)
    if purpose.kind == "choice":
        return np.full(shape, purpose.choices[seed % len(purpose.choices)])
    if purpose.kind == "shape":
        return rng.integers(1, 4, shape)
    if fill in ("zeros", "signed-zeros", "ones"):
        return np.full(shape, int(fill == "ones"))
    low, high = _smallest(dtype), _largest(dtype)
    if fill in ("large", "edges"):
        known = [low, high, *([0, 1, max(low, -1)] if fill == "edges" else [])]
        return np.asarray(rng.choice(np.array(known, np.uint64 if low == 0 else np.int64), shape))
    if dtype.bits <= 8:
        return rng.integers(low, high + 1, shape)
    return rng.integers(0, 8, shape)


def _indices(rows: int, dtype: DType, shape: tuple[int, ...], rng: np.random.Generator, fill: Fill) -> Array:
    """Rows of a table."""
    rows = min(rows, _largest(dtype) + 1)
    if fill in ("zeros", "large", "edges"):
        ends = {"zeros": [0], "large": [rows - 1]}.get(fill, [0, rows - 1])
        return np.asarray(np.maximum(rng.choice(ends, shape), 0))
    rows = min(rows, MAX_INDEX)
    return rng.integers(1 if rows > 2 else 0, max(rows, 1), shape)


def _mask(shape: tuple[int, ...], rng: np.random.Generator, seed: int) -> Array:
    if seed == 0 or not shape or not shape[-1]:
        return np.ones(shape, np.int64)
    lengths = rng.integers(1, shape[-1] + 1, (*shape[:-1], 1))
    return (np.arange(shape[-1]) < lengths).astype(np.int64)


def _smallest(dtype: DType) -> int:
    return 0 if dtype.name.startswith("U") else -(1 << (dtype.bits - 1))


def _largest(dtype: DType) -> int:
    return (1 << (dtype.bits - (0 if dtype.name.startswith("U") else 1))) - 1
