"""Rewrites that are wrong in one of fourteen ways, to be planted at a node of a real net."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from optimizer.analysis import Dim
from optimizer.ir import Graph, Node, Tensor, Value
from optimizer.rewrite import Context


@dataclass(frozen=True)
class Place:
    """A node at which a fault is to be planted."""

    ctx: Context
    graph: Graph
    node: Node
    rng: np.random.Generator

    def add(self, op: str, *inputs: Value | None, **attributes: Any) -> Value:
        return self.graph.add(op, inputs, attributes).value()

    def const(self, array: Any, dtype: Any = None) -> Value:
        return self.graph.add_constant(np.asarray(array, dtype))

    def ints(self, *numbers: int) -> Value:
        return self.const(numbers, np.int64)

    def array(self, slot: int) -> np.ndarray | None:
        return self.graph.const(self.node.input(slot))

    def known(self) -> bool:
        """Whether the elements of the node's output are known numbers."""
        found = self.ctx.facts(self.graph).of(self.node.value()).value
        return found is not None and all(item is not None for item in found.items)

    def shape(self, value: Value | None) -> tuple[Dim, ...] | None:
        return None if value is None else self.ctx.facts(self.graph).shape(value)

    def twin(self, inputs: tuple[Value | None, ...] | None = None, **attributes: Any) -> Value:
        """The same node over again, but for other inputs or attributes."""
        node = self.node
        plain = {name: node.attr(name) for name in node.attributes} | attributes
        given = node.inputs if inputs is None else inputs
        made = self.graph.add(node.op_type, given, plain, len(node.outputs), domain=node.domain)
        return made.value()

    def with_input(self, slot: int, value: Value | None) -> Value:
        inputs = list(self.node.inputs)
        inputs[slot] = value
        while inputs and inputs[-1] is None:
            inputs.pop()
        return self.twin(tuple(inputs))


Plant = Callable[[Place], "Value | None"]
"""Builds what wrongly replaces the node's first output; ``None`` where this node does not lend itself."""


def epsilon_times_ten(at: Place) -> Value | None:
    if at.node.op_type != "Add":
        epsilon, variance = at.node.attr("epsilon"), at.array(4)
        if variance is not None and variance.min() > 1e3:
            return None  # it would make no difference
        return at.twin(epsilon=10 * (1e-5 if epsilon is None else epsilon))
    written = at.array(1)
    users = {at.graph.node(use.node).op_type for use in at.graph.uses(at.node.value())}
    if "Sqrt" not in users or written is None or written.size != 1 or not 0 < written.min() < 1e-3:
        return None
    return at.with_input(1, at.const(written * 10, written.dtype))


def one_weight_off(at: Place) -> Value | None:
    """One weight of median size, off by 1 %."""
    weight = at.array(1)
    shape = at.shape(at.node.input(0))
    if weight is None or weight.dtype != np.float32 or weight.size < 8 or shape is None:
        return None
    if at.node.op_type == "Conv" and any(
        dim.value is not None and dim.value < kernel
        for dim, kernel in zip(shape[2:], weight.shape[2:], strict=True)
    ):
        return None  # some weights meet nothing but padding
    changed, sizes = weight.copy().reshape(-1), np.abs(weight).reshape(-1)
    order = np.argsort(sizes)
    order = order[sizes[order] > 0]
    if not len(order):
        return None
    changed[order[len(order) // 2]] *= 1.01
    return at.with_input(1, at.const(changed.reshape(weight.shape)))


def tanh_for_erf(at: Place) -> Value | None:
    x = at.node.input(0)
    cube = at.add("Mul", at.add("Mul", x, x), x)
    inner = at.add("Add", x, at.add("Mul", cube, at.const(0.08943, np.float32)))
    return at.add("Tanh", at.add("Mul", inner, at.const(1.1283792, np.float32)))


def wrong_axis(at: Place) -> Value | None:
    shape = at.shape(at.node.input(0))
    axis = at.node.attr("axis")
    if shape is None or len(shape) < 2 or (axis is None and at.node.op_type != "Softmax"):
        return None
    if at.node.op_type == "Softmax" and at.graph.opset() < 13:
        return None  # over all axes from there on: another one may mean the same
    if at.node.op_type == "Concat" and len(at.node.inputs) < 2:
        return None
    other = (axis if axis is not None else -1) % len(shape) - 1
    if shape[other % len(shape)].value == 1 and shape[(other + 1) % len(shape)].value == 1:
        return None
    return at.twin(axis=other % len(shape))


def wrong_pad(at: Place) -> Value | None:
    """One row or column more at the beginning, one less at the end."""
    pads = at.node.attr("pads")
    if not pads or not any(pads):
        return None
    half = len(pads) // 2
    axis = next(i for i in range(half) if pads[i + half] or pads[i])
    moved, step = list(pads), 1 if pads[axis + half] else -1
    moved[axis] += step
    moved[axis + half] -= step
    return at.twin(pads=moved)


def dropped_bias(at: Place) -> Value | None:
    bias = at.array(2)
    return None if bias is None or not np.any(bias) else at.with_input(2, None)


def shared_weight_changed(at: Place) -> Value | None:
    """A constant that other nodes read as well is scaled for all of them: the factor was meant for one."""
    for slot, value in enumerate(at.node.inputs):
        array = at.graph.const(value)
        if value is None or array is None or array.dtype != np.float32 or len(at.graph.uses(value)) < 2:
            continue
        if not np.any(array):
            continue
        at.graph.replace_uses(value, at.const(array * np.float32(1.25)))
        return at.with_input(slot, value)
    return None


def per_width_for_per_channel(at: Place) -> Value | None:
    """Factors of the channels applied along the last axis, or those of the outputs along the inputs."""
    factors = at.array(1)
    if factors is None or factors.dtype != np.float32:
        return None
    if at.node.op_type in ("MatMul", "Conv"):
        rows, columns = (*factors.shape, 0, 0)[:2]
        if rows != columns or rows < 2:
            return None
        scale = at.rng.uniform(0.5, 2.0, rows).astype(np.float32)
        tail = (1,) * (factors.ndim - 2)
        scaled = scale.reshape(1, rows, *tail) if at.node.op_type == "Conv" else scale[:, None]
        wrong = at.with_input(1, at.const(factors * scaled))
        channel = (rows, *tail) if at.node.op_type == "Conv" else (rows,)
        return at.add("Div", wrong, at.const(scale.reshape(channel)))
    shape = at.shape(at.node.value())
    if factors.ndim < 3 or factors.size < 2 or factors.shape[-3] != factors.size or shape is None:
        return None
    if len(shape) != 4 or shape[3].value not in (None, factors.size):
        return None
    return at.with_input(1, at.const(factors.reshape(1, 1, -1)))


def swapped_perm(at: Place) -> Value | None:
    perm = list(at.node.attr("perm") or ())
    shape = at.shape(at.node.input(0))
    if len(perm) < 2 or shape is None or at.known():
        return None
    first = int(at.rng.integers(len(perm) - 1))
    if 1 in (shape[perm[first]].value, shape[perm[first + 1]].value):
        return None  # the same elements in the same order
    perm[first], perm[first + 1] = perm[first + 1], perm[first]
    return at.twin(perm=perm)


def stale_shape(at: Place) -> Value | None:
    """The target of one particular size."""
    shape = at.shape(at.node.value())
    if shape is None or all(dim.value is not None for dim in shape):
        return None
    return at.with_input(1, at.ints(*(2 if dim.value is None else dim.value for dim in shape)))


def off_by_one_slice(at: Place) -> Value | None:
    slot = int(at.rng.integers(1, 3))
    shape, bounds, axes = at.shape(at.node.input(0)), at.array(slot), at.array(3)
    if shape is None or bounds is None or axes is None or bounds.dtype != np.int64:
        return None
    last = bounds.reshape(-1) >= [shape[int(axis)].value or 1 << 30 for axis in axes.reshape(-1)]
    if at.known() or (slot == 2 and (last.any() or bounds.min() < -(1 << 30))):
        return None  # it would not go any further
    return at.with_input(slot, at.const(bounds + 1))


def wrong_broadcast(at: Place) -> Value | None:
    """The first entry of an operand stands for all of them."""
    value = at.node.input(1)
    shape = at.shape(value)
    if value is None or shape is None or not shape or at.graph.const(value) is not None:
        return None
    axis = next((i for i, dim in enumerate(shape) if dim.value != 1), None)
    if axis is None:
        return None
    if at.graph.opset() < 10:
        first = at.add("Slice", value, starts=[0], ends=[1], axes=[axis])
    else:
        first = at.add("Slice", value, at.ints(0), at.ints(1), at.ints(axis))
    return at.with_input(1, first)


def integer_overflow(at: Place) -> Value | None:
    """Arithmetic on integers of eight bits, or a quantization that wraps instead of saturating."""
    if at.node.op_type == "QuantizeLinear":
        zero = at.graph.tensor(at.node.input(2))
        if zero is None or zero.size != 1 or zero.dtype.bits != 8:
            return None
        steps = at.add("Round", at.add("Div", at.node.input(0), at.node.input(1)))
        wide = at.add("Add", at.add("Cast", steps, to=6), at.add("Cast", at.node.input(2), to=6))
        return at.add("Cast", wide, to=int(zero.dtype))
    a, b = at.node.inputs[:2]
    dtype = at.ctx.facts(at.graph).dtype(at.node.value())
    if dtype is None or dtype.name not in ("INT64", "INT32"):
        return None
    operands = [at.ctx.facts(at.graph).of(value).value for value in (a, b) if value is not None]
    numbers = [item for known in operands if known is not None for item in known.items]
    if len(operands) == 2 and None not in operands and all(_is_number(item) for item in numbers):
        return None  # it may fit
    result = at.ctx.facts(at.graph).of(at.node.value()).value
    if result is not None and all(_is_number(item) for item in result.items):
        return None
    narrow = at.add(at.node.op_type, at.add("Cast", a, to=3), at.add("Cast", b, to=3))
    return at.add("Cast", narrow, to=int(dtype))


def _is_number(item: object) -> bool:
    return isinstance(item, int) or (isinstance(item, Dim) and item.value is not None)


def merged_random_ops(at: Place) -> Value | None:
    """Another node that draws from the same distribution gives its numbers to this one as well."""
    others = [n for n in at.graph.nodes if n.op_type == at.node.op_type and n.id < at.node.id]
    same = [n for n in others if n.inputs == at.node.inputs]
    return same[0].value() if same else None


_BINARY = ("Add", "Mul", "Sub", "Div")
KINDS: dict[str, tuple[Plant, str, tuple[str, ...]]] = {
    "epsilon x10": (epsilon_times_ten, "E2",
                    ("BatchNormalization", "LayerNormalization", "InstanceNormalization", "Add")),
    "one weight off 1 %": (one_weight_off, "E2", ("Conv", "MatMul", "Gemm")),
    "tanh for erf": (tanh_for_erf, "E2", ("Erf",)),
    "wrong axis": (wrong_axis, "E2", ("Softmax", "Concat", "LayerNormalization", "Flatten")),
    "wrong pad": (wrong_pad, "E2", ("Conv", "MaxPool", "AveragePool")),
    "dropped bias": (dropped_bias, "E2", ("Conv", "Gemm")),
    "shared weight changed": (shared_weight_changed, "E2", ("Conv", "MatMul", "Gemm", *_BINARY)),
    "per-width for per-channel": (per_width_for_per_channel, "E2", ("Conv", "MatMul", "Mul", "Add")),
    "swapped perm": (swapped_perm, "E0", ("Transpose",)),
    "stale shape": (stale_shape, "E0", ("Reshape", "Expand")),
    "off-by-one slice": (off_by_one_slice, "E0", ("Slice",)),
    "wrong broadcast": (wrong_broadcast, "E2", _BINARY),
    "integer overflow": (integer_overflow, "E0", ("QuantizeLinear", *_BINARY)),
    "merged random ops": (merged_random_ops, "E0", ("RandomNormalLike",)),
}  # fmt: skip
"""Kind to how it is planted, how exact the rewrite claims to be, and the operators it is planted at."""


def with_noise(graph: Graph, rng: np.random.Generator, pairs: int) -> None:
    """Adds the difference of two random tensors to a few values, so that a net has random ops to merge."""
    nodes = [n for n in graph.nodes if n.op_type in ("Conv", "MatMul", "Gemm", "Relu")]
    for key in rng.permutation(len(nodes))[:pairs]:
        value = nodes[int(key)].value()
        users = graph.uses(value)
        first, second = (graph.add("RandomNormalLike", (value,)).value() for _ in range(2))
        noise = graph.add("Sub", (first, second)).value()
        graph.replace_uses(value, graph.add("Add", (value, noise)).value(), users)


__all__ = ["KINDS", "Place", "Tensor", "with_noise"]
