"""Small changes to a graph: its sizes, types, numbers, attributes and wiring."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from optimizer.ir import AttributeKind, DType, Model, Node, Tensor, TensorType, Value, ValueInfo
from optimizer.verify.adversary.grow import OPSETS, Barren
from optimizer.verify.adversary.site import SIZES, Array
from optimizer.verify.feeds import symbols_of

_FLOATS = (DType.FLOAT, DType.FLOAT16, DType.DOUBLE)
_TARGETS = 8
"""Elements of an integer constant up to which it may hold sizes."""


class Edits:
    """Changes one model; each may find nothing to change (``Barren``).

    Args:
        rng: decides everything.

    Attributes:
        given: values for inputs that it made out of constants.
        shown: intermediates that are to be outputs as well.
    """

    def __init__(self, model: Model, rng: np.random.Generator) -> None:
        self._rng = rng
        self._model = model
        self._graph = model.graph
        self.given: dict[str, Any] = {}
        self.shown: list[Value] = []

    def make_one(self) -> None:
        """Makes one change, any of them."""
        sizes = (self._resize, self._resize, self._open, self._close)
        numbers = (self._retype, self._renumber, self._renumber, self._reattribute, self._reopset)
        wiring = (self._commute, self._rewire, self._show, self._share, self._thaw)
        options: tuple[Callable[[], None], ...] = (*sizes, *numbers, *wiring)
        options[int(self._rng.integers(len(options)))]()

    def _pick(self, options: Iterable[Any]) -> Any:
        found = list(options)
        if not found:
            raise Barren("there is nothing of the kind")
        return found[int(self._rng.integers(len(found)))]

    def _constants(self) -> list[tuple[Value, Tensor]]:
        found = ((value, self._graph.tensor(value)) for value in self._graph.constants)
        return [
            (value, tensor) for value, tensor in found if tensor is not None and tensor.dtype != DType.STRING
        ]

    def _put(self, value: Value, array: Array) -> None:
        """Other contents for a constant."""
        self._graph.replace_uses(value, self._graph.add_constant(array))
        self._graph.erase(value.node)

    def _redeclare(self, change: Callable[[TensorType], TensorType]) -> None:
        for value in self._graph.inputs:
            info = self._graph.info(value)
            if isinstance(info.type, TensorType):
                self._graph.set_attrs(
                    value.node,
                    self._graph.node(value).attributes,
                    outputs=[replace(info, type=change(info.type))],
                )

    # ---------------------------------------------------------------- sizes

    def _resize(self) -> None:
        """Another number wherever a size stands: in shapes, targets and attributes."""
        shapes: list[Sequence[Any] | None] = [tensor.shape for _, tensor in self._constants()]
        shapes += [
            t.shape for v in self._graph.inputs if isinstance(t := self._graph.info(v).type, TensorType)
        ]
        old = self._pick(sorted({dim for shape in shapes for dim in shape or () if isinstance(dim, int)}))
        new = int(self._rng.choice((*SIZES, 6, 8)))
        everywhere = self._rng.random() < 0.8

        def changed(numbers: Sequence[Any]) -> tuple[Any, ...]:
            return tuple(new if n == old and (everywhere or self._rng.random() < 0.5) else n for n in numbers)

        self._redeclare(lambda t: replace(t, shape=None if t.shape is None else changed(t.shape)))
        for value, tensor in self._constants():
            array, shape = tensor.array, changed(tensor.shape)
            for axis, size in enumerate(shape):
                if size != array.shape[axis]:
                    array = np.take(array, np.arange(size), axis=axis, mode="wrap")
            if tensor.dtype == DType.INT64 and array.size <= _TARGETS and old > 1:
                array = np.where(array == old, new, array)
            if array is not tensor.array:
                self._put(value, array)
        for node in list(self._graph.nodes) if old > 1 else ():
            numbers = {n: a.value for n, a in node.attributes.items() if a.kind is AttributeKind.INTS}
            numbers = {n: changed(v) for n, v in numbers.items() if n not in ("axes", "perm", "pads")}
            if numbers:
                self._graph.set_attrs(node, {**node.attributes, **numbers})

    def _open(self) -> None:
        """A number of an input's shape becomes a name of its own, or one for all that are equal."""
        numbers = [
            (value, axis, dim)
            for value in self._graph.inputs
            if isinstance(t := self._graph.info(value).type, TensorType)
            for axis, dim in enumerate(t.shape or ())
            if isinstance(dim, int)
        ]
        _, _, size = self._pick(numbers)
        alike = self._rng.random() < 0.5
        count = iter(range(100))

        def opened(dim: Any) -> Any:
            return (f"d{size}" if alike else f"d{size}_{next(count)}") if dim == size else dim

        self._redeclare(lambda t: replace(t, shape=None if t.shape is None else tuple(map(opened, t.shape))))

    def _close(self) -> None:
        """A name becomes a number, or another name."""
        names = [key for key in symbols_of(self._model) if ":" not in key]
        old = self._pick(names)
        new = self._pick([*(n for n in names if n != old), *SIZES])
        new = new if isinstance(new, str) else int(new)

        def closed(shape: Any) -> Any:
            return None if shape is None else tuple(new if dim == old else dim for dim in shape)

        self._redeclare(lambda t: replace(t, shape=closed(t.shape)))

    # ---------------------------------------------------------------- types, numbers, attributes

    def _retype(self) -> None:
        """Another element type for everything of one."""
        held = {tensor.dtype for _, tensor in self._constants()} | {
            t.dtype for v in self._graph.inputs if isinstance(t := self._graph.info(v).type, TensorType)
        }
        old = self._pick(dtype for dtype in _FLOATS if dtype in held)
        new = self._pick(dtype for dtype in _FLOATS if dtype is not old)
        self._redeclare(lambda t: replace(t, dtype=new) if t.dtype == old else t)
        for value, tensor in self._constants():
            if tensor.dtype == old:
                self._put(value, tensor.array.astype(new.numpy))
        for node in list(self._graph.nodes):
            if node.op_type == "Cast" and node.attr("to") == old:
                self._graph.set_attrs(node, {**node.attributes, "to": int(new)})

    def _renumber(self) -> None:
        """Other contents for one constant."""
        value, tensor = self._pick(self._constants())
        array = tensor.array.copy()
        if not array.size:
            raise Barren("an empty constant")
        flat = array.reshape(-1)
        place = int(self._rng.integers(flat.size))
        if tensor.dtype.is_float:
            kind = int(self._rng.integers(8))
            if kind < 4:
                flat[:] = np.asarray((0.0, 1.0, -1.0, 0.5)[kind])
            elif kind < 6:
                flat[place] = self._pick((np.nan, np.inf, 0.0, -0.0, 2.0, -3.5))
            else:
                flat[:] = flat * np.asarray(self._pick((1.05, -1.0, 4.0)), flat.dtype)
        elif self._rng.random() < 0.3:
            flat[:] = flat[::-1].copy()
        elif tensor.dtype is DType.BOOL:
            flat[place] = not flat[place]
        else:
            flat[place] = (
                flat[place] + flat.dtype.type(1)
                if self._rng.random() < 0.5
                else flat[place] - flat.dtype.type(1)
            )
        self._put(value, array)

    def _reattribute(self) -> None:
        """Another number in one attribute, or none."""
        kinds = {AttributeKind.INT, AttributeKind.FLOAT, AttributeKind.INTS}
        node, name, attribute = self._pick(
            (node, name, a)
            for node in self._graph.nodes
            for name, a in node.attributes.items()
            if a.kind in kinds
        )
        number: Any = attribute.value
        if isinstance(number, tuple):
            number = list(number) or [0]
            at, step = int(self._rng.integers(len(number))), self._pick((1, -1))
            number = (
                number[::-1]
                if self._rng.random() < 0.3
                else [*number[:at], number[at] + step, *number[at + 1 :]]
            )
        else:
            number = number * 1.1 if attribute.kind is AttributeKind.FLOAT else number + self._pick((1, -1))
        rest = {n: a for n, a in node.attributes.items() if n != name}
        self._graph.set_attrs(node, rest if self._rng.random() < 0.15 else {**rest, name: number})

    def _reopset(self) -> None:
        """Another opset, where it has all the operators."""
        self._graph.opsets[""] = int(self._pick(OPSETS))

    # ---------------------------------------------------------------- wiring

    def _commute(self) -> None:
        node = self._pick(n for n in self._graph.nodes if len(n.inputs) == 2)
        self._graph.set_inputs(node, node.inputs[::-1])

    def _rewire(self) -> None:
        """An operand is read from somewhere else."""
        node = self._pick(n for n in self._graph.nodes if n.inputs)
        above = list(self._graph.topological())
        before = above[: above.index(node)]
        sources = [*self._graph.inputs, *self._graph.constants, *(n.value(0) for n in before if n.outputs)]
        inputs: list[Value | None] = list(node.inputs)
        inputs[int(self._rng.integers(len(inputs)))] = self._pick(sources)
        self._graph.set_inputs(node, inputs)

    def _inner(self) -> Value:
        shown = set(self._graph.outputs)
        found = self._pick(n.value(0) for n in self._graph.nodes if n.outputs and n.value(0) not in shown)
        assert isinstance(found, Value)
        return found

    def _show(self) -> None:
        """An intermediate becomes an output, or is read by one more node."""
        value = self._inner()
        if self._rng.random() < 0.5:
            value = self._graph.add("Identity", (value,)).value()
        self.shown.append(value)

    def _share(self) -> None:
        """A node that several read is made once for each of them."""
        node: Node = self._pick(n for n in self._graph.nodes if len(n.outputs) == 1 and not n.bodies)
        uses = list(self._graph.uses(node.value()))
        if len(uses) < 2:
            raise Barren("nothing is shared")
        twin = self._graph.add(
            node.op_type, node.inputs, node.attributes, domain=node.domain, overload=node.overload
        )
        self._graph.replace_uses(node.value(), twin.value(), uses[:1])

    def _thaw(self) -> None:
        """A constant becomes an input."""
        value, tensor = self._pick(self._constants())
        name = f"thawed{len(self._graph.inputs)}"
        made = self._graph.add_input(ValueInfo(name, TensorType(tensor.dtype, tensor.shape)))
        self._graph.replace_uses(value, made)
        self._graph.erase(value.node)
        self.given[name] = tensor.array
