"""Facts about values inside of If, Loop and Scan bodies against what runs there, every iteration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
import test_inference_sweep as sweep

from optimizer.analysis import Facts
from optimizer.io import load, parse
from optimizer.ir import Graph, Model, Node
from optimizer.runtime import Session


class Watch:
    """Compares each node that runs in a body with the facts of that body."""

    def __init__(self, model: Model, sizes: dict[object, int]) -> None:
        self.facts = Facts(model.graph, model.functions).settle()
        self.faults: list[str] = []
        self.seen = Counter[str]()
        self._sizes = sizes
        self._scopes: dict[int, tuple[Facts, Node]] = {}
        self._local: dict[Facts, dict[object, int]] = {}
        self._ran: dict[Facts, set[int]] = {}
        self._register(self.facts, model.graph)

    def _register(self, facts: Facts, graph: Graph) -> None:
        for node in graph.nodes:
            for position, (_, body) in enumerate(node.bodies):
                inner = facts.body(node, position)
                self._scopes.update((id(n), (inner, n)) for n in body.nodes)
                self._register(inner, body)

    def __call__(self, node: Node, inputs: Sequence[object], outputs: Sequence[object], _: float) -> None:
        if id(node) not in self._scopes:
            return
        facts, _ = self._scopes[id(node)]
        ran = self._ran.setdefault(facts, set())
        if node.id in ran:  # the next iteration: what is unknown inside may be anything again
            ran.clear()
            self._local.pop(facts, None)
        ran.add(node.id)
        sizes = self._local.setdefault(facts, dict(self._sizes))
        for index, real in enumerate(outputs):
            if isinstance(real, (np.ndarray, np.generic)):
                self.seen["values"] += 1
                fact = facts.of(node.value(index))
                found = sweep.against(fact, real, sizes, self.seen)
                where = f"{facts.graph.label(node)} {fact}"
                self.faults += [f"{where}: {fault}" for fault in found]


def watched(model: Model, feeds: dict[str, np.ndarray]) -> Watch:
    arrays = {name: feed for name, feed in feeds.items() if isinstance(feed, np.ndarray)}
    sizes = sweep.sizes_of(Facts(model.graph).settle(), arrays)
    watch = Watch(model, sizes)
    Session(model, after_node=watch).run(feeds)
    return watch


GROWING = """
g (float[n] x, int64 k) => (float[m] y, float[t, p] rows) {
    go = Constant<value = bool {1}>()
    y, rows = Loop(k, go, x) <body = b (int64 i, bool c, float[q] v) => (bool d, float[r] w, float[p] e) {
        d = Identity(c)  w = Concat<axis=0>(v, x)  e = Relu(x)
    }>
}
"""
STATE = """
g (float[n] s, float[t, n] x) => (float[n] y, float[t, n] z) {
    y, z = Scan<num_scan_inputs=1, body = b (float[p] a, float[p] e) => (float[p] c, float[p] f) {
        c = Add(a, e)  f = Mul(a, e)
    }>(s, x)
}
"""
BRANCHES = """
g (bool c, float[n, 4] x) => (float[m, k] y) {
    y = If(c) <
        then_branch = t () => (float[a, b] u) { u = Transpose(x) },
        else_branch = e () => (float[a, b] w) { z = NonZero(x) r = Cast<to=1>(z) w = Transpose(r) }
    >
}
"""
RNG = np.random.default_rng(0)


def some(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    ("text", "feeds"),
    [
        (GROWING, {"x": some(3), "k": np.array(4)}),
        (GROWING, {"x": some(0), "k": np.array(2)}),
        (STATE, {"s": some(5), "x": some(3, 5)}),
        (STATE, {"s": some(1), "x": some(2, 1)}),
        (BRANCHES, {"c": np.array(True), "x": some(3, 4)}),
        (BRANCHES, {"c": np.array(False), "x": some(2, 4)}),
    ],
)
def test_facts_hold_in_every_iteration(text: str, feeds: dict[str, np.ndarray]) -> None:
    watch = watched(parse(f'<ir_version: 10, opset_import: ["" : 21]> {text}'), feeds)
    assert watch.seen["values"]
    assert not watch.faults


@pytest.mark.sweep
@pytest.mark.filterwarnings("ignore")
def test_bodies_of_backend_models() -> None:
    faults, seen = [], Counter()
    for name, model, feeds in _models_with_bodies():
        try:
            watch = watched(model, feeds)
        except Exception as error:  # the executor's own tests are elsewhere
            seen[f"not run: {type(error).__name__}"] += 1
            continue
        seen.update(watch.seen)
        faults += [f"{name}: {fault}" for fault in watch.faults]
    print(dict(seen))
    assert seen["values"]
    assert not faults, "\n" + "\n".join(faults)


def _models_with_bodies() -> Iterator[tuple[str, Model, dict[str, np.ndarray]]]:
    from onnx.backend.test.case.node import collect_testcases

    for case in collect_testcases(""):
        if any(a.HasField("g") for node in case.model.graph.node for a in node.attribute):
            arrays = {n: f for n, f in sweep.case_feeds(case).items() if isinstance(f, np.ndarray)}
            yield case.name, load(case.model), sweep.case_feeds(case)
            yield (
                f"{case.name}, open",
                load(sweep.generalized(case.model, arrays, False)),
                sweep.case_feeds(case),
            )


@pytest.mark.sweep
@pytest.mark.parametrize("path", sweep.models(), ids=lambda path: path.stem)
def test_bodies_of_models_of_a_folder(path: Path) -> None:
    model, proto = load(path), onnx.load(path)
    if not any(node.bodies for node in model.graph.nodes):
        pytest.skip("it has no bodies")
    for which in (0, 1):
        watch = watched(model, sweep.make_feeds(proto, path.stem, which))
        print(path.stem, dict(watch.seen))
        assert not watch.faults, "\n".join(watch.faults[:20])
