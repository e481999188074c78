"""Chains of constant affine steps."""

from __future__ import annotations

import numpy as np
from harness import Setup, rows, table_test

from passes.fuse_affine import (
    merge_affine_chain,
    merge_affine_steps,
    merge_affine_with_batchnorm,
    raise_affine_to_batchnorm,
)

RNG = np.random.default_rng(4)


def _f32(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


CONSTANTS = {
    "k": _f32(4, 1, 1),
    "t": _f32(4, 1, 1),
    "w": _f32(4, 4, 3, 3),
    "scale": _f32(4),
    "shift": _f32(4),
    "mean": _f32(4),
    "var": np.abs(_f32(4)) + 1,
}
BN = "scale, shift, mean, var"
IMAGE = Setup(
    "float[N,4,5,5] x, float[N,C,5,5] z, float[N,4] flat, float[1] one, int32[N] i", constants=CONSTANTS
)
OLD = Setup("float[N,4,5,5] x", opset=6, constants=CONSTANTS)
HALF = Setup("float16[N,4,5,5] x", constants={"w": CONSTANTS["w"].astype(np.float16)})

ROWS = [
    *rows(
        merge_affine_steps,
        IMAGE,
        [
            ("factors", "a = Mul(x, k) y = Mul(a, t)", "y = Mul(x, _)"),
            ("quotients", "a = Div(x, f32(4)) y = Mul(f32(8), a)", "y = Mul(x, f32(2))"),
            ("terms", "a = Add(x, k) y = Sub(a, f32(1))", "y = Add(x, _)"),
            ("negated-sum", "a = Neg(x) y = Add(a, f32(1))", "y = Sub(f32(1), x)"),
            ("back", "a = Sub(f32(1), x) y = Sub(f32(3), a)", "y = Add(x, f32(2))"),
            ("nothing-left", "a = Mul(x, f32(4)) y = Mul(a, f32(0.25))", "y = Identity(x)"),
            (
                "stretches",
                "a = Mul(one, f32([1,2,3])) y = Mul(a, f32([2,1,1]))",
                "y = Mul(one, f32([2,2,3]))",
            ),
            (
                "stretches-where-it-does-nothing",
                "a = Add(one, f32([1,2,3])) y = Sub(a, f32([[0,0,0],[0,0,0]]))",
                "y = Add(one, f32([[1,2,3],[1,2,3]]))",
            ),
        ],
        [
            (
                "stretched-away",
                "a = Mul(one, f32([4,4])) y = Div(a, f32(4))",
                "the constants may change the shape",
            ),
            ("integers", "a = Mul(i, i32(4)) y = Mul(a, i32(3))", "not a float"),
            (
                "larger",
                "a = Mul(x, f32(normal(1,4,5,1))) y = Mul(a, f32(normal(1,1,5,5)))",
                "the merged constants would be larger",
            ),
        ],
    ),
    *rows(
        merge_affine_chain,
        IMAGE,
        [
            ("mul-add-mul", "a = Mul(x, k) b = Add(a, t) y = Mul(b, f32(3))", "a = Mul(x, _) y = Add(a, _)"),
            (
                "add-div-sub",
                "a = Add(x, k) b = Div(a, f32(4)) y = Sub(b, t)",
                "a = Mul(x, f32(0.25)) y = Add(a, _)",
            ),
        ],
    ),
    *rows(
        merge_affine_with_batchnorm,
        IMAGE,
        [
            (
                "behind",
                f"a = BatchNormalization(x, {BN}) y = Mul(a, k)",
                "y = BatchNormalization<epsilon=0.>(x, _, _, _, _)",
            ),
            (
                "before",
                f"a = Sub(x, k) y = BatchNormalization(a, {BN})",
                "y = BatchNormalization<epsilon=0.>(x, _, _, _, _)",
            ),
            (
                "two",
                f"a = BatchNormalization<epsilon=0.1>(x, {BN}) y = BatchNormalization(a, {BN})",
                "y = BatchNormalization<epsilon=0.>(x, _, _, _, _)",
            ),
        ],
        [
            ("no-image", f"a = BatchNormalization(flat, {BN}) y = Mul(a, f32(2))", "not an image"),
            (
                "pixels",
                f"a = Mul(x, f32(normal(5))) y = BatchNormalization(a, {BN})",
                "the constant is not one number per channel",
            ),
        ],
    ),
    *rows(
        merge_affine_with_batchnorm,
        OLD,
        (),
        [
            (
                "old",
                f"a = BatchNormalization<is_test=1>(x, {BN}) y = BatchNormalization<is_test=1>(a, {BN})",
                "batch norm has another form before opset 7",
            )
        ],
    ),
    *rows(
        raise_affine_to_batchnorm,
        IMAGE,
        [
            (
                "of-channels",
                "a = Mul(x, k) y = Add(a, t)",
                "y = BatchNormalization<epsilon=0.>(x, _, _, _, _)",
            ),
            (
                "before-padding",
                "a = Mul(x, k) b = Add(a, t) y = Conv<pads=[1,1,1,1]>(b, w)",
                "b = BatchNormalization<epsilon=0.>(x, _, _, _, _) y = Conv<pads=[1,1,1,1]>(b, w)",
            ),
            (
                "behind-activation",
                "c = Conv(x, w) r = Relu(c) a = Add(r, f32(1)) y = Mul(a, f32(2))",
                "c = Conv(x, w) r = Relu(c) y = BatchNormalization<epsilon=0.>(r, _, _, _, _)",
            ),
        ],
        [
            (
                "no-channels",
                "a = Mul(z, f32(2)) b = Add(a, f32(1)) c = Add(b, x) y = Conv<pads=[1,1,1,1]>(c, w)",
                "the number of channels is not known",
            ),
            ("far-away", "a = Mul(x, f32(2)) y = Add(a, f32(1))", "no Conv is near"),
            (
                "merges",
                "a = Mul(x, k) b = Mul(a, t) y = Conv<pads=[1,1,1,1]>(b, w)",
                "the steps merge without it",
            ),
        ],
    ),
    *rows(
        raise_affine_to_batchnorm,
        HALF,
        (),
        [
            (
                "half",
                "a = Mul(x, f16(3)) b = Add(a, f16(1)) y = Conv<pads=[1,1,1,1]>(b, w)",
                "not float32 or float64",
            )
        ],
    ),
]

test_rows = table_test(ROWS)
