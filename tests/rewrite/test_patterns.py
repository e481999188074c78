"""Patterns: what they match, what they bind, and what is refused when they are declared."""

from __future__ import annotations

import numpy as np
import pytest

from optimizer.ir import Graph, Value
from optimizer.rewrite import P, PatternError, Registry, graph_optimizer
from optimizer.rewrite.matcher import Matcher


@pytest.fixture
def graph() -> Graph:
    """m = Mul(k, Add(x, y)); r = Relu(m); the values carry these names."""
    g = Graph("g", {"": 17})
    x, y = g.add_input("x"), g.add_input("y")
    k = g.add_constant(np.array([2.0], np.float32), "k")
    a = g.add("Add", [x, y], outputs=["a"]).value()
    m = g.add("Mul", [k, a], {"note": [1, 2]}, outputs=["m"]).value()
    r = g.add("Relu", [m], outputs=["r"]).value()
    g.set_outputs([r], ["out"])
    return g


def found(graph: Graph, pattern: object, op: str) -> list[dict[str, str]]:
    """Names bound by every match at the node of type ``op``."""
    root = next(node for node in graph.nodes if node.op_type == op)
    matcher = Matcher(graph)
    return [
        {name: spell(graph, bound) for name, bound in bindings.items()}
        for bindings, _ in matcher.matches(pattern, root)  # type: ignore[arg-type]
    ]


def spell(graph: Graph, bound: object) -> str:
    if isinstance(bound, Value):
        return graph.info(bound).name
    if isinstance(bound, tuple):
        return ",".join(spell(graph, item) for item in bound)
    return "-" if bound is None else bound.op_type  # type: ignore[attr-defined]


MATCHES = [
    ("var", P.Relu("v"), "Relu", [{"v": "m"}]),
    ("nested", P.Relu(P.Mul("c", "v")), "Relu", [{"c": "k", "v": "a"}]),
    ("node-name", P.Relu(P.Mul("c", "v", name="mul"), name="relu"), "Relu",
     [{"relu": "Relu", "mul": "Mul", "c": "k", "v": "a"}]),
    ("commutes", P.Mul(P.Add("x", "y"), "c").commutes(), "Mul", [{"x": "x", "y": "y", "c": "k"}]),
    ("both-orders", P.Add("p", "q").commutes(), "Add", [{"p": "x", "q": "y"}, {"p": "y", "q": "x"}]),
    ("same-value", P.Add("p", "p"), "Add", []),
    ("orders-within-orders", P.Mul("c", P.Add("p", "q").commutes()).commutes(), "Mul",
     [{"c": "k", "p": "x", "q": "y"}, {"c": "k", "p": "y", "q": "x"}]),
    ("order-matters", P.Mul(P.Add("x", "y"), "c"), "Mul", []),
    ("scalar", P.Mul(P.scalar(2.0), "v"), "Mul", [{"v": "a"}]),
    ("scalar-rel", P.Mul(P.scalar(2.001, rel=1e-3), "v"), "Mul", [{"v": "a"}]),
    ("scalar-off", P.Mul(P.scalar(2.001, rel=1e-5), "v"), "Mul", []),
    ("maybe-absent", P.Relu("v", P.maybe("w")), "Relu", [{"v": "m", "w": "-"}]),
    ("absent", P.Relu("v", P.absent()), "Relu", [{"v": "m"}]),
    ("too-few-inputs", P.Add("p"), "Add", []),
    ("rest", P.Add(P.rest("all")), "Add", [{"all": "x,y"}]),
    ("rest-least", P.Add(P.rest("all", least=3)), "Add", []),
    ("any-of", P.Relu(P.any_of(P.Sum("v"), P.Mul("c", "v"))), "Relu", [{"c": "k", "v": "a"}]),
    ("one-of", P.one_of("Sum", "Relu")("v"), "Relu", [{"v": "m"}]),
    ("attribute", P.Mul("c", "v", note=(1, 2)), "Mul", [{"c": "k", "v": "a"}]),
    ("attribute-off", P.Mul("c", "v", note=(1, 3)), "Mul", []),
    ("domain", P.Relu("v", domain="com.acme"), "Relu", []),
    ("const", P.Mul(P.const("c"), "v"), "Mul", [{"c": "k", "v": "a"}]),
    ("const-off", P.Mul("c", P.const("v")), "Mul", []),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "op", "expected"), [m[1:] for m in MATCHES], ids=[m[0] for m in MATCHES])
def test_matches(graph: Graph, pattern: object, op: str, expected: list[dict[str, str]]) -> None:
    assert found(graph, pattern, op) == expected


@pytest.mark.parametrize(
    ("array", "matches"),
    [
        (np.float32(2), True),
        (np.full((2, 3), 2, np.int64), True),
        (np.array([2, 2, 3], np.float32), False),
        (np.array([3, 2], np.float32), False),
        (np.zeros(0, np.float32), False),
        (np.array(["2"], object), False),
    ],
    ids=["scalar", "any-shape", "mixed", "first-differs", "empty", "strings"],
)
def test_filled_is_one_number_throughout(array, matches: bool) -> None:
    g = Graph("g", {"": 17})
    node = g.add("Max", [g.add_constant(array), g.add_input("x")])
    assert bool(Matcher(g).matches(P.Max(P.filled(2, name="two"), "x"), node)) is matches
    assert not Matcher(g).matches(P.Max("x", P.filled(2)), node)


def test_once_counts_graph_outputs_and_second_readers(graph: Graph) -> None:
    pattern = P.Relu(P.Mul("c", "v").once())
    assert len(found(graph, pattern, "Relu")) == 1
    mul = next(node for node in graph.nodes if node.op_type == "Mul").value()
    graph.set_outputs([*graph.outputs, mul], ["out", "m"])
    assert found(graph, pattern, "Relu") == []


def test_kept_nodes_are_in_no_match(graph: Graph) -> None:
    matcher = Matcher(graph, lambda node: node.op_type == "Mul")
    relu = next(node for node in graph.nodes if node.op_type == "Relu")
    assert list(matcher.matches(P.Relu(P.Mul("c", "v")), relu)) == []
    assert len(list(matcher.matches(P.Relu("v"), relu))) == 1


BAD = [
    ("no-operator", lambda: P.any_of("x", P.Relu("x")), "root of a pattern"),
    ("rest-not-last", lambda: P.Sum(P.rest("all"), "x"), "last input"),
    ("two-kinds", lambda: P.Relu("x", name="x"), "bound as"),
    ("no-operator-of-a-model", lambda: P.Relu(P.Input(domain="oinfer.ir")), "is no operator"),
    ("commutes-one", lambda: P.Relu("x").commutes(), "two inputs to commute"),
]


@pytest.mark.parametrize(("pattern", "message"), [b[1:] for b in BAD], ids=[b[0] for b in BAD])
def test_patterns_are_checked_when_declared(pattern, message: str) -> None:
    with pytest.raises(PatternError, match=message):
        graph_optimizer(pattern(), registry=Registry())(lambda m, rw: m.x)


def test_declarations_are_checked() -> None:
    with pytest.raises(PatternError, match="does not bind: w"):
        graph_optimizer(P.Relu("x"), constants="w", registry=Registry())(lambda m, rw: m.x)
    with pytest.raises(PatternError, match="two arguments"):
        graph_optimizer(P.Relu("x"), registry=Registry())(lambda m: m.x)
    with pytest.raises(PatternError, match="one argument"):
        graph_optimizer(lambda a, b: None)
    with pytest.raises(PatternError, match="not int"):
        graph_optimizer(3)  # type: ignore[call-overload]


def test_declaring_again_replaces() -> None:
    registry = Registry()

    def declare(tag: str) -> None:
        @graph_optimizer(P.Relu("x"), tag=tag, registry=registry)
        def drop_relu(m, rw):
            """Relu(x) -> x"""
            return m.x

    declare("E0")
    declare("E3")
    (rule,) = registry
    assert (rule.name, rule.tag.name, rule.lhs_rhs) == ("drop-relu", "E3", "Relu(x) -> x")
