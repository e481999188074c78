"""Staged edits: a rule builds new nodes here; nothing touches the graph until it returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast, overload

import numpy as np

from optimizer.analysis import Fact
from optimizer.ir import DType, Graph, Node, Origin, Tensor, Value
from optimizer.rewrite.rule import Refusal, Replacement

if TYPE_CHECKING:
    from optimizer.rewrite.context import Context
    from optimizer.rewrite.match import Match


@dataclass(frozen=True, slots=True)
class _StagedNode:
    op_type: str
    inputs: tuple[Value | None, ...]
    attributes: dict[str, Any]
    outputs: int
    domain: str
    captures: tuple[Value, ...]


class Rewriter:
    """Builds what replaces a match. Values it returns are placeholders until the commit."""

    def __init__(self, match: Match) -> None:
        self._match = match
        self._staged: list[_StagedNode | Tensor] = []
        self._others: list[tuple[Value, Value]] = []

    @property
    def op(self) -> _OpStager:
        """``rw.op.Conv(x, w, b, strides=[2, 2])`` stages a node and returns its output(s)."""
        return _OpStager(self)

    def const(self, array: np.ndarray | Sequence[Any] | float, like: Value | DType | None = None) -> Value:
        """Stages a constant, rounded once to the dtype of ``like``.

        Raises:
            Refusal: the dtype of ``like`` is unknown, or a float result is not representable
                there (overflow, new subnormals in half precision) or not finite at all.
        """
        array = np.asarray(array)
        if like is not None:
            dtype = like if isinstance(like, DType) else self._match.dtype(like)
            self._match.require(dtype, "element type is not known")
            assert dtype is not None
            array = _round_once(array, dtype)
        return self._stage(Tensor.of(array))

    def tensor(self, tensor: Tensor) -> Value:
        """Stages a constant that is already a tensor."""
        return self._stage(tensor)

    def replace_too(self, old: Value, new: Value) -> None:
        """Has the users of ``old``, which is not of the root, read ``new`` as well.

        Nothing that ``new`` depends on may read ``old``.
        """
        self._others.append((old, new))

    def _stage(self, item: _StagedNode | Tensor) -> Value:
        self._staged.append(item)
        return Value(-len(self._staged))

    def commit(self, ctx: Context, replacement: Replacement) -> list[tuple[Value, Value]]:
        """Puts the staged nodes into the graph and redirects the uses of the root and of what goes with it.

        Returns:
            The (old, new) pairs of values.

        Raises:
            Refusal: element type, shape or rank of a new value contradict the old one's.
        """
        graph, root = self._match.graph, self._match.root
        new = [replacement] if isinstance(replacement, Value) else list(replacement)
        made = self._materialize(ctx, graph) if self._staged else {}
        pairs = []
        for index, value in enumerate(new):
            if value is not None:
                pairs.append((root.value(index), _resolve(value, made)))
        pairs += [(old, _resolve(value, made)) for old, value in self._others]
        facts = ctx.facts(graph)
        for old, fresh in pairs:
            check_replacement(facts.of(old), facts.of(fresh))
        for old, fresh in pairs:
            ctx.redirect(graph, old, fresh)
        for key in (*(node.id for node in self._match.nodes), *(old.node for old, _ in self._others)):
            ctx.erase_dead(graph, key)
        return pairs

    def _materialize(self, ctx: Context, graph: Graph) -> dict[int, int]:
        """Adds the staged nodes that the result needs; placeholder id -> vertex id."""
        origin = Origin(rule=ctx.journal.current_rule, sources=_names(self._match.nodes))
        made: dict[int, int] = {}
        for position, item in enumerate(self._staged, start=1):
            if isinstance(item, Tensor):
                made[-position] = graph.add_constant(item).node
                continue
            inputs = [None if v is None else _resolve(v, made) for v in item.inputs]
            captures = [_resolve(v, made) for v in item.captures]
            node = graph.add(
                item.op_type,
                inputs,
                item.attributes,
                item.outputs,
                domain=item.domain,
                captures=captures,
                origin=origin,
            )
            made[-position] = node.id
        return made


class _Stage(Protocol):
    """Stages one operator: a single output comes back as a value, several as a tuple."""

    @overload
    def __call__(
        self,
        *inputs: Value | None,
        outputs: Literal[1] = 1,
        domain: str = "",
        captures: Sequence[Value] = (),
        **attributes: Any,
    ) -> Value: ...
    @overload
    def __call__(
        self,
        *inputs: Value | None,
        outputs: int,
        domain: str = "",
        captures: Sequence[Value] = (),
        **attributes: Any,
    ) -> tuple[Value, ...]: ...


class _OpStager:
    """Every operator as a function that stages it."""

    def __init__(self, rewriter: Rewriter) -> None:
        self._rewriter = rewriter

    def __getattr__(self, op_type: str) -> _Stage:
        def stage(
            *inputs: Value | None,
            outputs: int = 1,
            domain: str = "",
            captures: Sequence[Value] = (),
            **attributes: Any,
        ) -> Value | tuple[Value, ...]:
            trimmed = list(inputs)
            while trimmed and trimmed[-1] is None:
                trimmed.pop()
            node = _StagedNode(op_type, tuple(trimmed), attributes, outputs, domain, tuple(captures))
            first = self._rewriter._stage(node)
            return first if outputs == 1 else tuple(Value(first.node, i) for i in range(outputs))

        return cast(_Stage, stage)


def check_replacement(old: Fact, new: Fact) -> None:
    """Refuses a replacement whose type is proven different, or is known less well.

    Raises:
        Refusal: with the reason.
    """
    if old.dtype is not None and new.dtype is not None and old.dtype != new.dtype:
        raise Refusal(f"element type would change from {old.dtype.name} to {new.dtype.name}")
    if old.shape is None:
        return
    if new.shape is None:
        raise Refusal("the rank of the result would no longer be known")
    if len(old.shape) != len(new.shape):
        raise Refusal(f"rank would change from {len(old.shape)} to {len(new.shape)}")
    for axis, (a, b) in enumerate(zip(old.shape, new.shape, strict=True)):
        if a is not b and a.eq(b) is False:
            raise Refusal(f"dim {axis} would change from {a} to {b}")


def _resolve(value: Value, made: dict[int, int]) -> Value:
    return Value(made[value.node], value.output) if value.node < 0 else value


def _names(nodes: Sequence[Node]) -> tuple[str, ...]:
    return tuple(node.name for node in nodes if node.name)


def _round_once(array: np.ndarray, dtype: DType) -> np.ndarray:
    if array.dtype == dtype.numpy:
        return array
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        rounded = array.astype(dtype.numpy)
    if dtype.is_float and array.size:
        back = rounded.astype(np.float64)
        if not np.isfinite(back).all():
            raise Refusal(f"a folded constant is not finite in {dtype.name}")
        if dtype is DType.FLOAT16:
            tiny = np.abs(np.asarray(array, np.float64))
            if ((tiny > 0) & (tiny < float(np.finfo(np.float16).tiny))).any():
                raise Refusal("a folded constant is subnormal in FLOAT16")
    return rounded
