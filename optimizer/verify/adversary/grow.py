"""Graphs that a pattern matches, or just fails to match: the soil to try a rule on."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from optimizer.io.schemas import admits
from optimizer.ir import DType, Graph, Model, Node, OptimizerError, TensorType, Value, ValueInfo
from optimizer.rewrite import Rule, Settings
from optimizer.rewrite.pattern import Absent, AnyOf, Filled, Maybe, Op, Rest, Scalar, Term, Var
from optimizer.runtime import evaluate
from optimizer.verify.adversary.recipes import RECIPES, elementwise
from optimizer.verify.adversary.site import Array, Leaf, Site

OPSETS = (11, 13, 17, 18, 20, 21, 23)
DTYPES = (np.float32,) * 8 + (np.float16, np.float64, np.int64, np.int32, np.bool_)
_COMMUTES = {"Add", "Mul", "Max", "Min", "And", "Or", "Xor", "Equal"}
_TAKES_INDICES = {
    "Slice", "Reshape", "Expand", "Tile", "Gather", "Squeeze", "Unsqueeze", "Pad", "Resize", "Split",
}  # fmt: skip
_FAILURES = (OptimizerError, ValueError, IndexError, TypeError, KeyError, ArithmeticError)
"""What operands that do not fit together may raise."""


class Barren(Exception):
    """This attempt made no valid graph."""


@dataclass
class _Open(Leaf):
    """A leaf of the pattern, with what the pattern wants of it."""

    name: str = ""
    constant: bool = False
    number: float | None = None
    filled: bool = False


@dataclass
class Growth:
    """A generated model, the inputs it was grown with, and the settings that suit it, if any."""

    model: Model
    feeds: dict[str, Any] = field(default_factory=dict)
    settings: Settings | None = None

    @property
    def size(self) -> tuple[int, int]:
        """Nodes, then elements: what makes a counterexample small."""
        return len(list(self.model.graph.nodes)), sum(np.size(a) for a in self.feeds.values())


class Grower:
    """Grows one graph from the pattern of a rule.

    Args:
        rng: decides everything.
    """

    def __init__(self, rule: Rule, rng: np.random.Generator) -> None:
        self._rule = rule
        self._rng = rng
        self._dtype = np.dtype(DTYPES[int(rng.integers(len(DTYPES)))])
        self._graph = Graph("adversary", {"": int(rng.choice(OPSETS)), "com.microsoft": 1})
        self._arrays: dict[Value, Array] = {}
        self._bound: dict[str, Value | None] = {}
        self._feeds: dict[str, Array] = {}
        self._named: dict[str, Node] = {}
        self._inner: list[Value] = []

    def grow(self) -> Growth:
        """One model.

        Raises:
            Barren: what was drawn does not fit together.
        """
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore", RuntimeWarning)
            try:
                root = self._op(self._choice(self._rule.pattern))
            except _FAILURES as error:
                raise Barren(str(error)) from error
        self._finish(root)
        return Growth(Model(self._graph), self._feeds)

    def _chance(self, share: float) -> bool:
        return bool(self._rng.random() < share)

    def _choice(self, term: Term) -> Op:
        while isinstance(term, AnyOf):
            term = term.terms[int(self._rng.integers(len(term.terms)))]
        if not isinstance(term, Op):
            raise Barren("the root is no operator")
        return term

    # ---------------------------------------------------------------- one operator

    def _op(self, term: Op) -> Node:
        if term.name in self._named:
            return self._named[term.name]
        operands: list[Value | _Open | None] = []
        for inner in term.inputs:
            operands.extend(self._operands(inner))
        # What an operand further on binds, an earlier one of the same name stands for as well.
        operands = [
            self._bound[v.name] if isinstance(v, _Open) and v.name in self._bound else v for v in operands
        ]
        op = term.ops[int(self._rng.integers(len(term.ops)))]
        fixed = {name: value for name, value in term.attributes.items() if value is not None}
        site = Site(
            op,
            self._rng,
            self._graph.opset(),
            self._dtype,
            [self._arrays[v] if isinstance(v, Value) else v for v in operands],
            term.attributes,
            term.output + 1,
        )
        self._fill_numbers(site, operands)
        RECIPES.get(op, elementwise)(site)
        inputs = [self._made(site, slot, operand) for slot, operand in enumerate(operands)]
        if len(inputs) == 2 and (term.commutative or op in _COMMUTES) and self._chance(0.3):
            inputs.reverse()
        while inputs and inputs[-1] is None:
            inputs.pop()
        attributes = {**site.attributes, **fixed}
        self._check(op, term.domain, inputs, frozenset(attributes))
        node = self._graph.add(op, inputs, attributes, site.outputs, domain=term.domain)
        self._run(node)
        if term.name:
            self._named[term.name] = node
        self._inner.append(node.value(term.output))
        return node

    def _operands(self, term: Term) -> list[Value | _Open | None]:
        if isinstance(term, Rest):
            count = max(1, term.least) + int(self._rng.integers(0, 3))
            return [_Open() for _ in range(count)]
        return [self._operand(term)]

    def _operand(self, term: Term) -> Value | _Open | None:
        if isinstance(term, Maybe):
            return None if self._chance(0.5) else self._operand(term.term)
        if isinstance(term, Absent):
            return None
        if isinstance(term, AnyOf):
            return self._operand(term.terms[int(self._rng.integers(len(term.terms)))])
        if isinstance(term, Op):
            return self._op(term).value(term.output)
        if isinstance(term, Scalar):
            return _Open(term.name, True, term.value)
        if isinstance(term, Filled):
            return _Open(term.name, True, term.value, filled=True)
        assert isinstance(term, Var)
        if term.name in self._bound and not self._chance(0.05):
            return self._bound[term.name]
        return _Open(term.name, term.constant)

    def _fill_numbers(self, site: Site, operands: list[Value | _Open | None]) -> None:
        """Puts the numbers of the pattern in place, now and then one that is nearly it."""
        for slot, operand in enumerate(operands):
            if isinstance(operand, _Open) and operand.number is not None:
                off = self._rng.choice([0.0, 0.0, 0.0, 0.0, 0.0, 0.05])
                shape = site.pick((), (), (1,), (1, 1), *((2,), (1, 3), (2, 1)) * operand.filled)
                dtype = self._dtype if operand.filled or self._dtype.kind == "f" else np.dtype(np.float32)
                site.operands[slot] = np.full(shape, operand.number * (1 + off)).astype(dtype)

    def _made(self, site: Site, slot: int, operand: Value | _Open | None) -> Value | None:
        if not isinstance(operand, _Open):
            return operand
        if operand.name in self._bound:
            return self._bound[operand.name]
        array = site.operands[slot]
        if not isinstance(array, np.ndarray):
            if array is None:
                return None
            raise Barren("an operand that no recipe makes")
        structural = array.dtype.kind in "i" and site.op in _TAKES_INDICES and slot > 0
        constant = operand.constant or operand.number is not None or self._chance(0.9 if structural else 0.3)
        value = self._graph.add_constant(array) if constant else self._input(array)
        self._arrays[value] = array
        if operand.name:
            self._bound[operand.name] = value
        return value

    def _input(self, array: Array) -> Value:
        """An input, some of its dims open: named for themselves, or for their size."""
        name = f"x{len(self._feeds)}"
        kind = int(self._rng.integers(4))
        shape: list[int | str | None] = list(array.shape)
        for axis, size in enumerate(array.shape):
            if kind == 1 or (kind == 2 and self._chance(0.5)):
                shape[axis] = f"d{size}"
            elif kind == 3 and self._chance(0.7):
                shape[axis] = f"{name}_{axis}"
        self._feeds[name] = array
        return self._graph.add_input(ValueInfo(name, TensorType(DType.from_numpy(array.dtype), tuple(shape))))

    def _check(self, op: str, domain: str, inputs: list[Value | None], attributes: frozenset[str]) -> None:
        """Makes sure that the standard allows the node at this opset."""
        dtypes = [None if v is None else DType.from_numpy(self._arrays[v].dtype) for v in inputs]
        names = tuple(None if dtype is None else dtype.name.lower() for dtype in dtypes)
        if not domain and not admits(op, domain, self._graph.opset(), names, attributes):
            raise Barren(f"no such {op} at opset {self._graph.opset()}")

    def _run(self, node: Node) -> None:
        inputs = [None if v is None else self._arrays[v] for v in node.inputs]
        results: list[Any] = evaluate(self._graph, node, inputs)
        for index, result in enumerate(results):
            if isinstance(result, np.ndarray):
                self._arrays[node.value(index)] = result

    # ---------------------------------------------------------------- around it

    def _finish(self, root: Node) -> None:
        """Outputs: the root's, at times an intermediate, one behind a further user, one behind a body."""
        graph, rng = self._graph, self._rng
        wanted = [root.value(i) for i in range(len(root.outputs)) if root.value(i) in self._arrays]
        inner = [value for value in self._inner[:-1] if value in self._arrays]
        for value in inner:
            if rng.random() < 0.08:
                wanted.append(value)
            elif rng.random() < 0.08:
                wanted.append(self._used_again(value))
            elif rng.random() < 0.04:
                wanted.append(self._captured(value))
        if not wanted:
            raise Barren("nothing comes out")
        wanted = list(dict.fromkeys(wanted))
        graph.set_outputs(wanted, [self._declared(f"y{i}", value) for i, value in enumerate(wanted)])

    def _declared(self, name: str, value: Value) -> ValueInfo:
        array = self._arrays[value]
        return ValueInfo(name, TensorType(DType.from_numpy(array.dtype), (None,) * array.ndim))

    def _used_again(self, value: Value) -> Value:
        made = self._graph.add("Identity", (value,)).value()
        self._arrays[made] = self._arrays[value]
        return made

    def _captured(self, value: Value) -> Value:
        """The output of an If of which one branch reads the value."""
        then, other = (Graph(name) for name in ("then", "else"))
        inside = then.add_capture("")
        then.set_outputs([then.add("Identity", (inside,)).value()], [self._declared("t", value)])
        other.set_outputs([other.add_constant(self._arrays[value])], [self._declared("e", value)])
        condition = self._input(np.asarray(True))
        self._arrays[condition] = np.asarray(True)
        branches = {"then_branch": then, "else_branch": other}
        made = self._graph.add("If", (condition,), branches, captures=(value,)).value()
        self._arrays[made] = self._arrays[value]
        return made
