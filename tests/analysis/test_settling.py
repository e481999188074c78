"""What must hold for a model to run: branches that would fail, sizes that are never 0."""

from __future__ import annotations

import numpy as np
import pytest

from optimizer import optimize
from optimizer.analysis import Facts
from optimizer.io import parse, to_proto
from optimizer.verify.engines import EngineError, OnnxRuntime

CONSTANTS = {
    "zero": np.array([0]),
    "one": np.array([1]),
    "rest": np.array([-1]),
    "two": np.array(2),
    "w": np.ones((1, 9, 4), np.float32),
    "r": np.ones((1, 9, 3), np.float32),
    "k": np.zeros((2, 3, 3), np.float32),
}


def settled(text: str) -> Facts:
    model = parse(f'<ir_version: 9, opset_import: ["" : 17]> g {text}', constants=CONSTANTS)
    return Facts(model.graph, model.functions).settle()


def if_(condition: str, then: str, other: str, result: str = "a") -> str:
    return (
        f"{result} = If({condition}) <then_branch = p () => (float u) {{ {then} }}, "
        f"else_branch = q () => (float v) {{ {other} }}>"
    )


SQUEEZED = if_("c", "u = Squeeze(x, one)", "v = Identity(x)")
HEAD = "(bool c, float[S, 1, B, 4] x) => (float y)"
FAILING = f"{HEAD} {{ {SQUEEZED} y, h = GRU<hidden_size=3>(a, w, r) }}"


def conditions(facts: Facts) -> list[object]:
    found = []
    for node in facts.graph.topological():
        if node.op == "If":
            known = facts.value(node.inputs[0])
            found.append(None if known is None else known.items[0])
    return found


def test_a_branch_that_fails_later_is_never_taken() -> None:
    facts = settled(FAILING)
    assert conditions(facts) == [True]
    assert str(facts.of(facts.graph.outputs[0])) == "float[S, 1, B, 3]"
    assert not facts.warnings


def test_one_decision_leads_to_the_next() -> None:
    """The second condition asks for the rank that the first one decides."""
    facts = settled(
        f"{HEAD} {{ {SQUEEZED} s = Shape(a) n = Size(s) d = Equal(n, two) "
        + if_("d", "u = Unsqueeze(a, zero)", "v = Identity(a)", "b")
        + " y, h = GRU<hidden_size=3>(b, w, r) }"
    )
    assert conditions(facts) == [True, False]


def test_a_branch_counts_where_it_is_always_taken() -> None:
    inner = "u, h = GRU<hidden_size=3>(a, w, r)"
    yes = "yes = Constant<value = bool {1}>()"
    facts = settled(f"{HEAD} {{ {yes} {SQUEEZED} " + if_("yes", inner, "v = Identity(x)", "y") + " }")
    assert conditions(facts) == [True, True]


def test_inside_of_a_branch() -> None:
    """What a branch needs decides conditions inside of it, and says nothing outside."""
    facts = settled(
        "(bool o, bool c, float[S, 1, B, 4] x) => (float y) { "
        + if_("o", f"{SQUEEZED} u, h = GRU<hidden_size=3>(a, w, r)", "v = Identity(x)", "y")
        + " }"
    )
    assert conditions(facts) == [None]
    (node,) = facts.graph.nodes
    assert conditions(facts.body(node, 0)) == [True]


@pytest.mark.parametrize(
    "text",
    [
        # whoever fails is not needed
        f"{HEAD} {{ {SQUEEZED} z, h = GRU<hidden_size=3>(a, w, r) y = Neg(a) }}",
        # or does not always run
        f"(bool c, bool d, float[S, 1, B, 4] x) => (float y) {{ {SQUEEZED} "
        + if_("d", "u, h = GRU<hidden_size=3>(a, w, r)", "v = Identity(x)", "y")
        + " }",
        # either way works
        f"{HEAD} {{ {SQUEEZED} y = Neg(a) }}",
        # neither way works
        "(bool c, float[S, B, 4] x) => (float y) { "
        + if_("c", "u = Unsqueeze(x, zero)", "v = Unsqueeze(x, one)")
        + " y, h = GRU<hidden_size=3>(a, w, r) }",
        # onnxruntime joins an empty tensor with anything
        "(bool c, float[N, 4] x) => (float y) { "
        + if_("c", "u = Concat<axis=1>(x, x)", "v = Identity(x)")
        + " y = Concat<axis=0>(a, x) }",
    ],
    ids=["not-needed", "not-always", "both-work", "none-works", "not-certain"],
)
def test_nothing_is_decided(text: str) -> None:
    assert None in conditions(settled(text))


def test_the_decided_model_does_what_the_original_does() -> None:
    proto = to_proto(parse(f'<ir_version: 9, opset_import: ["" : 17]> g {FAILING}', constants=CONSTANTS))
    result = optimize(proto.SerializeToString(), verify="off").model
    assert [node.op_type for node in result.graph.node] == ["Squeeze", "GRU"]
    before, after = OnnxRuntime(proto.SerializeToString()), OnnxRuntime(result.SerializeToString())
    x = np.random.default_rng(0).standard_normal((5, 1, 2, 4)).astype(np.float32)
    taken = {"c": np.array(True), "x": x}
    np.testing.assert_array_equal(before.run(taken)["y"], after.run(taken)["y"])
    with pytest.raises(EngineError):
        before.run({"c": np.array(False), "x": x})


# ---------------------------------------------------------------- sizes that are never 0


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        (("(float[N, S, 4] x) => (float y) { t = Concat<axis=0>(n, rest) s = Shape(x) n = Slice(s, zero, one)"
         " y = Reshape(x, t) }"), [1, 0, 4]),
        ("(float[N, S, 4] x) => (float y) { t = Concat<axis=0>(zero, zero, rest) y = Reshape(x, t) }",
         [1, 1, 4]),
        ("(float[N, 3, L] x) => (float y) { y = Conv(x, k) }", [0, 3, 3]),
        ("(float[N, 3, L] x) => (float y) { y = Conv<pads=[1, 1]>(x, k) }", [0, 3, 1]),
        ("(float[N, 3, L] x) => (float y) { y = Conv<dilations=[2]>(x, k) }", [0, 3, 5]),
        ("(float[N, 3, L] x) => (float y) { a = MaxPool<kernel_shape=[2], strides=[2]>(x) y = Conv(a, k) }",
         [0, 3, 6]),
        ("(float[N, 3, L] x) => (float y) { y = MaxPool<kernel_shape=[2], strides=[2]>(x) }", [0, 3, 0]),
        ("(float[N, 3, L] x) => (float y) { y = Conv<auto_pad=\"SAME_UPPER\">(x, k) }", [0, 3, 0]),
    ],
    ids=["rest", "rest-behind-copies", "conv", "padded", "dilated", "behind-a-pool", "pool", "same"],
)  # fmt: skip
def test_least_sizes(text: str, bounds: list[int]) -> None:
    facts = settled(text)
    shape = facts.shape(facts.graph.inputs[0])
    assert shape is not None
    assert [int(dim.bounds[0]) for dim in shape] == bounds


@pytest.mark.parametrize("size", [0, 1, 2, 4, 5, 6, 7])
def test_onnxruntime_refuses_smaller_sizes(size: int) -> None:
    """The least size learnt from a convolution behind a pool is what onnxruntime accepts at least."""
    text = "(float[N, 3, L] x) => (float y) { a = MaxPool<kernel_shape=[2], strides=[2]>(x) y = Conv(a, k) }"
    proto = to_proto(parse(f'<ir_version: 9, opset_import: ["" : 17]> g {text}', constants=CONSTANTS))
    engine = OnnxRuntime(proto.SerializeToString())
    feeds = {"x": np.zeros((1, 3, size), np.float32)}
    if size >= 6:
        assert engine.run(feeds)["y"].shape == (1, 2, size // 2 - 2)
    else:
        with pytest.raises(EngineError):
            engine.run(feeds)


RESHAPED = (
    "(float[{}, B, 6] x) => (float y) {{ s = Shape<start=0, end=1>(x) b = Shape<start=1, end=2>(x) "
    "n1 = Constant<value_ints=[1]>() n6 = Constant<value_ints=[6]>() sb = Mul(s, b) "
    "t = Concat<axis=0>({}) y = Reshape{}(x, t) }}"
)


@pytest.mark.parametrize(
    ("tokens", "target", "attributes", "at_least_one"),
    [
        ("5", "sb, n6", "", True),  # 0 copies 5, and there would be 30 elements
        ("S", "sb, n6", "", None),  # S may be 0 too
        ("5", "n1, sb, n6", "", None),  # 0 copies B, which is 0
        ("5", "sb, n6", "<allowzero=1>", None),
    ],
)
def test_a_target_that_copies_where_there_is_nothing(
    tokens: str, target: str, attributes: str, at_least_one: bool | None
) -> None:
    opset = 'ir_version: 9, opset_import: ["" : 17]'
    model = parse(f"<{opset}> g {RESHAPED.format(tokens, target, attributes)}")
    facts = Facts(model.graph, model.functions).settle()
    shape = facts.shape(facts.graph.inputs[0])
    assert shape is not None
    assert shape[1].ge(1) is at_least_one
