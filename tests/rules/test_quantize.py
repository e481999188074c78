"""Quantization steps that take each other back."""

from __future__ import annotations

from harness import Setup, rows, table_test

from passes.quantize import drop_requantization

X = Setup("int8[N,4] x, uint8[N,4] u, int32[N,4] i")
AGAIN = "a = DequantizeLinear({0}, {1}, {2}) b = QuantizeLinear(a, {3}, {4}) y = Cast<to=1>(b)"

ROWS = [
    *rows(
        drop_requantization,
        X,
        [
            ("same", AGAIN.format("x", "f32(0.1)", "i8(3)", "f32(0.1)", "i8(3)"), "y = Cast<to=1>(x)"),
            (
                "per-axis",
                AGAIN.format("u", "f32([1,2,3,4])", "u8([1,2,3,4])", "f32([1,2,3,4])", "u8([1,2,3,4])"),
                "y = Cast<to=1>(u)",
            ),
            (
                "no-zero-point",
                "a = DequantizeLinear(u, f32(0.1)) b = QuantizeLinear(a, f32(0.1), u8(0)) y = Cast<to=1>(b)",
                "y = Cast<to=1>(u)",
            ),
        ],
        [
            ("scale", AGAIN.format("x", "f32(0.1)", "i8(3)", "f32(0.2)", "i8(3)"), "the scales differ"),
            ("zero-point", AGAIN.format("x", "f32(0.1)", "i8(3)", "f32(0.1)", "i8(4)"), ("the zero "
            "points differ")),
            ("type", AGAIN.format("x", "f32(0.1)", "i8(3)", "f32(0.1)", "u8(3)"), "the element type changes"),
            ("wide", "a = DequantizeLinear(i, f32(0.1)) b = QuantizeLinear(a, f32(0.1)) y = Cast<to=1>(b)",
             "not 8 bits"),
            ("extreme", AGAIN.format("x", "f32(1e-38)", "i8(3)", "f32(1e-38)", "i8(3)"), ("the "
            "scales are extreme")),
        ],
    ),
]  # fmt: skip

test_rows = table_test(ROWS)
