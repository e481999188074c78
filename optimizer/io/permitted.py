"""Values of attributes that no input can give a meaning, whatever its shape."""

from __future__ import annotations

from collections.abc import Callable

from optimizer.ir import DType, Node

_WINDOWS = frozenset(
    {
        "AveragePool",
        "Conv",
        "ConvInteger",
        "ConvTranspose",
        "LpPool",
        "MaxPool",
        "MaxUnpool",
        "QLinearConv",
    }
)
_PER_AXIS = {"kernel_shape": 1, "strides": 1, "dilations": 1, "pads": 2}
"""Attributes of a window, with how many numbers they have for each axis it slides along."""
_FLAGS = (
    "allowzero", "ceil_mode", "count_include_pad", "exclusive", "fmod", "keepdims", "largest", "reverse",
    "select_last_index", "sorted", "transA", "transB",
)  # fmt: skip
"""Integers that are 0 or 1; of others, runtimes make different things."""
_PADDINGS = frozenset({"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"})


def check_values(node: Node) -> str:
    """What is wrong with the attributes of a node, as the end of a sentence; empty where nothing is."""
    if node.domain:
        return ""
    for name in _FLAGS:
        if name in node.attributes and node.attr(name) not in (0, 1, None):
            return f"has {name} {node.attr(name)}, where 0 or 1 is asked for"
    if node.op_type in _WINDOWS:
        return _window(node)
    check = _CHECKS.get(node.op_type)
    return "" if check is None else check(node)


def _transpose(node: Node) -> str:
    perm = node.attr("perm")
    if perm is None or sorted(perm) == list(range(len(perm))):
        return ""
    return f"has perm {list(perm)}, which is no permutation of its axes"


def _cast(node: Node) -> str:
    number = node.attr("to")
    if number is None or (number in set(DType) and number != DType.UNDEFINED):
        return ""
    return f"casts to element type {number}, which does not exist"


def _split(node: Node) -> str:
    count = node.attr("num_outputs")
    if count is not None and count < 1:
        return f"splits into {count} parts"
    return "splits into parts of negative size" if any(part < 0 for part in node.attr("split") or ()) else ""


def _window(node: Node) -> str:
    """A window has as many strides, dilations and halves of paddings as it has axes, and covers something."""
    ranks = {name: len(node.attr(name)) / per for name, per in _PER_AXIS.items() if node.attr(name)}
    if len(set(ranks.values())) > 1:
        lists = ", ".join(f"{name} {list(node.attr(name))}" for name in ranks)
        return f"states its window for different numbers of axes: {lists}"
    for name in ("kernel_shape", "strides"):
        if any(size < 1 for size in node.attr(name) or ()):
            return f"has {name} {list(node.attr(name))}, where positive numbers are asked for"
    if node.attr("group") is not None and node.attr("group") < 1:
        return f"has {node.attr('group')} groups"
    mode = node.attr("auto_pad")
    return "" if mode is None or mode in _PADDINGS else f"has auto_pad '{mode}', which does not exist"


_CHECKS: dict[str, Callable[[Node], str]] = {"Cast": _cast, "Split": _split, "Transpose": _transpose}
