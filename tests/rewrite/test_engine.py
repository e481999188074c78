"""Rewriter, driver, journal, pipelines: what happens to the graph, and how it is taken back."""

from __future__ import annotations

import numpy as np
import pytest

from optimizer.ir import DType, Graph, Model, TensorType, ValueInfo, verify_graph
from optimizer.rewrite import (
    Context,
    Driver,
    Group,
    Match,
    P,
    Pipeline,
    Registry,
    Rewriter,
    RuleFailed,
    RuleIndex,
    RulePass,
    Settings,
    StopReason,
    graph_optimizer,
    pass_of,
)

SCRATCH = Registry()


@graph_optimizer(P.Neg(P.Neg("x")), tag="E0", registry=SCRATCH)
def cancel_negations(m: Match, rw: Rewriter):
    """Neg(Neg(x)) -> x"""
    return m.x


@graph_optimizer(P.Mul(P.Mul("x", "a").once(), "b"), constants="a b", registry=SCRATCH)
def merge_scales(m: Match, rw: Rewriter):
    """Mul(Mul(x, a), b) -> Mul(x, a * b)"""
    return rw.op.Mul(m.x, rw.const(m.f64(m.a) * m.f64(m.b), like=m.x))


@graph_optimizer(P.Relu("x"), registry=SCRATCH)
def relu_to_abs(m: Match, rw: Rewriter):
    """Relu(x) -> Abs(x)"""
    return rw.op.Abs(m.x)


@graph_optimizer(P.Abs("x"), registry=SCRATCH)
def abs_to_relu(m: Match, rw: Rewriter):
    """Abs(x) -> Relu(x)"""
    return rw.op.Relu(m.x)


@graph_optimizer(P.Relu("x"), registry=SCRATCH)
def relu_to_flatten(m: Match, rw: Rewriter):
    """Relu(x) -> Flatten(x), which changes the rank"""
    return rw.op.Flatten(m.x)


@graph_optimizer(P.Relu("x"), registry=SCRATCH)
def relu_to_half(m: Match, rw: Rewriter):
    """Relu(x) -> Cast(x), which changes the type"""
    return rw.op.Cast(m.x, to=int(DType.FLOAT16))


@graph_optimizer(P.Relu("x"), registry=SCRATCH)
def broken_rule(m: Match, rw: Rewriter):
    """Relu(x) -> error"""
    raise ZeroDivisionError("oops")


def model_of(*ops: str, shape: tuple[object, ...] = ("N", 3, 4)) -> Model:
    """A chain of unary ops from input x to output y; Mul multiplies with 2, outputs t0, t1, ..."""
    graph = Graph("g", {"": 17})
    value = graph.add_input(ValueInfo("x", TensorType(DType.FLOAT, shape)))
    for index, op in enumerate(ops):
        extra = [graph.add_constant(np.float32(2))] if op == "Mul" else []
        value = graph.add(op, [value, *extra], outputs=[f"t{index}"]).value()
    graph.set_outputs([value], [ValueInfo("y", TensorType(DType.FLOAT, shape))])
    return Model(graph)


def apply(model: Model, *rules, **settings) -> Context:
    ctx = Context(model, Settings(**settings))
    RulePass("test", rules).run(ctx)
    verify_graph(model.graph)
    return ctx


def ops(model: Model) -> list[str]:
    return [node.op_type for node in model.graph.topological()]


def test_a_rule_fires_until_nothing_is_left() -> None:
    model = model_of(*["Neg"] * 7)
    ctx = apply(model, cancel_negations)
    assert ops(model) == ["Neg"]
    assert ctx.stats["cancel-negations"].fired == 3


def test_an_edit_makes_neighbours_match() -> None:
    model = model_of("Mul", "Mul", "Mul", "Neg", "Neg", "Mul")
    apply(model, merge_scales, cancel_negations)
    assert ops(model) == ["Mul"]
    (mul,) = model.graph.nodes
    assert model.graph.const(mul.inputs[1]) == 16.0
    assert len(model.graph.constants) == 1, "folded constants are erased"


def test_the_output_keeps_its_name_when_it_becomes_an_input() -> None:
    model = model_of("Neg", "Neg")
    apply(model, cancel_negations)
    assert model.graph.outputs == model.graph.inputs
    assert [info.name for info in model.graph.sink.outputs] == ["y"]


@pytest.mark.parametrize(
    ("rule", "reason"),
    [(relu_to_flatten, "rank would change from 3 to 2"), (relu_to_half, "element type would change")],
)
def test_commit_refuses_what_contradicts_the_facts(rule, reason: str) -> None:
    model = model_of("Relu")
    ctx = apply(model, rule)
    assert ops(model) == ["Relu"]
    assert any(reason in text for text in ctx.stats[rule.name].refused)
    assert ctx.journal.entries == []


def test_oscillating_rules_stop_and_are_named() -> None:
    model = model_of("Relu")
    ctx = Context(model)
    outcome = Driver(ctx, model.graph, (), RuleIndex([relu_to_abs, abs_to_relu])).run()
    assert outcome.stop is StopReason.LIMIT
    assert set(outcome.oscillating) == {"relu-to-abs", "abs-to-relu"}
    assert "still firing" in ctx.warnings[0]


def test_a_failing_rule_is_named_and_leaves_no_trace() -> None:
    model = model_of("Relu")
    with pytest.raises(
        RuleFailed, match=r"broken-rule failed at Relu .*\(.*test_engine.py, line \d+\): Zero"
    ):
        apply(model, broken_rule)
    assert ops(model) == ["Relu"]


def test_a_failure_that_is_forgiven_only_leaves_the_rule_out() -> None:
    model = model_of("Relu", "Neg", "Neg")
    ctx = Context(model)
    ctx.forgiven = frozenset({"broken-rule"})
    RulePass("test", [broken_rule, cancel_negations]).run(ctx)
    assert ops(model) == ["Relu"]
    assert set(ctx.stats["broken-rule"].refused) == {"it failed: ZeroDivisionError: oops"}
    assert "broken-rule failed at Relu" in ctx.warnings[0]


def test_floating_point_levels_admit_tags() -> None:
    model = model_of("Mul", "Mul")
    apply(model, merge_scales, fp="strict")
    assert ops(model) == ["Mul", "Mul"]


def test_kept_names_are_not_touched() -> None:
    model = model_of("Neg", "Neg", "Neg", "Neg")
    apply(model, cancel_negations, keep=("t1",))
    assert ops(model) == ["Neg", "Neg"], "the pair behind it goes"
    assert "t1" in [info.name for node in model.graph.nodes for info in node.outputs]


def test_overflow_in_a_folded_constant_is_refused() -> None:
    graph = Graph("g", {"": 17})
    value = graph.add_input(ValueInfo("x", TensorType(DType.FLOAT16, (3,))))
    for _ in range(2):
        value = graph.add("Mul", [value, graph.add_constant(np.float16(60000))]).value()
    graph.set_outputs([value], ["y"])
    ctx = apply(Model(graph), merge_scales)
    assert ctx.stats["merge-scales"].refused == {"a folded constant is not finite in FLOAT16": 1}


@graph_optimizer(P.Relu("x"), registry=SCRATCH)
def relu_to_sum(m: Match, rw: Rewriter):
    """Relu(x) -> Add(x, c), where c is not a number"""
    return rw.op.Add(m.x, rw.const(np.array([np.inf], np.float32) * np.float32(0)))


def test_what_a_rule_computes_may_be_no_number_without_a_warning() -> None:
    model = model_of("Relu")
    apply(model, relu_to_sum)
    assert ops(model) == ["Add"]


def test_the_journal_moves_both_ways() -> None:
    model = model_of(*["Neg"] * 6)
    ctx = apply(model, cancel_negations)
    assert [entry.rule for entry in ctx.journal.entries] == ["cancel-negations"] * 3
    counts = []
    for cursor in (0, 1, 2, 3, 1):
        ctx.journal.seek(cursor)
        verify_graph(model.graph)
        counts.append(len(model.graph))
    assert counts == [6, 4, 2, 0, 4]


def test_a_new_application_forgets_what_was_undone() -> None:
    model = model_of(*["Neg"] * 6)
    ctx = apply(model, cancel_negations)
    ctx.journal.seek(1)
    ctx.forget_facts()
    RulePass("again", [cancel_negations]).run(ctx)
    assert len(ctx.journal.entries) == 3
    assert ops(model) == []


class Veto:
    """A check that finds applications at certain anchors wrong."""

    def __init__(self, *anchors: str) -> None:
        self.anchors = anchors

    def __call__(self, ctx, application) -> str | None:
        return "planted" if application.anchor in self.anchors else None


def test_a_vetoed_application_is_undone_excluded_and_named() -> None:
    model = model_of("Mul", "Mul", "Abs", "Mul", "Mul")
    ctx = Context(model)
    ctx.check = Veto("t1")
    step = RulePass("test", [merge_scales])
    assert step.run(ctx)
    assert not step.sweep(ctx)
    assert ops(model) == ["Mul", "Mul", "Abs", "Mul"]
    assert [(r.application.rule, r.application.anchor, r.fault) for r in ctx.rejected] == [
        ("merge-scales", "t1", "planted")
    ]
    verify_graph(model.graph)


def test_a_rule_that_fails_twice_is_out() -> None:
    model = model_of(*["Mul", "Mul", "Abs"] * 3)
    ctx = Context(model)
    ctx.check = Veto("t1", "t4")
    RulePass("test", [merge_scales]).run(ctx)
    assert ctx.banned == {"merge-scales"}
    assert ops(model).count("Mul") == 6


@graph_optimizer(registry=SCRATCH)
def drop_negations(graph: Graph) -> bool:
    """A bare loop over the nodes."""
    changed = False
    for node in graph.nodes:
        inner = graph.producer(node.inputs[0]) if node.op_type == "Neg" else None
        if inner is not None and inner.op_type == "Neg":
            made = graph.add("Identity", [inner.inputs[0]])
            graph.replace_uses(node.value(), made.value())
            changed = True
    return changed


def test_a_bare_function_is_journaled_edit_by_edit() -> None:
    model = model_of("Neg", "Neg", "Abs", "Neg", "Neg")
    ctx = Context(model)
    assert pass_of(drop_negations).run(ctx)
    assert [entry.rule for entry in ctx.journal.entries] == ["drop-negations"] * 2
    ctx.journal.seek(1)
    verify_graph(model.graph)
    assert ops(model).count("Identity") == 1


def test_a_wrong_edit_of_a_bare_function_is_undone_with_the_later_ones() -> None:
    model = model_of("Neg", "Neg", "Abs", "Neg", "Neg", "Abs", "Neg", "Neg")
    ctx = Context(model)
    seen: list[str] = []

    def second_is_wrong(ctx: Context, application) -> str | None:
        seen.append(application.anchor)
        return "planted" if len(seen) == 2 else None

    ctx.check = second_is_wrong
    step = pass_of(drop_negations)
    assert step.run(ctx)
    assert ops(model).count("Identity") == 1
    assert len(ctx.rejected) == 1
    assert not step.run(ctx), "it runs no more"


def test_a_pipeline_repeats_until_nothing_changes() -> None:
    model = model_of("Neg", "Mul", "Mul", "Neg")
    ctx = Context(model)
    names: list[str] = []

    class Watch:
        def before_pass(self, ctx: Context, name: str) -> None:
            names.append(name)

        def after_pass(self, ctx: Context, name: str, changed: bool) -> None:
            names.append(f"{name}:{changed}")

    groups = [Group("a", (RulePass("neg", [cancel_negations]), RulePass("mul", [merge_scales])))]
    assert Pipeline(groups).run(ctx, [Watch()]) == 2
    assert names == ["neg", "neg:False", "mul", "mul:True", "neg", "neg:False", "mul", "mul:False"]
    assert Pipeline(groups, repeat=False).run(ctx) == 1


def test_growth_is_counted_over_all_constants() -> None:
    model = model_of("Mul")
    ctx = Context(model, Settings(growth=100))
    assert ctx.may_grow(100)
    assert not ctx.may_grow(101)
    with ctx.application("test", model.graph, model.graph.sink):
        model.graph.add_constant(np.zeros(20, np.float32))
    assert ctx.may_grow(20)
    assert not ctx.may_grow(21)
    ctx.journal.seek(0)
    assert ctx.may_grow(100)


def test_the_last_groups_run_where_the_first_of_them_has_something_to_do() -> None:
    neg, mul = RulePass("neg", [cancel_negations]), RulePass("mul", [merge_scales])
    for body, expected in (
        (("Abs", "Mul", "Mul"), ["Abs", "Mul", "Mul"]),
        (("Neg", "Neg", "Mul", "Mul"), ["Mul"]),
    ):
        model = model_of(*body)
        Pipeline([], last=[Group("first", (neg,)), Group("then", (mul,))]).run(Context(model))
        assert ops(model) == expected
