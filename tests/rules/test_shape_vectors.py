"""Vectors of known contents, made anew from the shapes of tensors."""

from __future__ import annotations

import pytest
from harness import Setup, rows, table_test

from optimizer.ir.text import dump
from optimizer.rewrite import Context
from passes.shape_vectors import REBUILD

X = Setup("float[N,C,H,W] x, float[N,C,K] z, float[M] v")
OLD = Setup("float[N,C] x", opset=13)

MADE_FROM_IT = (
    "s = Shape(x) h = Gather(s, i64([2])) w = Gather(s, i64([3])) p = Mul(h, w) "
    "t = Concat<axis=0>(i64([0, 0]), p) r = Reshape(x, t)"
)

ROWS = [
    *rows(
        REBUILD,
        X,
        [
            (
                "apart-and-together-again",
                (
                    "s = Shape(x) h = Gather(s, i64(2)) w = Gather(s, i64(3)) a = Unsqueeze(h, i64([0])) "
                    "b = Unsqueeze(w, i64([0])) y = Concat<axis=0>(a, b)"
                ),
                "y = Shape<start=2, end=4>(x)",
            ),
            (
                "with-constants-around",
                (
                    "s = Shape(x) n = Gather(s, i64([0])) c = Gather(s, i64([1])) "
                    "y = Concat<axis=0>(i64([1]), n, c, i64([1, 1]))"
                ),
                "a = Shape<start=0, end=2>(x) y = Concat<axis=0>(i64([1]), a, i64([1, 1]))",
            ),
            (
                "a-size-that-another-tensor-has",
                (
                    "s = Shape(x) h = Gather(s, i64([2])) w = Gather(s, i64([3])) p = Mul(h, w) "
                    "r = Reshape(x, i64([0, 0, -1])) y2 = Relu(r) y = Concat<axis=0>(p, i64([1]))"
                ),
                (
                    "r = Reshape(x, i64([0, 0, -1])) y2 = Relu(r) "
                    "p = Shape<start=2, end=3>(r) y = Concat<axis=0>(p, i64([1]))"
                ),
            ),
            (
                "a-size-that-a-later-tensor-has",
                (
                    "s = Shape(x) h = Gather(s, i64([2])) w = Gather(s, i64([3])) p = Mul(h, w) "
                    "y = Concat<axis=0>(p, i64([1])) r = Reshape(x, i64([0, 0, -1])) y2 = Relu(r)"
                ),
                (
                    "r = Reshape(x, i64([0, 0, -1])) p = Shape<start=2, end=3>(r) "
                    "y = Concat<axis=0>(p, i64([1])) y2 = Relu(r)"
                ),
            ),
            (
                "shape-of-what-is-made-for-it",
                (
                    "a = Shape<start=0, end=1>(x) b = Shape<start=0, end=1>(v) n = Squeeze(a) m = Squeeze(b) "
                    "r = Range(i64(0), n, i64(1)) q = Range(i64(0), m, i64(1)) u = Unsqueeze(r, i64([1])) "
                    "p = Max(u, q) y = Shape(p) y2 = Neg(a) y3 = Neg(b)"
                ),
                (
                    "a = Shape<start=0, end=1>(x) b = Shape<start=0, end=1>(v) y = Concat<axis=0>(a, b) "
                    "y2 = Neg(a) y3 = Neg(b)"
                ),
            ),
            (
                "chosen-by-what-is-known",
                (
                    "s = Shape<start=0, end=1>(x) t = Concat<axis=0>(s, i64([-1, -1])) "
                    "y = Where(bool([False, True, True]), i64([1, 1, 1]), t)"
                ),
                "s = Shape<start=0, end=1>(x) y = Concat<axis=0>(s, i64([1, 1]))",
            ),
        ],
    ),
    *rows(
        REBUILD,
        OLD,
        [
            (
                "whole-shape",
                "s = Shape(x) n = Gather(s, i64([0])) c = Gather(s, i64([1])) y = Concat<axis=0>(n, c)",
                "y = Shape(x)",
            )
        ],
    ),
]
test_rows = table_test(ROWS)


@pytest.mark.parametrize(
    ("setup", "body"),
    [
        (X, "y = Shape<start=1, end=3>(x)"),
        (X, "s = Shape(v) t = Shape<start=2>(z) y = Concat<axis=0>(s, t)"),
        (X, "s = Shape<start=0, end=1>(x) y = Mul(s, i64([2]))"),
        (X, "s = Shape(x) y = Gather(s, i64([3, 2])) y2 = Gather(s, i64([2, 3]))"),
        (OLD, "s = Shape(x) y = Gather(s, i64([1]))"),
        (X, f"{MADE_FROM_IT} y = Relu(r)"),
        (X, f"{MADE_FROM_IT} y = Concat<axis=0>(p, i64([2]))"),
    ],
    ids=[
        "a-shape-already",
        "two-tensors",
        "no-axis-is-twice-as-long",
        "shared",
        "no-parts-before-15",
        "made-from-it",
        "made-from-a-part-of-it",
    ],
)
def test_what_would_not_get_shorter_stays(setup: Setup, body: str) -> None:
    model = setup.model(body)
    text = dump(model)
    ctx = Context(model, setup.settings)
    REBUILD.run(ctx)
    assert not ctx.journal.entries
    assert dump(model) == text
