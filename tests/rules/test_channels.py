"""Channels that nobody reads, and channels that are put in another order."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Setup, rows, table_test

from optimizer.rewrite import Context, Settings
from passes.channel_order import fold_channel_order_into_conv
from passes.dead_channels import DEAD_CHANNELS, NAME

X = Setup(
    "float[N,4,6,6] x, float[N,4,6,6] z, float[M,4] m, float[B,S,4] s, float[8,4,1,1] v",
    rtol=1e-4,
    sizes=[{"N": 2, "M": 3, "B": 2, "S": 3}],
    constants={"zeros": np.stack([np.full((4, 1, 1), float(i % 2)) for i in range(6)]).astype(np.float32)},
)
W = "f32(normal(8,4,1,1))"
BN = ", ".join(["f32(positive(8))"] * 4)
SHUFFLE = (
    "p = Reshape({0}, i64([0,2,{1},6,6])) "
    "q = Transpose<perm=[0,2,1,3,4]>(p) {2} = Reshape(q, i64([0,{3},6,6]))"
)

ROWS = [
    *rows(
        DEAD_CHANNELS,
        X,
        [
            (
                "slice-of-everything-by-channel",
                (
                    f"a = Conv(x, {W}, f32(normal(8))) b = BatchNormalization(a, {BN}) c = Relu(b) "
                    "d = Mul(c, f32(normal(8,1,1))) e = MaxPool<kernel_shape=[2,2]>(d) "
                    "y = Slice(e, i64([2]), i64([5]), i64([1]))"
                ),
                (
                    "a = Conv(x, _, _) b = BatchNormalization(a, _, _, _, _) c = Relu(b) d = Mul(c, _) "
                    "y = MaxPool<kernel_shape=[2,2]>(d)"
                ),
            ),
            (
                "slices-with-a-gap",
                (
                    f"a = Conv(x, {W}) b = Slice(a, i64([0]), i64([2]), i64([1])) "
                    "c = Slice(a, i64([5]), i64([8]), i64([1])) y = Relu(b) y2 = Exp(c)"
                ),
                (
                    "a = Conv(x, _) b = Slice(a, i64([0]), i64([2]), i64([1])) "
                    "c = Slice(a, i64([2]), i64([5]), i64([1])) y = Relu(b) y2 = Exp(c)"
                ),
            ),
            (
                "dead-part-of-a-split",
                (
                    f"a = Conv(x, {W}) b = Sigmoid(a) c = Mul(a, b) d, e, f = Split<axis=1>(c, i64([1,5,2])) "
                    "y = Relu(e)"
                ),
                "a = Conv(x, _) b = Sigmoid(a) c = Mul(a, b) y = Relu(c)",
            ),
            (
                "gather-in-another-order",
                f"a = Conv(x, {W}) y = Gather<axis=1>(a, i64([6,1,-1]))",
                "y = Conv(x, _)",
            ),
            (
                "two-gathers",
                f"a = Conv(x, {W}) y = Gather<axis=1>(a, i64([6,1])) y2 = Gather<axis=1>(a, i64([0,6]))",
                "a = Conv(x, _) y = Gather<axis=1>(a, i64([2,1])) y2 = Gather<axis=1>(a, i64([0,2]))",
            ),
            (
                "shuffle",
                f"a = Conv(x, {W}) b = Relu(a) {SHUFFLE.format('b', 4, 'y', 8)}",
                "a = Conv(x, _) y = Relu(a)",
            ),
            (
                "depthwise-between",
                (
                    f"a = Conv(x, {W}) b = Conv<group=8>(a, f32(normal(8,1,3,3)), f32(normal(8))) "
                    "y = Slice(b, i64([2]), i64([5]), i64([1]))"
                ),
                "a = Conv(x, _) y = Conv<group=3>(a, _, _)",
            ),
            (
                "channels-of-zeros",
                "a = Conv(x, zeros) b = Relu(a) y = Conv(b, f32(normal(2,6,3,3)), f32(normal(2)))",
                "a = Conv(x, _) b = Relu(a) y = Conv(b, _, f32(normal(2)))",
            ),
            (
                "columns-of-gemm",
                (
                    "a = Gemm<transB=1>(m, f32(normal(8,4)), f32(normal(8))) "
                    "y = Slice(a, i64([2]), i64([5]), i64([1]))"
                ),
                "y = Gemm<transB=1>(m, _, _)",
            ),
            (
                "columns-of-matmul",
                (
                    "a = MatMul(s, f32(normal(4,8))) b = Add(a, f32(normal(8))) "
                    "y = Slice(b, i64([2]), i64([5]), i64([2]))"
                ),
                "a = MatMul(s, _) y = Add(a, _)",
            ),
        ],
    ),
    *rows(
        fold_channel_order_into_conv,
        X,
        [
            (
                "gather",
                "a = Gather<axis=1>(x, i64([3,0,2,1])) y = Conv(a, f32(normal(5,4,3,3)))",
                "y = Conv(x, _)",
            ),
            (
                "shuffle-and-relu6",
                SHUFFLE.format("x", 2, "b", 4) + " a = Clip(b, f32(0), f32(6)) "
                "y = Conv(a, f32(normal(5,4,3,3)), f32(normal(5)))",
                "a = Clip(x, f32(0), f32(6)) y = Conv(a, _, f32(normal(5)))",
            ),
        ],
        [
            (
                "groups",
                "a = Gather<axis=1>(x, i64([3,0,2,1])) y = Conv<group=2>(a, f32(normal(4,2,3,3)))",
                "the convolution has groups",
            ),
            (
                "part",
                "a = Gather<axis=1>(x, i64([3,0])) y = Conv(a, f32(normal(5,2,3,3)))",
                "not all channels are taken once",
            ),
            (
                "twice",
                "a = Gather<axis=1>(x, i64([3,0,2,1,1])) y = Conv(a, f32(normal(5,5,3,3)))",
                "not all channels are taken once",
            ),
            (
                "read",
                "a = Gather<axis=1>(x, i64([3,0,2,1])) y = Conv(a, f32(normal(5,4,3,3))) y2 = Relu(a)",
                "no operator reorders its channels",
            ),
            (
                "rows-permuted",
                (
                    "a = Transpose<perm=[0,1,3,2]>(x) b = Reshape(a, i64([0,4,6,6])) "
                    "y = Conv(b, f32(normal(5,4,3,3)))"
                ),
                "no operator reorders its channels",
            ),
            ("none", "y = Conv(x, f32(normal(5,4,3,3)))", "no operator reorders its channels"),
        ],
    ),
    *rows(
        fold_channel_order_into_conv,
        Setup("float[N,4] x"),
        [],
        [("matrix", "y = Conv(x, f32(normal(5,4)))", "not an image")],
    ),
]

test_rows = table_test(ROWS)


@pytest.mark.parametrize(
    "body",
    [
        f"a = Conv(x, {W}) b = Slice(a, i64([0]), i64([2]), i64([1])) y = Relu(b) y2 = Exp(a)",
        f"a = Conv(x, {W}) b = Softmax<axis=1>(a) y = Slice(b, i64([0]), i64([2]), i64([1]))",
        "a = Conv<group=2>(x, f32(normal(8,2,1,1))) y = Slice(a, i64([0]), i64([2]), i64([1]))",
        f"a = Conv(x, {W}) y = Slice(a, i64([0]), i64([2]), i64([2]))",
        f"a = Conv(x, {W}) b = Conv(z, {W}) c = Add(a, b) y = Slice(c, i64([0]), i64([2]), i64([1]))",
        "a = Conv(x, v) y = Slice(a, i64([0]), i64([2]), i64([1]))",
        f"a = Conv(x, {W}) y = Gather<axis=1>(a, i64([1,1,2,3,4,5,6,7,0]))",
        "a = Conv(x, zeros) b = Exp(a) y = Conv(b, f32(normal(2,6,3,3)))",
        "a = Conv(x, zeros) b = Relu(a) y = Conv(b, f32(zeros(2,6,3,3) / 0))",
        f"a = Conv(x, {W}) b, c = Split<axis=1>(a) y = Add(b, c)",
        f"a = Conv(x, {W}) b, c, d = Split<axis=1>(a, i64([0,3,5])) y = Relu(b) y2 = Relu(c)",
        (
            f"a = Conv(x, {W}) b = Slice(a, i64([3]), i64([3]), i64([1])) y = Relu(b) "
            "y2 = Gather<axis=1>(a, i64([1]))"
        ),
        "a = Conv(x, zeros) b = Div(a, a) y = Conv(b, f32(normal(2,6,3,3)))",
        (
            "a = Conv(x, zeros) b = Conv<group=6>(a, f32(zeros(6,1,1,1) / 0)) "
            "y = Conv(b, f32(normal(2,6,3,3)))"
        ),
    ],
)
def test_channels_that_are_read_stay(body: str) -> None:
    with np.errstate(all="ignore"):
        ctx = Context(X.model(body), Settings(fp="fast", growth=None))
    DEAD_CHANNELS.run(ctx)
    assert not ctx.journal.entries


def test_shared_weights_are_not_copied_beyond_the_budget() -> None:
    k = "k"
    setup = Setup("float[N,4,6,6] x", constants={k: np.ones((8, 4, 1, 1), np.float32)})
    body = "a = Conv(x, k) y = Slice(a, i64([0]), i64([2]), i64([1])) y2 = Conv(x, k)"
    ctx = Context(setup.model(body), Settings(growth=8))
    DEAD_CHANNELS.run(ctx)
    assert not ctx.journal.entries
    assert ctx.stats[NAME].refused["copying a shared constant would exceed the growth budget"] == 1
