"""Masks as sums."""

from __future__ import annotations

from harness import Setup, rows, table_test

from optimizer.rewrite import Settings
from passes.masks import replace_finite_mask_by_sum, replace_infinite_mask_by_sum

INPUTS = "float[B,H,S,S] s, bool[B,1,1,S] m, bool[B,H,S,S] large, float[S] row, int32[B,H,S,S] i"
FAST = Setup(INPUTS, settings=Settings(fp="fast", growth=None, objective="latency"), special=False)
X = Setup(INPUTS, special=False)
TIGHT = Setup("float[B,2,4,4] s", settings=Settings(growth=0), special=False)
CAUSAL = "bool([[True,False],[True,True]])"

ROWS = [
    *rows(
        replace_infinite_mask_by_sum,
        FAST,
        [
            ("kept", "y = Where(m, s, f32(-inf))", "w = Where(m, f32(0), f32(-inf)) y = Add(s, w)"),
            ("dropped", "y = Where(m, f32([-inf]), s)", "w = Where(m, f32(-inf), f32(0)) y = Add(s, w)"),
        ],
        [
            ("finite", "y = Where(m, s, f32(-10000))", "the mask is finite"),
            ("several", "y = Where(m, s, f32([-inf,-inf]))", "it is not one number that is put in"),
            ("large", "y = Where(large, s, f32(-inf))", "the mask is as large as what it masks"),
            ("stretched", "y = Where(m, row, f32(-inf))", "what is chosen is broadcast"),
        ],
    ),
    *rows(
        replace_infinite_mask_by_sum,
        Setup("float[B,H,2,2] s", special=False),
        [("causal", f"y = Where({CAUSAL}, s, f32(-inf))", "y = Add(s, f32([[0,-inf],[0,0]]))")],
    ),
    *rows(
        replace_infinite_mask_by_sum,
        TIGHT,
        (),
        [("tight", "y = Where(bool(ones(4,4)), s, f32(-inf))", "the growth budget is used up")],
    ),
    *rows(
        replace_finite_mask_by_sum,
        Setup("float[B,H,2,2] s, int32[B,H,2,2] i", special=False),
        [
            (
                "causal",
                f"w = Where({CAUSAL}, s, f32(-1e9)) y = Softmax(w)",
                "w = Add(s, f32([[0,-1e9],[0,0]])) y = Softmax(w)",
            )
        ],
        [
            ("no-softmax", f"y = Where({CAUSAL}, s, f32(-1e9))", "no Softmax is behind it"),
            (
                "small",
                f"w = Where({CAUSAL}, s, f32(-1)) y = Softmax(w)",
                "the mask is not a large negative number",
            ),
            ("integers", f"w = Where({CAUSAL}, i, i32(-9999)) y = Neg(w)", "not a float"),
        ],
    ),
]

test_rows = table_test(ROWS)
