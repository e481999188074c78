"""Session: feeds, outputs, limits, hooks, missing kernels, partial runs."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from optimizer.io import parse
from optimizer.ir import (
    DType,
    Graph,
    InvalidGraph,
    OptimizerError,
    Tensor,
    TensorType,
    UsageError,
    Value,
    ValueInfo,
)
from optimizer.runtime import (
    MISSING,
    BadFeed,
    ExecutionError,
    LimitReached,
    MissingKernel,
    Session,
    run_between,
)

HEADER = '<ir_version: 10, opset_import: ["" : 18]>'
CHAIN = HEADER + "g (float[2,n] x) => (float[2,n] y) { a = Neg (x) b = Mul (a, a) y = Add (b, x) }"
TINY = HEADER + "g (float x) => (float y) { y = Relu (x) }"
X = np.float32([[1, -2], [3, 0.5]])


def test_runs_a_chain_and_any_tensor() -> None:
    session = Session(parse(CHAIN))
    assert session.run({"x": X})["y"].tolist() == (X * X + X).tolist()
    assert session.run({"x": X}, ["b", "x"])["b"].tolist() == (X * X).tolist()
    assert list(session.run({"x": X}, stop_at="a")) == ["a"]
    with pytest.raises(UsageError, match="no tensor 'q'"):
        session.run({"x": X}, ["q"])


@pytest.mark.parametrize(
    ("feeds", "message"),
    [
        ({}, "input 'x' is missing"),
        ({"x": X, "z": X}, "no input 'z'; the inputs are x"),
        ({"x": X.astype(np.float64)}, "input 'x' is float64, the model wants float32"),
        ({"x": X[0]}, r"input 'x' has shape \[2\], the model wants \[2,n\]"),
        ({"x": np.zeros((3, 2), np.float32)}, r"has shape \[3, 2\]"),
        ({"x": [["a"]]}, "cannot be made FLOAT"),
    ],
)
def test_bad_feeds(feeds: dict[str, Any], message: str) -> None:
    with pytest.raises(BadFeed, match=message):
        Session(parse(CHAIN)).run(feeds)


def test_lists_and_numbers_are_taken() -> None:
    model = parse(
        HEADER + "g (float x, seq(int64[1]) s, string[1] t) => (float y, int64 n, string[1] u) {"
        "y = Neg(x) n = SequenceLength(s) u = Identity(t) }"
    )
    result = Session(model).run({"x": 2, "s": [np.array([1], np.int64)], "t": np.array(["a"])})
    assert (float(result["y"]), int(result["n"]), result["u"].dtype) == (-2, 1, object)
    with pytest.raises(BadFeed, match="is a sequence"):
        Session(model).run({"x": 2, "s": X, "t": np.array(["a"])})


def test_errors_name_the_node() -> None:
    model = parse(HEADER + "g (float[n] x, float[m] z) => (float[k] y) { y = Add (x, z) }")
    with pytest.raises(
        ExecutionError, match=r"Add-18 -> 'y' failed on \(x: float32\[2\], z: float32\[3\]\): operands"
    ):
        Session(model).run({"x": np.zeros(2, np.float32), "z": np.zeros(3, np.float32)})


def test_overridable_inputs_and_placeholders() -> None:
    graph = Graph("g", {"": 18})
    x = graph.add_input(ValueInfo("x", TensorType(DType.FLOAT, (2, "n"))))
    w = graph.add_input("w", Tensor.of(np.float32([[10]])))
    graph.set_outputs([graph.add("Add", [x, w]).value()], ["y"])
    assert Session(graph).run({"x": X})["y"].tolist() == (X + 10).tolist()
    assert Session(graph).run({"x": X, "w": np.zeros((1, 1), np.float32)})["y"].tolist() == X.tolist()
    session = Session(graph, placeholder_inputs="ones")
    assert session.run()["y"].tolist() == [[11], [11]]
    assert session.placeholders == {"x"}
    called = Session(graph, placeholder_inputs=lambda name, dtype, shape: np.full(shape, 5, dtype))
    assert called.run()["y"].tolist() == [[15], [15]]


def test_outputs_may_be_inputs_constants_and_twice() -> None:
    graph = Graph("g", {"": 18})
    x = graph.add_input("x")
    c = graph.add_constant(np.float32([7]))
    graph.set_outputs([x, c, x], ["a", "b", "c"])
    result = Session(graph).run({"x": X})
    assert result["b"].tolist() == [7]
    assert result["a"] is result["c"]


def test_limits_give_what_was_live() -> None:
    with pytest.raises(LimitReached, match="max_nodes") as caught:
        Session(parse(CHAIN), max_nodes=2).run({"x": X})
    assert caught.value.partial["b"].tolist() == (X * X).tolist()
    assert "a" not in caught.value.partial  # freed at its last use
    with pytest.raises(LimitReached, match="max_bytes"):
        Session(parse(CHAIN), max_bytes=X.nbytes).run({"x": X})
    assert Session(parse(CHAIN), max_bytes=2 * X.nbytes).run({"x": X})["y"].shape == X.shape
    with pytest.raises(LimitReached, match="deadline_s"):
        Session(parse(CHAIN), deadline_s=-1).run({"x": X})


@pytest.mark.parametrize(
    "node",
    ["ConstantOfShape(n)", "Tile(x, n)", "Pad(x, p)", "OneHot(i, n, x)", "Range(zero, last, one)"],
)
def test_results_that_are_too_large(node: str) -> None:
    """A clear error, not a process killed for its memory."""
    text = f"""g (int64[1] n, float[2] x, int64[2] p, int64[1] i, int64 zero, int64 last, int64 one)
      => (float[k] y) {{ y = {node} }}"""
    big = 1 << 50
    feeds = {"n": [big], "x": [0, 1], "p": [0, big], "i": [0], "zero": 0, "last": big, "one": 1}
    with pytest.raises(ExecutionError, match=f"{node.split('(')[0]}-18.* would take [0-9]+ bytes"):
        Session(parse(HEADER + text)).run(feeds)
    with pytest.raises(LimitReached, match="max_bytes"):
        Session(parse(HEADER + text), max_bytes=1 << 20).run(
            feeds | {"n": [1 << 19], "p": [0, 1 << 19], "last": 1 << 19}
        )


def test_views_count_once() -> None:
    model = parse(
        HEADER + "g (float[8] x) => (float[8] y) { a = Neg(x)"
        "s = Constant<value = int64[2] {2, 4}>() b = Reshape(a, s) "
        "c = Transpose(b) d = Flatten(c) y = Identity(a) }"
    )
    session = Session(model, profile_memory=True)
    session.run({"x": np.zeros(8, np.float32)}, ["y", "c"])
    assert session.context.memory.peak <= 32 + 16  # one owner and the shape


def test_hooks_and_verbose(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[tuple[str, int, int]] = []
    session = Session(
        parse(CHAIN),
        verbose=True,
        after_node=lambda node, ins, outs, seconds: seen.append((node.op_type, len(ins), len(outs))),
    )
    session.run({"x": X})
    assert seen == [("Neg", 1, 1), ("Mul", 2, 1), ("Add", 2, 1)]
    assert capsys.readouterr().out.count("float32[2,2]") == 3


UNKNOWN = (
    '<ir_version: 10, opset_import: ["" : 18, "my" : 1]>'
    "g (float[2] x) => (float[2] y, float[2] z) { a = my.Magic(x) y = Neg(a) z = Abs(x) }"
)


def test_missing_kernels() -> None:
    model = parse(UNKNOWN)
    x = np.float32([-1, 2])
    with pytest.raises(MissingKernel, match=r"my::Magic.* no kernel for my::Magic version 1"):
        Session(model)
    result = Session(model, allow_missing_kernels="allow").run({"x": x})
    assert result["y"] is MISSING
    assert result["z"].tolist() == [1, 2]
    typed = parse(UNKNOWN.replace("y, float[2] z) {", "y, float[2] z) <float[2, k] a> {"))
    session = Session(typed, allow_missing_kernels="placeholder")
    assert session.run({"x": x})["y"].shape == (2, 1)
    assert session.placeholders == {"a"}


def test_missing_kernel_in_a_body() -> None:
    model = parse(
        '<ir_version: 10, opset_import: ["" : 18, "my" : 1]> g (bool c, float[2] x) => (float[2] y) {'
        "y = If(c) <then_branch = t () => (float[2] a) { a = my.Magic(x) },"
        "else_branch = e () => (float[2] b) { b = Neg(x) }> }"
    )
    session = Session(model, allow_missing_kernels="allow")
    x = np.float32([1, 2])
    assert session.run({"c": np.array(True), "x": x})["y"] is MISSING
    assert session.run({"c": np.array(False), "x": x})["y"].tolist() == [-1, -2]


def test_run_between() -> None:
    graph = parse(CHAIN).graph
    neg, mul, add = graph.topological()
    given = {neg.value(): np.float32([[5]])}
    assert run_between(graph, given, [mul.value()])[mul.value()].tolist() == [[25]]
    session = Session(graph)
    for _ in range(2):
        assert session.run_between(given, [mul.value(), neg.value()])[mul.value()].tolist() == [[25]]
    with pytest.raises(InvalidGraph, match="is needed, but it is not given"):
        run_between(graph, given, [add.value()])
    x = graph.inputs[0]
    given = {x: np.float32([[1]]), mul.value(): np.float32([[10]])}
    assert run_between(graph, given, [add.value()])[add.value()].tolist() == [[11]]


def test_a_constant_that_is_given_is_no_constant() -> None:
    """Kernels keep forms of constants; one that the caller replaces must not be kept."""
    graph = Graph("g", {"": 18})
    x, w = graph.add_input("x"), graph.add_constant(np.ones((2, 2), np.float16))
    product = graph.add("MatMul", [x, w]).value()
    session = Session(_returning(graph, product))
    half = np.eye(2, dtype=np.float16)
    for scale in (1, 2, 3):
        result = session.run_between({x: half, w: scale * half}, [product])
        assert result[product].tolist() == (scale * half).tolist()
    assert session.run({"x": half})["y"].tolist() == [[1, 1], [1, 1]]


def test_a_cycle_is_refused() -> None:
    graph = Graph("g", {"": 18})
    x = graph.add_input("x")
    first = graph.add("Add", [x, x])
    second = graph.add("Neg", [first.value()])
    graph.set_inputs(first, [x, second.value()])
    with pytest.raises(InvalidGraph, match="depends on itself"):
        Session(_returning(graph, second.value()))


def _returning(graph: Graph, value: Value) -> Graph:
    graph.set_outputs([value], ["y"])
    return graph


def test_run_between_second_output_of_a_given_producer() -> None:
    """A value that is given stays, though another output of its node must be computed."""
    graph = Graph("g", {"": 13})
    x = graph.add_input("x")
    split = graph.add("Split", [x], {"axis": 0}, 2)
    both = graph.add("Add", [split.value(0), split.value(1)])
    given = {x: np.float32([1, 2]), split.value(0): np.float32([100])}
    assert run_between(graph, given, [both.value()])[both.value()].tolist() == [102]


def test_truth_mode_computes_every_float_in_double() -> None:
    model = parse(
        HEADER + "g (float16[n] x) => (float[n] y, int64[1] s) {"
        "a = Mul(x, c) y = Cast<to = 1>(a) s = Shape(x) }",
        {"c": np.array([0.1], np.float16)},
    )
    x = np.linspace(0, 1, 7).astype(np.float16)
    result = Session(model, truth=True).run({"x": x})
    assert result["y"].dtype == np.float64
    assert result["s"].dtype == np.int64
    np.testing.assert_array_equal(result["y"], x.astype(np.float64) * np.float64(np.float16(0.1)))
    wide = Session(model, truth=True).run({"x": x.astype(np.float64)})["y"]
    np.testing.assert_array_equal(wide, result["y"])
    assert Session(model).run({"x": x})["y"].dtype == np.float32


def test_truth_mode_reaches_bodies_and_made_tensors() -> None:
    model = parse(
        HEADER + "g (int64[1] s, int64 trips) => (bfloat16[n] y, bfloat16[k,n] z) {"
        "f = ConstantOfShape<value = float[1] {1.0}>(s) a = Cast<to = 16>(f)"
        "y, z = Loop(trips, , a) <body = b (int64 i, bool c, bfloat16[n] v) "
        "=> (bool d, bfloat16[n] w, bfloat16[n] u) {"
        "d = Identity(c) w = Add(v, v) u = Neg(v) }> }"
    )
    for trips, expected in ((0, (0, 0)), (2, (2, 3))):
        result = Session(model, truth=True).run({"s": np.array([3]), "trips": trips})
        assert result["y"].dtype == result["z"].dtype == np.float64
        assert result["z"].shape == expected
        plain = Session(model).run({"s": np.array([3]), "trips": trips})
        assert plain["z"].dtype == ml_dtypes.bfloat16


def test_weights_load_only_when_needed() -> None:
    loaded: list[str] = []

    def weight(name: str) -> Tensor:
        return Tensor(DType.FLOAT, (1,), lambda: loaded.append(name) or np.ones(1, np.float32))

    graph = Graph("g", {"": 18})
    x = graph.add_input("x")
    a = graph.add("Add", [x, graph.add_constant(weight("a"))])
    b = graph.add("Add", [x, graph.add_constant(weight("b"))])
    graph.set_outputs([a.value(), b.value()], ["a", "b"])
    session = Session(graph)
    assert loaded == []
    session.run({"x": X}, ["a"])
    session.run({"x": X}, ["a"])
    assert loaded == ["a"]


def test_feeds_and_constants_are_never_written() -> None:
    graph = Graph("g", {"": 18})
    x = graph.add_input("x")
    values = [graph.add(op, [x]).value() for op in ("Identity", "Neg", "Relu", "Sigmoid", "Softmax")]
    graph.set_outputs(values, [f"y{i}" for i in range(5)])
    feed = X.copy()
    feed.flags.writeable = False
    Session(graph).run({"x": feed})


def test_a_long_chain_and_deep_sharing() -> None:
    graph = Graph("g", {"": 18})
    value = graph.add_input("x")
    for _ in range(5000):
        value = (
            graph.add("Add", [value, value]).value() if _ % 100 == 0 else graph.add("Neg", [value]).value()
        )
    graph.set_outputs([value], ["y"])
    assert Session(graph).run({"x": np.array(1.0)})["y"] == 2.0**50 * (-1) ** 4950


def test_unknown_option_and_recursion() -> None:
    with pytest.raises(UsageError, match="no such option: fast"):
        Session(parse(CHAIN), fast=True)
    looping = parse(
        '<ir_version: 10, opset_import: ["" : 18, "f" : 1]> g (float x) => (float y) { y = f.a(x) }'
        '<domain: "f", opset_import: ["f" : 1]> a (x) => (y) { y = f.b(x) }'
        '<domain: "f", opset_import: ["" : 18]> b (x) => (y) { y = Relu(x) }'
    )
    looping.functions["f", "b", ""] = looping.functions["f", "a", ""]
    with pytest.raises(OptimizerError, match="calls itself"):
        Session(looping)


@pytest.mark.parametrize(
    ("statements", "absent"),
    [
        ("import optimizer", "numpy onnx networkx onnxruntime onnx.reference optimizer.ir"),
        ("import optimizer.runtime", "onnxruntime onnx.reference rich optimizer.report"),
        (
            (
                "from optimizer.runtime import Session; from optimizer.io import parse; "
                f"Session(parse({TINY!r})).run({{'x': 1}})"
            ),
            "onnxruntime onnx.reference rich optimizer.report",
        ),
    ],
)
def test_import_is_light(statements: str, absent: str) -> None:
    code = f"import sys; {statements}; print([m for m in {absent.split()} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
