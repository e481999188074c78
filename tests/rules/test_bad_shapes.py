"""Models whose shapes contradict themselves: an answer or a clear error, never a wrong static shape."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from optimizer import optimize
from optimizer.analysis import Facts
from optimizer.io import load, parse, to_proto
from optimizer.verify.engines import EngineError, OnnxRuntime

CONSTANTS = {
    "zero": np.array([0]),
    "one": np.array([1]),
    "rest": np.array([-1]),
    "seven": np.array([7]),
    "nought": np.array(0),
    "three": np.array(3),
    "yes": np.array(True),
}


def proto_of(text: str, opset: int = 17) -> onnx.ModelProto:
    return to_proto(parse(f'<ir_version: 8, opset_import: ["" : {opset}]> g {text}', constants=CONSTANTS))


def declare(proto: onnx.ModelProto, name: str, *shape: int | str) -> onnx.ModelProto:
    """Claims a shape of an intermediate value or of an output."""
    claim = onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
    for output in proto.graph.output:
        if output.name == name:
            output.CopyFrom(claim)
            return proto
    proto.graph.value_info.append(claim)
    return proto


def same(proto: onnx.ModelProto, *feeds: dict[str, np.ndarray]) -> onnx.ModelProto:
    """The optimized model, which gives what the original gives wherever that runs."""
    result = optimize(proto.SerializeToString(), verify="off").model
    before, after = OnnxRuntime(proto.SerializeToString()), OnnxRuntime(result.SerializeToString())
    accepted = 0
    for given in feeds:
        try:
            expected = before.run(given)
        except EngineError:
            continue
        accepted += 1
        found = after.run(given)
        for name, array in expected.items():
            np.testing.assert_array_equal(found[name], array)
    assert accepted == len(feeds) or not feeds
    return result


def some(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def test_a_wrong_declared_size_is_never_used() -> None:
    proto = proto_of("(float[N, 4] x) => (float y) { a = Neg(x) s = Shape(a) y = Expand(x, s) }")
    declare(proto, "a", 5, 4)
    same(proto, {"x": some(2, 4)}, {"x": some(7, 4)})
    facts = Facts(load(proto).graph).settle()
    assert str(facts.of(facts.graph.outputs[0])) == "float[N, 4]"


def test_a_contradiction_is_a_warning_and_the_inferred_shape_wins() -> None:
    proto = proto_of(
        "(float[N, 4] x) => (float y) { a = Neg(x) s = Shape(a) t = Gather(s, one) y = Cast<to=1>(t) }"
    )
    declare(proto, "a", "N", 6)
    facts = Facts(load(proto).graph).settle()
    assert [line for line in facts.warnings if "'a' is declared otherwise" in line]
    result = optimize(proto.SerializeToString(), verify="off").model
    (tensor,) = result.graph.initializer
    assert onnx.numpy_helper.to_array(tensor) == [4.0]


def test_a_wrong_declared_rank_is_never_used() -> None:
    proto = proto_of("(float[N, 4] x) => (float y) { a = Neg(x) s = Shape(a) z = Size(s) y = Cast<to=1>(z) }")
    declare(proto, "a", "N", 4, 1)
    result = optimize(proto.SerializeToString(), verify="off").model
    (tensor,) = result.graph.initializer
    assert onnx.numpy_helper.to_array(tensor) == 2.0


def test_a_name_for_two_sizes_inside_of_the_model() -> None:
    """The author calls two different dims N; only what the inputs say counts."""
    proto = proto_of(
        "(float[N, 4] x, float[M] z) => (float y) { a = Neg(z) s = Shape(a) t = Concat<axis=0>(s, rest)"
        " y = Reshape(x, t) }"
    )
    declare(proto, "a", "N")
    same(proto, {"x": some(2, 4), "z": some(8)}, {"x": some(3, 4), "z": some(2)})


def test_a_name_for_two_sizes_of_an_output() -> None:
    proto = declare(proto_of("(float[N, M] x) => (float y) { y = Transpose(x) }"), "y", "N", "N")
    same(proto, {"x": some(2, 3)})


def test_a_negative_declared_size_is_open() -> None:
    proto = proto_of("(float[N, 4] x) => (float y) { s = Shape(x) y = Expand(x, s) }")
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1
    result = same(proto, {"x": some(2, 4)}, {"x": some(5, 4)})
    assert not result.graph.node or [n.op_type for n in result.graph.node] == ["Identity"]


def test_reshape_to_an_impossible_size_stays_and_is_told() -> None:
    proto = proto_of("(float[2, 3] x) => (float y) { a = Reshape(x, seven) y = Relu(a) }")
    facts = Facts(load(proto).graph).settle()
    assert ["elements cannot take a shape" in line for line in facts.warnings] == [True]
    result = optimize(proto.SerializeToString(), verify="off").model
    assert "Reshape" in [n.op_type for n in result.graph.node]


def test_a_window_larger_than_its_input_gives_no_negative_size() -> None:
    proto = proto_of(
        "(float[1, 1, 2, 2] x, float[1, 1, 5, 5] w) => (float y, int64 t) { y = Conv(x, w) t = Shape(y) }"
    )
    facts = Facts(load(proto).graph).settle()
    assert facts.shape(facts.graph.outputs[0]) is None
    assert any("negative size" in line for line in facts.warnings)
    assert optimize(proto.SerializeToString(), verify="off").model.graph.node


def test_sizes_that_overflow() -> None:
    huge = 2**40
    proto = proto_of(
        f"(float[{huge}, 1] p, float[{huge}] q) => (int64 y, float z, int64 t) {{ x = Mul(p, q) y = Size(x)"
        " z = Flatten<axis=2>(x) t = Shape(z) }"
    )
    for passes in (None, ["infer"]):
        result = optimize(proto.SerializeToString(), passes=passes, verify="off").model
        assert result.graph.node
    facts = Facts(load(proto).graph).settle()
    assert facts.value(facts.graph.outputs[0]) is None


def test_branches_of_different_ranks() -> None:
    proto = proto_of(
        "(bool c, float[N, 4] x) => (float y, int64 t) { y = If(c) <"
        "then_branch = p () => (float u) { u = Unsqueeze(x, zero) },"
        " else_branch = q () => (float v) { v = ReduceSum<keepdims=0>(x, one) }> t = Shape(y) }"
    )
    same(proto, {"c": np.array(True), "x": some(3, 4)}, {"c": np.array(False), "x": some(2, 4)})


def test_branches_of_different_sizes() -> None:
    proto = proto_of(
        "(bool c, float[N, 4] x) => (float y) { a = If(c) <"
        "then_branch = p () => (float u) { u = Concat<axis=0>(x, x) },"
        " else_branch = q () => (float v) { v = Neg(x) }> s = Shape(x) y = Expand(a, s) }"
    )
    same(proto, {"c": np.array(False), "x": some(3, 4)}, {"c": np.array(True), "x": some(1, 4)})


def test_equal_names_inside_of_branches() -> None:
    proto = proto_of(
        "(bool c, float[N, 4] x) => (float y) { a = Exp(x) y = If(c) <"
        "then_branch = p () => (float u) { w = Abs(a) u = Sin(w) },"
        " else_branch = q () => (float v) { w = Neg(a) v = Cos(w) }> }"
    )
    same(proto, {"c": np.array(True), "x": some(3, 4)}, {"c": np.array(False), "x": some(2, 4)})


def test_equal_names_in_branches_that_are_taken() -> None:
    branch = (
        "= If(yes) <then_branch = p () => (float u) { w = Abs(x) u = Sin(w) },"
        " else_branch = q () => (float v) { w = Neg(x) v = Cos(w) }>"
    )
    proto = proto_of(
        f"(float[N, 4] x) => (float y, float z) {{ y {branch} z {branch.replace('Sin', 'Tan')} }}"
    )
    result = same(proto, {"x": some(3, 4)})
    names = [name for node in result.graph.node for name in node.output]
    assert len(names) == len(set(names))
    assert "If" not in [node.op_type for node in result.graph.node]


@pytest.mark.parametrize("limit", ["", "n"])
def test_a_loop_without_a_known_end(limit: str) -> None:
    proto = proto_of(
        f"(int64 n, float[N, 4] x) => (float y, float z) {{ y, z = Loop({limit}, yes, x) <"
        "body = b (int64 i, bool g, float[P, Q] v) => (bool h, float[P, Q] w, float[P, Q] s) {"
        " h = Less(i, three) w = Concat<axis=0>(v, x) s = Relu(x) }> }"
    )
    feeds = {"n": np.array(9), "x": some(2, 4)}
    facts = Facts(load(proto).graph).settle()
    first, second = (facts.shape(value) for value in facts.graph.outputs)
    assert first is not None
    assert not first[0].is_known
    assert second is None or not second[0].is_known
    before, after = (
        OnnxRuntime(p.SerializeToString()).run(feeds)
        for p in (proto, optimize(proto.SerializeToString(), verify="off").model)
    )
    for name, array in before.items():
        np.testing.assert_array_equal(after[name], array)


def test_a_loop_that_never_ends_is_not_folded_away() -> None:
    proto = proto_of(
        "(float[4] x) => (float y) { y = Loop(, yes, x) <body = b (int64 i, bool g, float[4] v) =>"
        " (bool h, float[4] w) { h = Identity(g) w = Neg(v) }> }"
    )
    result = optimize(proto.SerializeToString(), verify="off").model
    assert [node.op_type for node in result.graph.node] == ["Loop"]
