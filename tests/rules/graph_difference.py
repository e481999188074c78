"""The first difference of two graphs, up to names and ids."""

from __future__ import annotations

from collections.abc import Sequence

from optimizer.ir import Attribute, AttributeKind, Graph, Node, Value

ANY = "any_constant_"
"""A constant of the wanted graph whose name begins so stands for any constant."""


def difference(got: Graph, want: Graph) -> str:
    """The first difference of two graphs up to names and ids; empty where they are the same."""
    return _Comparison(got, want).run()


class _Comparison:
    """Walks two graphs from their outputs in step."""

    def __init__(self, got: Graph, want: Graph) -> None:
        self.got, self.want = got, want
        self.twins: dict[int, int] = {}
        self.captured: list[tuple[int, int]] = []

    def run(self) -> str:
        if len(self.got.outputs) != len(self.want.outputs):
            return f"{len(self.got.outputs)} outputs instead of {len(self.want.outputs)}"
        fault = self._all(self.got.outputs, self.want.outputs)
        seen = sum(self.got.node(key).is_operator for key in self.twins)
        return fault or (f"{len(self.got) - seen} nodes are left dead" if seen != len(self.got) else "")

    def _all(self, left: Sequence[Value | None], right: Sequence[Value | None]) -> str:
        return next(filter(None, (self._value(a, b) for a, b in zip(left, right, strict=True))), "")

    def _value(self, a: Value | None, b: Value | None) -> str:
        while b is not None and self.want.node(b).op == "Identity":
            b = self.want.node(b).inputs[0]
        if a is None or b is None:
            return "" if a is b else f"operand {a} instead of {b}"
        left, right = self.got.node(a), self.want.node(b)
        if a.node in self.twins:
            return (
                ""
                if self.twins[a.node] == b.node and a.output == b.output
                else f"{self._show(left)} is shared"
            )
        if a.output != b.output or left.op != right.op or len(left.inputs) != len(right.inputs):
            return f"{self._show(left)}:{a.output} instead of {self._show(right, self.want)}:{b.output}"
        self.twins[a.node] = b.node
        return self._vertex(left, right) or self._all(left.inputs, right.inputs)

    def _vertex(self, left: Node, right: Node) -> str:
        if left.op_type == "Constant" and not left.is_operator:
            same = right.outputs[0].name.startswith(ANY) or _same(
                left.attributes["value"], right.attributes["value"]
            )
            return (
                "" if same else f"constant {left.attr('value').array} instead of {right.attr('value').array}"
            )
        if left.op_type == "Capture" and not left.is_operator:
            where = self.got.captures.index(left.value()), self.want.captures.index(right.value())
            self.captured.append(where)
            return ""
        if not left.is_operator:
            return "" if left.outputs[0].name == right.outputs[0].name else f"input {left.outputs[0].name}"
        if len(left.outputs) != len(right.outputs):
            return f"{self._show(left)} has {len(left.outputs)} outputs instead of {len(right.outputs)}"
        if left.attributes.keys() != right.attributes.keys():
            return f"{self._show(left)} has {sorted(left.attributes)} instead of {sorted(right.attributes)}"
        for name, attribute in left.attributes.items():
            if attribute.kind is not AttributeKind.GRAPH and not _same(attribute, right.attributes[name]):
                return f"{self._show(left)} {name}={attribute.value} instead of {right.attr(name)}"
        return self._bodies(left, right)

    def _bodies(self, left: Node, right: Node) -> str:
        for position, ((_, a), (_, b)) in enumerate(zip(left.bodies, right.bodies, strict=True)):
            inner = _Comparison(a, b)
            fault = inner.run()
            outer_a, outer_b = left.captures_of(position), right.captures_of(position)
            for i, j in inner.captured:
                fault = fault or self._value(outer_a[i], outer_b[j])
            if fault:
                return fault
        return ""

    def _show(self, node: Node, graph: Graph | None = None) -> str:
        return (graph or self.got).label(node)


def _same(a: Attribute, b: Attribute) -> bool:
    if a.kind is AttributeKind.TENSOR and b.kind is AttributeKind.TENSOR:
        return bool(a.value.digest == b.value.digest)
    return a.kind == b.kind and a.value == b.value and a.reference == b.reference
