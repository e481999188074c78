"""Attention with the keys and values of earlier tokens."""

from __future__ import annotations

from harness import Setup, rows, table_test

from optimizer.rewrite import Settings
from passes.attention_cache import give_cache_to_attention, replace_mask_by_is_causal

FULL = Settings(fp="fast", growth=None, nonzero_dims=True)
INPUTS = (
    "float[B,4,S,8] q, float[B,2,S,8] k, float[B,2,S,8] v, float[B,2,P,8] pk, float[B,2,P,8] pv, "
    "float[S,T] mask, float[B,S,16] flat, float[B,S,4] cos, float[B,S,4] sin"
)
SIZES = [{"B": 2, "S": 3, "P": 5, "T": 8}, {"B": 1, "S": 1, "P": 2, "T": 3}]
CACHE = Setup(INPUTS, opset=23, settings=FULL, sizes=SIZES, rtol=1e-4)
MAYBE_EMPTY = Setup(INPUTS, opset=23, sizes=SIZES)
ALL = "ak = Concat<axis=2>(pk, k) av = Concat<axis=-2>(pv, v) "
GIVEN = "y, nk, nv = Attention(q, k, v, {}, pk, pv)"
READ = " y2 = Relu(nk) y3 = Relu(nv)"
PLACES = (
    "p = Shape<start=2, end=3>(pk) p0 = Squeeze(p) s = Shape<start=2, end=3>(k) s0 = Squeeze(s) "
    "n = Add(p0, s0) i = Range({}, n, i64(1)) i1 = Unsqueeze(i, i64([1])) "
    "j = Range(i64(0), n, i64(1)) j1 = Unsqueeze(j, i64([0])) "
)

ROWS = [
    *rows(
        give_cache_to_attention,
        CACHE,
        [
            (
                "masked",
                ALL + "y = Attention(q, ak, av, mask) y2 = Relu(ak) y3 = Relu(av)",
                GIVEN.format("mask") + " y2 = Relu(nk) y3 = Relu(nv)",
            ),
        ],
        [
            (
                "causal",
                ALL + "y = Attention<is_causal=1>(q, ak, av) y2 = Relu(ak) y3 = Relu(av)",
                "the mask counts from the first key",
            ),
            (
                "heads-joined",
                "ak = Concat<axis=1>(k, v) av = Concat<axis=1>(v, k) y = Attention(q, ak, av)",
                "it is not tokens that are joined",
            ),
            (
                "depends",
                ALL + "m = ReduceMax<keepdims=0>(ak) w = Add(mask, m) y = Attention(q, ak, av, w)",
                "it depends on all keys otherwise too",
            ),
            (
                "unread",
                ALL + "y = Attention(q, ak, av) y2 = Relu(ak)",
                "nothing else reads all keys and values",
            ),
            (
                "twice",
                ALL + "y, y2, y3 = Attention(q, ak, av) y4 = Relu(ak) y5 = Relu(av)",
                "it has a cache",
            ),
        ],
    ),
    *rows(
        give_cache_to_attention,
        MAYBE_EMPTY,
        (),
        [("empty", ALL + "y = Attention(q, ak, av)", "a tensor may be empty")],
    ),
    *rows(
        replace_mask_by_is_causal,
        CACHE,
        [
            (
                "seen",
                PLACES.format("p0") + "c = LessOrEqual(j1, i1) " + GIVEN.format("c") + READ,
                "y, nk, nv = Attention<is_causal=1>(q, k, v, , pk, pv)" + READ,
            ),
            (
                "hidden",
                PLACES.format("p0")
                + "c = Greater(j1, i1) w = Where(c, f32(-inf), f32(0)) "
                + GIVEN.format("w")
                + READ,
                "y, nk, nv = Attention<is_causal=1>(q, k, v, , pk, pv)" + READ,
            ),
        ],
        [
            ("given", GIVEN.format("mask"), "the mask is no condition"),
            (
                "equal-too",
                PLACES.format("p0") + "c = Less(j1, i1) " + GIVEN.format("c"),
                "it hides other keys than the later ones",
            ),
            (
                "other-place",
                PLACES.format("p0")
                + "p2 = Add(p0, i64(-1)) n2 = Add(n, i64(-1)) i2 = Range(p2, n2, i64(1)) "
                + "i3 = Unsqueeze(i2, i64([1])) c = LessOrEqual(j1, i3) "
                + GIVEN.format("c"),
                "it hides other keys than the later ones",
            ),
        ],
    ),
]

test_rows = table_test(ROWS)
