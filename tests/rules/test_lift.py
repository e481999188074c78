"""What leaves a body: common heads and tails of branches, work that is the same in every iteration."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Setup, rows, table_test

from optimizer import optimize
from optimizer.io import parse, to_proto
from optimizer.ir.text import dump
from optimizer.rewrite import Context, Settings
from optimizer.verify.engines import OnnxRuntime
from passes.lift import LIFT

X = Setup(
    "float[N,4] x, float[4] z, bool c, int64 m", feeds={"m": np.array(2)}, settings=Settings(growth=None)
)


def if_(then: str, other: str, inputs: str = "") -> str:
    return (
        f"{inputs} y = If(c) <then_branch = p () => (float[N,4] o) {{ {then} }}, "
        f"else_branch = q () => (float[N,4] r) {{ {other} }}>"
    )


def loop(trips: str, step: str, made: str = "") -> str:
    return (
        f"{made} y = Loop({trips}, , x) <body = b (int64 i, bool g, float[N,4] v) => "
        f"(bool g2, float[N,4] v2) {{ g2 = Cast<to=9>(g) {step} }}>"
    )


def scan(step: str) -> str:
    return (
        "y, y2 = Scan<num_scan_inputs=1, body = b (float[4] s, float[4] e) => (float[4] t, float[4] u) "
        f"{{ {step} }}>(z, x)"
    )


ROWS = [
    *rows(
        LIFT,
        X,
        [
            (
                "tail",
                if_("a = Exp(x) o = Relu(a)", "b = Neg(x) r = Relu(b)"),
                if_("o = Exp(x)", "r = Neg(x)").replace("y =", "t =") + " y = Relu(t)",
            ),
            (
                "tail-with-an-equal-constant",
                if_(
                    "k = Constant<value=float[1]{2}>() a = Exp(x) o = Mul(a, k)",
                    "k2 = Constant<value=float[1]{2}>() b = Neg(x) r = Mul(b, k2)",
                ),
                if_("o = Exp(x)", "r = Neg(x)").replace("y =", "t =") + " y = Mul(t, f32([2]))",
            ),
            (
                "two-tails",
                if_("a = Exp(x) d = Abs(a) o = Add(d, z)", "b = Neg(x) e = Abs(b) r = Add(e, z)"),
                if_("o = Exp(x)", "r = Neg(x)").replace("y =", "t =") + " u = Abs(t) y = Add(u, z)",
            ),
            (
                "head",
                if_("a = Exp(x) o = Relu(a)", "b = Exp(x) r = Neg(b)"),
                "a = Exp(x) " + if_("o = Relu(a)", "r = Neg(a)"),
            ),
            (
                "head-of-two",
                if_("a = Exp(x) d = Add(a, z) o = Relu(d)", "b = Exp(x) e = Add(b, z) r = Neg(e)"),
                "a = Exp(x) d = Add(a, z) " + if_("o = Relu(d)", "r = Neg(d)"),
            ),
            (
                "loop",
                loop("m", "a = Exp(z) v2 = Add(v, a)"),
                "a = Exp(z) " + loop("m", "v2 = Add(v, a)"),
            ),
            (
                "loop-that-runs",
                loop("i64(3)", "a = Gather(z, i64([0])) v2 = Add(v, a)")
                .replace("i64([0])", "k", 1)
                .replace("g2 = Cast<to=9>(g)", "g2 = Cast<to=9>(g) k = Constant<value_ints=[0]>()"),
                "a = Gather(z, i64([0])) " + loop("i64(3)", "v2 = Add(v, a)"),
            ),
            (
                "scan",
                scan("a = Exp(z) t = Add(s, a) u = Mul(e, a)"),
                "a = Exp(z) " + scan("t = Add(s, a) u = Mul(e, a)"),
            ),
        ],
    ),
]

test_rows = table_test(ROWS)

STAYS = [
    if_("a = Exp(x) o = Relu(a)", "b = Neg(x) r = Abs(b)"),
    if_("a = Exp(x) o = LeakyRelu<alpha=0.1>(a)", "b = Neg(x) r = LeakyRelu<alpha=0.2>(b)"),
    if_("o = Relu(x)", "b = Neg(x) r = Relu(b)"),
    if_("a = Exp(x) o = Add(a, z)", "b = Neg(x) r = Add(b, x)"),
    if_("a = RandomNormalLike(x) o = Relu(a)", "b = RandomNormalLike(x) r = Neg(b)"),
    loop("m", "k = Constant<value_ints=[9]>() a = Gather(z, k) v2 = Add(v, a)"),
    loop("m", "a = Exp(v) v2 = Add(v, a)"),
    loop("m", "a = RandomNormalLike(z) v2 = Add(v, a)"),
]


def test_what_differs_or_may_fail_stays() -> None:
    for body in STAYS:
        model = X.model(body)
        text = dump(model)
        ctx = Context(model, X.settings)
        LIFT.run(ctx)
        assert dump(model) == text
        assert not ctx.journal.entries


CARRIED = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[N,4] x, float[4] z, int64 m) => (float[N,4] y, float[4] y2) {
    y, y2, y3 = Loop(m, , x, z, z) <
        body = b (int64 i, bool g, float[N,4] v, float[4] k, float[4] l)
            => (bool g2, float[N,4] v2, float[4] k2, float[4] l2) {
            g2 = Cast<to=9>(g)  v2 = Mul(v, k)  k2 = Identity(k)  l2 = Exp(l)
        }>
}
"""
SCANNED = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[4] z, float[T,4] x) => (float[4] y, float[4] y2, float[4,T] y4) {
    y, y2, y3, y4 = Scan<num_scan_inputs=1, scan_output_axes=[0, 1],
        body = b (float[4] s, float[4] k, float[4] e) => (float[4] s2, float[4] k2, float[4] u, float[4] w) {
            s2 = Mul(s, k)  k2 = Identity(k)  u = Exp(e)  w = Add(e, s)
        }>(z, z, x)
}
"""


@pytest.mark.parametrize(
    ("text", "op", "inputs", "outputs"), [(CARRIED, "Loop", 3, 1), (SCANNED, "Scan", 2, 2)]
)
def test_values_that_are_carried_for_nothing_go(text: str, op: str, inputs: int, outputs: int) -> None:
    proto = to_proto(parse(text)).SerializeToString()
    result = optimize(proto, verify="off").model
    (node,) = (node for node in result.graph.node if node.op_type == op)
    assert (len([name for name in node.input if name]) + (op == "Loop"), len(node.output)) == (
        inputs,
        outputs,
    )
    rng = np.random.default_rng(0)
    for count in (1, 3):
        feeds = {
            "z": rng.random(4, np.float32),
            "x": rng.random((count, 4), np.float32),
            "m": np.array(count),
        }
        feeds = {name: array for name, array in feeds.items() if op == "Loop" or name != "m"}
        before, after = OnnxRuntime(proto).run(feeds), OnnxRuntime(result.SerializeToString()).run(feeds)
        for name, array in before.items():
            np.testing.assert_array_equal(after[name], array)


def test_what_later_passes_free_in_a_body_is_lifted_in_the_same_run() -> None:
    body = (
        "y = Loop(m, bool(true)) <body = b (int64 i, bool g) => (bool g2, float[N,4] s) "
        "{ g2 = Cast<to=9>(g) a = Pad(x, i64([0,0,0,0])) s = Relu(a) }>"
    )
    result = optimize(to_proto(X.model(body)).SerializeToString(), verify="off").model
    assert [node.op_type for node in result.graph.node] == ["Relu", "Loop"]
