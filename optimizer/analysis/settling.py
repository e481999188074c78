"""What must hold for a scope to run: sizes that operators ask for, and branches that would fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optimizer.analysis.elements import Elements
from optimizer.analysis.fact import Fact
from optimizer.ir import Graph, Node, Value

if TYPE_CHECKING:
    from optimizer.analysis.facts import Facts

MAX_ROUNDS = 3
"""How often inference is repeated with what it has found to be equal."""
MAX_SUPPOSED = 16
"""Conditions of a scope that are looked into."""


def settle(facts: Facts) -> None:
    """Infers everything in the scope, repeatedly, with what must hold for it to run."""
    graph = facts.graph
    facts.needed = _needed(graph)
    for _ in range(MAX_ROUNDS):
        before = facts.equations.version
        facts.refresh()
        if facts.equations.version == before:
            break
        facts.resolve()
    facts.demanding = False
    facts.needed = frozenset()
    decide_conditions(facts)


def decide_conditions(facts: Facts) -> None:
    """Learns the condition of each If one of whose ways makes an operator fail that always runs.

    A branch may give a tensor of a rank that nothing behind it can take: that way is never gone.
    """
    if "If" not in facts.graph.op_types:
        return
    needed = _needed(facts.graph)
    looked_at: set[Value] = set()
    for node in facts.graph.topological():
        condition = node.inputs[0] if node.op == "If" and node.id in needed else None
        if condition is None or condition in looked_at or not _is_open(facts, node, condition):
            continue
        looked_at.add(condition)
        if len(looked_at) > MAX_SUPPOSED:
            return
        fact = facts.of(condition)
        sizes = fact.static_shape or ()
        works = [
            truth
            for truth in (True, False)
            if not facts.supposing(condition, Elements.of([truth], sizes), needed)
        ]
        if len(works) == 1:
            facts.tighten(condition, Fact(fact.dtype, fact.shape, Elements.of(works, sizes)))
            facts.spread(condition)


def _needed(graph: Graph) -> frozenset[int]:
    """The vertices that an output depends on."""
    stack = [value.node for value in graph.outputs]
    found = set(stack)
    while stack:
        for value in graph.node(stack.pop()).operands:
            if value is not None and value.node not in found:
                found.add(value.node)
                stack.append(value.node)
    return frozenset(found)


def _is_open(facts: Facts, node: Node, condition: Value) -> bool:
    """Whether the condition is not known, and the shape of a result depends on it."""
    known = facts.value(condition)
    if known is not None and None not in known.items:
        return False
    if (facts.of(condition).static_shape or ()) not in ((), (1,)):
        return False
    shapes = [facts.shape(node.value(index)) for index in range(len(node.outputs))]
    return any(shape is None or not all(dim.is_known for dim in shape) for shape in shapes)
