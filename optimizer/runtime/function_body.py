"""Ops without a kernel that their schema defines by a function body, run by this executor."""

from __future__ import annotations

from typing import Any

from optimizer.runtime.call import Call
from optimizer.runtime.delegate import node_proto, one_node_model, type_of
from optimizer.runtime.plan import Plan
from optimizer.runtime.registry import Kernel

_DOMAIN = "oinfer.body"
"""Domain of the lifted bodies, so that they do not hide the op of the same name inside themselves."""


def find_function_body(domain: str, op_type: str, opset: int) -> Kernel | None:
    """A kernel that runs the function body in the op's schema, if it has one."""
    from onnx import defs

    try:
        schema: Any = defs.get_schema(op_type, opset, domain)
    except defs.SchemaError:
        return None
    if not (schema.has_function or schema.has_context_dependent_function):
        return None

    def run(call: Call, *inputs: Any) -> tuple[Any, ...]:
        kinds = tuple(None if v is None else type_of(v).SerializeToString() for v in inputs)
        plan, places = call.once(("body", kinds), lambda: _compile(schema, call, inputs))
        results: list[Any] = [None] * call.output_count
        for place, value in zip(places, plan.run([v for v in inputs if v is not None]), strict=True):
            results[place] = value
        return tuple(results)

    return Kernel(schema.since_version, domain, op_type, run, may_alias=True, runs_graphs=True)


def _compile(schema: Any, call: Call, inputs: tuple[Any, ...]) -> tuple[Plan, list[int]]:
    """The plan of the body, and which outputs of the node it computes."""
    from optimizer.io import load
    from optimizer.runtime.compiler import Compiler

    model = one_node_model(call, inputs, _DOMAIN)
    function = model.functions.add()
    function.ParseFromString(_body(schema, call, inputs))
    function.domain, function.name = _DOMAIN, call.op_type
    # Bodies made for a context list every output, those of optional outputs without a producer too.
    made = {name for node in function.node for name in node.output} | set(function.input)
    places = [i for i, name in enumerate(function.output) if name in made and call.wants(i)]
    outputs = [function.output[i] for i in places]
    del function.output[:]
    function.output.extend(outputs)
    node, declared = model.graph.node[0], model.graph.output
    for name in set(function.attribute) - set(call.attributes):
        default = schema.attributes[name].default_value
        if default.name:
            node.attribute.add().CopyFrom(default)
    del node.output[:], declared[:]
    for place in places:
        node.output.append(f"y{place}")
        declared.add().name = f"y{place}"
    lifted = load(model)
    graph = lifted.graph
    plan = Compiler(graph, call.context, graph.opsets, lifted.functions).plan(graph.inputs, graph.outputs)
    return plan, places


def _body(schema: Any, call: Call, inputs: tuple[Any, ...]) -> bytes:
    """The serialized body made for the newest operator set that the model has."""
    if schema.has_function:
        version = _newest(schema.function_opset_versions, call.opset)
        body: bytes = schema.get_function_with_opset_version(version)
        return body
    version = _newest(schema.context_dependent_function_opset_versions, call.opset)
    types = [b"" if v is None else type_of(v).SerializeToString() for v in inputs]
    node = node_proto(call, inputs).SerializeToString()
    made: bytes = schema.get_context_dependent_function_with_opset_version(version, node, types)
    return made


def _newest(versions: list[int], opset: int) -> int:
    return max((v for v in versions if v <= opset), default=min(versions))
