"""Slice, Gather and Split after each other, or side by side before a Concat."""

from __future__ import annotations

from harness import Setup, rows, table_test

from passes.picks import join_picks, pick_once, take_parts_of_concat

X = Setup("float[N,6,4] x, float[N,2,4] z, float[N,S,4] w, int64 i")
V9 = Setup("float[N,6,4] x", opset=9)
BIG = Setup("float[600,2] x")
PART = "{0} = Slice(x, i64([{1}]), i64([{2}]), i64([1]))"

ROWS = [
    *rows(
        pick_once,
        X,
        [
            (
                "gathers",
                "a = Gather<axis=1>(x, i64([0,2,5])) y = Gather<axis=1>(a, i64([-1,0]))",
                "y = Gather<axis=1>(x, i64([5,0]))",
            ),
            (
                "gather-of-slice",
                f"{PART.format('a', 2, 9)} y = Gather<axis=1>(a, i32([3,0,0]))",
                "y = Gather<axis=1>(x, i64([5,2,2]))",
            ),
            (
                "scalar-of-slice",
                f"{PART.format('a', 2, 9)} y = Gather<axis=1>(a, i32(-1))",
                "y = Gather<axis=1>(x, i32(5))",
            ),
            (
                "slice-of-gather",
                "a = Gather<axis=-2>(x, i64([4,2,0])) y = Slice(a, i64([0]), i64([2]), i64([1]))",
                "y = Gather<axis=1>(x, i64([4,2]))",
            ),
            (
                "steps",
                (
                    "a = Slice(x, i64([0]), i64([6]), i64([1]), i64([2])) y = Slice(a, i64([1]), "
                    "i64([3]), i64([1]))"
                ),
                "y = Slice(x, i64([2]), i64([5]), i64([1]), i64([2]))",
            ),
            (
                "backwards-twice",
                (
                    "a = Slice(x, i64([-1]), i64([-99]), i64([1]), i64([-1])) "
                    "b = Slice(a, i64([-1]), i64([-99]), i64([1]), i64([-1])) y = Relu(b)"
                ),
                "y = Relu(x)",
            ),
            (
                "part-of-split",
                "a, b = Split<axis=1>(x, i64([2,4])) y = Slice(b, i64([1]), i64([3]), i64([1]))",
                "y = Slice(x, i64([3]), i64([5]), i64([1]))",
            ),
        ],
        [
            (
                "other-axis",
                "a = Gather<axis=2>(x, i64([0,2])) y = Gather<axis=1>(a, i64([1]))",
                "what it takes is not known",
            ),
            (
                "unknown",
                "a = Gather<axis=1>(w, i64([0,2])) y = Gather<axis=1>(a, i64([1]))",
                "what it takes is not known",
            ),
            (
                "several",
                f"{PART.format('a', 2, 9)} y = Slice(a, i64([0,0]), i64([1,1]), i64([1,2]))",
                "it takes of several axes",
            ),
            (
                "read",
                "a, b = Split<axis=1>(x, i64([2,4])) y = Slice(b, i64([1]), i64([3]), i64([1])) y2 = Relu(a)",
                "other parts are read",
            ),
            (
                "nothing",
                f"{PART.format('a', 2, 4)} y = Slice(a, i64([2]), i64([2]), i64([1]))",
                "nothing is taken",
            ),
        ],
    ),
    *rows(
        pick_once,
        V9,
        [
            (
                "attributes",
                "a = Gather<axis=1>(x, i64([4,2,3])) y = Slice<axes=[1], starts=[1], ends=[3]>(a)",
                "y = Slice<axes=[1], starts=[2], ends=[4]>(x)",
            )
        ],
    ),
    *rows(
        pick_once,
        BIG,
        [],
        [
            (
                "many",
                (
                    "a = Slice(x, i64([-1]), i64([-9999]), i64([0]), i64([-1])) y = Slice(a, "
                    "i64([1]), i64([500]), i64([0]))"
                ),
                "there would be too many indices",
            )
        ],
    ),
    *rows(
        join_picks,
        X,
        [
            (
                "slices",
                f"{PART.format('a', 1, 2)} {PART.format('b', 2, 5)} y = Concat<axis=1>(z, a, b)",
                "a = Slice(x, i64([1]), i64([5]), i64([1])) y = Concat<axis=1>(z, a)",
            ),
            (
                "gathers",
                "a = Gather<axis=1>(x, i64([5])) b = Gather<axis=1>(x, i64([2,1])) y = Concat<axis=-2>(a, b)",
                "y = Gather<axis=1>(x, i64([5,2,1]))",
            ),
            (
                "parts",
                "a, b, c = Split<axis=1>(x) y = Concat<axis=1>(a, b)",
                "y = Slice(x, i64([0]), i64([4]), i64([1]))",
            ),
            (
                "everything",
                f"{PART.format('a', 0, 2)} {PART.format('b', 2, 6)} d = Concat<axis=1>(a, b) y = Relu(d)",
                "y = Relu(x)",
            ),
        ],
        [
            (
                "read",
                f"{PART.format('a', 1, 2)} {PART.format('b', 2, 5)} y = Concat<axis=1>(a, b) y2 = Relu(b)",
                "no neighbours take of one value",
            ),
            (
                "other-axis",
                f"{PART.format('a', 1, 2)} {PART.format('b', 2, 3)} y = Concat<axis=2>(a, b)",
                "no neighbours take of one value",
            ),
        ],
    ),
    *rows(
        join_picks,
        Setup("float[N,12] x"),
        [
            (
                "few-of-a-row",
                f"{PART.format('a', 4, 5)} {PART.format('b', 0, 3)} y = Concat<axis=1>(a, b)",
                "y = Gather<axis=1>(x, i64([4,0,1,2]))",
            )
        ],
        [
            (
                "halves-of-a-row",
                f"{PART.format('a', 6, 12)} {PART.format('b', 0, 6)} y = Concat<axis=1>(a, b)",
                "it would be slower",
            )
        ],
    ),
    *rows(
        take_parts_of_concat,
        X,
        [
            (
                "groups",
                "a = Concat<axis=1>(x, z, x) b, c = Split<axis=1>(a, i64([6,8])) y = Relu(b) y2 = Relu(c)",
                "c = Concat<axis=1>(z, x) y = Relu(x) y2 = Relu(c)",
            )
        ],
        [
            ("cut", "a = Concat<axis=1>(x, z) y, y2 = Split<axis=1>(a, i64([3,5]))", "an operand is cut"),
            ("axis", "a = Concat<axis=1>(x, z) y, y2 = Split<axis=2>(a)", "it cuts another axis"),
            (
                "unknown",
                "a = Concat<axis=1>(x, w) y, y2 = Split<axis=1>(a)",
                "the size of an operand is not known",
            ),
        ],
    ),
]

test_rows = table_test(ROWS)
