"""Transposes between views; parts of a split axis; Slices that are a Split."""

from __future__ import annotations

import numpy as np
from harness import Setup, rows, table_test

from passes.view_chain import (
    drop_transpose_of_new_axes,
    merge_slices_into_split,
    replace_gather_of_split_axis_by_slice,
    split_axes_before_transpose,
)

X = Setup(
    "float[B,6,S,4] x, float[5,B,12] s, float[B,S,3,5] p",
    sizes=[{"B": 2, "S": 3}, {"B": 1, "S": 1}],
)
PART = Setup(
    "float[S,B,15] x, float[S,B,3,5] fine, float[B,8] z, float[B,K] open, int64[1] b",
    sizes=[{"B": 2, "S": 3, "K": 8}],
    feeds={"b": np.array([2])},
)
OLD = Setup("float[2,3,15] x, float[3,8] z", opset=9)
SPLIT = "r = Reshape(x, i64([0,0,3,5])) t = Transpose<perm=[2,0,1,3]>(r) "

ROWS = [
    *rows(
        drop_transpose_of_new_axes,
        X,
        [
            (
                "moved",
                "a = Unsqueeze(p, i64([1,5])) y = Transpose<perm=[0,2,5,1,3,4]>(a)",
                "y = Unsqueeze(p, i64([2,3]))",
            )
        ],
        [("data", "a = Unsqueeze(p, i64([1])) y = Transpose<perm=[2,1,0,3,4]>(a)", "it moves data")],
    ),
    *rows(
        drop_transpose_of_new_axes,
        OLD,
        [("old", "a = Unsqueeze<axes=[0]>(z) y = Transpose<perm=[1,0,2]>(a)", "y = Unsqueeze<axes=[1]>(z)")],
    ),
    *rows(
        split_axes_before_transpose,
        X,
        [
            (
                "batched-transpose",
                (
                    "a = Reshape(s, i64([5,-1,4])) t = Transpose<perm=[1,0,2]>(a) y = Reshape(t, "
                    "i64([-1,3,5,4]))"
                ),
                "a = Reshape(s, i64([5,0,3,4])) y = Transpose<perm=[1,2,0,3]>(a)",
            ),
            (
                "nothing-split",
                "a = Unsqueeze(p, i64([0])) t = Transpose<perm=[3,1,2,0,4]>(a) y = Squeeze(t, i64([3]))",
                "y = Transpose<perm=[2,0,1,3]>(p)",
            ),
            (
                "nothing-moved",
                "a = Unsqueeze(p, i64([1])) t = Transpose<perm=[1,0,2,3,4]>(a) y = Squeeze(t, i64([0]))",
                "y = Identity(p)",
            ),
        ],
        [
            (
                "merges",
                (
                    "a = Reshape(p, i64([0,0,15,1])) t = Transpose<perm=[0,2,1,3]>(a) y = Reshape(t, "
                    "i64([0,-1,1]))"
                ),
                "the outer view merges axes",
            ),
        ],
    ),
    *rows(
        replace_gather_of_split_axis_by_slice,
        PART,
        [
            (
                "part",
                SPLIT + "y = Gather(t, i64(1))",
                "y = Slice(x, i64([5]), i64([10]), i64([2]))",
            ),
            (
                "from-the-end",
                "r = Reshape(x, i64([0,0,3,5])) y = Gather<axis=2>(r, i64(-1))",
                "y = Slice(x, i64([10]), i64([15]), i64([2]))",
            ),
        ],
        [
            ("vector", SPLIT + "y = Gather(t, i64([1]))", "the index is no scalar"),
            (
                "permuted",
                "r = Reshape(x, i64([0,0,3,5])) t = Transpose<perm=[2,1,0,3]>(r) y = Gather(t, i64(1))",
                "the other axes are permuted",
            ),
            (
                "last",
                "r = Reshape(x, i64([0,0,3,5])) y = Gather<axis=3>(r, i64(1))",
                "no axis is split in two",
            ),
            (
                "joined",
                "r = Reshape(fine, i64([0,0,15])) y = Gather<axis=1>(r, i64(1))",
                "no axis is split in two",
            ),
            ("read", SPLIT + "y = Gather(t, i64(1)) y2 = Relu(t)", "the parts are read otherwise"),
        ],
    ),
    *rows(
        replace_gather_of_split_axis_by_slice,
        OLD,
        [("old", SPLIT + "y = Gather(t, i64(0))", "y = Slice<starts=[0], ends=[5], axes=[2]>(x)")],
    ),
    *rows(
        merge_slices_into_split,
        PART,
        [
            (
                "two",
                (
                    "y = Slice(z, i64([0]), i64([3]), i64([1])) y2 = Slice(z, i64([3]), i64([99]), "
                    "i64([-1]), i64([1]))"
                ),
                "y, y2 = Split<axis=1>(z, i64([3,5]))",
            ),
        ],
        [
            (
                "steps",
                "y = Slice(z, i64([0]), i64([8]), i64([1]), i64([2]))",
                "it does not cut out a part of one axis",
            ),
            (
                "open",
                "y = Slice(open, i64([0]), i64([3]), i64([1]))",
                "it does not cut out a part of one axis",
            ),
            (
                "gap",
                "y = Slice(z, i64([0]), i64([3]), i64([1])) y2 = Slice(z, i64([4]), i64([8]), i64([1]))",
                "the parts are not the whole",
            ),
            ("computed", "y = Slice(z, b, i64([3]), i64([1]))", "it does not cut out a part of one axis"),
        ],
    ),
    *rows(
        merge_slices_into_split,
        OLD,
        [
            (
                "old",
                "y = Slice<starts=[0], ends=[3], axes=[1]>(z) y2 = Slice<starts=[3], ends=[8], axes=[1]>(z)",
                "y, y2 = Split<axis=1, split=[3,5]>(z)",
            )
        ],
    ),
]

test_rows = table_test(ROWS)
