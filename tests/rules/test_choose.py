"""Alternatives, and which of them is taken: fewer nodes, or less time by the table of costs."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Row, Setup, rows, table_test

from optimizer.analysis import Dim
from optimizer.rewrite import Context, Rule, Settings
from optimizer.rewrite.explain import why_not
from passes import families, pipelines
from passes.choose import ChoosePass, fault_of
from passes.cost_table import PER_NODE, PER_REORDER, PER_UNIT
from passes.costs import Costs, nominal
from passes.einsum import replace_einsum_by_matmul
from passes.idiom_activation import fuse_softplus
from passes.idiom_softmax import replace_expectation_by_product
from passes.latency_forms import spell_mish, spell_prelu, spell_softplus, widen_depthwise_conv
from passes.masks import replace_infinite_mask_by_sum

INPUTS = (
    "float[N,H,S,64] x, float[N,8,6,6] image, float[N,8,H,S] wide, float[N,16,48] line, "
    "float[N,H,S,S] s, bool[N,1,1,S] m, float[N,S,8,64] q, float[N,S,8,64] k"
)
CONSTANTS = {
    "w": np.random.default_rng(3).standard_normal((8, 8, 1, 1)).astype(np.float32),
    "d": np.random.default_rng(4).standard_normal((16, 1, 31)).astype(np.float32),
    "p": np.random.default_rng(5).standard_normal((1, 8, 1, 1)).astype(np.float32),
}
SIZES = [{"N": 2, "H": 3, "S": 5}]
BALANCED, LATENCY, NODES = (
    Setup(
        INPUTS,
        constants=CONSTANTS,
        settings=Settings(fp="fast", growth=None, objective=objective),
        rtol=1e-4,
        sizes=SIZES,
        special=False,
    )
    for objective in ("balanced", "latency", "nodes")
)


def chosen(rule: Rule) -> ChoosePass:
    """The choice between this rule and nothing."""
    return ChoosePass(rule.name, [rule], families.FOLLOWING)


MISH = "a = Softplus(x) b = Tanh(a) y = Mul(x, b)"
MISH_SPELLED = (
    "l = Min(x, f32(20)) e = Exp(l) a = Add(e, f32(2)) n = Mul(e, a) c = Add(n, f32(2)) r = Div(n, c) "
    "y = Mul(x, r)"
)
LOG = "a = Exp(x) b = Add(a, f32(1)) y = Log(b)"
BETWEEN = "a = Conv(wide, w) b = PRelu(a, f32(normal(8,1,1))) y = Conv(b, w)"
DEPTHWISE = "y = Conv<group=16, pads=[15,15]>(line, d)"
SCORES = 'y = Einsum<equation="bshd,bthd->bhst">(q, k)'
HEAD = "a = Softmax<axis=1>(image) y = Conv(a, p)"

ROWS: list[Row] = [
    *rows(chosen(spell_mish), LATENCY, [("mish", MISH, MISH_SPELLED)]),
    *rows(chosen(spell_mish), BALANCED, (), [("mish", MISH, "it would be more nodes")]),
    *rows(chosen(spell_mish), NODES, (), [("mish", MISH, "it would be more nodes")]),
    *rows(chosen(spell_softplus), BALANCED, (), [("plus", "y = Softplus(x)", "it would be more nodes")]),
    *rows(chosen(fuse_softplus), NODES, [("log", LOG, "y = Softplus(x)")]),
    *rows(chosen(fuse_softplus), BALANCED, (), [("log", LOG, "it would be slower")]),
    *rows(chosen(fuse_softplus), LATENCY, (), [("log", LOG, "it would be slower")]),
    *rows(
        chosen(spell_prelu),
        LATENCY,
        [
            (
                "between-convs",
                BETWEEN,
                (
                    "a = Conv(wide, w) r = Relu(a) g = BatchNormalization<epsilon=0.>(r, _, _, _, _)"
                    " h = BatchNormalization<epsilon=0.>(a, _, _, _, _) b = Add(g, h) y = Conv(b, w)"
                ),
            )
        ],
        [("alone", "y = PRelu(wide, f32(normal(8,1,1)))", "it would be slower")],
    ),
    *rows(
        chosen(widen_depthwise_conv),
        LATENCY,
        [
            (
                "long",
                DEPTHWISE,
                (
                    "u = Unsqueeze(line, i64([2])) c = Conv<group=16, strides=[1,1], dilations=[1,1],"
                    " pads=[0,15,0,15]>(u, _) y = Squeeze(c, i64([2]))"
                ),
            )
        ],
    ),
    *rows(chosen(widen_depthwise_conv), BALANCED, (), [("long", DEPTHWISE, "it would be more nodes")]),
    *rows(
        chosen(replace_infinite_mask_by_sum),
        LATENCY,
        [("small", "y = Where(m, s, f32(-inf))", "a = Where(m, f32(0), f32(-inf)) y = Add(s, a)")],
    ),
    *rows(
        chosen(replace_infinite_mask_by_sum),
        BALANCED,
        (),
        [("small", "y = Where(m, s, f32(-inf))", "it would be more nodes")],
    ),
    *rows(
        chosen(replace_einsum_by_matmul),
        LATENCY,
        [
            (
                "scores",
                SCORES,
                "t = Transpose<perm=[0,2,1,3]>(q) u = Transpose<perm=[0,2,3,1]>(k) y = MatMul(t, u)",
            )
        ],
    ),
    *rows(chosen(replace_einsum_by_matmul), BALANCED, (), [("scores", SCORES, "it would be more nodes")]),
    *rows(
        chosen(replace_expectation_by_product),
        BALANCED,
        [
            (
                "what-follows-counts",
                (
                    "t = Transpose<perm=[0,3,1,2]>(image) a = Softmax<axis=1>(t)"
                    " y = Conv(a, f32(normal(1,6,1,1)))"
                ),
                "a = Softmax<axis=-1>(image) b = MatMul(a, _) y = Reshape(b, i64([0,1,8,6]))",
            )
        ],
        [("not-transposed", HEAD, "it would be more nodes")],
    ),
]

test_rows = table_test(ROWS)


@pytest.mark.parametrize(
    ("objective", "nodes", "before", "after", "fault"),
    [
        ("balanced", 0, 100, 90, ""),
        ("balanced", -1, 100, 100, ""),
        ("balanced", 0, 100, 98, "it would gain nothing"),
        ("balanced", 1, 100, 10, "it would be more nodes"),
        ("balanced", -1, 100, 110, "it would be slower"),
        ("latency", 9, 100, 90, ""),
        ("latency", -1, 100, 102, ""),
        ("latency", 0, 100, 98, "it would gain nothing"),
        ("latency", -1, 100, 110, "it would be slower"),
        ("nodes", -1, 100, 900, ""),
        ("nodes", 0, 100, 90, ""),
        ("nodes", 0, 100, 98, "it would gain nothing"),
        ("nodes", 1, 100, 1, "it would be more nodes"),
    ],
)
def test_what_is_better(objective: str, nodes: int, before: float, after: float, fault: str) -> None:
    assert fault_of(objective, nodes, before, after) == fault


def test_a_choice_that_was_not_made_is_explained() -> None:
    ctx = Context(BALANCED.model(MISH), BALANCED.settings)
    chosen(spell_mish).run(ctx)
    assert [miss.reason for miss in why_not(ctx, spell_mish)] == ["it would be more nodes"]


def test_a_log_decides_when_it_is_replayed() -> None:
    logged = (spell_mish.name, (), "y")
    for only, taken in ((frozenset([logged]), True), (frozenset[tuple[str, tuple[str, ...], str]](), False)):
        model = BALANCED.model(MISH)
        ctx = Context(model, BALANCED.settings)
        ctx.only = only
        assert chosen(spell_mish).run(ctx) == taken
        assert (len(list(model.graph.nodes)) == 7) == taken


def test_trying_leaves_no_trace() -> None:
    from optimizer.ir.text import dump

    model = BALANCED.model(MISH)
    before = dump(model)
    ctx = Context(model, BALANCED.settings)
    assert not pipelines.passes_of("choose")[0].run(ctx)
    assert dump(model) == before
    assert not ctx.journal.entries


class FakeRace:
    """Finds a given result, and counts how often it was asked."""

    def __init__(self, result: bool | None) -> None:
        self.decisions: dict[str, bool | None] = {}
        self.result, self.asked = result, 0

    def snapshot(self, ctx: Context) -> bytes:
        return " ".join(node.op_type for node in ctx.model.graph.topological()).encode()

    def is_faster(self, before: bytes, after: bytes) -> bool | None:
        assert before != after
        self.asked += 1
        return self.result


TWO_PRELUS = "a = PRelu(wide, f32(normal(8,1,1))) b = Neg(a) y = PRelu(b, f32(normal(8,1,1)))"


@pytest.mark.parametrize("result", [True, False, None])
@pytest.mark.parametrize("doubt", [0.9, 0.0])
def test_a_race_settles_what_is_close(
    result: bool | None, doubt: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("passes.choose.DOUBT", doubt)
    model = LATENCY.model(TWO_PRELUS)
    ctx = Context(model, LATENCY.settings)
    ctx.race = race = FakeRace(result)
    chosen(spell_prelu).run(ctx)
    taken = not any(node.op_type == "PRelu" for node in model.graph.nodes)
    assert race.asked == (1 if doubt else 0)  # once for both places
    assert taken == (result is True and doubt > 0)
    if doubt and result is False:
        assert ctx.stats[spell_prelu.name].refused["it was measured to be slower"] == 2


def cost(body: str) -> float:
    model = BALANCED.model(body)
    return Costs(Context(model), model.graph).of([node.id for node in model.graph.nodes])


def test_open_dims_count_by_what_they_are_computed_from() -> None:
    batch, h = Dim.symbol("N"), Dim.symbol("H")
    sizes = {batch: 1, h: 64, h // 2: 32, h * h: 4096, batch * h + 1: 65, Dim.of(7): 7, Dim.fresh(): 64}
    sizes[Dim.symbol("even", divisor=8)] = 64
    assert {dim: nominal(dim, frozenset([batch])) for dim in sizes} == sizes


VARIANTS = {
    "Cast:bool": "y = Cast<to=9>(x)",
    "Conv:depthwise": "y = Conv<group=8>(image, f32(ones(8,1,1,1)))",
    "Conv:sequence": "y = Conv(line, f32(ones(4,16,3)))",
    "Conv:sequence-depthwise": DEPTHWISE,
    "Pow:root": "y = Pow(x, f32(0.5))",
    "Pow:square": "y = Pow(x, f32([2]))",
    "Resize:half_pixel": "y = Resize(image, , f32([1,1,2,2]))",
    "Softmax:inner": "y = Softmax<axis=1>(image)",
    "Where:mask": "y = Where(m, s, f32(-1))",
    "Where:scalars": "y = Where(m, f32(0), f32(-1))",
}


def test_every_special_case_of_the_table_is_told() -> None:
    assert sorted(VARIANTS) == sorted(key for key in PER_UNIT if ":" in key)
    for key, body in VARIANTS.items():
        model = BALANCED.model(body)
        (node,) = model.graph.nodes
        assert Costs(Context(model), model.graph).kind_of(node) == key


@pytest.mark.parametrize(
    ("cheap", "dear"),
    [
        ("y = Softmax<axis=-1>(image)", "y = Softmax<axis=1>(image)"),
        ("y = Pow(x, f32(2))", "y = Pow(x, f32(0.5))"),
        ("y = Relu(x)", "y = Softplus(x)"),
        ("y = Sum(x, x)", "y = Sum(x, x, x, x)"),
        ("y = Gelu(x)", "a = Softplus(x) y = Sub(x, a)"),
        ("a = Conv(image, w) b = Relu(a) y = Conv(b, w)", "a = Conv(image, w) b = Neg(a) y = Conv(b, w)"),
        (
            "a = Conv(image, w) b = Mul(a, f32(2)) y = Conv(b, w)",
            "a = Conv(image, w) b = Add(a, f32(2)) y = Conv(b, w)",
        ),
    ],
)
def test_costs_tell_forms_apart(cheap: str, dear: str) -> None:
    assert cost(cheap) * 1.01 < cost(dear)


def test_a_leak_out_of_the_blocks_is_paid_twice() -> None:
    through, leaked = (
        cost(f"a = Conv(image, w) {step} y = Conv(b, w)") for step in ("b = Relu(a)", "b = Neg(a)")
    )
    elements = 8 * 6 * 6
    work = PER_NODE + PER_UNIT["Neg"] * elements  # a Relu is part of the convolution
    assert leaked - through - work == pytest.approx(2 * PER_REORDER * elements)


def test_an_activation_is_part_of_its_convolution() -> None:
    alone = cost("y = Conv(image, w)")
    assert cost("a = Conv(image, w) y = Relu(a)") == pytest.approx(alone)
    assert cost("y2 = Conv(image, w) y = Relu(y2)") > alone * 1.01
