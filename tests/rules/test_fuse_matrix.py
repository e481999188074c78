"""Constant affine steps around products of matrices."""

from __future__ import annotations

from harness import Setup, rows, table_test

from passes.fuse_matrix import (
    fold_batchnorm_before_matmul,
    fold_batchnorm_into_biased_matmul,
    fold_batchnorm_into_matmul,
    move_shift_behind_matmul,
)

X = Setup("float[N,4] m, float[B,S,4] s, float[N,K] k, int32[B,S,4] i, float[N,4,5] n", rtol=1e-4)
OLD = Setup("float[2,4] m", opset=6)


def batchnorm(operand: str, size: int) -> str:
    return f"BatchNormalization({operand}, {', '.join([f'f32(positive({size}))'] * 4)})"


W = "f32(normal(4,3))"
MATRICES = "not both are matrices"
GEMM = "Gemm broadcasts differently before opset 7"
PRODUCT = f"a = MatMul(m, {W})"
OLD_NORM = "y = BatchNormalization<is_test=1>({0}, " + ", ".join(["f32(positive(3))"] * 4) + ")"

ROWS = [
    *rows(
        fold_batchnorm_into_matmul,
        X,
        [("plain", f"{PRODUCT} y = {batchnorm('a', 3)}", "y = Gemm(m, _, _)")],
        [
            (
                "tokens",
                f"a = MatMul(s, {W}) y = BatchNormalization(a, k2, k2, k2, k2)".replace(
                    "k2", "f32(positive(2))"
                ),
                MATRICES,
            )
        ],
    ),
    *rows(fold_batchnorm_into_matmul, OLD, [], [("old", f"{PRODUCT} {OLD_NORM.format('a')}", GEMM)]),
    *rows(
        fold_batchnorm_before_matmul,
        X,
        [("plain", f"a = {batchnorm('m', 4)} y = MatMul(a, {W})", "y = Gemm(m, _, _)")],
        [
            ("image", f"a = {batchnorm('n', 4)} y = MatMul(a, f32(normal(5,2)))", MATRICES),
            ("vector", f"a = {batchnorm('m', 4)} y = MatMul(a, f32(normal(4)))", MATRICES),
        ],
    ),
    *rows(
        move_shift_behind_matmul,
        X,
        [
            (
                "vector",
                f"a = Add(s, f32(normal(4))) b = MatMul(a, {W}) y = Add(b, f32(normal(3)))",
                f"b = MatMul(s, {W}) y = Add(b, _)",
            ),
            (
                "number",
                f"a = Sub(s, f32(0.5)) b = MatMul(a, {W}) y = Add(f32(2), b)",
                f"b = MatMul(s, {W}) y = Add(b, _)",
            ),
        ],
        [
            (
                "integers",
                "a = Add(i, i32(1)) b = MatMul(a, i32(ones(4,3))) y = Add(b, i32(1))",
                "not a float",
            ),
            (
                "width",
                "a = Add(s, f32(1)) b = MatMul(a, f32(normal(2,4,3))) y = Add(b, f32(1))",
                "the width before is not known",
            ),
            ("scale", f"a = Mul(s, f32(2)) b = MatMul(a, {W}) y = Add(b, f32(1))", "the step is no shift"),
            (
                "larger",
                f"a = Add(s, f32(1)) b = MatMul(a, {W}) y = Add(b, f32(normal(2,2,1)))",
                "the constant would be larger",
            ),
        ],
    ),
    *rows(
        fold_batchnorm_into_biased_matmul,
        X,
        [("plain", f"{PRODUCT} b = Add(a, f32(normal(3))) y = {batchnorm('b', 3)}", "y = Gemm(m, _, _)")],
        [
            (
                "tokens",
                f"a = MatMul(s, {W}) b = Add(a, f32(1)) y = BatchNormalization(b, k2, k2, k2, k2)".replace(
                    "k2", "f32(positive(2))"
                ),
                MATRICES,
            ),
            (
                "stretched",
                f"{PRODUCT} b = Add(a, f32([[1],[2]])) y = {batchnorm('b', 3)}",
                "the bias may stretch the product",
            ),
        ],
    ),
    *rows(
        fold_batchnorm_into_biased_matmul,
        OLD,
        [],
        [
            (
                "old",
                f"{PRODUCT} b = Add<broadcast=1>(a, f32(normal(3))) {OLD_NORM.format('b')}",
                GEMM,
            )
        ],
    ),
]

test_rows = table_test(ROWS)
