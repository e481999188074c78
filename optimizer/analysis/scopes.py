"""Facts across the border of a body: its inputs from the outside, its outputs to the outside.

A dimension of a carried value may change from one iteration to the next. What holds in every
iteration is found by assuming what holds in the first and weakening it until the body keeps it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from optimizer.analysis.dims import Dim
from optimizer.analysis.elements import Elements
from optimizer.analysis.fact import UNKNOWN, VARYING, Fact, Shape
from optimizer.ir import DType, Graph, Node, TensorType

if TYPE_CHECKING:
    from optimizer.analysis.facts import Facts

MAX_ROUNDS = 4


def body_inputs(facts: Facts, node: Node, position: int) -> list[Fact]:
    """What holds for the formal inputs of a body whenever it runs."""
    body = node.bodies[position][1]
    given = [UNKNOWN if v is None else facts.of(v) for v in node.inputs]
    if node.domain == "" and node.op_type == "Loop":
        flag = _scalar_like(body, 1)
        # the body runs only while the condition is true
        head = [
            Fact(DType.INT64, _scalar_like(body, 0)),
            Fact(DType.BOOL, flag, Elements.of([True], [1] * len(flag))),
        ]
        return head + invariant(facts, node, head, given[2:], range(1, len(given) - 1))
    if node.domain == "" and node.op_type == "Scan" and facts.graph.opset() != 8:
        return _scan_inputs(facts, node, given)
    if node.domain == "" and node.op_type == "SequenceMap":
        return [element_of(fact) if fact.type is not None else fact for fact in given]
    return []


def _scan_inputs(facts: Facts, node: Node, given: list[Fact]) -> list[Fact]:
    scanned = node.attr("num_scan_inputs", 0)
    states = len(given) - scanned
    axes = node.attr("scan_input_axes") or (0,) * scanned
    slices = [slice_of(fact, axis) for fact, axis in zip(given[states:], axes, strict=False)]
    # a state keeps its shape, or the runtime refuses it
    return [Fact(fact.dtype, fact.shape, type=fact.type) for fact in given[:states]] + slices


def invariant(
    facts: Facts,
    node: Node,
    head: Sequence[Fact],
    initial: Sequence[Fact],
    results: Sequence[int],
    tail: Sequence[Fact] = (),
) -> list[Fact]:
    """What holds for the carried values before every iteration.

    Args:
        head: the body's inputs before the carried ones.
        initial: the carried values before the first iteration.
        results: positions of their next values among the body's outputs.
        tail: the body's inputs after the carried ones.
    """
    carried = list(initial)
    free: set[Dim] = set()
    for round_ in range(MAX_ROUNDS + 1):
        body = facts.trial(node, 0, [*head, *carried, *tail])
        outputs = body.graph.outputs
        after = [body.of(outputs[i]) if i < len(outputs) else UNKNOWN for i in results]
        weaker = [
            weaken(a, b, free, everything=round_ >= MAX_ROUNDS - 1)
            for a, b in zip(carried, after, strict=True)
        ]
        if all(a is b for a, b in zip(carried, weaker, strict=True)):
            return carried
        carried = weaker
    return [Fact(dtype=fact.dtype, type=fact.type) for fact in initial]


def weaken(assumed: Fact, found: Fact, free: set[Dim], *, everything: bool = False) -> Fact:
    """What of ``assumed`` holds for ``found`` too; ``assumed`` itself if it holds entirely.

    Args:
        free: the unknowns made here, which may be anything each time; grows.
        everything: makes every dimension such an unknown, to come to an end.
    """
    if assumed.type is not None:
        return assumed if assumed.elem == found.elem else join(assumed, found)
    value = assumed.value if assumed.value is None or assumed.value == found.value else None
    shape = assumed.shape
    if shape is not None and (found.shape is None or len(found.shape) != len(shape)):
        shape = None
    elif shape is not None and found.shape is not None:
        kept = [p in free or (p is q and not everything) for p, q in zip(shape, found.shape, strict=True)]
        if not all(kept):
            shape = tuple(p if keep else Dim.fresh("carried") for p, keep in zip(shape, kept, strict=True))
            free.update(p for p, keep in zip(shape, kept, strict=True) if not keep)
    if shape is assumed.shape and value is assumed.value:
        return assumed
    return Fact(assumed.dtype, shape, value)


def slice_of(fact: Fact, axis: int) -> Fact:
    """One slice along ``axis``, without that axis."""
    if fact.shape is None or not -len(fact.shape) <= axis < len(fact.shape):
        return Fact(fact.dtype)
    axis %= len(fact.shape)
    return Fact(fact.dtype, fact.shape[:axis] + fact.shape[axis + 1 :])


def element_of(fact: Fact) -> Fact:
    """Some element of a sequence, or the element of an optional."""
    if fact.elem is None:
        return UNKNOWN
    shape = fact.elem.shape
    if shape is not None and VARYING in shape:
        shape = tuple(Dim.fresh("element") if dim is VARYING else dim for dim in shape)
    return Fact(fact.elem.dtype, shape, type=fact.elem.type, elem=fact.elem.elem)


def leave(body: Facts, fact: Fact) -> Fact:
    """A fact about a body's output that holds in every iteration, as it is said outside.

    A dimension that depends on an unknown made inside may differ between iterations.
    """
    if fact.type is not None:
        return Fact(type=fact.type)
    return Fact(fact.dtype, None if fact.shape is None else tuple(_outside(body, d) for d in fact.shape))


def _outside(body: Facts, dim: Dim) -> Dim:
    local = any(atom.kind == "fresh" and atom.serial >= body.mark for atom in dim.leaves)
    return Dim.fresh("body") if local else dim


def join(a: Fact, b: Fact) -> Fact:
    """What holds whichever of two values it is."""
    if a is b:
        return a
    if a.type is not None or b.type is not None:
        return Fact(
            type=a.type or b.type,
            elem=None if a.elem is None or b.elem is None else join_elements(a.elem, b.elem),
        )
    shape: Shape | None = None
    if a.shape is not None and b.shape is not None and len(a.shape) == len(b.shape):
        shape = tuple(p if p is q else Dim.fresh("either") for p, q in zip(a.shape, b.shape, strict=True))
    value = None
    if a.value is not None and b.value is not None and a.value.shape == b.value.shape:
        pairs = zip(a.value.items, b.value.items, strict=True)
        value = Elements.of([p if type(p) is type(q) and p == q else None for p, q in pairs], a.value.shape)
    return Fact(a.dtype if a.dtype is not None else b.dtype, shape, value)


def varying(fact: Fact) -> Fact:
    """A fact about one tensor as one about every element of a sequence: unknowns need not agree."""
    if fact.shape is None or all(dim.is_known for dim in fact.shape):
        return fact.without_value()
    return Fact(fact.dtype, tuple(dim if dim.is_known else VARYING for dim in fact.shape))


def join_elements(a: Fact, b: Fact) -> Fact:
    """What holds for the elements of two sequences."""
    if a == b:
        return a
    shape: Shape | None = None
    if a.shape is not None and b.shape is not None and len(a.shape) == len(b.shape):
        shape = tuple(p if p is q else VARYING for p, q in zip(a.shape, b.shape, strict=True))
    return Fact(a.dtype if a.dtype is b.dtype else None, shape)


def _scalar_like(body: Graph, index: int) -> Shape:
    """Runtimes give the iteration number and the condition the rank that the body declares."""
    inputs = body.inputs
    declared = body.info(inputs[index]).type if index < len(inputs) else None
    has_axis = isinstance(declared, TensorType) and declared.shape is not None and len(declared.shape) == 1
    return (Dim.of(1),) if has_axis else ()
