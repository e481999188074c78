"""Einsum as the matrix product, sum or permutation that it is."""

from __future__ import annotations

from harness import Setup, rows, table_test

from passes.einsum import replace_einsum_by_matmul, replace_einsum_of_one

INPUTS = (
    "float[B,S,3,4] q, float[B,T,3,4] k, float[B,S,4] a, float[B,4,T] b, int32[2,3] i, int32[3,2] j, "
    "float[4] v, float[B,U,T] c"
)
X = Setup(INPUTS, rtol=1e-4, sizes=[{"B": 2, "S": 3, "T": 5, "U": 4}])
OLD = Setup("float[2,3] x", opset=12)


def einsum(equation: str, *operands: str) -> str:
    return f'y = Einsum<equation="{equation}">({", ".join(operands)})'


ROWS = [
    *rows(
        replace_einsum_of_one,
        X,
        [
            ("permutation", einsum("bshd -> bhsd", "q"), "y = Transpose<perm=[0,2,1,3]>(q)"),
            ("nothing", einsum("abc->abc", "a"), "y = Identity(a)"),
            ("sum", einsum("abc->ac", "a"), "y = ReduceSum<keepdims=0>(a, i64([1]))"),
        ],
        [
            ("both", einsum("abc->ca", "a"), "it sums and permutes"),
            ("diagonal", einsum("aa->a", "f32(normal(3,3))"), "a label occurs twice in one term"),
            ("implicit", einsum("ab", "i"), "the equation leaves axes open"),
            ("ellipsis", einsum("...a->a...", "a"), "the equation leaves axes open"),
            ("integers", einsum("ab->a", "i"), "not a float"),
        ],
    ),
    *rows(
        replace_einsum_of_one, OLD, [("old", einsum("ab->b", "x"), "y = ReduceSum<axes=[0], keepdims=0>(x)")]
    ),
    *rows(
        replace_einsum_by_matmul,
        X,
        [
            ("batched", einsum("bik,bkj->bij", "a", "b"), "y = MatMul(a, b)"),
            ("constant", einsum("bik,jk->bij", "a", "f32(normal(6,4))"), "y = MatMul(a, _)"),
        ],
        [
            ("integers", einsum("ab,bc->ac", "i", "j"), "not a float"),
            ("summed", einsum("bik,bkj->bi", "a", "b"), "a label of one operand alone is summed"),
            ("summed-left", einsum("bik,bkj->bj", "a", "b"), "a label of one operand alone is summed"),
            ("outer", einsum("bik,l->bikl", "a", "v"), "it is no matrix product"),
            ("open", einsum("bik,bkj->bij", "a", "c"), "shared axes may be broadcast"),
        ],
    ),
    *rows(
        replace_einsum_by_matmul,
        X,
        [
            (
                "scores",
                einsum("bshd,bthd->bhst", "q", "k"),
                "t = Transpose<perm=[0,2,1,3]>(q) u = Transpose<perm=[0,2,3,1]>(k) y = MatMul(t, u)",
            ),
            (
                "result",
                einsum("bik,bkj->bji", "a", "b"),
                "p = MatMul(a, b) y = Transpose<perm=[0,2,1]>(p)",
            ),
        ],
    ),
]

test_rows = table_test(ROWS)
