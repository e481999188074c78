"""Regions with several orders of axes, through views, and in the layout that is wanted."""

from __future__ import annotations

from harness import Setup, rows, table_test
from test_layout import CONSTANTS, IMAGE, TO_FIRST, TO_LAST

from optimizer.ir.text import dump
from optimizer.rewrite import Context, Settings
from passes.layout import ARRANGE, LAYOUT

LARGE = "float[N,16,128,128] x"
SLICES = (
    f"a = {TO_LAST}(x) b = Slice(a, i64([0]), i64([8]), i64([1]))"
    " d = Slice(a, i64([64]), i64([72]), i64([2]))"
    " y = MatMul(b, f32(ones(16,2))) y2 = MatMul(d, f32(ones(16,2)))"
)
OPEN = Setup("float[N,4,H,W] x, float[N,6,4] seq, float[N,12,4] long, float[N,S,D] rows", constants=CONSTANTS)
FIRST, LAST = (
    Setup(IMAGE.inputs, constants=CONSTANTS, settings=Settings(fp="fast", growth=None, layout=layout))
    for layout in ("nchw", "nhwc")
)

SEVERAL_ORDERS = [
    (
        "three-orders-in-a-row",
        f"a = {TO_LAST}(x) b = Relu(a) y = Transpose<perm=[0,2,1,3]>(b)",
        "b = Relu(x) y = Transpose<perm=[0,3,2,1]>(b)",
    ),
    (
        "three-orders-at-a-join",
        (
            f"a = {TO_LAST}(x) b = Transpose<perm=[0,3,2,1]>(x) d = Transpose<perm=[0,2,1,3]>(b)"
            " e = Relu(d) f = Transpose<perm=[0,3,1,2]>(a) g = Transpose<perm=[0,2,3,1]>(f)"
            " h = Transpose<perm=[0,2,1,3]>(e) i = Relu(g) y = Concat<axis=1>(h, b) y2 = Sigmoid(i)"
        ),
        (
            "b = Transpose<perm=[0,3,2,1]>(x) e = Relu(b) y = Concat<axis=1>(e, b)"
            f" a = {TO_LAST}(x) i = Relu(a) y2 = Sigmoid(i)"
        ),
    ),
]
VIEWS = [
    (
        "joins-axes",
        f"a = {TO_LAST}(x) b = Reshape(a, i64([0,-1,4])) d = Relu(b) y = Transpose<perm=[0,2,1]>(d)",
        "b = Reshape(x, i64([0,4,-1])) y = Relu(b)",
    ),
    (
        "takes-axes-apart",
        (
            "a = Transpose<perm=[0,2,1]>(seq) b = Relu(a) d = Reshape(b, i64([0,2,2,6]))"
            " y = Transpose<perm=[0,3,1,2]>(d)"
        ),
        "b = Relu(seq) y = Reshape(b, i64([0,6,2,2]))",
    ),
    (
        "joins-and-takes-apart",
        (
            "b = Reshape(x, i64([0,4,-1])) d = Transpose<perm=[0,2,1]>(b) e = Relu(d)"
            " f = Transpose<perm=[0,2,1]>(e) g = Shape(x) y = Reshape(f, g)"
        ),
        "b = Reshape(x, i64([0,4,-1])) e = Relu(b) g = Shape(x) y = Reshape(e, g)",
    ),
    (
        "sequences-as-images",
        (
            "a = Unsqueeze(seq, i64([1])) b = Transpose<perm=[0,3,1,2]>(a) d = Conv(b, w)"
            " e = Transpose<perm=[0,2,3,1]>(d) f = Squeeze(e, i64([1])) g = Relu(f)"
            " h = Unsqueeze(g, i64([1])) i = Transpose<perm=[0,3,1,2]>(h) y = Conv(i, w)"
        ),
        (
            "a = Unsqueeze(seq, i64([1])) b = Transpose<perm=[0,3,1,2]>(a) d = Conv(b, w)"
            " f = Reshape(d, i64([0,4,6])) g = Relu(f) i = Reshape(g, i64([0,4,1,6])) y = Conv(i, w)"
        ),
    ),
    (
        "dropped-and-put-back",
        (
            f"a = {TO_LAST}(x) b = ReduceMean<axes=[1,2], keepdims=0>(a) d = Unsqueeze(b, i64([1,2]))"
            f" e = Sigmoid(d) f = Mul(a, e) y = {TO_FIRST}(f)"
        ),
        (
            "b = ReduceMean<axes=[2,3], keepdims=0>(x) d = Reshape(b, i64([0,4,1,1]))"
            " e = Sigmoid(d) y = Mul(x, e)"
        ),
    ),
    (
        "shares-one-transpose",
        (
            "a = Reshape(seq, i64([0,2,3,4])) b = Transpose<perm=[0,3,1,2]>(a) y = Relu(b)"
            " d = Reshape(seq, i64([0,3,2,4])) e = Transpose<perm=[0,3,1,2]>(d) y2 = Relu(e)"
        ),
        (
            "a = Transpose<perm=[0,2,1]>(seq) b = Reshape(a, i64([0,4,2,3])) y = Relu(b)"
            " e = Reshape(a, i64([0,4,3,2])) y2 = Relu(e)"
        ),
    ),
    (
        "copies-two-open-dims",
        (
            "a = Transpose<perm=[0,2,1]>(rows) b = Shape(a) d = Concat<axis=0>(b, i64([1]))"
            " e = Reshape(a, d) f = Relu(e) y = Transpose<perm=[0,2,1,3]>(f)"
        ),
        "a = Reshape(rows, i64([0,0,0,1])) y = Relu(a)",
    ),
    (
        "slice-told-in-int32",
        f"a = {TO_LAST}(x) b = Slice(a, i32([0]), i32([2]), i32([3])) y = {TO_FIRST}(b)",
        "y = Slice(x, i32([0]), i32([2]), i32([1]))",
    ),
    (
        "slice-of-the-first-axes-in-int32",
        f"a = {TO_LAST}(x) b = Slice(a, i32([0,1]), i32([2,3])) y = {TO_FIRST}(b)",
        "y = Slice(x, i32([0,1]), i32([2,3]), i32([0,2]))",
    ),
    (
        "less-after-slice",
        (
            f"a = {TO_LAST}(x) b = Slice(a, i64([0]), i64([99]), i64([1]), i64([2]))"
            " y = MatMul(b, f32(ones(4,2)))"
        ),
        (
            f"a = Slice(x, i64([0]), i64([99]), i64([2]), i64([2])) b = {TO_LAST}(a)"
            " y = MatMul(b, f32(ones(4,2)))"
        ),
    ),
]
VIEWS_THAT_STAY = [
    (
        "maybe-empty",
        (
            f"a = {TO_LAST}(x) n = Shape<end=1>(x) h = Shape<start=2, end=3>(x) v = Shape<start=3>(x)"
            " p = Mul(h, v) t = Concat<axis=0>(n, p, i64([4])) b = Reshape(a, t) d = Relu(b)"
            " y = Transpose<perm=[0,2,1]>(d)"
        ),
    ),
    ("falls-apart", f"a = {TO_LAST}(x) b = Reshape(a, i64([0,0,-1])) d = Relu(b) y = Softmax(d)"),
    (
        "other-parts",
        (
            "a = Reshape(long, i64([0,2,6,4])) b = Transpose<perm=[0,3,1,2]>(a) y = Softmax<axis=1>(b)"
            " d = Reshape(long, i64([0,2,2,3,4])) e = Transpose<perm=[0,4,1,2,3]>(d) y2 = Softmax<axis=1>(e)"
        ),
    ),
]
ARRANGED = [
    (
        "between-convs",
        "a = Conv(x, w) b = Relu(a) d = Mul(b, c_first) y = Conv(d, w)",
        (f"a = Conv(x, w) b = {TO_LAST}(a) d = Relu(b) e = Mul(d, _) f = {TO_FIRST}(e) y = Conv(f, w)"),
    ),
    (
        "to-the-outputs",
        "a = Conv(x, w) b = MaxPool<kernel_shape=[1,1]>(a) y = Sigmoid(b)",
        (
            f"a = Conv(x, w) b = MaxPool<kernel_shape=[1,1]>(a) d = {TO_LAST}(b) e = Sigmoid(d)"
            f" y = {TO_FIRST}(e)"
        ),
    ),
    (
        "through-views",
        "a = Conv(x, w) b = Reshape(a, i64([0,4,-1])) d = Relu(b) y = Transpose<perm=[0,2,1]>(d)",
        f"a = Conv(x, w) b = {TO_LAST}(a) d = Reshape(b, i64([0,15,4])) y = Relu(d)",
    ),
]


ROWS = [
    *rows(LAYOUT, IMAGE, SEVERAL_ORDERS),
    *rows(LAYOUT, OPEN, VIEWS),
    *rows(ARRANGE, LAST, ARRANGED),
    *rows(
        LAYOUT,
        Setup(LARGE, settings=Settings(fp="fast", growth=None, objective="latency")),
        [
            (
                "two-small-ones-are-faster",
                SLICES,
                (
                    f"b = Slice(x, i64([0]), i64([8]), i64([2])) e = {TO_LAST}(b)"
                    f" d = Slice(x, i64([64]), i64([72]), i64([3])) f = {TO_LAST}(d)"
                    " y = MatMul(e, f32(ones(16,2))) y2 = MatMul(f, f32(ones(16,2)))"
                ),
            )
        ],
    ),
    *rows(
        ARRANGE,
        FIRST,
        [
            (
                "out-of-the-inputs",
                f"a = {TO_LAST}(x) b = Relu(a) d = {TO_FIRST}(b) e = Conv(d, w) y2 = Sigmoid(a) y = Relu(e)",
                f"b = Relu(x) f = Sigmoid(x) y2 = {TO_LAST}(f) e = Conv(b, w) y = Relu(e)",
            )
        ],
    ),
]

test_rows = table_test(ROWS)


def test_images_of_one_pixel_are_in_every_layout() -> None:
    for setup in (FIRST, LAST):
        model = setup.model("a = GlobalAveragePool(x) b = Relu(a) y = Conv(b, f32(normal(4,4,1,1)))")
        assert not ARRANGE.run(Context(model, setup.settings))


def test_nothing_better_means_no_change() -> None:
    stay = [(Setup(LARGE), "two-for-one", SLICES), *((OPEN, *row) for row in VIEWS_THAT_STAY)]
    for setup, name, text in stay:
        model = setup.model(text)
        before = dump(model)
        assert not LAYOUT.run(Context(model)), name
        assert dump(model) == before, name
