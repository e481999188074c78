"""Types written into the model."""

from __future__ import annotations

from harness import Setup

from optimizer.ir import DType, TensorType
from optimizer.rewrite import Context
from passes.infer import INFER

X = Setup("float[N,C,H,W] x, bool c")


def test_types_are_declared_with_the_dimensions_of_the_inputs() -> None:
    model = X.model("a = Shape(x) b = Transpose<perm=[0,2,3,1]>(x) y = Relu(b)")
    assert INFER.run(Context(model))
    declared = {node.op_type: node.outputs[0].type for node in model.graph.nodes}
    assert declared["Shape"] == TensorType(DType.INT64, (4,))
    assert declared["Transpose"] == TensorType(DType.FLOAT, ("N", "H", "W", "C"))
    assert model.graph.sink.outputs[0].type == TensorType(DType.FLOAT, ("N", "H", "W", "C"))
    assert not INFER.run(Context(model))


def test_names_of_the_author_stay_and_numbers_win() -> None:
    model = X.model("a = MaxPool<kernel_shape=[1,1]>(x) b = Reshape(a, i64([2, 3, -1])) y = Relu(b)")
    node = next(node for node in model.graph.nodes if node.op_type == "Reshape")
    info = node.outputs[0].__class__("b", TensorType(DType.FLOAT, ("two", None, "rest")))
    model.graph.set_attrs(node, outputs=[info])
    INFER.run(Context(model))
    declared = model.graph.node(node.id).outputs[0].type
    assert isinstance(declared, TensorType)
    assert declared.shape == (2, 3, "rest")


def test_bodies_are_declared_too() -> None:
    model = X.model(
        (
            "y = If(c) <then_branch = p () => (o) { a = Exp(x) o = "
            "Relu(a) }, else_branch = q () => (r) { r = Neg(x) }>"
        ),
    )
    INFER.run(Context(model))
    (owner,) = model.graph.nodes
    for _, body in owner.bodies:
        for node in body.nodes:
            assert node.outputs[0].type == TensorType(DType.FLOAT, ("N", "C", "H", "W"))
