"""Matrix products of transposed operands, and of images laid out flat."""

from __future__ import annotations

from harness import Setup, rows, table_test

from passes.transposed_products import permute_rows_of_weights, transpose_product, turn_product_around

X = Setup(
    (
        "float[B,S,4] x, float[B,3,S] z, float[N,2,3,5] p, float[N,2,H,V] q, float[4,S] "
        "m, int32[B,S,4] i, float[6,4] r"
    ),
    rtol=1e-5,
)
SWAP = "Transpose<perm=[0,2,1]>"
W = "f32(normal(3,4))"
ROWS_ = "f32(normal(30,4))"
AXES = "other axes are permuted"

ROWS = [
    *rows(
        turn_product_around,
        X,
        [("plain", f"a = {SWAP}(x) b = MatMul({W}, a) y = {SWAP}(b)", "y = MatMul(x, _)")],
        [
            ("batch", f"a = Transpose<perm=[1,2,0]>(x) b = MatMul({W}, a) y = {SWAP}(b)", AXES),
            (
                "batched-weights",
                f"a = {SWAP}(x) b = MatMul(f32(normal(2,3,4)), a) y = {SWAP}(b)",
                "the weights are no matrix",
            ),
        ],
    ),
    *rows(
        transpose_product,
        X,
        [("plain", f"a = {SWAP}(x) b = {SWAP}(z) y = MatMul(a, b)", f"a = MatMul(z, x) y = {SWAP}(a)")],
        [
            (
                "ranks",
                f"a = {SWAP}(x) b = Transpose(m) y = MatMul(a, b)",
                "the operands have different numbers of axes",
            ),
            ("batch", f"a = Transpose<perm=[1,2,0]>(x) b = {SWAP}(z) y = MatMul(a, b)", AXES),
        ],
    ),
    *rows(
        permute_rows_of_weights,
        X,
        [
            (
                "gemm",
                f"a = Transpose<perm=[0,2,3,1]>(p) b = Flatten(a) y = Gemm(b, {ROWS_}, f32(normal(4)))",
                "a = Flatten<axis=1>(p) y = Gemm(a, _, f32(normal(4)))",
            ),
            (
                "transposed-weights",
                (
                    "a = Transpose<perm=[0,3,2,1]>(p) b = Reshape(a, i64([-1,30])) y = "
                    "Gemm<transB=1>(b, f32(normal(4,30)))"
                ),
                "a = Flatten<axis=1>(p) y = Gemm<transB=1>(a, _)",
            ),
            (
                "matmul",
                f"a = Transpose<perm=[0,2,3,1]>(p) b = Flatten(a) y = MatMul(b, {ROWS_})",
                "a = Flatten<axis=1>(p) y = MatMul(a, _)",
            ),
        ],
        [
            (
                "first-axis",
                (
                    "a = Transpose<perm=[1,0,2,3]>(p) b = Reshape(a, i64([-1,30])) y = MatMul(b, "
                    "f32(normal(30,4)))"
                ),
                "the first axis moves",
            ),
            (
                "unknown",
                f"a = Transpose<perm=[0,2,3,1]>(q) b = Flatten(a) y = MatMul(b, {ROWS_})",
                "the size of a row is not known",
            ),
            (
                "pixels",
                (
                    "a = Transpose<perm=[0,2,3,1]>(p) b = Reshape(a, i64([-1,2])) y = MatMul(b, "
                    "f32(normal(2,4)))"
                ),
                "not all is laid out flat",
            ),
            (
                "columns",
                "a = Transpose<perm=[0,2,3,1]>(p) b = Flatten(a) y = Gemm<transA=1>(b, f32(normal(2,4)))",
                "the left operand is transposed",
            ),
            (
                "vector",
                "a = Transpose<perm=[0,2,3,1]>(p) b = Flatten(a) y = MatMul(b, f32(normal(30)))",
                "the weights are no matrix",
            ),
        ],
    ),
]

test_rows = table_test(ROWS)
