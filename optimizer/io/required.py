"""What an operator cannot do without: an imported operator set, and its required attributes."""

from __future__ import annotations

from functools import cache

from onnx import defs

from optimizer.ir import InvalidModel, Model


def check_requirements(model: Model) -> None:
    """Refuses nodes of the default domain that no reading of the model gives a meaning.

    Raises:
        InvalidModel: the default domain is used but not imported, or a required attribute is missing.
    """
    for _, graph in model.graphs():
        for node in graph.nodes:
            if node.domain or (node.domain, node.op_type, node.overload) in model.functions:
                continue
            version = graph.opset()
            if not version:
                raise InvalidModel(
                    f"no opset is imported for the default domain, which {graph.label(node)} belongs to; "
                    f"add ai.onnx to opset_import"
                )
            missing = _required(node.op_type, version).difference(node.attributes)
            if missing:
                names = ", ".join(sorted(missing))
                raise InvalidModel(f"node {graph.label(node)} lacks the required attribute {names}")


@cache
def _required(op_type: str, version: int) -> frozenset[str]:
    """Names of the attributes that the schema in force requires; none for unknown operators."""
    if not defs.has(op_type, version, ""):
        return frozenset()
    schema = defs.get_schema(op_type, version, "")
    return frozenset(name for name, attribute in schema.attributes.items() if attribute.required)
