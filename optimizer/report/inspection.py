"""What a model is made of, as text."""

from __future__ import annotations

from collections.abc import Iterator

from optimizer.analysis import Facts
from optimizer.ir import (
    Graph,
    MapType,
    Model,
    OpaqueType,
    OptionalType,
    SequenceType,
    TensorType,
    UsageError,
    Value,
    ValueType,
)
from optimizer.report.summary import measure


def describe(model: Model, preview: int = 8) -> str:
    """Versions, producer, inputs, outputs, operators, constants and the first nodes in order."""
    return "\n".join(
        [*_header(model), *_interface(model.graph), *_operators(model), *_preview(model, preview)]
    )


def describe_tensor(model: Model, name: str) -> str:
    """Role, type, producer, users and life span (first and last step in topological order) of a tensor.

    Raises:
        UsageError: no tensor of that name; similar names are given.
    """
    for path, graph in model.graphs():
        value = _find(graph, name)
        if value is not None:
            return "\n".join(_tensor_lines(model, path, graph, value, name))
    known = [i.name for _, g in model.graphs() for n in [*g.nodes] for i in n.outputs if name in i.name]
    hint = f"; similar: {', '.join(known[:5])}" if known else ""
    raise UsageError(f"no tensor is called '{name}'{hint}")


def _header(model: Model) -> Iterator[str]:
    opsets = ", ".join(f"{domain or 'ai.onnx'} {version}" for domain, version in model.opsets.items())
    yield f"IR version {model.ir_version}, opsets {opsets}"
    producer = f"{model.producer_name} {model.producer_version}".strip()
    yield f"producer {producer or 'unknown'}, graph '{model.graph.name}'"
    if model.functions:
        yield f"{len(model.functions)} functions"
    yield from (f"warning: {text}" for text in model.warnings)


def _interface(graph: Graph) -> Iterator[str]:
    for value in graph.inputs:
        info = graph.info(value)
        optional = " (has a default)" if graph.producer(value).attr("default") is not None else ""
        yield f"input  {info.name}: {spell(info.type)}{optional}"
    for info in graph.sink.outputs:
        yield f"output {info.name}: {spell(info.type)}"


def _operators(model: Model) -> Iterator[str]:
    stats = measure(model)
    yield f"{stats.nodes} nodes, constants {stats.constant_bytes:,} bytes"
    width = max((len(op) for op in stats.histogram), default=0)
    for op, count in sorted(stats.histogram.items(), key=lambda item: (-item[1], item[0])):
        yield f"  {op:<{width}} {count}"


def _preview(model: Model, count: int) -> Iterator[str]:
    graph = model.graph
    order = graph.topological()
    if count:
        yield "first nodes:"
    for node in order[:count]:
        reads = ", ".join("-" if v is None else tensor_name(graph, v) for v in node.inputs)
        makes = ", ".join(tensor_name(graph, node.value(i)) for i in range(len(node.outputs)))
        yield f"  {makes} = {node.op}({reads})"
    if 0 < count < len(order):
        yield f"  ... {len(order) - count} more"


def _find(graph: Graph, name: str) -> Value | None:
    for info, value in zip(graph.sink.outputs, graph.sink.inputs, strict=True):
        if info.name == name:
            return value
    constants = [graph.producer(v) for v in (*graph.inputs, *graph.constants)]
    for node in [*constants, *graph.nodes]:
        for index, info in enumerate(node.outputs):
            if info.name == name:
                return node.value(index)
    return None


def _tensor_lines(
    model: Model, path: tuple[str, ...], graph: Graph, value: Value, name: str
) -> Iterator[str]:
    position = {node.id: step for step, node in enumerate(graph.topological())}
    producer, tensor = graph.producer(value), graph.tensor(value)
    yield f"{name}: {graph.role(value).value}" + (f" of {'/'.join(path)}" if path else "")
    yield f"  type {repr(tensor) if tensor is not None else _known_type(model, graph, value)}"
    if producer.is_operator:
        yield f"  made by {graph.label(producer)} at step {position[producer.id]}"
    uses = graph.uses(value)
    readers = [graph.label(use.node) for use in uses if use.node != graph.sink.id]
    yield f"  read by {len(uses)}: " + ", ".join(readers[:8]) + (", ..." if len(readers) > 8 else "")
    steps = [position[use.node] for use in uses if use.node in position]
    first = position.get(producer.id, 0)
    last = len(position) if graph.is_output(value) else max(steps, default=first)
    yield f"  alive from step {first} to {last} of {len(position)}"


def _known_type(model: Model, graph: Graph, value: Value) -> str:
    """The declared type of a value, or what is inferred where that says more."""
    declared = graph.info(value).type
    inferred = next((f.of(value).to_type() for f in _all_facts(model) if f.graph is graph), None)
    if inferred is None or inferred == declared:
        return spell(declared)
    return f"{spell(inferred)} (inferred" + (f", declared {spell(declared)})" if declared else ")")


def _all_facts(model: Model) -> Iterator[Facts]:
    """What is known in each scope: the main graph and its bodies, then functions, whoever calls them."""
    pending = [Facts(model.graph, model.functions).settle()]
    pending += [Facts(function.graph, model.functions) for function in model.functions.values()]
    for facts in pending:
        yield facts
        for node in facts.graph.topological():
            pending.extend(facts.body(node, position) for position in range(len(node.bodies)))


def tensor_name(graph: Graph, value: Value) -> str:
    """Its name, or vertex and output number where it has none."""
    return graph.info(value).name or f"%{value.node}.{value.output}"


def spell(kind: ValueType | None) -> str:
    """A type as a person writes it: ``FLOAT[N, 3]``, ``seq(FLOAT[?])``."""
    match kind:
        case TensorType(dtype=dtype, shape=shape):
            dims = "" if shape is None else "[" + ", ".join("?" if d is None else str(d) for d in shape) + "]"
            return dtype.name + dims
        case SequenceType(elem=elem):
            return f"seq({spell(elem)})"
        case OptionalType(elem=elem):
            return f"optional({spell(elem)})"
        case MapType(key=key, value=value):
            return f"map({key.name}, {spell(value)})"
        case OpaqueType(domain=domain, name=name):
            return f"opaque({domain}.{name})"
        case _:
            return "unknown"
