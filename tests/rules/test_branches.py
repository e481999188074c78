"""If with a negated condition."""

from __future__ import annotations

from harness import Setup, rows, table_test

from optimizer.rewrite import Context, Settings
from passes.branches import BRANCHES

X = Setup("float[N,4] x, float[N,4] z, bool c")
IF = (
    "y = If({0}) <then_branch = p () => (float[N,4] o) {{ {1} }}, "
    "else_branch = q () => (float[N,4] r) {{ {2} }}>"
)

ROWS = [
    *rows(
        BRANCHES,
        X,
        [
            (
                "negated",
                "n = Not(c) " + IF.format("n", "o = Relu(x)", "a = Add(x, z) r = Neg(a)"),
                IF.format("c", "a = Add(x, z) o = Neg(a)", "r = Relu(x)"),
            ),
            (
                "negation-is-read",
                "n = Not(c) y2 = Cast<to=1>(n) " + IF.format("n", "o = Relu(x)", "r = Neg(z)"),
                "n = Not(c) y2 = Cast<to=1>(n) " + IF.format("c", "o = Neg(z)", "r = Relu(x)"),
            ),
        ],
    )
]

test_rows = table_test(ROWS)


def test_a_kept_negation_stays() -> None:
    ctx = Context(X.model("n = Not(c) " + IF.format("n", "o = Relu(x)", "r = Neg(z)")), Settings(keep=("n",)))
    BRANCHES.run(ctx)
    assert not ctx.journal.entries
