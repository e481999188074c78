"""Ops that run bodies: If, Loop, Scan, SequenceMap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from optimizer.ir import TensorType, ValueInfo
from optimizer.runtime.call import Call
from optimizer.runtime.precision import Array
from optimizer.runtime.registry import kernel


def _truth_of(condition: Array) -> bool:
    return bool(condition.reshape(-1)[0])


@kernel("If", may_alias=True, exact=True)
def if_(call: Call, condition: Array) -> tuple[Any, ...]:
    """Runs one of two bodies."""
    branch = "then_branch" if _truth_of(condition) else "else_branch"
    return tuple(call.bodies[branch]())


# ---------------------------------------------------------------- Loop


@kernel("Loop", may_alias=True, exact=True)
def loop(
    call: Call, trip_count: Array | None = None, condition: Array | None = None, *carried: Any
) -> tuple[Any, ...]:
    """Runs the body while it says so, at most ``trip_count`` times.

    Without a trip count it is unbounded (the option ``max_loop_iterations`` guards it), without a
    condition it starts. Scan outputs get a new first axis.
    """
    body = call.bodies["body"]
    limit = call.context.options.max_loop_iterations
    trips = None if trip_count is None else int(trip_count.reshape(-1)[0])
    going = condition is None or _truth_of(condition)
    state = list(carried)
    scanned: list[list[Any]] = [[] for _ in body.output_infos[1 + len(carried) :]]
    shape = _index_shape(body.input_infos[0])
    iteration = 0
    while going and (trips is None or iteration < trips):
        if iteration >= limit:
            raise ValueError(f"still running after {limit} iterations (max_loop_iterations)")
        call.context.check_deadline()
        index = np.full(shape, iteration, np.int64)
        going_in = np.full(_index_shape(body.input_infos[1]), True)
        outputs = body(index, going_in, *state)
        going = _truth_of(outputs[0])
        state = outputs[1 : 1 + len(carried)]
        for kept, value in zip(scanned, outputs[1 + len(carried) :], strict=True):
            kept.append(value)
        iteration += 1
    declared = body.output_infos[1 + len(carried) :]
    return (*state, *(_stacked(call, kept, info) for kept, info in zip(scanned, declared, strict=True)))


def _index_shape(info: ValueInfo) -> tuple[int, ...]:
    """() or (1,): models may declare the iteration number and the condition either way."""
    declared = info.type
    one = isinstance(declared, TensorType) and declared.shape is not None and len(declared.shape) == 1
    return (1,) if one else ()


def _stacked(call: Call, values: Sequence[Array], info: ValueInfo, axis: int = 0) -> Array:
    """The values along a new axis; of no values, an empty tensor of the declared type."""
    if values:
        return np.stack(values, axis)
    declared = info.type
    if not isinstance(declared, TensorType) or declared.shape is None:
        raise ValueError(f"no iteration ran, and the body does not declare the shape of '{info.name}'")
    dims = [d if isinstance(d, int) else 0 for d in declared.shape]
    dims.insert(axis if axis >= 0 else axis + len(dims) + 1, 0)
    return np.zeros(dims, call.dtype(declared.dtype))


# ---------------------------------------------------------------- Scan


@kernel("Scan", 9, may_alias=True, exact=True)
def scan(call: Call, *inputs: Array) -> tuple[Any, ...]:
    """Runs the body over the elements of the scan inputs, each along its own axis and direction."""
    count = call.attr("num_scan_inputs")
    states, sequences = list(inputs[: len(inputs) - count]), inputs[len(inputs) - count :]
    axes = call.attr("scan_input_axes", (0,) * count)
    directions = call.attr("scan_input_directions", (0,) * count)
    moved = [
        np.flip(np.moveaxis(x, a, 0), 0) if d else np.moveaxis(x, a, 0)
        for x, a, d in zip(sequences, axes, directions, strict=True)
    ]
    states, scanned = _scan_once(call, states, moved, len(moved[0]))
    infos = call.bodies["body"].output_infos[len(states) :]
    out_axes = call.attr("scan_output_axes", (0,) * len(infos))
    out_directions = call.attr("scan_output_directions", (0,) * len(infos))
    results = [
        _stacked(call, values[::-1] if d else values, info, a)
        for values, info, a, d in zip(scanned, infos, out_axes, out_directions, strict=True)
    ]
    return (*states, *results)


def _scan_once(
    call: Call, states: list[Any], sequences: Sequence[Array], steps: int
) -> tuple[list[Any], list[list[Array]]]:
    """Final states and the list of values of each scan output."""
    body = call.bodies["body"]
    if any(len(x) < steps for x in sequences):
        raise ValueError(f"scan inputs of lengths {[len(x) for x in sequences]}")
    scanned: list[list[Array]] = [[] for _ in body.output_infos[len(states) :]]
    for step in range(steps):
        call.context.check_deadline()
        outputs = body(*states, *(x[step, ...] for x in sequences))
        states, values = outputs[: len(states)], outputs[len(states) :]
        for kept, value in zip(scanned, values, strict=True):
            kept.append(value)
    return states, scanned


@kernel("Scan", 8, exact=True)
def scan_batched(call: Call, lengths: Array | None, *inputs: Array) -> tuple[Any, ...]:
    """Version 8: every input has a batch axis first, and each batch its own length.

    Scan outputs are zero beyond a batch's length.
    """
    count = call.attr("num_scan_inputs")
    states, sequences = inputs[: len(inputs) - count], inputs[len(inputs) - count :]
    directions = call.attr("directions", (0,) * count)
    longest = sequences[0].shape[1]
    finals: list[list[Any]] = []
    scans: list[list[Array]] = []
    infos = call.bodies["body"].output_infos[len(states) :]
    for batch in range(sequences[0].shape[0]):
        steps = longest if lengths is None else int(lengths[batch])
        taken = [x[batch, :steps] for x in sequences]
        turned = [np.flip(x, 0) if d else x for x, d in zip(taken, directions, strict=True)]
        final, scanned = _scan_once(call, [s[batch, ...] for s in states], turned, steps)
        stacked = [_stacked(call, v, info) for v, info in zip(scanned, infos, strict=True)]
        finals.append(final)
        scans.append([_filled(x, longest) for x in stacked])
    return tuple(np.stack(parts) for parts in (*zip(*finals, strict=True), *zip(*scans, strict=True)))


def _filled(x: Array, size: int) -> Array:
    out = np.zeros((size, *x.shape[1:]), x.dtype)
    out[: len(x)] = x
    return out


@kernel("SequenceMap", 17, may_alias=True, exact=True)
def sequence_map(call: Call, sequence: list[Any], *others: Any) -> tuple[list[Any], ...]:
    """Runs the body on every element; further sequences go along, tensors are given each time."""
    body = call.bodies["body"]
    results: list[list[Any]] = [[] for _ in body.output_infos]
    for place, item in enumerate(sequence):
        outputs = body(item, *(o[place] if isinstance(o, list) else o for o in others))
        for kept, value in zip(results, outputs, strict=True):
            kept.append(value)
    return tuple(results)
