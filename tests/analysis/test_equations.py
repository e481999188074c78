"""What sizes must be equal for a model to run: where it is learnt, and where it must not be."""

from __future__ import annotations

import numpy as np
import pytest

from optimizer.analysis import Dim, Facts, SizeRange
from optimizer.analysis.equations import Equations
from optimizer.io import parse


def settled(text: str, dims: dict[str, SizeRange] | None = None, **constants: object) -> Facts:
    arrays = {name: np.array(value) for name, value in constants.items()}
    model = parse(f'<ir_version: 10, opset_import: ["" : 21]> {text}', constants=arrays)
    return Facts(model.graph, model.functions, dims=dims).settle()


def shapes(facts: Facts) -> list[str]:
    graph = facts.graph
    return [str(facts.of(value)) for value in (*graph.inputs, *graph.outputs)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "g (float[N, K] a, float[L, M] b) => (float y) { y = MatMul(a, b) }",
            ["float[N, K]", "float[K, M]", "float[N, M]"],
        ),
        (
            "g (float[K, N] a, float[L, M] b) => (float y) { y = Gemm<transA=1>(a, b) }",
            ["float[K, N]", "float[K, M]", "float[N, M]"],
        ),
        (
            "g (float[N, C, H] x, float[8, D, 3] w) => (float y) { y = Conv(x, w) }",
            ["float[N, C, H]", "float[8, C, 3]", "float[N, 8, H - 2]"],
        ),
        (
            "g (float[N, P] x) => (float y) { a = Constant<value_ints=[1]>() y = Squeeze(x, a) }",
            ["float[N, 1]", "float[N]"],
        ),
        (
            (
                "g (float[N, P] x) => (float y, float z) {"
                " s = Constant<value_ints=[3, 5]>() y, z = Split<axis=1>(x, s) }"
            ),
            ["float[N, 8]", "float[N, 3]", "float[N, 5]"],
        ),
        (
            (
                "g (float[S, B, I] x, float[1, 12, J] w, float[1, 12, 3] r, float[1, E, 3] h)"
                " => (float y, float z) { y, z = GRU<hidden_size=3>(x, w, r, , , h) u = Identity(y) }"
            ),
            [
                "float[S, B, I]",
                "float[1, 12, I]",
                "float[1, 12, 3]",
                "float[1, B, 3]",
                "float[S, 1, B, 3]",
                "float[1, B, 3]",
            ],
        ),
        (
            (
                "g (float[N, S] x, int64[1] k) => (float y) {"
                " f = Constant<value_ints=[4]>() t = Concat<axis=0>(k, f) y = Reshape(x, t) }"
            ),
            ["float[N, S]", "int64[1]", "float[((N*S)//4), 4]"],
        ),
    ],
)
def test_what_an_operator_asks_for_is_learnt_everywhere(text: str, expected: list[str]) -> None:
    facts = settled(text)
    assert shapes(facts) == expected
    assert not facts.warnings


def test_one_equation_leads_to_the_next() -> None:
    """The inner size of the second product is that of the first one's result."""
    facts = settled(
        "g (float[N, K] a, float[L, M] b, float[P] c) => (float y) {"
        " p = MatMul(a, b) q = MatMul(p, c) s = Shape(c) t = Shape(p) y = Expand(q, s) }"
    )
    assert shapes(facts)[1:3] == ["float[K, M]", "float[M]"]


@pytest.mark.parametrize(
    "text",
    [
        "g (float[N, K] a, float[L, M] b) => (float y) { y = Relu(a) z = MatMul(a, b) }",
        (
            "g (bool c, float[N, K] a, float[L, M] b) => (float y) {"
            " y = If(c) <then_branch = t () => (float u) { u = MatMul(a, b) },"
            " else_branch = e () => (float v) { v = Identity(a) }> }"
        ),
        (
            "g (int64 n, bool c, float[N, K] a, float[L, M] b) => (float y) {"
            " y = Loop(n, c, a) <body = l (int64 i, bool g, float[P, Q] u) => (bool h, float[P, Q] w) {"
            " h = Identity(g) z = MatMul(a, b) q = ReduceSum<keepdims=0>(z) w = Add(u, q) }> }"
        ),
    ],
    ids=["nothing needs it", "in a branch", "in a loop"],
)
def test_only_what_always_runs_counts(text: str) -> None:
    facts = settled(text)
    given = [shape for shape in shapes(facts) if "L" in shape]
    assert given == ["float[L, M]"]


@pytest.mark.parametrize(
    "text",
    [
        "g (float[N, 4] a, float[K, 4] b) => (float y) { y = Add(a, b) }",
        "g (float[N, 4] a, float[K, 4] b) => (float y) { s = Shape(b) y = Expand(a, s) }",
        "g (bool[N, 4] c, float[K, 4] b) => (float y) { y = Where(c, b, b) }",
        "g (float[P, N] a, float[Q, K] b) => (float y) { y = Concat<axis=0>(a, b) }",
        'g (float[2, N] a, float[K, 5] b) => (float y) { y = Einsum<equation="ij,jk->ik">(a, b) }',
    ],
    ids=["broadcast", "expand", "where", "concat of what may be empty", "einsum"],
)
def test_a_broadcast_equates_nothing(text: str) -> None:
    facts = settled(text)
    assert any("N" in shape for shape in shapes(facts))
    assert any("K" in shape for shape in shapes(facts))
    assert not len(facts.equations)


def test_a_static_size_is_not_forced_on_a_broadcast_dim() -> None:
    facts = settled("g (float[N, 4] a, float[3, 1] b) => (float y) { y = Add(a, b) }")
    assert shapes(facts) == ["float[N, 4]", "float[3, 1]", "float[3, 4]"]


def test_the_call_of_a_function_counts() -> None:
    model = parse(
        """<ir_version: 10, opset_import: ["" : 21, "my" : 1]>
        g (float[N, K] a, float[L, M] b) => (float y) { y = my.Product(a, b) }
        <domain: "my", opset_import: ["" : 21]>
        Product (p, q) => (r) { r = MatMul(p, q) }"""
    )
    assert shapes(Facts(model.graph, model.functions).settle())[1] == "float[K, M]"


def test_a_dim_with_limits_keeps_its_place() -> None:
    """The size that less is known of gives way."""
    facts = settled(
        "g (float[N, K] a, float[L, M] b) => (float y) { y = MatMul(a, b) }", dims={"L": SizeRange(1, 64)}
    )
    first = facts.shape(facts.graph.inputs[0])
    assert first is not None
    assert first[1].bounds == (1, 64)


def test_contradictions_are_left_alone() -> None:
    equations = Equations()
    n = Dim.symbol("N")
    equations.state(n * 2, Dim.of(3))
    equations.state(n + 1, n)
    assert not len(equations)
    equations.state(n * 2, Dim.of(6))
    assert equations.resolve(n + 1) == 4


def test_a_solution_reaches_computed_dims() -> None:
    equations = Equations()
    n, m = Dim.symbol("N"), Dim.symbol("M")
    equations.state(n // 2, Dim.of(5))
    assert equations.resolve(n // 2 * m) == m * 5
    equations.state(m, Dim.of(3))
    assert equations.resolve(n // 2 * m) == 15
