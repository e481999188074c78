"""Dead code."""

from __future__ import annotations

from harness import Setup, rows, table_test

from optimizer.ir import ValueInfo
from optimizer.rewrite import Context, Settings
from passes.dce import DCE

PLAIN = Setup("float[N,4,6] x, float[N,4,6] unread, bool c, float[4] k", opset=15, special=False)
IF = "y = If(c) <then_branch = p () => ({}) {{ {} }}, else_branch = q () => ({}) {{ {} }}>"
FUNCTION = '<domain: "own", opset_import: ["" : 17]> {} (p) => (q) {{ q = {}(p) }}'

ROWS = [
    *rows(
        DCE,
        PLAIN,
        [
            ("chain", "a = Exp(x) b = Neg(a) y = Relu(x)", "y = Relu(x)"),
            ("constant", "a = Add(x, f32([1])) y = Relu(x)", "y = Relu(x)"),
            ("mask", "y, b = Dropout(x)", "y = Dropout(x)"),
            ("indices", "y, b = MaxPool<kernel_shape=[2]>(x)", "y = MaxPool<kernel_shape=[2]>(x)"),
            (
                "body",
                IF.format("float[N,4,6] o", "a = Exp(unread) o = Relu(x)", "float[N,4,6] r", "r = Neg(x)"),
                IF.format("float[N,4,6] o", "o = Relu(x)", "float[N,4,6] r", "r = Neg(x)"),
            ),
            (
                "if-result",
                IF.format(
                    "float[N,4,6] o2, float[N,4,6] o",
                    "o2 = Exp(unread) o = Relu(x)",
                    "float[N,4,6] r2, float[N,4,6] r",
                    "r2 = Exp(x) r = Neg(x)",
                ).replace("y =", "b, y ="),
                IF.format("float[N,4,6] o", "o = Relu(x)", "float[N,4,6] r", "r = Neg(x)"),
            ),
        ],
    ),
    *rows(
        DCE,
        Setup("float[N,4,6] x, float[1,6] h", opset=15, constants={}),
        [
            (
                "nothing-captured-any-more",
                "t = Exp(h) m = ReduceMax<keepdims=0>(x) b1 = Greater(m, f32(0)) "
                + IF.replace("(c)", "(b1)").format(
                    "float[N,4,6] o", "a = Add(x, t) o = Relu(x)", "float[N,4,6] r", "r = Neg(x)"
                ),
                "m = ReduceMax<keepdims=0>(x) b1 = Greater(m, f32(0)) "
                + IF.replace("(c)", "(b1)").format(
                    "float[N,4,6] o", "o = Relu(x)", "float[N,4,6] r", "r = Neg(x)"
                ),
            )
        ],
    ),
]
LOOP = (
    "{results} = Loop(i64(3), , x, {more}) <body = b (int64 i, bool g, float[N,4,6] v{formal}) => "
    "(bool g2, float[N,4,6] v2{returned}) {{ g2 = And(g, g) v2 = Mul(v, v) {step} }}>"
)

ROWS += rows(
    DCE,
    Setup("float[N,4,6] x, float[4] k, float[2] h", opset=15),
    [
        (
            "scan-of-a-loop",
            LOOP.format(results="y, b1", more="", formal="", returned=", float[N,4,6] s", step="s = Exp(v)"),
            LOOP.format(results="y", more="", formal="", returned="", step=""),
        ),
        (
            "carried-for-nothing",
            LOOP.format(
                results="y, b1, y2",
                more="k, h",
                formal=", float[4] w, float[2] z",
                returned=", float[4] w2, float[2] z2",
                step="w2 = Exp(k) z2 = Exp(z)",
            ),
            LOOP.format(
                results="y, y2", more="h", formal=", float[2] z", returned=", float[2] z2", step="z2 = Exp(z)"
            ),
        ),
        (
            "scanned-for-nothing",
            (
                "y, b1 = Scan<num_scan_inputs=1, body = b (float[4,6] t, float[4,6] e) => "
                "(float[4,6] t2, float[4,6] e2) { t2 = Add(t, e) e2 = Exp(e) }>(f32(zeros(4, 6)), x)"
            ),
            (
                "y = Scan<num_scan_inputs=1, body = b (float[4,6] t, float[4,6] e) => "
                "(float[4,6] t2) { t2 = Add(t, e) }>(f32(zeros(4, 6)), x)"
            ),
        ),
    ],
)

test_rows = table_test(ROWS)


def test_inputs_and_kept_nodes_stay() -> None:
    model = PLAIN.model("a = Exp(x) y = Relu(x)")
    assert not DCE.run(Context(model, Settings(keep=("a",))))
    DCE.run(Context(model))
    assert [model.graph.info(v).name for v in model.graph.inputs] == ["x", "unread", "c", "k"]


def test_an_output_that_says_training_stays() -> None:
    text = "y, a, b = BatchNormalization<training_mode=1>(x, k, k, k, k)"
    assert not DCE.run(Context(PLAIN.model(text)))


def test_a_cache_that_is_given_is_given_back() -> None:
    inputs = "float[2,2,3,4] q, float[2,2,5,4] k"
    cached, plain = "y, a, b = Attention(q, q, q, , k, k)", "y, a, b = Attention(q, q, q)"
    assert not DCE.run(Context(Setup(inputs, opset=23).model(cached)))
    assert DCE.run(Context(Setup(inputs, opset=23).model(plain)))


def test_dead_annotations_go() -> None:
    model = PLAIN.model("a = Exp(x) y = Relu(x)")
    graph = model.graph
    dead = next(node for node in graph.nodes if node.op_type == "Exp")
    scale = graph.add_constant(2.0, ValueInfo("scale"))
    graph.add("Annotation", [dead.value(), scale], {"keys": ["SCALE_TENSOR"]}, (), domain="oinfer.ir")
    DCE.run(Context(model))
    assert model.histogram() == {"Relu": 1}
    assert not graph.annotations
    assert not graph.constants


def test_called_functions() -> None:
    own = Setup(
        "float[N,4] x",
        imports='"own" : 1',
        functions="\n".join(
            [
                FUNCTION.format("Used", "own.Inner"),
                FUNCTION.format("Inner", "Exp"),
                FUNCTION.format("Not", "Neg"),
            ]
        ).replace('["" : 17]', '["" : 17, "own" : 1]'),
    )
    assert [name for _, name, _ in own.model("y = own.Used(x)").called_functions()] == ["Used", "Inner"]
