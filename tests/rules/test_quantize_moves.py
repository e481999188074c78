"""Integers are moved instead of what they stand for; what saturates anyway is not clamped."""

from __future__ import annotations

from harness import Setup, rows, table_test

from passes.quantize_moves import drop_clamp_before_quantization, join_quantized, move_quantized

X = Setup("int8[N,4] x, uint8[N,4] u, int32[N,4] i, uint8[N,4,6,6] p, float[N,4] f, float t")
OLD = Setup("uint8[N,4,6,6] p", opset=11)
MOVED = "a = DequantizeLinear({0}, {1}, {2}) b = {3} c = QuantizeLinear(b, {4}, {5}) y = Cast<to=1>(c)"
S, Z = "f32(0.1)", "u8(3)"


def moved(
    move: str, source: str = "u", scale: str = S, zero: str = Z, other: str = S, other_zero: str = Z
) -> str:
    return MOVED.format(source, scale, zero, move, other, other_zero)


CLAMPED = "a = {0} b = QuantizeLinear(a, f32(0.1), {1}) y = Cast<to=1>(b)"
DROPPED = "b = QuantizeLinear(f, f32(0.1), {0}) y = Cast<to=1>(b)"

ROWS = [
    *rows(
        move_quantized,
        X,
        [
            ("reshape", moved("Reshape(a, i64([4,-1]))"), "c = Reshape(u, i64([4,-1])) y = Cast<to=1>(c)"),
            (
                "transpose",
                moved("Transpose<perm=[1,0]>(a)"),
                "c = Transpose<perm=[1,0]>(u) y = Cast<to=1>(c)",
            ),
            (
                "slice",
                moved("Slice(a, i64([1]), i64([3]), i64([1]))"),
                "c = Slice(u, i64([1]), i64([3]), i64([1])) y = Cast<to=1>(c)",
            ),
            (
                "gather",
                moved("Gather<axis=1>(a, i64([2,0]))", "x", S, "i8(3)", S, "i8(3)"),
                "c = Gather<axis=1>(x, i64([2,0])) y = Cast<to=1>(c)",
            ),
            (
                "maxpool",
                moved("MaxPool<kernel_shape=[2,2], pads=[1,1,1,1]>(a)", "p"),
                "c = MaxPool<kernel_shape=[2,2], pads=[1,1,1,1]>(p) y = Cast<to=1>(c)",
            ),
        ],
        [
            ("scale", moved("Flatten(a)", other="f32(0.2)"), "the scales differ"),
            (
                "axis",
                moved(
                    "Flatten(a)",
                    scale="f32([1,2,3,4])",
                    other="f32([1,2,3,4])",
                    zero="u8([0,0,0,0])",
                    other_zero="u8([0,0,0,0])",
                ),
                "the scales lie along an axis",
            ),
        ],
    ),
    *rows(
        move_quantized,
        X,
        [],
        [
            (
                "places",
                (
                    "a = DequantizeLinear(p, f32(0.1), u8(3)) b, y2 = MaxPool<kernel_shape=[2,2]>(a) "
                    "c = QuantizeLinear(b, f32(0.1), u8(3)) y = Cast<to=1>(c)"
                ),
                "the places of the maxima are asked for",
            )
        ],
    ),
    *rows(
        move_quantized,
        OLD,
        [],
        [
            (
                "old-pool",
                moved("MaxPool<kernel_shape=[2,2]>(a)", "p"),
                "the pool takes no integers before opset 12",
            )
        ],
    ),
    *rows(
        join_quantized,
        X,
        [
            (
                "two",
                (
                    "a = DequantizeLinear(u, f32(0.1), u8(3)) a2 = DequantizeLinear(u, f32(0.1), u8(3)) "
                    "b = Concat<axis=0>(a, a2) c = QuantizeLinear(b, f32(0.1), u8(3)) y = Cast<to=1>(c)"
                ),
                "c = Concat<axis=0>(u, u) y = Cast<to=1>(c)",
            )
        ],
        [
            (
                "axis",
                "b = Concat<axis=0>(f, f) c = QuantizeLinear(b, f32([1,2,3,4])) y = Cast<to=1>(c)",
                "the scales lie along an axis",
            ),
            (
                "float",
                (
                    "a = DequantizeLinear(u, f32(0.1), u8(3)) b = Concat<axis=0>(a, f) "
                    "c = QuantizeLinear(b, f32(0.1), u8(3)) y = Cast<to=1>(c)"
                ),
                "an operand is not dequantized",
            ),
            (
                "scale",
                (
                    "a = DequantizeLinear(u, f32(0.1), u8(3)) a2 = DequantizeLinear(u, f32(0.2), u8(3)) "
                    "b = Concat<axis=0>(a, a2) c = QuantizeLinear(b, f32(0.1), u8(3)) y = Cast<to=1>(c)"
                ),
                "the scales differ",
            ),
        ],
    ),
    *rows(
        drop_clamp_before_quantization,
        X,
        [
            ("relu", CLAMPED.format("Relu(f)", "u8(0)"), DROPPED.format("u8(0)")),
            ("relu-of-signed", CLAMPED.format("Relu(f)", "i8(-128)"), DROPPED.format("i8(-128)")),
            ("clip", CLAMPED.format("Clip(f, f32(-20), f32(30))", "u8(3)"), DROPPED.format("u8(3)")),
        ],
        [
            ("relu-above", CLAMPED.format("Relu(f)", "u8(3)"), "it clamps more than saturation does"),
            (
                "clip-below",
                CLAMPED.format("Clip(f, f32(0), f32(6))", "u8(0)"),
                "it clamps more than saturation does",
            ),
            (
                "empty",
                CLAMPED.format("Clip(f, f32(60), f32(50))", "u8(0)"),
                "it clamps more than saturation does",
            ),
            ("bound", CLAMPED.format("Clip(f, t)", "u8(0)"), "a bound is not one known number"),
            (
                "scale",
                "a = Relu(f) b = QuantizeLinear(a, f32(-0.1), u8(0)) y = Cast<to=1>(b)",
                "a scale is not positive",
            ),
        ],
    ),
    *rows(
        drop_clamp_before_quantization,
        Setup("float[N,4] f", opset=21, imports=""),
        [],
        [
            (
                "narrow",
                "a = Relu(f) b = QuantizeLinear<output_dtype=22>(a, f32(0.1)) y = Cast<to=1>(b)",
                "not 8 or 16 bits",
            )
        ],
    ),
]

test_rows = table_test(ROWS)
