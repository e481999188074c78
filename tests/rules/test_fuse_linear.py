"""Constant affine steps around Gemm and MatMul, and what becomes a Gemm."""

from __future__ import annotations

import numpy as np
from harness import Setup, rows, table_test

from passes.fuse_linear import (
    fold_affine_before_gemm,
    fold_affine_into_gemm,
    fold_scale_before_matmul,
    fold_scale_into_biased_matmul,
    fold_scale_into_matmul,
    fold_transpose_into_gemm_left,
    fold_transpose_into_gemm_right,
    fold_transpose_into_matmul_left,
    fold_transpose_into_matmul_right,
    fuse_gemm_add,
    fuse_matmul_add,
)

RNG = np.random.default_rng(3)


def _f32(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


CONSTANTS = {
    "w": _f32(4, 6),
    "wt": _f32(6, 4),
    "c": _f32(6),
    "k": _f32(6),
    "kin": _f32(4),
    "column": _f32(3, 1),
    "scale": _f32(6),
    "shift": _f32(6),
    "mean": _f32(6),
    "var": np.abs(_f32(6)) + 1,
    "batched": _f32(2, 4, 6),
}
BN = "scale, shift, mean, var"
MATRIX = Setup(
    "float[N,4] x, float[4,N] xt, float[N,1] thin, float[3,4] x3, float[N,6] s, float[1,6] row, float[6] u,"
    " float[4,4] q, float[N,M] z",
    constants=CONSTANTS,
)
V9 = Setup("float[N,4] x, float[4,N] xt", opset=9, constants=CONSTANTS)
V6 = Setup("float[N,4] x", opset=6, constants=CONSTANTS)
OLD_GEMM = "Gemm broadcasts differently before opset 7"
BATCH = Setup(
    "float[N,3,4] x, float[N,3,1] thin, float[N,3,M] z, float[4,4] q, double[3,4] d, float[2,4] x2,"
    " int32[3,4] i, int32[4,2] j, int32[2] h",
    constants=CONSTANTS,
)

ROWS = [
    *rows(
        fold_affine_into_gemm,
        MATRIX,
        [
            ("mul", "g = Gemm(x, w, c) y = Mul(g, k)", "y = Gemm(x, _, _)"),
            ("add", "g = Gemm(x, w) y = Add(k, g)", "y = Gemm(x, w, _)"),
            ("no-bias-stays", "g = Gemm(x, w) y = Div(g, f32(3))", "y = Gemm(x, _)"),
            (
                "alpha-beta-transposed",
                "g = Gemm<alpha=0.5, beta=3., transB=1, transA=1>(xt, wt, c) y = Mul(g, k)",
                "y = Gemm<alpha=0.5, transA=1, transB=1>(xt, _, _)",
            ),
            ("batch-norm", f"g = Gemm(x, w, c) y = BatchNormalization(g, {BN})", "y = Gemm(x, _, _)"),
        ],
        [
            ("rows", "g = Gemm(x3, w) y = Mul(g, column)", "the constant is not one number per channel"),
            ("weak-bias", "g = Gemm(x, w, u) y = Mul(g, k)", "an operand is not a numeric constant"),
        ],
    ),
    *rows(
        fold_affine_into_gemm,
        V9,
        [("old", "g = Gemm(x, w, c) y = Mul(g, k)", "y = Gemm(x, _, _)")],
    ),
    *rows(
        fold_affine_before_gemm,
        MATRIX,
        [
            ("mul", "a = Mul(x, kin) y = Gemm<beta=2.>(a, w, u)", "y = Gemm<beta=2.>(x, _, u)"),
            (
                "add",
                "a = Sub(x, kin) y = Gemm<alpha=0.5, beta=2., transB=1>(a, wt, c)",
                "y = Gemm<alpha=0.5, transB=1>(x, wt, _)",
            ),
            ("no-bias", "a = Add(x, kin) y = Gemm(a, w)", "y = Gemm(x, w, _)"),
        ],
        [
            ("transposed", "a = Mul(xt, f32(2)) y = Gemm<transA=1>(a, w)", "the left operand is transposed"),
            ("stretched", "a = Mul(thin, kin) y = Gemm(a, w)", "the width before is not known"),
            ("read-twice", "a = Mul(x, kin) y = Gemm(a, w) y2 = Relu(a)", "the step has other readers"),
        ],
    ),
    *rows(
        fold_scale_into_matmul,
        BATCH,
        [
            ("scalar", "a = MatMul(x, w) y = Mul(a, f32(0.125))", "y = MatMul(x, _)"),
            ("columns", "a = MatMul(x, w) y = Div(a, k)", "y = MatMul(x, _)"),
            ("batched-weights", "a = MatMul(x2, batched) y = Mul(a, k)", "y = MatMul(x2, _)"),
            ("negated", "a = MatMul(x, w) y = Neg(a)", "y = MatMul(x, _)"),
        ],
        [
            ("shift", "a = MatMul(x, w) y = Add(a, k)", "the step is no scale"),
            ("vector", "a = MatMul(x, kin) y = Mul(a, f32(2))", "the weights are a vector"),
            ("rows", "a = MatMul(x, w) y = Mul(a, column)", "the constant is not one number per channel"),
        ],
    ),
    *rows(
        fold_scale_into_biased_matmul,
        BATCH,
        [
            (
                "scale-goes-through",
                "a = MatMul(x, w) b = Add(c, a) y = Mul(b, f32(0.125))",
                "a = MatMul(x, _) y = Add(a, _)",
            ),
        ],
        [
            ("shift", "a = MatMul(x, w) b = Add(a, c) y = Add(b, k)", "the step is no scale"),
            (
                "stretched",
                "a = MatMul(x, w) b = Add(a, f32(ones(2,1,1,6))) y = Mul(b, k)",
                "the bias stretches the product",
            ),
        ],
    ),
    *rows(
        fold_scale_before_matmul,
        BATCH,
        [("rows-of-weights", "a = Mul(x, kin) y = MatMul(a, w)", "y = MatMul(x, _)")],
        [
            ("stretched", "a = Mul(thin, kin) y = MatMul(a, w)", "the width before is not known"),
            ("shift", "a = Add(x, kin) y = MatMul(a, w)", "the step is no scale"),
            (
                "gelu",
                "e = Erf(x) o = Add(e, f32(1)) g = Mul(x, o) a = Mul(g, f32(0.5)) y = MatMul(a, w)",
                "runtimes recognise what it ends",
            ),
            (
                "rms-norm",
                "r = Sqrt(thin) n = Div(x, r) a = Mul(n, kin) y = MatMul(a, w)",
                "runtimes recognise what it ends",
            ),
            ("read-twice", "a = Mul(x, kin) y = MatMul(a, w) y2 = Relu(a)", "the step has other readers"),
        ],
    ),
    *rows(
        fuse_matmul_add,
        MATRIX,
        [
            ("bias", "a = MatMul(x, w) y = Add(a, c)", "y = Gemm(x, w, c)"),
            ("left", "a = MatMul(x, w) y = Add(u, a)", "y = Gemm(x, w, u)"),
            ("row", "a = MatMul(x, w) y = Add(a, row)", "y = Gemm(x, w, row)"),
            ("same-batch", "a = MatMul(x, w) y = Add(a, s)", "y = Gemm(x, w, s)"),
        ],
        [
            (
                "maybe-stretched",
                "a = MatMul(x, w) y = Add(a, f32(ones(5,6)))",
                "the bias may stretch the product",
            ),
            ("stretched-rank", "a = MatMul(x, w) y = Add(a, f32(ones(1,1,6)))", "the bias has too many axes"),
            ("one-column", "a = MatMul(x, f32(ones(4,1))) y = Add(a, c)", "the bias may stretch the product"),
        ],
    ),
    *rows(
        fuse_matmul_add,
        BATCH,
        (),
        [
            ("batched", "a = MatMul(x, w) y = Add(a, c)", "not both are matrices"),
            ("integers", "a = MatMul(i, j) y = Add(a, h)", "not a float"),
        ],
    ),
    *rows(
        fuse_gemm_add,
        MATRIX,
        [
            ("absent", "g = Gemm<alpha=2.>(x, w) y = Add(g, s)", "y = Gemm<alpha=2.>(x, w, s)"),
            ("zero", "g = Gemm<beta=2.>(x, w, f32([0,0,0,0,0,0])) y = Add(g, u)", "y = Gemm(x, w, u)"),
            ("unused", "g = Gemm<beta=0.>(x, w, c) y = Add(g, u)", "y = Gemm(x, w, u)"),
        ],
        [("adds", "g = Gemm(x, w, c) y = Add(g, u)", "Gemm adds something already")],
    ),
    *rows(
        fold_transpose_into_gemm_left,
        MATRIX,
        [
            ("left", "t = Transpose(xt) y = Gemm(t, w, c)", "y = Gemm<transA=1>(xt, w, c)"),
            ("back", "t = Transpose<perm=[1,0]>(x) y = Gemm<transA=1>(t, w)", "y = Gemm<transA=0>(x, w)"),
        ],
        [
            ("does-nothing", "t = Transpose<perm=[0,1]>(x) y = Gemm(t, w)", "the transposition does nothing"),
            (
                "read-twice",
                "t = Transpose(xt) y = Gemm(t, w) y2 = Relu(t)",
                "the transposed matrix has other readers",
            ),
        ],
    ),
    *rows(
        fold_transpose_into_gemm_right,
        MATRIX,
        [("right", "t = Transpose(q) y = Gemm(x, t)", "y = Gemm<transB=1>(x, q)")],
    ),
    *rows(
        fold_transpose_into_matmul_left,
        MATRIX,
        [("left", "t = Transpose(xt) y = MatMul(t, w)", "y = Gemm<transA=1>(xt, w)")],
    ),
    *rows(
        fold_transpose_into_matmul_left,
        V9,
        (),
        [("old", "t = Transpose(xt) y = MatMul(t, w)", "Gemm needs a bias before opset 11")],
    ),
    *rows(
        fold_transpose_into_matmul_right,
        MATRIX,
        [("right", "t = Transpose(q) y = MatMul(x, t)", "y = Gemm<transB=1>(x, q)")],
    ),
    *rows(
        fold_transpose_into_matmul_right,
        BATCH,
        (),
        [("batched", "t = Transpose(q) y = MatMul(x, t)", "not both are matrices")],
    ),
    *rows(fold_affine_into_gemm, V6, (), [("old", "g = Gemm(x, w, c) y = Neg(g)", OLD_GEMM)]),
    *rows(fold_affine_before_gemm, V6, (), [("old", "a = Neg(x) y = Gemm(a, w, c)", OLD_GEMM)]),
    *rows(fuse_matmul_add, V6, (), [("old", "a = MatMul(x, w) y = Add(a, c)", OLD_GEMM)]),
    *rows(fuse_gemm_add, V6, (), [("old", "a = Gemm(x, w, c) y = Add(a, c)", OLD_GEMM)]),
]

test_rows = table_test(ROWS)
