"""What a rule sees of the place where its pattern matched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from optimizer.analysis import Dim, Facts
from optimizer.analysis.proofs import prove
from optimizer.ir import DType, Graph, Node, Tensor, Value
from optimizer.rewrite.rule import Refusal

if TYPE_CHECKING:
    from optimizer.rewrite.context import Context


class Match:
    """One way a pattern matched. What the pattern bound are attributes: ``m.x``, ``m.conv``.

    Variables are bound to a ``Value`` (``None`` for an optional input that is not given),
    ``name=`` of an operator to its ``Node``, ``rest`` to a tuple of values.
    """

    def __init__(self, ctx: Context, graph: Graph, bindings: dict[str, Any], nodes: tuple[Node, ...]) -> None:
        vars(self).update(bindings)
        self.ctx = ctx
        self._graph = graph
        self.nodes = nodes
        self.used_facts: list[tuple[Value, str]] = []
        self.looked_around = False

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the pattern binds no '{name}'")

    @property
    def graph(self) -> Graph:
        """The scope it is in; a rule that asks for it may know more than its pattern says."""
        self.looked_around = True
        return self._graph

    @property
    def root(self) -> Node:
        """The node the pattern is rooted at."""
        return self.nodes[0]

    @property
    def facts(self) -> Facts:
        """What is known about the values of this scope."""
        return self.ctx.facts(self._graph)

    def require(self, condition: object, reason: str) -> None:
        """States a precondition.

        Raises:
            Refusal: ``condition`` is false, ``None`` (unknown) or empty.
        """
        if not condition:
            raise Refusal(reason)

    def refuse(self, reason: str) -> NoReturn:
        """Gives up on this match."""
        raise Refusal(reason)

    # ---------------------------------------------------------------- facts

    def shape(self, value: Value | None) -> tuple[Dim, ...] | None:
        """Symbolic shape, ``None`` where not even the rank is known."""
        return None if value is None else self.facts.shape(value)

    def rank(self, value: Value | None) -> int | None:
        """Number of axes, where known."""
        shape = self.shape(value)
        return None if shape is None else len(shape)

    def static_shape(self, value: Value | None) -> tuple[int, ...] | None:
        """The shape as integers, ``None`` unless every dim is known."""
        shape = self.shape(value)
        sizes = None if shape is None else [dim.value for dim in shape]
        return None if sizes is None or None in sizes else tuple(size for size in sizes if size is not None)

    def dtype(self, value: Value | None) -> DType | None:
        """Element type, where known."""
        return None if value is None else self.facts.dtype(value)

    def same_shape(self, a: Value, b: Value) -> bool:
        """Whether both shapes are proven equal."""
        left, right = self.shape(a), self.shape(b)
        return left is not None and right is not None and left == right

    def fact(self, value: Value, kind: str) -> bool:
        """Whether a property of an upstream value is proven; records that the rule relies on it."""
        proven = prove(self._graph, value, kind)
        if proven:
            self.used_facts.append((value, kind))
        return proven

    # ---------------------------------------------------------------- constants and operators

    def tensor(self, value: Value | None) -> Tensor | None:
        """The constant behind a value, not loaded."""
        return self._graph.tensor(value)

    def array(self, value: Value | None) -> np.ndarray | None:
        """The elements of a constant, in its own dtype; ``None`` where it is not a constant."""
        return self._graph.const(value)

    def f64(self, value: Value | None) -> np.ndarray:
        """The elements of a constant as float64, for arithmetic that is rounded once at the end.

        Raises:
            Refusal: it is not a constant of real numbers.
        """
        array = self._graph.const(value)
        if array is None or array.dtype.kind in "OSUc":
            self.refuse("an operand is not a numeric constant")
        return array.astype(np.float64)

    def producer(self, value: Value | None) -> Node | None:
        """The operator that makes a value; ``None`` for inputs and constants."""
        if value is None:
            return None
        self.looked_around = True
        node = self._graph.node(value.node)
        return node if node.is_operator else None

    def opset(self, domain: str = "") -> int:
        """Imported version of an operator set in this scope."""
        return self._graph.opset(domain)

    def single_use(self, value: Value) -> bool:
        """Whether exactly one operand reads ``value`` (a graph output is a reader)."""
        return self._graph.only_use(value) is not None
