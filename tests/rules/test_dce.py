"""Dead code."""

from __future__ import annotations

from harness import Setup, rows, table_test

from optimizer.ir import ValueInfo
from optimizer.rewrite import Context, Settings
from passes.dce import DCE, used_functions

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

test_rows = table_test(ROWS)


def test_inputs_and_kept_nodes_stay() -> None:
    model = PLAIN.model("a = Exp(x) y = Relu(x)")
    assert not DCE.run(Context(model, Settings(keep=("a",))))
    DCE.run(Context(model))
    assert [model.graph.info(v).name for v in model.graph.inputs] == ["x", "unread", "c", "k"]


def test_an_output_that_says_training_stays() -> None:
    text = "y, a, b = BatchNormalization<training_mode=1>(x, k, k, k, k)"
    assert not DCE.run(Context(PLAIN.model(text)))


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


def test_used_functions() -> None:
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
    assert [name for _, name, _ in used_functions(own.model("y = own.Used(x)"))] == ["Used", "Inner"]
