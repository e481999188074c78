"""Constant affine steps behind joined channels."""

from __future__ import annotations

from harness import Setup, rows, table_test

from passes.fuse_concat import fold_affine_into_joined_convs

X = Setup(
    "float[N,4,6,6] x, float[N,4,6,6] z, float[3,4,1,1] v, float[M,4] m",
    rtol=1e-4,
    sizes=[{"N": 2, "M": 3}],
)
A = "a = Conv(x, f32(normal(3,4,1,1)))"
B = "b = Conv<group=2>(z, f32(normal(2,2,1,1)), f32(normal(2)))"
T = "b = ConvTranspose(z, f32(normal(4,2,1,1)))"
BN = ", ".join(["f32(positive(5))"] * 4)

ROWS = [
    *rows(
        fold_affine_into_joined_convs,
        X,
        [
            (
                "batchnorm",
                f"{A} {B} c = Concat<axis=1>(a, b) y = BatchNormalization(c, {BN})",
                "a = Conv(x, _, _) b = Conv<group=2>(z, _, _) y = Concat<axis=1>(a, b)",
            ),
            (
                "scale",
                f"{A} {T} c = Concat<axis=-3>(a, b) y = Mul(f32(normal(5,1,1)), c)",
                "a = Conv(x, _) b = ConvTranspose(z, _) y = Concat<axis=-3>(a, b)",
            ),
            (
                "shift",
                f"{A} {B} c = Concat<axis=1>(a, b) y = Sub(c, f32(0.5))",
                (
                    "a = Conv(x, f32(normal(3,4,1,1)), _) b = Conv<group=2>(z, f32(normal(2,2,1,1)), _) "
                    "y = Concat<axis=1>(a, b)"
                ),
            ),
        ],
        [
            (
                "rows",
                f"{A} b = Conv(z, f32(normal(3,4,1,1))) c = Concat<axis=2>(a, b) y = Mul(c, f32(2))",
                "they are not joined by channels",
            ),
            (
                "input",
                f"{A} c = Concat<axis=1>(a, z) y = Mul(c, f32(2))",
                "an operand is no convolution of its own",
            ),
            (
                "read",
                f"{A} {B} c = Concat<axis=1>(a, b) y = Mul(c, f32(2)) y2 = Relu(a)",
                "an operand is no convolution of its own",
            ),
            (
                "weights",
                f"{B} a = Conv(x, v) c = Concat<axis=1>(a, b) y = Mul(c, f32(2))",
                "the weights are not constant",
            ),
            (
                "pixels",
                f"{A} {B} c = Concat<axis=1>(a, b) y = Mul(c, f32(normal(6)))",
                "the constant is not one number per channel",
            ),
        ],
    )
]

test_rows = table_test(ROWS)
