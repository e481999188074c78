"""Operators that can run on data whose axes are permuted: what changes about them when they do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from optimizer.analysis import Facts
from optimizer.ir import Graph, Node, Tensor, Value
from optimizer.rewrite import Exactness, Match, Refusal
from passes.axes import Parts, Perm, parts_of_view
from passes.target import reshape_target


def op_types_in(text: str) -> frozenset[str]:
    """Operator types out of a text."""
    return frozenset(text.split())


UNARY = op_types_in(
    """Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Cast CastLike Ceil Celu Clip Cos Cosh Elu Erf Exp
    Floor Gelu HardSigmoid HardSwish Identity IsInf IsNaN LeakyRelu Log Mish Neg Not Reciprocal Relu
    Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Swish Tan Tanh ThresholdedRelu"""
)
POINTWISE = op_types_in(
    """Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual
    Max Mean Min Mod Mul Or Pow PRelu Sub Sum Where Xor"""
)
BY_AXIS = {"Softmax": -1, "LogSoftmax": -1, "Hardmax": -1, "ArgMax": 0, "ArgMin": 0, "Split": 0}
FLATTENING = frozenset(("Softmax", "LogSoftmax", "Hardmax"))
REDUCTIONS = op_types_in(
    """ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum
    ReduceSumSquare"""
)


VIEWS = op_types_in("Reshape Flatten Squeeze Unsqueeze")
BY_ROWS = op_types_in("LayerNormalization RMSNormalization MatMul")
_CHOOSING = op_types_in("ReduceMax ReduceMin")
_SUMMING = (REDUCTIONS - _CHOOSING) | FLATTENING | BY_ROWS
_BY_PLACE = op_types_in("Acos Asin Atan Cos Log Mish Pow Sin Softplus")
"""Operators whose last bit, in onnxruntime, hangs on where in a row of a few an element lies."""


def exactness_of(op_type: str) -> Exactness:
    """What another order of axes may change: sums are rounded otherwise, and of several NaN, or zeros
    of either sign, another one may be the largest.
    """
    if op_type in _SUMMING or op_type in _BY_PLACE:
        return Exactness.E2
    return Exactness.E1 if op_type in _CHOOSING else Exactness.E0


Rebuilt: TypeAlias = tuple[list[Value | None], dict[str, Any]]
Rebuild: TypeAlias = Callable[[Perm, Perm, list[Value | None]], Rebuilt]


@dataclass(frozen=True, slots=True)
class Permutable:
    """How one operator runs on permuted data.

    Attributes:
        data: operands that must be permuted like its results.
        rebuild: for the permutations of the data and of the result (new axis i is old axis perm[i]) and
            the operands, the data already permuted, gives the new operands and attributes.
        parts: which axes of the data are which of the result; ``None``: they are the same.
        admits: whether it can run with these two permutations.
        becomes: type of the new operator, where it is another.
    """

    data: tuple[int, ...]
    rebuild: Rebuild
    parts: Parts | None = None
    admits: Callable[[Perm, Perm], bool] = lambda perm, result: True
    becomes: str = ""


def permutable(m: Match) -> Permutable | None:
    """How the root of ``m`` runs on permuted data; ``None`` where it cannot."""
    node, kind = m.root, m.root.op_type
    if node.domain or node.captures or any(a.reference for a in node.attributes.values()):
        return None
    changes_rank = kind in VIEWS or kind in REDUCTIONS
    rank = m.rank(node.input(0) if changes_rank else node.value())
    if rank is None:
        return None
    asker = _Asker(m, m.graph, m.facts, node, rank)
    if kind in UNARY:
        return Permutable((0,), asker.same)
    if kind in POINTWISE:
        return asker.pointwise()
    if kind == "Concat":
        return asker.pointwise(asker.axis("axis", 1))
    if kind in BY_AXIS:
        return asker.by_axis(BY_AXIS[kind])
    if kind in REDUCTIONS:
        return asker.reduction()
    if kind in VIEWS:
        return asker.view()
    if kind in ("QuantizeLinear", "DequantizeLinear"):
        return asker.quantization()
    if kind in BY_ROWS:
        return asker.rows()
    whole = {"Pad": asker.pad, "Resize": asker.resize, "Gather": asker.gather, "Slice": asker.slice}
    return whole[kind]() if kind in whole else None


@dataclass(frozen=True, slots=True)
class _Asker:
    """One node and what is known about its operands."""

    m: Match
    graph: Graph
    facts: Facts
    node: Node
    rank: int

    def same(self, perm: Perm, result: Perm, inputs: list[Value | None]) -> Rebuilt:
        """Nothing changes."""
        return inputs, dict(self.node.attributes)

    def pointwise(self, rebuild: Rebuild | None = None) -> Permutable | None:
        """Operands are data of the same rank, or constants, which are permuted in the file."""
        if "broadcast" in self.node.attributes or self.graph.opset() < 7:
            return None
        constants = [i for i, v in enumerate(self.node.inputs) if self.graph.tensor(v) is not None]
        data = tuple(i for i in range(len(self.node.inputs)) if i not in constants)
        if any(v is None or self.facts.rank(v) != self.rank for v in (self.node.inputs[i] for i in data)):
            return None
        if any(len(self._tensor(i).shape) > self.rank for i in constants):
            return None

        def permuted(perm: Perm, result: Perm, inputs: list[Value | None]) -> Rebuilt:
            for slot in constants:
                if self._tensor(slot).size != 1:
                    inputs[slot] = self.graph.add_constant(_permuted(self._tensor(slot), perm))
            return (rebuild or self.same)(perm, result, inputs)

        return Permutable(data, permuted) if data else None

    def _tensor(self, slot: int) -> Tensor:
        tensor = self.graph.tensor(self.node.inputs[slot])
        assert tensor is not None
        return tensor

    def axis(self, name: str, default: int) -> Rebuild:
        """Only an axis changes."""

        def moved(perm: Perm, result: Perm, inputs: list[Value | None]) -> Rebuilt:
            axis = perm.index(self.node.attr(name, default) % self.rank)
            return inputs, {**self.node.attributes, name: axis}

        return moved

    def by_axis(self, default: int) -> Permutable | None:
        """Softmax and its like flatten before opset 13; ArgMax may drop its axis."""
        if self.node.op_type in FLATTENING and self.graph.opset() < 13:
            return None
        if not self.node.attr("keepdims", 1):
            return None
        return Permutable((0,), self.axis("axis", default))

    def reduction(self) -> Permutable | None:
        """The axes move; where they are dropped, what is left must keep its order."""
        axes = self._ints("axes", 1)
        if not axes:
            return None
        gone = sorted({axis % self.rank for axis in axes})

        def moved(perm: Perm, result: Perm, inputs: list[Value | None]) -> Rebuilt:
            return self._with_ints("axes", 1, [perm.index(a) for a in gone], inputs)

        if self.node.attr("keepdims", 1):
            return Permutable((0,), moved)
        left = [axis for axis in range(self.rank) if axis not in gone]
        kept = [((axis,), (place,)) for place, axis in enumerate(left)]
        return Permutable((0,), moved, (*kept, *(((axis,), ()) for axis in gone)))

    def view(self) -> Permutable | None:
        """The new shape is permuted; what is left open in it must be proven all the same."""
        source, shape = self.m.shape(self.node.input(0)), self.m.shape(self.node.value())
        parts = None if source is None or shape is None else parts_of_view(source, shape)
        if source is None or shape is None or parts is None:
            return None

        def target(perm: Perm, result: Perm) -> list[int]:
            return reshape_target(
                self.m, [source[axis] for axis in perm], [shape[axis] for axis in result], None
            )

        def reshaped(perm: Perm, result: Perm, inputs: list[Value | None]) -> Rebuilt:
            return [inputs[0], self.graph.add_constant(np.array(target(perm, result), np.int64))], {}

        def admits(perm: Perm, result: Perm) -> bool:
            try:
                return bool(target(perm, result) or not result)
            except Refusal:
                return False

        return Permutable((0,), reshaped, parts, admits, "Reshape")

    def rows(self) -> Permutable | None:
        """What treats the rows along the last axis one by one, with constants only beside them."""
        second = self.graph.tensor(self.node.input(1))
        if len(self.node.outputs) > 1 or self.rank < 3:
            return None
        if self.node.op_type == "MatMul":
            fits = second is not None and len(second.shape) == 2
        else:
            fits = self.node.attr("axis", -1) % self.rank == self.rank - 1
            fits &= all(v is None or self.facts.rank(v) == 1 for v in self.node.inputs[1:])
        last = self.rank - 1
        return Permutable((0,), self.same, admits=lambda perm, _: perm[-1] == last) if fits else None

    def resize(self) -> Permutable | None:
        """The scales, or sizes, move; a region or some axes only do not."""
        node = self.node
        if "axes" in node.attributes or self.graph.opset() < 11:
            return None
        if node.attr("coordinate_transformation_mode") == "tf_crop_and_resize":
            return None
        if node.attr("mode", "nearest") != "nearest":
            return None  # runtimes interpolate in some orders of the axes only
        slots = [i for i in (2, 3) if node.input(i) is not None and self._length(node.input(i)) != 0]
        if len(slots) != 1 or self._length(node.input(slots[0])) != self.rank:
            return None
        (slot,) = slots

        def moved(perm: Perm, result: Perm, inputs: list[Value | None]) -> Rebuilt:
            inputs[slot] = self.graph.add_constant(self._tensor(slot).array[list(perm)])
            return inputs, dict(node.attributes)

        return Permutable((0,), moved)

    def _length(self, value: Value | None) -> int | None:
        """The number of elements of a constant; ``None`` for what is none."""
        tensor = self.graph.tensor(value)
        return None if tensor is None else tensor.size

    def gather(self) -> Permutable | None:
        """The axis moves; the indices must be a vector, so that the rank stays."""
        index = self.graph.tensor(self.node.input(1))
        if index is None or len(index.shape) != 1:
            return None
        return Permutable((0,), self.axis("axis", 0))

    def quantization(self) -> Permutable | None:
        """One scale for all, or one for each place of an axis."""
        shape = None if self.node.inputs[1] is None else self.facts.shape(self.node.inputs[1])
        if shape is None or len(shape) > 1:
            return None
        one = all(dim == 1 for dim in shape)
        return Permutable((0,), self.same if one else self.axis("axis", 1))

    def pad(self) -> Permutable | None:
        """The padding of each axis moves with it."""
        pads = self._ints("pads", 1)
        if pads is None or len(pads) != 2 * self.rank or self.node.input(3) is not None:
            return None

        def moved(perm: Perm, result: Perm, inputs: list[Value | None]) -> Rebuilt:
            new = [pads[axis + end] for end in (0, self.rank) for axis in perm]
            return self._with_ints("pads", 1, new, inputs)

        return Permutable((0,), moved)

    def slice(self) -> Permutable | None:
        """The axes, or those meant where none are given, move."""
        axes = self._ints("axes", 3)
        if axes is None:
            starts = self._ints("starts", 1)
            if starts is None or self.node.input(3) is not None:
                return None
            axes = list(range(len(starts)))

        def moved(perm: Perm, result: Perm, inputs: list[Value | None]) -> Rebuilt:
            return self._with_ints("axes", 3, [perm.index(a % self.rank) for a in axes], inputs)

        return Permutable((0,), moved)

    def _ints(self, name: str, slot: int) -> list[int] | None:
        """Numbers given by an attribute or a constant operand."""
        if name in self.node.attributes:
            given: Sequence[int] = self.node.attr(name)
            return list(given)
        array = self.graph.const(self.node.input(slot))
        return None if array is None else [int(i) for i in array.reshape(-1)]

    def _with_ints(
        self, name: str, slot: int, numbers: list[int], inputs: list[Value | None]
    ) -> tuple[list[Value | None], dict[str, Any]]:
        """Other numbers, given in the way they were (or may be: Slice has had operands since opset 10)."""
        as_attribute = name in self.node.attributes or (self.node.op_type == "Slice" and len(inputs) == 1)
        if as_attribute:
            return inputs, {**self.node.attributes, name: numbers}
        while len(inputs) <= slot:
            inputs.append(None)
        bounds = self.facts.of(inputs[1]).dtype if self.node.op_type == "Slice" and inputs[1] else None
        dtype = np.int64 if bounds is None else bounds.numpy  # a Slice is told all in one type
        inputs[slot] = self.graph.add_constant(np.array(numbers, dtype))
        return inputs, dict(self.node.attributes)


def _permuted(tensor: Tensor, perm: Perm) -> np.ndarray:
    """A constant that broadcasts to permuted data as it did to the data before."""
    array = tensor.array
    full = array.reshape((1,) * (len(perm) - array.ndim) + array.shape)
    return np.ascontiguousarray(full.transpose(perm))
