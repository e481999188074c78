"""What is not free to be anything is computed for a check, not drawn."""

from __future__ import annotations

import numpy as np
import pytest

from optimizer.io import parse
from optimizer.ir import Graph, Tensor
from optimizer.rewrite import Context, Group, Pipeline, Registry, graph_optimizer, pass_of
from optimizer.verify import LocalCheck

STEPS = 12


def chain(first: str, op: str) -> str:
    """``t0`` and then ``STEPS`` operators in a row, up to ``t12``."""
    steps = "".join(f"t{i + 1} = {op} (t{i}) " for i in range(STEPS))
    return f"{first} {steps}"


CONSTANT = f"""<ir_version: 9, opset_import: ["" : 20]>
    g (float[N, 4] x) => (float[N, 4] y) {{
        {chain("c = Constant <value = float[4] {0.1, 0.2, 0.3, 0.4}> () t0 = Neg (c)", "Sin")}
        y = Add (x, t{STEPS}) }}"""

SIZES = f"""<ir_version: 9, opset_import: ["" : 20]>
    g (float[N, 4] x) => (float y) {{
        s = Shape <start = 0, end = 1> (x)
        n = Squeeze (s)
        {chain("t0 = Cast <to = 1> (n)", "Sqrt")}
        u0 = Cast <to = 1> (n)
        {"".join(f"u{i + 1} = Sqrt (u{i}) " for i in range(STEPS))}
        y = Sub (t{STEPS}, u{STEPS}) }}"""


def rejected(text: str, change) -> list[str]:
    """What the check says of a pass that calls ``change(graph, last)`` on what the chain ends in."""

    @graph_optimizer(tag="E2", registry=Registry(), name="change")
    def pass_(graph: Graph) -> None:
        (last,) = [node for node in graph.nodes if node.outputs[0].name == f"t{STEPS}"]
        change(graph, last)

    ctx = Context(parse(text))
    ctx.check = LocalCheck()
    Pipeline([Group("test", (pass_of(pass_),))], repeat=False).run(ctx)
    assert ctx.journal.entries or ctx.rejected
    return [item.fault for item in ctx.rejected]


def folded(factor: float):
    def change(graph: Graph, last) -> None:
        value = -np.float64(np.array([0.1, 0.2, 0.3, 0.4], np.float32))
        for _ in range(STEPS):
            value = np.sin(value)
        graph.replace_uses(last.value(), graph.add_constant(Tensor.of((value * factor).astype(np.float32))))

    return change


def merged(name: str):
    def change(graph: Graph, last) -> None:
        (other,) = [node for node in graph.nodes if node.outputs[0].name == name]
        graph.replace_uses(last.value(), other.value())

    return change


@pytest.mark.parametrize(
    ("text", "change", "wrong"),
    [
        (CONSTANT, folded(1.0), False),
        (CONSTANT, folded(1.01), True),
        (SIZES, merged(f"u{STEPS}"), False),
        (SIZES, merged(f"u{STEPS - 1}"), True),
    ],
    ids=["folded", "folded-wrongly", "merged", "merged-wrongly"],
)
def test_long_chains_are_followed_to_where_they_come_from(text: str, change, wrong: bool) -> None:
    assert bool(rejected(text, change)) is wrong


AREA = f"""<ir_version: 9, opset_import: ["" : 20]>
    g (float[N, M] x) => (int64 y) {{
        s = Shape <start = 0, end = 1> (x)
        t = Shape <start = 1, end = 2> (x)
        n = Squeeze (s)
        m = Squeeze (t)
        t{STEPS} = Mul (n, m)
        y = Neg (t{STEPS}) }}"""


def in_32_bits(graph: Graph, last) -> None:
    narrow = [graph.add("Cast", [value], {"to": 6}).value() for value in last.inputs]
    product = graph.add("Mul", narrow).value()
    graph.replace_uses(last.value(), graph.add("Cast", [product], {"to": 7}).value())


def test_sizes_of_inputs_may_be_anything() -> None:
    """Two large sizes have a product that leaves 32 bits, but no tensor that large is made to see it."""
    assert rejected(AREA, in_32_bits)
