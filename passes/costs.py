"""What parts of a graph cost at run time, reckoned from a table: operators, and conversions of images.

onnxruntime keeps images in blocks of channels from one convolution to the next; an operator in between
that it has no blocked form of costs a conversion on both sides. Dimensions that are open count as
``NOMINAL``, a batch as one. Nothing is timed.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from optimizer.analysis import Dim
from optimizer.ir import DType, Graph, Node, Value
from optimizer.rewrite import Context
from passes.cost_table import PER_NODE, PER_REORDER, PER_UNIT
from passes.permutable import REDUCTIONS, VIEWS, op_types_in

NOMINAL = 64
"""Size taken for a dimension that is not known."""
BLOCK = 8
"""Channels of one block."""
UNKNOWN = 0.2
"""Nanoseconds for an element of the result of an operator that the table does not have."""
DEEPEST = 48
"""How many operators are followed back to find out whether an image is blocked."""

POOLS = op_types_in("AveragePool MaxPool GlobalAveragePool GlobalMaxPool")
FOLLOWS = op_types_in(
    """Add BatchNormalization Clip Concat Dropout Gelu HardSigmoid HardSwish Identity LeakyRelu Mul Relu
    Resize Sigmoid Sum Tanh"""
)
"""What stays blocked where its operands are."""
OVER_OPERAND = REDUCTIONS | op_types_in("GlobalAveragePool GlobalMaxPool ArgMax ArgMin")
ON_THE_WAY = op_types_in("Relu LeakyRelu Sigmoid Tanh Clip HardSigmoid")
VARIADIC = op_types_in("Sum Mean Max Min")
FREE = VIEWS | op_types_in("Identity Shape Size Dropout")


class Costs:
    """The costs in one graph as it is now; made anew when the graph has changed."""

    def __init__(self, ctx: Context, graph: Graph) -> None:
        self._graph, self._facts, self._batches = graph, ctx.facts(graph), batches_of(ctx)
        self._blocked: dict[Value, bool] = {}

    def of(self, keys: Iterable[int]) -> float:
        """Nanoseconds for some nodes and for the conversions of what they read and make."""
        nodes = [self._graph.node(key) for key in keys]
        nodes = [node for node in nodes if node.is_operator]
        values = {v for node in nodes for v in node.inputs if v is not None and self._graph.tensor(v) is None}
        values |= {node.value(i) for node in nodes for i in range(len(node.outputs))}
        return sum(map(self._work, nodes)) + sum(map(self._conversion, values))

    # ---------------------------------------------------------------- operators

    def _work(self, node: Node) -> float:
        if self._is_part_of_conv(node):
            return 0.0
        if node.op_type in FREE:
            return PER_NODE
        return PER_NODE + PER_UNIT.get(self.kind_of(node), UNKNOWN) * self._units(node)

    def _is_part_of_conv(self, node: Node) -> bool:
        """Whether runtimes do it on the way, as the last step of a convolution."""
        value = node.input(0)
        if node.op_type not in ON_THE_WAY or value is None or self._graph.only_use(value) is None:
            return False
        return self._graph.node(value.node).op_type == "Conv"

    def kind_of(self, node: Node) -> str:
        """What the table calls it: its operator, or a special case of that."""
        special = f"{node.op_type}:{self._variant(node)}"
        return special if special in PER_UNIT else node.op_type

    def _variant(self, node: Node) -> str:
        """Which special case of its operator it is; empty for the usual one."""
        kind = node.op_type
        if kind == "Conv":
            shape = self._sizes(node.input(1))
            depthwise = node.attr("group", 1) == (shape or [0])[0] > 1
            kinds = ["sequence"] * (len(shape) == 3) + ["depthwise"] * depthwise
            return "-".join(kinds)
        if kind == "Softmax":
            rank = len(self._sizes(node.value()))
            return "" if node.attr("axis", -1) % max(rank, 1) == rank - 1 else "inner"
        if kind == "Where":
            if all(self._elements(v) == 1 for v in node.inputs[1:]):
                return "scalars"
            return "mask" if self._elements(node.input(0)) < self._elements(node.value()) else ""
        if kind == "Pow":
            exponent = self._graph.const(node.input(1))
            if exponent is None or exponent.size != 1:
                return ""
            return {0.5: "root", 2.0: "square"}.get(float(exponent.reshape(())), "")
        if kind == "Resize":
            return "" if node.attr("coordinate_transformation_mode") == "asymmetric" else "half_pixel"
        return "bool" if kind == "Cast" else ""

    def _units(self, node: Node) -> float:
        kind, made = node.op_type, sum(self._elements(node.value(i)) for i in range(len(node.outputs)))
        if kind in ("Conv", "ConvTranspose"):
            weights = self._sizes(node.input(1))
            data = node.value() if kind == "Conv" else node.input(0)
            return self._elements(data) * prod(weights[1:])
        if kind in ("MatMul", "Gemm"):
            first = self._sizes(node.input(0)) or [NOMINAL]
            return made * first[0 if node.attr("transA", 0) else -1]
        if kind == "Einsum":
            terms = str(node.attr("equation", "")).replace(" ", "").partition("->")[0].split(",")
            sizes = [
                dict(zip(t, self._sizes(v), strict=False)) for t, v in zip(terms, node.inputs, strict=False)
            ]
            return prod({label: size for found in sizes for label, size in found.items()}.values())
        if kind in VARIADIC:
            return made * max(len(node.inputs) - 1, 1)
        if kind in OVER_OPERAND:
            return self._elements(node.input(0))
        return made * prod(node.attr("kernel_shape", ())) if kind in POOLS else made

    def _sizes(self, value: Value | None) -> list[int]:
        shape = None if value is None else self._facts.shape(value)
        return [nominal(dim, self._batches) for dim in shape or ()]

    def _elements(self, value: Value | None) -> int:
        return prod(self._sizes(value))

    # ---------------------------------------------------------------- blocked images

    def _conversion(self, value: Value) -> float:
        """What it costs that some readers want a value blocked, or not, and it is otherwise."""
        blocked = self._is_blocked(value)
        wishes = {self._wants_blocked(self._graph.node(use.node)) for use in self._graph.uses(value)}
        return PER_REORDER * self._elements(value) if (not blocked) in wishes and self._fits(value) else 0.0

    def _fits(self, value: Value) -> bool:
        """Whether it is an image whose channels fill blocks."""
        shape, fact = self._facts.shape(value), self._facts.of(value)
        channels = shape[1].value if shape is not None and len(shape) == 4 else None
        return bool(channels) and fact.dtype is DType.FLOAT and not (channels or 0) % BLOCK

    def _wants_blocked(self, node: Node) -> bool | None:
        """Whether a reader wants blocks; ``None`` where it takes either."""
        if node.op_type == "Conv" or node.op_type in POOLS:
            return True
        return None if node.op_type in FOLLOWS and self._is_blocked(node.value()) else False

    def _is_blocked(self, value: Value, depth: int = 0) -> bool:
        if value not in self._blocked:
            self._blocked[value] = False  # should it be asked for again below
            node = self._graph.node(value.node)
            self._blocked[value] = (
                depth < DEEPEST and self._fits(value) and self._makes_blocks(node, depth + 1)
            )
        return self._blocked[value]

    def _makes_blocks(self, node: Node, depth: int) -> bool:
        if node.op_type == "Conv":
            return self._graph.tensor(node.input(1)) is not None
        if node.op_type in POOLS:
            return True
        if node.op_type not in FOLLOWS:
            return False
        if node.op_type == "Resize" and self._variant(node):
            return False
        if node.op_type in ("Add", "Sum") and any(self._graph.tensor(v) is not None for v in node.inputs):
            return False
        data = [v for v in node.inputs if v is not None and self._graph.tensor(v) is None]
        same = len({self._facts.shape(v) for v in data}) == 1 or node.op_type == "Concat"
        return bool(data) and same and all(self._is_blocked(v, depth) for v in data)


def batches_of(ctx: Context) -> frozenset[Dim]:
    """The first dimensions of the model's inputs."""
    graph = ctx.model.graph
    shapes = [ctx.facts(graph).shape(value) for value in graph.inputs]
    return frozenset(shape[0] for shape in shapes if shape)


def nominal(dim: Dim, batches: frozenset[Dim]) -> int:
    """A size to reckon with."""
    if dim.value is not None:
        return dim.value
    sizes = {
        atom: Dim.of(1 if Dim.lone(atom) in batches else max(NOMINAL // atom.divisor, 1))
        for atom in dim.leaves
    }
    known = dim.substitute(sizes).value
    return NOMINAL if known is None else max(known, 1)
