"""Constant folding: what depends on constants alone is computed once, here.

Whole cones are folded at once: only the values that the rest of the graph reads become constants, so
a large intermediate costs nothing. Where the growth budget does not allow one, its operator stays
and the search goes on with its operands.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator

import numpy as np

from optimizer.ir import DType, Graph, Node, OptimizerError, Tensor, Value
from optimizer.rewrite import Context, Exactness, ScopePass
from optimizer.runtime import Options, evaluate, is_exact, is_foldable
from passes.dce import drop_unused_captures
from passes.results import only_names_results

NEVER = frozenset({"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"})
"""Runtimes recognize these around weights; folding them would undo a quantization."""

LARGEST = 1 << 30
"""Bytes above which an intermediate result is not computed."""

_OPTIONS = Options(max_loop_iterations=10_000, deadline_s=60)
_INTEGERS = (DType.INT64, DType.INT32, DType.BOOL)


class _Unfoldable(Exception):
    """A node turned out not to be computable."""

    def __init__(self, node: Node, reason: str) -> None:
        super().__init__(reason)
        self.node, self.reason = node, reason


def fold(ctx: Context, path: tuple[str, ...], graph: Graph) -> bool:
    """Add(1, 2) -> 3, wherever all operands are known. O(nodes), and the work of the folded nodes."""
    changed = False
    barriers: set[int] = set()
    while True:
        folding = _Folding(ctx, path, graph, barriers)
        try:
            return folding.run() or changed
        except _Unfoldable as failure:
            ctx.stats["fold"].refused[failure.reason] += 1
            barriers.add(failure.node.id)
            changed |= folding.changed


class _Folding:
    """One sweep over one scope.

    Attributes:
        cones: for each node that depends on constants alone, about how many nodes feed it.
    """

    def __init__(self, ctx: Context, path: tuple[str, ...], graph: Graph, barriers: set[int]) -> None:
        self.ctx, self.path, self.graph, self.barriers = ctx, path, graph, barriers
        self.facts = ctx.facts(graph)
        self.changed = False
        self.cones: dict[int, int] = {}
        self.exact: dict[int, bool] = {}
        self.results: dict[int, list[np.ndarray | None]] = {}
        self.waiting: dict[int, int] = {}

    def run(self) -> bool:
        """Folds what the budget allows."""
        self._find()
        for value in self._affordable():
            self._replace(value)
        return self.changed

    # ---------------------------------------------------------------- which nodes

    def _find(self) -> None:
        for node in self.graph.topological():
            if node.id not in self.barriers and not self.ctx.is_kept(node) and self._is_known(node):
                feeding = {v.node for v in node.operands if v is not None} & self.cones.keys()
                self.cones[node.id] = 1 + sum(self.cones[key] for key in feeding)
                for key in feeding:
                    self.waiting[key] = self.waiting.get(key, 0) + 1

    def _is_known(self, node: Node) -> bool:
        if node.op_type in NEVER or not self.ctx.allows("fold", self.path, self.graph, node):
            return False
        if only_names_results(self.graph, node):
            return False
        if self._contents(node) is not None:
            self.exact[node.id] = True
            return True
        for value in node.operands:
            if value is not None and value.node not in self.cones and self.graph.tensor(value) is None:
                return False
        functions = self.ctx.model.functions
        if self._too_large(node) or not is_foldable(node, self.graph, functions):
            return False
        exact = is_exact(node, self.graph, functions)
        if not exact and not self.ctx.settings.admits(Exactness.E2):
            return False
        self.exact[node.id] = exact and all(self.exact.get(v.node, True) for v in node.operands if v)
        return True

    def _contents(self, node: Node) -> np.ndarray | None:
        """What the analysis knows the only output to hold."""
        if len(node.outputs) != 1:
            return None
        fact = self.facts.of(node.value())
        if fact.value is None or fact.dtype not in _INTEGERS:
            return None
        plain = [
            item if isinstance(item, bool) else getattr(item, "value", None) for item in fact.value.items
        ]
        if None in plain:
            return None
        return np.array(plain, dtype=fact.dtype.numpy).reshape(fact.value.shape)

    def _too_large(self, node: Node) -> bool:
        return any(self._nbytes(node.value(i)) > LARGEST for i in range(len(node.outputs)))

    def _nbytes(self, value: Value) -> int:
        """Size of a value, 0 where its shape is not known."""
        fact = self.facts.of(value)
        shape = fact.static_shape
        if shape is None or fact.dtype is None:
            return 0
        return (math.prod(shape) * fact.dtype.bits + 7) // 8

    # ---------------------------------------------------------------- which values

    def _affordable(self) -> Iterator[Value]:
        """The values to make constant, cheapest per removed node first, ties in topological order."""
        place = {key: index for index, key in enumerate(self.cones)}
        heap = [self._rank(value, place) for key in self.cones for value in self._read_outside(key)]
        heapq.heapify(heap)
        seen = {item[2] for item in heap}
        while heap:
            value = heapq.heappop(heap)[2]
            if value not in self.graph or not self.graph.has_uses(value):
                continue
            size = self._nbytes(value)
            if self.ctx.may_grow(size) or self.ctx.may_grow(size - self._released(value)):
                yield value
                continue
            self.ctx.stats["fold"].refused["the result exceeds the size limit"] += 1
            for operand in self.graph.node(value).operands:
                if operand is not None and operand.node in self.cones and operand not in seen:
                    seen.add(operand)
                    heapq.heappush(heap, self._rank(operand, place))

    def _rank(self, value: Value, place: dict[int, int]) -> tuple[float, int, Value]:
        return self._nbytes(value) / self.cones[value.node], place[value.node], value

    def _read_outside(self, key: int) -> list[Value]:
        """The outputs of a node that something reads which is not folded."""
        node = self.graph.node(key)
        values = [node.value(i) for i in range(len(node.outputs))]
        return [v for v in values if any(use.node not in self.cones for use in self.graph.uses(v))]

    def _released(self, value: Value) -> int:
        """Bytes of the constants that nothing reads any more once ``value`` is a constant."""
        dead: set[int] = set()
        stack, freed = [value.node], 0
        while stack:
            key = stack.pop()
            if key in dead or (key != value.node and any(user not in dead for user in self.graph.users(key))):
                continue
            dead.add(key)
            node = self.graph.node(key)
            tensor = self.graph.tensor(node.value()) if node.outputs else None
            freed += tensor.nbytes if tensor is not None else 0
            stack.extend(v.node for v in node.operands if v is not None)
        return freed

    # ---------------------------------------------------------------- the work

    def _replace(self, value: Value) -> None:
        node = self.graph.node(value)
        array = self._compute(value)
        tag = Exactness.E0 if self.exact[node.id] else Exactness.E2
        with self.ctx.application("fold", self.graph, node, tag, self.path) as entry:
            constant = self.graph.add_constant(Tensor.of(array))
            self.ctx.redirect(self.graph, value, constant)
            entry.pairs.append((value, constant))
            self.ctx.erase_dead(self.graph, node.id)
        if self.ctx.accept(entry):
            self.ctx.stats["fold"].fired += 1
            self.changed = True

    def _compute(self, wanted: Value) -> np.ndarray:
        """The elements of a value; what nothing else waits for is forgotten on the way."""
        stack = [wanted.node]
        while stack:
            key = stack[-1]
            node = self.graph.node(key)
            missing = [
                v.node
                for v in node.operands
                if v is not None and v.node in self.cones and v.node not in self.results
            ]
            if key in self.results or not missing or self._contents(node) is not None:
                stack.pop()
                if key not in self.results:
                    self.results[key] = self._run(node)
            else:
                stack.extend(missing)
        made = self.results[wanted.node][wanted.output]
        if not isinstance(made, np.ndarray):
            raise _Unfoldable(self.graph.node(wanted), "the result is no tensor")
        if not self.waiting.get(wanted.node):
            del self.results[wanted.node]
        return made

    def _run(self, node: Node) -> list[np.ndarray | None]:
        contents = self._contents(node)
        if contents is not None:
            return [contents]
        given = [None if v is None else self._elements(v) for v in node.operands]
        split = len(node.inputs)
        try:
            made = evaluate(
                self.graph,
                node,
                given[:split],
                captures=given[split:],
                functions=self.ctx.model.functions,
                options=_OPTIONS,
            )
        except MemoryError:
            raise _Unfoldable(node, "there is not enough memory to compute it") from None
        except OptimizerError:
            raise _Unfoldable(node, "it cannot be computed") from None
        self._require_finite(node, given, made)
        for key in {v.node for v in node.operands if v is not None} & self.cones.keys():
            self.waiting[key] -= 1
            if not self.waiting[key]:
                self.results.pop(key, None)
        return made

    def _elements(self, value: Value) -> np.ndarray | None:
        constant = self.graph.const(value)
        return self.results[value.node][value.output] if constant is None else constant

    def _require_finite(
        self, node: Node, given: list[np.ndarray | None], made: list[np.ndarray | None]
    ) -> None:
        if all(map(_is_finite, made)):
            return
        attributes = [
            a.value.array if isinstance(a.value, Tensor) else a.value for a in node.attributes.values()
        ]
        if all(map(_is_finite, given)) and all(map(_is_finite, attributes)):
            raise _Unfoldable(node, "the result is not finite")


def _is_finite(value: object) -> bool:
    if isinstance(value, (float, np.ndarray)) and np.asarray(value).dtype.kind in "fV":
        array = np.asarray(value)
        wide = array if array.dtype.kind == "f" else array.astype(np.float32)
        return bool(np.isfinite(wide).all())
    return True


# -------------------------------------------------------------------- constants that bodies read

SMALL = 4096
"""Bytes of a constant that may be held in a body and outside of it as well."""


def bind(ctx: Context, path: tuple[str, ...], graph: Graph) -> bool:
    """Gives each body the constants that it reads from outside, so that they can be folded there."""
    changed = False
    for node in graph.topological():
        if not any(graph.tensor(value) is not None for value in node.captures):
            continue
        if ctx.is_kept(node) or not ctx.allows("bind-constants", path, graph, node):
            continue
        with ctx.application("bind-constants", graph, node, scope=path) as entry:
            for position, (_, body) in enumerate(node.bodies):
                for formal, outer in zip(body.captures, node.captures_of(position), strict=True):
                    tensor = graph.tensor(outer)
                    if tensor is not None and (tensor.nbytes <= SMALL or graph.only_use(outer) is not None):
                        ctx.redirect(body, formal, body.add_constant(tensor))
            drop_unused_captures(graph, node)
            for outer in node.captures:
                ctx.erase_dead(graph, outer.node)
        if entry.changes and ctx.accept(entry):
            ctx.stats["bind-constants"].fired += 1
            changed = True
    return changed


BIND = ScopePass("bind-constants", bind)
FOLD = ScopePass("fold", fold)
