"""One scope of a model into one ``Graph``, in five stages: initializers, inputs, nodes, outputs, value_info.

The last stage only decorates, so it is indexed first and each value is made with its declaration.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable

import numpy as np
from onnx import FunctionProto, GraphProto, NodeProto, SparseTensorProto, ValueInfoProto, defs

from optimizer.io.attributes import read_attribute
from optimizer.io.draft import NodeDraft, Notes, ScopeDraft
from optimizer.io.files import ExternalFiles
from optimizer.io.tensors import densify, read_sparse, read_tensor
from optimizer.io.typeprotos import read_info, read_input, read_metadata, text_of
from optimizer.ir import (
    IR_DOMAIN,
    Attribute,
    AttributeKind,
    DType,
    Graph,
    InvalidModel,
    Origin,
    SparseTensor,
    Tensor,
    Value,
    ValueInfo,
)

LARGEST_DENSE = 1 << 26
"""A sparse constant of more elements than this stays an operator that makes it."""

_NO_ORIGIN = Origin()


def canonical_domain(domain: str) -> str:
    """The empty domain under its one spelling."""
    return "" if domain == "ai.onnx" else text_of(domain)


class Reader:
    """Builds the graphs of one model.

    Args:
        raw: bytes cut out of the main graph's initializers, by position.
    """

    def __init__(self, files: ExternalFiles, raw: dict[int, memoryview], notes: Notes) -> None:
        self.files = files
        self.raw = raw
        self.notes = notes
        self.ir_version = 0
        self.operators: Counter[tuple[str, str, str, int]] = Counter()

    def read_graph(
        self, draft: ScopeDraft, opsets: dict[str, int], *, freeze: bool = False, main: bool = False
    ) -> Graph:
        """The graph of a draft: main graph or body."""
        assert draft.proto is not None
        proto = draft.proto
        graph = Graph(text_of(proto.name), opsets)
        graph.doc_string, graph.metadata = text_of(proto.doc_string), read_metadata(proto.metadata_props)
        scope = _Scope(self, graph, proto.value_info)
        defaults = scope.initializers(proto, self.raw if main else {}, freeze or self.ir_version < 4)
        scope.inputs(proto.input, defaults, main)
        scope.captures(draft.free)
        scope.nodes(draft.nodes)
        scope.outputs([read_info(info) for info in proto.output])
        scope.annotations(proto)
        return graph

    def read_function(self, draft: ScopeDraft, proto: FunctionProto, opsets: dict[str, int]) -> Graph:
        """The graph of a function; its interface is names, typed by its ``value_info``."""
        graph = Graph(text_of(proto.name), opsets)
        scope = _Scope(self, graph, proto.value_info)
        for name in proto.input:
            scope.define(name, graph.add_input(scope.info(name)))
        scope.nodes(draft.nodes)
        scope.outputs([scope.info(name) for name in proto.output])
        return graph

    def no_body(self, proto: GraphProto) -> Graph:
        """Refuses a graph where none can stand.

        Raises:
            InvalidModel: always.
        """
        raise InvalidModel(f"graph '{proto.name}' stands where no graph can be")

    def note_unknown_operators(self, functions: Collection[tuple[str, str, str]]) -> None:
        """Warns of operators that have neither a schema nor a function in the model.

        Raises:
            InvalidModel: the name of one is no text.
        """
        for (domain, op_type, overload, version), count in self.operators.items():
            what = f"{domain}::{op_type}" if domain else op_type
            if not isinstance(op_type, str):
                raise InvalidModel(f"operator {what!r}: its name is not valid UTF-8")
            if (domain, op_type, overload) in functions:
                continue
            if not version:
                self.notes.add("operators of a domain that is not imported", f"'{what}'")
            elif not defs.has(op_type, version, domain):
                self.notes.add("operators without a schema (left as they are)", f"{what} ({count})")


class _Scope:
    """The scope being built: ``values`` finds the value of a name."""

    def __init__(self, reader: Reader, graph: Graph, declarations: Iterable[ValueInfoProto]) -> None:
        self.reader = reader
        self.graph = graph
        self.values: dict[str, Value] = {}
        self.declared = {info.name: info for info in declarations}

    def info(self, name: str) -> ValueInfo:
        """Name and declaration of a value, as far as ``value_info`` has one."""
        declared = self.declared.get(name)
        return read_info(declared) if declared is not None and name else ValueInfo(name)

    def define(self, name: str, value: Value) -> None:
        self.values[name] = value

    # ---------------------------------------------------------------- the stages

    def initializers(self, proto: GraphProto, raw: dict[int, memoryview], frozen: bool) -> dict[str, Tensor]:
        """Makes the constants; returns the tensors that are defaults of inputs instead."""
        overridable = set() if frozen else {info.name for info in proto.input}
        if frozen:
            self.declared.update((info.name, info) for info in proto.input)
        defaults: dict[str, Tensor] = {}
        for position, initializer in enumerate(proto.initializer):
            name = initializer.name
            tensor = read_tensor(initializer, self.reader.files, raw.get(position))
            earlier = defaults[name] if name in defaults else self.graph.tensor(self.values.get(name))
            if earlier is not None:
                self._repeated(name, earlier, tensor)
            elif name in overridable:
                defaults[name] = tensor
            else:
                self.define(name, self.graph.add_constant(tensor, self.info(name)))
        for sparse in proto.sparse_initializer:
            name = sparse.values.name
            if name in self.values or name in defaults:
                raise InvalidModel(f"duplicate producer: two initializers are named '{name}'")
            parts = read_sparse(sparse, self.reader.files)
            if name in overridable:
                defaults[name] = densify(parts, sparse)
            elif (dense := self._dense(parts, sparse)) is not None:
                self.define(name, self.graph.add_constant(dense, self.info(name)))
            else:
                node = self.graph.add("Constant", (), {"sparse_value": parts}, [self.info(name)])
                self.define(name, node.value())
        return defaults

    def _repeated(self, name: str, first: Tensor, second: Tensor) -> None:
        if first.digest != second.digest:
            raise InvalidModel(f"duplicate producer: two different initializers are named '{name}'")
        self.reader.notes.add("an initializer is there twice", f"'{name}'")

    def inputs(self, protos: Iterable[ValueInfoProto], defaults: dict[str, Tensor], main: bool) -> None:
        """Makes the formal inputs, with defaults where callers may leave them out.

        Raises:
            InvalidModel: one is declared larger than any tensor can be.
        """
        for proto in protos:
            if proto.name in self.values:
                continue  # an input that is a constant
            default = defaults.get(proto.name)
            self.define(proto.name, self.graph.add_input(read_input(proto), default))
            if default is not None and main:
                self.reader.notes.add(
                    "initializers that callers may override are not constants "
                    "(option 'freeze_initializers' makes them constant)",
                    f"'{proto.name}'",
                )

    def captures(self, names: Iterable[str]) -> None:
        """Makes a Capture for each name read from outside."""
        for name in names:
            self.define(name, self.graph.add_capture(self.info(name)))

    def nodes(self, drafts: Iterable[NodeDraft]) -> None:
        """Makes the operators; Constant nodes become constants."""
        values, seen = self.values, set[str]()
        operators, opsets = self.reader.operators, self.graph.opsets
        for draft in drafts:
            proto = draft.proto
            op_type, domain, name = proto.op_type, canonical_domain(proto.domain), text_of(proto.name)
            if op_type == "Constant" and not domain and self._constant(draft):
                continue
            if name:
                if name in seen:
                    self.reader.notes.add("node names are not unique", f"'{name}'")
                seen.add(name)
            overload = text_of(proto.overload)
            operators[domain, op_type, overload, opsets.get(domain, 0)] += 1
            node = self.graph.add(
                op_type,
                [values[i] if i else None for i in draft.inputs],
                self._attributes(draft) if proto.attribute else None,
                [self.info(o) for o in draft.outputs],
                domain=domain,
                captures=[values[i] for body in draft.bodies for i in body.free] if draft.bodies else (),
                overload=overload,
                name=name,
                origin=self._origin(proto),
            )
            for index, output in enumerate(draft.outputs):
                if output:
                    values[output] = Value(node.id, index)

    def outputs(self, infos: list[ValueInfo]) -> None:
        """Declares what the graph returns.

        Raises:
            InvalidModel: an output has no name.
        """
        if any(not info.name for info in infos):
            raise InvalidModel(f"an output of graph '{self.graph.name}' has no name")
        if len({info.name for info in infos}) != len(infos):
            raise InvalidModel(f"graph '{self.graph.name}' lists an output twice")
        self.graph.set_outputs([self.values[info.name] for info in infos], infos)

    def annotations(self, proto: GraphProto) -> None:
        """Makes a vertex for each quantization annotation whose tensors are there."""
        for entry in proto.quantization_annotation:
            parameters = {text_of(p.key): p.value for p in entry.quant_parameter_tensor_names}
            names = [entry.tensor_name, *parameters.values()]
            if parameters and all(name in self.values for name in names):
                inputs = [self.values[name] for name in names]
                self.graph.add("Annotation", inputs, {"keys": tuple(parameters)}, 0, domain=IR_DOMAIN)
            else:
                self.reader.notes.add(
                    "quantization annotations of tensors that do not exist (dropped)",
                    f"'{entry.tensor_name}'",
                )

    def _dense(self, parts: SparseTensor, proto: SparseTensorProto) -> Tensor | None:
        return densify(parts, proto) if math.prod(parts.shape) <= LARGEST_DENSE else None

    # ---------------------------------------------------------------- parts of a node

    def _attributes(self, draft: NodeDraft) -> dict[str, Attribute]:
        bodies = iter(draft.bodies)

        def read_body(_: GraphProto) -> Graph:
            return self.reader.read_graph(next(bodies), self.graph.opsets)

        attributes = {
            proto.name: read_attribute(proto, self.reader.files, read_body) for proto in draft.proto.attribute
        }
        if len(attributes) != len(draft.proto.attribute) or not all(
            isinstance(name, str) for name in attributes
        ):
            raise InvalidModel(f"{draft.label} has an attribute twice, or one whose name is no text")
        return attributes

    def _origin(self, proto: NodeProto) -> Origin:
        if len(proto.device_configurations):
            self.reader.notes.add(
                "device configurations of nodes (dropped)", NodeDraft(proto, (), (), ()).label
            )
        if proto.doc_string or proto.metadata_props:
            return Origin(text_of(proto.doc_string), read_metadata(proto.metadata_props))
        return _NO_ORIGIN

    def _constant(self, draft: NodeDraft) -> bool:
        """Makes a constant of a Constant node; False where it must stay an operator."""
        if len(draft.outputs) != 1 or not draft.outputs[0] or len(draft.proto.attribute) != 1:
            return False
        proto = draft.proto.attribute[0]
        if proto.ref_attr_name:
            return False
        attribute = read_attribute(proto, self.reader.files, self.reader.no_body)
        if isinstance(attribute.value, SparseTensor):
            tensor = self._dense(attribute.value, proto.sparse_tensor)
        else:
            tensor = constant_of(proto.name, attribute.value)
        if tensor is None:
            return False
        node = self.graph.add(
            "Constant",
            (),
            {"value": Attribute(AttributeKind.TENSOR, tensor)},
            [self.info(draft.outputs[0])],
            domain=IR_DOMAIN,
            name=draft.proto.name,
            origin=self._origin(draft.proto),
        )
        self.define(draft.outputs[0], node.value())
        return True


_SCALARS = {"value_float": DType.FLOAT, "value_int": DType.INT64, "value_string": DType.STRING}
_LISTS = {"value_floats": DType.FLOAT, "value_ints": DType.INT64, "value_strings": DType.STRING}


def constant_of(name: str, value: object) -> Tensor | None:
    """What a Constant node with this one attribute makes; ``None`` where ONNX knows no such attribute."""
    if name == "value" and isinstance(value, Tensor):
        return value
    dtype = _SCALARS.get(name) or _LISTS.get(name)
    if dtype is None or isinstance(value, tuple) != (name in _LISTS):
        return None
    array = np.empty((len(value),) if isinstance(value, tuple) else (), dtype.numpy)
    array[...] = value
    return Tensor(dtype, array.shape, lambda: array)
