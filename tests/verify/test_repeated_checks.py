"""When the local check leaves out a region because it looks like one it has seen, and when it must not."""

from __future__ import annotations

import numpy as np
import pytest

from optimizer.io import parse
from optimizer.ir import Graph, Model, Value
from optimizer.rewrite import Context, Group, P, Pipeline, Registry, Rule, graph_optimizer, pass_of
from optimizer.verify import LocalCheck

HEAD = '<ir_version: 9, opset_import: ["" : 18]>'
SCRATCH = Registry()


@graph_optimizer(P.Abs("x"), tag="E0", registry=SCRATCH)
def drop_abs(m, rw):
    """Abs(x) -> x"""
    return (
        m.x
        if m.fact(m.x, "non-negative") or m.graph.info(m.x).name == "b"
        else m.refuse("it may be negative")
    )


@graph_optimizer(P.Mul("x", P.const("k")), tag="E2", registry=SCRATCH)
def double(m, rw):
    """Mul(x, 2) -> Add(x, x)"""
    return rw.op.Add(m.x, m.x)


@graph_optimizer(P.Conv("x", "w", "b"), constants="w b", tag="E2", registry=SCRATCH)
def halve_twice(m, rw):
    """Conv(x, w, b) -> Conv(x, w, b), wrongly for weights that are negative at the first place"""
    w = m.f64(m.w)
    if w.reshape(-1)[0] < 0:
        w.reshape(-1)[0] *= 1.01
    return rw.op.Conv(m.x, rw.const(w, like=m.w), m.b) if m.graph.info(m.w).name else m.refuse("it is done")


def run(model: Model, rule: Rule) -> tuple[list[str], LocalCheck]:
    ctx = Context(model)
    ctx.check = check = LocalCheck()
    Pipeline([Group("test", (pass_of(rule),))], repeat=False).run(ctx)
    return [rejected.application.anchor for rejected in ctx.rejected], check


def test_facts_relied_on_are_part_of_the_look(monkeypatch: pytest.MonkeyPatch) -> None:
    def proves_a(graph: Graph, value: Value, kind: str) -> bool:
        return graph.info(value).name == "a"

    monkeypatch.setattr("optimizer.rewrite.match.prove", proves_a)
    model = parse(
        f"{HEAD} g (float[N] x, float[N] z) => (float[N] y, float[N] u) "
        "{ a = Neg (x) y = Abs (a) b = Neg (z) u = Abs (b) }"
    )
    rejected, check = run(model, drop_abs)
    assert rejected == ["u"]
    assert check.checked["drop-abs"] == 1


def test_numbers_are_part_of_the_look_where_no_weights_are_computed() -> None:
    model = parse(
        f"{HEAD} g (float[N, 3] x, float[M, 5] z) => (float[N, 3] y, float[M, 5] u) <float two = {{2}}, "
        "float three = {3}> { y = Mul (x, two) u = Mul (z, three) }"
    )
    assert run(model, double)[0] == ["u"]


def test_each_computed_weight_is_looked_at() -> None:
    rng = np.random.default_rng(2)
    weights = {name: rng.standard_normal((8, 8, 3, 3)).astype(np.float32) for name in "vw"}
    weights["v"][0, 0, 0, 0], weights["w"][0, 0, 0, 0] = 0.7, -0.7
    model = parse(
        f"{HEAD} g (float[N, 8, H, W] x) => (float[N, 8, A, B] y) "
        "{ a = Conv (x, v, b) y = Conv (a, w, b) }",
        {**weights, "b": np.zeros(8, np.float32)},
    )
    assert run(model, halve_twice)[0] == ["y"]
