"""Slice behind Pad."""

from __future__ import annotations

from harness import Setup, rows, table_test

from passes.fuse_pad import cut_padding

X = Setup("float[N,4,6,6] x, float[N,4,H,6] h")
V9 = Setup("float[N,4,6] x", opset=9)
PAD = "a = Pad({0}, i64([0,0,2,1,0,0,2,1]), f32(7)) "
CUT = "Slice(a, i64({0}), i64({1}), i64({2}))"

ROWS = [
    *rows(
        cut_padding,
        X,
        [
            (
                "all-of-it",
                PAD.format("x") + "b = " + CUT.format([2, 1], [8, 7], [2, 3]) + " y = Relu(b)",
                "y = Relu(x)",
            ),
            (
                "some-of-it",
                PAD.format("x") + "y = " + CUT.format([1, 0], [-2, 7], [2, -1]),
                "y = Pad(x, i64([0,0,1,1,0,0,0,0]), f32(7))",
            ),
            (
                "more-than-it",
                PAD.format("x") + "y = " + CUT.format([3, 1], [8, 5], [2, 3]),
                "y = Slice(x, i64([1,0]), i64([6,4]), i64([2,3]))",
            ),
            (
                "reflected",
                'a = Pad<mode="reflect">(x, i64([0,0,2,1,0,0,2,1])) y = ' + CUT.format([1], [99], [2]),
                'y = Pad<mode="reflect">(x, i64([0,0,1,1,0,0,2,1]))',
            ),
        ],
        [
            ("both", PAD.format("x") + "y = " + CUT.format([3], [8], [2]), "it would crop and pad"),
            (
                "padding",
                PAD.format("x") + "y = " + CUT.format([0], [2], [2]),
                "nothing is left of what was padded",
            ),
            (
                "unknown",
                PAD.format("h") + "y = " + CUT.format([2], [8], [2]),
                "the size of an axis is not known",
            ),
            (
                "steps",
                PAD.format("x") + "y = Slice(a, i64([2]), i64([8]), i64([2]), i64([2]))",
                "it takes steps",
            ),
            (
                "crops",
                "a = Pad(x, i64([0,0,-1,1,0,0,2,1])) y = " + CUT.format([2], [8], [2]),
                "it crops",
            ),
        ],
    ),
    *rows(
        cut_padding,
        V9,
        [
            (
                "less",
                "a = Pad<pads=[0,0,2,0,0,1]>(x) y = Slice<axes=[2], starts=[1], ends=[9]>(a)",
                "y = Pad<pads=[0,0,1,0,0,1]>(x)",
            ),
            (
                "more",
                "a = Pad<pads=[0,0,2,0,0,1]>(x) y = Slice<axes=[2], starts=[3], ends=[8]>(a)",
                "y = Slice<starts=[1], ends=[6], axes=[2]>(x)",
            ),
        ],
    ),
]

test_rows = table_test(ROWS)
