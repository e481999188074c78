"""Model-local functions."""

from __future__ import annotations

from harness import Setup, rows, table_test

from optimizer.rewrite import Context, Settings
from passes.inline import INLINE


def function(name: str, body: str, attributes: str = "", opset: int = 17, formal: str = "p, q") -> str:
    imports = f'["" : {opset}, "own" : 1]'
    return f'<domain: "own", opset_import: {imports}> {name} {attributes} ({formal}) => (r) {{ {body} }}'


FUNCTIONS = [
    function("Scaled", "a = Mul(p, q) r = LeakyRelu<alpha: float = @slope>(a)", "<slope>"),
    function("Outer", "a = own.Inner(p, q) r = own.Inner(a, q)"),
    function("Inner", "r = Add(p, q)"),
    function("Defaulted", "r = LeakyRelu<alpha: float = @slope>(p)", "<slope: float = 0.25>", formal="p"),
    function("Elsewhere", "r = Add(p, q)", opset=14),
    function("Optional", "r = Clip(p, q)"),
    function(
        "Deciding",
        "c = ReduceMax<keepdims=0>(p) d = Cast<to=9>(c) r = If(d) <then_branch = t () => (float[N,4] o) "
        "{ o = LeakyRelu<alpha: float = @slope>(p) }, else_branch = e () => (float[N,4] n) { n = Neg(p) }>",
        "<slope>",
        formal="p",
    ),
]
X = Setup("float[N,4] x, float[N,4] z", imports='"own" : 1', functions="\n".join(FUNCTIONS))
NEWER = Setup(
    "float[N,4] x", imports='"own" : 1', functions=function("Newer", "r = Mish(p)", opset=18, formal="p")
)
THROUGH = Setup(
    "float[N,4] x",
    imports='"own" : 1',
    functions='<domain: "own", opset_import: ["" : 17]> Through (p, q) => (r, q) { r = Relu(p) }',
)

ROWS = [
    *rows(
        INLINE,
        X,
        [
            ("attribute", "y = own.Scaled<slope=0.5>(x, z)", "a = Mul(x, z) y = LeakyRelu<alpha=0.5>(a)"),
            ("attribute-not-given", "y = own.Scaled(x, z)", "a = Mul(x, z) y = LeakyRelu(a)"),
            ("default", "y = own.Defaulted(x)", "y = LeakyRelu<alpha=0.25>(x)"),
            ("nested", "y = own.Outer(x, z)", "a = Add(x, z) y = Add(a, z)"),
            ("twice", "a = own.Inner(x, z) y = own.Inner(a, a)", "a = Add(x, z) y = Add(a, a)"),
            ("same-version-elsewhere", "y = own.Elsewhere(x, z)", "y = Add(x, z)"),
            ("input-left-out", "y = own.Optional(x)", "y = Clip(x)"),
            (
                "reference-in-a-body",
                "y = own.Deciding<slope=0.5>(x)",
                (
                    "c = ReduceMax<keepdims=0>(x) d = Cast<to=9>(c) "
                    "y = If(d) <then_branch = t () => (float[N,4] o) "
                    "{ o = LeakyRelu<alpha=0.5>(x) }, else_branch = e () => (float[N,4] n) { n = Neg(x) }>"
                ),
            ),
        ],
    ),
    *rows(
        INLINE,
        NEWER,
        [],
        [("version", "y = own.Newer(x)", "the function uses another version of an operator set")],
    ),
    *rows(
        INLINE,
        THROUGH,
        [],
        [("nothing-returned", "y, y2 = own.Through(x)", "an output is an input that is not given")],
    ),
]

test_rows = table_test(ROWS)


def test_kept_functions_stay() -> None:
    for kept in ("own", "*"):
        model = X.model("y = own.Inner(x, z)")
        assert not INLINE.run(Context(model, Settings(keep_functions=(kept,))))


def test_inlined_functions_are_not_used_any_more() -> None:
    model = X.model("y = own.Outer(x, z)")
    assert [name for _, name, _ in model.called_functions()] == ["Outer", "Inner"]
    INLINE.run(Context(model, X.settings))
    assert not model.called_functions()
