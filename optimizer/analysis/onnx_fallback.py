"""Inference of operators without an own rule: onnx's inference of a single node.

The only file of this layer that touches onnx's protobuf classes; onnx is imported when first needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optimizer.analysis.context import InferContext
from optimizer.analysis.dims import Dim
from optimizer.analysis.fact import Fact, Shape, from_type
from optimizer.ir import AttributeKind, TensorType, ValueType

if TYPE_CHECKING:
    import onnx


def infer_node(context: InferContext) -> list[Fact | None] | None:
    """Facts about the outputs, ``None`` where onnx does not know the operator.

    Raises:
        ValueError: onnx refuses the node.
    """
    import onnx
    from onnx.shape_inference import InferenceError, infer_node_outputs

    node, graph = context.node, context.facts.graph
    try:
        newest = onnx.defs.onnx_opset_version() if node.domain == "" else 1000
        schema = onnx.defs.get_schema(node.op_type, graph.opset(node.domain) or newest, node.domain)
    except onnx.defs.SchemaError:
        return None
    names = {f"i{k}": fact for k, fact in enumerate(context.inputs) if fact is not None}
    proto = _node_proto(context)
    types = {name: _type_proto(fact) for name, fact in names.items()}
    if proto is None or any(t is None for t in types.values()):
        return [None] * len(node.outputs)
    opsets = [onnx.helper.make_opsetid(domain, version) for domain, version in graph.opsets.items()]
    if not any(o.domain == node.domain for o in opsets):
        opsets.append(onnx.helper.make_opsetid(node.domain, schema.since_version))
    known = {name: t for name, t in types.items() if t is not None}
    try:
        made = infer_node_outputs(schema, proto, known, _constants(context), opset_imports=opsets)
    except InferenceError as fault:
        raise ValueError(str(fault).splitlines()[0]) from None
    back = {str(dim): dim for fact in names.values() for dim in fact.shape or () if dim.value is None}
    return [_fact_of(made.get(f"o{k}"), back) for k in range(len(node.outputs))]


def _node_proto(context: InferContext) -> onnx.NodeProto | None:
    import onnx

    from optimizer.io.attributes import write_attribute

    node = context.node
    inputs = ["" if fact is None else f"i{k}" for k, fact in enumerate(context.inputs)]
    outputs = [f"o{k}" for k in range(len(node.outputs))]
    proto = onnx.NodeProto(op_type=node.op_type, domain=node.domain, input=inputs, output=outputs)
    for name, attribute in node.attributes.items():
        if attribute.reference:
            bound = context.facts.attributes.get(attribute.reference)
            if bound is None:
                return None
            attribute = bound
        if attribute.kind in (AttributeKind.GRAPH, AttributeKind.GRAPHS):
            return None
        write_attribute(name, attribute, proto.attribute.add(), lambda *_: None)
    return proto


def _type_proto(fact: Fact) -> onnx.TypeProto | None:
    import onnx

    from optimizer.io.typeprotos import write_type

    if fact.type is None and fact.dtype is not None:
        shape = None
        if fact.shape is not None:
            shape = tuple(str(d) if d.value is None else d.value for d in fact.shape)
        declared: ValueType | None = TensorType(fact.dtype, shape)
    else:
        declared = fact.to_type()
    if declared is None:
        return None
    proto = onnx.TypeProto()
    write_type(declared, proto)
    return proto


def _constants(context: InferContext) -> dict[str, onnx.TensorProto]:
    """Contents of the inputs that are small and known entirely."""
    import onnx

    found = {}
    for k, fact in enumerate(context.inputs):
        array = context.array(k)
        if array is None and fact is not None and fact.value is not None and fact.dtype is not None:
            numbers = fact.value.ints()
            if numbers is not None:
                array = np.array(numbers, fact.dtype.numpy).reshape(fact.value.shape)
        if array is not None and array.dtype != object:
            found[f"i{k}"] = onnx.numpy_helper.from_array(array, f"i{k}")
    return found


def _fact_of(proto: onnx.TypeProto | None, back: dict[str, Dim]) -> Fact | None:
    from optimizer.io.typeprotos import read_type

    declared = None if proto is None else read_type(proto)
    if declared is None:
        return None
    shape: Shape | None = None
    if isinstance(declared, TensorType) and declared.shape is not None:
        # onnx computes with a symbolic dimension as if it were 0
        least = 1 if back else 0
        shape = tuple(
            Dim.of(d) if isinstance(d, int) and d >= least else back.get(str(d)) or Dim.fresh("onnx")
            for d in declared.shape
        )
    return from_type(declared, shape)
