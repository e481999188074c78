"""The executor's front door."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from optimizer.ir import Attribute, Function, Graph, Model, Tensor, UsageError, Value
from optimizer.runtime.compiler import Compiler, FunctionKey
from optimizer.runtime.context import ExecutionContext
from optimizer.runtime.errors import BadFeed, LimitReached
from optimizer.runtime.feeds import checked_feed, placeholder
from optimizer.runtime.options import Options
from optimizer.runtime.plan import Plan
from optimizer.runtime.precision import true_value

if TYPE_CHECKING:
    from onnx import ModelProto


class Session:
    """Runs a model with NumPy kernels.

    Nodes are bound to kernels once; editing the graph afterwards is not seen. A session serves one
    thread at a time.

    Args:
        model: a model, a graph, or what ``optimizer.io.load`` takes (a path, bytes, a ModelProto).
        options: how to run; single options may be given by name instead: ``Session(m, truth=True)``.

    Raises:
        MissingKernel: nothing can run one of the nodes (see ``Options.allow_missing_kernels``).
        UsageError: there is no such option.

    Attributes:
        placeholders: names of tensors that stand-ins were made for (never trust their numbers).
    """

    def __init__(
        self,
        model: Model | Graph | str | os.PathLike[str] | bytes | ModelProto,
        options: Options | None = None,
        **overrides: Any,
    ) -> None:
        try:
            options = replace(options or Options(), **overrides)
        except TypeError as error:
            raise UsageError(f"no such option: {', '.join(overrides)}") from error
        if not isinstance(model, (Model, Graph)):
            from optimizer.io import load

            model = load(model)
        self.graph = model if isinstance(model, Graph) else model.graph
        functions: Mapping[FunctionKey, Function] = model.functions if isinstance(model, Model) else {}
        self.context = ExecutionContext(options)
        self.placeholders: set[str] = set()
        self._compiler = Compiler(
            self.graph, self.context, self.graph.opsets, functions, placeholders=self.placeholders
        )
        self._plans: dict[tuple[tuple[Value, ...], tuple[Value, ...]], Plan] = {}
        self._names: dict[str, Value] = {}
        self._inputs = {self.graph.info(v).name: v for v in self.graph.inputs}
        self._outputs = {
            info.name: v for info, v in zip(self.graph.sink.outputs, self.graph.outputs, strict=True)
        }
        self._plan(self.graph.inputs, tuple(self._outputs.values()))

    def run(
        self,
        feeds: Mapping[str, Any] | None = None,
        outputs: Sequence[str] | None = None,
        *,
        stop_at: str | None = None,
    ) -> dict[str, Any]:
        """Computes outputs, by name.

        Args:
            feeds: the model's inputs, by name: arrays of the declared element type and rank, and of
                each size that is declared as a number (Python numbers and lists are made such); lists
                for sequences. Inputs with a default may be left out.
            outputs: any tensor names, by default the model's outputs.
            stop_at: a tensor name: run only what it needs and return it alone.

        Returns:
            Arrays of the element types that the model states (float64 under ``truth``); lists for
            sequences; ``NONE`` for an empty optional; ``MISSING`` for what could not be computed under
            ``allow_missing_kernels="allow"``.

        Raises:
            BadFeed: an input is missing, unknown, or has another type or shape than declared.
            UsageError: there is no such tensor.
            ExecutionError: a kernel failed; the message names node, op, version and inputs.
            LimitReached: a limit of the options was hit; ``partial`` has what was live by then.
        """
        wanted = [stop_at] if stop_at is not None else outputs
        targets = self._outputs if wanted is None else {name: self._value(name) for name in wanted}
        values = self._fed(feeds or {})
        plan = self._plan(self.graph.inputs, tuple(targets.values()))
        return dict(zip(targets, self._execute(plan, values), strict=True))

    def feed(self, name: str, feeds: Mapping[str, Any]) -> Any:
        """What a run with these ``feeds`` takes for the input ``name``: checked, or its default.

        Raises:
            BadFeed: it is missing, or has another type or shape than declared.
        """
        return self._input(name, self._inputs[name], feeds)

    def run_between(self, inputs: Mapping[Value, Any], outputs: Sequence[Value]) -> dict[Value, Any]:
        """Computes ``outputs`` from the values given, whatever made them.

        Values of the graph that lie behind the given ones are not computed.

        Raises:
            InvalidGraph: an output needs a graph input that is not given.
            ExecutionError, LimitReached: as ``run``.
        """
        plan = self._plan(tuple(inputs), tuple(outputs))
        values = list(inputs.values())
        if self.context.options.truth:
            values = [true_value(v) for v in values]
        return dict(zip(outputs, self._execute(plan, values), strict=True))

    # ---------------------------------------------------------------- internals

    def _plan(self, inputs: tuple[Value, ...], outputs: tuple[Value, ...]) -> Plan:
        plan = self._plans.get((inputs, outputs))
        if plan is None:
            plan = self._plans[inputs, outputs] = self._compiler.plan(inputs, outputs)
        return plan

    def _execute(self, plan: Plan, values: Sequence[Any]) -> list[Any]:
        self.context.begin()
        try:
            # IEEE results (inf, nan) are results here, not warnings.
            with np.errstate(all="ignore"):
                return plan.run(values)
        except LimitReached as limit:
            named = {self.graph.info(v).name: x for v, x in limit.live.items() if v in self.graph}
            limit.partial = {name: x for name, x in named.items() if name}
            raise

    def _fed(self, feeds: Mapping[str, Any]) -> list[Any]:
        unknown = [name for name in feeds if name not in self._inputs]
        if unknown:
            raise BadFeed(f"no input '{unknown[0]}'; the inputs are {', '.join(self._inputs) or 'none'}")
        return [self._input(name, value, feeds) for name, value in self._inputs.items()]

    def _input(self, name: str, value: Value, feeds: Mapping[str, Any]) -> Any:
        options = self.context.options
        info = self.graph.info(value)
        default: Tensor | None = self.graph.node(value).attr("default")
        if name in feeds:
            given = checked_feed(info, feeds[name], truth=options.truth)
        elif default is not None:
            given = default.array
        elif options.placeholder_inputs is not None:
            self.placeholders.add(name)
            given = placeholder(info, options.placeholder_inputs)
        else:
            raise BadFeed(f"input '{name}' is missing")
        return true_value(given) if options.truth else given

    def _value(self, name: str) -> Value:
        found: Value | None = self._outputs.get(name)
        if found is not None:
            return found
        if not self._names:
            vertices = [self.graph.node(v) for v in self.graph.inputs + self.graph.constants]
            for node in (*vertices, *self.graph.nodes):
                self._names.update((o.name, node.value(i)) for i, o in enumerate(node.outputs) if o.name)
        if name not in self._names:
            raise UsageError(f"no tensor '{name}' in the main graph")
        return self._names[name]


def run_between(
    graph: Graph,
    inputs: Mapping[Value, Any],
    outputs: Sequence[Value],
    *,
    functions: Mapping[FunctionKey, Function] | None = None,
    options: Options | None = None,
    opsets: Mapping[str, int] | None = None,
    bindings: Mapping[str, Attribute] | None = None,
) -> dict[Value, Any]:
    """``Session.run_between`` on a graph as it is now, compiling just the part in between.

    Args:
        opsets: those of the model, needed only where ``graph`` is a body without its own.
        bindings: in a function's graph, the attributes it is called with; one that is missing is absent.
    """
    context = ExecutionContext(options)
    compiler = Compiler(graph, context, opsets or graph.opsets, functions or {}, bindings or {})
    plan = compiler.plan(tuple(inputs), tuple(outputs))
    context.begin()
    values = [true_value(v) for v in inputs.values()] if context.options.truth else list(inputs.values())
    with np.errstate(all="ignore"):
        return dict(zip(outputs, plan.run(values), strict=True))
