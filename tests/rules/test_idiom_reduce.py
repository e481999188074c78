"""Reductions spelled out."""

from __future__ import annotations

from harness import Setup, rows, table_test

from optimizer.rewrite import Settings
from passes.idiom_reduce import (
    fuse_lpnormalization,
    fuse_mean,
    fuse_reduction,
    replace_top_1_by_reduction,
)

X = Setup("float[B,S,8] x, int64[B,S,8] i, float[B,0,8] e, float16[B,8] h, float k", rtol=1e-5)
NEW = Setup("float[B,S,8] x", opset=18)
OLD = Setup("float[B,S,8] x", opset=11)
NODES = Setup(
    "float[B,S,8] x, float16[B,S,8] h",
    rtol=1e-4,
    settings=Settings(objective="nodes", fp="fast", growth=None),
)
NODES_18 = Setup("float[B,S,8] x", opset=18, rtol=1e-4, settings=NODES.settings)

ROWS = [
    *rows(
        fuse_mean,
        X,
        [
            ("divided", "a = ReduceSum(x, i64([2])) y = Div(a, f32(8))", "y = ReduceMean<axes=[2]>(x)"),
            (
                "times",
                "a = ReduceSum<keepdims=0>(x, i64([-1])) y = Mul(f32([[0.125]]), a)",
                "y = ReduceMean<axes=[-1], keepdims=0>(x)",
            ),
        ],
        [
            ("integers", "a = ReduceSum(i, i64([2])) y = Div(a, i64(8))", "not a float"),
            (
                "unknown",
                "a = ReduceSum(x, i64([1])) y = Div(a, f32(8))",
                "how many numbers are added up is not known",
            ),
            (
                "vector",
                "a = ReduceSum(x, i64([2])) y = Div(a, f32([8,8]))",
                "it is not divided by one number",
            ),
            ("other", "a = ReduceSum(x, i64([2])) y = Div(a, f32(7))", "it is divided by another number"),
        ],
    ),
    *rows(
        fuse_mean,
        NEW,
        [("axes", "a = ReduceSum(x, i64([2])) y = Div(a, f32(8))", "y = ReduceMean(x, i64([2]))")],
    ),
    *rows(
        fuse_mean,
        OLD,
        [("axes", "a = ReduceSum<axes=[2]>(x) y = Div(a, f32(8))", "y = ReduceMean<axes=[2]>(x)")],
    ),
    *rows(
        fuse_reduction,
        NODES,
        [
            ("squares", "a = Mul(x, x) y = ReduceSum(a, i64([1]))", "y = ReduceSumSquare<axes=[1]>(x)"),
            ("powers", "a = Pow(x, f32(2)) y = ReduceSum(a)", "y = ReduceSumSquare(x)"),
            (
                "l1",
                "a = Abs(x) y = ReduceSum<keepdims=0>(a, i64([1]))",
                "y = ReduceL1<axes=[1], keepdims=0>(x)",
            ),
            ("l2", "a = ReduceSumSquare<axes=[1]>(x) y = Sqrt(a)", "y = ReduceL2<axes=[1]>(x)"),
            (
                "logsumexp",
                "a = Exp(x) b = ReduceSum(a, i64([2])) y = Log(b)",
                "y = ReduceLogSumExp<axes=[2]>(x)",
            ),
        ],
        [
            ("half", "a = Abs(h) y = ReduceSum(a)", "not float32 or float64"),
            ("nothing", "a = Abs(x) y = ReduceSum<noop_with_empty_axes=1>(a)", "it may run over no axis"),
            ("no-axes", "a = Abs(x) y = ReduceSum(a, i64(zeros(0)))", "it may run over no axis"),
        ],
    ),
    *rows(
        fuse_reduction,
        NODES_18,
        [("axes", "a = Abs(x) y = ReduceSum(a, i64([1]))", "y = ReduceL1(x, i64([1]))")],
    ),
    *rows(fuse_reduction, X, [], [("slower", "a = Abs(x) y = ReduceSum(a)", "it would be slower")]),
    *rows(
        fuse_lpnormalization,
        X,
        [
            ("l2", "a = ReduceL2<axes=[-1]>(x) y = Div(x, a)", "y = LpNormalization<axis=-1, p=2>(x)"),
            ("l1", "a = ReduceL1<axes=[2]>(x) y = Div(x, a)", "y = LpNormalization<axis=-1, p=1>(x)"),
        ],
        [
            ("half", "a = ReduceL2<axes=[-1]>(h) y = Div(h, a)", "not float32 or float64"),
            ("dropped", "a = ReduceL2<axes=[0], keepdims=0>(x) y = Div(x, a)", "an axis is dropped"),
            ("two", "a = ReduceL2<axes=[1,2]>(x) y = Div(x, a)", "it does not run over one axis"),
            ("inner", "a = ReduceL2<axes=[1]>(x) y = Div(x, a)", "it would be slower"),
        ],
    ),
    *rows(
        replace_top_1_by_reduction,
        X,
        [
            ("values", "y, b = TopK(x, i64([1]))", "y = ReduceMax<axes=[2]>(x)"),
            ("indices", "b, y = TopK<axis=-1>(i, i64([1]))", "y = ArgMax<axis=2>(i)"),
        ],
        [
            ("two", "y, b = TopK(x, i64([2]))", "several are asked for"),
            ("both", "y, y2 = TopK(x, i64([1]))", "both are read"),
            ("smallest", "y, b = TopK<largest=0>(x, i64([1]))", "the smallest is asked for"),
            ("half", "y, b = TopK(h, i64([1]))", "not float32, int32 or int64"),
            ("none", "y, b = TopK<axis=1>(x, i64([1]))", "there may be none"),
        ],
    ),
    *rows(
        replace_top_1_by_reduction,
        NEW,
        [("values", "y, b = TopK(x, i64([1]))", "y = ReduceMax(x, i64([2]))")],
    ),
]

test_rows = table_test(ROWS)
