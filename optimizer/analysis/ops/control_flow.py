"""If, Loop and Scan: what their bodies say, as far as it holds outside."""

from __future__ import annotations

from optimizer.analysis.computed import maximum
from optimizer.analysis.context import Inconsistent, InferContext, fresh_shape
from optimizer.analysis.dims import Dim
from optimizer.analysis.fact import UNKNOWN, Fact, Shape
from optimizer.analysis.registry import infer
from optimizer.analysis.scopes import join, leave, varying
from optimizer.ir import TensorType, ValueType

__all__: list[str] = []


@infer("If")
def if_(context: InferContext) -> list[Fact]:
    """Both branches joined, or the one that a known condition takes.

    Raises:
        Inconsistent: no way can be gone.
    """
    condition = context.value(0)
    known = condition.items[0] if condition is not None and condition.array.size == 1 else None
    results, failures = {}, []
    for position, (name, graph) in enumerate(context.node.bodies):
        if known is None or known is (name == "then_branch"):
            facts = context.body(position)
            results[name] = [facts.of(value) for value in graph.outputs]
            failures += [text for _, text in facts.failures[:1]] if facts.failures else []
    if len(failures) == len(results):
        raise Inconsistent("; ".join(failures))
    first, *others = results.values()
    for other in others:
        first = [join(a, b) for a, b in zip(first, other, strict=False)]
    return first


@infer("Loop")
def loop(context: InferContext) -> list[Fact]:
    """Final carried values, then one stacked tensor for each scan output."""
    (_, graph), *_ = context.node.bodies
    body = context.body(0)
    carried = len(context.inputs) - 2
    made = [leave(body, body.of(value)) for value in graph.inputs[2 : 2 + carried]]
    trips = _trips(context)
    scanned = zip(graph.outputs[1 + carried :], graph.sink.outputs[1 + carried :], strict=True)
    for value, declared in scanned:
        element = leave(body, body.of(value))
        shape = element.shape if trips.bounds[0] >= 1 else _shape_of_none(element, declared.type)
        made.append(Fact(element.dtype, None if shape is None else (trips, *shape)))
    return made


def _shape_of_none(element: Fact, declared: ValueType | None) -> Shape | None:
    """Shape of an element that may never be made: runtimes then go by the declared type alone."""
    known = element.shape
    if known is None or not isinstance(declared, TensorType) or declared.shape is None:
        return None
    if len(known) != len(declared.shape):
        return None
    pairs = zip(known, declared.shape, strict=True)
    return tuple(dim if dim.value is not None and dim.value == d else Dim.fresh("body") for dim, d in pairs)


def _trips(context: InferContext) -> Dim:
    """Iterations, where they are known: the limit, if the condition never stops the loop."""
    limit, (_, graph) = context.value(0), context.node.bodies[0]
    first = context.value(1)
    starts = not context.has(1) or (first is not None and first.items[:1] == [True])
    if limit is None or limit.array.size != 1 or not starts or not graph.outputs:
        return Dim.fresh("trips")
    count, goes_on = limit.items[0], graph.outputs[0]
    condition = context.body(0).value(goes_on)
    always = condition is not None and condition.items[:1] == [True]
    if not isinstance(count, Dim) or not always:
        return Dim.fresh("trips")
    return maximum(count, 0)


@infer("Scan", since=9)
def scan(context: InferContext) -> list[Fact | None]:
    """Final states, then one stacked tensor for each scan output."""
    (_, graph), *_ = context.node.bodies
    body = context.body(0)
    scanned = context.attr("num_scan_inputs", 0)
    states = len(context.inputs) - scanned
    made: list[Fact | None] = [leave(body, body.of(value)) for value in graph.inputs[:states]]
    axes = context.attr("scan_input_axes") or (0,) * scanned
    first = context.shape(states)
    length = first[axes[0]] if first else Dim.fresh("scan")
    stacked = graph.outputs[states:]
    places = context.attr("scan_output_axes") or (0,) * len(stacked)
    for value, axis in zip(stacked, places, strict=False):
        element = leave(body, body.of(value))
        if element.shape is None:
            made.append(Fact(element.dtype))
            continue
        axis %= len(element.shape) + 1
        made.append(Fact(element.dtype, (*element.shape[:axis], length, *element.shape[axis:])))
    return made


@infer("Scan", since=8)
def scan_with_batch(context: InferContext) -> list[Fact | None]:
    """The first form of Scan, with a batch axis in front of everything."""
    scanned = context.attr("num_scan_inputs", 0)
    first = len(context.inputs) - scanned
    states = [(fact or UNKNOWN).without_value() for fact in context.inputs[1:first]]
    (_, graph), *_ = context.node.bodies
    body = context.body(0)
    sequence = context.shape(first)
    front = sequence[:2] if sequence is not None and len(sequence) > 1 else fresh_shape(2, "scan")
    made: list[Fact | None] = list(states)
    for value in graph.outputs[len(states) :]:
        element = leave(body, body.of(value))
        made.append(Fact(element.dtype, None if element.shape is None else (*front, *element.shape)))
    return made


@infer("SequenceMap")
def sequence_map(context: InferContext) -> list[Fact | None]:
    """Sequences of what the body makes of some element."""
    (_, graph), *_ = context.node.bodies
    body = context.body(0)
    return [Fact.sequence(varying(leave(body, body.of(value)))) for value in graph.outputs]
