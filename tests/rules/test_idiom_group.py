"""GroupNormalization spelled out, and normalizations whose scale is in the way."""

from __future__ import annotations

from harness import Setup, rows, table_test

from optimizer.rewrite import Settings
from passes.idiom_group import (
    factor_out_of_normalization,
    fold_affine_into_groupnorm,
    fuse_groupnorm,
    scale_behind_normalization,
)

NODES = Setup(
    "float[N,4,6,6] x, double[N,4,6,6] d, int64[3] t",
    opset=21,
    rtol=1e-4,
    sizes=[{"N": 2}],
    settings=Settings(fp="fast", growth=None, objective="nodes"),
)
SPREAD = (
    "a = Reshape({0}, i64([0,{1},-1])) b = InstanceNormalization<epsilon=0.001>(a, {2}) "
    "y = Reshape(b, i64([0,4,6,6]))"
)
TWO = "f32([1,2]), f32([0.5,3])"
GROUPNORM = "a = GroupNormalization<num_groups=2>(x, f32(normal(4)), f32(normal(4)))"
X = Setup("float[B,S,8] x", rtol=1e-4, sizes=[{"B": 2, "S": 3}])
HEAD = "u = ReduceMean<axes=[-1]>(x) d = Sub(x, u) q = Mul(d, d) v = ReduceMean<axes=[-1]>(q) "
ROOT = "e = Add(v, f32(1e-5)) r = Sqrt(e) "
SCALE = "f32(normal(8))"

ROWS = [
    *rows(
        fuse_groupnorm,
        NODES,
        [
            (
                "scaled",
                SPREAD.format("x", 2, TWO),
                "y = GroupNormalization<num_groups=2, epsilon=0.001>(x, f32([1,1,2,2]), f32([0.5,0.5,3,3]))",
            )
        ],
        [
            ("double", SPREAD.format("d", 2, "f64([1,2]), f64([0,1])"), "not float32 or float16"),
            (
                "rows",
                SPREAD.format("x", 2, TWO).replace("i64([0,4,6,6])", "i64([0,6,4,6])"),
                "the result has another shape",
            ),
            (
                "other-groups",
                SPREAD.format("x", 8, "f32(ones(8)), f32(ones(8))"),
                "it does not group channels",
            ),
        ],
    ),
    *rows(
        fuse_groupnorm,
        Setup("float[N,4,6,6] x", opset=20, settings=Settings(objective="nodes")),
        [],
        [("opset", SPREAD.format("x", 2, TWO), "GroupNormalization needs opset 21")],
    ),
    *rows(
        fuse_groupnorm,
        Setup("float[N,4,6,6] x", opset=21),
        [],
        [("slower", SPREAD.format("x", 2, TWO), "it would be slower")],
    ),
    *rows(
        fold_affine_into_groupnorm,
        NODES,
        [
            (
                "scale",
                f"{GROUPNORM} y = Mul(a, f32(normal(4,1,1)))",
                "y = GroupNormalization<num_groups=2>(x, _, _)",
            ),
            ("shift", f"{GROUPNORM} y = Add(f32(2), a)", "y = GroupNormalization<num_groups=2>(x, _, _)"),
        ],
        [("rows", f"{GROUPNORM} y = Mul(a, f32(normal(6)))", "the constant is not one number per channel")],
    ),
    *rows(
        fold_affine_into_groupnorm,
        Setup("float[N,4,6,6] x", opset=18),
        [],
        [
            (
                "opset",
                "a = GroupNormalization<num_groups=2>(x, f32([1,2]), f32([0,1])) y = Mul(a, f32(2))",
                "GroupNormalization has one scale per group before opset 21",
            )
        ],
    ),
    *rows(
        scale_behind_normalization,
        X,
        [
            (
                "reciprocal",
                f"{HEAD} {ROOT} i = Reciprocal(r) k = Mul(i, {SCALE}) y = Mul(d, k)",
                f"{HEAD} {ROOT} i = Reciprocal(r) k = Mul(d, i) y = Mul(k, {SCALE})",
            ),
            (
                "quotient",
                f"{HEAD} {ROOT} k = Div({SCALE}, r) y = Mul(d, k)",
                f"{HEAD} {ROOT} k = Div(d, r) y = Mul(k, {SCALE})",
            ),
        ],
        [("plain", f"{HEAD} {ROOT} k = Div(f32(1), r) y = Mul(d, k)", "there is no scale")],
    ),
    *rows(
        factor_out_of_normalization,
        X,
        [
            (
                "with-the-difference",
                (
                    f"{HEAD} {ROOT} i = Reciprocal(r) p = Mul(x, i) s = Mul(u, i) t = Sub({SCALE}, s) "
                    "y = Add(p, t)"
                ),
                f"{HEAD} {ROOT} i = Reciprocal(r) p = Mul(d, i) y = Add(p, {SCALE})",
            ),
            (
                "without",
                (
                    "u = ReduceMean<axes=[-1]>(x) i = Exp(u) p = Mul(x, i) s = Mul(u, i) t = "
                    f"Sub({SCALE}, s) "
                    "y = Add(p, t)"
                ),
                f"u = ReduceMean<axes=[-1]>(x) i = Exp(u) d = Sub(x, u) p = Mul(d, i) y = Add(p, {SCALE})",
            ),
        ],
        [
            (
                "maximum",
                (
                    f"u = ReduceMax<axes=[-1]>(x) i = Exp(u) p = Mul(x, i) s = Mul(u, i) t = Sub({SCALE}, s) "
                    "y = Add(p, t)"
                ),
                "not the mean of x",
            )
        ],
    ),
]

test_rows = table_test(ROWS)
