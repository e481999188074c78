"""Matching a pattern at a node: rooted, backwards over the inputs, with backtracking."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from optimizer.ir import Graph, Node, Value
from optimizer.rewrite.pattern import Absent, AnyOf, Filled, Maybe, Op, Rest, Scalar, Term, Var, bound_names

Binding: TypeAlias = Value | Node | tuple[Value | None, ...] | None
Found: TypeAlias = tuple[dict[str, Binding], tuple[Node, ...]]
_Then: TypeAlias = Callable[[], None]


class Matcher:
    """Finds all ways a pattern matches at one root node. Cost is O(pattern) per root and way.

    Each method that matches is told what is left to match (``then``) and calls it once for each way
    it found; on the way back it takes back what it bound.

    Args:
        is_kept: nodes that no pattern may contain.
    """

    def __init__(self, graph: Graph, is_kept: Callable[[Node], bool] | None = None) -> None:
        self._graph = graph
        self._is_kept = is_kept
        self._bindings: dict[str, Any] = {}
        self._nodes: list[Node] = []
        self._found: list[Found] = []

    def matches(self, pattern: Op | AnyOf | Sequence[Op], root: Node) -> list[Found]:
        """The (bindings, matched operator nodes, root first) of each way to match."""
        self._found = []
        options = pattern.terms if isinstance(pattern, AnyOf) else pattern
        for option in (options,) if isinstance(options, Op) else options:
            assert isinstance(option, Op)
            self._op(option, root, self._take)
        return self._found

    def _take(self) -> None:
        self._found.append((self._bindings.copy(), tuple(dict.fromkeys(self._nodes))))

    def _term(self, term: Term, value: Value | None, then: _Then) -> None:
        if isinstance(term, Op):
            if value is not None and value.output == term.output:
                node = self._graph.node(value.node)
                if node.op_type in term.ops and (not term.single_use or self._graph.only_use(value)):
                    self._op(term, node, then)
        elif isinstance(term, AnyOf):
            made_by = None if value is None else self._graph.node(value.node).op_type
            for option in term.terms:
                if not isinstance(option, Op) or made_by in option.ops:
                    self._term(option, value, then)
        elif isinstance(term, Maybe) and value is not None:
            self._term(term.term, value, then)
        else:
            mark = len(self._bindings)
            if self._leaf(term, value):
                then()
            self._forget(mark)

    def _op(self, term: Op, node: Node, then: _Then) -> None:
        if node.op_type not in term.ops or node.domain != term.domain:
            return
        if term.attributes and not _agree(term, node):
            return
        if self._is_kept is not None and self._is_kept(node):
            return
        for attribute in node.attributes.values():
            if attribute.reference:
                return  # inside a function; its value differs from call to call
        mark = len(self._bindings)
        if not term.name or self._bind(term.name, node):
            self._nodes.append(node)
            operands = node.inputs
            self._inputs(term.inputs, 0, operands, then)
            if term.commutative and len(operands) >= 2 and operands[0] != operands[1]:
                self._inputs(term.inputs, 0, (operands[1], operands[0], *operands[2:]), then)
            self._nodes.pop()
        if term.name:
            self._forget(mark)

    def _inputs(
        self, terms: Sequence[Term], start: int, operands: Sequence[Value | None], then: _Then
    ) -> None:
        """Matches the terms from ``start`` on with the operands at their places."""
        mark = len(self._bindings)
        for position in range(start, len(terms)):
            term = terms[position]
            value = operands[position] if position < len(operands) else None
            if isinstance(term, Var):  # most are
                if value is None or (term.constant and self._graph.tensor(value) is None):
                    break
                if not self._bind(term.name, value):
                    break
                continue
            if isinstance(term, Rest):
                rest = tuple(operands[position:])
                if len(rest) >= term.least and self._bind(term.name, rest):
                    then()
                break
            if isinstance(term, (Op, AnyOf)) or (isinstance(term, Maybe) and value is not None):
                self._term(term, value, partial(self._inputs, terms, position + 1, operands, then))
                break
            if not self._leaf(term, value):
                break
        else:
            if len(operands) <= len(terms) or not any(operands[len(terms) :]):
                then()
        if len(self._bindings) > mark:
            self._forget(mark)

    def _leaf(self, term: Term, value: Value | None) -> bool:
        """Matches a term with nothing below it that could match in several ways."""
        if isinstance(term, Var):
            if value is None or (term.constant and self._graph.tensor(value) is None):
                return False
            return self._bind(term.name, value)
        if isinstance(term, Scalar):
            return self._equals(term, value) and self._bind(term.name, value)
        if isinstance(term, Filled):
            return self._is_filled(term, value) and self._bind(term.name, value)
        if isinstance(term, Maybe):
            for name in bound_names(term.term):
                self._bindings.setdefault(name, None)
            return True
        return isinstance(term, Absent) and value is None

    def _bind(self, name: str, found: Binding) -> bool:
        """Binds a name, where there is one, or compares with what it is bound to."""
        if not name:
            return True
        bound = self._bindings.setdefault(name, found)
        return bound is found or (isinstance(found, tuple) and bound == found)

    def _forget(self, mark: int) -> None:
        """Takes back all but the first ``mark`` bindings."""
        while len(self._bindings) > mark:
            self._bindings.popitem()

    def _equals(self, term: Scalar, value: Value | None) -> bool:
        tensor = self._graph.tensor(value)
        if tensor is None or tensor.size != 1 or tensor.array.dtype.kind in "OSc":
            return False
        got = float(tensor.array.reshape(()).astype(np.float64))
        if got == term.value or abs(got - term.value) <= term.rel * abs(term.value):
            return True
        # The number as its element type holds it, where something like it will do.
        return bool(term.rel) and tensor.dtype.is_float and got == float(tensor.dtype.numpy.type(term.value))

    def _is_filled(self, term: Filled, value: Value | None) -> bool:
        tensor = self._graph.tensor(value)
        if tensor is None or not tensor.size or tensor.array.dtype.kind in "OS":
            return False
        array = tensor.array
        return bool(array.item(0) == term.value and (array.size == 1 or (array == term.value).all()))


def _agree(term: Op, node: Node) -> bool:
    return all(_plain(node.attr(name)) == _plain(value) for name, value in term.attributes.items())


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, (list, tuple)) else value
