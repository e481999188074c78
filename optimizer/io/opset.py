"""Converting a model to another version of the default operator set."""

from __future__ import annotations

from dataclasses import replace

from optimizer.io.loader import load
from optimizer.io.writer import to_proto
from optimizer.ir import Model, UsageError


def convert_opset(model: Model, version: int) -> Model:
    """The model at another opset of the default domain, by onnx's own version converter.

    Args:
        model: not changed. Its constants are copied, so they must fit into one protobuf message.
        version: the wanted version.

    Raises:
        UsageError: the converter has no path there, or the model has parts it would lose.
    """
    current = model.opsets.get("", 0)
    if version == current:
        return model
    if model.functions:
        raise UsageError(f"cannot convert opset {current} to {version}: the model has local functions")
    from onnx import defs, version_converter

    if not 1 <= version <= defs.onnx_opset_version():
        raise UsageError(
            f"there is no opset {version}; the installed onnx knows 1 to {defs.onnx_opset_version()}"
        )
    proto = to_proto(model)
    try:
        converted = load(version_converter.convert_version(proto, version))
    except (RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise UsageError(f"cannot convert opset {current} to {version}: {reason}") from error
    extras = {**model.extras, **converted.extras}
    return replace(converted, metadata=model.metadata, extras=extras, warnings=model.warnings)
