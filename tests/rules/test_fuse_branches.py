"""Convolutions that take over what is around them: branches, gates, phases of pixels."""

from __future__ import annotations

import numpy as np
from harness import Setup, rows, table_test

from passes.fuse_branches import (
    merge_added_convs,
    merge_conv_with_its_input,
    merge_conv_with_shortcut,
    merge_summed_convs,
)
from passes.fuse_focus import fuse_focus_into_conv
from passes.fuse_gate import factor_gated_residual, fold_gate_shift_into_conv

RNG = np.random.default_rng(6)


def _f32(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


CONSTANTS = {
    "w3": _f32(4, 4, 3, 3),
    "v3": _f32(4, 4, 3, 3),
    "w1": _f32(4, 4, 1, 1),
    "w13": _f32(4, 4, 1, 3),
    "grouped": _f32(4, 2, 3, 3),
    "wide": _f32(6, 4, 3, 3),
    "narrow": _f32(1, 4, 3, 3),
    "a": _f32(4),
    "b": _f32(4),
    "scale": _f32(4),
    "shift": _f32(4),
    "mean": _f32(4),
    "var": np.abs(_f32(4)) + 1,
    "focus": _f32(2, 16, 3, 3),
}
BN = "BatchNormalization(x, scale, shift, mean, var)"
IMAGE = Setup(
    "float[N,4,6,8] x, float[N,4,6,8] z, float[N,4,1,1] g, float[N,4] flat, int32[N,4,6,8] i",
    constants=CONSTANTS,
)
V9 = Setup("float[N,4,6,8] x", opset=9, constants=CONSTANTS)
V10 = Setup("float[N,4,6,8] x", opset=10, constants=CONSTANTS)
P1 = "pads=[1,1,1,1]"
P2 = "dilations=[2,2], pads=[2,2,2,2]"
BIG = 2**31 - 1
PHASES = " ".join(
    f"{name} = Slice(x, i64([{i},{j}]), i64([{BIG},8]), i64([2,3]), i64([2,2]))"
    for name, i, j in (("s", 0, 0), ("t", 1, 0), ("u", 0, 1), ("v", 1, 1))
)
JOINED = f"{PHASES} c = Concat<axis=1>(s, t, u, v)"

ROWS = [
    *rows(
        merge_summed_convs,
        IMAGE,
        [
            (
                "three",
                f"c = Conv<{P1}>(x, w3, a) d = Conv<{P1}>(x, v3, b) e = Conv(x, w1) y = Sum(c, d, e)",
                f"y = Conv<{P1}>(x, _, _)",
            ),
            (
                "two-of-three",
                f"c = Conv<{P1}>(x, w3) e = Conv(x, w1) y = Sum(c, x, e)",
                f"e = Conv<{P1}>(x, _) y = Sum(e, x)",
            ),
        ],
        [
            (
                "read",
                f"c = Conv<{P1}>(x, w3) e = Conv(x, w1) y = Sum(c, x, e) y2 = Relu(e)",
                "no two terms are convolutions of one input",
            ),
            (
                "steps",
                (
                    "c = Conv<pads=[1,1,1,1],strides=[2,2]>(x, w3) e = Conv<strides=[1,1]>(x, w1) y "
                    "= Sum(c, x, e)"
                ),
                "they take different steps",
            ),
        ],
    ),
    *rows(
        merge_added_convs,
        IMAGE,
        [
            (
                "same",
                f"c = Conv<{P1}>(x, w3, a) d = Conv<{P1}>(x, v3, b) y = Add(c, d)",
                f"y = Conv<{P1}>(x, _, _)",
            ),
            ("point", f"c = Conv(x, w1) d = Conv<{P1}>(x, w3, b) y = Add(c, d)", f"y = Conv<{P1}>(x, _, _)"),
            (
                "line",
                f"c = Conv<{P1}>(x, w3) d = Conv<pads=[0,1,0,1]>(x, w13) y = Add(c, d)",
                f"y = Conv<{P1}>(x, _)",
            ),
            ("dilated", f"c = Conv<{P2}>(x, w3) d = Conv(x, w1) y = Add(c, d)", f"y = Conv<{P2}>(x, _)"),
            (
                "strided",
                f"c = Conv<{P1}, strides=[2,2]>(x, w3) d = Conv<strides=[2,2]>(x, w1) y = Add(c, d)",
                f"y = Conv<{P1}, strides=[2,2]>(x, _)",
            ),
        ],
        [
            (
                "off-centre",
                f"c = Conv<{P1}>(x, w3) d = Conv<pads=[2,1,0,1]>(x, v3) y = Add(c, d)",
                "one kernel does not lie inside the other",
            ),
            (
                "steps",
                (
                    f"c = Conv<{P1}, strides=[1,1]>(x, narrow) d = Conv<{P1}, strides=[6,8]>(x, narrow) y"
                    " = Add(c, d)"
                ),
                "they take different steps",
            ),
            (
                "groups",
                f"c = Conv<{P1}, group=2>(x, grouped) d = Conv<{P1}, group=1>(x, w3) y = Add(c, d)",
                "they have different channels",
            ),
            (
                "channels",
                f"c = Conv<{P1}>(x, narrow) d = Conv<{P1}>(x, w3) y = Add(c, d)",
                "they have different channels",
            ),
            (
                "dilations",
                f"c = Conv<{P2}>(x, w3) d = Conv<{P1}>(x, v3) y = Add(c, d)",
                "they are dilated differently",
            ),
            (
                "same-pads",
                f'c = Conv<auto_pad="SAME_UPPER">(x, w3) d = Conv<{P1}>(x, v3) y = Add(c, d)',
                "the pads depend on the size",
            ),
        ],
    ),
    *rows(
        merge_conv_with_its_input,
        IMAGE,
        [
            ("residual", f"c = Conv<{P1}>(x, w3, b) y = Add(x, c)", f"y = Conv<{P1}>(x, _, b)"),
            (
                "groups",
                f"c = Conv<{P1}, group=2>(x, grouped) y = Add(c, x)",
                f"y = Conv<{P1}, group=2>(x, _)",
            ),
        ],
        [
            ("widens", f"c = Conv<{P1}>(x, narrow) y = Add(x, c)", "it changes the number of channels"),
            ("strided", "c = Conv<strides=[6,8]>(x, w1) y = Add(x, c)", "they take different steps"),
        ],
    ),
    *rows(
        merge_conv_with_shortcut,
        IMAGE,
        [
            ("batch-norm", f"c = Conv<{P1}>(x, w3) d = {BN} y = Add(c, d)", f"y = Conv<{P1}>(x, _, _)"),
            ("scaled", "c = Conv(x, w1, b) d = Mul(x, f32(2)) y = Add(d, c)", "y = Conv(x, _, b)"),
        ],
        [
            (
                "cropped",
                f"c = Conv(x, f32(ones(4,4,6,8))) d = {BN} y = Add(c, d)",
                "one kernel does not lie inside the other",
            )
        ],
    ),
    *rows(
        factor_gated_residual,
        IMAGE,
        [("gate", "m = Mul(x, g) y = Add(x, m)", "h = Add(g, f32(1)) y = Mul(x, h)")],
        [
            ("pixels", "m = Mul(x, z) y = Add(x, m)", "the gate differs within the image"),
            ("pixel", "m = Mul(g, g) y = Add(g, m)", "the image is one pixel"),
            ("flat", "m = Mul(flat, flat) y = Add(m, flat)", "not an image and its gate"),
            ("integers", "m = Mul(i, i) y = Add(m, i)", "not a float"),
        ],
    ),
    *rows(
        fold_gate_shift_into_conv,
        IMAGE,
        [
            (
                "gate",
                "c = Conv(g, w1, b) h = HardSigmoid<alpha=0.25>(c) y = Add(f32(1), h)",
                "c = Conv(g, _, _) y = Clip(c, f32(1), f32(2))",
            )
        ],
        [
            (
                "per-channel",
                "c = Conv(g, w1) h = HardSigmoid(c) y = Add(f32(ones(4,1,1)), h)",
                "the shift is no scalar",
            )
        ],
    ),
    *rows(
        fold_gate_shift_into_conv,
        V10,
        (),
        [
            (
                "old",
                "c = Conv(x, w1) h = HardSigmoid(c) y = Add(f32(1), h)",
                "the bounds of Clip are attributes before opset 11",
            )
        ],
    ),
    *rows(
        fuse_focus_into_conv,
        IMAGE,
        [
            ("focus", f"{JOINED} y = Conv<{P1}>(c, focus)", "y = Conv<pads=[2,2,2,2], strides=[2,2]>(x, _)"),
            (
                "strided",
                f"{JOINED} y = Conv<strides=[2,1]>(c, focus, f32([1,2]))",
                "y = Conv<pads=[0,0,0,0], strides=[4,2]>(x, _, f32([1,2]))",
            ),
        ],
        [
            (
                "twice",
                f"{PHASES} c = Concat<axis=1>(s, t, t, v) y = Conv(c, focus)",
                "not each phase occurs once",
            ),
            (
                "images",
                f"{JOINED.replace('t = Slice(x', 't = Slice(z')} y = Conv(c, focus)",
                "the parts come from different images",
            ),
            (
                "cropped",
                f"{JOINED.replace('8]', '6]', 1)} y = Conv(c, focus)",
                "a part is not each second pixel",
            ),
            (
                "no-slice",
                f"{PHASES} n = Neg(t) c = Concat<axis=1>(s, n, u, v) y = Conv(c, focus)",
                "a part is no Slice",
            ),
            ("groups", f"{JOINED} y = Conv<group=2>(c, f32(ones(2,8,3,3)))", "the convolution has groups"),
            ("dilated", f"{JOINED} y = Conv<dilations=[2,1]>(c, focus)", "the convolution is dilated"),
            ("same", f'{JOINED} y = Conv<auto_pad="SAME_LOWER">(c, focus)', "the pads depend on the size"),
        ],
    ),
]

test_rows = table_test(ROWS)
