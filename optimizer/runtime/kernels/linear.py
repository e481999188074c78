"""MatMul, Gemm and MatMulInteger."""

from __future__ import annotations

import numpy as np

from optimizer.runtime.call import Call
from optimizer.runtime.precision import Array, computed_wide
from optimizer.runtime.registry import kernel

BLAS_KINDS = "fc"


@kernel("MatMul", since=1)
@computed_wide
def matmul(call: Call, a: Array, b: Array) -> Array:
    """NumPy's matmul, batch dims broadcast. Integers of fewer than 64 bits wrap around."""
    return product(a, b)


def product(a: Array, b: Array) -> Array:
    """``a @ b`` on BLAS wherever the result is the same.

    One product replaces a stack of them when only ``a`` has batch dims; integers go through float
    where every partial sum is exact.
    """
    if a.dtype.kind not in BLAS_KINDS:
        return integer_product(a, b).astype(a.dtype, copy=False)
    if a.ndim > 2 and b.ndim == 2 and a.flags.c_contiguous:
        return np.asarray(np.matmul(a.reshape(-1, a.shape[-1]), b).reshape(*a.shape[:-1], b.shape[1]))
    return np.asarray(np.matmul(a, b))


def integer_product(a: Array, b: Array) -> Array:
    """The exact integer product, in int64 (or as much of it as wraps the same).

    float32 holds partial sums exactly up to 2^24, float64 up to 2^53; NumPy's own integer product is
    some sixty times slower than either.
    """
    if not a.size or not b.size:
        return np.asarray(np.matmul(a.astype(np.int64), b.astype(np.int64)))
    bound = a.shape[-1] * _magnitude(a) * _magnitude(b)
    if bound < 1 << 24:
        return np.asarray(np.matmul(a.astype(np.float32), b.astype(np.float32))).astype(np.int64)
    if bound < 1 << 53:
        return np.asarray(np.matmul(a.astype(np.float64), b.astype(np.float64))).astype(np.int64)
    wide = np.uint64 if a.dtype.kind == "u" else np.int64
    return np.asarray(np.matmul(a.astype(wide), b.astype(wide)))


def _magnitude(x: Array) -> int:
    return max(abs(int(x.min())), abs(int(x.max())))


@kernel("Gemm", since=1)
@kernel("Gemm", since=6)
@computed_wide
def gemm_legacy(call: Call, a: Array, b: Array, c: Array) -> Array:
    """alpha * A' B' + beta * C. C broadcasts from the right, only where ``broadcast`` says so."""
    if not call.attr("broadcast", 0):
        rows = a.shape[1 if call.attr("transA", 0) else 0]
        columns = b.shape[0 if call.attr("transB", 0) else 1]
        if c.shape != (rows, columns):
            raise ValueError(f"C {list(c.shape)} is not {[rows, columns]} and broadcast is 0")
    return gemm_of(call, a, b, c)


@kernel("Gemm", since=7)
@computed_wide
def gemm(call: Call, a: Array, b: Array, c: Array | None = None) -> Array:
    """alpha * A' B' + beta * C, C broadcast to the product."""
    return gemm_of(call, a, b, c)


def gemm_of(call: Call, a: Array, b: Array, c: Array | None) -> Array:
    """The formula, by the attributes alpha, beta, transA and transB.

    Raises:
        ValueError: A or B is not a matrix, or C does not broadcast to the product.
    """
    if a.ndim != 2 or b.ndim != 2:
        raise ValueError(f"A {list(a.shape)} and B {list(b.shape)} have to be matrices")
    left = a.T if call.attr("transA", 0) else a
    right = b.T if call.attr("transB", 0) else b
    y = product(left, right)
    alpha, beta = call.attr("alpha", 1.0), call.attr("beta", 1.0)
    if a.dtype.kind not in BLAS_KINDS:
        return _integer_gemm(y, c, alpha, beta)
    if alpha != 1:
        y *= y.dtype.type(alpha)
    if c is not None and beta != 0:
        y += c if beta == 1 else c * y.dtype.type(beta)
    return y


def _integer_gemm(y: Array, c: Array | None, alpha: float, beta: float) -> Array:
    scaled = y if alpha == 1 else (y * alpha).astype(y.dtype)
    if c is None or beta == 0:
        return scaled
    return np.asarray(scaled + (c if beta == 1 else (c * beta).astype(y.dtype)))


@kernel("MatMulInteger", since=10, exact=True)
def matmul_integer(
    call: Call, a: Array, b: Array, a_zero: Array | None = None, b_zero: Array | None = None
) -> Array:
    """(A - zero point of A) @ (B - zero point of B) in int32. Zero points per row of A, column of B."""
    left, right = shifted(a, a_zero, rows=True), shifted(b, b_zero, rows=False)
    return integer_product(left, right).astype(np.int32)


def shifted(x: Array, zero_point: Array | None, *, rows: bool) -> Array:
    """``x`` minus its zero point in int32; a vector of them runs along the rows or the columns."""
    wide = x.astype(np.int32)
    if zero_point is None:
        return wide
    zero = zero_point.astype(np.int32)
    if zero.ndim == 1 and rows and zero.size > 1:
        zero = zero[:, None]
    elif zero.ndim == 1 and zero.size == 1:
        zero = zero.reshape(())
    wide -= zero
    return wide
