"""Forms that are fewer nodes and no faster."""

from __future__ import annotations

from dataclasses import replace

from harness import Setup, rows, table_test

from optimizer.rewrite import Settings
from passes.fewer_nodes import activate_once, merge_sums

NODES = Setup(
    "float[N,4] x, float[N,4] z, float[4] w, float16[4] h",
    rtol=1e-5,
    settings=Settings(fp="fast", growth=None, objective="nodes"),
)
BALANCED = replace(NODES, settings=Settings())
OLD = Setup("float[2,4] x, float[2,4] z", opset=7, settings=NODES.settings)

ROWS = [
    *rows(
        merge_sums,
        NODES,
        [
            ("adds", "a = Add(x, z) y = Add(w, a)", "y = Sum(w, x, z)"),
            ("sums", "a = Sum(x, z) b = Add(x, w) y = Sum(a, z, b)", "y = Sum(x, z, z, x, w)"),
        ],
        [
            ("read", "a = Sum(x, z) y = Sum(w, a) y2 = Relu(a)", "no term is a sum of its own"),
            ("half", "a = Add(h, h) y = Add(h, a)", "not float32 or float64"),
        ],
    ),
    *rows(
        merge_sums,
        BALANCED,
        [("sums", "a = Sum(x, z) y = Sum(w, a)", "y = Sum(w, x, z)")],
        [("slower", "a = Add(x, z) y = Add(w, a)", "it would be slower")],
    ),
    *rows(
        merge_sums, OLD, [], [("old", "a = Add(x, z) y = Add(x, a)", "Sum does not broadcast before opset 8")]
    ),
    *rows(
        activate_once,
        NODES,
        [
            (
                "two",
                "a = LeakyRelu<alpha=0.2>(x) b = LeakyRelu<alpha=0.2>(z) y = Concat<axis=0>(a, b)",
                "a = Concat<axis=0>(x, z) y = LeakyRelu<alpha=0.2>(a)",
            )
        ],
        [
            (
                "slopes",
                "a = LeakyRelu<alpha=0.2>(x) b = LeakyRelu<alpha=0.1>(z) y = Concat<axis=0>(a, b)",
                "an operand is no activation of its own",
            ),
            (
                "one",
                "a = Relu(z) y = Concat<axis=0>(x, a)",
                "an operand is no activation of its own",
            ),
        ],
    ),
    *rows(
        activate_once,
        BALANCED,
        [],
        [("slower", "a = Relu(x) b = Relu(z) y = Concat<axis=0>(a, b)", "it would be slower")],
    ),
]

test_rows = table_test(ROWS)
