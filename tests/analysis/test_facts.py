"""Facts under rewriting, in bodies and functions, and at length."""

from __future__ import annotations

import time

import numpy as np
import pytest

from optimizer.analysis import Dim, Fact, Facts, InferContext, infer, meet
from optimizer.io import parse
from optimizer.ir import DType, Graph, InvalidGraph, TensorType, Value, ValueInfo


def graph_with_input(*shape: int | str) -> tuple[Graph, Value]:
    graph = Graph("g", {"": 21})
    return graph, graph.add_input(ValueInfo("x", TensorType(DType.FLOAT, shape)))


def facts_of(text: str, **constants: np.ndarray) -> Facts:
    model = parse(f'<ir_version: 10, opset_import: ["" : 21]> {text}', constants=constants)
    return Facts(model.graph, model.functions)


def output(facts: Facts, index: int = 0) -> str:
    return str(facts.of(facts.graph.outputs[index]))


# ---------------------------------------------------------------- rewriting


def test_values_made_later_are_inferred_when_asked_for() -> None:
    graph, x = graph_with_input("N", 3)
    facts = Facts(graph)
    first = graph.add("Relu", [x]).value()
    assert str(facts.of(first)) == "float[N, 3]"
    second = graph.add("Transpose", [first]).value()
    assert str(facts.of(second)) == "float[3, N]"
    graph.erase(second.node)
    with pytest.raises(InvalidGraph):
        Facts(graph).of(second)


def test_tighten_adds_knowledge_and_refresh_carries_it_on() -> None:
    graph, x = graph_with_input("N")
    cut = graph.add("NonZero", [x]).value()
    after = graph.add("Cast", [cut], {"to": 1}).value()
    facts = Facts(graph)
    assert facts.shape(after)[1].is_known is False
    facts.tighten(cut, Fact.tensor(DType.INT64, (1, "K")))
    assert str(facts.of(cut)) == "int64[1, K]"
    facts.refresh()
    assert str(facts.of(after)) == "float[1, K]"
    assert str(facts.of(cut)) == "int64[1, K]"


def test_meet_takes_the_more_precise_of_both() -> None:
    some = Dim.fresh()
    both = meet(Fact(None, (some, Dim.of("N"))), Fact(DType.FLOAT, (Dim.of(3), Dim.fresh())))
    assert str(both) == "float[3, N]"
    first, second = Fact.tensor(DType.FLOAT, (2,)), Fact.tensor(DType.FLOAT, (3,))
    assert meet(first, second) is first


def test_names_can_be_given_sizes_or_bounds() -> None:
    graph, x = graph_with_input("batch", "seq")
    frozen = Facts(graph, dims={"batch": 8, "seq": Dim.symbol("seq", lo=1, divisor=8)})
    assert str(frozen.of(x)) == "float[8, seq]"
    assert frozen.shape(x)[1].eq(0) is False
    assert (frozen.shape(x)[1] % 8).value == 0


def test_equal_names_of_two_inputs_are_one_dim() -> None:
    facts = facts_of("g (float[N] a, float[N] b) => (float y) { y = Add(a, b) }")
    assert output(facts) == "float[N]"


def test_a_user_may_declare_a_custom_operator() -> None:
    @infer("Doubled", domain="test.analysis")
    def doubled(context: InferContext) -> Fact:
        shape = context.shape(0)
        assert shape is not None
        return Fact(context.dtype(0), (*shape[:-1], shape[-1] * 2))

    graph, x = graph_with_input("N", 3)
    made = graph.add("Doubled", [x], domain="test.analysis").value()
    assert str(Facts(graph).of(made)) == "float[N, 6]"


def test_a_failing_rule_is_a_warning() -> None:
    @infer("Broken", domain="test.analysis")
    def broken(context: InferContext) -> Fact:
        raise KeyError("axis")

    graph, x = graph_with_input(2)
    facts = Facts(graph)
    assert facts.shape(graph.add("Broken", [x], domain="test.analysis").value()) is None
    assert "KeyError" in facts.warnings[0]


# ---------------------------------------------------------------- bodies


def test_if_joins_its_branches() -> None:
    facts = facts_of(
        """g (bool c, float[N,3] x, float[M,3] z) => (float y) {
            y = If (c) <
              then_branch = a () => (float p) { p = Relu(x) },
              else_branch = b () => (float q) { q = Relu(z) } >
        }"""
    )
    shape = facts.shape(facts.graph.outputs[0])
    assert shape[0].is_known is False
    assert shape[1] == 3


def test_if_with_a_known_condition_takes_that_branch() -> None:
    facts = facts_of(
        """g (float[N,3] x) => (float y) {
            s = Shape(x)
            r = Size(s)
            two = Constant<value_int=2>()
            c = Equal(r, two)
            y = If (c) <
              then_branch = a () => (float p) { p = Relu(x) },
              else_branch = b () => (float q) { q = Transpose(x) } >
        }"""
    )
    assert output(facts) == "float[N, 3]"


LOOP = """g (float[N,3] x) => (float y, float z) {{
    m = Constant<value_int=4>()
    t = Constant<value=bool {{1}}>()
    y, z = Loop (m, t, x) <
      body = b (int64 i, bool c, float[2,3] v) => (bool d, float w, float o) {{
        d = Identity(c)
        w = {step}
        o = Relu(v)
      }} >
}}"""


def test_loop_keeps_what_every_iteration_keeps() -> None:
    facts = facts_of(LOOP.format(step="Neg(v)"))
    assert output(facts) == "float[N, 3]"
    assert output(facts, 1) == "float[4, N, 3]"


def test_loop_widens_what_an_iteration_changes() -> None:
    facts = facts_of(LOOP.format(step="Concat<axis=0>(v, x)"))
    shape, stacked = facts.shape(facts.graph.outputs[0]), facts.shape(facts.graph.outputs[1])
    assert shape[0].is_known is False
    assert shape[1] == 3
    assert stacked[0] == 4
    assert stacked[1].is_known is False
    assert stacked[1] != shape[0]


def test_loop_that_may_not_run_at_all_promises_no_element_shape() -> None:
    """onnxruntime stacks no iterations into (0, 0, 3) or even (0,), by the body's declared types."""
    text = LOOP.format(step="Neg(v)").replace("g (float[N,3] x)", "g (int64 m, float[N,3] x)")
    facts = facts_of(text.replace("m = Constant<value_int=4>()", ""))
    assert output(facts) == "float[N, 3]"
    assert facts.shape(facts.graph.outputs[1]) is None


def test_loop_whose_rank_changes_claims_none() -> None:
    facts = facts_of(LOOP.format(step="ReduceSum<keepdims=0>(v)"))
    assert facts.shape(facts.graph.outputs[0]) is None
    assert facts.dtype(facts.graph.outputs[0]) is DType.FLOAT


def test_scan_slices_and_stacks() -> None:
    facts = facts_of(
        """g (float[4] s, float[T,4] x) => (float y, float z) {
            y, z = Scan <num_scan_inputs = 1,
              body = b (float[4] a, float[4] e) => (float n, float o) { n = Add(a, e) o = Relu(n) }> (s, x)
        }"""
    )
    assert output(facts) == "float[4]"
    assert output(facts, 1) == "float[T, 4]"


def test_body_facts_see_the_outside() -> None:
    facts = facts_of(
        """g (bool c, float[N,3] x) => (float y) {
            y = If (c) <
              then_branch = a () => (float p) { p = Transpose(x) },
              else_branch = b () => (float q) { q = Transpose(x) } >
        }"""
    )
    (node,) = facts.graph.nodes
    body = facts.body(node, 0)
    assert str(body.of(body.graph.outputs[0])) == "float[3, N]"
    assert facts.body(node, 0) is body


def test_calls_are_inferred_through_the_function() -> None:
    model = parse(
        """<ir_version: 10, opset_import: ["" : 21, "my" : 1]>
        g (float[N,3] x) => (float y) { y = my.flip <p=[1,0]>(x) }
        <domain: "my", opset_import: ["" : 21]>
        flip <p>(a) => (b) { c = Relu(a) b = Transpose<perm: ints = @p>(c) }"""
    )
    facts = Facts(model.graph, model.functions)
    assert output(facts) == "float[3, N]"


# ---------------------------------------------------------------- at length


def test_long_chains_are_fast_and_do_not_recurse() -> None:
    graph, value = graph_with_input("N", 3)
    for index in range(20_000):
        value = graph.add("Add" if index % 2 else "Relu", [value, value][: 1 + index % 2]).value()
    graph.set_outputs([value], ["y"])
    facts = Facts(graph)
    start = time.process_time()
    assert str(facts.of(value)) == "float[N, 3]"
    assert time.process_time() - start < 1.0


def test_a_body_that_another_node_gets_still_knows_what_it_captures() -> None:
    facts = facts_of(
        "g (bool c, float[N,4] x, float[M] z) => (float y) { y = If(c) <"
        "then_branch = t () => (float u) { u = Relu(x) }, else_branch = e () => (float v) { v = Neg(x) }> }"
    )
    graph = facts.graph
    (old,) = graph.nodes
    inner = facts.body(old, 0)
    body = inner.graph
    new = graph.add("If", old.inputs, old.attributes, 1, captures=old.captures)
    graph.replace_uses(old.value(), new.value())
    graph.erase(old)
    first, second = new.captures_of(0), new.captures_of(1)
    formal = body.add_capture("")
    graph.set_inputs(new, new.inputs, [*first, graph.inputs[2], *second])
    assert str(inner.of(formal)) == "float[M]"
