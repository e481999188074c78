"""Numbers that operators imply and exporters write out, rounded."""

from __future__ import annotations

import math
from dataclasses import replace

from optimizer.ir import AttributeKind, Node, Value
from optimizer.verify.region import Region
from optimizer.verify.sides import Side

AGREEMENT = 1e-6
"""How far a written constant may be from the number it stands for, relatively."""

IMPLIED = (
    1 / 6,  # HardSigmoid, HardSwish
    1 / 3,
    math.sqrt(2),  # Gelu: x / sqrt(2)
    1 / math.sqrt(2),
    math.sqrt(2 / math.pi),  # Gelu by tanh
    2 / math.sqrt(math.pi),  # the slope of Erf at 0
    1 / math.sqrt(2 * math.pi),  # the normal density
    0.044715,  # Gelu by tanh: of the cube
    math.sqrt(2 / math.pi) * 0.044715,  # both multiplied out
    math.log(2),  # bases of Exp and Log
    1 / math.log(2),
    math.pi,
    1.702,  # Gelu by Sigmoid
    1.6732632423543772,  # Selu: alpha
    1.0507009873554805,  # Selu: gamma
    0.1,  # decimal numbers that no binary fraction is: slopes of LeakyRelu, HardSigmoid
    0.2,
    0.01,
)
"""What the new operator computes with exactly, and a float32 holds rounded."""


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
        meant = _number_for(written)
        if meant is not None and meant != written:
            found[value] = meant
    return found


def with_implied_attributes(side: Side) -> Side:
    """The side with its float attributes at the numbers they stand for, where they stand for one."""
    return replace(side, nodes=[_meant(node) for node in side.nodes])


def has_implied_attributes(region: Region) -> bool:
    """Whether a node of the old side alone has such an attribute."""
    return any(_meant(node) is not node for node in region.before.nodes)


def _meant(node: Node) -> Node:
    found = {}
    for name, attribute in node.attributes.items():
        if attribute.kind is AttributeKind.FLOAT and not attribute.reference:
            meant = _number_for(float(attribute.value))
            if meant is not None and meant != attribute.value:
                found[name] = replace(attribute, value=meant)
    return replace(node, attributes={**node.attributes, **found}) if found else node


def _number_for(written: float) -> float | None:
    for number in IMPLIED:
        meant = math.copysign(number, written)
        if abs(written - meant) <= AGREEMENT * number:
            return meant
    return None
