"""Seeded inputs for a whole model, and the symbols that their sizes go by."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from optimizer.ir import (
    DType,
    Graph,
    Model,
    OptimizerError,
    OptionalType,
    SequenceType,
    TensorType,
    UsageError,
    Value,
    ValueInfo,
    ValueType,
)
from optimizer.verify.purpose import Purpose, find_purpose
from optimizer.verify.values import Fill, generator, make_values

DEFAULT_SIZE = 2


MAX_ELEMENTS = 1 << 40
"""Elements of one input; beyond, no machine holds it, and NumPy says so in many ways."""
MAX_RANK = 64
"""Dimensions of a NumPy array."""


class NoFeed(OptimizerError):
    """No values can be made up for an input: a map, an opaque type, or one without a type."""


class FeedMaker:
    """Makes inputs for one model; what each is for is looked up once.

    Args:
        model: the model as it was loaded, before any rewrite.
    """

    def __init__(self, model: Model) -> None:
        graph = model.graph
        self._required = [graph.info(v) for v in graph.inputs if graph.node(v).attr("default") is None]
        self._defaults = {
            graph.info(v).name: graph.node(v).attr("default")
            for v in graph.inputs
            if graph.node(v).attr("default") is not None
        }
        self._purposes = {
            graph.info(v).name: find_purpose(graph, v, declared_sizes, model.functions) for v in graph.inputs
        }

    def make(self, seed: int, sizes: Mapping[str, int], fill: Fill = "normal") -> dict[str, Any]:
        """Values for all inputs, by name.

        Inputs with a default value are left to it for seed 0; for other seeds its floats are scaled
        by 1 + 2**-7, so that a default that was taken for a constant shows.

        Raises:
            NoFeed: there is an input of a type or size that no values can be made for.
        """
        feeds = {
            info.name: self._value(info.name, info.type, generator(info.name, seed), seed, sizes, fill)
            for info in self._required
        }
        for name, default in self._defaults.items() if seed else ():
            if default.dtype in (DType.FLOAT, DType.DOUBLE, DType.FLOAT16):
                feeds[name] = (default.array * (1 + 2.0**-7)).astype(default.dtype.numpy)
        return feeds

    def _value(
        self,
        name: str,
        declared: ValueType | None,
        rng: np.random.Generator,
        seed: int,
        sizes: Mapping[str, int],
        fill: Fill,
    ) -> Any:
        if isinstance(declared, SequenceType):
            return [self._value(name, declared.elem, rng, seed, sizes, fill) for _ in range(2)]
        if isinstance(declared, OptionalType):
            return self._value(name, declared.elem, rng, seed, sizes, fill)
        if not isinstance(declared, TensorType) or declared.dtype is DType.UNDEFINED or declared.sparse:
            raise NoFeed(f"no values can be made up for input '{name}': give it a dense tensor type")
        shape = concrete_shape(name, declared, sizes)
        if len(shape) > MAX_RANK or math.prod(max(size, 1) for size in shape) > MAX_ELEMENTS:
            raise NoFeed(f"no values can be made for input '{name}': shape {list(shape)} is too large")
        purpose = self._purposes.get(name, Purpose())
        return make_values(purpose, declared.dtype, shape, rng, fill=fill, seed=seed)


def make_feeds(
    model: Model, seed: int, sizes: Mapping[str, int] | None = None, fill: Fill = "normal"
) -> dict[str, Any]:
    """``FeedMaker(model).make(...)``: seeded values for all inputs of a model, by name."""
    return FeedMaker(model).make(seed, sizes or {}, fill)


def check_feed(label: str, info: ValueInfo, feeds: Mapping[str, Any]) -> None:
    """Makes sure that a given input has the type and shape that the model declares for it.

    Raises:
        UsageError: naming data set and input.
    """
    declared, array = info.type, feeds.get(info.name)
    if array is None or not isinstance(declared, TensorType):
        return
    where = f"data set '{label}': input '{info.name}'"
    if not isinstance(array, np.ndarray) or DType.from_numpy(array.dtype) != declared.dtype:
        given = getattr(array, "dtype", type(array).__name__)
        raise UsageError(f"{where} is {given}, the model wants {declared.dtype.name.lower()}")
    wanted = declared.shape
    if wanted is not None and (
        len(wanted) != array.ndim
        or any(isinstance(w, int) and w >= 0 and w != s for w, s in zip(wanted, array.shape, strict=True))
    ):
        spelled = ", ".join("?" if dim is None else str(dim) for dim in wanted)
        raise UsageError(f"{where} has shape {list(array.shape)}, the model wants [{spelled}]")


def declared_sizes(graph: Graph, value: Value) -> Sequence[int | None] | None:
    """The sizes of a constant or of a declared type, as far as they are numbers."""
    tensor = graph.tensor(value)
    if tensor is not None:
        return tensor.shape
    declared = graph.info(value).type
    if not isinstance(declared, TensorType) or declared.shape is None:
        return None
    return [dim if isinstance(dim, int) and dim >= 0 else None for dim in declared.shape]


def symbols_of(model: Model) -> dict[str, list[tuple[ValueInfo, int]]]:
    """Every size that is open: the name of a dim, or ``input:axis``, to where it stands.

    ``input:rank`` stands for a tensor whose rank is not declared. Names that are arithmetic on other
    names (``past + 1``) are not open. Inputs with a default value are not looked at.
    """
    found: dict[str, list[tuple[ValueInfo, int]]] = {}
    graph = model.graph
    infos = [graph.info(v) for v in graph.inputs if graph.node(v).attr("default") is None]
    for info in infos:
        declared = info.type
        while isinstance(declared, (SequenceType, OptionalType)):
            declared = declared.elem
        if not isinstance(declared, TensorType):
            continue
        if declared.shape is None:
            found.setdefault(f"{info.name}:rank", []).append((info, -1))
        for axis, dim in enumerate(declared.shape or ()):
            if not isinstance(dim, int) or dim < 0:
                found.setdefault(dim if isinstance(dim, str) and dim else f"{info.name}:{axis}", []).append(
                    (info, axis)
                )
    return {key: places for key, places in found.items() if not _is_computed(key, found)}


def concrete_shape(name: str, declared: TensorType, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The declared shape with ``sizes`` for its names (and ``input:axis`` for unnamed dims)."""
    if declared.shape is None:
        rank = sizes.get(f"{name}:rank", 2)
        return tuple(sizes.get(f"{name}:{axis}", DEFAULT_SIZE) for axis in range(rank))
    shape = []
    for axis, dim in enumerate(declared.shape):
        if isinstance(dim, int) and dim >= 0:
            shape.append(dim)
        else:
            key = dim if isinstance(dim, str) and dim else f"{name}:{axis}"
            shape.append(size_of(key, sizes))
    return tuple(shape)


def size_of(key: str, sizes: Mapping[str, int]) -> int:
    """The size of a name, which may be arithmetic on other names; 2 where nothing says."""
    if key in sizes:
        return sizes[key]
    computed = _compute(key, sizes)
    return DEFAULT_SIZE if computed is None else max(computed, 0)


_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.floordiv,
}


def _is_computed(key: str, names: Mapping[str, object]) -> bool:
    """Whether a dim name is arithmetic on names that occur elsewhere."""
    return (
        not key.isidentifier() and _compute(key, dict.fromkeys((n for n in names if n != key), 1)) is not None
    )


def _compute(text: str, sizes: Mapping[str, int]) -> int | None:
    def value(node: ast.expr) -> int:
        if isinstance(node, ast.Name):
            return sizes[node.id]
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return node.value
        if isinstance(node, ast.BinOp):
            return _OPERATORS[type(node.op)](value(node.left), value(node.right))
        raise KeyError(text)

    try:
        return value(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, KeyError, ZeroDivisionError):
        return None
