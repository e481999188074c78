"""Running one side of a region, every intermediate kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from optimizer.ir import Attribute, Function, Node, Value
from optimizer.runtime import Call, ExecutionContext, ExecutionError, LimitReached, Options
from optimizer.runtime.compiler import Compiler
from optimizer.runtime.plan import checked_kernel
from optimizer.runtime.registry import KernelFunction
from optimizer.verify.effort import Meter
from optimizer.verify.rounding import listed, propagate
from optimizer.verify.sides import Side

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


MOST_ELEMENTS = 1 << 26
"""Elements of one tensor; sizes that make larger ones are refused."""


class Evaluator:
    """Runs one side of a region.

    Args:
        truth: every float tensor in float64; else in the model's own element types.
        bindings: in a function, what its attributes stand for.

    Raises:
        MissingKernel: nothing here can run one of its nodes.
    """

    def __init__(
        self,
        side: Side,
        functions: Mapping[tuple[str, str, str], Function],
        *,
        truth: bool,
        bindings: Mapping[str, Attribute] | None = None,
    ) -> None:
        self.side = side
        self._context = ExecutionContext(Options(truth=truth, max_bytes=8 * MOST_ELEMENTS))
        compiler = Compiler(side.graph, self._context, side.graph.opsets, functions, bindings or {})
        self._steps: list[tuple[Node, KernelFunction, KernelFunction, Call]] = []
        for node in side.nodes:
            kernel, call = compiler.step(node)
            call.key = side.origin[node.id]  # random ops draw by it: the same node draws the same
            self._steps.append((node, kernel.run, checked_kernel(kernel.run, kernel, call), call))

    def run(self, given: Mapping[Value, Any], limit: int | None = None) -> dict[Value, Any]:
        """Every value of the side, from boundary values and constants (values of its graph).

        Args:
            limit: work that it may take, in multiplications.

        Raises:
            ExecutionError: a kernel refused its inputs.
            LimitReached: it takes more.
        """
        values = dict(given)
        meter = Meter(limit)
        self._context.begin()
        with np.errstate(all="ignore"):
            for node, _, run, call in self._steps:
                inputs = [None if v is None else values[v] for v in node.operands]
                meter(node, inputs)
                if any(isinstance(x, np.ndarray) and x.size > MOST_ELEMENTS for x in inputs):
                    raise LimitReached("a tensor is larger than a check is meant for")
                try:
                    results = listed(run(call, *inputs))
                    _refuse_ambiguous(node, inputs, results)
                except ExecutionError:
                    raise
                except Exception as error:
                    raise ExecutionError.at(call, inputs, error) from error
                values.update((node.value(i), result) for i, result in enumerate(results))
        return values

    def rounding(self, values: Mapping[Value, Any], errors: Mapping[Value, Array]) -> list[Array | None]:
        """A bound on the error of each output, elementwise, to first order.

        Args:
            values: what ``run`` gave.
            errors: bounds for some of the given values, of their shapes.

        Raises:
            ArithmeticError: a kernel does not run on the errors.
        """
        known: dict[Value, Array | None] = dict(errors)
        with np.errstate(all="ignore"):
            for node, run, _, call in self._steps:
                inputs = [None if v is None else values[v] for v in node.operands]
                carried = [None if v is None else known.get(v) for v in node.operands]
                if all(e is None for e in carried):
                    continue
                try:
                    made = propagate(node, run, call, inputs, carried)
                except Exception as error:
                    raise ArithmeticError(f"no bound for the rounding of {node.op}: {error}") from error
                known.update((node.value(i), error) for i, error in enumerate(made))
        return [known.get(value) for value in self.side.outputs]


def _refuse_ambiguous(node: Node, inputs: Sequence[Any], results: Sequence[Any]) -> None:
    """Refuses what runtimes refuse though our kernels do not: a -1 in a target beside a zero dim.

    Raises:
        ValueError: with the reason.
    """
    if node.op_type != "Reshape" or node.domain or len(inputs) < 2 or inputs[0].size:
        return
    target = inputs[1].tolist()
    others = [size for dim, size in zip(target, results[0].shape, strict=True) if dim != -1]
    if len(others) < len(target) and 0 in others:
        raise ValueError("-1 stands for any size beside a dimension of 0")
