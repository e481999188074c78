"""Normalizations spelled out, what follows them, and Pads."""

from __future__ import annotations

import numpy as np
from harness import Setup, rows, table_test

from passes.fuse_pad import fold_pad_into_averagepool, fold_pad_into_conv, fold_pad_into_maxpool, merge_pads
from passes.idiom_norm import (
    fold_affine_into_instancenorm,
    fold_affine_into_layernorm,
    fuse_global_average_pool,
    fuse_instancenorm,
    fuse_layernorm,
    fuse_layernorm_of_channels,
)

TOKENS = Setup("float[N,S,4] x, double[N,S,4] wide, float[N,S,D] z, int32[N,4] i")
V16 = Setup("float[N,S,4] x", opset=16)
V18 = Setup("float[N,S,4] x", opset=18)
IMAGE = Setup(
    "float[N,4,5,6] x, float[N,C,H,W] z, double[N,4,5,6] wide",
    constants={"w": np.ones((4, 4, 1, 1), np.float32)},
)
CHANNELS = "f32([[[2]],[[1]],[[1]],[[1]]])"
HEAD = "a = ReduceMean<axes=[-1]>(x) d = Sub(x, a)"
TAIL = "v = ReduceMean<axes=[-1]>(p) e = Add(v, f32(1e-5)) r = Sqrt(e)"
POW = f"{HEAD} p = Pow(d, f32(2)) {TAIL}"
MUL = f"{HEAD} p = Mul(d, d) {TAIL}"
NORM = "y = LayerNormalization<axis=-1, epsilon=1e-5>(x, _)"
SPATIAL = POW.replace("[-1]", "[2,3]")
PADS = Setup(
    "float[N,2,5,5] x, uint8[N,2,5,5] q, int64[8] p",
    constants={
        "w": np.arange(36, dtype=np.float32).reshape(2, 2, 3, 3),
        "wq": np.ones((2, 2, 3, 3), np.uint8),
        "spatial": np.array([0, 0, 1, 2, 0, 0, 0, 1]),
        "crop": np.array([0, 0, -1, 2, 0, 0, 0, 1]),
        "channels": np.array([0, 1, 0, 0, 0, 0, 0, 0]),
        "wide": np.array([0, 0, 3, 0, 0, 0, 0, 0]),
    },
    rtol=3e-6,
)
PADS_10 = Setup("float[N,2,5,5] x", opset=10, constants=PADS.constants)
PADS_6 = Setup("float[N,2,5,5] x", opset=6)
V6 = Setup("float[N,4,5,6] x", opset=6)
PADS_18 = Setup("float[N,2,5,5] x", opset=18, constants=PADS.constants)

ROWS = [
    *rows(
        fuse_layernorm,
        TOKENS,
        [
            ("pow-div", f"{POW} y = Div(d, r)", NORM),
            ("mul-reciprocal", f"{MUL} q = Reciprocal(r) y = Mul(q, d)", NORM),
            ("one-over", f"{MUL} q = Div(f32(1), r) y = Mul(d, q)", NORM),
            (
                "power",
                (
                    f"{HEAD} p = Mul(d, d) v = ReduceMean<axes=[2]>(p) e = Add(f32(1e-5), v) r = Pow(e,"
                    " f32(-0.5)) y = Mul(d, r)"
                ),
                NORM,
            ),
            (
                "half-power",
                (
                    f"{HEAD} p = Mul(d, d) v = ReduceMean<axes=[2]>(p) e = Add(f32(1e-5), v) r = Pow(e,"
                    " f32(0.5)) y = Div(d, r)"
                ),
                NORM,
            ),
            (
                "two-axes",
                f"{POW} y = Div(d, r)".replace("[-1]", "[2]"),
                NORM,
            ),
        ],
        [
            (
                "other-axes",
                f"{POW} y = Div(d, r)".replace("[-1]>(p)", "[1]>(p)"),
                "the means are over different axes",
            ),
            (
                "double",
                f"{POW} y = Div(d, r)".replace("(x", "(wide").replace("f32", "f64"),
                "not float32 or float16",
            ),
            ("not-last", f"{POW} y = Div(d, r)".replace("[-1]", "[1]"), "it does not run over the last axes"),
            (
                "unknown-size",
                f"{POW} y = Div(d, r)".replace("(x", "(z"),
                "the sizes of the normalized axes are not known",
            ),
            (
                "vector",
                f"{POW} y = Div(d, r)".replace("f32(1e-5)", "f32([1e-5,1e-4,1e-3,1])"),
                "epsilon is no scalar",
            ),
            ("negative", f"{POW} y = Div(d, r)".replace("f32(1e-5)", "f32(-1e-9)"), "epsilon is negative"),
        ],
    ),
    *rows(fuse_layernorm, V16, (), [("old", f"{POW} y = Div(d, r)", "LayerNormalization needs opset 17")]),
    *rows(
        fuse_layernorm,
        V18,
        [
            (
                "axes-as-operand",
                f"{POW} y = Div(d, r)".replace("<axes=[-1]>(x)", "(x, i64([-1]))").replace(
                    "<axes=[-1]>(p)", "(p, i64([2]))"
                ),
                NORM,
            )
        ],
    ),
    *rows(
        fuse_layernorm_of_channels,
        IMAGE,
        [
            (
                "image",
                f"{POW} y = Div(d, r)".replace("[-1]", "[1]"),
                (
                    "t = Transpose<perm=[0,2,3,1]>(x) n = LayerNormalization<axis=-1, "
                    "epsilon=1e-5>(t, f32([1,1,1,1])) "
                    "y = Transpose<perm=[0,3,1,2]>(n)"
                ),
            )
        ],
        [("last", f"{POW} y = Div(d, r)", "it does not run over the channels")],
    ),
    *rows(
        fuse_instancenorm,
        IMAGE,
        [
            (
                "image",
                f"{SPATIAL} y = Div(d, r)",
                "y = InstanceNormalization<epsilon=1e-5>(x, f32([1,1,1,1]), f32([0,0,0,0]))",
            )
        ],
        [
            (
                "channels-too",
                f"{SPATIAL} y = Div(d, r)".replace("[2,3]", "[1,2,3]"),
                "it does not run over the image",
            ),
            (
                "unknown-channels",
                f"{SPATIAL} y = Div(d, r)".replace("(x", "(z"),
                "the number of channels is not known",
            ),
        ],
    ),
    *rows(
        fold_affine_into_layernorm,
        TOKENS,
        [
            (
                "scale",
                "n = LayerNormalization(x, f32([1,1,1,1])) y = Mul(n, f32([1,2,3,4]))",
                "y = LayerNormalization(x, f32([1,2,3,4]))",
            ),
            (
                "bias",
                "n = LayerNormalization(x, f32([1,2,3,4])) y = Add(f32([[1,2,3,4]]), n)",
                "y = LayerNormalization(x, f32([1,2,3,4]), f32([1,2,3,4]))",
            ),
            (
                "both",
                "n = LayerNormalization(x, f32([1,2,3,4]), f32([1,1,1,2])) y = Mul(n, f32(2))",
                "y = LayerNormalization(x, f32([2,4,6,8]), f32([2,2,2,4]))",
            ),
        ],
        [
            (
                "rows",
                "n = LayerNormalization(x, f32([1,1,1,1])) y = Mul(n, f32([[1],[2]]))",
                "the constant varies outside the normalized axes",
            ),
            ("rank", "n = LayerNormalization(x, f32(1)) y = Mul(n, f32(2))", "the scale is broadcast"),
        ],
    ),
    *rows(
        fold_affine_into_instancenorm,
        IMAGE,
        [
            (
                "channels",
                (
                    "n = InstanceNormalization(x, f32([1,2,3,4]), f32([0,0,0,1])) y = Mul(n,"
                    " f32([[[2]],[[1]],[[1]],[[1]]]))"
                ),
                "y = InstanceNormalization(x, f32([2,2,3,4]), f32([0,0,0,1]))",
            )
        ],
    ),
    *rows(
        fuse_global_average_pool,
        IMAGE,
        [
            (
                "behind-conv",
                "a = Conv(x, w) b = Relu(a) y = ReduceMean<axes=[-1,2]>(b)",
                "a = Conv(x, w) b = Relu(a) y = GlobalAveragePool(b)",
            )
        ],
        [
            ("double", "y = ReduceMean<axes=[2,3]>(wide)", "not float32"),
            ("far", "y = ReduceMean<axes=[2,3]>(x)", "no Conv is near"),
            ("one-axis", "a = Conv(x, w) y = ReduceMean<axes=[2]>(a)", "it does not run over the image"),
            ("dropped", "a = Conv(x, w) y = ReduceMean<axes=[2,3], keepdims=0>(a)", "an axis is dropped"),
        ],
    ),
    *rows(
        fold_pad_into_conv,
        PADS,
        [
            ("conv", "a = Pad(x, spatial) y = Conv(a, w)", "y = Conv<pads=[1,2,0,1]>(x, w)"),
            (
                "adds-up",
                "a = Pad(x, spatial, f32(0)) y = Conv<pads=[1,1,1,1], strides=[2,2]>(a, w)",
                "y = Conv<pads=[2,3,1,2], strides=[2,2]>(x, w)",
            ),
            (
                "valid",
                'a = Pad(x, spatial) y = Conv<auto_pad="VALID">(a, w)',
                "y = Conv<pads=[1,2,0,1]>(x, w)",
            ),
            (
                "integer",
                "a = Pad(q, spatial, u8(3)) y = ConvInteger(a, wq, u8(3))",
                "y = ConvInteger<pads=[1,2,0,1]>(q, wq, u8(3))",
            ),
        ],
        [
            ("value", "a = Pad(x, spatial, f32(1)) y = Conv(a, w)", "it pads with another value"),
            ("zero-point", "a = Pad(q, spatial) y = ConvInteger(a, wq, u8(3))", "it pads with another value"),
            ("mode", 'a = Pad<mode="edge">(x, spatial) y = Conv(a, w)', "it does not pad with a constant"),
            ("crops", "a = Pad(x, crop) y = Conv(a, w)", "it crops"),
            (
                "channels",
                "a = Pad(x, channels) y = Conv(a, f32(ones(2,3,3,3)))",
                "it pads more than the image",
            ),
            (
                "same",
                'a = Pad(x, spatial) y = Conv<auto_pad="SAME_UPPER">(a, w)',
                "what is behind pads by its own rule",
            ),
            ("computed", "a = Pad(x, p) y = Conv(a, w)", "an operand is not a constant"),
        ],
    ),
    *rows(
        fold_pad_into_conv,
        PADS_10,
        [
            (
                "attributes",
                "a = Pad<pads=[0,0,1,1,0,0,1,1]>(x) y = Conv(a, w)",
                "y = Conv<pads=[1,1,1,1]>(x, w)",
            )
        ],
    ),
    *rows(
        fold_pad_into_conv,
        PADS_18,
        [("axes", "a = Pad(x, i64([1,2]), , i64([-1])) y = Conv(a, w)", "y = Conv<pads=[0,1,0,2]>(x, w)")],
    ),
    *rows(
        fold_pad_into_averagepool,
        PADS,
        [
            (
                "average",
                "a = Pad(x, spatial) y = AveragePool<kernel_shape=[3,3]>(a)",
                "y = AveragePool<count_include_pad=1, kernel_shape=[3,3], pads=[1,2,0,1]>(x)",
            )
        ],
        [
            (
                "leaves-out",
                "a = Pad(x, spatial) y = AveragePool<kernel_shape=[3,3], pads=[0,0,1,1]>(a)",
                "the pool leaves its own padding out of the average",
            ),
            (
                "rounds-up",
                "a = Pad(x, spatial) y = AveragePool<kernel_shape=[3,3], ceil_mode=1>(a)",
                "the size is rounded up",
            ),
            (
                "wide",
                "a = Pad(x, wide) y = AveragePool<kernel_shape=[3,3]>(a)",
                "a window would see only padding",
            ),
        ],
    ),
    *rows(
        fold_pad_into_averagepool,
        PADS_6,
        (),
        [
            (
                "old",
                "a = Pad<pads=[0,0,1,1,0,0,1,1]>(x) y = AveragePool<kernel_shape=[3,3]>(a)",
                "AveragePool cannot count padding before opset 7",
            )
        ],
    ),
    *rows(
        fuse_instancenorm,
        V6,
        (),
        [("old", f"{SPATIAL} y = Div(d, r)", "elementwise operators broadcast differently before opset 7")],
    ),
    *rows(
        fold_pad_into_maxpool,
        PADS,
        [
            (
                "lowest",
                "a = Pad(x, spatial, f32(-inf)) y = MaxPool<kernel_shape=[3,3]>(a)",
                "y = MaxPool<kernel_shape=[3,3], pads=[1,2,0,1]>(x)",
            ),
            (
                "behind-relu",
                "r = Relu(x) a = Pad(r, spatial) y = MaxPool<kernel_shape=[3,3]>(a)",
                "r = Relu(x) y = MaxPool<kernel_shape=[3,3], pads=[1,2,0,1]>(r)",
            ),
        ],
        [
            (
                "maybe-largest",
                "a = Pad(x, spatial) y = MaxPool<kernel_shape=[3,3]>(a)",
                "the padding may be the maximum",
            ),
            (
                "indices",
                "a = Pad(x, spatial, f32(-inf)) y, y2 = MaxPool<kernel_shape=[3,3]>(a)",
                "indices are used",
            ),
            (
                "dilated",
                "a = Pad(x, spatial, f32(-inf)) y = MaxPool<kernel_shape=[3,3], dilations=[2,2]>(a)",
                "the window is dilated",
            ),
        ],
    ),
    *rows(
        merge_pads,
        PADS,
        [
            (
                "zeros",
                "a = Pad(x, spatial) y = Pad(a, channels, f32(0))",
                'y = Pad<mode="constant">(x, i64([0,1,1,2,0,0,0,1]))',
            ),
            (
                "edges",
                'a = Pad<mode="edge">(x, spatial) y = Pad<mode="edge">(a, wide)',
                'y = Pad<mode="edge">(x, i64([0,0,4,2,0,0,0,1]))',
            ),
        ],
        [
            ("modes", 'a = Pad(x, spatial) y = Pad<mode="edge">(a, wide)', "they pad in different ways"),
            ("values", "a = Pad(x, spatial) y = Pad(a, wide, f32(1))", "they pad with different values"),
            (
                "zeros-apart",
                "a = Pad(x, spatial) y = Pad(a, wide, f32(-0.0))",
                "they pad with different values",
            ),
            ("crops", "a = Pad(x, spatial) y = Pad(a, crop)", "one of them crops"),
        ],
    ),
]

test_rows = table_test(ROWS)
