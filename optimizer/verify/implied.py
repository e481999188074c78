"""Numbers that operators imply and exporters write out, rounded."""

from __future__ import annotations

import math

from optimizer.ir import Value
from optimizer.verify.region import Region

AGREEMENT = 1e-6
"""How far a written constant may be from the number it stands for, relatively."""

IMPLIED = (
    1 / 6,
    1 / 3,
    math.sqrt(2),
    1 / math.sqrt(2),
    math.sqrt(2 / math.pi),
    2 / math.sqrt(math.pi),
    1 / math.sqrt(2 * math.pi),
    0.044715,
    math.sqrt(2 / math.pi) * 0.044715,
    0.035677408136300125,
    math.log(2),
    1 / math.log(2),
    math.pi,
    1.702,
    1.6732632423543772,
    1.0507009873554805,
    0.1,
    0.2,
    0.01,
)


def implied_values(region: Region) -> dict[Value, float]:
    """For written scalars that the new side does without: the number each of them stands for.

    Only where the two agree to 1e-6 and are not the same anyway.
    """
    found = {}
    for value in region.dropped:
        tensor = region.before.constants[value]
        if tensor.size != 1 or not tensor.dtype.is_float:
            continue
        written = float(tensor.array.reshape(()).astype(float))
        for number in IMPLIED:
            meant = math.copysign(number, written)
            if written != meant and abs(written - meant) <= AGREEMENT * number:
                found[value] = meant
    return found
