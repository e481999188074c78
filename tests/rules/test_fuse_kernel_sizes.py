"""Convolutions of two kernel sizes that are joined."""

from __future__ import annotations

import numpy as np
from harness import Setup, rows, table_test

from optimizer.rewrite import Settings
from passes.fuse_kernel_sizes import merge_joined_convs_of_two_sizes

NODES = Setup(
    "float[N,4,6,6] x, float[N,4,6,6] z",
    rtol=1e-4,
    sizes=[{"N": 2}],
    settings=Settings(fp="fast", growth=None, objective="nodes"),
    constants={"k": np.ones((3, 4, 1, 1), np.float32), "l": np.ones((3, 4, 3, 3), np.float32)},
)
SMALL = "a = Conv(x, k)"
LARGE = "b = Conv<pads=[1,1,1,1]>(x, l, f32(normal(3)))"
JOIN = "y = Concat<axis=1>(a, b)"
BIG = "y = Conv<pads=[1,1,1,1]>(x, _, _)"

ROWS = [
    *rows(
        merge_joined_convs_of_two_sizes,
        NODES,
        [
            ("fire", f"{SMALL} {LARGE} {JOIN}", BIG),
            ("other-order", f"{SMALL} {LARGE} y = Concat<axis=-3>(b, a)", BIG),
            (
                "relu-and-a-third",
                (
                    f"{SMALL} {LARGE} d = LeakyRelu<alpha=0.2>(a) e = LeakyRelu<alpha=0.2>(b) "
                    "y = Concat<axis=1>(z, d, e)"
                ),
                "a = Conv<pads=[1,1,1,1]>(x, _, _) b = LeakyRelu<alpha=0.2>(a) y = Concat<axis=1>(z, b)",
            ),
            (
                "rows-and-columns",
                "a = Conv<pads=[0,1,0,1]>(x, f32(normal(2,4,1,3))) b = Conv<pads=[1,1,1,1]>(x, l) " + JOIN,
                "y = Conv<pads=[1,1,1,1]>(x, _)",
            ),
        ],
        [
            (
                "axis",
                f"{SMALL} {LARGE} y = Concat<axis=2>(a, b)",
                "they are not joined by channels",
            ),
            (
                "activations",
                (
                    f"{SMALL} {LARGE} d = LeakyRelu<alpha=0.2>(a) e = LeakyRelu<alpha=0.1>(b) "
                    "y = Concat<axis=1>(d, e)"
                ),
                "no kernel of a neighbour lies inside the other",
            ),
            (
                "one-activation",
                f"{SMALL} {LARGE} d = Relu(a) y = Concat<axis=1>(d, b)",
                "no kernel of a neighbour lies inside the other",
            ),
            (
                "inputs",
                f"a = Conv(z, k) {LARGE} {JOIN}",
                "no kernel of a neighbour lies inside the other",
            ),
            (
                "sizes",
                (
                    "a = Conv<pads=[1,1,0,0]>(x, f32(normal(2,4,2,2))) b = Conv<pads=[0,0,1,1]>(x, "
                    "f32(normal(2,4,2,2))) "
                )
                + JOIN,
                "no kernel of a neighbour lies inside the other",
            ),
        ],
    ),
    *rows(
        merge_joined_convs_of_two_sizes,
        Setup("float[N,4,6,6] x", constants=NODES.constants),
        [],
        [("slower", f"{SMALL} {LARGE} {JOIN}", "it would be slower")],
    ),
    *rows(
        merge_joined_convs_of_two_sizes,
        Setup("float[N,4,6,6] x", constants=NODES.constants, settings=Settings(objective="nodes", growth=8)),
        [],
        [("large", f"{SMALL} {LARGE} {JOIN}", "no kernel of a neighbour lies inside the other")],
    ),
]

test_rows = table_test(ROWS)
