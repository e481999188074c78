"""What bodies compute although the scope around them has it."""

from __future__ import annotations

from harness import Setup, rows, table_test

from optimizer import optimize
from optimizer.io import to_proto
from optimizer.rewrite import Context, Settings
from passes.enclosing import ENCLOSING

X = Setup("float[N,4] x, float[N,4] z, bool c", imports='"own" : 1')


def if_(then: str, other: str) -> str:
    return (
        f"t = If(c) <then_branch = p () => (float[N,4] o) {{ {then} }}, "
        f"else_branch = q () => (float[N,4] r) {{ {other} }}> "
    )


def loop(step: str) -> str:
    return (
        "t = Loop(i64(3), , x) <body = b (int64 i, bool g, float[N,4] v) => (bool g2, float[N,4] v2) "
        f"{{ g2 = Cast<to=9>(g) {step} }}> "
    )


ROWS = [
    *rows(
        ENCLOSING,
        X,
        [
            (
                "chain-in-a-branch",
                "a = Exp(x) b = Mul(a, f32(3)) "
                + if_("d = Exp(x) k = Constant<value=float {3}>() e = Mul(d, k) o = Relu(e)", "r = Neg(x)")
                + "y = Add(t, b)",
                "a = Exp(x) b = Mul(a, f32(3)) " + if_("o = Relu(b)", "r = Neg(x)") + "y = Add(t, b)",
            ),
            (
                "both-branches",
                "a = Exp(x) "
                + if_("d = Exp(x) o = Relu(d)", "d2 = Exp(x) e2 = Add(d2, z) r = Neg(e2)")
                + "y = Add(t, a)",
                "a = Exp(x) " + if_("o = Relu(a)", "e2 = Add(a, z) r = Neg(e2)") + "y = Add(t, a)",
            ),
            (
                "several-outputs",
                "a, b = Split<axis=1>(x) "
                + if_("d, e = Split<axis=1>(x) o = Concat<axis=1>(e, d)", "r = Neg(x)")
                + "y = Concat<axis=1>(a, b, t)",
                "a, b = Split<axis=1>(x) "
                + if_("o = Concat<axis=1>(b, a)", "r = Neg(x)")
                + "y = Concat<axis=1>(a, b, t)",
            ),
            (
                "what-may-fail-in-a-loop",
                "a = Add(x, z) " + loop("d = Add(x, z) v2 = Mul(v, d)") + "y = Add(t, a)",
                "a = Add(x, z) " + loop("v2 = Mul(v, a)") + "y = Add(t, a)",
            ),
        ],
    )
]

test_rows = table_test(ROWS)


def unchanged(body: str, settings: Settings | None = None) -> bool:
    ctx = Context(X.model(body), settings)
    ENCLOSING.run(ctx)
    return not ctx.journal.entries


def test_what_is_not_the_same_stays() -> None:
    assert unchanged("a = Exp(x) " + if_("o = Exp(z)", "r = Neg(x)") + "y = Add(t, a)")
    assert unchanged(
        "a = Softmax<axis=0>(x) " + if_("o = Softmax<axis=1>(x)", "r = Neg(x)") + "y = Add(t, a)"
    )
    assert unchanged(
        "a = RandomNormalLike(x) " + if_("o = RandomNormalLike(x)", "r = Neg(x)") + "y = Add(t, a)"
    )
    assert unchanged(
        "a = Add(x, f32(1)) "
        + if_("k = Constant<value=float {2}>() o = Add(x, k)", "r = Neg(x)")
        + "y = Add(t, a)"
    )
    assert unchanged("a = Exp(x) " + loop("d = Exp(v) v2 = Mul(v, d)") + "y = Add(t, a)")


def test_what_only_a_branch_computes_stays_there() -> None:
    assert unchanged(if_("o = Exp(x)", "r = Neg(x)") + "y = Relu(t)")


def test_a_kept_node_stays() -> None:
    body = "a = Exp(x) " + if_("o = Exp(x)", "r = Neg(x)") + "y = Add(t, a)"
    assert unchanged(body, Settings(keep=("o",)))
    assert unchanged(body, Settings(keep=("t",)))


def test_it_is_part_of_the_default_pipeline() -> None:
    body = "a = Add(x, z) " + if_("d = Add(x, z) o = Relu(d)", "r = Neg(x)") + "y = Mul(t, a)"
    result = optimize(to_proto(X.model(body))).model
    (branch,) = (n for n in result.graph.node if n.op_type == "If")
    assert [len(a.g.node) for a in branch.attribute] == [1, 1]
