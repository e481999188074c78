"""What a Softmax reads, taken apart: a product, its scale, its bound, and what is added or hidden."""

from __future__ import annotations

from dataclasses import dataclass, replace

from optimizer.ir import Node, Value
from optimizer.rewrite import Match
from passes.known import LOOK_BACK


@dataclass(frozen=True, slots=True)
class Hidden:
    """Scores that a condition replaces by one number.

    Attributes:
        condition: the condition of the Where.
        where_true: whether they are hidden where it is true, or where it is false.
        fill: the number.
    """

    condition: Value
    where_true: bool
    fill: float


@dataclass(frozen=True, slots=True)
class Scores:
    """``bound * tanh(scale * product)``, or ``scale * product`` without a bound, and what comes on top.

    Attributes:
        product: the MatMul of queries and keys.
        added: what is added, the innermost first.
    """

    product: Node
    scale: float = 1.0
    bound: float | None = None
    added: tuple[Value, ...] = ()
    hidden: Hidden | None = None

    @property
    def is_bare(self) -> bool:
        """Whether nothing is added or hidden."""
        return not self.added and self.hidden is None


def scores_of(m: Match, value: Value | None, depth: int = LOOK_BACK) -> Scores | None:
    """``value`` taken apart; ``None`` where no product is found, or a part has other readers too."""
    node = m.producer(value)
    if node is None or value is None or not depth or not m.single_use(value):
        return None
    if node.op_type == "MatMul":
        return Scores(node)
    if node.op_type == "Tanh":
        inner = scores_of(m, node.input(0), depth - 1)
        return replace(inner, bound=1.0) if inner and inner.is_bare and inner.bound is None else None
    if node.op_type == "Add":
        for operand, other in zip(node.inputs, node.inputs[::-1], strict=True):
            inner = scores_of(m, operand, depth - 1)
            if inner is not None and other is not None:
                return replace(inner, added=(*inner.added, other))
    if node.op_type in ("Mul", "Div"):
        return _scaled(m, node, depth)
    if node.op_type == "Where":
        kept, hidden = hidden_by(m, node)
        inner = scores_of(m, kept, depth - 1)
        return replace(inner, hidden=hidden) if inner and inner.hidden is None else None
    return None


def _scaled(m: Match, node: Node, depth: int) -> Scores | None:
    value, factor = multiple_of(m, node)
    inner = scores_of(m, value, depth - 1)
    if inner is None or not inner.is_bare or factor is None:
        return None
    if inner.bound is None:
        return replace(inner, scale=inner.scale * factor)
    return replace(inner, bound=inner.bound * factor)


def multiple_of(m: Match, node: Node) -> tuple[Value | None, float | None]:
    """``(x, c)`` where a Mul or Div computes ``x * c`` with one number c, in the shape of x."""
    first, second = node.inputs
    divides = node.op_type == "Div"
    for value, other in ((first, second), *(() if divides else ((second, first),))):
        number = number_of(m, other)
        if number is None or m.rank(value) is None or m.rank(value) != m.rank(node.value()):
            continue
        if number or not divides:
            return value, 1 / number if divides else number
    return None, None


def unscaled(m: Match, value: Value | None) -> tuple[Value, float]:
    """What a value is a multiple of, by one number."""
    assert value is not None
    node = m.producer(value)
    if node is None or node.op_type not in ("Mul", "Div") or not m.single_use(value):
        return value, 1.0
    inner, factor = multiple_of(m, node)
    return (value, 1.0) if inner is None or factor is None else (inner, factor)


def number_of(m: Match, value: Value | None) -> float | None:
    """The only element of a constant."""
    tensor = m.tensor(value)
    if tensor is None or tensor.size != 1:
        return None
    return float(m.f64(value).reshape(()))


def hidden_by(m: Match, node: Node) -> tuple[Value | None, Hidden | None]:
    """What a Where passes on, and what it hides by a number; twice ``None`` where there is no number."""
    condition, first, second = node.inputs
    for kept, other, where_true in ((first, second, False), (second, first, True)):
        fill = number_of(m, other)
        if fill is not None and condition is not None:
            return kept, Hidden(condition, where_true, fill)
    return None, None
