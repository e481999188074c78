"""A compiled graph: integer slots, bound kernels, dead values freed at their last use."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from optimizer.ir import Attribute, Graph, Node, OptimizerError, Tensor, Value, ValueInfo
from optimizer.runtime.call import Call
from optimizer.runtime.context import ExecutionContext
from optimizer.runtime.dtypes import checked, kind_of
from optimizer.runtime.errors import ExecutionError, LimitReached, describe
from optimizer.runtime.memory import LiveMemory
from optimizer.runtime.registry import Kernel, KernelFunction

OMITTED = 0
"""Slot that always holds ``None``: an omitted input reads it."""
UNUSED = 1
"""Slot that takes outputs nothing reads; emptied at once."""


class Missing:
    """Stands for a value that could not be computed because a kernel is missing."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING = Missing()


class MissingValue(Exception):
    """A body gave a value that could not be computed: so are the outputs of its owner."""


class Step(NamedTuple):
    """One node, ready to run.

    Attributes:
        run: the kernel's function, or one that writes over dead inputs.
        output: the slot of the only output, or -1 where ``outputs`` must be looked at.
        frees: slots that hold nothing of use after this step.
    """

    run: KernelFunction
    call: Call
    inputs: tuple[int, ...]
    output: int
    outputs: tuple[int, ...]
    frees: tuple[int, ...]
    node: Node
    kernel: Kernel


@dataclass(slots=True)
class Plan:
    """Runs the part of a graph between given inputs and outputs.

    Attributes:
        slot_of: the slot of each value the plan touches.
        constants: the constants it reads, loaded when it first runs.
    """

    context: ExecutionContext
    steps: tuple[Step, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    slot_of: dict[Value, int]
    constants: tuple[tuple[int, Tensor], ...]
    _template: list[Any] = field(default_factory=list)
    _right: set[tuple[Any, ...]] = field(default_factory=set)

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """The outputs for ``inputs``, both in the order the plan was made for.

        Raises:
            ExecutionError: a kernel refused its inputs.
            LimitReached: a limit of the options was hit.
        """
        slots = self._fresh_slots()
        for slot, value in zip(self.inputs, inputs, strict=True):
            slots[slot] = value
        # The types of what goes in decide those of all that is made: they are checked once for each kind.
        kinds = tuple([v.dtype if v.__class__ is np.ndarray else kind_of(v) for v in inputs])
        steps = self.steps if kinds in self._right else [_checked(step) for step in self.steps]
        if self.context.watched:
            self._run_watched(steps, slots, inputs)
        else:
            self._run(steps, slots)
        self._right.add(kinds)
        return [slots[i] for i in self.outputs]

    def _run(self, steps: Sequence[Step], slots: list[Any]) -> None:
        array = np.ndarray
        step = None
        try:
            for step in steps:
                run, call, reads, output, outputs, frees, _, _ = step
                result = run(call, *[slots[i] for i in reads])
                if output >= 0:
                    slots[output] = result if result.__class__ is array else _one(result)
                else:
                    _store(slots, outputs, result)
                for slot in frees:
                    slots[slot] = None
        except OptimizerError:
            raise
        except Exception as error:
            assert step is not None
            raise ExecutionError.at(step.call, [slots[i] for i in step.inputs], error) from error

    def _run_watched(self, steps: Sequence[Step], slots: list[Any], inputs: Sequence[Any]) -> None:
        memory = self.context.memory if self.context.counts_memory else None
        inner = self.context.depth > 0
        if memory:
            memory.ignore(slots[i] for i, _ in self.constants)
            if inner:
                memory.add(inputs)
            else:
                memory.ignore(inputs)
        self.context.depth += 1
        self._run_steps_watched(steps, slots, memory)
        self.context.depth -= 1
        if memory and inner:  # what is still live is counted by the plan around this one
            memory.remove(slots)

    def _run_steps_watched(self, steps: Sequence[Step], slots: list[Any], memory: LiveMemory | None) -> None:
        for step in steps:
            try:
                self.context.count_node()
                self._watched_step(step, slots)
                if memory:
                    memory.add((slots[i] for i in step.outputs), f"{step.node.op} '{step.node.name}'")
                    memory.remove(slots[i] for i in step.frees)
                for slot in step.frees:  # before a limit strikes: they may have been written over
                    slots[slot] = None
                if memory:
                    self.context.check_memory()
            except LimitReached as limit:
                limit.live = {v: slots[i] for v, i in self.slot_of.items() if slots[i] is not None}
                raise

    def _watched_step(self, step: Step, slots: list[Any]) -> None:
        options = self.context.options
        values = [slots[i] for i in step.inputs]
        if any(v is MISSING for v in values):
            _store(slots, step.outputs, (MISSING,) * len(step.outputs))
            return
        if options.before_node:
            options.before_node(step.node, values)
        started = time.perf_counter()
        try:
            result = step.run(step.call, *values)
        except MissingValue:
            result = (MISSING,) * len(step.outputs)
        except OptimizerError:
            raise
        except Exception as error:
            raise ExecutionError.at(step.call, values, error) from error
        seconds = time.perf_counter() - started
        _store(slots, step.outputs, result)
        made = [slots[i] for i in step.outputs]
        if options.after_node:
            options.after_node(step.node, values, made, seconds)
        if options.verbose:
            shown = ", ".join(describe(v) for v in made)
            print(f"{seconds * 1e3:9.3f} ms  {step.node.op} '{step.node.name}' -> {shown}")

    def _fresh_slots(self) -> list[Any]:
        if not self._template:
            size = max([UNUSED, *self.slot_of.values()]) + 1
            template: list[Any] = [None] * size
            for slot, tensor in self.constants:
                template[slot] = self.context.constant(tensor)
            self._template = template
        return self._template.copy()


@dataclass(slots=True)
class BoundBody:
    """A compiled body with the captures of one execution of its owner.

    Attributes:
        attributes: those that the function around it was called with.
    """

    plan: Plan
    graph: Graph
    attributes: Mapping[str, Attribute]
    input_infos: tuple[ValueInfo, ...]
    output_infos: tuple[ValueInfo, ...]
    captures: tuple[Any, ...] = ()

    def __call__(self, *inputs: Any) -> list[Any]:
        """Runs the body once."""
        values = [*inputs, *self.captures]
        if hook := self.plan.context.options.before_body:
            hook(self.graph, values, self.attributes)
        outputs = self.plan.run(values)
        if any(v is MISSING for v in outputs):
            raise MissingValue
        return outputs

    def bind(self, captures: Sequence[Any]) -> BoundBody:
        """The same body with other captures."""
        return replace(self, captures=tuple(captures))


def checked_kernel(run: KernelFunction, kernel: Kernel, call: Call) -> KernelFunction:
    """``run`` as one that refuses inputs of types that ``kernel`` does not take."""
    takes = kernel.takes(call.opset, truth=call.truth)
    return checked(run, takes, call.inputs)


def _checked(step: Step) -> Step:
    return step._replace(run=checked_kernel(step.run, step.kernel, step.call))


def owner_of_bodies(run: KernelFunction, input_count: int, counts: dict[str, int]) -> Callable[..., Any]:
    """A kernel with bodies as one that takes the captures behind its inputs.

    Args:
        run: the kernel.
        input_count: number of inputs of the node.
        counts: number of captures of each body, by attribute, in order.
    """

    def run_with_captures(call: Call, *values: Any) -> Any:
        position, bodies = input_count, {}
        for name, count in counts.items():
            body = call.bodies[name]
            assert isinstance(body, BoundBody)
            bodies[name] = body.bind(values[position : position + count])
            position += count
        return run(call.with_bodies(bodies), *values[:input_count])

    return run_with_captures


def _one(result: Any) -> Any:
    """A kernel's only output as a value: scalars become 0-d arrays."""
    if isinstance(result, tuple):
        result = result[0]
    if isinstance(result, np.generic):
        return np.asarray(result)
    return result


def _store(slots: list[Any], outputs: tuple[int, ...], result: Any) -> None:
    results = result if isinstance(result, tuple) else (result,)
    for slot, value in zip(outputs, results, strict=False):
        slots[slot] = np.asarray(value) if isinstance(value, np.generic) else value
    slots[UNUSED] = None
