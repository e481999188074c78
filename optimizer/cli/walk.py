"""All tensors of a run in onnxruntime, and where they part from those of the NumPy executor."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from optimizer.io import save
from optimizer.ir import Attribute, Graph, Model, Node, OptimizerError, OptionalType, Value
from optimizer.runtime import Options, Session, run_between
from optimizer.runtime.precision import NARROW_FLOATS, NARROW_INTEGERS
from optimizer.verify import compare_values, network_tolerance

_NOT_GIVEN = (NARROW_FLOATS - {np.dtype(np.float16)}) | NARROW_INTEGERS
"""Element types that onnxruntime's Python interface does not hand out."""


@dataclass(frozen=True)
class Scope:
    """A graph that ran.

    Attributes:
        given: its inputs and captures.
        attributes: in a function, those that it was called with.
        place: where it is, empty for the main graph.
    """

    graph: Graph
    given: Mapping[Value, Any]
    opsets: Mapping[str, int]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    place: str = ""


@dataclass(frozen=True)
class Parting:
    """What a walk over all tensors found.

    Attributes:
        compared: number of tensors compared.
        largest: largest difference relative to the largest magnitude of its tensor, over those that agree and
            are not as good as zero.
        where: the tensor of it.
        node: the first node where the engines part.
        fault: how, empty where they agree.
        output: which of its outputs.
        ours, theirs: what the engines made of the node.
        scope: where it ran, once that is known.
    """

    compared: int
    largest: float
    where: str
    node: Node | None = None
    fault: str = ""
    output: int = 0
    ours: Mapping[Value, Any] = field(default_factory=dict)
    theirs: Mapping[Value, Any] = field(default_factory=dict)
    scope: Scope | None = None


def chosen_nodes(model: Model, stop_at: Value | None, max_nodes: int | None) -> list[Node]:
    """The operator nodes of the main graph that a run executes, in order."""
    graph = model.graph
    nodes = [node for node in graph.nodes if node.is_operator]
    if stop_at is not None:
        needed, stack = set[int](), [stop_at.node]
        while stack:
            key = stack.pop()
            if key not in needed:
                needed.add(key)
                stack.extend(v.node for v in graph.node(key).operands if v is not None)
        nodes = [node for node in nodes if node.id in needed]
    return nodes[:max_nodes]


def numpy_values(
    model: Model, nodes: Sequence[Node], feeds: Mapping[str, Any], options: Options
) -> dict[Value, Any]:
    """Every output of ``nodes`` that something reads, from the NumPy executor."""
    session = Session(model, options)
    return session.run_between(given_values(session, feeds), read_values(model.graph, nodes))


def given_values(session: Session, feeds: Mapping[str, Any]) -> dict[Value, Any]:
    """The inputs of the main graph."""
    graph = session.graph
    return {value: session.feed(graph.info(value).name, feeds) for value in graph.inputs}


def read_values(graph: Graph, nodes: Sequence[Node]) -> list[Value]:
    """Outputs nothing reads are left out: to ask for one may change what a node does (Dropout's mask)."""
    values = (node.value(i) for node in nodes for i in range(len(node.outputs)))
    return [value for value in values if graph.has_uses(value)]


def onnxruntime_values(
    model: Model, nodes: Sequence[Node], feeds: Mapping[str, Any], left_out: frozenset[Value] = frozenset()
) -> tuple[dict[Value, Any], dict[int, float]]:
    """Every output of ``nodes`` from onnxruntime without optimizations, and the seconds of each node.

    Raises:
        OptimizerError: it cannot load or run the model, or would end the process.
    """
    from optimizer.verify.demands import Demands
    from optimizer.verify.rehearsal import Rehearsal

    Demands(model).check(feeds)
    Rehearsal(model).run(feeds)
    twin = model.copy()
    graph = twin.graph
    values = [value for value in read_values(model.graph, nodes) if value not in left_out]
    names = {value: f"value_{i}" for i, value in enumerate(values)}
    graph.set_outputs(values, list(names.values()))
    keep = {node.id for node in nodes}
    for node in reversed(graph.topological()):
        if node.id not in keep:
            graph.erase(node)
        else:
            graph.set_attrs(node, name=f"node_{node.id}")
    with tempfile.TemporaryDirectory(prefix="oinfer-run-") as folder:
        path = Path(folder) / "model.onnx"
        save(twin, path)
        found, seconds = _run_profiled(path, feeds, list(names.values()))
    return dict(zip(values, found, strict=True)), seconds


def _run_profiled(
    path: Path, feeds: Mapping[str, Any], names: list[str]
) -> tuple[list[Any], dict[int, float]]:
    import onnxruntime

    from optimizer.verify.patience import run_within

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.enable_profiling = True
    options.profile_file_prefix = str(path.with_suffix(".profile"))
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        read = {i.name for i in session.get_inputs()}
        given = {name: _plain(value) for name, value in feeds.items() if name in read}
        found = run_within(session, names, given, math.inf)
        events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
    except Exception as error:  # its exceptions share no base class but this
        said = str(error).strip().splitlines() or [type(error).__name__]
        raise OptimizerError(f"onnxruntime cannot run it: {said[0]}") from error
    return found, dict(_node_seconds(events))


def _node_seconds(events: list[dict[str, Any]]) -> Iterator[tuple[int, float]]:
    for event in events:
        name = event.get("name", "")
        if name.startswith("node_") and name.endswith("_kernel_time"):
            key = name.removeprefix("node_").removesuffix("_kernel_time")
            if key.isdigit():
                yield int(key), event["dur"] * 1e-6


def _plain(value: Any) -> Any:
    return np.asarray(value) if isinstance(value, (np.generic, float, int, str, bool)) else value


def not_given(graph: Graph, values: Mapping[Value, Any]) -> frozenset[Value]:
    """Values that onnxruntime's Python interface cannot hand out, by what the executor made of them."""
    return frozenset(
        value
        for value, made in values.items()
        if (isinstance(made, np.ndarray) and made.dtype in _NOT_GIVEN)
        or made is None
        or isinstance(graph.info(value).type, OptionalType)
        or type(made).__name__ == "Nothing"
    )


def find_parting(nodes: Sequence[Node], ours: Mapping[Value, Any], theirs: Mapping[Value, Any]) -> Parting:
    """The first node with a result that differs by more than a whole net may.

    The executor is judged against onnxruntime. NaN and infinities have to be in the same places.
    """
    compared, largest, where = 0, 0.0, ""
    for node in nodes:
        for index, info in enumerate(node.outputs):
            value = node.value(index)
            if value not in theirs:
                continue
            compared += 1
            name = info.name or f"output {index}"
            error = compare_values(theirs[value], ours[value], network_tolerance)
            if not error.ok:
                fault = f"{name}: {error.fault}"
                return Parting(compared, largest, where, node, fault, index, ours, theirs)
            if error.max_rel is not None and error.relative > largest:
                largest, where = error.relative, name
    return Parting(compared, largest, where, ours=ours, theirs=theirs)


def nearer_to_truth(model: Model, parting: Parting) -> str:
    """Which engine is nearer to float64 where they part: ``numpy``, ``onnxruntime`` or empty.

    The node alone is computed again in float64, from the inputs that it had.
    """
    node, scope = parting.node, parting.scope
    if node is None or scope is None:
        return ""
    value = node.value(parting.output)
    known = {**scope.given, **parting.ours}
    inputs = {v: known[v] for v in node.operands if v in known}
    try:
        truth = run_between(
            scope.graph,
            inputs,
            [value],
            functions=model.functions,
            options=Options(truth=True),
            opsets=scope.opsets,
            bindings=scope.attributes,
        )[value]
    except OptimizerError:
        return ""
    made = (parting.ours[value], parting.theirs[value])
    if not all(isinstance(v, np.ndarray) and v.shape == truth.shape for v in made):
        return ""
    if truth.dtype.kind != "f":
        return ""
    errors = [float(np.nanmax(np.abs(v.astype(np.float64) - truth))) for v in made]
    return "numpy" if errors[0] < errors[1] else "onnxruntime"
