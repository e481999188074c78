"""Convolutions beside each other that are joined again, and those of which a part is read."""

from __future__ import annotations

import numpy as np
from harness import Setup, rows, table_test

from optimizer.rewrite import Settings
from passes.fuse_siblings import merge_joined_convs, slice_channels_of_weights, split_weights_of_conv
from passes.merge_siblings import MERGE_SIBLINGS

X = Setup("float[N,4,6,6] x, float[N,4,6,6] z, float[8,4,1,1] v", rtol=1e-4, sizes=[{"N": 2}])
LATENCY = Setup(
    "float[N,4,6,6] x, int64[2] parts",
    rtol=1e-4,
    sizes=[{"N": 2}],
    settings=Settings(fp="fast", growth=None, objective="latency"),
)
NODES = Setup(
    "float[N,4,6,6] x, float[B,S,4] s, float[4,3] v",
    rtol=1e-4,
    sizes=[{"N": 2, "B": 2, "S": 3}],
    settings=Settings(fp="fast", growth=None, objective="nodes"),
)
TIGHT = Setup(
    "float[N,4,6,6] x",
    sizes=[{"N": 2}],
    settings=Settings(objective="latency", growth=0),
    constants={"k": np.ones((8, 4, 1, 1), np.float32)},
)
W, V = "f32(normal(8,4,1,1))", "f32(normal(3,4,1,1))"

ROWS = [
    *rows(
        merge_joined_convs,
        X,
        [
            (
                "two",
                f"a = Conv(x, {W}, f32(normal(8))) b = Conv(x, {V}) y = Concat<axis=1>(a, b)",
                "y = Conv(x, _, _)",
            ),
            (
                "three-with-relu",
                f"a = Conv(x, {W}) b = Conv(x, {V}) c = Relu(a) d = Relu(b) "
                "y = Concat<axis=-3>(c, z, d, x)".replace("c, z, d, x", "z, c, d"),
                "a = Conv(x, _) b = Relu(a) y = Concat<axis=-3>(z, b)",
            ),
        ],
        [
            (
                "other-axis",
                f"a = Conv(x, {W}) b = Conv(x, {W}) y = Concat<axis=2>(a, b)",
                "they are not joined by channels",
            ),
            (
                "other-input",
                f"a = Conv(x, {W}) b = Conv(z, {V}) y = Concat<axis=1>(a, b)",
                "no neighbours are alike",
            ),
            (
                "other-activation",
                f"a = Conv(x, {W}) b = Conv(x, {V}) c = Relu(a) y = Concat<axis=1>(c, b)",
                "no neighbours are alike",
            ),
            (
                "other-kernel",
                (
                    f"a = Conv(x, {W}) b = Conv<pads=[1,1,1,1]>(x, f32(normal(3,4,3,3))) "
                    "y = Concat<axis=1>(a, b)"
                ),
                "no neighbours are alike",
            ),
            (
                "apart",
                f"a = Conv(x, {W}) b = Conv(x, {V}) y = Concat<axis=1>(a, z, b)",
                "no neighbours are alike",
            ),
            (
                "read",
                f"a = Conv(x, {W}) b = Conv(x, {V}) y = Concat<axis=1>(a, b) y2 = Relu(a)",
                "no neighbours are alike",
            ),
        ],
    ),
    *rows(
        slice_channels_of_weights,
        X,
        [
            (
                "plain",
                f"a = Conv(x, {W}, f32(normal(8))) y = Slice(a, i64([2]), i64([5]), i64([1]))",
                "y = Conv(x, _, _)",
            ),
            (
                "relu",
                f"a = Conv(x, {W}) b = Relu(a) y = Slice(b, i64([-3]), i64([99]), i64([1]))",
                "a = Conv(x, _) y = Relu(a)",
            ),
        ],
        [
            (
                "pixels",
                f"a = Conv(x, {W}) y = Slice(a, i64([2]), i64([5]), i64([2]))",
                "it does not cut channels",
            ),
            (
                "groups",
                "a = Conv<group=2>(x, f32(normal(8,2,1,1))) y = Slice(a, i64([2]), i64([5]), i64([1]))",
                "the convolution has groups",
            ),
        ],
    ),
    *rows(
        split_weights_of_conv,
        LATENCY,
        [
            (
                "plain",
                f"a = Conv(x, {W}, f32(normal(8))) y, y2 = Split<axis=1>(a, i64([3,5]))",
                "y = Conv(x, _, _) y2 = Conv(x, _, _)",
            ),
            (
                "silu",
                f"a = Conv(x, {W}) s = Sigmoid(a) g = Mul(a, s) y, y2 = Split<axis=1>(g)",
                "a = Conv(x, _) s = Sigmoid(a) y = Mul(a, s) b = Conv(x, _) t = Sigmoid(b) y2 = Mul(b, t)",
            ),
            (
                "relu",
                f"a = Conv(x, {W}) s = Relu(a) y, y2 = Split<axis=1>(s)",
                "a = Conv(x, _) y = Relu(a) b = Conv(x, _) y2 = Relu(b)",
            ),
        ],
        [
            ("pixels", f"a = Conv(x, {W}) y, y2 = Split<axis=2>(a)", "it does not cut channels"),
            (
                "groups",
                "a = Conv<group=2>(x, f32(normal(8,2,1,1))) y, y2 = Split<axis=1>(a)",
                "the convolution has groups",
            ),
            (
                "read",
                f"a = Conv(x, {W}) s = Sigmoid(a) g = Mul(a, s) y, y2 = Split<axis=1>(g) y3 = Relu(a)",
                "the convolution has other readers",
            ),
            (
                "computed",
                f"a = Conv(x, {W}) y, y2 = Split<axis=1>(a, parts)",
                "the sizes of the parts are not known",
            ),
        ],
    ),
    *rows(
        split_weights_of_conv,
        X,
        (),
        [("balanced", f"a = Conv(x, {W}) y, y2 = Split<axis=1>(a)", "it would be more nodes")],
    ),
    *rows(
        split_weights_of_conv,
        TIGHT,
        (),
        [
            (
                "shared",
                "a = Conv(x, k) y, y2 = Split<axis=1>(a) y3 = Identity(k)",
                "the growth budget is used up",
            )
        ],
    ),
    *rows(
        MERGE_SIBLINGS,
        NODES,
        [
            (
                "products",
                (
                    "a = MatMul(s, f32(normal(4,3))) b = MatMul(s, f32(normal(4,2))) c = Add(a, "
                    "f32(normal(3))) "
                    "d = MatMul(s, f32(normal(4,2))) e = Add(f32(normal(1,2)), d) y = Relu(c) y2 = "
                    "Relu(b) y3 = Relu(e)"
                ),
                "a = MatMul(s, _) b = Add(a, _) c, d, e = Split<axis=2>(b, i64([3,2,2])) "
                "y = Relu(c) y2 = Relu(d) y3 = Relu(e)".replace("c, d, e", "c, d, e"),
            ),
            (
                "convs",
                f"a = Conv(x, {W}) b = Conv(x, {V}, f32(normal(3))) y = Relu(a) y2 = Relu(b)",
                "a = Conv(x, _, _) b = Relu(a) y, y2 = Split<axis=1>(b, i64([8,3]))",
            ),
        ],
        (),
    ),
    *rows(
        MERGE_SIBLINGS,
        Setup("float[N,4,6,6] x", settings=Settings(objective="nodes", growth=0), constants=TIGHT.constants),
        (),
        [
            (
                "shared",
                f"a = Conv(x, k) b = Conv(x, {V}) y = Relu(a) y2 = Relu(b) y3 = Identity(k)",
                "the growth budget is used up",
            )
        ],
    ),
]

test_rows = table_test(ROWS)


def test_siblings_that_stay() -> None:
    from optimizer.rewrite import Context

    for body in (
        f"a = Conv(x, {W}) b = Conv(x, {V}) y = Relu(a) y2 = Tanh(b)",
        f"a = Conv(x, {W}) b = Conv<pads=[1,1,1,1]>(x, f32(normal(3,4,3,3))) y = Relu(a) y2 = Relu(b)",
        "y = MatMul(s, f32(normal(4,3))) y2 = MatMul(s, f32(normal(4,2)))",
        "y = MatMul(s, f32(normal(4,3))) y2 = MatMul(s, v)",
    ):
        ctx = Context(NODES.model(body), NODES.settings)
        assert not MERGE_SIBLINGS.run(ctx)
