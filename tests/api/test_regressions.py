"""Small models that once came out wrong, or did not come out at all."""

from __future__ import annotations

import onnx
import pytest

from optimizer import check, optimize

HEAD = '<ir_version: 8, opset_import: ["" : {opset}]> g '


def model(text: str, opset: int = 17) -> bytes:
    return onnx.parser.parse_model(HEAD.format(opset=opset) + text).SerializeToString()


def test_a_shape_that_differs_is_never_excused() -> None:
    whole = model("(int64[4] x) => (int64[?] y) { y = Abs(x) }")
    none = model("(int64[4] x) => (int64[?] y) <int64[1] a = {0}> { y = Slice(x, a, a, a) }")
    assert not check(whole, none)


def test_unused_parts_of_a_split_stay() -> None:
    text = "(int64[6] x) => (int64[?] a, int64[?] b) { a, b, c = Split<axis = 0>(x) }"
    result = optimize(model(text, 11))
    assert len(result.model.graph.node[0].output) == 3
    assert result.report.rejected == []


BRANCHES = """(float[2] x, float[2] w) => (float[?] y) <bool c = {1}, bool d = {1}> {
    a = If(c) <then_branch = t () => (float[2] t1) { t1 = Neg(w) },
               else_branch = e () => (float[2] e1) { e1 = Abs(w) }>
    y = If(d) <then_branch = t () => (float[2] t1) { t1 = Neg(x) },
               else_branch = e () => (float[2] e1) { e1 = Identity(a) }>
}"""
REDUCE = """(float[2,3,3] x) => (float[?] y) {
    a = ReduceMax<axes = [-3, -2, -1], keepdims = 0>(x)
    y = ReduceMax<axes = [0], keepdims = 0>(a)
}"""
MASK = "(float[2] x) => (float[2] z) <float[2] c = {1, 2}> { y, m = Dropout(c) z = Add(m, x) }"
SMALL = """(float[1,1,1,4] x) => (int64[?] y) {
    p = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(x)
    y = Shape(p)
}"""
ACCEPTED = [
    ("if-that-went", BRANCHES, 17),
    ("reduce-to-nothing", REDUCE, 11),
    ("dropout-mask", MASK, 9),
]


@pytest.mark.parametrize(("text", "opset"), [a[1:] for a in ACCEPTED], ids=[a[0] for a in ACCEPTED])
def test_it_comes_out_right_at_the_first_try(text: str, opset: int) -> None:
    result = optimize(model(text, opset))
    assert result.verified == "full"
    assert result.report.rejected == []


def test_a_pool_that_does_not_fit_is_left_to_the_runtime() -> None:
    result = optimize(model(SMALL))
    assert result.verified == "onnxruntime-only"
    assert result.report.rejected == []
