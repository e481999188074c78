"""How the floats that are fed to a region are drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from optimizer.ir import DType
from optimizer.runtime.precision import true_dtype

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

SPARSITY = 0.05
PERIOD = 4_093
"""Large tensors repeat after so many elements: a prime, so that no two rows are the same."""
SPECIAL = (-0.0, 0.0, float("nan"), float("inf"), float("-inf"))


@dataclass(frozen=True, slots=True)
class Draw:
    """How floats are drawn.

    Attributes:
        scale: standard deviation.
        truth: float64 instead of the value's own element type.
        special: every eighth element is a zero of either sign, NaN or an infinity, and integers take
            their whole range where nothing limits them.
        positive: absolute values.
        sparse: zero but for one element in twenty, so that single weights and biases show.
        mixed: the first half is not made sparse.
        least_count: what sizes and counts given as tensors are at least.
        copy: number of the draw among those that are otherwise alike.
    """

    scale: float = 1.0
    truth: bool = True
    special: bool = False
    positive: bool = False
    sparse: bool = False
    mixed: bool = False
    least_count: int = 1
    copy: int = 0


def floats(dtype: DType, shape: tuple[int, ...], rng: np.random.Generator, draw: Draw) -> Array:
    """An array of ``shape``: of ``dtype``, or of what truth mode has instead."""
    size = math.prod(shape)
    few = rng.standard_normal(min(size, PERIOD)) * draw.scale
    sparse = few * (rng.random(few.size) < SPARSITY) if draw.sparse else few
    drawn = np.resize(sparse, shape) if few.size else np.zeros(shape)
    if draw.mixed and drawn.ndim:
        half = (shape[0] + 1) // 2
        drawn[:half] = np.resize(few, (half, *shape[1:])) if few.size else 0.0
    held = true_dtype(dtype.numpy) if draw.truth else dtype.numpy
    if draw.special and drawn.size:
        flat = drawn.reshape(-1)
        places = rng.permutation(flat.size)[: max(1, flat.size // 8)]
        flat[places] = np.resize(SPECIAL, places.size)
    with np.errstate(all="ignore"):
        return drawn.astype(held)
