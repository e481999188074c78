"""Giving inputs the sizes that the user states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from optimizer.analysis.ranges import SizeRange
from optimizer.ir import DimDecl, Graph, Model, ShapeDecl, TensorType, UsageError, Value, ValueInfo


def specialize(
    model: Model,
    input_shapes: Mapping[str, Sequence[int]],
    dims: Mapping[str, int],
    ranges: Mapping[str, SizeRange] | None = None,
) -> dict[str, int]:
    """Freezes input shapes and named dims, in place, wherever these names are declared.

    Args:
        input_shapes: input name -> all its dims.
        dims: dim name (``dim_param``; ``input:axis`` for an unnamed dim) -> size.
        ranges: dim name -> the sizes it may have; these dims stay open, and must exist.

    Returns:
        The size of every dim name that is now fixed.

    Raises:
        UsageError: an unknown input or dim, another rank, or a contradiction to a fixed size.
    """
    graph = model.graph
    _check_names(graph, input_shapes, [*dims, *(ranges or {})])
    sizes = dict(dims)
    for value in graph.inputs:
        info = graph.info(value)
        _freeze_unnamed(graph, value, dims)
        if info.name in input_shapes:
            _freeze(graph, value, tuple(input_shapes[info.name]), sizes)
    for name, limits in (ranges or {}).items():
        if name in sizes and sizes[name] not in limits:
            raise UsageError(f"dim '{name}' is {sizes[name]}, which is not in {limits}")
    if sizes:
        for _, scope in model.graph.scopes():
            _substitute(scope, sizes)
    return sizes


def _freeze(graph: Graph, value: Value, wanted: tuple[int, ...], sizes: dict[str, int]) -> None:
    info = graph.info(value)
    if not isinstance(info.type, TensorType):
        raise UsageError(f"input '{info.name}' is not a tensor: it has no shape to set")
    declared = info.type.shape if info.type.shape is not None else (None,) * len(wanted)
    if len(declared) != len(wanted):
        raise UsageError(f"input '{info.name}' has rank {len(declared)}, the shape given has {len(wanted)}")
    for axis, (old, new) in enumerate(zip(declared, wanted, strict=True)):
        fixed = sizes.setdefault(old, new) if isinstance(old, str) and old else old
        if isinstance(fixed, int) and fixed >= 0 and fixed != new:
            raise UsageError(f"input '{info.name}' axis {axis} is {fixed} already, not {new}")
    info = replace(info, type=replace(info.type, shape=wanted))
    graph.set_attrs(value.node, outputs=[info])


def _freeze_unnamed(graph: Graph, value: Value, dims: Mapping[str, int]) -> None:
    info = graph.info(value)
    if not isinstance(info.type, TensorType) or info.type.shape is None:
        return
    shape = [
        dims.get(f"{info.name}:{axis}", dim) if is_unnamed(dim) else dim
        for axis, dim in enumerate(info.type.shape)
    ]
    if tuple(shape) != info.type.shape:
        graph.set_attrs(value.node, outputs=[replace(info, type=replace(info.type, shape=tuple(shape)))])


def is_unnamed(dim: DimDecl) -> bool:
    """Whether a declared dim is open and has no name."""
    return dim is None or dim == "" or (isinstance(dim, int) and dim < 0)


def _check_names(graph: Graph, shapes: Mapping[str, Sequence[int]], dims: Sequence[str]) -> None:
    infos = [graph.info(value) for value in graph.inputs]
    names = [info.name for info in infos]
    for name in shapes:
        if name not in names:
            raise UsageError(f"no input is called '{name}'; the inputs are {', '.join(names) or 'none'}")
    types = [info.type for info in infos if isinstance(info.type, TensorType)]
    known = list(dict.fromkeys(d for t in types for d in t.shape or () if isinstance(d, str) and d))
    for info in infos:
        if isinstance(info.type, TensorType):
            unnamed = [axis for axis, dim in enumerate(info.type.shape or ()) if is_unnamed(dim)]
            known += [f"{info.name}:{axis}" for axis in unnamed]
    for name in dims:
        if name not in known:
            raise UsageError(f"no input has a dim called '{name}'; there are {', '.join(known) or 'none'}")


def _substitute(graph: Graph, sizes: Mapping[str, int]) -> None:
    for node in [*graph.nodes, graph.sink, *(graph.producer(value) for value in graph.inputs)]:
        infos = [_with_sizes(info, sizes) for info in node.outputs]
        if any(new is not old for new, old in zip(infos, node.outputs, strict=True)):
            graph.set_attrs(node, outputs=infos)


def _with_sizes(info: ValueInfo, sizes: Mapping[str, int]) -> ValueInfo:
    if not isinstance(info.type, TensorType) or not info.type.shape:
        return info
    shape: ShapeDecl = tuple(_size(dim, sizes) for dim in info.type.shape)
    return info if shape == info.type.shape else replace(info, type=replace(info.type, shape=shape))


def _size(dim: DimDecl, sizes: Mapping[str, int]) -> DimDecl:
    return sizes.get(dim, dim) if isinstance(dim, str) else dim
