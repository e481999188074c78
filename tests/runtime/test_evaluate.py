"""Folding of single nodes: evaluate, is_foldable, is_exact."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from optimizer.io import parse
from optimizer.ir import Attribute, DType, Graph, Node, TensorType, ValueInfo
from optimizer.runtime import (
    Call,
    ExecutionError,
    evaluate,
    find_kernel,
    is_exact,
    is_foldable,
    kernel,
    run_between,
)

HEADER = '<ir_version: 10, opset_import: ["" : 18, "my" : 1, "f" : 1, "ai.onnx.ml" : 3]>'


def one(
    op: str, dtypes: list[DType], attributes: Any = None, outputs: int = 1, domain: str = "", opset: int = 18
) -> tuple[Node, Graph]:
    graph = Graph("g", {"": opset, "ai.onnx.ml": 3, "my": 1})
    inputs = [graph.add_input(ValueInfo(f"x{i}", TensorType(t))) for i, t in enumerate(dtypes)]
    return graph.add(op, inputs, attributes, outputs, domain=domain), graph


def test_evaluate_gives_every_output() -> None:
    node, graph = one("Split", [DType.FLOAT], {"axis": 0}, 2)
    assert [v.tolist() for v in evaluate(graph, node, [np.float32([1, 2])])] == [[1], [2]]
    node, graph = one("Dropout", [DType.FLOAT], outputs=2)
    kept, mask = evaluate(graph, node, [np.float32([1, 2])])
    assert (kept.tolist(), mask.tolist()) == ([1, 2], [True, True])
    node, graph = one("Div", [DType.INT32] * 2)
    with pytest.raises(ExecutionError, match="integer division by zero"):
        evaluate(graph, node, [np.int32([1]), np.int32([0])])


def test_evaluate_is_silent_about_infinities() -> None:
    node, graph = one("Div", [DType.FLOAT] * 2)
    assert evaluate(graph, node, [np.float32([1]), np.float32([0])])[0] == np.inf
    node, graph = one("Cast", [DType.FLOAT], {"to": 10})
    assert evaluate(graph, node, [np.float32([1e9])])[0] == np.inf


def test_evaluate_rounds_narrow_floats_once() -> None:
    node, graph = one("ReduceMean", [DType.BFLOAT16])
    x = np.full(4000, 100, ml_dtypes.bfloat16)
    assert evaluate(graph, node, [x])[0].astype(float) == 100


def test_evaluate_with_bodies() -> None:
    model = parse(
        HEADER
        + """g (bool c, float[1] x) => (float[1] y) {
      y = If(c) <then_branch = t () => (float[1] a) { a = Neg(x) },
                 else_branch = e () => (float[1] b) { b = Add(x, x) }> }"""
    )
    (node,) = model.graph.nodes
    captures = [np.float32([3])] * len(node.captures)
    assert evaluate(model.graph, node, [np.array(True)], captures=captures)[0] == -3
    assert evaluate(model.graph, node, [np.array(False)], captures=captures)[0] == 6


@pytest.mark.parametrize(
    ("op", "dtypes", "attributes", "domain", "foldable"),
    [
        ("Add", [DType.FLOAT] * 2, {}, "", True),
        ("RandomNormal", [], {"shape": [1]}, "", False),
        ("RandomUniformLike", [DType.FLOAT], {}, "", False),
        ("Bernoulli", [DType.FLOAT], {}, "", False),
        ("Multinomial", [DType.FLOAT], {}, "", False),
        ("ImageDecoder", [DType.UINT8], {}, "", False),
        ("Dropout", [DType.FLOAT], {}, "", True),
        ("Dropout", [DType.FLOAT, DType.FLOAT, DType.BOOL], {}, "", False),
        ("Magic", [DType.FLOAT], {}, "my", False),
        ("NewOp", [DType.FLOAT], {}, "", False),
        ("Hann", [DType.INT32], {}, "", False),
        ("HannWindow", [DType.INT32], {}, "", True),
        ("LabelEncoder", [DType.INT64], {}, "ai.onnx.ml", True),
    ],
)
def test_foldable(op: str, dtypes: list[DType], attributes: Any, domain: str, foldable: bool) -> None:
    opset = 20 if op == "ImageDecoder" else 18
    node, graph = one(op, dtypes, attributes, domain=domain, opset=opset)
    assert is_foldable(node, graph) is foldable


def test_dropout_with_training_mode_known_to_be_off() -> None:
    for mode, foldable in ((False, True), (True, False)):
        graph = Graph("g", {"": 13})
        x, ratio = graph.add_input("x"), graph.add_constant(np.array(0.5, np.float32))
        node = graph.add("Dropout", [x, ratio, graph.add_constant(np.array(mode))])
        assert is_foldable(node, graph) is foldable
    old, graph = one("Dropout", [DType.FLOAT], {"is_test": 1}, opset=6)
    assert is_foldable(old, graph)
    old, graph = one("Dropout", [DType.FLOAT], {}, opset=6)
    assert not is_foldable(old, graph)


@pytest.mark.parametrize(("inner", "foldable"), [("Neg(x)", True), ("RandomNormalLike(x)", False)])
def test_bodies_and_functions_count(inner: str, foldable: bool) -> None:
    model = parse(
        HEADER
        + f"""g (bool c, float[1] x) => (float[1] y, float[1] z) {{
      y = If(c) <then_branch = t () => (float[1] a) {{ a = {inner} }},
                 else_branch = e () => (float[1] b) {{ b = Identity(x) }}>
      z = f.h(x) }}
      <domain: "f", opset_import: ["" : 18]> h (x) => (y) {{ y = {inner} }}"""
    )
    for node in model.graph.nodes:
        assert is_foldable(node, model.graph, model.functions) is foldable


def test_attributes_of_the_function_around() -> None:
    model = parse(
        HEADER
        + """g (float[2] x) => (float[2] y) { y = f.h<alpha = 0.5>(x) }
      <domain: "f", opset_import: ["" : 18]> h <alpha> (x) => (y) {
        y = LeakyRelu<alpha: float = @alpha>(x) }"""
    )
    (call,) = model.graph.nodes
    assert is_foldable(call, model.graph, model.functions)
    graph = next(iter(model.functions.values())).graph
    (node,) = graph.nodes
    assert not is_foldable(node, graph, model.functions)
    assert not is_exact(node, graph, model.functions)
    x, bindings = np.float32([-1, 2]), {"alpha": Attribute.of(0.25)}
    assert evaluate(graph, node, [x], bindings=bindings)[0].tolist() == [-0.25, 2]
    between = run_between(graph, {graph.inputs[0]: x}, [node.value()], bindings=bindings)
    assert between[node.value()].tolist() == [-0.25, 2]


def test_kernels_may_be_added_at_any_time() -> None:
    node, graph = one("Twice", [DType.FLOAT], domain="my.late")
    assert find_kernel("my.late", "Twice", 1) is None

    @kernel("Twice", domain="my.late", exact=True)
    def twice(call: Call, x: np.ndarray) -> np.ndarray:
        return x + x

    assert evaluate(graph, node, [np.float32([2])])[0] == 4
    assert is_exact(node, graph)


@pytest.mark.parametrize(
    ("op", "dtypes", "exact"),
    [
        ("Add", [DType.FLOAT] * 2, True),
        ("Sqrt", [DType.FLOAT], True),
        ("Div", [DType.FLOAT16] * 2, True),
        ("Transpose", [DType.FLOAT], True),
        ("Exp", [DType.FLOAT], False),
        ("ReduceSum", [DType.FLOAT], False),
        ("ReduceSum", [DType.INT64], True),
        ("ReduceMax", [DType.FLOAT], True),
        ("ReduceSum", [DType.UNDEFINED], False),
        ("HannWindow", [DType.INT32], False),
        ("CumSum", [DType.INT32, DType.INT64], True),
    ],
)
def test_exact(op: str, dtypes: list[DType], exact: bool) -> None:
    node, graph = one(op, dtypes)
    assert is_exact(node, graph) is exact


def test_kernel_order() -> None:
    own, delegate, body = (find_kernel("", op, 20) for op in ("Add", "HannWindow", "Mish"))
    assert own is not None
    assert (own.since, own.exact) == (7, True)
    assert delegate is not None
    assert delegate.since == 17
    assert body is not None
    assert find_kernel("ai.onnx", "Add", 6) is find_kernel("ai.onnx", "Add", 6)
    assert find_kernel("", "Split", 18) is not find_kernel("", "Split", 17)
    assert find_kernel("", "Gradient", 18) is None


@pytest.mark.parametrize(
    "op", ["Range", "Celu", "MeanVarianceNormalization", "Shrink", "CenterCropPad", "ReduceL2"]
)
def test_function_bodies_agree_with_own_kernels(op: str) -> None:
    """The schema's own definition of an op, run by this executor, is an independent check."""
    from optimizer.runtime.function_body import find_function_body

    x = np.random.default_rng(0).standard_normal((2, 3, 4, 4)).astype(np.float32)
    inputs = {
        "Range": [np.array(1, np.int64), np.array(9, np.int64), np.array(3, np.int64)],
        "CenterCropPad": [x, np.array([1, 5, 3, 6])],
    }.get(op, [x])
    body = find_function_body("", op, 27)
    assert body is not None
    call = Call(op, {}, opset=27)
    expected = body.run(call, *inputs)[0]
    own = find_kernel("", op, 27)
    assert own is not None
    result = own.run(Call(op, {}, opset=27), *inputs)
    result = result[0] if isinstance(result, tuple) else result
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)
