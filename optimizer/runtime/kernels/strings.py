"""Strings."""

from __future__ import annotations

import re
from collections.abc import Callable

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
    texts = x.reshape(-1).tolist() if delimiter else [s.strip() for s in x.reshape(-1)]
    pieces = [s.split(delimiter, -1 if most is None else most) for s in texts]
    width = max(map(len, pieces), default=0)
    table = np.full((len(pieces), width), "", object)
    for row, parts in enumerate(pieces):
        table[row, : len(parts)] = parts
    counts = np.array([len(parts) for parts in pieces], np.int64)
    return table.reshape(*x.shape, width), counts.reshape(x.shape)


@kernel("StringNormalizer", 10, exact=True)
def string_normalizer(call: Call, x: Array) -> Array:
    """Drops stop words, then changes the case; if none is left, one empty string is. No locale is asked."""
    if x.ndim not in (1, 2) or (x.ndim == 2 and x.shape[0] != 1):
        raise ValueError(f"shape {list(x.shape)} is neither [C] nor [1, C]")
    changes: dict[str, Callable[[str], str]] = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}
    action = call.attr("case_change_action", "NONE")
    if action not in changes:
        raise ValueError(f"unknown case_change_action '{action}'")
    seen: Callable[[str], str] = str if call.attr("is_case_sensitive", 0) else str.lower
    stops = {seen(word) for word in call.attr("stopwords", ())}
    kept = [changes[action](word) for word in x.reshape(-1) if seen(word) not in stops] or [""]
    return np.array(kept, object).reshape(*x.shape[:-1], len(kept))
