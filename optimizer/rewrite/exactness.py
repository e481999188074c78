"""How exactly a rewrite keeps the outputs, and which floating-point levels admit it."""

from __future__ import annotations

from enum import IntEnum


class Exactness(IntEnum):
    """What a rewrite may change in the outputs."""

    E0 = 0
    """Nothing: the same bits for every input."""
    E1 = 1
    """Nothing on finite inputs; NaN, infinities or the sign of zero may differ."""
    E2 = 2
    """Rounding only: the same real function, evaluated in another order."""
    E3 = 3
    """The function itself, or it relies on an assumption about the data."""


FP_LEVELS = {"strict": Exactness.E0, "default": Exactness.E2, "fast": Exactness.E3}
"""The least exact tag that each level of ``fp`` admits."""
