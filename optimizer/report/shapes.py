"""What is inferred about every tensor of a model, beside what runs of it really produce."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, TypeAlias

import numpy as np

from optimizer.analysis import Atom, Dim, Fact, Facts, SizeRange
from optimizer.io import load, to_proto
from optimizer.ir import DType, Graph, Model, Node, ValueInfo

Sizes: TypeAlias = dict[str | Atom, int]
WRONG = "<- wrong"


@dataclass(slots=True)
class ShapeRow:
    """One tensor.

    Attributes:
        path: the bodies it is in, outermost first; empty for the main graph.
        inferred: what is known of it.
        produced: type and shape of each run, empty where it was not seen.
        wrong: a run disproves what is inferred.
    """

    path: tuple[str, ...]
    name: str
    inferred: Fact
    produced: list[str] = field(default_factory=list)
    wrong: bool = False


@dataclass(slots=True)
class ShapeTable:
    """Every tensor that an operator or an input makes, in the order in which they run.

    Attributes:
        runs: what the sizes of each run were.
        notes: contradictions between declared and inferred types, and why there are no runs.
    """

    rows: list[ShapeRow]
    runs: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def wrong(self) -> list[ShapeRow]:
        """The tensors whose inferred shape or type is not what a run produced."""
        return [row for row in self.rows if row.wrong]

    def __str__(self) -> str:
        head = ["tensor", "inferred", *self.runs]
        body = [[_indented(row), str(row.inferred), *row.produced] for row in self.rows]
        marks = ["", *(WRONG if row.wrong else "" for row in self.rows)]
        lines = [*_aligned([head, *body], marks), *(f"note: {note}" for note in self.notes)]
        if self.runs:
            lines.append(f"{len(self.wrong)} of {len(self.rows)} tensors inferred wrong")
        return "\n".join(lines)


def infer_shapes(model: Model, dims: Mapping[str, SizeRange] | None = None) -> ShapeTable:
    """The inferred type of every tensor, those of bodies seen with what is known around them."""
    facts = Facts(model.graph, model.functions, dims=dims).settle()
    rows = list(_rows((), facts))
    return ShapeTable(rows, notes=list(facts.warnings))


def check_shapes(source: str | PathLike[str] | bytes) -> ShapeTable:
    """``infer_shapes`` beside what onnxruntime produces at two sizes that the model accepts.

    Tensors of bodies are inferred only: a runtime does not show them.
    """
    from optimizer.verify.engines import EngineError, OnnxRuntime
    from optimizer.verify.reference import Reference

    table = infer_shapes(load(source))
    reference = Reference(source, seeds=1)
    try:
        exposed = _exposed(load(source), table)
        engine = OnnxRuntime(to_proto(exposed).SerializeToString(), model=exposed)
    except EngineError as error:
        table.notes.append(str(error))
        return table
    for case in reference.cases:
        try:
            produced = engine.run(case.feeds) | case.feeds
        except EngineError as error:
            table.notes.append(f"{error} ({case.label})")
            continue
        _compare(table, load(source), produced)
        table.runs.append(", ".join(f"{k}={v}" for k, v in case.sizes.items()) or "produced")
    if not reference.cases:
        table.notes.append(reference.reason)
    return table


def _rows(path: tuple[str, ...], facts: Facts) -> Iterator[ShapeRow]:
    graph = facts.graph
    for value in graph.inputs if not path else ():
        yield ShapeRow(path, graph.info(value).name, facts.of(value))
    for node in graph.topological():
        for index, info in enumerate(node.outputs):
            if info.name:
                yield ShapeRow(path, info.name, facts.of(node.value(index)))
        for position, (name, _) in enumerate(node.bodies):
            yield from _rows((*path, f"{_owner(graph, node)}.{name}"), facts.body(node, position))


def _owner(graph: Graph, node: Node) -> str:
    return node.name or graph.label(node)


def _indented(row: ShapeRow) -> str:
    return "  " * len(row.path) + row.name


def _aligned(rows: list[list[str]], marks: list[str]) -> Iterator[str]:
    columns = max(len(row) for row in rows)
    widths = [max(len(row[i]) for row in rows if i < len(row)) for i in range(columns)]
    for row, mark in zip(rows, marks, strict=True):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        yield "  ".join([*cells, mark]).rstrip()


# -------------------------------------------------------------------- what is really produced


def _exposed(model: Model, table: ShapeTable) -> Model:
    """The model with every named tensor of the main graph as an output."""
    graph = model.graph
    wanted = {row.name for row in table.rows if not row.path}
    have = {info.name for info in graph.sink.outputs}
    more = [
        (node.value(index), ValueInfo(info.name))
        for node in graph.topological()
        for index, info in enumerate(node.outputs)
        if info.name in wanted - have
    ]
    graph.set_outputs(
        [*graph.outputs, *(value for value, _ in more)],
        [*(replace(info, type=None) for info in graph.sink.outputs), *(info for _, info in more)],
    )
    return model


def _compare(table: ShapeTable, model: Model, produced: Mapping[str, Any]) -> None:
    sizes: Sizes = {}
    inputs = {model.graph.info(value).name for value in model.graph.inputs}
    for row in table.rows:
        real = produced.get(row.name) if not row.path else None
        if not isinstance(real, (np.ndarray, np.generic)):
            row.produced.append("")
            continue
        if row.name in inputs and row.inferred.shape is not None:
            _bind(row.inferred.shape, real.shape, sizes)
        row.produced.append(f"{_dtype_name(real)}[{', '.join(map(str, real.shape))}]")
        row.wrong |= _disproves(row.inferred, real, sizes)


def _bind(shape: tuple[Dim, ...], real: tuple[int, ...], sizes: Sizes) -> None:
    """Takes the sizes of inputs for what their dims are called."""
    for dim, size in zip(shape, real, strict=False):
        for atom in dim.leaves:
            if len(dim.terms) == 1:
                sizes.setdefault(atom if atom.kind == "fresh" else atom.name, size)


def _disproves(fact: Fact, real: np.ndarray | np.generic, sizes: Sizes) -> bool:
    """Whether ``fact`` cannot be true. An unknown may be anything, but the same wherever it stands."""
    if fact.type is not None or (fact.shape is not None and len(fact.shape) != real.ndim):
        return True
    text = real.dtype.kind in "OSU"
    if fact.dtype is not None and text != (fact.dtype is DType.STRING):
        return True
    if fact.dtype is not None and not text and real.dtype not in _numpy_dtypes(fact.dtype):
        return True
    for dim, size in zip(fact.shape or (), real.shape, strict=False):
        if len(dim.leaves) == 1 and dim == Dim.lone(next(iter(dim.leaves))) and not dim.is_known:
            sizes.setdefault(next(iter(dim.leaves)), size)
        expected = dim.evaluate(sizes)
        if expected is not None and expected != size:
            return True
    return False


def _numpy_dtypes(dtype: DType) -> tuple[np.dtype[Any], ...]:
    """What onnxruntime gives for an element type: bytes where NumPy has none, packed ones included."""
    if dtype.bits < 8 or (dtype.is_float and dtype.bits == 8):
        return dtype.numpy, np.dtype(np.uint8), np.dtype(np.int8)
    return dtype.numpy, *((np.dtype(np.uint16),) if dtype is DType.BFLOAT16 else ())


def _dtype_name(real: np.ndarray | np.generic) -> str:
    return "string" if real.dtype.kind in "OSU" else real.dtype.name.replace("float32", "float")
