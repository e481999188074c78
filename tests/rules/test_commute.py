"""Convolutions of one pixel and activations change places with pooling and upsampling."""

from __future__ import annotations

from harness import Setup, rows, table_test

from passes.commute import (
    pool_before_pointwise_conv,
    pool_globally_before_pointwise_conv,
    resize_behind_activation,
    resize_behind_pointwise_conv,
)

X = Setup(
    "float[N,4,6,6] x, float[N,1,6,6] one, float[N,C,H,6] open", rtol=1e-4, sizes=[{"N": 2, "C": 4, "H": 6}]
)
OLD = Setup("float[2,4,6,6] x", opset=10)
W = "f32(normal(8,4,1,1))"
UP = 'Resize<coordinate_transformation_mode="asymmetric", nearest_mode="floor">({0}, , f32([1,1,2,2]))'
HALF = "Resize({0}, , f32([1,1,2,0.5]))"

ROWS = [
    *rows(
        pool_before_pointwise_conv,
        X,
        [
            (
                "transition",
                f"c = Conv(x, {W}, f32(normal(8))) y = AveragePool<kernel_shape=[2,2], strides=[2,2]>(c)",
                "c = AveragePool<kernel_shape=[2,2], strides=[2,2]>(x) y = Conv(c, _, _)",
            )
        ],
        [
            (
                "window",
                "c = Conv(x, f32(normal(8,4,3,3))) y = AveragePool<kernel_shape=[2,2], strides=[2,2]>(c)",
                "the kernel is more than one pixel",
            ),
            (
                "auto",
                (
                    f'c = Conv<auto_pad="SAME_UPPER">(x, {W}) y = AveragePool<kernel_shape=[2,2], '
                    f"strides=[2,2]>(c)"
                ),
                "the kernel is more than one pixel",
            ),
            (
                "padded",
                f"c = Conv(x, {W}) y = AveragePool<kernel_shape=[2,2], strides=[2,2], pads=[1,1,1,1]>(c)",
                "the pool is padded",
            ),
            (
                "auto-pool",
                (
                    f"c = Conv(x, {W}) y = AveragePool<kernel_shape=[2,2], strides=[2,2], "
                    f'auto_pad="SAME_LOWER">(c)'
                ),
                "the pool is padded",
            ),
            (
                "same-size",
                f"c = Conv(x, {W}) y = AveragePool<kernel_shape=[2,2]>(c)",
                "the pool takes no steps",
            ),
        ],
    ),
    *rows(
        pool_globally_before_pointwise_conv,
        X,
        [
            (
                "global",
                f"c = Conv(x, {W}, f32(normal(8))) y = GlobalAveragePool(c)",
                "c = GlobalAveragePool(x) y = Conv(c, _, _)",
            )
        ],
        [
            (
                "steps",
                f"c = Conv<strides=[2,2]>(x, {W}) y = GlobalAveragePool(c)",
                "the kernel is more than one pixel",
            )
        ],
    ),
    *rows(
        resize_behind_pointwise_conv,
        X,
        [
            (
                "nearest",
                f"u = {UP.format('x')} y = Conv(u, {W}, f32(normal(8)))",
                f"u = Conv(x, _, _) y = {UP.format('u')}",
            ),
            (
                "linear",
                f'u = Resize<mode="linear">(x, , f32([1,1,2,3])) y = Conv(u, {W})',
                'u = Conv(x, _) y = Resize<mode="linear">(u, , f32([1,1,2,3]))',
            ),
            (
                "sizes",
                f"u = Resize(x, , , i64([2,4,12,12])) y = Conv(u, {W})".replace(
                    "x,", "f32(normal(2,4,6,6)),"
                ),
                "u = Conv(_, _) y = Resize(u, , f32([1,1,2,2]))",
            ),
        ],
        [
            ("cubic", f'u = Resize<mode="cubic">(x, , f32([1,1,2,2])) y = Conv(u, {W})', "it may overshoot"),
            ("shrinks", f"u = {HALF.format('x')} y = Conv(u, {W})", "the image is not enlarged"),
            (
                "crop",
                (
                    f'u = Resize<coordinate_transformation_mode="tf_crop_and_resize">'
                    f"(x, f32([0,0,0,0,1,1,1,1]), f32([1,1,2,2])) y = Conv(u, {W})"
                ),
                "a region is cropped",
            ),
            (
                "many",
                f"u = {UP.format('one')} y = Conv(u, f32(normal(8,1,1,1)))",
                "there would be many more channels to resize",
            ),
            ("open", f"u = Resize(open, , , i64([2,4,12,12])) y = Conv(u, {W})", "the image is not enlarged"),
        ],
    ),
    *rows(
        resize_behind_pointwise_conv,
        Setup("float[N,4,6,6] x", opset=18),
        (),
        [("axes", f"u = Resize<axes=[2,3]>(x, , f32([2,2])) y = Conv(u, {W})", "only some axes are resized")],
    ),
    *rows(
        resize_behind_pointwise_conv,
        OLD,
        (),
        [
            (
                "old",
                f"u = Resize(x, f32([1,1,2,2])) y = Conv(u, {W})",
                "Resize has one way to count before opset 11",
            )
        ],
    ),
    *rows(
        resize_behind_activation,
        X,
        [
            (
                "relu",
                f"r = Neg(x) u = {UP.format('r')} y = Relu(u)",
                f"r = Neg(x) u = Relu(r) y = {UP.format('u')}",
            )
        ],
        [
            (
                "linear",
                'r = Neg(x) u = Resize<mode="linear">(r, , f32([1,1,2,2])) y = Relu(u)',
                "it interpolates",
            ),
            (
                "shared",
                f"r = Neg(x) u = {UP.format('r')} y = Relu(u) y2 = Exp(r)",
                "the small image has other readers",
            ),
        ],
    ),
]

test_rows = table_test(ROWS)
