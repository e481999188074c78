"""What an input is for, found by following it to the operators that read it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from optimizer.ir import Function, Graph, Node, Value

Kind = Literal["index", "shape", "choice", "mask", "factor", "step", "position", "value"]
SizeOf: TypeAlias = Callable[[Graph, Value], "Sequence[int | None] | None"]
Functions: TypeAlias = Mapping[tuple[str, str, str], Function]

MAX_VISITED = 200


@dataclass(frozen=True, slots=True)
class Purpose:
    """How values for an input must look.

    Attributes:
        kind: ``index`` into a table, ``shape`` or count (small and positive), ``choice`` (compared
            with constants), ``mask``, ``factor`` (of a Resize), ``step`` (the scale of a quantization),
            ``position``, or any ``value``.
        limit: rows of the smallest table an index goes into, where known.
        choices: the constants a choice is compared with.
    """

    kind: Kind = "value"
    limit: int | None = None
    choices: tuple[int, ...] = ()


_CARRIES = {
    "Cast", "CastLike", "Unsqueeze", "Squeeze", "Reshape", "Identity", "Flatten", "Transpose", "Expand",
    "Slice", "Concat", "Tile", "Clip", "Abs", "Split", "Gather", "Max", "Min",
}  # fmt: skip
_TABLES = {("Gather", 1), ("GatherElements", 1), ("GatherND", 1), ("ScatterElements", 1), ("ScatterND", 1)}
_COUNTS = {
    ("Reshape", 1), ("Expand", 1), ("Tile", 1), ("ConstantOfShape", 0), ("Range", 0), ("Range", 1),
    ("Range", 2), ("Resize", 3), ("Slice", 1), ("Slice", 2), ("Slice", 4), ("TopK", 1), ("Split", 1),
    ("Loop", 0), ("Pad", 1), ("NonMaxSuppression", 2), ("EyeLike", 0), ("AffineGrid", 1),
    ("STFT", 1), ("STFT", 3), ("DFT", 1), ("HannWindow", 0), ("HammingWindow", 0), ("BlackmanWindow", 0),
    ("MelWeightMatrix", 0), ("MelWeightMatrix", 1), ("Col2Im", 1), ("Col2Im", 2), ("CenterCropPad", 1),
}  # fmt: skip
_FACTORS = {("Resize", 2), ("Upsample", 1)}
_STEPS = {
    ("QuantizeLinear", 1), ("DequantizeLinear", 1),
    ("QLinearConv", 1), ("QLinearConv", 4), ("QLinearConv", 6),
    ("QLinearMatMul", 1), ("QLinearMatMul", 4), ("QLinearMatMul", 6),
}  # fmt: skip
_CONDITIONS = {("Not", 0), ("If", 0), ("Compress", 1), ("Where", 0)}
_CONDITIONS |= {(op, slot) for op in ("And", "Or", "Xor") for slot in (0, 1)}
_COMPARES = {"Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual"}


def find_purpose(graph: Graph, value: Value, size_of: SizeOf, functions: Functions | None = None) -> Purpose:
    """The purpose of a graph input (or any other value), from its users and its name.

    Args:
        size_of: the sizes of a value's dimensions as far as they are known.
    """
    name = graph.info(value).name.lower()
    found = [p for p in _purposes(graph, value, size_of, functions or {}) if p is not None]
    if "mask" in name:
        return Purpose("mask")
    limits = [p.limit for p in found if p.kind == "index" and p.limit is not None]
    if any(p.kind == "index" for p in found):
        limit = min(limits) if limits else None
        return Purpose("position" if "position" in name else "index", limit)
    choices = tuple(dict.fromkeys(c for p in found for c in p.choices))
    for kind in ("shape", "choice", "mask", "factor", "step"):
        if any(p.kind == kind for p in found):
            return Purpose(kind, choices=choices)
    return Purpose("position" if "position" in name else "value")


def _purposes(graph: Graph, value: Value, size_of: SizeOf, functions: Functions) -> Iterator[Purpose | None]:
    """What each operator that the value reaches, directly or through carriers, wants of it."""
    queue: list[tuple[Graph, Value]] = [(graph, value)]
    seen = set(queue)
    for scope, current in queue:
        if len(seen) > MAX_VISITED:
            return
        for use in scope.uses(current):
            node = scope.node(use.node)
            if not node.is_operator:
                continue
            yield _wanted(scope, node, use.slot, size_of)
            following = [*_carried(node, use.slot), *_entered(scope, node, use.slot, functions)]
            for step in following:
                place = (step[0] or scope, step[1])
                if place not in seen:
                    seen.add(place)
                    queue.append(place)


def _wanted(graph: Graph, node: Node, slot: int, size_of: SizeOf) -> Purpose | None:
    key = (node.op_type, slot)
    if key in _TABLES:
        return Purpose("index", _rows(graph, node, size_of))
    if node.op_type == "EmbedLayerNormalization" and slot in (0, 1):
        table = node.input(2 if slot == 0 else 4)
        sizes = None if table is None else size_of(graph, table)
        return Purpose("index", sizes[0] if sizes else None)
    if key == ("OneHot", 0):
        depth = graph.const(node.input(1))
        return Purpose("index", int(depth.reshape(-1)[0]) if depth is not None and depth.size else None)
    if key == ("RoiAlign", 2):
        return Purpose("index", _rows(graph, node, size_of) or 1)
    if key in _COUNTS:
        return Purpose("shape")
    if key in _FACTORS or key in _STEPS:
        return Purpose("factor" if key in _FACTORS else "step")
    if node.op_type in _COMPARES:
        other = graph.const(node.input(1 - slot)) if slot < 2 else None
        if other is not None and 0 < other.size <= 8 and other.dtype.kind in "iu":
            return Purpose("choice", choices=tuple(int(v) for v in other.reshape(-1)))
    if key in _CONDITIONS:
        return Purpose("mask")
    return None


def _rows(graph: Graph, node: Node, size_of: SizeOf) -> int | None:
    """How many rows the table of a Gather-like operator has."""
    table = node.input(0)
    sizes = None if table is None else size_of(graph, table)
    if not sizes:
        return None
    if node.op_type in ("GatherND", "ScatterND"):
        known = [size for size in sizes if size is not None]
        return min(known) if len(known) == len(sizes) else None
    axis: int = node.attr("axis", 0)
    return sizes[axis] if -len(sizes) <= axis < len(sizes) else None


def _carried(node: Node, slot: int) -> Iterator[tuple[Graph | None, Value]]:
    """The outputs that hold the same elements (or positions) as the operand."""
    first = slot == 0 or node.op_type in ("Concat", "Max", "Min")
    if (node.op_type in _CARRIES and first) or (node.op_type == "Where" and slot in (1, 2)):
        yield from ((None, node.value(i)) for i in range(len(node.outputs)))


def _entered(
    graph: Graph, node: Node, slot: int, functions: Functions
) -> Iterator[tuple[Graph | None, Value]]:
    """Where the operand is read inside the bodies or the function of a node."""
    function = functions.get((node.domain, node.op_type, node.overload))
    if function is not None and slot < len(function.graph.inputs):
        yield function.graph, function.graph.inputs[slot]
    position = slot - len(node.inputs)
    for _, body in node.bodies if position >= 0 else ():
        if 0 <= position < len(body.captures):
            yield body, body.captures[position]
        position -= len(body.captures)
