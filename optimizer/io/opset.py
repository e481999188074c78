"""Converting a model to another version of the default operator set.

Upwards node by node: most operators mean the same in every version, a few need an adapter. Downwards,
and from versions before 7 (whose broadcasting was another), onnx's own converter is asked.
"""

from __future__ import annotations

import re
from dataclasses import replace

from optimizer.io.loader import load
from optimizer.io.opset_steps import ADAPTERS, Unconvertible
from optimizer.io.writer import to_proto
from optimizer.ir import DType, Graph, Model, Node, TensorType, UsageError

FUSED_OPSET = 23
"""The version that has all fused operators: HardSwish-14, LayerNormalization-17, Gelu-20, and
Attention, RMSNormalization and RotaryEmbedding. Released onnxruntimes run it."""

NO_KERNEL = frozenset(
    {
        "Bernoulli",
        "GlobalLpPool",
        "ImageDecoder",
        "MaxRoiPool",
        "Multinomial",
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
        "RoiAlign",
    }
)
"""Operators whose version at ``FUSED_OPSET`` released onnxruntimes cannot run; older ones they can."""
NO_DOUBLE_KERNEL = frozenset(
    {
        "Elu",
        "HardSigmoid",
        "HardSwish",
        "LeakyRelu",
        "Mish",
        "PRelu",
        "Selu",
        "Softplus",
        "Softsign",
        "ThresholdedRelu",
    }
)
"""Those of which that holds where a model computes in double."""

_OLDEST = 7


def convert_opset(model: Model, version: int) -> Model:
    """The model at another opset of the default domain.

    Args:
        model: used up: the result may be the same object, changed.
        version: the wanted version.

    Raises:
        UsageError: an operator has no equivalent there, or there is no such version.
    """
    current = model.opsets.get("", 0)
    if version == current or not current:
        return model
    from onnx import defs

    if not 1 <= version <= defs.onnx_opset_version():
        raise UsageError(
            f"there is no opset {version}; the installed onnx knows 1 to {defs.onnx_opset_version()}"
        )
    if current < _OLDEST or version < current:
        return _by_onnx(model, version)
    try:
        return _raise_opset(model, version)
    except _NoEquivalent as reason:
        raise UsageError(f"cannot convert opset {current} to {version}: {reason}") from None


def fuse_opset(model: Model) -> Model:
    """The model at ``FUSED_OPSET``, or as it is where it is newer already.

    Args:
        model: used up, as in ``convert_opset``, unless this raises before anything is changed.

    Raises:
        UsageError: it cannot be converted, or would not run afterwards.
    """
    if model.opsets.get("", FUSED_OPSET) >= FUSED_OPSET:
        return model
    roots = [model.graph, *(function.graph for function in model.functions.values())]
    graphs = [graph for root in roots for _, graph in root.scopes()]
    used = {node.op_type for graph in graphs for node in graph.nodes if not node.domain}
    doubles = any(map(_holds_doubles, graphs))
    lacking = sorted(used & (NO_KERNEL | NO_DOUBLE_KERNEL if doubles else NO_KERNEL))
    if lacking:
        raise UsageError(f"onnxruntime does not run {lacking[0]} at opset {FUSED_OPSET}")
    return convert_opset(model, FUSED_OPSET)


def _holds_doubles(graph: Graph) -> bool:
    """Whether a double comes into being in a graph: as an input, as a constant, or by an attribute."""
    types = [graph.info(value).type for value in graph.inputs]
    held = {t.dtype for t in types if isinstance(t, TensorType)}
    held |= {t.dtype for value in graph.constants if (t := graph.tensor(value)) is not None}
    made = {node.attr(name) for node in graph.nodes for name in ("to", "dtype") if name in node.attributes}
    return DType.DOUBLE in held or int(DType.DOUBLE) in made


# ------------------------------------------------------------------ upwards


class _NoEquivalent(Exception):
    """The model uses something that the newer version has not."""


def _raise_opset(model: Model, version: int) -> Model:
    from onnx import helper

    roots = [model.graph, *(function.graph for function in model.functions.values())]
    scopes = [(root, graph) for root in roots for _, graph in root.scopes()]
    plan = [
        (graph, node, _steps(node, root.opset(), version)) for root, graph in scopes for node in graph.nodes
    ]
    for graph, node, steps in plan:
        for since in steps:
            try:
                node = ADAPTERS[node.op_type, since](graph, graph.node(node.id), version)
            except Unconvertible as reason:
                raise _NoEquivalent(f"{graph.label(node)}: {reason}") from None
    for _, graph in scopes:
        if "" in graph.opsets:
            graph.opsets[""] = max(version, graph.opsets[""])
    least = helper.find_min_ir_version_for([helper.make_opsetid("", version)], ignore_unknown=True)
    return replace(model, ir_version=max(model.ir_version, least))


def _steps(node: Node, current: int, version: int) -> list[int]:
    """The versions on the way at which an adapter is due.

    Raises:
        _NoEquivalent: the operator changes or disappears and there is no adapter.
    """
    if node.domain or not node.is_operator:
        return []
    from onnx import defs

    found, op_type = [], node.op_type
    for since in range(current + 1, version + 1):
        if (op_type, since) in ADAPTERS:
            found.append(since)
            op_type = _RENAMED.get((op_type, since), op_type)
        elif not defs.has(op_type, since) or _is_gone(op_type, since, version):
            raise _NoEquivalent(f"opset {since} has no {op_type}")
        elif defs.get_schema(op_type, since).since_version == since and not _is_compatible(op_type, since):
            raise _NoEquivalent(f"{op_type} changed its meaning in opset {since}")
    return found


def _is_gone(op_type: str, since: int, version: int) -> bool:
    """Whether an operator is deprecated for good (GroupNormalization came back)."""
    from onnx import defs

    comes_back = any((op_type, later) in ADAPTERS for later in range(since, version + 1))
    return bool(defs.get_schema(op_type, since).deprecated) and not comes_back


_RENAMED = {("Upsample", 10): "Resize", ("Scatter", 11): "ScatterElements"}


def _is_compatible(op_type: str, since: int) -> bool:
    """Whether every use of the version before says the same in this one."""
    from onnx import defs

    if not defs.has(op_type, since - 1):
        return True
    old, new = defs.get_schema(op_type, since - 1), defs.get_schema(op_type, since)
    same = all(
        name in new.attributes
        and attribute.type == new.attributes[name].type
        and attribute.default_value == new.attributes[name].default_value
        for name, attribute in old.attributes.items()
    )
    added = set(new.attributes) - set(old.attributes)
    return (
        same
        and not any(new.attributes[name].required for name in added)
        and old.max_input <= new.max_input
        and old.min_input >= new.min_input
        and old.max_output <= new.max_output
    )


# ------------------------------------------------------------------ by onnx


def _by_onnx(model: Model, version: int) -> Model:
    current = model.opsets.get("", 0)
    if model.functions:
        raise UsageError(f"cannot convert opset {current} to {version}: the model has local functions")
    from onnx import version_converter

    proto = to_proto(model)
    try:
        converted = load(version_converter.convert_version(proto, version))
    except Exception as error:  # an assertion of C++, or a result that is no model
        reason = _reason(str(error), -1 if version < current else 1)
        raise UsageError(f"cannot convert opset {current} to {version}: {reason}") from error
    extras = {**model.extras, **converted.extras}
    return replace(converted, metadata=model.metadata, extras=extras, warnings=model.warnings)


_ASSERTION = re.compile(r"^.*?Assertion `.*` failed: ?")
_SPOKEN = (
    (re.compile(r"No Previous Version of (\w+) exists"), r"the older one has no \1"),
    (re.compile(r"No Adapter For (\w+)"), r"onnx's converter does not know how \1 changed"),
    (re.compile(r"DataType \(\d+\) of Input or Output of (\w+) '(.*?)' is unallowed.*"),
     r"\1 '\2' has an element type that the older one does not admit"),
)  # fmt: skip


_STEP = re.compile(r"No Adapter (From|To) Version \$?(\d+) for (\w+)")


def _reason(text: str, step: int) -> str:
    """What the converter, which goes by versions of 1 or -1, says; without the place in its source."""

    def failed(found: re.Match[str]) -> str:
        end = int(found[2])
        old, new = (end, end + step) if found[1] == "From" else (end - step, end)
        way = "down" if step < 0 else "up"
        return f"onnx's converter cannot take {found[3]} {way} from opset {old} to {new}"

    text = _STEP.sub(failed, _ASSERTION.sub("", " ".join(text.split())))
    for pattern, words in _SPOKEN:
        text = pattern.sub(words, text)
    return text.rstrip(".") or "onnx's converter gives up"
