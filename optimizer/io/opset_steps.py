"""How single operators are rewritten where a version of the operator set changed them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from optimizer.ir import Graph, Node, TensorType, Value

Adapter: TypeAlias = Callable[[Graph, Node, int], Node]
"""Rewrites one node of a graph that is on its way to the given version."""


class Unconvertible(Exception):
    """This use of the operator has no equivalent in the next version."""


def _required(condition: object, reason: str) -> None:
    if not condition:
        raise Unconvertible(reason)


def _replace(
    graph: Graph, node: Node, op_type: str, inputs: list[Value | None], attributes: Mapping[str, Any]
) -> Node:
    """Another operator in the place of ``node``, under its name."""
    infos = node.outputs
    graph.set_attrs(node, outputs=len(infos))
    fresh = graph.add(op_type, inputs, attributes, infos, name=node.name)
    for index in range(len(infos)):
        graph.replace_uses(node.value(index), fresh.value(index))
    graph.erase(node)
    return fresh


def _without(node: Node, *names: str) -> dict[str, Any]:
    return {name: value for name, value in node.attributes.items() if name not in names}


def _literal(node: Node, name: str) -> Any:
    """The plain value of an attribute; that of a function's own attribute is not known here."""
    attribute = node.attributes.get(name)
    _required(attribute is None or not attribute.reference, f"'{name}' is an attribute of the function")
    return node.attr(name)


# ------------------------------------------------------------------ attributes that became inputs


def _to_inputs(slot: int, *names: str) -> Adapter:
    """Integer attributes become the operands from ``slot`` on, as vectors."""

    def adapt(graph: Graph, node: Node, version: int) -> Node:
        inputs: list[Value | None] = [*node.inputs]
        inputs += [None] * (slot - len(inputs))
        for name in names:
            given = _literal(node, name)
            inputs.append(None if given is None else graph.add_constant(np.atleast_1d(np.int64(given))))
        while inputs and inputs[-1] is None:
            inputs.pop()
        graph.set_attrs(node, _without(node, *names))
        return graph.set_inputs(node, inputs)

    return adapt


def _number(graph: Graph, node: Node, name: str, version: int) -> Value | None:
    """A float attribute as an operand of the first operand's type."""
    given = _literal(node, name)
    if given is None:
        return None
    x = node.inputs[0]
    assert x is not None
    declared = graph.info(x).type
    number = np.asarray(given, np.float32)
    if isinstance(declared, TensorType) and declared.dtype is not None:
        return graph.add_constant(number.astype(declared.dtype.numpy))
    _required(version >= 15, "the element type is not declared")
    return graph.add("CastLike", [graph.add_constant(number), x]).value()


def _clip(graph: Graph, node: Node, version: int) -> Node:
    bounds = [_number(graph, node, name, version) for name in ("min", "max")]
    graph.set_attrs(node, _without(node, "min", "max"))
    while bounds and bounds[-1] is None:
        bounds.pop()
    return graph.set_inputs(node, [*node.inputs, *bounds])


def _pad(graph: Graph, node: Node, version: int) -> Node:
    pads = graph.add_constant(np.array(_literal(node, "pads"), np.int64))
    value = _number(graph, node, "value", version)
    graph.set_attrs(node, _without(node, "pads", "value"))
    return graph.set_inputs(node, [node.inputs[0], pads, *([] if value is None else [value])])


def _slice(graph: Graph, node: Node, version: int) -> Node:
    return _to_inputs(1, "starts", "ends", "axes")(graph, node, version)


def _split_18(graph: Graph, node: Node, version: int) -> Node:
    """Equal parts have to be counted."""
    if node.input(1) is not None:
        return node
    return graph.set_attrs(node, {**node.attributes, "num_outputs": len(node.outputs)})


def _dft(graph: Graph, node: Node, version: int) -> Node:
    axis = graph.add_constant(np.array(node.attr("axis", 1), np.int64))
    inputs: list[Value | None] = [*node.inputs, None][:2]
    graph.set_attrs(node, _without(node, "axis"))
    return graph.set_inputs(node, [*inputs, axis])


# ------------------------------------------------------------------ other meanings


def _softmax(graph: Graph, node: Node, version: int) -> Node:
    """Up to opset 12 what follows the axis was one row."""
    axis, x = node.attr("axis", 1), node.inputs[0]
    _literal(node, "axis")
    if axis == -1:
        return graph.set_attrs(node, {**node.attributes, "axis": -1})
    shape = graph.add("Shape", [x])
    rows = graph.add("Flatten", [x], {"axis": axis})
    result = graph.add(node.op_type, [rows.value()], {"axis": -1})
    exactly = {"allowzero": 1} if version >= 14 else {}  # a 0 in the shape of an empty tensor means 0
    return _replace(graph, node, "Reshape", [result.value(), shape.value()], exactly)


def _dropout_12(graph: Graph, node: Node, version: int) -> Node:
    """The ratio does not matter outside of training."""
    return graph.set_attrs(node, _without(node, "ratio"))


def _batchnorm_9(graph: Graph, node: Node, version: int) -> Node:
    _required(node.attr("spatial", 1) == 1, "it is not per channel")
    return graph.set_attrs(node, _without(node, "spatial"))


def _batchnorm_14(graph: Graph, node: Node, version: int) -> Node:
    _required(len(node.outputs) == 1, "it may be in training mode")
    return node


def _upsample(graph: Graph, node: Node, version: int) -> Node:
    """Resize counts in the same way when it is asked to."""
    scales = node.input(1)
    if scales is None:
        scales = graph.add_constant(np.array(_literal(node, "scales"), np.float32))
    return _replace(graph, node, "Resize", [node.inputs[0], scales], {"mode": node.attr("mode", "nearest")})


def _resize_11(graph: Graph, node: Node, version: int) -> Node:
    nothing = graph.add_constant(np.zeros(0, np.float32))
    attributes = {
        **node.attributes,
        "coordinate_transformation_mode": "asymmetric",
        "nearest_mode": "floor",
    }
    graph.set_attrs(node, attributes)
    return graph.set_inputs(node, [node.inputs[0], nothing, node.inputs[1]])


def _resize_13(graph: Graph, node: Node, version: int) -> Node:
    mode = node.attr("coordinate_transformation_mode")
    _required(mode != "tf_half_pixel_for_nn", f"there is no mode '{mode}' any more")
    return node


def _roi_align(graph: Graph, node: Node, version: int) -> Node:
    """The half pixel has been taken off by default since."""
    return graph.set_attrs(node, {**node.attributes, "coordinate_transformation_mode": "output_half_pixel"})


def _grid_sample(graph: Graph, node: Node, version: int) -> Node:
    named = {"bilinear": "linear", "bicubic": "cubic"}
    mode = node.attr("mode", "bilinear")
    return graph.set_attrs(node, {**node.attributes, "mode": named.get(mode, mode)})


def _group_norm(graph: Graph, node: Node, version: int) -> Node:
    """Scale and bias were one number per group, and have been one per channel since."""
    groups, per_channel = node.attr("num_groups"), []
    x = node.inputs[0]
    assert x is not None
    declared = graph.info(x).type
    shape = declared.shape if isinstance(declared, TensorType) else None
    channels = shape[1] if shape is not None and len(shape) > 1 else None
    for value in node.inputs[1:3]:
        array = graph.const(value)
        _required(array is not None and isinstance(channels, int), "the number of channels is not declared")
        assert array is not None
        assert isinstance(channels, int)
        per_channel.append(graph.add_constant(np.repeat(array, channels // groups)))
    return graph.set_inputs(node, [x, *per_channel])


def _same(graph: Graph, node: Node, version: int) -> Node:
    return node


def _scatter(graph: Graph, node: Node, version: int) -> Node:
    return _replace(graph, node, "ScatterElements", [*node.inputs], node.attributes)


_REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare")

ADAPTERS: Mapping[tuple[str, int], Adapter] = {
    ("BatchNormalization", 9): _batchnorm_9,
    ("BatchNormalization", 14): _batchnorm_14,
    ("Clip", 11): _clip,
    ("DFT", 20): _dft,
    ("Dropout", 12): _dropout_12,
    ("Dropout", 13): _same,
    ("Gemm", 11): _same,
    ("GridSample", 20): _grid_sample,
    ("GroupNormalization", 21): _group_norm,
    ("Hardmax", 13): _softmax,
    ("LogSoftmax", 13): _softmax,
    ("Pad", 11): _pad,
    ("ReduceSum", 13): _to_inputs(1, "axes"),
    **{(f"Reduce{name}", 18): _to_inputs(1, "axes") for name in _REDUCTIONS},
    ("Resize", 11): _resize_11,
    ("Resize", 13): _resize_13,
    ("RoiAlign", 16): _roi_align,
    ("Scatter", 11): _scatter,
    ("Slice", 10): _slice,
    ("Softmax", 13): _softmax,
    ("Split", 13): _to_inputs(1, "split"),
    ("Split", 18): _split_18,
    ("Squeeze", 13): _to_inputs(1, "axes"),
    ("TopK", 10): _to_inputs(1, "k"),
    ("Unsqueeze", 13): _to_inputs(1, "axes"),
    ("Upsample", 9): _same,
    ("Upsample", 10): _upsample,
}
"""By operator and the version that changed it."""
