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

    def matches(
        self, pattern: Op | AnyOf | Sequence[Op], root: Node
    ) -> Iterator[tuple[dict[str, Binding], tuple[Node, ...]]]:
        """Yields (bindings, matched operator nodes, root first) for each way to match."""
        self._bindings, self._nodes = {}, []
        options = pattern.terms if isinstance(pattern, AnyOf) else pattern
        for option in (options,) if isinstance(options, Op) else options:
            assert isinstance(option, Op)
            for _ in self._op(option, root):
                yield dict(self._bindings), tuple(dict.fromkeys(self._nodes))

    def _term(self, term: Term, value: Value | None) -> Iterator[None]:
        """Matches one term; bindings made for it are gone again when the iteration goes on."""
        if isinstance(term, Op):
            if value is not None and value.output == term.output:
                node = self._graph.node(value.node)
                if node.op_type in term.ops and (not term.single_use or self._graph.only_use(value)):
                    yield from self._op(term, node)
        elif isinstance(term, AnyOf):
            made_by = None if value is None else self._graph.node(value.node).op_type
            for option in term.terms:
                if not isinstance(option, Op) or made_by in option.ops:
                    yield from self._term(option, value)
        elif isinstance(term, Maybe) and value is not None:
            yield from self._term(term.term, value)
        else:
            trail: list[str] = []
            if self._leaf(term, value, trail):
                yield
            self._unbind(trail)

    def _op(self, term: Op, node: Node) -> Iterator[None]:
        if node.op_type not in term.ops or node.domain != term.domain or not node.is_operator:
            return
        if term.attributes and any(_plain(node.attr(k)) != _plain(v) for k, v in term.attributes.items()):
            return
        if self._is_kept is not None and self._is_kept(node):
            return
        if node.attributes and any(attribute.reference for attribute in node.attributes.values()):
            return  # inside a function; its value differs from call to call
        self._nodes.append(node)
        trail: list[str] = []
        if self._bind(term.name, node, trail):
            for operands in self._orders(term, node):
                yield from self._inputs(term.inputs, operands)
        self._unbind(trail)
        self._nodes.pop()

    def _orders(self, term: Op, node: Node) -> Iterator[Sequence[Value | None]]:
        yield node.inputs
        if term.commutative and len(node.inputs) >= 2 and node.inputs[0] != node.inputs[1]:
            yield (node.inputs[1], node.inputs[0], *node.inputs[2:])

    def _inputs(self, terms: Sequence[Term], operands: Sequence[Value | None]) -> Iterator[None]:
        trail: list[str] = []
        for position, term in enumerate(terms):
            value = operands[position] if position < len(operands) else None
            if isinstance(term, Rest):
                rest = tuple(operands[position:])
                if len(rest) >= term.least and self._bind(term.name, rest, trail):
                    yield
                break
            if isinstance(term, (Op, AnyOf)) or (isinstance(term, Maybe) and value is not None):
                for _ in self._term(term, value):
                    yield from self._inputs(terms[position + 1 :], operands[position + 1 :])
                break
            if not self._leaf(term, value, trail):
                break
        else:
            if all(value is None for value in operands[len(terms) :]):
                yield
        self._unbind(trail)

    def _leaf(self, term: Term, value: Value | None, trail: list[str]) -> bool:
        """Matches a term with nothing below it that could match in several ways."""
        if isinstance(term, Var):
            if value is None or (self._needs_constant(term) and self._graph.tensor(value) is None):
                return False
            return self._bind(term.name, value, trail)
        if isinstance(term, Scalar):
            return self._equals(term, value) and self._bind(term.name, value, trail)
        if isinstance(term, Maybe):
            missing = [name for name in bound_names(term.term) if name not in self._bindings]
            self._bindings.update(dict.fromkeys(missing))
            trail.extend(missing)
            return True
        return isinstance(term, Absent) and value is None

    def _bind(self, name: str, found: Binding, trail: list[str]) -> bool:
        """Binds a name, or compares with what it is bound to."""
        if not name:
            return True
        bound = self._bindings.get(name, _UNBOUND)
        if bound is not _UNBOUND:
            return bound is found or (isinstance(found, tuple) and bound == found)
        self._bindings[name] = found
        trail.append(name)
        return True

    def _unbind(self, trail: list[str]) -> None:
        for name in trail:
            del self._bindings[name]

    def _needs_constant(self, term: Var) -> bool:
        return term.constant or term.name in self._constants

    def _equals(self, term: Scalar, value: Value | None) -> bool:
        tensor = self._graph.tensor(value)
        if tensor is None or tensor.size != 1 or tensor.array.dtype.kind in "OSc":
            return False
        got = float(tensor.array.reshape(()).astype(np.float64))
        if got == term.value or abs(got - term.value) <= term.rel * abs(term.value):
            return True
        # The number as its element type holds it, where something like it will do.
        return bool(term.rel) and tensor.dtype.is_float and got == float(tensor.dtype.numpy.type(term.value))


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, (list, tuple)) else value
