"""Matching a pattern at a node: rooted, backwards over the inputs, with backtracking."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from optimizer.ir import Graph, Node, Value
from optimizer.rewrite.pattern import Absent, AnyOf, Maybe, Op, Rest, Scalar, Term, Var, bound_names

Binding: TypeAlias = Value | Node | tuple[Value | None, ...] | None
_UNBOUND = object()


class Matcher:
    """Finds all ways one pattern matches at one root node. Cost is O(pattern) per root.

    Args:
        is_kept: nodes that no pattern may contain.
    """

    def __init__(
        self, graph: Graph, constants: frozenset[str], is_kept: Callable[[Node], bool] | None = None
    ) -> None:
        self._graph = graph
        self._constants = constants
        self._is_kept = is_kept
        self._bindings: dict[str, Any] = {}
        self._nodes: list[Node] = []

    def matches(self, term: Term, root: Node) -> Iterator[tuple[dict[str, Binding], tuple[Node, ...]]]:
        """Yields (bindings, matched operator nodes, root first) for each way to match."""
        self._bindings, self._nodes = {}, []
        for option in term.terms if isinstance(term, AnyOf) else (term,):
            assert isinstance(option, Op)
            for _ in self._op(option, root):
                yield dict(self._bindings), tuple(dict.fromkeys(self._nodes))

    def _term(self, term: Term, value: Value | None) -> Iterator[None]:
        if isinstance(term, Var):
            if value is not None and (
                not self._needs_constant(term) or self._graph.tensor(value) is not None
            ):
                yield from self._bind(term.name, value)
        elif isinstance(term, Op):
            if value is not None and value.output == term.output:
                node = self._graph.node(value.node)
                if not term.single_use or self._graph.only_use(value) is not None:
                    yield from self._op(term, node)
        elif isinstance(term, AnyOf):
            for option in term.terms:
                yield from self._term(option, value)
        elif isinstance(term, Scalar):
            if self._equals(term, value):
                yield from self._bind(term.name, value)
        elif isinstance(term, Maybe):
            yield from self._term(term.term, value) if value is not None else self._absent(term)
        elif isinstance(term, Absent) and value is None:
            yield

    def _op(self, term: Op, node: Node) -> Iterator[None]:
        if node.op_type not in term.ops or node.domain != term.domain or not node.is_operator:
            return
        if any(_plain(node.attr(key)) != _plain(want) for key, want in term.attributes.items()):
            return
        if self._is_kept is not None and self._is_kept(node):
            return
        self._nodes.append(node)
        for operands in self._orders(term, node):
            for _ in self._bind(term.name, node):
                yield from self._inputs(term.inputs, operands)
        self._nodes.pop()

    def _orders(self, term: Op, node: Node) -> Iterator[Sequence[Value | None]]:
        yield node.inputs
        if term.commutative and len(node.inputs) >= 2 and node.inputs[0] != node.inputs[1]:
            yield (node.inputs[1], node.inputs[0], *node.inputs[2:])

    def _inputs(self, terms: Sequence[Term], operands: Sequence[Value | None]) -> Iterator[None]:
        if not terms:
            if all(value is None for value in operands):
                yield
            return
        first = terms[0]
        if isinstance(first, Rest):
            if len(operands) >= first.least:
                yield from self._bind(first.name, tuple(operands))
            return
        for _ in self._term(first, operands[0] if operands else None):
            yield from self._inputs(terms[1:], operands[1:])

    def _bind(self, name: str, found: Binding) -> Iterator[None]:
        if not name:
            yield
            return
        bound = self._bindings.get(name, _UNBOUND)
        if bound is _UNBOUND:
            self._bindings[name] = found
            yield
            del self._bindings[name]
        elif bound is found or (isinstance(found, tuple) and bound == found):
            yield

    def _absent(self, term: Maybe) -> Iterator[None]:
        fresh = [name for name in bound_names(term.term) if name not in self._bindings]
        self._bindings.update(dict.fromkeys(fresh))
        yield
        for name in fresh:
            del self._bindings[name]

    def _needs_constant(self, term: Var) -> bool:
        return term.constant or term.name in self._constants

    def _equals(self, term: Scalar, value: Value | None) -> bool:
        tensor = self._graph.tensor(value)
        if tensor is None or tensor.size != 1 or tensor.array.dtype.kind in "OSc":
            return False
        got = float(tensor.array.reshape(()).astype(np.float64))
        return got == term.value or abs(got - term.value) <= term.rel * abs(term.value)


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, (list, tuple)) else value
