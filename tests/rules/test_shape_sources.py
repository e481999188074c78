"""Dimensions that are read from another tensor, where a Shape node less does then."""

from __future__ import annotations

import pytest
from harness import Setup, rows, table_test

from optimizer.ir.text import dump
from optimizer.rewrite import Context
from passes.shape_sources import SOURCES

IMAGES = Setup(inputs="float[N,C,H,W] x, float[N,K] z")

ROWS = rows(
    SOURCES,
    IMAGES,
    [
        (
            "number",
            (
                "s = Shape(x) a = Gather(s, i64(2)) b = Gather(s, i64(0)) t = Shape(z) c = Gather(t, i64(0)) "
                "y = Add(a, b) y2 = Neg(c)"
            ),
            (
                "s = Shape(x) a = Gather(s, i64(2)) b = Gather(s, i64(0)) c = Gather(s, i64(0)) "
                "y = Add(a, b) y2 = Neg(c)"
            ),
        ),
        (
            "vector-of-several",
            (
                "s = Shape(x) e = Exp(x) t = Shape(e) c = Gather(t, i64([3, 1])) "
                "y = Neg(c) y2 = Neg(s) y3 = Neg(e)"
            ),
            "s = Shape(x) e = Exp(x) c = Gather(s, i64([3, 1])) y = Neg(c) y2 = Neg(s) y3 = Neg(e)",
        ),
    ],
)

test_rows = table_test(ROWS)

KEPT = {
    "another-dimension": "s = Shape(x) y2 = Neg(s) t = Shape(z) c = Gather(t, i64(1)) y = Neg(c)",
    "read-twice": "s = Shape(x) y2 = Neg(s) t = Shape(z) c = Gather(t, i64(0)) y = Neg(c) y3 = Neg(t)",
    "computed-from-it": "t = Shape(z) c = Gather(t, i64([0])) e = Expand(x, c) y2 = Shape(e) y = Relu(e)",
    "computed-indices": "s = Shape(x) y2 = Neg(s) t = Shape(z) i = Size(x) c = Gather(t, i) y = Neg(c)",
}


@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT)
def test_what_must_stay_stays(body: str) -> None:
    model = IMAGES.model(body)
    before = dump(model)
    SOURCES.run(Context(model, IMAGES.settings))
    assert dump(model) == before
