"""Sizes for the open dims of a model that the model itself accepts."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from optimizer.analysis import SizeRange
from optimizer.ir import Graph, Model, Node, TensorType, Value, ValueInfo
from optimizer.verify.engines import EngineError
from optimizer.verify.feeds import concrete_shape, symbols_of

Sizes = dict[str, int]
Run = Callable[[Mapping[str, int]], object]
Symbols = Mapping[str, list[tuple[ValueInfo, int]]]

_SMALL = ((7, 11, 13, 17, 19, 23), (5, 9, 10, 14, 15, 21))
_SPATIAL = ((37, 53, 61), (41, 33, 29))
_LARGER = (32, 64, 224, 48, 8, 16, 128, 3, 1, 256, 512, 4, 80, 640)
MOST_ELEMENTS = 1 << 24
"""Elements of the inputs of a size that is worth a try, where other sizes may do."""
SECONDS = 60.0
"""How long sizes are tried; a run that has begun ends."""
_RANKS = (2, 4, 3, 1, 0)
_STATES = ("state", "hidden", "cell", "h0", "c0", "h_0", "c_0")


@dataclass(frozen=True, slots=True)
class FoundSizes:
    """Assignments the model accepts.

    Attributes:
        accepted: in the order they were tried.
        tried: how many were tried.
        reason: what the model said to the last one it rejected.
    """

    accepted: tuple[Sizes, ...]
    tried: int
    reason: str = ""


def find_sizes(
    model: Model,
    run: Run,
    wanted: int = 2,
    *,
    ranges: Mapping[str, SizeRange] | None = None,
    tries: int = 40,
) -> FoundSizes:
    """Tries assignments in a fixed order until the model accepts ``wanted`` of them.

    Those that make inputs of very many elements are left out, and nothing more is tried after a run
    that was stopped, or when ``SECONDS`` are over.

    First small and distinct ones (a batch of 2, then of 1; primes, so that axes cannot be mistaken
    for one another), then multiples of 32, 64, 224 and others, then the same number everywhere.

    Args:
        run: runs the original at given sizes; ``EngineError`` means that it rejects them.
        ranges: the sizes that dims may have; others are moved to near ones of these.
        tries: attempts at most.
    """
    symbols = symbols_of(model)
    fixed = _demanded(model, symbols)
    accepted: list[Sizes] = []
    reason, tried = "", 0
    candidates = _distinct(_within(candidate, ranges or {}) for candidate in _candidates(symbols, fixed))
    until = time.monotonic() + SECONDS
    for sizes in _affordable(model, candidates):
        if tried >= tries or (tried and time.monotonic() > until):
            break
        tried += 1
        try:
            run(sizes)
        except EngineError as error:
            if error.stage not in ("run", "finish"):
                raise
            reason = str(error)
            if error.stage == "finish":
                break
            continue
        accepted.append(sizes)
        if len(accepted) >= wanted:
            break
    return FoundSizes(tuple(accepted), tried, reason)


def _affordable(model: Model, candidates: Iterator[Sizes]) -> Iterator[Sizes]:
    """The candidates whose inputs are of a size to try; the first one always."""
    for place, sizes in enumerate(candidates):
        if not place or _elements(model, sizes) <= MOST_ELEMENTS:
            yield sizes


def _elements(model: Model, sizes: Sizes) -> int:
    """Elements of all tensors that go in."""
    infos = [model.graph.info(value) for value in model.graph.inputs]
    shapes = [concrete_shape(i.name, i.type, sizes) for i in infos if isinstance(i.type, TensorType)]
    return sum(math.prod(shape) for shape in shapes)


def _within(sizes: Sizes, ranges: Mapping[str, SizeRange]) -> Sizes:
    return {key: _nearest(ranges[key], size) if key in ranges else size for key, size in sizes.items()}


def _nearest(limits: SizeRange, size: int) -> int:
    """A size within the limits; those below the divisor are spread over one, two and three times it.

    A batch of 2 and one of 1 would else be the same, and what holds for one size only would not show.
    """
    divisor = limits.divisor
    return limits.nearest(size if size >= divisor else divisor * (1 + (size - 1) % 3))


def _distinct(candidates: Iterator[Sizes]) -> Iterator[Sizes]:
    seen: list[Sizes] = []
    for sizes in candidates:
        if sizes not in seen:
            seen.append(sizes)
            yield sizes


def _candidates(
    symbols: Mapping[str, list[tuple[ValueInfo, int]]], fixed: Mapping[str, int]
) -> Iterator[Sizes]:
    if not symbols:
        yield {}
        return
    for small, spatial, batch in zip(_SMALL, _SPATIAL, (2, 1), strict=True):
        yield _assign(symbols, fixed, batch, small, spatial)
    for size in _LARGER:
        steps = [size * k for k in (1, 2, 3, 4)]
        yield _assign(symbols, fixed, 1, steps, steps)
    for size in _LARGER:
        yield _assign(symbols, fixed, 1, [size], [size])
        yield _assign_last(symbols, fixed, size)
    for size in (2, 4, 8):
        yield _assign(symbols, fixed, size, [size], [size])


def _assign(
    symbols: Symbols,
    fixed: Mapping[str, int],
    batch: int,
    small: Sequence[int],
    spatial: Sequence[int],
) -> Sizes:
    sizes: Sizes = {}
    used = {"small": count(), "spatial": count(), "rank": count()}

    def following(kind: str, numbers: Sequence[int]) -> int:
        return numbers[next(used[kind]) % len(numbers)]

    for key, places in symbols.items():
        if key in fixed:
            sizes[key] = fixed[key]
        elif key.endswith(":rank"):
            sizes[key] = following("rank", _RANKS)
        elif _is_batch(key, places):
            sizes[key] = batch
        elif _is_spatial(places):
            sizes[key] = following("spatial", spatial)
        else:
            sizes[key] = following("small", small)
    return sizes


def _assign_last(symbols: Symbols, fixed: Mapping[str, int], size: int) -> Sizes:
    """``size`` for what stands on a last axis, 1 for the others; the first rank where that is open."""

    def chosen(key: str, places: Sequence[tuple[ValueInfo, int]]) -> int:
        if key.endswith(":rank"):
            return _RANKS[0]
        return size if any(axis == _rank(info) - 1 for info, axis in places) else 1

    return {key: fixed.get(key, chosen(key, places)) for key, places in symbols.items()}


def _is_batch(key: str, places: Sequence[tuple[ValueInfo, int]]) -> bool:
    return "batch" in key.lower() or all(
        _rank(info) > 1 and (axis == 0 or (axis == 1 and _is_state(info))) for info, axis in places
    )


def _is_state(info: ValueInfo) -> bool:
    """Whether it looks like the state of a recurrent operator: [layers, batch, size]."""
    return _rank(info) == 3 and any(word in info.name.lower() for word in _STATES)


def _is_spatial(places: Sequence[tuple[ValueInfo, int]]) -> bool:
    return all(axis >= 2 and _rank(info) in (4, 5) for info, axis in places)


def _rank(info: ValueInfo) -> int:
    return len(getattr(info.type, "shape", None) or ())


# -------------------------------------------------------------------- what the weights demand

_WEIGHTED: dict[str, tuple[int, int]] = {
    "Conv": (1, 1),
    "ConvTranspose": (1, 0),
    "MatMul": (-1, -2),
    "Gemm": (-1, 0),
    "LSTM": (2, 2),
    "GRU": (2, 2),
    "RNN": (2, 2),
    "BatchNormalization": (1, 0),
    "InstanceNormalization": (1, 0),
}
"""Operator to (axis of input 0, axis of constant input 1) that must have the same size."""
_PASSES = {"Identity", "Cast", "Relu", "Sigmoid", "Sub", "Div", "Mul", "Add", "Clip", "BatchNormalization"}


def _demanded(model: Model, symbols: Mapping[str, object]) -> Sizes:
    """Sizes of open dims that follow from the weights their input meets."""
    found: Sizes = {}
    graph = model.graph
    for value in graph.inputs:
        info = graph.info(value)
        shape = getattr(info.type, "shape", None)
        for axis, size in _met_weights(graph, value, len(shape or ())):
            dim = shape[axis] if shape else 0
            key = dim if isinstance(dim, str) and dim else f"{info.name}:{axis}"
            if key in symbols:
                found.setdefault(key, size)
    return found


def _met_weights(graph: Graph, value: Value, rank: int) -> Iterator[tuple[int, int]]:
    """The (axis, size) pairs that weights ask for, at the input or behind elementwise operators."""
    queue, seen = [value], {value}
    for current in queue:
        for use in graph.uses(current) if len(seen) < 32 else ():
            node = graph.node(use.node)
            if use.slot != 0 or not node.is_operator:
                continue
            axis, size = _weight_demand(graph, node)
            if size is not None and -rank <= axis < rank:
                yield axis % rank, size
            if node.op_type in _PASSES and node.value() not in seen:
                seen.add(node.value())
                queue.append(node.value())


def _weight_demand(graph: Graph, node: Node) -> tuple[int, int | None]:
    """The axis of the first input and the size that the constant second input wants there."""
    tensor = graph.tensor(node.input(1))
    if tensor is None or node.op_type not in _WEIGHTED:
        return 0, None
    axis, weight_axis = _WEIGHTED[node.op_type]
    if node.op_type == "Gemm":
        axis, weight_axis = -2 if node.attr("transA", 0) else -1, int(bool(node.attr("transB", 0)))
    if not -len(tensor.shape) <= weight_axis < len(tensor.shape):
        return 0, None
    groups: int = node.attr("group", 1) if node.op_type == "Conv" else 1
    return axis, tensor.shape[weight_axis] * groups
