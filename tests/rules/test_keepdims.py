"""Axes that are dropped and put back, states that are zero."""

from __future__ import annotations

import numpy as np
from harness import Setup, rows, table_test

from passes.keepdims import (
    drop_axes_at_once,
    drop_gathered_axis,
    drop_reduced_axes,
    keep_gathered_axis,
    keep_reduced_axes,
    merge_reductions,
    replace_squeezed_slice_by_gather,
    replace_squeezed_split_by_gather,
)
from passes.recurrent import drop_zero_state

IMAGE = Setup("float[N,4,3,5] x, int64[1] i, float[2,1,1] t")
V18 = Setup("float[N,4,3,5] x", opset=18)
V12 = Setup("float[N,4,3,5] x", opset=12)
RNG = np.random.default_rng(5)
CELL = Setup(
    "float[S,N,3] x, float[1,N,2] h",
    constants={
        "w": RNG.standard_normal((1, 8, 3)).astype(np.float32),
        "r": RNG.standard_normal((1, 8, 2)).astype(np.float32),
        "wg": RNG.standard_normal((1, 6, 3)).astype(np.float32),
        "rg": RNG.standard_normal((1, 6, 2)).astype(np.float32),
    },
)
ZEROS = "n = Shape<start=1, end=2>(x) s = Concat<axis=0>(i64([2]), n, i64([2])) z = ConstantOfShape(s)"
CUT = "c = Slice(z, i64([0]), i64([1]), i64([0]))"

ROWS = [
    *rows(
        merge_reductions,
        IMAGE,
        [
            (
                "kept",
                "a = ReduceMean<axes=[3]>(x) y = ReduceMean<axes=[-2]>(a)",
                "y = ReduceMean<axes=[2,3]>(x)",
            ),
            (
                "dropped",
                "a = ReduceSum<keepdims=0>(x, i64([1])) y = ReduceSum<keepdims=0>(a, i64([1]))",
                "y = ReduceSum<keepdims=0>(x, i64([1,2]))",
            ),
        ],
        [
            (
                "mixed",
                "a = ReduceMax<axes=[3]>(x) y = ReduceMean<axes=[2]>(a)",
                "they reduce in different ways",
            ),
            (
                "half-kept",
                "a = ReduceMean<axes=[3], keepdims=0>(x) y = ReduceMean<axes=[2]>(a)",
                "one keeps its axes and one does not",
            ),
            (
                "to-nothing",
                "a = ReduceMax<axes=[0,1,2,3], keepdims=0>(x) y = ReduceMax<axes=[0], keepdims=0>(a)",
                "nothing is left to reduce",
            ),
            ("all", "a = ReduceMean<axes=[3]>(x) y = ReduceMean(a)", "the reduction is not over given axes"),
        ],
    ),
    *rows(
        keep_reduced_axes,
        IMAGE,
        [
            (
                "mean",
                "a = ReduceMean<axes=[-1,1], keepdims=0>(x) y = Unsqueeze(a, i64([1,3]))",
                "y = ReduceMean<axes=[-1,1], keepdims=1>(x)",
            ),
            (
                "sum",
                "a = ReduceSum<keepdims=0>(x, i64([2])) y = Unsqueeze(a, i64([-2]))",
                "y = ReduceSum<keepdims=1>(x, i64([2]))",
            ),
            (
                "argmax",
                "a = ArgMax<axis=1, keepdims=0>(x) y = Unsqueeze(a, i64([1]))",
                "y = ArgMax<axis=1, keepdims=1>(x)",
            ),
        ],
        [
            (
                "others",
                "a = ReduceMean<axes=[1], keepdims=0>(x) y = Unsqueeze(a, i64([2]))",
                "the axes are others",
            ),
            ("kept", "a = ReduceMean<axes=[1]>(x) y = Unsqueeze(a, i64([1]))", "the axes are kept already"),
            (
                "all",
                "a = ReduceMean<keepdims=0>(x) y = Unsqueeze(a, i64([0,1,2,3]))",
                "the reduction is not over given axes",
            ),
        ],
    ),
    *rows(
        drop_reduced_axes,
        IMAGE,
        [
            (
                "mean",
                "a = ReduceMean<axes=[2,3]>(x) y = Squeeze(a, i64([-1,2]))",
                "y = ReduceMean<axes=[2,3], keepdims=0>(x)",
            )
        ],
        [
            (
                "dropped",
                "a = ReduceMax<axes=[1], keepdims=0>(x) y = Squeeze(a, i64([0]))",
                "the axes are dropped already",
            )
        ],
    ),
    *rows(
        drop_reduced_axes,
        V12,
        [
            (
                "attribute",
                "a = ReduceMean<axes=[2,3]>(x) y = Squeeze<axes=[2,3]>(a)",
                "y = ReduceMean<axes=[2,3], keepdims=0>(x)",
            )
        ],
    ),
    *rows(
        keep_gathered_axis,
        IMAGE,
        [
            (
                "scalar",
                "a = Gather<axis=1>(x, i64(-1)) y = Unsqueeze(a, i64([1]))",
                "y = Gather<axis=1>(x, i64([-1]))",
            )
        ],
        [
            (
                "vector",
                "a = Gather<axis=1>(x, i64([2])) y = Unsqueeze(a, i64([1]))",
                "the index is no scalar",
            ),
            ("elsewhere", "a = Gather<axis=1>(x, i64(2)) y = Unsqueeze(a, i64([0]))", "the axes are others"),
        ],
    ),
    *rows(
        drop_gathered_axis,
        IMAGE,
        [
            (
                "vector",
                "a = Gather<axis=2>(x, i64([1])) y = Squeeze(a, i64([2]))",
                "y = Gather<axis=2>(x, i64(1))",
            )
        ],
        [("scalar", "a = Gather<axis=2>(x, i64(1)) y = Squeeze(a, i64([2]))", "the index is not one number")],
    ),
    *rows(
        replace_squeezed_slice_by_gather,
        IMAGE,
        [
            (
                "one",
                "a = Slice(x, i64([1]), i64([2]), i64([2])) y = Squeeze(a, i64([2]))",
                "y = Gather<axis=2>(x, i64(1))",
            ),
            (
                "last",
                (
                    "a = Slice(x, i64([-1]), i64([9223372036854775807]), i64([-1]), i64([1])) y ="
                    " Squeeze(a, i64([3]))"
                ),
                "y = Gather<axis=3>(x, i64(-1))",
            ),
        ],
        [
            (
                "two",
                "a = Slice(x, i64([-1]), i64([0]), i64([0])) y = Squeeze(a, i64([0]))",
                "it does not cut out one element",
            ),
            (
                "several",
                "a = Slice(x, i64([0,0]), i64([1,1]), i64([1,2])) y = Squeeze(a, i64([1,2]))",
                "it cuts several axes",
            ),
        ],
    ),
    *rows(
        replace_squeezed_split_by_gather,
        V18,
        [
            (
                "all",
                (
                    "a, b, c = Split<axis=2, num_outputs=3>(x) d = Squeeze(a, i64([2])) e = Squeeze(c,"
                    " i64([2])) y = Sub(d, e)"
                ),
                "d = Gather<axis=2>(x, i64(0)) e = Gather<axis=2>(x, i64(2)) y = Sub(d, e)",
            ),
        ],
        [
            (
                "kept",
                "a, b, c = Split<axis=2, num_outputs=3>(x) y = Squeeze(a, i64([2])) y2 = Neg(b)",
                "a part is read with its axis",
            ),
            (
                "large",
                "a, b = Split<axis=1>(x, i64([1,3])) y = Squeeze(a, i64([1]))",
                "a part is not one element",
            ),
            (
                "other",
                "a = Slice(x, i64([0]), i64([1]), i64([1])) y = Squeeze(a, i64([1]))",
                "no part of a Split",
            ),
        ],
    ),
    *rows(
        drop_zero_state,
        CELL,
        [
            (
                "constant-shape",
                f"{ZEROS} {CUT} o, y = LSTM<hidden_size=2>(x, w, r, , , c, c)",
                "o, y = LSTM<hidden_size=2>(x, w, r)",
            ),
            (
                "cell-only",
                f"{ZEROS} {CUT} o, y = LSTM<hidden_size=2>(x, w, r, , , h, c)",
                "o, y = LSTM<hidden_size=2>(x, w, r, , , h)",
            ),
            (
                "gru",
                f"{ZEROS} {CUT} o, y = GRU<hidden_size=2>(x, wg, rg, , , c)",
                "o, y = GRU<hidden_size=2>(x, wg, rg)",
            ),
        ],
        [
            ("given", "o, y = GRU<hidden_size=2>(x, wg, rg, , , h)", "no state is known to be zero"),
            (
                "ones",
                (
                    f"{ZEROS.replace('ConstantOfShape', 'ConstantOfShape<value = float[1] {1.0}>')} {CUT}"
                    " o, y = GRU<hidden_size=2>(x, wg, rg, , , c)"
                ),
                "no state is known to be zero",
            ),
        ],
    ),
    *rows(
        drop_axes_at_once,
        IMAGE,
        [
            (
                "flatten",
                "a = ReduceMean<axes=[2,3]>(x) y = Flatten(a)",
                "y = ReduceMean<axes=[2,3], keepdims=0>(x)",
            ),
            (
                "reshape",
                "a = ReduceMax<axes=[1]>(t) y = Reshape(a, i64([2,1]))",
                "y = ReduceMax<axes=[1], keepdims=0>(t)",
            ),
        ],
        [
            (
                "dropped",
                "a = ReduceMean<axes=[2], keepdims=0>(x) y = Flatten(a)",
                "an axis is dropped",
            ),
            ("all", "a = ReduceMean(x) y = Flatten(a)", "all axes are reduced"),
            ("rows", "a = ReduceMean<axes=[3]>(x) y = Flatten(a)", "the result has another shape"),
        ],
    ),
    *rows(
        drop_axes_at_once,
        V18,
        [
            (
                "axes",
                "a = ReduceMean(x, i64([2,3])) y = Flatten(a)",
                "y = ReduceMean<keepdims=0>(x, i64([2,3]))",
            )
        ],
    ),
]

test_rows = table_test(ROWS)
