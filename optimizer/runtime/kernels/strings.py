"""Strings."""

from __future__ import annotations

import re

import numpy as np

from optimizer.runtime.call import Call
from optimizer.runtime.precision import Array
from optimizer.runtime.registry import kernel


@kernel("StringConcat", 20, exact=True)
def string_concat(call: Call, a: Array, b: Array) -> Array:
    """Joins strings elementwise."""
    return np.asarray(np.add(a, b), object)


@kernel("RegexFullMatch", 20, exact=True)
def regex_full_match(call: Call, x: Array) -> Array:
    """Whether the whole string matches ``pattern``."""
    pattern = re.compile(call.attr("pattern", ""))
    return np.array([pattern.fullmatch(s) is not None for s in x.reshape(-1)], bool).reshape(x.shape)


@kernel("StringSplit", 20, exact=True)
def string_split(call: Call, x: Array) -> tuple[Array, Array]:
    """The pieces of each string on a new last axis, filled up with empty strings, and their counts."""
    delimiter = call.attr("delimiter") or None
    most = call.attr("maxsplit", -1)
    pieces = [s.split(delimiter, -1 if most is None else most) for s in x.reshape(-1)]
    width = max(map(len, pieces), default=0)
    table = np.full((len(pieces), width), "", object)
    for row, parts in enumerate(pieces):
        table[row, : len(parts)] = parts
    counts = np.array([len(parts) for parts in pieces], np.int64)
    return table.reshape(*x.shape, width), counts.reshape(x.shape)
