"""Slice, Concat and Split."""

from __future__ import annotations

from harness import Setup, rows, table_test

from optimizer.rewrite import Settings
from passes.slice_concat import (
    drop_concat_of_split,
    gather_from_operand_of_concat,
    merge_concats,
    merge_constant_neighbours,
    merge_slices,
    take_operands_of_concat,
)

X = Setup("float[N,8,6] x, float[N,8,6] z, float[N,M,6] w, int64[1] k, int64[1] l, float[] v")
OLD = Setup("float[N,8,6] x", opset=9)
TIGHT = Setup("int64[1] k", settings=Settings(growth=0))
CUT = "a = Slice(x, i64([1]), i64([7]), i64([1])) "

ROWS = [
    *rows(
        merge_slices,
        X,
        [
            (
                "axes",
                CUT + "y = Slice(a, i64([-3]), i64([-1]), i64([2]))",
                "y = Slice(x, i64([1, -3]), i64([7, -1]), i64([1, 2]))",
            ),
            (
                "one-axis",
                CUT + "y = Slice(a, i64([2]), i64([4]), i64([1]))",
                "y = Slice(x, i64([3]), i64([5]), i64([1]))",
            ),
            (
                "shorter",
                CUT + "y = Slice(a, i64([2]), i64([9223372036854775807]), i64([1]))",
                "y = Slice(x, i64([3]), i64([7]), i64([1]))",
            ),
            (
                "empty",
                CUT + "y = Slice(a, i64([7]), i64([8]), i64([1]))",
                "y = Slice(x, i64([8]), i64([7]), i64([1]))",
            ),
            (
                "steps",
                CUT + "y = Slice(a, i64([0]), i64([6]), i64([2]), i64([2]))",
                "y = Slice(x, i64([1, 0]), i64([7, 6]), i64([1, 2]), i64([1, 2]))",
            ),
        ],
        [
            (
                "step",
                CUT + "y = Slice(a, i64([0]), i64([6]), i64([1]), i64([2]))",
                "both cut one axis in steps",
            ),
            (
                "from-the-end",
                CUT + "y = Slice(a, i64([-2]), i64([6]), i64([1]))",
                "an axis is counted from its end twice",
            ),
            ("unknown", CUT + "y = Slice(a, k, l, i64([1]))", "an operand is not a constant"),
        ],
    ),
    *rows(
        merge_slices,
        OLD,
        [
            (
                "old",
                "a = Slice<starts=[1], ends=[7], axes=[1]>(x) y = Slice<starts=[2], ends=[4], axes=[2]>(a)",
                "y = Slice<starts=[1, 2], ends=[7, 4], axes=[1, 2]>(x)",
            )
        ],
    ),
    *rows(
        merge_concats,
        X,
        [
            ("inner", "a = Concat<axis=1>(x, w) y = Concat<axis=-2>(a, z)", "y = Concat<axis=-2>(x, w, z)"),
            (
                "twice",
                "a = Concat<axis=1>(x, w) b = Concat<axis=1>(w, z) y = Concat<axis=1>(a, b)",
                "y = Concat<axis=1>(x, w, w, z)",
            ),
        ],
        [
            (
                "axis",
                "a = Concat<axis=2>(x, z) b = Concat<axis=2>(z, x) y = Concat<axis=1>(a, b)",
                "no operand is joined along the same axis",
            )
        ],
    ),
    *rows(
        merge_constant_neighbours,
        X,
        [
            ("some", "y = Concat<axis=0>(k, i64([2]), i64([3, 4]))", "y = Concat<axis=0>(k, i64([2, 3, 4]))"),
            ("all", "y = Concat<axis=0>(i64([2]), i64([3]))", "y = Identity(i64([2, 3]))"),
        ],
        [("apart", "y = Concat<axis=0>(i64([2]), k, i64([3]))", "no neighbours are constants")],
    ),
    *rows(
        merge_constant_neighbours,
        TIGHT,
        [],
        [
            (
                "shared",
                "c = Constant<value=int64[1]{5}>() y = Concat<axis=0>(k, c, i64([3])) y2 = Add(k, c)",
                "the constants are used elsewhere, and the size limit is reached",
            )
        ],
    ),
    *rows(
        drop_concat_of_split,
        X,
        [("all", "a, b = Split<axis=1>(x) d = Concat<axis=-2>(a, b) y = Relu(d)", "y = Relu(x)")],
        [
            (
                "order",
                "a, b = Split<axis=1>(x) y = Concat<axis=1>(b, a)",
                "the pieces are not all there in order",
            ),
            (
                "some",
                "a, b, d, e = Split<axis=1>(x) y = Concat<axis=1>(a, b)",
                "the pieces are not all there in order",
            ),
            (
                "axis",
                "a, b = Split<axis=1>(x) y = Concat<axis=2>(a, b)",
                "the pieces are joined along another axis",
            ),
            ("other", "y = Concat<axis=1>(x, z)", "the operands are not the pieces of a Split"),
        ],
    ),
    *rows(
        take_operands_of_concat,
        X,
        [
            (
                "one",
                "a = Concat<axis=1>(x, z) b = Slice(a, i64([8]), i64([16]), i64([1])) y = Relu(b)",
                "y = Relu(z)",
            ),
            (
                "two",
                "a = Concat<axis=1>(x, z, x) y = Slice(a, i64([-16]), i64([9999]), i64([1]))",
                "y = Concat<axis=1>(z, x)",
            ),
        ],
        [
            (
                "cut",
                "a = Concat<axis=1>(x, z) y = Slice(a, i64([7]), i64([16]), i64([1]))",
                "an operand is cut",
            ),
            (
                "dynamic",
                "a = Concat<axis=1>(w, z) y = Slice(a, i64([0]), i64([8]), i64([1]))",
                "the size of an operand is not known",
            ),
            (
                "axis",
                "a = Concat<axis=1>(x, z) y = Slice(a, i64([0]), i64([1]), i64([2]))",
                "other axes are cut",
            ),
            (
                "step",
                "a = Concat<axis=1>(x, z) y = Slice(a, i64([0]), i64([8]), i64([1]), i64([2]))",
                "it cuts in steps",
            ),
        ],
    ),
    *rows(
        gather_from_operand_of_concat,
        X,
        [
            ("scalar", "a = Concat<axis=0>(k, l) y = Gather(a, i64(1))", "y = Gather(l, i64(0))"),
            ("last", "a = Concat<axis=0>(k, l) y = Gather(a, i64([-2]))", "y = Gather(k, i64([0]))"),
            (
                "inside",
                "a = Concat<axis=1>(x, z) y = Gather<axis=1>(a, i64(9))",
                "y = Gather<axis=1>(z, i64(1))",
            ),
        ],
        [
            (
                "outside",
                "a = Concat<axis=1>(x, z) y = Gather<axis=1>(a, i64(16))",
                "the index is out of range",
            ),
            (
                "axis",
                "a = Concat<axis=1>(x, z) y = Gather<axis=2>(a, i64(1))",
                "the elements lie along another axis",
            ),
            ("several", "a = Concat<axis=0>(k, l) y = Gather(a, i64([0, 1]))", "several elements are taken"),
        ],
    ),
]

test_rows = table_test(ROWS)
