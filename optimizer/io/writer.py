"""``to_proto``: a ``Model`` becomes a ModelProto."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, defs

from optimizer.io.attributes import write_attribute
from optimizer.io.loader import DECLARED
from optimizer.io.pause import no_garbage_collection
from optimizer.io.tensors import Stored, write_tensor
from optimizer.io.typeprotos import read_type, write_info, write_metadata
from optimizer.io.wire import SMALLEST_RAW, Bytes
from optimizer.ir import (
    Attribute,
    AttributeKind,
    DType,
    Function,
    Graph,
    Model,
    Node,
    Tensor,
    Value,
    ValueInfo,
)
from optimizer.ir.names import Namer, ScopeNames

Names = Mapping[tuple[str, ...], Mapping[Value, str]]
"""Tensor names in a written model: by scope path (as ``Model.graphs`` gives it), then by value."""

_IDENTITY_OPSET = 13
"""Of the default domain, where a model does not import it but needs an Identity."""


@dataclass(frozen=True, slots=True)
class Bulk:
    """A bulky initializer whose elements are not in the message yet.

    ``raw`` is ``None`` where they are (in a typed field, as in the file). ``position`` is its place
    among the main graph's initializers, ``None`` in a body.
    """

    proto: TensorProto
    tensor: Tensor
    raw: Bytes | None
    position: int | None


@dataclass(slots=True)
class Written:
    """A model as a message, apart from the elements of ``bulk``."""

    proto: ModelProto
    bulk: list[Bulk] = field(default_factory=list)
    names: dict[tuple[str, ...], Mapping[Value, str]] = field(default_factory=dict)


def to_proto(model: Model, *, annotate: bool = False) -> ModelProto:
    """The model as one message, weights included.

    Args:
        annotate: note in each node's ``metadata_props`` which rule made it, and from what.
    """
    written = write_model(model, annotate=annotate)
    for bulk in written.bulk:
        if bulk.raw is not None:
            bulk.proto.raw_data = bytes(bulk.raw)
    return written.proto


def write_model(model: Model, *, annotate: bool = False) -> Written:
    """The model as a message, its bulky weights left aside."""
    with no_garbage_collection():
        return _write(model, annotate)


def _write(model: Model, annotate: bool) -> Written:
    written = Written(ModelProto())
    proto = written.proto
    proto.ir_version = max(model.ir_version, 4)  # before 4 every initializer had to be an input as well
    for name in ("producer_name", "producer_version", "domain", "doc_string", "model_version"):
        if value := getattr(model, name):
            setattr(proto, name, value)
    write_metadata(model.metadata, proto.metadata_props)
    for name, parts in model.extras.items():
        if name != DECLARED:
            for part in parts:
                getattr(proto, name).add().MergeFromString(part)
    declared = {info.name: info for info in map(ValueInfoProto.FromString, model.extras.get(DECLARED, ()))}
    writer = _Writer(written, declared, annotate, _namer(model.graph))
    opsets = writer.main(model.graph, proto.graph)
    _write_opsets(opsets, proto)
    for function in model.functions.values():
        inner = _Writer(written, {}, annotate, _namer(function.graph))
        inner.function(function, proto.functions.add())
    return written


def _write_opsets(opsets: Mapping[str, int], proto: ModelProto | FunctionProto) -> None:
    for domain, version in opsets.items():
        entry = proto.opset_import.add()
        entry.domain, entry.version = domain, version


class _Writer:
    """Writes one main graph or one function, with all bodies in it."""

    def __init__(
        self, written: Written, declared: Mapping[str, ValueInfoProto], annotate: bool, namer: Namer
    ) -> None:
        self._written = written
        self._declared = declared
        self._annotate = annotate
        self._namer = namer

    def main(self, graph: Graph, proto: GraphProto) -> Mapping[str, int]:
        """Writes the main graph; returns the operator sets it needs."""
        names = self._namer.name(graph, (), _vertices(graph), fixed=True)
        self._graph(graph, proto, names, (), main=True)
        return _opsets(graph, names)

    def function(self, function: Function, proto: FunctionProto) -> None:
        """Writes a function. It has no initializers: its constants are nodes."""
        graph = function.graph
        names = self._namer.name(graph, (), _vertices(graph), fixed=True)
        path = (f"{function.domain}::{function.name}",)
        self._written.names[path] = names.values
        proto.name, proto.domain = function.name, function.domain
        if function.overload:
            proto.overload = function.overload
        if function.doc_string:
            proto.doc_string = function.doc_string
        write_metadata(function.metadata, proto.metadata_props)
        proto.attribute.extend(function.attributes)
        for name, attribute in function.defaults.items():
            write_attribute(name, attribute, proto.attribute_proto.add(), _no_body)
        _write_opsets(_opsets(graph, names), proto)
        proto.input.extend(names.values[value] for value in graph.inputs)
        proto.output.extend(names.outputs)
        for value in graph.constants:
            self._constant_node(graph, value, names.values[value], proto.node.add())
        self._nodes(graph, proto, names, path)
        infos = [(graph.info(value), names.values[value]) for value in graph.inputs]
        infos += zip(graph.sink.outputs, names.outputs, strict=True)
        for info, name in infos:
            if _says_something(info):
                write_info(info, name, proto.value_info.add())

    # ---------------------------------------------------------------- graphs

    def _graph(
        self, graph: Graph, proto: GraphProto, names: ScopeNames, path: tuple[str, ...], main: bool = False
    ) -> None:
        self._written.names[path] = names.values
        proto.name = graph.name
        if graph.doc_string:
            proto.doc_string = graph.doc_string
        write_metadata(graph.metadata, proto.metadata_props)
        for value in graph.inputs:
            self._interface(graph.info(value), names.values[value], proto.input.add(), main)
            default = graph.node(value).attr("default")
            if default is not None:
                self._initializer(default, names.values[value], proto, main)
        returned = set(graph.outputs)
        for value in graph.constants:
            tensor, name = graph.tensor(value), names.values[value]
            assert tensor is not None
            if _is_sparse(tensor) and value not in returned and graph.opset() >= 11:
                self._constant_node(graph, value, name, proto.node.add())
            else:
                self._initializer(tensor, name, proto, main)
                self._texts(graph.node(value), "", proto.initializer[-1])
            info = graph.info(value)
            if info.doc_string or info.metadata:
                write_info(info, name, proto.value_info.add())
        self._nodes(graph, proto, names, path)
        for info, name in zip(graph.sink.outputs, names.outputs, strict=True):
            self._interface(info, name, proto.output.add(), main)
        _write_annotations(graph, proto, names)

    def _interface(self, info: ValueInfo, name: str, proto: ValueInfoProto, main: bool) -> None:
        declared = self._declared.get(name) if main else None
        if declared is not None and read_type(declared.type) == info.type:
            proto.CopyFrom(declared)  # word for word: it says something the IR does not hold
        else:
            write_info(info, name, proto)

    def _initializer(self, tensor: Tensor, name: str, graph: GraphProto, main: bool) -> None:
        position = len(graph.initializer) if main else None
        proto = graph.initializer.add()
        raw = write_tensor(tensor, name, proto, keep_raw=False)
        if raw is not None or (tensor.dtype is not DType.STRING and tensor.nbytes >= SMALLEST_RAW):
            self._written.bulk.append(Bulk(proto, tensor, raw, position))

    def _constant_node(self, graph: Graph, value: Value, name: str, proto: NodeProto) -> None:
        node, tensor = graph.node(value), graph.tensor(value)
        assert tensor is not None
        proto.op_type = "Constant"
        proto.output.append(name)
        self._texts(node, node.name, proto)
        attribute = proto.attribute.add()
        if _is_sparse(tensor) and graph.opset() >= 11:
            attribute.name, attribute.type = "sparse_value", attribute.SPARSE_TENSOR
            attribute.sparse_tensor.CopyFrom(tensor.source.proto)
            attribute.sparse_tensor.values.name = name
        else:
            write_attribute("value", Attribute(AttributeKind.TENSOR, tensor), attribute, _no_body)

    # ---------------------------------------------------------------- nodes

    def _nodes(
        self, graph: Graph, proto: GraphProto | FunctionProto, scope: ScopeNames, path: tuple[str, ...]
    ) -> None:
        names = scope.values
        names_of_nodes: set[str] = set()
        results = set(scope.outputs)
        for node in graph.topological():
            message = proto.node.add()
            message.op_type = node.op_type
            if node.domain:
                message.domain = node.domain
            if node.overload:
                message.overload = node.overload
            message.input.extend([names[v] if v is not None else "" for v in _kept_inputs(node)])
            message.output.extend([names[Value(node.id, i)] for i in range(len(node.outputs))])
            self._texts(node, _unique(node.name, names_of_nodes), message)
            if node.attributes:
                self._attributes(graph, node, message, names, path)
            for index, info in enumerate(node.outputs):
                name = names[Value(node.id, index)]
                if (
                    (info.type is not None or info.doc_string or info.metadata)
                    and name not in results
                    and name
                ):
                    write_info(info, name, proto.value_info.add())
        for name, value in scope.aliases:
            proto.node.add(op_type="Identity", input=[names[value]], output=[name])

    def _attributes(
        self,
        graph: Graph,
        node: Node,
        proto: NodeProto,
        names: Mapping[Value, str],
        path: tuple[str, ...],
    ) -> None:
        bodies = iter(enumerate(node.bodies)) if node.bodies else iter(())

        def write_body(body: Graph, target: GraphProto) -> None:
            index, (name, _) = next(bodies)
            captured = [names[value] for value in node.captures_of(index)]
            inner = self._namer.name(body, captured, _vertices(body), fixed=False)
            self._graph(body, target, inner, (*path, f"{node.name or node.id}.{name}"))

        for name, attribute in node.attributes.items():
            write_attribute(name, attribute, proto.attribute.add(), write_body)

    def _texts(self, node: Node, name: str, proto: NodeProto | TensorProto) -> None:
        origin = node.origin
        if name:
            proto.name = name
        if origin.doc_string:
            proto.doc_string = origin.doc_string
        if origin.metadata:
            write_metadata(origin.metadata, proto.metadata_props)
        if self._annotate and origin.rule:
            pairs = [("oinfer.rule", origin.rule), ("oinfer.sources", " ".join(origin.sources))]
            write_metadata(pairs, proto.metadata_props)


def _opsets(graph: Graph, names: ScopeNames) -> Mapping[str, int]:
    """The imports of a graph, and the default domain where an Identity had to be made without it."""
    return {"": _IDENTITY_OPSET, **graph.opsets} if names.aliases else graph.opsets


def _namer(root: Graph) -> Namer:
    return Namer(root, lambda node, output: node.op_type, _may_be_omitted)


def _vertices(graph: Graph) -> list[Node]:
    return [*map(graph.node, graph.constants), *graph.topological()]


def _may_be_omitted(graph: Graph, value: Value) -> bool:
    """Whether an unused output may be left out: an optional one, but never one of a variadic list."""
    node = graph.node(value)
    version = graph.opset(node.domain)
    if not node.is_operator or not defs.has(node.op_type, version, node.domain):
        return node.is_operator
    formal = defs.get_schema(node.op_type, version, node.domain).outputs
    option = formal[min(value.output, len(formal) - 1)].option if formal else None
    return option == defs.OpSchema.FormalParameterOption.Optional


def _kept_inputs(node: Node) -> Sequence[Value | None]:
    """The inputs without omitted ones at the end, where these mean nothing by position."""
    inputs = node.inputs
    if inputs and inputs[-1] is None and not node.domain and not node.bodies:
        while inputs and inputs[-1] is None:
            inputs = inputs[:-1]
    return inputs


def _says_something(info: ValueInfo) -> bool:
    return info.type is not None or bool(info.doc_string or info.metadata)


def _unique(name: str, seen: set[str]) -> str:
    if not name:
        return ""
    candidate, count = name, 1
    while candidate in seen:
        count += 1
        candidate = f"{name}_{count}"
    seen.add(candidate)
    return candidate


def _is_sparse(tensor: Tensor) -> bool:
    return isinstance(tensor.source, Stored) and not isinstance(tensor.source.proto, TensorProto)


def _write_annotations(graph: Graph, proto: GraphProto, names: ScopeNames) -> None:
    for node in graph.annotations:
        entry = proto.quantization_annotation.add()
        tensor, *parameters = (names.values[value] for value in node.inputs if value is not None)
        entry.tensor_name = tensor
        for key, name in zip(node.attr("keys"), parameters, strict=True):
            entry.quant_parameter_tensor_names.add(key=key, value=name)


def _no_body(graph: Graph, proto: GraphProto) -> None:
    raise AssertionError(f"graph '{graph.name}' stands where no graph can be")
