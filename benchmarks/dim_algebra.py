"""``PYTHON dim_algebra.py ENGINE``: seconds for the same arithmetic on dims, with ``dims`` or ``sympy``.

Stands alone: the Python that runs it with ``sympy`` need not have this project.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

GROUPS = 300


@dataclass(frozen=True)
class Engine:
    """What is asked of integers that are not known."""

    symbol: Callable[[str], Any]
    floor_div: Callable[[Any, int], Any]
    maximum: Callable[[Any, Any], Any]
    equal: Callable[[Any, Any], bool]


def dims() -> Engine:
    from optimizer.analysis import Dim, maximum

    return Engine(Dim.symbol, lambda a, k: a // k, maximum, lambda a, b: a.eq(b) is True)


def sympy() -> Engine:
    import sympy as algebra

    return Engine(
        lambda name: algebra.Symbol(name, integer=True, nonnegative=True),
        lambda a, k: algebra.floor(a / k),
        algebra.Max,
        lambda a, b: bool(algebra.expand(a - b) == 0),
    )


def work(engine: Engine, groups: range) -> int:
    """What one convolution, one split of heads and one concatenation need, on new names each time."""
    decided = 0
    for group in groups:
        batch, seq, height = (engine.symbol(f"{name}{group}") for name in ("batch", "seq", "height"))
        halved = engine.floor_div(height + 2 - 3, 2) + 1
        again = engine.floor_div(halved + 2 - 3, 2) + 1
        tokens = batch * (seq + 1) * 12
        joined = batch * seq * 12 + batch * 12
        longest = engine.maximum(seq + 4, seq + 1)
        decided += engine.equal(tokens, joined)
        decided += engine.equal(longest, seq + 4)
        decided += engine.equal(again * batch * 4, (again * 2) * (batch * 2))
    return decided


def seconds(engine: Engine) -> float:
    """The fastest of three runs over names not seen before."""
    found = []
    for run in range(1, 4):
        start = time.perf_counter()
        decided = work(engine, range(run * GROUPS, (run + 1) * GROUPS))
        found.append(time.perf_counter() - start)
        if decided != 3 * GROUPS:
            raise SystemExit(f"dim_algebra: only {decided} of {3 * GROUPS} equalities were found")
    return min(found)


if __name__ == "__main__":
    print(seconds({"dims": dims, "sympy": sympy}[sys.argv[1]]()))
