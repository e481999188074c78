"""RotaryEmbedding spelled out."""

from __future__ import annotations

import numpy as np
from harness import Setup, rows, table_test

from passes.rotary import fuse_rotary_embedding, fuse_turned_parts, turn_only_first_elements

ANGLES = np.random.default_rng(3).standard_normal((5, 4)).astype(np.float32)
TABLE = np.concatenate([ANGLES, ANGLES], axis=1)
TURN = Setup(
    "float[B,3,5,8] x, float[5,4] a, float[B,5,8] full, double[B,3,5,8] xx",
    opset=23,
    rtol=1e-5,
    constants={"cos": np.cos(TABLE), "sin": np.sin(TABLE)},
    sizes=[{"B": 2}, {"B": 1}],
)
ONE = Setup(
    "float[1,3,5,8] x, float[5,4] a, int64[1,5] ids, float[1,1,5,8] given",
    opset=23,
    rtol=1e-5,
    constants=TURN.constants,
    feeds={"ids": np.array([[4, 1, 1, 0, 2]])},
)
OLD_TURN = Setup("float[1,3,5,8] x", opset=17, constants=TURN.constants)
IN_TURNS = {"cos": np.cos(ANGLES).repeat(2, 1), "sin": np.sin(ANGLES).repeat(2, 1)}
NEIGHBOURS = Setup(ONE.inputs, opset=23, rtol=1e-5, constants=IN_TURNS, feeds=ONE.feeds)
PARTS = Setup(
    "float[B,3,S,8] x, float[B,1,S,4] cos, float[B,1,S,4] sin, float[B,S,4] c, float[B,S,4] s, "
    "float[B,3,S,2] rest, float[B,S,2] c2, float[B,S,2] s2",
    opset=23,
    rtol=1e-5,
    sizes=[{"B": 2, "S": 5}, {"B": 1, "S": 1}],
)
HALVES = (
    "l = Slice(x, i64([0]), i64([4]), i64([3])) r = Slice(x, i64([4]), i64([99]), i64([3])) n = Neg(r) "
    "t = Concat<axis=-1>(n, l) "
)
SUM = "p = Mul(x, {0}) q = Mul(t, {1}) y = Add(p, q)"
TAKEN = (
    "e = Slice(x, i64([0]), i64([99]), i64([3]), i64([2])) "
    "o = Slice(x, i64([1]), i64([99]), i64([3]), i64([2])) "
)
PAIRS = TAKEN + (
    "n = Neg(o) n1 = Unsqueeze(n, i64([4])) e1 = Unsqueeze(e, i64([-1])) w = Concat<axis=-1>(n1, e1) "
    "t = Reshape(w, i64([0,0,0,8])) "
)
LEFT_RIGHT = "e, o = Split<axis=3, num_outputs=2>(x) "
TURN_PARTS = "a = Mul(e, cos) b = Mul(o, sin) d = Sub(a, b) f = Mul(o, cos) g = Mul(sin, e) h = Add(g, f) "
STACK = "d1 = Unsqueeze(d, i64([4])) h1 = Unsqueeze(h, i64([4])) w = Concat<axis=4>(d1, h1) "
ANGLES_OF_TOKENS = "c3 = Reshape(cos, i64([0,-1,4])) s3 = Reshape(sin, i64([0,-1,4])) "

ROWS = [
    *rows(
        fuse_rotary_embedding,
        ONE,
        [
            (
                "constants",
                HALVES + SUM.format("cos", "sin"),
                "c = Reshape(_, i64([1,5,4])) s = Reshape(_, i64([1,5,4])) y = RotaryEmbedding(x, c, s)",
            ),
            (
                "angles",
                HALVES
                + "f = Concat<axis=-1>(a, a) u = Unsqueeze(f, i64([0,1])) c = Cos(u) s = Sin(u) "
                + SUM.format("c", "s"),
                (
                    "c = Cos(a) d = Reshape(c, i64([1,5,4])) s = Sin(a) e = Reshape(s, i64([1,5,4])) "
                    "y = RotaryEmbedding(x, d, e)"
                ),
            ),
            (
                "table",
                HALVES + "g = Gather(cos, ids) c = Unsqueeze(g, i64([1])) h = Gather(sin, ids) "
                "s = Unsqueeze(h, i64([1])) " + SUM.format("c", "s"),
                "c = Gather<axis=0>(_, ids) s = Gather<axis=0>(_, ids) y = RotaryEmbedding(x, c, s)",
            ),
            (
                "split",
                "l, r = Split<axis=3, num_outputs=2>(x) n = Neg(r) t = Concat<axis=3>(n, l) "
                + SUM.format("cos", "sin"),
                "c = Reshape(_, i64([1,5,4])) s = Reshape(_, i64([1,5,4])) y = RotaryEmbedding(x, c, s)",
            ),
        ],
        [
            (
                "thirds",
                "l = Slice(x, i64([0]), i64([3]), i64([3])) r = Slice(x, i64([3]), i64([99]), i64([3])) "
                "n = Neg(r) t = Concat<axis=-1>(n, l) " + SUM.format("cos", "sin"),
                "the parts are not the halves",
            ),
            (
                "stepped",
                "l = Slice(x, i64([0]), i64([8]), i64([3]), i64([2])) "
                "r = Slice(x, i64([0]), i64([8]), i64([3]), i64([2])) n = Neg(r) t = Concat<axis=-1>(n, l) "
                + SUM.format("cos", "sin"),
                "the parts are not the halves",
            ),
            (
                "unequal-split",
                "l, r = Split<axis=3>(x, i64([3,5])) n = Neg(r) t = Concat<axis=3>(n, l) "
                + SUM.format("cos", "sin"),
                "the parts are not the halves",
            ),
            (
                "halves-of-tokens",
                "l = Slice(x, i64([0]), i64([4]), i64([2])) r = Slice(x, i64([4]), i64([5]), i64([2])) "
                "n = Neg(r) t = Concat<axis=2>(n, l) " + SUM.format("cos", "sin"),
                "nothing is turned",
            ),
            (
                "of-another",
                HALVES + "o = Relu(x) p = Mul(o, cos) q = Mul(t, sin) y = Add(p, q)",
                "the parts are not those of one value",
            ),
            (
                "neighbours-with-halves-of-angles",
                PAIRS + SUM.format("cos", "sin"),
                "the halves differ",
            ),
            ("unequal", HALVES + SUM.format("f32(normal(5,8))", "sin"), "the halves differ"),
            ("given", HALVES + SUM.format("given", "sin"), "the halves differ"),
            ("per-head", HALVES + SUM.format("f32(ones(3,5,8))", "sin"), "the angles differ between heads"),
            (
                "one-for-all",
                HALVES + SUM.format("f32(ones(1,8))", "sin"),
                "there is not one angle for each token",
            ),
        ],
    ),
    *rows(
        fuse_rotary_embedding,
        TURN,
        [
            (
                "batch",
                HALVES
                + "f = Concat<axis=-1>(a, a) u = Unsqueeze(f, i64([0,1])) c = Cos(u) s = Sin(u) "
                + SUM.format("c", "s"),
                (
                    "b = Shape<start=0, end=1>(x) c = Cos(a) d = Reshape(c, i64([1,5,4])) g = "
                    "Concat<axis=0>(b, i64([1,1])) "
                    "k = Expand(d, g) b2 = Shape<start=0, end=1>(x) s = Sin(a) e = Reshape(s, i64([1,5,4])) "
                    "h = Concat<axis=0>(b2, i64([1,1])) j = Expand(e, h) y = RotaryEmbedding(x, k, j)"
                ),
            )
        ],
        [
            (
                "double",
                HALVES.replace("(x,", "(xx,")
                + "p = Mul(xx, f64(ones(5,8))) q = Mul(t, f64(ones(5,8))) y = Add(p, q)",
                "not float32 or float16",
            ),
            (
                "three-axes",
                (
                    "l = Slice(full, i64([0]), i64([4]), i64([2])) r = Slice(full, i64([4]), "
                    "i64([8]), i64([2])) "
                    "n = Neg(r) t = Concat<axis=2>(n, l) p = Mul(full, cos) q = Mul(t, sin) y = Add(p, q)"
                ),
                "not four axes, the last one even",
            ),
        ],
    ),
    *rows(
        fuse_rotary_embedding,
        OLD_TURN,
        (),
        [("old", HALVES + SUM.format("cos", "sin"), "RotaryEmbedding needs opset 23")],
    ),
    *rows(
        fuse_rotary_embedding,
        NEIGHBOURS,
        [
            (
                "neighbours",
                PAIRS + SUM.format("cos", "sin"),
                (
                    "c = Reshape(_, i64([1,5,4])) s = Reshape(_, i64([1,5,4])) "
                    "y = RotaryEmbedding<interleaved=1>(x, c, s)"
                ),
            ),
            (
                "neighbours-repeated",
                PAIRS
                + "u = Unsqueeze(a, i64([2])) f = Expand(u, i64([5,4,2])) r = Reshape(f, i64([5,8])) "
                + "c = Cos(r) s = Sin(r) "
                + SUM.format("c", "s"),
                (
                    "c = Cos(a) d = Reshape(c, i64([1,5,4])) s = Sin(a) e = Reshape(s, i64([1,5,4])) "
                    "y = RotaryEmbedding<interleaved=1>(x, d, e)"
                ),
            ),
        ],
    ),
    *rows(
        fuse_turned_parts,
        PARTS,
        [
            (
                "halves",
                LEFT_RIGHT + TURN_PARTS + "y = Concat<axis=-1>(d, h)",
                "co = Squeeze(cos, i64([1])) si = Squeeze(sin, i64([1])) y = RotaryEmbedding(x, co, si)",
            ),
            (
                "neighbours",
                "co = Unsqueeze(c, i64([1])) si = Unsqueeze(s, i64([1])) "
                + TAKEN
                + TURN_PARTS.replace("cos", "co").replace("sin", "si")
                + STACK
                + "y = Reshape(w, i64([0,0,0,8]))",
                "y = RotaryEmbedding<interleaved=1>(x, c, s)",
            ),
            (
                "neighbours-of-a-view",
                "co = Unsqueeze(c, i64([1])) si = Unsqueeze(s, i64([1])) v = Reshape(x, i64([0,0,0,4,2])) "
                "e = Gather<axis=4>(v, i64(0)) o = Gather<axis=-1>(v, i64(1)) "
                + TURN_PARTS.replace("cos", "co").replace("sin", "si")
                + STACK
                + "y = Reshape(w, i64([0,0,0,8]))",
                "y = RotaryEmbedding<interleaved=1>(x, c, s)",
            ),
        ],
        [
            (
                "along-heads",
                LEFT_RIGHT + TURN_PARTS + "y = Concat<axis=1>(d, h)",
                "another axis is turned",
            ),
            (
                "no-parts",
                TURN_PARTS.replace("e,", "rest,").replace("(o", "(cos").replace("sin, e", "sin, rest")
                + "y = Concat<axis=-1>(d, h)",
                "the parts are not those of one value",
            ),
            (
                "neighbours-as-halves",
                TAKEN + TURN_PARTS + "y = Concat<axis=-1>(d, h)",
                "the parts are not the halves",
            ),
        ],
    ),
    *rows(
        turn_only_first_elements,
        PARTS,
        [
            (
                "half-of-them",
                (
                    "e, o = Split<axis=3>(x, i64([4,4])) r = RotaryEmbedding<interleaved=1>(e, c2, s2) "
                    "y = Concat<axis=3>(r, o)"
                ),
                "y = RotaryEmbedding<interleaved=1, rotary_embedding_dim=4>(x, c2, s2)",
            ),
        ],
        [
            (
                "others-first",
                "e, o = Split<axis=3>(x, i64([4,4])) r = RotaryEmbedding(o, c2, s2) y = Concat<axis=3>(r, e)",
                "the parts are not those of one value",
            )
        ],
    ),
]

test_rows = table_test(ROWS)
