"""Operands and attributes of the operators that move elements about."""

from __future__ import annotations

import math

import numpy as np

from optimizer.verify.adversary.site import Site


def transpose(site: Site) -> None:
    """Any permutation, or the reverse."""
    rank = len(site.first(2, 3, 4, 4))
    perm = tuple(int(p) for p in site.rng.permutation(rank))
    site.sets(perm=site.pick(None, perm, perm, perm))


def reshape(site: Site) -> None:
    """A target of the same size, with 0 and -1 at times."""
    x = site.first(1, 2, 3, 4)
    size = math.prod(x)
    target = site.pick([-1], list(x), [*x[:1], -1], [size], [1, *x], [*x, 1], _factors(site, size))
    if x and site.rng.random() < 0.3 and len(target) <= len(x):
        target = [0 if t == s else t for t, s in zip(target, x, strict=False)]
    if len(x) == 4 and site.rng.random() < 0.3:
        target = [x[0], x[1], x[2] * x[3]]
    site.give(1, target, np.int64)


def _factors(site: Site, size: int) -> list[int]:
    found: list[int] = []
    while size > 1 and len(found) < 4:
        divisors = [d for d in range(1, size + 1) if size % d == 0]
        found.append(int(site.rng.choice(divisors)))
        size //= found[-1]
    return [*found, size]


def squeeze(site: Site) -> None:
    """Axes of size 1."""
    if site.is_open(0):
        shape = list(site.dims(3))
        shape[int(site.rng.integers(3))] = 1
        site.floats(0, shape)
    x = site.shape(0) or ()
    ones = [axis for axis, size in enumerate(x) if size == 1]
    axes = [site.pick(axis, axis - len(x)) for axis in ones[: int(site.rng.integers(1, 3))]]
    _give_axes(site, axes or None)


def unsqueeze(site: Site) -> None:
    """New axes."""
    rank = len(site.first(1, 2, 3)) + 1
    count = int(site.pick(1, 1, 2))
    axes = sorted(int(a) for a in site.rng.permutation(rank + count - 1)[:count])
    _give_axes(site, axes)


def _give_axes(site: Site, axes: list[int] | None) -> None:
    if site.is_open(1):
        site.give(1, axes if axes is not None else [0], np.int64)
    else:
        site.sets(axes=axes)


def concat(site: Site) -> None:
    """The same shape but for one axis."""
    known = next((s for i in range(len(site.operands)) if (s := site.shape(i)) is not None), None)
    shape = known or site.dims(int(site.pick(1, 2, 3, 4)))
    axis = site.axis(len(shape))
    for slot in range(len(site.operands)):
        own = list(shape)
        own[axis] = int(site.pick(shape[axis], 1, 2, 3))
        site.floats(slot, own)
    site.sets(axis=axis)


def split(site: Site) -> None:
    """Parts of one element and the rest."""
    x = site.first(2, 3, 4)
    axis = site.axis(len(x))
    site.outputs = max(site.outputs, int(site.pick(1, 2)))
    if x[axis] < site.outputs:
        raise ValueError("too small to split")
    sizes = [1] * (site.outputs - 1)
    site.give(1, [*sizes, x[axis] - len(sizes)], np.int64)
    site.sets(axis=axis)


def slice_(site: Site) -> None:
    """One axis, forwards, in steps, or reversed."""
    x = site.first(1, 2, 3, 4)
    axis = int(site.rng.integers(len(x)))
    step = int(site.pick(1, 1, 1, 2, -1))
    start, end = (-1, -(2**31)) if step < 0 else sorted(int(v) for v in site.rng.integers(0, x[axis] + 2, 2))
    end = site.pick(end, 2**31 - 1) if step > 0 else end
    for slot, number in ((1, start), (2, end), (3, axis), (4, step)):
        site.give(slot, [number], np.int64)
    if len(site.operands) < 5 and step != 1 and not site.is_open(4):
        site.give(4, [1], np.int64)


def gather(site: Site) -> None:
    """Indices from either end."""
    x = site.first(1, 2, 3)
    axis = site.axis(len(x))
    shape = site.pick((), (1,), (2,), (2, 2))
    site.give(1, site.rng.integers(-x[axis], x[axis], shape), np.int64)
    site.sets(axis=axis if axis or site.rng.random() < 0.5 else None)


def expand(site: Site) -> None:
    """Ones that grow, a new axis, or nothing at all."""
    x = site.first(1, 2, 3)
    grown = [int(site.pick(2, 3)) if size == 1 and site.rng.random() < 0.6 else size for size in x]
    site.give(1, site.pick(grown, list(x), [2, *grown]), np.int64)


def tile(site: Site) -> None:
    """Repeats."""
    x = site.first(1, 2, 3)
    site.give(1, [int(site.pick(1, 1, 2)) for _ in x], np.int64)


def flatten(site: Site) -> None:
    """Any axis."""
    site.sets(axis=site.pick(None, 0, 1, len(site.first(2, 3, 4))))


def pad(site: Site) -> None:
    """Zeros and other numbers around it."""
    rank = len(site.first(2, 3, 4, 4))
    pads = site.rng.integers(0, 3, 2 * rank) * (site.rng.random(2 * rank) < 0.6)
    if rank == 4 and site.rng.random() < 0.7:
        pads.reshape(2, 4)[:, :2] = 0
    site.give(1, pads, np.int64)
    site.give(2, site.pick(0.0, 0.0, 1.0, -np.inf), site.dtype)
    site.sets(mode=site.pick(None, None, "constant", "edge"))
