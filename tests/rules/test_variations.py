"""The property test: variations of every row that fires, in which a rule may fire or must not.

Each is the row's graph with other sizes (0 and 1 among them), intermediate values read from outside,
or a constant that is a little different: other numbers, more axes, another broadcast. Whatever the
rule makes of it must compute the same, in both executors, and must be stable.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from equal_outputs import compare
from harness import Row, all_rows
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidArgument, RuntimeException

from optimizer.ir import Model, OptimizerError, ValueInfo, verify_graph
from optimizer.rewrite import Context, Exactness, Rule, RuleFailed, RulePass

FIRES = [row for row in all_rows() if row.after is not None and row.setup.ort]
SIZES = (0, 1, 2, 3, 5)
RTOL = 1e-3
"""Relative to the largest output: variations may cancel more than the rows do."""


def vary(model: Model, random: np.random.Generator) -> None:
    """Changes one thing about the graph."""
    kind = random.integers(0, 4)
    if kind < 2:
        read_from_outside(model, random)
    if kind > 0:
        change_constant(model, random)


def read_from_outside(model: Model, random: np.random.Generator) -> None:
    """Some values become outputs as well."""
    graph = model.graph
    values = [node.value(i) for node in graph.nodes for i in range(len(node.outputs)) if node.outputs[i].name]
    extra = [v for v in values if v not in graph.outputs and random.integers(0, 2)][:2]
    infos = [ValueInfo(f"seen_{i}", graph.info(v).type) for i, v in enumerate(extra)]
    graph.set_outputs([*graph.outputs, *extra], [*graph.sink.outputs, *infos])


def change_constant(model: Model, random: np.random.Generator) -> None:
    """One float constant gets other numbers or another shape."""
    graph = model.graph
    floats = [v for v in graph.constants if (t := graph.tensor(v)) is not None and t.array.dtype.kind == "f"]
    if not floats:
        return
    value = floats[random.integers(0, len(floats))]
    array = graph.const(value)
    assert array is not None
    changes: list[Any] = [
        lambda a: a * np.asarray(0.75, a.dtype),
        lambda a: np.zeros_like(a),
        lambda a: -a,
        lambda a: a.reshape((1, *a.shape)),
        lambda a: a.reshape((1,) * 5 + a.shape) if not a.ndim else a[..., :1],
        lambda a: np.broadcast_to(a, (3, *a.shape)).copy() if a.ndim < 2 else a.swapaxes(0, -1).copy(),
    ]
    changed = graph.add_constant(changes[random.integers(0, len(changes))](array))
    graph.replace_uses(value, changed)
    graph.erase(value.node)


def sizes_of(row: Row, random: np.random.Generator) -> list[dict[str, int]]:
    """Other sizes for the named dims, unless inputs of fixed sizes hang on them."""
    names = {
        str(d) for info in _infos(row) for d in getattr(info.type, "shape", None) or () if isinstance(d, str)
    }
    if row.setup.feeds:
        return [dict(size) for size in row.setup.sizes]
    # onnxruntime refuses empty sequences in Attention, which the standard does not, and dies of empty
    # operands of Einsum.
    choice = SIZES[1:] if "Attention" in (row.after or "") or "Einsum" in row.before else SIZES
    return [{name: int(random.choice(choice)) for name in sorted(names)} for _ in range(2)]


def _infos(row: Row) -> list[ValueInfo]:
    model = row.setup.model(row.before)
    return [model.graph.info(value) for value in model.graph.inputs]


@pytest.mark.parametrize("row", FIRES, ids=str)
def test_whatever_a_rule_makes_of_a_variation_is_right(row: Row) -> None:
    seed = [ord(letter) for letter in str(row)]
    built = []
    for _ in range(2):
        model = row.setup.model(row.before)
        vary(model, np.random.default_rng(seed))
        built.append(model)
    original, model = built
    setup = replace(
        row.setup,
        sizes=sizes_of(row, np.random.default_rng(seed)),
        rtol=max(RTOL, row.setup.rtol),
        special=False,
    )
    setup = replace(
        setup, sizes=[size for size in setup.sizes if runs(original, replace(setup, sizes=[size]))]
    )
    if not setup.sizes and not runs(original, setup):
        return  # the variation is no valid graph
    tags = apply(row, model)
    for graph in (model.graph, *(f.graph for f in model.functions.values())):
        verify_graph(graph)
    if tags:
        compare(original, model, setup, max(tags))
    assert not apply(row, model), "it fires again on its own result"


@pytest.mark.parametrize("row", FIRES, ids=str)
def test_a_constant_with_an_axis_more_changes_no_rank(row: Row) -> None:
    sizes = sizes_of(row, np.random.default_rng(3)) if not row.setup.sizes else list(row.setup.sizes)
    setup = replace(row.setup, sizes=sizes, rtol=max(RTOL, row.setup.rtol), special=False)
    for index in floats_of(row.setup.model(row.before)):
        original, model = (with_an_axis_more(row.setup.model(row.before), index) for _ in range(2))
        try:
            tags = apply(row, model)
        except RuleFailed:
            assert not runs(original, setup), "it fails on a graph that runs"
            continue
        if tags and runs(original, setup):
            compare(original, model, setup, max(tags))


def floats_of(model: Model) -> list[int]:
    """The places of the constants that are floats."""
    tensors = [model.graph.tensor(value) for value in model.graph.constants]
    return [i for i, tensor in enumerate(tensors) if tensor is not None and tensor.dtype.is_float]


def with_an_axis_more(model: Model, index: int) -> Model:
    """The model, one of its constants with a first axis of size 1."""
    graph = model.graph
    value = list(graph.constants)[index]
    array = graph.const(value)
    assert array is not None
    graph.replace_uses(value, graph.add_constant(array.reshape((1, *array.shape))))
    graph.erase(value.node)
    return model


def runs(model: Model, setup: Any) -> bool:
    """Whether both executors accept the graph at these sizes."""
    try:
        with np.errstate(all="ignore"):
            compare(model, model, setup, Exactness.E1)
    except (OptimizerError, KeyError, Fail, InvalidArgument, RuntimeException):
        return False
    return True


def apply(row: Row, model: Model) -> list[Exactness]:
    ctx = Context(model, row.setup.settings)
    rewrite = RulePass(row.rewrite.name, [row.rewrite]) if isinstance(row.rewrite, Rule) else row.rewrite
    rewrite.run(ctx)
    return [entry.tag for entry in ctx.journal.entries]
