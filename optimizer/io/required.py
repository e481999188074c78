"""What the standard asks of a single node: an imported operator set, operands, attributes and their kinds."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from onnx import defs

from optimizer.io.permitted import check_values
from optimizer.ir import AttributeKind, DType, Graph, InvalidModel, Model, Node, TensorType, Value

_NEWEST = {"": defs.onnx_opset_version(), "ai.onnx.ml": defs.onnx_ml_opset_version()}
_UNBOUND = 2**31 - 1
_Option = defs.OpSchema.FormalParameterOption
_KINDS = {getattr(defs.OpSchema.AttrType, kind.name): kind for kind in AttributeKind}
_OFTEN_EMPTY = frozenset({"Resize"})
"""Operators whose required operands exporters leave empty, and every runtime lets them."""


def check_requirements(model: Model, *, types: bool = True) -> None:
    """Refuses nodes that no reading of the model gives a meaning.

    Operators without a schema, and those of the model's own functions, are not looked at.

    Args:
        types: element types of inputs and constants too.

    Raises:
        InvalidModel: an operator set is newer than the installed onnx knows or, where it is used, not
            imported; operands or attributes are not those of the schema.
    """
    for _, graph in model.graphs():
        _check_versions(graph)
        for node in graph.nodes:
            if (node.domain, node.op_type, node.overload) in model.functions:
                continue
            version = graph.opset(node.domain)
            if version < 1 and not node.domain:
                raise InvalidModel(
                    f"no opset is imported for the default domain, which {graph.label(node)} belongs to; "
                    f"add ai.onnx to opset_import"
                )
            fault = _fault(graph, node, version, types) if version > 0 else ""
            if fault:
                raise InvalidModel(f"node {graph.label(node)} {fault}")


def _check_versions(graph: Graph) -> None:
    for domain, version in graph.opsets.items():
        newest = _NEWEST.get(domain, version)
        if version > newest:
            raise InvalidModel(
                f"opset {version} of domain '{domain or 'ai.onnx'}' is newer than {newest}, the newest that "
                f"the installed onnx knows; upgrade onnx, or export the model for an older opset"
            )


class _Form(NamedTuple):
    """All that the checks by schema read of a node but the types of its operands."""

    op_type: str
    domain: str
    version: int
    present: tuple[bool, ...]
    results: int
    attributes: tuple[tuple[str, AttributeKind], ...]


def _fault(graph: Graph, node: Node, version: int, check_types: bool) -> str:
    """What is wrong with a node, as the end of a sentence; empty where nothing is."""
    form = _Form(
        node.op_type,
        node.domain,
        version,
        tuple([value is not None for value in node.inputs]),
        len(node.outputs),
        tuple([(name, attribute.kind) for name, attribute in node.attributes.items()]),
    )
    if fault := _fault_of_form(form):
        return fault
    if node.attributes and (fault := check_values(node)):
        return fault
    if not check_types:
        return ""
    types = tuple([_certain_type(graph, value) for value in node.inputs])
    return _fault_of_types(node.op_type, node.domain, version, types) if any(types) else ""


@cache
def _fault_of_form(form: _Form) -> str:
    if not defs.has(form.op_type, form.version, form.domain):
        return ""
    schema = defs.get_schema(form.op_type, form.version, form.domain)
    given = dict(form.attributes)
    missing = [name for name, a in schema.attributes.items() if a.required and name not in given]
    if missing:
        return f"lacks the required attribute {', '.join(sorted(missing))}"
    for name, kind in form.attributes:
        if name.startswith("__"):
            continue
        if name not in schema.attributes:
            return f"has an attribute '{name}', which {form.op_type}-{schema.since_version} does not know"
        wanted = _KINDS[schema.attributes[name].type]
        if kind is not wanted:
            return f"has an attribute '{name}' of kind {kind.name}, where {wanted.name} is asked for"
    count = len(form.present)
    if not schema.min_input <= count <= schema.max_input:
        return f"has {_counted(count, 'input')}, where {_range(schema.min_input, schema.max_input)} asked for"
    if not schema.min_output <= form.results <= schema.max_output:
        wanted_results = _range(schema.min_output, schema.max_output)
        return f"has {_counted(form.results, 'output')}, where {wanted_results} asked for"
    for formal, present in zip(schema.inputs, form.present, strict=False):
        if not present and formal.option == _Option.Single and form.op_type not in _OFTEN_EMPTY:
            return f"leaves out its input '{formal.name}', which is required"
    return ""


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" + ("" if count == 1 else "s")


def _range(least: int, most: int) -> str:
    bounds = (
        str(least) if least == most else f"at least {least}" if most >= _UNBOUND else f"{least} to {most}"
    )
    return bounds + (" is" if max(least, most % _UNBOUND) == 1 else " are")


def _certain_type(graph: Graph, value: Value | None) -> str:
    """The element type of an input of the model or a constant; empty for all else."""
    if value is None:
        return ""
    producer = graph.node(value.node)
    if producer.is_operator:
        return ""
    tensor = graph.tensor(value)
    if tensor is not None:
        return tensor.dtype.name.lower()
    declared = graph.info(value).type
    if producer.op_type != "Input" or not isinstance(declared, TensorType) or declared.sparse:
        return ""
    return "" if declared.dtype is DType.UNDEFINED else declared.dtype.name.lower()


@cache
def _fault_of_types(op_type: str, domain: str, version: int, types: tuple[str, ...]) -> str:
    if not defs.has(op_type, version, domain):
        return ""
    schema = defs.get_schema(op_type, version, domain)
    bound: dict[str, str] = {}
    for position, name in enumerate(types):
        formal = schema.inputs[min(position, len(schema.inputs) - 1)]
        if not name:
            continue
        if f"tensor({name})" not in formal.types:
            which = f"{op_type}-{schema.since_version}"
            return f"reads {name} as its input '{formal.name}', which {which} does not admit"
        if formal.is_homogeneous and bound.setdefault(formal.type_str, name) != name:
            return f"reads both {bound[formal.type_str]} and {name}, where one element type is asked for"
    return ""
