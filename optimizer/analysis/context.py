"""``InferContext``: what an inference rule may ask about the node at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from optimizer.analysis.dims import Dim
from optimizer.analysis.elements import MAX_ELEMENTS, Elements
from optimizer.analysis.fact import Fact, Shape
from optimizer.ir import DType, Node

if TYPE_CHECKING:
    from optimizer.analysis.facts import Facts


class Inconsistent(Exception):
    """The node cannot run: its inputs contradict what its operator asks for.

    Attributes:
        certain: every runtime refuses it, whatever the sizes that are not known.
    """

    def __init__(self, text: str, *, certain: bool = True) -> None:
        super().__init__(text)
        self.certain = certain


class InferContext:
    """One node, the facts about its inputs, and its attributes.

    Attributes:
        node: the node.
        facts: the facts of the scope it stands in.
        inputs: a fact for each input, ``None`` for an omitted one.
    """

    __slots__ = ("facts", "inputs", "node")

    def __init__(self, node: Node, facts: Facts, inputs: list[Fact | None]) -> None:
        self.node = node
        self.facts = facts
        self.inputs = inputs

    @property
    def opset(self) -> int:
        """Version of the node's operator set; a large number where none is imported."""
        return self.facts.graph.opset(self.node.domain) or 1_000_000

    def attr(self, name: str, default: Any = None) -> Any:
        """The plain value of an attribute, or ``default`` where it is absent."""
        attribute = self.node.attributes.get(name)
        if attribute is not None and attribute.reference:
            attribute = self.facts.attributes.get(attribute.reference)
        return default if attribute is None else attribute.value

    def fact(self, index: int) -> Fact | None:
        """The fact about input ``index``, ``None`` where it is omitted."""
        return self.inputs[index] if index < len(self.inputs) else None

    def has(self, index: int) -> bool:
        """Whether input ``index`` is given."""
        return index < len(self.inputs) and self.inputs[index] is not None

    def dtype(self, index: int) -> DType | None:
        """Element type of an input."""
        fact = self.fact(index)
        return None if fact is None else fact.dtype

    def shape(self, index: int) -> Shape | None:
        """Dimensions of an input."""
        fact = self.fact(index)
        return None if fact is None else fact.shape

    def rank(self, index: int) -> int | None:
        """Rank of an input."""
        shape = self.shape(index)
        return None if shape is None else len(shape)

    def value(self, index: int) -> Elements | None:
        """Known contents of an input."""
        fact = self.fact(index)
        return None if fact is None else fact.value

    def dims(self, index: int) -> list[Dim | None] | None:
        """The elements of an integer input: its contents where known, else unknowns of known number."""
        fact = self.fact(index)
        if fact is None:
            return None
        if fact.value is not None:
            return fact.value.dims()
        length = fact.shape[0].value if fact.shape is not None and len(fact.shape) == 1 else None
        return [None] * length if length is not None and length <= MAX_ELEMENTS else None

    def ints(self, index: int) -> list[int] | None:
        """The elements of an integer input as numbers, ``None`` unless all are known."""
        value = self.value(index)
        return None if value is None else value.ints()

    def ints_of(self, name: str, index: int) -> list[int] | None:
        """Numbers given by attribute ``name``, or by input ``index`` in newer versions."""
        given = self.attr(name)
        return self.ints(index) if given is None else list(given)

    def array(self, index: int) -> np.ndarray | None:
        """The elements of a constant input of at most 256 elements."""
        value = self.node.input(index)
        tensor = self.facts.graph.tensor(value)
        return tensor.array if tensor is not None and tensor.size <= MAX_ELEMENTS else None

    def axis(self, default: int, rank: int, name: str = "axis") -> int:
        """The attribute ``axis``, made non-negative.

        Raises:
            Inconsistent: it is outside the rank.
        """
        return normal_axis(self.attr(name, default), rank)

    def demand(self, p: Dim, q: Dim) -> None:
        """States that the node fails at run time, empty tensors included, unless ``p`` equals ``q``."""
        self.facts.note_equal(p, q)

    def demand_at_least(self, dim: Dim, least: int) -> None:
        """States that the node fails at run time unless ``dim >= least``."""
        self.facts.note_at_least(dim, least)

    def body(self, position: int) -> Facts:
        """The facts of its body ``position``."""
        return self.facts.body(self.node, position)


def normal_axis(axis: int, rank: int) -> int:
    """``axis`` counted from the front.

    Raises:
        Inconsistent: it is outside the rank.
    """
    if not -rank <= axis < rank:
        raise Inconsistent(f"axis {axis} of a tensor of rank {rank}")
    return axis % rank


def fresh_shape(rank: int, hint: str = "") -> Shape:
    """``rank`` unknown dimensions."""
    return tuple(Dim.fresh(hint) for _ in range(rank))
