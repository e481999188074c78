"""Where the contents of a boundary value come from, if they are not free to be anything."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from optimizer.analysis import Dim, Facts, Ratio
from optimizer.analysis.elements import Element
from optimizer.ir import IR_DOMAIN, Node, Value
from optimizer.verify.random_ops import Functions, is_random
from optimizer.verify.region import Views

MANY = 3000
"""Vertices that are taken in at most: most of them make a few numbers."""
FEW = 16
"""Elements of a tensor that rather holds sizes, scales or limits than data."""


def origins(
    views: Views, values: Sequence[Value], facts: Facts, functions: Functions, numbers: bool
) -> frozenset[int]:
    """The vertices above ``values`` that make something which is not free. O(vertices above).

    That is what is computed from constants alone, or from what is known to be constant; with ``numbers``
    also a few numbers, which mostly follow from the sizes of other tensors, unless they are known to be
    sizes of inputs, which may be anything. More than 3000 vertices are not looked for.
    """
    search = _Search(views, facts, functions)
    found: set[int] = set()
    stack = [value.node for value in values]
    while stack and len(found) <= MANY:
        key = stack.pop()
        node = views.after(key)
        if key in found or node is None or not node.is_operator or search.is_free(node):
            continue
        if search.is_constant(key) or (numbers and search.makes_numbers(node)):
            found.add(key)
            stack.extend(value.node for value in node.operands if value is not None)
    return frozenset(found)


class _Search:
    def __init__(self, views: Views, facts: Facts, functions: Functions) -> None:
        self._views, self._facts, self._functions = views, facts, functions
        self._constant: dict[int, bool] = {}

    def makes_numbers(self, node: Node) -> bool:
        """Whether all its outputs have few elements."""
        shapes = [self._facts.of(node.value(i)).static_shape for i in range(len(node.outputs))]
        return all(shape is not None and math.prod(shape) <= FEW for shape in shapes)

    def is_free(self, node: Node) -> bool:
        """Whether the facts say what it makes, in numbers or sizes of inputs: what is drawn can occur."""
        return self._is_told(node, _is_known)

    def _is_number(self, node: Node) -> bool:
        return self._is_told(node, _is_const)

    def _is_told(self, node: Node, test: Callable[[Dim], bool]) -> bool:
        known = [self._facts.of(node.value(i)).value for i in range(len(node.outputs))]
        return all(e is not None and all(_passes(item, test) for item in e.items) for e in known)

    def is_constant(self, key: int) -> bool:
        """Whether a vertex is computed from constants alone."""
        stack, known = [key], self._constant
        while stack:
            node = self._views.after(stack[-1])
            if node is None or not node.is_operator:
                known[stack.pop()] = node is not None and (node.domain, node.op_type) == _CONSTANT
                continue
            above = [value.node for value in node.operands if value is not None]
            waiting = [source for source in above if source not in known]
            if self._is_number(node):
                known[stack.pop()] = True
            elif is_random(self._views.graph, node, self._functions):
                known[stack.pop()] = False
            elif waiting and all(known.get(source, True) for source in above):
                stack.append(waiting[0])
            else:
                known[stack.pop()] = all(known[source] for source in above if source in known)
        return known[key]


def _is_known(dim: Dim) -> bool:
    return dim.is_known


def _is_const(dim: Dim) -> bool:
    return dim.is_const


def _passes(item: Element, test: Callable[[Dim], bool]) -> bool:
    """Whether an element is a number, or made of a dim that passes."""
    dim = item.numerator if isinstance(item, Ratio) else item
    return test(dim) if isinstance(dim, Dim) else dim is not None


_CONSTANT = (IR_DOMAIN, "Constant")
