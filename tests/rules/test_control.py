"""Control flow that is decided, sequences and optionals that are taken apart again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from harness import Setup, rows, table_test

from optimizer.rewrite import Context, Settings
from passes.control import CONTROL
from passes.fold import BIND
from passes.sequence import (
    ask_new_optional,
    count_new_sequence,
    drop_get_of_tensor,
    erase_from_new_sequence,
    insert_into_new_sequence,
    join_new_sequence,
    join_split_sequence,
    take_from_new_optional,
    take_from_new_sequence,
    take_from_split,
)

X = Setup(
    "float[N,4] x, float[4] z, bool c, int64 m, int64[K] k",
    feeds={"m": np.array(2)},
    imports='"own" : 1',
    settings=Settings(growth=None, objective="latency"),
)
BALANCED = Setup("float[N,4] x, float[3] k")


def if_(condition: str, then: str, other: str) -> str:
    return (
        f"y = If({condition}) <then_branch = p () => (float[N,4] o) {{ {then} }}, "
        f"else_branch = q () => (float[N,4] r) {{ {other} }}>"
    )


def loop(trips: str, going: str, step: str, scan: str = "") -> str:
    made, result = (", y2", ", float[N,4] s") if scan else ("", "")
    return (
        f"y{made} = Loop({trips}, {going}, x) <body = b (int64 i, bool g, float[N,4] v) => "
        f"(bool g2, float[N,4] v2{result}) {{ {step} {scan} }}>"
    )


def scan(source: str, settings: str = "") -> str:
    settings = f", {settings}" if settings else ""
    return (
        f"y, y2 = Scan<num_scan_inputs=1{settings}, body = b (float[4] p, float[4] e) => "
        f"(float[4] p2, float[4] o) {{ p2 = Add(p, e) o = Mul(p, e) }}>(s, {source})"
    )


ON = "g2 = Identity(g) v2 = Mul(v, v)"
LONG = "g2 = Identity(g) a = Exp(v) b = Neg(a) d = Abs(b) v2 = Mul(v, d)"
UNSQUEEZE = "r{0} = Unsqueeze(v{0}, i64([0])) "

ROWS = [
    *rows(
        CONTROL,
        X,
        [
            ("then", if_("bool(true)", "o = Relu(x)", "r = Neg(x)"), "y = Relu(x)"),
            ("else", if_("bool(false)", "o = Relu(x)", "r = Neg(x)"), "y = Neg(x)"),
            (
                "inferred",
                "s = Shape(x) n = Size(s) t = Equal(n, i64(2)) " + if_("t", "o = Relu(x)", "r = Neg(x)"),
                "y = Relu(x)",
            ),
            (
                "nested-with-constants",
                if_(
                    "bool(true)",
                    "f = Constant<value=float[1]{2}>() w = Mul(x, f) "
                    + if_("c", "o = Add(w, x)", "r = Neg(w)")
                    .replace("y =", "o =")
                    .replace("(float[N,4] o) { o", "(float[N,4] o3) { o3"),
                    "r = Neg(x)",
                ),
                "w = Mul(x, f32([2])) " + if_("c", "o = Add(w, x)", "r = Neg(w)"),
            ),
            (
                "equal-branches",
                if_(
                    "c",
                    "f = Constant<value=float[1]{2}>() o = Mul(x, f)",
                    "h = Constant<value=float[1]{2}>() r = Mul(x, h)",
                ),
                "y = Mul(x, f32([2]))",
            ),
            (
                "equal-inner-names",
                if_("bool(true)", "a = Exp(x) o = Neg(a)", "r = Neg(x)")
                + if_("bool(true)", "a = Abs(x) o = Neg(a)", "r = Neg(x)").replace("y =", " y2 ="),
                "a = Exp(x) y = Neg(a) b = Abs(x) y2 = Neg(b)",
            ),
            ("no-trips", loop("i64(0)", "bool(true)", ON), "y = Identity(x)"),
            ("never-starts", loop("m", "bool(false)", ON), "y = Identity(x)"),
            ("three-trips", loop("i64(3)", "bool(true)", ON), "a = Mul(x, x) b = Mul(a, a) y = Mul(b, b)"),
            ("one-trip", loop("i64(1)", "", "g2 = Not(g) v2 = Mul(v, v)"), "y = Mul(x, x)"),
            (
                "scan",
                loop("i64(2)", "", ON, "s = Neg(v)"),
                (
                    "a = Mul(x, x) y = Mul(a, a) b = Neg(x) d = Unsqueeze(b, i64([0])) e = Neg(a) "
                    "f = Unsqueeze(e, i64([0])) y2 = Concat<axis=0>(d, f)"
                ),
            ),
            (
                "counts",
                loop("i64(2)", "", "g2 = Identity(g) f = Cast<to=1>(i) v2 = Add(v, f)"),
                "a = Cast<to=1>(i64(0)) b = Add(x, a) d = Cast<to=1>(i64(1)) y = Add(b, d)",
            ),
        ],
        [
            ("unknown", if_("c", "o = Relu(x)", "r = Neg(x)"), "the condition is not known"),
            (
                "unlike",
                if_("c", "o = LeakyRelu<alpha=0.1>(x)", "r = LeakyRelu<alpha=0.2>(x)"),
                "the condition is not known",
            ),
            (
                "random",
                if_("c", "o = RandomNormalLike(x)", "r = RandomNormalLike(x)"),
                "the condition is not known",
            ),
            ("trips", loop("m", "bool(true)", ON), "how often it runs is not known"),
            ("condition", loop("i64(2)", "c", ON), "how often it runs is not known"),
            ("stops", loop("i64(2)", "", "g2 = Not(g) v2 = Mul(v, v)"), "it may stop early"),
            ("long", loop("i64(9)", "", ON), "unrolled it would have more nodes"),
            (
                "empty-scan",
                loop("i64(0)", "", ON, "s = Neg(v)"),
                "the shape of an empty scan output is not known",
            ),
        ],
    ),
    *rows(
        CONTROL,
        BALANCED,
        [
            ("once", loop("i64(1)", "bool(true)", ON), "y = Mul(x, x)"),
            ("as-many", loop("i64(3)", "bool(true)", ON), "a = Mul(x, x) b = Mul(a, a) y = Mul(b, b)"),
        ],
        [("grows", loop("i64(4)", "bool(true)", ON), "unrolled it would have more nodes")],
    ),
    *rows(
        CONTROL,
        replace(BALANCED, settings=Settings(objective="latency")),
        [
            ("a-few-more", loop("i64(2)", "bool(true)", ON), "a = Mul(x, x) y = Mul(a, a)"),
            (
                "counted-by-inference",
                "s = Shape(k) n = Gather(s, i64(0)) " + loop("n", "bool(true)", ON),
                "a = Mul(x, x) b = Mul(a, a) y = Mul(b, b)",
            ),
        ],
    ),
    *rows(
        CONTROL,
        Setup("float[N,4] x", settings=Settings(objective="nodes")),
        [],
        [("grows", loop("i64(4)", "bool(true)", ON), "unrolled it would have more nodes")],
    ),
    *rows(
        CONTROL,
        Setup("float[N,4] x", settings=Settings(objective="latency", growth=8)),
        [],
        [
            (
                "heavy",
                loop(
                    "i64(2)",
                    "",
                    "g2 = Identity(g) k = Constant<value_floats=[1.0, 2.0, 3.0, 4.0]>() v2 = Add(v, k)",
                ),
                "its constants would exceed the size limit",
            )
        ],
    ),
    *rows(
        CONTROL,
        Setup(
            "float[4] s, float[2,4] x, float[4,2] w, float[T,4] v",
            settings=Settings(objective="latency", growth=None),
        ),
        [
            (
                "scan",
                scan("x"),
                (
                    "a = Gather<axis=0>(x, i64(0)) b = Add(s, a) d = Mul(s, a) e = Unsqueeze(d, i64([0])) "
                    "f = Gather<axis=0>(x, i64(1)) y = Add(b, f) h = Mul(b, f) i = Unsqueeze(h, i64([0])) "
                    "y2 = Concat<axis=0>(e, i)"
                ),
            ),
            (
                "scan-of-other-axes-backwards",
                scan(
                    "w",
                    "scan_input_axes=[1], scan_output_axes=[1], scan_input_directions=[1],"
                    " scan_output_directions=[1]",
                ),
                (
                    "a = Gather<axis=1>(w, i64(1)) b = Add(s, a) d = Mul(s, a) e = Unsqueeze(d, i64([1])) "
                    "f = Gather<axis=1>(w, i64(0)) y = Add(b, f) h = Mul(b, f) i = Unsqueeze(h, i64([1])) "
                    "y2 = Concat<axis=1>(i, e)"
                ),
            ),
        ],
        [
            ("unknown-length", scan("v"), "how often it runs is not known"),
            ("from-the-end", scan("x", "scan_input_axes=[-2]"), "an axis is counted from the end"),
        ],
    ),
    *rows(
        CONTROL,
        Setup("float[1,4] s, float[1,2,4] x", opset=8, ort=False),
        [],
        [
            (
                "scan-8",
                scan("x").replace("(s,", "(, s,"),
                "it is of the form before opset 9",
            )
        ],
    ),
    *rows(
        CONTROL,
        Setup("float[3] x"),
        [
            (
                "empty-scan",
                loop("i64(0)", "", ON, "s = Neg(v)").replace("N,4", "3"),
                "y = Identity(x) y2 = Identity(f32(zeros(0, 3)))",
            )
        ],
    ),
    *rows(
        BIND,
        X,
        [
            (
                "small",
                "a = Add(x, z) " + if_("c", "o = Mul(a, f32([2]))", "r = Neg(a)"),
                "a = Add(x, z) " + if_("c", "f = Constant<value=float[1]{2}>() o = Mul(a, f)", "r = Neg(a)"),
            )
        ],
    ),
    *rows(
        take_from_new_sequence,
        X,
        [("at", "q = SequenceConstruct(x, z) b = SequenceAt(q, i64(-2)) y = Relu(b)", "y = Relu(x)")],
        [("outside", "q = SequenceConstruct(x, z) y = SequenceAt(q, i64(2))", "the index is out of range")],
    ),
    *rows(
        count_new_sequence,
        X,
        [("two", "q = SequenceConstruct(x, z) b = SequenceLength(q) y = Neg(b)", "y = Neg(i64(2))")],
    ),
    *rows(
        join_new_sequence,
        X,
        [
            (
                "joined",
                "q = SequenceConstruct(x, x) y = ConcatFromSequence<axis=1>(q)",
                "y = Concat<axis=1>(x, x)",
            )
        ],
        [
            (
                "stacked",
                "q = SequenceConstruct(x, x) y = ConcatFromSequence<axis=1, new_axis=1>(q)",
                "the tensors are stacked, not joined",
            )
        ],
    ),
    *rows(
        insert_into_new_sequence,
        X,
        [
            (
                "end",
                "q = SequenceConstruct(x, x) p = SequenceInsert(q, z) y = SequenceAt(p, m)",
                "p = SequenceConstruct(x, x, z) y = SequenceAt(p, m)",
            ),
            (
                "front",
                "q = SequenceConstruct(x, x) p = SequenceInsert(q, z, i64(0)) y = SequenceAt(p, m)",
                "p = SequenceConstruct(z, x, x) y = SequenceAt(p, m)",
            ),
            (
                "empty",
                "q = SequenceEmpty() p = SequenceInsert(q, z) y = SequenceLength(p)",
                "p = SequenceConstruct(z) y = SequenceLength(p)",
            ),
        ],
        [
            (
                "outside",
                "q = SequenceConstruct(x, x) p = SequenceInsert(q, z, i64(3)) y = SequenceAt(p, m)",
                "the index is out of range",
            )
        ],
    ),
    *rows(
        take_from_split,
        X,
        [
            (
                "single",
                "q = SplitToSequence<axis=1, keepdims=0>(x) a = SequenceAt(q, i64(3)) y = Relu(a)",
                "a = Gather<axis=1>(x, i64(3)) y = Relu(a)",
            ),
            (
                "kept-axis",
                "q = SplitToSequence<axis=1>(x) y = SequenceAt(q, i64(3))",
                "y = Slice(x, i64([3]), i64([4]), i64([1]))",
            ),
            (
                "equal-pieces",
                "q = SplitToSequence<axis=-1>(x, i64(3)) y = SequenceAt(q, i64(1))",
                "y = Slice(x, i64([3]), i64([6]), i64([-1]))",
            ),
            (
                "given-sizes",
                "q = SplitToSequence<axis=1>(x, i64([1, 2, 1])) y = SequenceAt(q, i64(1))",
                "y = Slice(x, i64([1]), i64([3]), i64([1]))",
            ),
        ],
        [
            (
                "from-the-end",
                "q = SplitToSequence<axis=1>(x) y = SequenceAt(q, i64(-1))",
                "the piece is counted from the end",
            ),
            (
                "outside",
                "q = SplitToSequence<axis=1>(x, i64([1, 3])) y = SequenceAt(q, i64(2))",
                "the index is out of range",
            ),
        ],
    ),
    *rows(
        erase_from_new_sequence,
        X,
        [
            (
                "middle",
                "q = SequenceConstruct(x, z, x, z) p = SequenceErase(q, i64(1)) y = SequenceAt(p, m)",
                "p = SequenceConstruct(x, x, z) y = SequenceAt(p, m)",
            ),
            (
                "last",
                "q = SequenceConstruct(x, z, x, z) p = SequenceErase(q) y = SequenceAt(p, m)",
                "p = SequenceConstruct(x, z, x) y = SequenceAt(p, m)",
            ),
        ],
        [
            (
                "outside",
                "q = SequenceConstruct(x, z) p = SequenceErase(q, i64(2)) y = SequenceAt(p, m)",
                "the index is out of range",
            ),
            (
                "only",
                "q = SequenceConstruct(x) p = SequenceErase(q) y = SequenceLength(p)",
                "nothing would be left of the sequence",
            ),
        ],
    ),
    *rows(
        join_split_sequence,
        X,
        [
            (
                "same-axis",
                "q = SplitToSequence<axis=1>(x) a = ConcatFromSequence<axis=-1>(q) y = Relu(a)",
                "y = Relu(x)",
            ),
            (
                "stacked-again",
                "q = SplitToSequence<keepdims=0>(x) a = ConcatFromSequence<axis=0, new_axis=1>(q) y = Neg(a)",
                "y = Neg(x)",
            ),
        ],
        [
            (
                "other-axis",
                "q = SplitToSequence<axis=1>(x) y = ConcatFromSequence<axis=0>(q)",
                "the pieces are joined along another axis",
            ),
            (
                "new-axis",
                "q = SplitToSequence<axis=1>(x) y = ConcatFromSequence<axis=1, new_axis=1>(q)",
                "the axis is dropped, or there is a new one",
            ),
        ],
    ),
    *rows(
        drop_get_of_tensor,
        replace(X, opset=18),
        [("tensor", "a = OptionalGetElement(x) y = Relu(a)", "y = Relu(x)")],
        [("optional", "q = Optional(x) y = OptionalGetElement(q)", "it may be an optional")],
    ),
    *rows(
        take_from_new_optional,
        X,
        [("get", "q = Optional(x) b = OptionalGetElement(q) y = Relu(b)", "y = Relu(x)")],
    ),
    *rows(
        ask_new_optional,
        X,
        [("has", "q = Optional(x) b = OptionalHasElement(q) y = Not(b)", "y = Not(bool(true))")],
    ),
]

test_rows = table_test(ROWS)


def test_inlined_values_keep_their_names_where_these_are_free() -> None:
    text = if_("bool(true)", "a = Exp(x) o = Neg(a)", "r = Neg(x)")
    model = X.model(text + if_("bool(true)", "a = Abs(x) o = Neg(a)", "r = Neg(x)").replace("y =", " y2 ="))
    CONTROL.run(Context(model, X.settings))
    names = {node.op_type: node.outputs[0].name for node in model.graph.nodes}
    assert sorted([names["Exp"], names["Abs"]]) == ["", "a"]
