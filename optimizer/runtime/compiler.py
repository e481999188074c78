"""From a graph to a ``Plan``: the slice between inputs and outputs, each node bound to its kernel."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from optimizer.ir import (
    IR_DOMAIN,
    Attribute,
    AttributeKind,
    Function,
    Graph,
    InvalidGraph,
    Node,
    OptimizerError,
    Tensor,
    TensorType,
    Value,
    ValueInfo,
)
from optimizer.runtime.call import Body, Call
from optimizer.runtime.context import ExecutionContext
from optimizer.runtime.dtypes import UNCHECKED
from optimizer.runtime.errors import MissingKernel
from optimizer.runtime.extent import bounded
from optimizer.runtime.plan import (
    MISSING,
    OMITTED,
    UNUSED,
    BoundBody,
    Plan,
    Step,
    owner_of_bodies,
)
from optimizer.runtime.registry import Kernel, KernelFunction
from optimizer.runtime.resolve import find_kernel, opset_of
from optimizer.runtime.reuse import OwnerTable, reusing

FunctionKey = tuple[str, str, str]


@dataclass(frozen=True)
class Compiler:
    """Compiles plans for one graph; bodies and functions get compilers of their own.

    Attributes:
        opsets: those of the graph, or of the graph around it where it has none.
        functions: the model's functions.
        bindings: in a function, the attributes it was called with.
        calls: the functions around this graph, to refuse recursion.
        placeholders: names of tensors that placeholders stand for, filled while compiling.
        shared: plans of functions, so that calls with the same attributes share one.
    """

    graph: Graph
    context: ExecutionContext
    opsets: Mapping[str, int]
    functions: Mapping[FunctionKey, Function] = field(default_factory=dict)
    bindings: Mapping[str, Attribute] = field(default_factory=dict)
    calls: tuple[FunctionKey, ...] = ()
    placeholders: set[str] = field(default_factory=set)
    shared: dict[Any, Plan] = field(default_factory=dict)

    def plan(self, inputs: Sequence[Value], outputs: Sequence[Value]) -> Plan:
        """The plan that computes ``outputs`` from ``inputs``. O(size of the slice).

        Raises:
            MissingKernel: nothing can run a node of the slice (with the policy ``error``).
            InvalidGraph: an output depends on a graph input that is not among ``inputs``, or on itself.
        """
        nodes, constants = self._slice(set(inputs), outputs)
        slot_of = {value: UNUSED + 1 + i for i, value in enumerate(dict.fromkeys(inputs))}
        for value, _ in constants:
            slot_of[value] = UNUSED + 1 + len(slot_of)
        read = {v for node in nodes for v in node.operands if v is not None} | set(outputs)
        for node in nodes:
            for index in range(len(node.outputs)):
                value = node.value(index)
                if value in read and value not in slot_of:
                    slot_of[value] = UNUSED + 1 + len(slot_of)
        fixed = {slot_of[v] for v, _ in constants} | {slot_of[v] for v in outputs}
        steps = self._steps(nodes, slot_of, set(inputs), fixed)
        return Plan(
            self.context,
            tuple(steps),
            tuple(slot_of[v] for v in inputs),
            tuple(slot_of[v] for v in outputs),
            slot_of,
            tuple((slot_of[v], tensor) for v, tensor in constants),
        )

    def step(self, node: Node) -> tuple[Kernel, Call]:
        """The node's kernel, taking captures behind its inputs, and its call."""
        return self._bind(node, (True,) * len(node.outputs), set(node.operands))

    # ---------------------------------------------------------------- the slice

    def _slice(
        self, inputs: set[Value], outputs: Iterable[Value]
    ) -> tuple[list[Node], list[tuple[Value, Tensor]]]:
        """The operator nodes between ``inputs`` and ``outputs``, in order, and the constants they read."""
        done: dict[int, Node] = {}
        opened: set[int] = set()
        constants: dict[Value, Tensor] = {}
        stack: list[tuple[Value, bool]] = [(v, False) for v in reversed(list(outputs))]
        while stack:
            value, ready = stack.pop()
            if value in inputs or value.node in done or value in constants:
                continue
            node = self.graph.producer(value)
            if node.domain == IR_DOMAIN:
                tensor = self.graph.tensor(value)
                if tensor is None:
                    raise InvalidGraph(f"{self.graph.label(node)} is needed, but it is not given")
                constants[value] = tensor
            elif ready:
                done[node.id] = node
            elif node.id in opened:
                raise InvalidGraph(f"{self.graph.label(node)} depends on itself")
            else:
                opened.add(node.id)
                stack.append((value, True))
                stack.extend((v, False) for v in reversed(node.operands) if v is not None)
        return _in_order(done), list(constants.items())

    def _steps(
        self, nodes: Sequence[Node], slot_of: Mapping[Value, int], given: set[Value], fixed: set[int]
    ) -> list[Step]:
        """One step per node; a slot is freed by the last step that touches it."""
        bound: list[tuple[Kernel, Step]] = []
        seen: set[int] = set(fixed)
        for node in reversed(nodes):
            reads = tuple(OMITTED if v is None else slot_of[v] for v in node.operands)
            values = [node.value(i) for i in range(len(node.outputs))]
            # An output that was given as an input of the plan keeps the given value.
            writes = tuple(slot_of[v] if v in slot_of and v not in given else UNUSED for v in values)
            touched = dict.fromkeys(i for i in (*reads, *writes) if i > UNUSED)
            frees = tuple(i for i in touched if i not in seen)
            seen.update(touched)
            kernel, call = self._bind(node, tuple(i != UNUSED for i in writes), given)
            bound.append((kernel, Step(kernel.run, call, reads, _only(writes), writes, frees, node, kernel)))
        bound.reverse()
        if not self.context.options.reuses_memory:
            return [step for _, step in bound]
        owners = OwnerTable(slot_of[v] for v in slot_of if v in given or self.graph.tensor(v) is not None)
        return [_reusing_step(kernel, step, owners) for kernel, step in bound]

    # ---------------------------------------------------------------- one node

    def _bind(
        self, node: Node, wanted: Sequence[bool], given: Container[Value | None]
    ) -> tuple[Kernel, Call]:
        """The kernel and call of a node; ``given`` are values that differ from run to run."""
        attributes = self._attributes(node)
        function = self.functions.get((node.domain, node.op_type, node.overload))
        bodies = {name: self._body(body) for name, body in node.bodies}
        if function is not None:
            run = self._function(function, attributes)
            kernel = Kernel(0, node.domain, node.op_type, run, runs_graphs=True, dtypes=UNCHECKED)
        else:
            kernel = self._kernel(node)
        call = Call(
            node.op_type,
            {name: attribute.value for name, attribute in attributes.items()},
            opset=opset_of(self.opsets, node.domain),
            domain=node.domain,
            name=node.name,
            since=kernel.since,
            inputs=tuple("" if v is None else self.graph.info(v).name for v in node.inputs),
            outputs=node.outputs,
            wanted=wanted,
            constant_inputs=frozenset(
                i for i, v in enumerate(node.inputs) if v not in given and self.graph.tensor(v) is not None
            ),
            context=self.context,
            bodies=bodies,
            key=node.id,
        )
        if not bodies:
            return kernel, call
        counts = {name: len(body.captures) for name, body in node.bodies}
        run = owner_of_bodies(kernel.run, len(node.inputs), counts)
        return replace(kernel, run=run, runs_graphs=True), call

    def _attributes(self, node: Node) -> dict[str, Attribute]:
        """The node's attributes, references replaced by what the function was called with."""
        found: dict[str, Attribute] = {}
        for name, attribute in node.attributes.items():
            if not attribute.reference:
                found[name] = attribute
            elif (bound := self.bindings.get(attribute.reference)) is not None:
                if bound.kind in (AttributeKind.GRAPH, AttributeKind.GRAPHS):
                    raise OptimizerError(
                        f"{self.graph.label(node)}: the attribute '{attribute.reference}' of the function "
                        "around it is a graph; inline the function first"
                    )
                found[name] = bound
        return found

    def _body(self, body: Graph) -> Body:
        inner = replace(self, graph=body, opsets=body.opsets or self.opsets)
        plan = inner.plan(body.inputs + body.captures, body.outputs)
        infos = tuple(body.info(v) for v in body.inputs)
        return BoundBody(plan, body, self.bindings, infos, body.sink.outputs)

    def _function(self, function: Function, attributes: Mapping[str, Attribute]) -> KernelFunction:
        if function.key in self.calls:
            raise OptimizerError(f"function {function.domain}::{function.name} calls itself")
        bindings = {**function.defaults, **attributes}
        plan = self._function_plan(function, bindings)

        def run(call: Call, *inputs: Any) -> tuple[Any, ...]:
            values = [*inputs, *[None] * (len(plan.inputs) - len(inputs))]
            if hook := call.context.options.before_body:
                hook(function.graph, values, bindings)
            return tuple(plan.run(values))

        return run

    def _function_plan(self, function: Function, bindings: Mapping[str, Attribute]) -> Plan:
        # The attributes are kept alive by the model, so that their ids stand for them.
        key = (function.key, tuple(sorted((name, id(a)) for name, a in bindings.items())))
        if key not in self.shared:
            graph = function.graph
            inner = replace(
                self,
                graph=graph,
                opsets=graph.opsets or self.opsets,
                bindings=bindings,
                calls=(*self.calls, function.key),
            )
            self.shared[key] = inner.plan(graph.inputs, graph.outputs)
        return self.shared[key]

    def _kernel(self, node: Node) -> Kernel:
        opset = opset_of(self.opsets, node.domain)
        found = find_kernel(node.domain, node.op_type, opset)
        if found is not None:
            run = bounded(node, found.run)
            return found if run is found.run else replace(found, run=run)
        policy = self.context.options.allow_missing_kernels
        if policy == "error":
            raise MissingKernel.of(node.op, opset, self.graph.label(node))
        stand_in = _missing
        if policy == "placeholder":
            self.placeholders.update(o.name for o in node.outputs if o.name)
            stand_in = _zeros(node.outputs)
        return Kernel(0, node.domain, node.op_type, stand_in, foldable=False, dtypes=UNCHECKED)


def _only(writes: tuple[int, ...]) -> int:
    return writes[0] if len(writes) == 1 and writes[0] != UNUSED else -1


def _reusing_step(kernel: Kernel, step: Step, owners: OwnerTable) -> Step:
    writes = [slot for slot in step.outputs if slot != UNUSED]
    positions = owners.step(kernel, step.inputs, writes, step.frees)
    return step._replace(run=reusing(kernel, positions)) if positions else step


def _in_order(done: Mapping[int, Node]) -> list[Node]:
    """The nodes in order of creation where that is topological, else as the search found them.

    Ids are minted in order, and the order of the file is usually kinder to memory than any other.
    """
    keys = sorted(done)
    if all(v is None or v.node < key for key in keys for v in done[key].operands):
        return [done[key] for key in keys]
    return list(done.values())


def _missing(call: Call, *inputs: Any) -> tuple[Any, ...]:
    return (MISSING,) * call.output_count


def _zeros(outputs: Sequence[ValueInfo]) -> Callable[..., tuple[Any, ...]]:
    def run(call: Call, *inputs: Any) -> tuple[Any, ...]:
        return tuple(_zero_of(call, info) for info in outputs)

    return run


def _zero_of(call: Call, info: ValueInfo) -> Any:
    if not isinstance(info.type, TensorType) or info.type.shape is None:
        return MISSING
    shape = tuple(d if isinstance(d, int) else 1 for d in info.type.shape)
    return np.zeros(shape, call.dtype(info.type.dtype))
