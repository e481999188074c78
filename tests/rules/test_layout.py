"""The order of axes of whole regions, and Transposes next to each other."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Setup, rows, table_test

from optimizer.rewrite import Context, Exactness, Settings
from passes.layout import LAYOUT
from passes.transpose import fold_transpose_into_reduction, merge_transposes, replace_transpose_by_reshape

TO_LAST = "Transpose<perm=[0,2,3,1]>"
TO_FIRST = "Transpose<perm=[0,3,1,2]>"
RNG = np.random.default_rng(2)
CONSTANTS = {
    "w": RNG.standard_normal((4, 4, 1, 1)).astype(np.float32),
    "c": RNG.standard_normal(4).astype(np.float32),
    "c_first": None,
    "m": RNG.standard_normal((3, 4)).astype(np.float32),
}
CONSTANTS["c_first"] = CONSTANTS["c"].reshape(1, 4, 1, 1)
IMAGE = Setup("float[N,4,3,5] x, float[N,4,3,5] x2, float[N,3,5,4] last", constants=CONSTANTS)
OLD = Setup("float[N,4,3,5] x", opset=12, constants=CONSTANTS)


FIRES = [
    ("cancels-around-unary", f"a = {TO_LAST}(x) b = Relu(a) y = {TO_FIRST}(b)", "y = Relu(x)"),
    (
        "permutes-constants",
        f"a = Conv(x, w) b = {TO_LAST}(a) d = Mul(b, c) e = {TO_FIRST}(d) y = Conv(e, w)",
        "a = Conv(x, w) d = Mul(a, c_first) y = Conv(d, w)",
    ),
    (
        "two-operands",
        f"a = {TO_LAST}(x) b = {TO_LAST}(x) d = Add(a, b) y = {TO_FIRST}(d)",
        "y = Add(x, x)",
    ),
    (
        "many-operators",
        (
            f"a = {TO_LAST}(x) b = Concat<axis=-1>(a, a) d = Softmax<axis=3>(b)"
            f" e = Pad(d, i64([0,1,2,3,0,0,1,0])) f = Slice(e, i64([1]), i64([3]), i64([-2]))"
            f" g = ReduceMean<axes=[1]>(f) y = {TO_FIRST}(g)"
        ),
        (
            "b = Concat<axis=1>(x, x) d = Softmax<axis=1>(b) e = Pad(d, i64([0,3,1,2,0,0,0,1]))"
            " f = Slice(e, i64([1]), i64([3]), i64([3])) y = ReduceMean<axes=[2]>(f)"
        ),
    ),
    (
        "split",
        (
            f"a = {TO_LAST}(x) b, d = Split<axis=3>(a, i64([1,3])) e = {TO_FIRST}(b) f = {TO_FIRST}(d)"
            " g = Relu(e) h = Relu(f) y = Concat<axis=1>(h, g)"
        ),
        "b, d = Split<axis=1>(x, i64([1,3])) g = Relu(b) h = Relu(d) y = Concat<axis=1>(h, g)",
    ),
    (
        "makes-it-once",
        f"a = {TO_LAST}(x) b = {TO_LAST}(x) d = Relu(a) e = Sigmoid(b) y = Add(d, e)",
        f"a = {TO_LAST}(x) d = Relu(a) e = Sigmoid(a) y = Add(d, e)",
    ),
    (
        "moves-behind-a-join",
        f"a = {TO_LAST}(x) b = {TO_LAST}(x2) d = Relu(a) e = Sigmoid(b) y = Add(d, e)",
        f"d = Relu(x) e = Sigmoid(x2) f = Add(d, e) y = {TO_LAST}(f)",
    ),
    (
        "drops-into-reduction",
        f"a = {TO_LAST}(x) b = Relu(a) y = ReduceMean<axes=[1,2], keepdims=0>(b)",
        "b = Relu(x) y = ReduceMean<axes=[2,3], keepdims=0>(b)",
    ),
    (
        "one-side-read-elsewhere",
        f"a = {TO_LAST}(x) b = Relu(a) d = {TO_FIRST}(b) y = Conv(d, w) y2 = MatMul(a, f32(ones(4,2)))",
        f"a = {TO_LAST}(x) b = Relu(x) y = Conv(b, w) y2 = MatMul(a, f32(ones(4,2)))",
    ),
    (
        "moves-to-the-smaller-value",
        f"a = {TO_LAST}(x) b = ReduceMean<axes=[1]>(a) y = MatMul(b, f32(ones(4,2)))",
        f"b = ReduceMean<axes=[2]>(x) a = {TO_LAST}(b) y = MatMul(a, f32(ones(4,2)))",
    ),
    (
        "quantized-per-axis",
        (
            f"a = {TO_LAST}(x) q = QuantizeLinear<axis=3>(a, f32([1,2,3,4]), u8([0,0,0,1]))"
            f" d = DequantizeLinear(q, f32(2), u8(0)) y = {TO_FIRST}(d)"
        ),
        "q = QuantizeLinear<axis=1>(x, f32([1,2,3,4]), u8([0,0,0,1])) y = DequantizeLinear(q, f32(2), u8(0))",
    ),
]
NOTHING_BETTER = [
    ("rigid", f"a = {TO_LAST}(x) b = MatMul(a, f32(ones(4,4))) y = {TO_FIRST}(b)"),
    ("one-way", f"a = {TO_LAST}(x) y = Relu(a)"),
    ("mixed", f"a = {TO_LAST}(x) y = Add(a, last)"),
    (
        "lower-rank",
        f"a = {TO_LAST}(x) s = ReduceMax<axes=[0,1,2], keepdims=0>(last) b = Add(a, s) y = {TO_FIRST}(b)",
    ),
]

ROWS = [
    *rows(LAYOUT, IMAGE, FIRES),
    *rows(
        merge_transposes,
        IMAGE,
        [
            ("cancel", f"a = {TO_LAST}(x) y = {TO_FIRST}(a)", "y = Identity(x)"),
            ("merge", f"a = {TO_LAST}(x) y = {TO_LAST}(a)", f"y = {TO_FIRST}(x)"),
            (
                "no-perm",
                "a = Transpose(x) y = Transpose<perm=[0,1,3,2]>(a)",
                "y = Transpose<perm=[3,2,0,1]>(x)",
            ),
            (
                "read-twice",
                f"a = {TO_LAST}(x) y = {TO_FIRST}(a) y2 = Relu(a)",
                f"y = Identity(x) a = {TO_LAST}(x) y2 = Relu(a)",
            ),
        ],
    ),
    *rows(
        replace_transpose_by_reshape,
        Setup("float[N,4,1,5] x, float[1,N,1,M] z, float[N,1,M,1] q, float[2,0,1] empty"),
        [
            ("one-dim", "y = Transpose<perm=[0,2,1,3]>(x)", "y = Reshape(x, i64([0,1,4,5]))"),
            (
                "unknown-moves",
                "a = Slice(x, i64([0]), i64([1]), i64([3])) y = Transpose<perm=[2,0,1,3]>(a)",
                "a = Slice(x, i64([0]), i64([1]), i64([3])) y = Reshape(a, i64([1,-1,4,1]))",
            ),
        ],
        [
            ("moves-data", "y = Transpose<perm=[1,0,2,3]>(x)", "it moves data"),
            ("does-nothing", "y = Transpose<perm=[0,1,2,3]>(x)", "it does nothing"),
            (
                "two-unknown",
                "y = Transpose<perm=[1,0,3,2]>(z)",
                "several dimensions of the target are not known",
            ),
            (
                "maybe-empty",
                "y = Transpose<perm=[0,2,1,3]>(q)",
                "-1 may stand for anything in an empty tensor",
            ),
            ("empty", "y = Transpose<perm=[2,0,1]>(empty)", "the result is empty where the operand is not"),
        ],
    ),
    *rows(
        fold_transpose_into_reduction,
        IMAGE,
        [
            (
                "dropped",
                f"a = {TO_LAST}(x) y = ReduceMax<axes=[1,2], keepdims=0>(a)",
                "y = ReduceMax<axes=[2,3], keepdims=0>(x)",
            ),
            (
                "operand",
                f"a = {TO_LAST}(x) y = ReduceSum<keepdims=0>(a, i64([1,2]))",
                "y = ReduceSum<keepdims=0>(x, i64([2,3]))",
            ),
            (
                "kept",
                "a = Transpose<perm=[0,1,3,2]>(x) y = ReduceMax<axes=[2,3]>(a)",
                "y = ReduceMax<axes=[2,3]>(x)",
            ),
        ],
        [
            ("all", f"a = {TO_LAST}(x) y = ReduceMax(a)", "it runs over all axes, or over none"),
            (
                "permuted",
                f"a = {TO_LAST}(x) y = ReduceMax<axes=[0], keepdims=0>(a)",
                "what is left is permuted",
            ),
            ("kept-permuted", f"a = {TO_LAST}(x) y = ReduceMax<axes=[1]>(a)", "what is left is permuted"),
        ],
    ),
]

test_rows = table_test(ROWS)


def test_nothing_better_means_no_change() -> None:
    from optimizer.ir.text import dump

    for name, text in NOTHING_BETTER:
        model = IMAGE.model(text)
        before = dump(model)
        assert not LAYOUT.run(Context(model)), name
        assert dump(model) == before, name


def test_softmax_that_flattens_stays() -> None:
    model = OLD.model(f"a = {TO_LAST}(x) b = Softmax<axis=3>(a) y = {TO_FIRST}(b)")
    assert not LAYOUT.run(Context(model))


@pytest.mark.parametrize(
    ("step", "tag"),
    [
        ("Relu(a)", Exactness.E0),
        ("ReduceMax<axes=[1,2]>(a)", Exactness.E1),
        ("ReduceMin<axes=[1,2]>(a)", Exactness.E1),
        ("ReduceSum(a, i64([1,2]))", Exactness.E2),
        ("Softmax<axis=3>(a)", Exactness.E2),
        ("Sin(a)", Exactness.E2),
    ],
)
def test_another_order_of_axes_is_as_exact_as_what_runs_over_them(step: str, tag: Exactness) -> None:
    text = f"a = {TO_LAST}(x) s = {step} b = Add(a, s) y = {TO_FIRST}(b)"
    ctx = Context(IMAGE.model(text))
    assert LAYOUT.run(ctx)
    assert [entry.tag for entry in ctx.journal.entries] == [tag]
    strict = Context(IMAGE.model(text), Settings(fp="strict"))
    LAYOUT.run(strict)
    assert {entry.tag for entry in strict.journal.entries} <= {Exactness.E0}
