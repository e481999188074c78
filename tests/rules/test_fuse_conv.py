"""Constant affine steps before and after convolutions."""

from __future__ import annotations

import numpy as np
from harness import Setup, rows, table_test

from optimizer.rewrite import Settings
from passes.fuse_conv import (
    fold_affine_before_conv,
    fold_affine_into_conv,
    fold_batchnorm_before_conv,
    fold_batchnorm_into_conv,
)

RNG = np.random.default_rng(1)


def _f32(*shape: int, positive: bool = False) -> np.ndarray:
    drawn = RNG.uniform(0.5, 2, shape) if positive else RNG.standard_normal(shape)
    return drawn.astype(np.float32)


CONSTANTS = {
    "w": _f32(6, 4, 3, 3),
    "w16": _f32(6, 4, 3, 3).astype(np.float16),
    "p": _f32(6, 4, 1, 1),
    "wg": _f32(6, 2, 3, 3),
    "wd": _f32(4, 1, 3, 3),
    "wt": _f32(4, 6, 3, 3),
    "wtg": _f32(4, 3, 3, 3),
    "w1": _f32(6, 4, 3),
    "b": _f32(6),
    "k": _f32(6, 1, 1),
    "k4": _f32(1, 6, 1, 1),
    "line": _f32(5),
    "batch": _f32(2, 6, 1, 1),
    "kin": _f32(4, 1, 1),
    "scale": _f32(6),
    "shift": _f32(6),
    "mean": _f32(6),
    "var": _f32(6, positive=True),
    "si": _f32(4),
    "hi": _f32(4),
    "mi": _f32(4),
    "vi": _f32(4, positive=True),
    "zero_var": np.full(6, -1, np.float32),
}
IMAGE = Setup("float[N,4,5,5] x, float[6,4,3,3] v, float[6,1,1] t, float[6] u", constants=CONSTANTS)
OLD = Setup("float[N,4,5,5] x", opset=6, constants=CONSTANTS, ort=False)
V8 = Setup("float[N,4,5,5] x", opset=8, constants=CONSTANTS)
LINE = Setup("float[N,4,L] x", constants=CONSTANTS, sizes=[{"N": 2, "L": 5}, {"N": 1, "L": 3}])
HALF = Setup("float16[N,4,5,5] x", constants=CONSTANTS, rtol=1e-4, wildcard=np.float16)
LOOSE = Setup("float x, float[N,C,H,W] z, float[N,1,5,5] one", constants=CONSTANTS)
NO_ROOM = Setup("float[N,4,5,5] x", constants=CONSTANTS, settings=Settings(growth=0))
BN = "scale, shift, mean, var"

ROWS = [
    *rows(
        fold_batchnorm_into_conv,
        IMAGE,
        [
            ("no-bias", f"c = Conv(x, w) y = BatchNormalization(c, {BN})", "y = Conv(x, _, _)"),
            ("bias", f"c = Conv(x, w, b) y = BatchNormalization(c, {BN})", "y = Conv(x, _, _)"),
            (
                "keeps-attributes",
                f"c = Conv<strides=[2,2], pads=[1,1,1,1]>(x, w) y = BatchNormalization<epsilon=0.1>(c, {BN})",
                "y = Conv<strides=[2,2], pads=[1,1,1,1]>(x, _, _)",
            ),
            (
                "groups",
                f"c = Conv<group=2>(x, wg) y = BatchNormalization(c, {BN})",
                "y = Conv<group=2>(x, _, _)",
            ),
            (
                "transposed",
                f"c = ConvTranspose(x, wt) y = BatchNormalization(c, {BN})",
                "y = ConvTranspose(x, _, _)",
            ),
            (
                "transposed-groups",
                f"c = ConvTranspose<group=2>(x, wtg, b) y = BatchNormalization(c, {BN})",
                "y = ConvTranspose<group=2>(x, _, _)",
            ),
        ],
        [
            (
                "training",
                f"c = Conv(x, w) y, r, s = BatchNormalization<training_mode=1>(c, {BN})",
                "batch norm is in training mode",
            ),
            (
                "weak-bias",
                f"c = Conv(x, w, u) y = BatchNormalization(c, {BN})",
                "an operand is not a numeric constant",
            ),
            (
                "gives-statistics",
                f"c = Conv(x, w) y, y2, y3 = BatchNormalization(c, {BN})",
                "the statistics are used",
            ),
            (
                "variance",
                "c = Conv(x, w) y = BatchNormalization(c, scale, shift, mean, zero_var)",
                "the variance is not positive",
            ),
        ],
    ),
    *rows(
        fold_batchnorm_into_conv,
        LINE,
        [("one-axis", f"c = Conv(x, w1) y = BatchNormalization(c, {BN})", "y = Conv(x, _, _)")],
    ),
    *rows(
        fold_batchnorm_into_conv,
        V8,
        [("spatial", f"c = Conv(x, w) y = BatchNormalization<spatial=1>(c, {BN})", "y = Conv(x, _, _)")],
        [
            (
                "not-spatial",
                (
                    "c = Conv(x, w) y = BatchNormalization<spatial=0>(c, f32(ones(6,3,3)), f32(ones(6,3,3)),"
                    " f32(zeros(6,3,3)), f32(ones(6,3,3)))"
                ),
                "batch norm is not per channel",
            ),
        ],
    ),
    *rows(
        fold_batchnorm_into_conv,
        OLD,
        (),
        [
            (
                "trains-by-default",
                f"c = Conv(x, w) y = BatchNormalization(c, {BN})",
                "batch norm is in training mode",
            )
        ],
    ),
    *rows(
        fold_affine_into_conv,
        IMAGE,
        [
            ("mul", "c = Conv(x, w) y = Mul(c, k)", "y = Conv(x, _)"),
            ("mul-left", "c = Conv(x, w, b) y = Mul(k4, c)", "y = Conv(x, _, _)"),
            ("scalar", "c = Conv(x, w, b) y = Mul(c, f32(3))", "y = Conv(x, _, _)"),
            ("add-keeps-weights", "c = Conv(x, w) y = Add(c, k)", "y = Conv(x, w, _)"),
            ("sub", "c = Conv(x, w, b) y = Sub(c, k)", "y = Conv(x, w, _)"),
            ("sub-from", "c = Conv(x, w, b) y = Sub(k, c)", "y = Conv(x, _, _)"),
            ("div", "c = Conv(x, w, b) y = Div(c, k)", "y = Conv(x, _, _)"),
            ("neg", "c = Conv(x, w) y = Neg(c)", "y = Conv(x, _)"),
            ("chain", "c = Conv(x, w) d = Mul(c, k) e = Add(d, k) y = Div(e, f32(7))", "y = Conv(x, _, _)"),
            (
                "transposed-groups",
                "c = ConvTranspose<group=2>(x, wtg) y = Mul(c, k)",
                "y = ConvTranspose<group=2>(x, _)",
            ),
            (
                "shared-weights-are-copied",
                "c = Conv(x, w) d = Mul(c, k) e = Conv(x, w) y = Add(d, e)",
                "d = Conv(x, _) e = Conv(x, w) y = Add(d, e)",
            ),
        ],
        [
            (
                "not-squeezed",
                "c = Conv<strides=[1,1]>(x, p) y = Mul(c, line)",
                "the constant is not one number per channel",
            ),
            ("grows-batch", "c = Conv(x, w) y = Mul(c, batch)", "the constant is not one number per channel"),
            (
                "grows-rank",
                "c = Conv(x, w) y = Mul(c, f32(ones(1,1,1,1,1)))",
                "the constant has more axes than the value",
            ),
            (
                "grows-channels",
                "c = Conv(x, f32(ones(1,4,3,3))) y = Mul(c, k)",
                "the constant is not one number per channel",
            ),
            ("by-zero", "c = Conv(x, w) y = Div(c, f32(0))", "the constant is not finite"),
            ("weak-bias", "c = Conv(x, w, u) y = Add(c, k)", "an operand is not a numeric constant"),
        ],
    ),
    *rows(
        fold_affine_into_conv,
        HALF,
        [("half", "c = Conv(x, w16) y = Mul(c, f16(2))", "y = Conv(x, _)")],
        [
            (
                "overflows",
                "c = Conv(x, w16) y = Mul(c, f16(60000))",
                "a folded constant is not finite in FLOAT16",
            ),
            (
                "subnormal",
                "c = Conv(x, w16) y = Mul(c, f16(1e-4))",
                "a folded constant is subnormal in FLOAT16",
            ),
        ],
    ),
    *rows(
        fold_affine_into_conv,
        NO_ROOM,
        (),
        [
            (
                "no-room",
                "c = Conv(x, w) d = Mul(c, k) e = Conv(x, w) y = Add(d, e)",
                "copying a shared constant would exceed the growth budget",
            )
        ],
    ),
    *rows(
        fold_affine_into_conv,
        OLD,
        (),
        [
            (
                "old-broadcast",
                "c = Conv(x, w) y = Mul<broadcast=1, axis=1>(c, scale)",
                "elementwise operators broadcast differently before opset 7",
            )
        ],
    ),
    *rows(
        fold_batchnorm_before_conv,
        IMAGE,
        [
            (
                "no-padding",
                "a = BatchNormalization(x, si, hi, mi, vi) y = Conv(a, w, b)",
                "y = Conv(x, _, _)",
            ),
            (
                "groups",
                "a = BatchNormalization(x, si, hi, mi, vi) y = Conv<group=2>(a, wg)",
                "y = Conv<group=2>(x, _, _)",
            ),
            (
                "centred-and-padded",
                (
                    "a = BatchNormalization(x, si, f32([0,0,0,0]), f32([0,0,0,0]), vi)"
                    " y = Conv<pads=[1,1,1,1]>(a, w)"
                ),
                "y = Conv<pads=[1,1,1,1]>(x, _)",
            ),
        ],
        [
            (
                "padded",
                "a = BatchNormalization(x, si, hi, mi, vi) y = Conv<pads=[0,1,0,0]>(a, w)",
                "a shift cannot cross zero padding",
            ),
        ],
    ),
    *rows(
        fold_affine_before_conv,
        IMAGE,
        [
            ("mul", "a = Mul(x, kin) y = Conv<pads=[1,1,1,1]>(a, w)", "y = Conv<pads=[1,1,1,1]>(x, _)"),
            ("add", "a = Add(x, kin) y = Conv(a, w, b)", "y = Conv(x, w, _)"),
            ("sub-from", "a = Sub(f32(1), x) y = Conv(a, w)", "y = Conv(x, _, _)"),
            (
                "normalization",
                "a = Sub(x, f32(127.5)) d = Div(a, f32([[[57.]],[[58.]],[[59.]],[[60.]]])) y = Conv(d, w)",
                "y = Conv(x, _, _)",
            ),
            ("depthwise", "a = Mul(x, kin) y = Conv<group=4>(a, wd)", "y = Conv<group=4>(x, _)"),
            ("groups", "a = Add(x, kin) y = Conv<group=2>(a, wg)", "y = Conv<group=2>(x, wg, _)"),
            (
                "valid",
                'a = Add(x, kin) y = Conv<auto_pad="VALID">(a, w)',
                'y = Conv<auto_pad="VALID">(x, w, _)',
            ),
            ("transposed", "a = Mul(x, kin) y = ConvTranspose(a, wt)", "y = ConvTranspose(x, _)"),
            (
                "all-readers",
                "a = Mul(x, kin) c = Conv(a, w) d = Conv(a, w) y = Concat<axis=1>(c, d)",
                "c = Conv(x, _) d = Conv(x, _) y = Concat<axis=1>(c, d)",
            ),
        ],
        [
            ("padded", "a = Add(x, kin) y = Conv<pads=[1,1,1,1]>(a, w)", "a shift cannot cross zero padding"),
            (
                "same",
                'a = Add(x, kin) y = Conv<auto_pad="SAME_UPPER">(a, w)',
                "a shift cannot cross zero padding",
            ),
            ("border", "a = Add(x, kin) y = ConvTranspose(a, wt)", "a shift cannot cross zero padding"),
            ("read-elsewhere", "a = Mul(x, kin) y = Conv(a, w) y2 = Relu(a)", "the step has other readers"),
            (
                "one-reader-pads",
                "a = Add(x, kin) y = Conv(a, w) y2 = Conv<pads=[1,1,1,1]>(a, w)",
                "the step has other readers",
            ),
            ("weak-bias", "a = Add(x, kin) y = Conv(a, w, u)", "the step has other readers"),
        ],
    ),
    *rows(
        fold_affine_before_conv,
        LOOSE,
        (),
        [
            (
                "channels-from-the-constant",
                "a = Mul(one, kin) y = Conv(a, w)",
                "the input is not known to have its channels before the step",
            ),
            (
                "channels-unknown",
                "a = Mul(z, kin) y = Conv(a, w)",
                "the input is not known to have its channels before the step",
            ),
        ],
    ),
]

test_rows = table_test(ROWS)
