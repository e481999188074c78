"""Made-up inputs suit what reads them, and sizes are found that the model accepts."""

from __future__ import annotations

from collections.abc import Mapping

import ml_dtypes
import numpy as np
import pytest

from optimizer.analysis import SizeRange
from optimizer.io import load, parse, to_proto
from optimizer.ir import DType, Model
from optimizer.verify import FILLS, EngineError, FeedMaker, NoFeed, OnnxRuntime, find_sizes, make_feeds
from optimizer.verify.feeds import symbols_of
from optimizer.verify.purpose import Purpose
from optimizer.verify.values import Fill, make_values

HEAD = '<ir_version: 9, opset_import: ["" : 18]>'


def graph(text: str, **constants: np.ndarray) -> Model:
    return parse(f"{HEAD} g {text}", constants)


TABLE = np.zeros((50, 4), np.float32)


def test_token_ids_stay_within_their_table_and_differ_by_seed() -> None:
    model = graph(
        """(int64[B, S] ids, int64[S] position_ids) => (float[b, s, c] y) {
            i = Cast <to=6> (ids) u = Identity (i)
            a = Gather (t, u) p = Gather (t, position_ids) y = Add (a, p) }""",
        t=TABLE,
    )
    feeds = make_feeds(model, 0, {"B": 8, "S": 60})
    assert feeds["ids"].dtype == np.int64
    assert feeds["ids"].shape == (8, 60)
    assert (feeds["ids"].min(), feeds["ids"].max()) == (1, 49)
    assert feeds["position_ids"].tolist() == [*range(50), *range(10)]
    assert not np.array_equal(feeds["ids"], make_feeds(model, 1, {"B": 8, "S": 60})["ids"])
    assert np.array_equal(feeds["ids"], make_feeds(model, 0, {"B": 8, "S": 60})["ids"])


def test_ids_are_followed_into_bodies_and_functions() -> None:
    model = graph(
        """(int64[S] ids, bool c) => (float[s, d] y) {
            y = If (c) <then_branch = a () => (float[p, q] r) <float[3, 1] t = {1, 2, 3}>
                                      { r = Gather (t, ids) },
                        else_branch = e () => (float[p, q] o) <float[9, 1] t = {1,2,3,4,5,6,7,8,9}>
                                      { o = Gather (t, ids) }> }"""
    )
    ids = make_feeds(model, 0, {"S": 200})["ids"]
    assert ids.max() == 2
    called = parse(
        """<ir_version: 9, opset_import: ["" : 18, "f" : 1]>
        g (int64[S] ids) => (float[s, d] y) { y = f.look (ids) }
        <domain: "f", opset_import: ["" : 18]>
        look (i) => (o) { t = Constant <value = float[5, 1] {1, 2, 3, 4, 5}> () o = Gather (t, i) }"""
    )
    assert make_feeds(called, 0, {"S": 200})["ids"].max() <= 4


MASKS = [
    ("int64[B, S] attention_mask", "y = Cast <to=1> (attention_mask)"),
    ("bool[B, S] x", "y = Where (x, one, zero)"),
]


@pytest.mark.parametrize(("declared", "body"), MASKS)
def test_masks_are_ones_first_and_then_runs_of_ones(declared: str, body: str) -> None:
    model = graph(f"({declared}) => (float[b, s] y) <float one = {{1}}, float zero = {{0}}> {{ {body} }}")
    first, second = (next(iter(make_feeds(model, seed, {"B": 16, "S": 9}).values())) for seed in (0, 1))
    assert first.all()
    assert not second.all()
    assert second[:, 0].all()
    assert (np.diff(second.astype(int), axis=1) <= 0).all()


def test_shapes_choices_strings_sequences_and_bytes() -> None:
    model = graph(
        """(float[6] x, int64[2] shape, int64 rate, string[N] words, seq(float[N]) parts, uint8[N] raw)
            => (float[n, m] y, bool q) <int64 k = {16000}> { y = Expand (x, shape) q = Equal (rate, k) }"""
    )
    feeds = make_feeds(model, 0, {"N": 300})
    assert 1 <= feeds["shape"].min() <= feeds["shape"].max() <= 3
    assert feeds["rate"] == 16000
    assert feeds["words"].dtype == object
    assert [part.shape for part in feeds["parts"]] == [(300,), (300,)]
    assert feeds["raw"].max() > 200


def test_fills() -> None:
    model = graph("(float[N] x) => (float[N] y) { y = Relu (x) }")
    normal, uniform, positive = (
        FeedMaker(model).make(0, {"N": 1000}, fill)["x"] for fill in ("normal", "uniform", "positive")
    )
    assert normal.min() < -2
    assert 0 <= uniform.min() < uniform.max() < 1
    assert positive.min() >= 0.1


def test_another_input_does_not_move_the_first() -> None:
    one = graph("(float[N] x) => (float[N] y) { y = Relu (x) }")
    two = graph("(float[N] z, float[N] x) => (float[N] y) { y = Add (x, z) }")
    assert np.array_equal(make_feeds(one, 3, {"N": 5})["x"], make_feeds(two, 3, {"N": 5})["x"])


def test_a_default_is_left_alone_at_first_and_then_overridden() -> None:
    model = graph("(float[2] x, float[2] w) => (float[2] y) <float[2] w = {4, 8}> { y = Mul (x, w) }")
    assert list(make_feeds(model, 0)) == ["x"]
    assert make_feeds(model, 1)["w"].tolist() == [4.03125, 8.0625]


def test_a_map_cannot_be_made_up() -> None:
    model = graph("(map(int64, float) x) => (float[N] y) <float[1] c = {1}> { y = Relu (c) }")
    with pytest.raises(NoFeed, match="'x'"):
        make_feeds(model, 0)


def test_sizes_that_are_arithmetic_on_others_follow_them() -> None:
    model = graph("(float[P] a) => (float[Q] y) { y = Relu (a) }")
    info = model.graph.info(model.graph.inputs[0])
    other = model.graph.add_input("b")
    from dataclasses import replace

    from optimizer.ir import TensorType

    assert isinstance(info.type, TensorType)
    model.graph.set_attrs(
        other.node, outputs=[replace(info, name="b", type=replace(info.type, shape=("P + 1", None)))]
    )
    assert list(symbols_of(model)) == ["P", "b:1"]
    assert make_feeds(model, 0, {"P": 4, "b:1": 3})["b"].shape == (5, 3)


SIZES = [
    ("static", "(float[2, 3] x) => (float[a, b] y) { y = Relu (x) }", [{}]),
    ("batch", "(float[batch, 3] x) => (float[a, b] y) { y = Relu (x) }", [{"batch": 2}, {"batch": 1}]),
    (
        "distinct",
        "(float[b, s, t] x) => (float[o, p, q] y) { y = Relu (x) }",
        [{"b": 2, "s": 7, "t": 11}, {"b": 1, "s": 5, "t": 9}],
    ),
    (
        "multiples of 32",
        "(float[N, 32] z, float[M] x) => (float[p, q] y) <int64[2] s = {-1, 32}> { y = Reshape (x, s) }",
        [{"N": 1, "M": 32}, {"N": 1, "M": 64}],
    ),
]


@pytest.mark.parametrize(("text", "expected"), [r[1:] for r in SIZES], ids=[r[0] for r in SIZES])
def test_sizes_are_found(text: str, expected: list[dict[str, int]]) -> None:
    model = graph(text)
    engine, maker = OnnxRuntime(to_proto(model).SerializeToString()), FeedMaker(model)
    found = find_sizes(model, lambda sizes: engine.run(maker.make(0, sizes)))
    assert list(found.accepted) == expected


def test_weights_say_what_a_dim_must_be() -> None:
    model = graph(
        "(float[N, C, H, V] x) => (float[n, m, h, v] y) { y = Conv (x, w) }",
        w=np.ones((2, 5, 3, 3), np.float32),
    )
    seen = []
    find_sizes(model, lambda sizes: seen.append(dict(sizes)))
    assert seen == [{"N": 2, "C": 5, "H": 37, "V": 53}, {"N": 1, "C": 5, "H": 41, "V": 33}]


@pytest.mark.parametrize(
    ("limits", "tried"),
    [
        (SizeRange(divisor=8), [16, 8]),
        (SizeRange(8, 8), [8]),
        (SizeRange(0, 40, 20), [40, 20]),
        (SizeRange(1), [2, 1, 4]),
        (SizeRange(0, 0), [0]),
    ],
)
def test_sizes_keep_to_ranges_are_several_and_not_zero(limits: SizeRange, tried: list[int]) -> None:
    seen: list[int] = []
    model = graph("(float[batch, 4] x) => (float[batch, 4] y) { y = Relu (x) }")
    find_sizes(model, lambda sizes: seen.append(sizes["batch"]), 3, ranges={"batch": limits})
    assert seen == tried


def test_a_model_that_rejects_all_sizes() -> None:
    model = graph("(float[N] x) => (float[N] y) { y = Relu (x) }")

    def reject(sizes: object) -> None:
        raise EngineError("test", "run", "never")

    found = find_sizes(model, reject, tries=5)
    assert (found.accepted, found.tried) == ((), 5)
    assert "never" in found.reason


def test_quantization_steps_and_factors_of_a_resize_are_positive() -> None:
    model = graph(
        """(float[1, 3, 4, 4] x, float[4] factors, float step) => (float[a, b, c, d] y) {
            r = Resize (x, , factors) y = QuantizeLinear (r, step) }"""
    )
    for fill in FILLS:
        for seed in range(3):
            feeds = make_feeds(model, seed, fill=fill)
            assert feeds["factors"][:2].tolist() == [1, 1]
            assert {1, 2, 3} >= set(feeds["factors"].tolist())
            assert 0 < feeds["step"] < 1


FLOATS = [t for t in DType if t.is_float]


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda t: t.name)
def test_fills_of_floats(dtype: DType) -> None:
    def made(fill: Fill) -> np.ndarray:
        values = make_values(Purpose(), dtype, (40, 5), np.random.default_rng(0), fill=fill)
        assert (values.dtype, values.shape) == (dtype.numpy, (40, 5))
        return values.astype(np.float64)

    limits = ml_dtypes.finfo(dtype.numpy)
    assert set(np.unique(made("ones"))) == {1.0}
    if dtype is DType.FLOAT8E8M0:  # powers of two, without zero and signs
        assert all(np.isfinite(made(fill)).all() for fill in FILLS if fill != "nonfinite")
        return
    assert set(np.unique(made("zeros"))) == {0.0}
    large, low, edges = made("large"), made("denormal"), made("edges")
    assert min(96, float(limits.max)) <= abs(large).min() <= abs(large).max() <= float(limits.max)
    assert large.min() < 0 < large.max()
    assert abs(low).max() <= float(limits.smallest_normal)
    assert low.min() < 0 < low.max()
    assert {1.0, float(limits.max), -float(limits.max)} <= set(np.unique(edges))
    assert np.isfinite(edges).all()
    if not dtype.name.endswith("UZ"):  # which have one zero
        assert set(np.signbit(made("signed-zeros")).ravel()) == {False, True}
    strange = made("nonfinite")
    assert np.isnan(strange).any() == (dtype is not DType.FLOAT4E2M1)
    if dtype in (DType.FLOAT, DType.DOUBLE, DType.FLOAT16, DType.BFLOAT16, DType.FLOAT8E5M2):
        assert {np.inf, -np.inf} <= set(np.unique(strange))


@pytest.mark.parametrize("dtype", [t for t in DType if t.is_integer], ids=lambda t: t.name)
def test_fills_of_integers_reach_the_ends_of_the_type(dtype: DType) -> None:
    limits = ml_dtypes.iinfo(dtype.numpy)
    for fill, wanted in (("zeros", {0}), ("ones", {1}), ("large", {limits.min, limits.max})):
        made = make_values(Purpose(), dtype, (40,), np.random.default_rng(0), fill=fill)  # type: ignore[arg-type]
        assert {int(v) for v in made} == {int(v) for v in wanted}
    edges = make_values(Purpose(), dtype, (80,), np.random.default_rng(0), fill="edges")
    assert {int(limits.min), int(limits.max), 0, 1} <= {int(v) for v in edges}


@pytest.mark.parametrize("fill", FILLS)
def test_what_has_a_purpose_keeps_to_it_under_every_fill(fill: Fill) -> None:
    model = graph(
        """(int64[99] ids, int64[2] sizes, int64[7] position_ids, bool[9] m) => (float[b, c] y) {
            a = Gather (t, ids) p = Gather (t, position_ids) y = Expand (a, sizes) z = Where (m, p, p) }""",
        t=TABLE,
    )
    for seed in range(3):
        feeds = make_feeds(model, seed, fill=fill)
        assert 0 <= feeds["ids"].min() <= feeds["ids"].max() < 50
        assert feeds["position_ids"].tolist() == [*range(7)]
        assert 1 <= feeds["sizes"].min() <= feeds["sizes"].max() <= 3
    assert fill != "edges" or set(feeds["ids"].tolist()) == {0, 49}


@pytest.mark.parametrize("shape", ["1," * 69 + "1", "4611686018427387904,n", "9223372036854775807,0"])
def test_no_values_are_made_for_what_no_array_can_hold(shape: str) -> None:
    model = parse(f'<ir_version: 10, opset_import: ["" : 21]> g (float[{shape}] x) => (y) {{ y = Relu(x) }}')
    with pytest.raises(NoFeed, match="too large"):
        make_feeds(model, 0)


@pytest.mark.parametrize("name", ["step", "length"])
def test_a_step_of_zero_which_would_end_the_process_is_never_made(name: str) -> None:
    model = parse(
        '<ir_version: 10, opset_import: ["" : 17]>'
        "g (float[1,128,1] x, int64 step, int64 length) => (y) { y = STFT(x, step, , length) }"
    )
    assert all(make_feeds(model, seed)[name] >= 1 for seed in range(20))


def test_ranks_that_are_tried_are_small() -> None:
    text = '<ir_version: 10, opset_import: ["" : 21]> g (float[N,2] x, float k) => (y) { y = Add(x, k) }'
    proto = to_proto(parse(text))
    proto.graph.input[1].type.tensor_type.ClearField("shape")
    tried: list[int] = []

    def refuse(sizes: Mapping[str, int]) -> None:
        tried.extend(size for key, size in sizes.items() if key.endswith(":rank"))
        raise EngineError("numpy", "run", "not at all")

    find_sizes(load(proto), refuse)
    assert tried
    assert max(tried) <= 4
