"""Deliberately wrong rewrites are caught where they happen, right ones are left alone."""

from __future__ import annotations

import numpy as np
import pytest

from optimizer.io import parse
from optimizer.ir import Model
from optimizer.rewrite import Context, Group, P, Pipeline, Registry, graph_optimizer, pass_of
from optimizer.verify import LocalCheck

HEAD = '<ir_version: 9, opset_import: ["" : 20]>'
RNG = np.random.default_rng(7)
W = RNG.standard_normal((8, 6, 3, 3)).astype(np.float32)
B = RNG.standard_normal(8).astype(np.float32)
BN = {name: (RNG.random(8) + 0.5).astype(np.float32) for name in ("scale", "shift", "mean", "var")}
K = RNG.standard_normal((6, 6)).astype(np.float32)


def run(model: Model, declared, check=None) -> tuple[Context, LocalCheck]:
    ctx = Context(model)
    ctx.check = check = check or LocalCheck()
    Pipeline([Group("test", (pass_of(declared),))], repeat=False).run(ctx)
    return ctx, check


def verdict(model: Model, declared) -> str:
    """``caught``, ``passed``, ``unjudged`` or ``idle`` (nothing fired)."""
    ctx, check = run(model, declared)
    if ctx.rejected:
        return "caught"
    return "passed" if check.checked else "unjudged" if check.skipped else "idle"


def rule(pattern, constants="", tag="E2"):
    return graph_optimizer(pattern, constants=constants, tag=tag, registry=Registry())


def conv_bn(shape: str = "N, 6, H, V") -> Model:
    return parse(
        f"""{HEAD} g (float[{shape}] x) => (float[n, 8, h, v] y) {{
            c = Conv <kernel_shape=[3,3]> (x, w, b)
            y = BatchNormalization <epsilon=1e-3> (c, scale, shift, mean, var) }}""",
        {"w": W, "b": B, **BN},
    )


def fold_batchnorm(change):
    """The fold of a BatchNormalization into a Conv, spoilt by ``change(w, b)``."""

    @rule(
        P.BatchNormalization(P.Conv("x", "w", "b", name="conv"), "scale", "shift", "mean", "var", name="bn"),
        constants="w b scale shift mean var",
    )
    def fold(m, rw):
        scale, shift, mean, var = (m.f64(v) for v in (m.scale, m.shift, m.mean, m.var))
        k = scale / np.sqrt(var + np.float32(m.bn.attr("epsilon", 1e-5)))
        w, b = change(m.f64(m.w) * k[:, None, None, None], (m.f64(m.b) - mean) * k + shift, k, var)
        return rw.op.Conv(m.x, rw.const(w, like=m.w), rw.const(b, like=m.b), **m.conv.attributes)

    return fold


def one_weight(w, b, k, var):
    spoilt = w.copy()
    typical = np.argsort(np.abs(w).ravel())[w.size // 2]
    spoilt.ravel()[typical] *= 1.01
    return spoilt, b


def larger_epsilon(w, b, k, var):
    ratio = np.sqrt((var + 1e-3) / (var + 1e-2))
    return w * ratio[:, None, None, None], b


FOLDS = {
    "right": (lambda w, b, k, var: (w, b), "passed"),
    "one weight off by 1 %": (one_weight, "caught"),
    "one bias off by 1 %": (lambda w, b, k, var: (w, b * np.where(np.arange(8) == 3, 1.01, 1)), "caught"),
    "bias dropped": (lambda w, b, k, var: (w, b * 0), "caught"),
    "epsilon x10": (larger_epsilon, "caught"),
    "rounded to float16": (lambda w, b, k, var: (w.astype(np.float16).astype(float), b), "caught"),
    "kernel flipped": (lambda w, b, k, var: (w[:, :, ::-1], b), "caught"),
    "off by less than a rounding": (lambda w, b, k, var: (w * (1 + 2.0**-30), b), "passed"),
    "off by two roundings": (lambda w, b, k, var: (w * (1 + 2.0**-22), b), "caught"),
}


@pytest.mark.parametrize("shape", ["N, 6, H, V", "1, 6, 56, 40", "2, 6, 9, 7"])
@pytest.mark.parametrize("name", FOLDS)
def test_fold_of_batchnorm(name: str, shape: str) -> None:
    change, expected = FOLDS[name]
    assert verdict(conv_bn(shape), fold_batchnorm(change)) == expected


def test_a_wrong_rewrite_is_undone_excluded_and_described() -> None:
    ctx, check = run(conv_bn(), fold_batchnorm(one_weight))
    (rejected,) = ctx.rejected
    assert rejected.application.rule == "fold"
    assert rejected.application.anchor == "y"
    assert "is allowed" in rejected.fault
    assert "N=" in rejected.fault
    assert ctx.model.histogram() == {"Conv": 1, "BatchNormalization": 1}
    assert not ctx.journal.entries
    assert check.seconds > 0


# -------------------------------------------------------------------- small rules, right and wrong


@rule(P.Transpose(P.Transpose("x", name="inner"), name="outer"), tag="E0")
def merge_transposes(m, rw):
    inner, outer = m.inner.attr("perm"), m.outer.attr("perm")
    return rw.op.Transpose(m.x, perm=[inner[i] for i in outer])


@rule(P.Transpose(P.Transpose("x", name="inner"), name="outer"), tag="E0")
def merge_transposes_the_wrong_way(m, rw):
    inner, outer = m.inner.attr("perm"), m.outer.attr("perm")
    return rw.op.Transpose(m.x, perm=[outer[i] for i in inner])


@rule(P.ReduceSum(P.ReduceSum("x", "a"), "b"), constants="a b")
def merge_sums(m, rw):
    return rw.op.ReduceSum(m.x, rw.const(np.array([1, 2]), like=m.a), keepdims=1)


@rule(P.ReduceSum(P.ReduceSum("x", "a"), "b"), constants="a b")
def merge_sums_on_a_wrong_axis(m, rw):
    return rw.op.ReduceSum(m.x, rw.const(np.array([0, 2]), like=m.a), keepdims=1)


@rule(P.Add(P.MatMul("x", "w"), "b"), constants="w b")
def into_gemm(m, rw):
    return rw.op.Gemm(m.x, m.w, m.b)


@rule(P.Add(P.MatMul("x", "w"), "b"), constants="w b")
def into_gemm_along_rows(m, rw):
    return rw.op.Gemm(m.x, m.w, rw.const(m.f64(m.b)[:, None], like=m.b))


@rule(P.Relu("x"), tag="E0")
def relu_as_max(m, rw):
    return rw.op.Max(m.x, rw.const(0.0, like=m.x))


@rule(P.Add("x", P.scalar(0.0)), tag="E0")
def drop_zero(m, rw):
    return m.x


@rule(P.Add("x", P.scalar(0.0)), tag="E1")
def drop_zero_of_finite(m, rw):
    return m.x


@rule(P.Cast(P.Cast("x", to=10), to=1), tag="E0")
def drop_casts(m, rw):
    return m.x


@rule(P.Div(P.Mul("x", "c"), "c"), constants="c", tag="E0")
def drop_scaling(m, rw):
    return m.x


@rule(P.Expand("x", "s"), tag="E0")
def drop_expand(m, rw):
    return m.x


@rule(P.Reshape("x", "t"), constants="t", tag="E0")
def free_the_first_dim(m, rw):
    return rw.op.Reshape(m.x, rw.const(np.array([-1, 6]), like=m.t))


@rule(P.Reshape("x", "t"), constants="t", tag="E0")
def free_the_last_dim(m, rw):
    return rw.op.Reshape(m.x, rw.const(np.array([0, -1]), like=m.t))


@rule(P.Gelu("x"))
def gelu_by_tanh(m, rw):
    return rw.op.Gelu(m.x, approximate="tanh")


@rule(P.Div(P.Mul("x", P.Clip(P.Add("x", "c3"), "lo", "hi")), "c6"), constants="c3 lo hi c6")
def hardswish(m, rw):
    return rw.op.HardSwish(m.x)


@rule(P.Mul(P.Mul("x", P.Clip(P.Add("x", "c3"), "lo", "hi")), "sixth"), constants="c3 lo hi sixth")
def hardswish_by_product(m, rw):
    return rw.op.HardSwish(m.x)


@rule(P.Slice("x", "starts", "ends", "axes"), tag="E0")
def slice_from_one_later(m, rw):
    return rw.op.Slice(m.x, rw.const(m.array(m.starts) + 1), m.ends, m.axes)


@rule(P.Sqrt(P.Mul("x", "x")))
def root_of_square(m, rw):
    return rw.op.Abs(m.x)


@rule(P.Sqrt(P.Mul("x", "x")))
def root_of_square_without_sign(m, rw):
    return m.x


@rule(P.RandomNormalLike("x"), tag="E0")
def same_random_numbers(m, rw):
    first = next(node for node in m.graph.nodes if node.op_type == "RandomNormalLike")
    m.require(first.id != m.root.id, "the first stays")
    return first.value()


SMALL = {
    "transposes": (
        (
            "(float[A, B, C] x) => (float[a, b, c] y) "
            "{ t = Transpose <perm=[1,2,0]> (x) y = Transpose <perm=[0,2,1]> (t) }"
        ),
        [(merge_transposes, "passed"), (merge_transposes_the_wrong_way, "caught")],
    ),
    "sums": (
        (
            "(float[A, B, C] x) => (float[a, b, c] y) <int64[1] p = {1}, int64[1] q = {2}> "
            "{ t = ReduceSum (x, p) y = ReduceSum (t, q) }"
        ),
        [(merge_sums, "passed"), (merge_sums_on_a_wrong_axis, "caught")],
    ),
    "gemm": (
        (
            "(float[6, 6] x) => (float[6, 6] y) <float[6] b = {1, 2, 3, 4, 5, 6}> "
            "{ t = MatMul (x, k) y = Add (t, b) }"
        ),
        [(into_gemm, "passed"), (into_gemm_along_rows, "caught")],
    ),
    "zero": (
        "(float[N] x) => (float[N] y) <float z = {0}> { y = Add (x, z) }",
        [(drop_zero, "caught"), (drop_zero_of_finite, "passed")],
    ),
    "casts": (
        "(float[N] x) => (float[N] y) { t = Cast <to=10> (x) y = Cast <to=1> (t) }",
        [(drop_casts, "caught")],
    ),
    "integers": (
        "(int32[N] x) => (int32[N] y) <int32 c = {5}> { t = Mul (x, c) y = Div (t, c) }",
        [(drop_scaling, "caught")],
    ),
    "expand": (
        "(float[N] x, int64[1] s) => (float[n] y) { y = Expand (x, s) }",
        [(drop_expand, "caught")],
    ),
    "ambiguous for an empty batch": (
        "(float[N, 6] x) => (float[N, 6] y) <int64[2] t = {0, -1}> { y = Reshape (x, t) }",
        [(free_the_first_dim, "passed")],
    ),
    "clear for an empty batch": (
        "(float[N, 6] x) => (float[N, 6] y) <int64[2] t = {-1, 6}> { y = Reshape (x, t) }",
        [(free_the_last_dim, "caught")],
    ),
    "gelu": ("(float[N] x) => (float[N] y) { y = Gelu (x) }", [(gelu_by_tanh, "caught")]),
    "hardswish": (
        (
            "(float[N] x) => (float[N] y) <float t = {3}, float lo = {0}, float hi = {6}, float s = {6}> "
            "{ a = Add (x, t) c = Clip (a, lo, hi) m = Mul (x, c) y = Div (m, s) }"
        ),
        [(hardswish, "passed")],
    ),
    "hardswish by a rounded sixth": (
        (
            "(float[N] x) => (float[N] y) "
            "<float t = {3}, float lo = {0}, float hi = {6}, float s = {0.16666667}> "
            "{ a = Add (x, t) c = Clip (a, lo, hi) m = Mul (x, c) y = Mul (m, s) }"
        ),
        [(hardswish_by_product, "passed")],
    ),
    "hardswish by a wrong sixth": (
        (
            "(float[N] x) => (float[N] y) "
            "<float t = {3}, float lo = {0}, float hi = {6}, float s = {0.1667}> "
            "{ a = Add (x, t) c = Clip (a, lo, hi) m = Mul (x, c) y = Mul (m, s) }"
        ),
        [(hardswish_by_product, "caught")],
    ),
    "hardswish with a wrong limit": (
        (
            "(float[N] x) => (float[N] y) <float t = {3}, float lo = {0}, float hi = {5.9}, float s = {6}> "
            "{ a = Add (x, t) c = Clip (a, lo, hi) m = Mul (x, c) y = Div (m, s) }"
        ),
        [(hardswish, "caught")],
    ),
    "slice": (
        (
            "(float[N] x) => (float[n] y) <int64[1] s = {1}, int64[1] e = {100}, int64[1] a = {0}> "
            "{ y = Slice (x, s, e, a) }"
        ),
        [(slice_from_one_later, "caught")],
    ),
    "root": (
        "(float[N] x) => (float[N] y) { t = Mul (x, x) y = Sqrt (t) }",
        [(root_of_square, "passed"), (root_of_square_without_sign, "caught")],
    ),
    "random": (
        "(float[N] x) => (float[N] y) { a = RandomNormalLike (x) b = RandomNormalLike (x) y = Sub (a, b) }",
        [(same_random_numbers, "caught")],
    ),
    "relu": ("(float[N] x) => (float[N] y) { y = Relu (x) }", [(relu_as_max, "passed")]),
}
ROWS = [(name, declared, expected) for name, row in SMALL.items() for declared, expected in row[1]]


@pytest.mark.parametrize(("name", "declared", "expected"), ROWS, ids=[f"{n}: {d.name}" for n, d, _ in ROWS])
def test_small_rules(name: str, declared, expected: str) -> None:
    text = SMALL[name][0]
    model = parse(f"{HEAD} g {text}", {"k": K} if "k)" in text else {})
    assert verdict(model, declared) == expected


# -------------------------------------------------------------------- functions of a graph


@graph_optimizer(registry=Registry())
def drop_second_addend(graph):
    for node in graph.nodes:
        if node.op_type == "Add":
            graph.replace_uses(node.value(), node.inputs[0])


@graph_optimizer(registry=Registry())
def transpose_weights_in_place(graph):
    for node in graph.nodes:
        if node.op_type == "Gemm" and not node.attr("transB", 0):
            weight = graph.add_constant(np.ascontiguousarray(graph.const(node.inputs[1]).T))
            graph.set_inputs(node, [node.inputs[0], weight, *node.inputs[2:]])
            graph.set_attrs(node, {**node.attributes, "transB": 1})


@graph_optimizer(registry=Registry())
def forget_to_say_so(graph):
    for node in graph.nodes:
        if node.op_type == "Gemm":
            weight = graph.add_constant(np.ascontiguousarray(graph.const(node.inputs[1]).T))
            graph.set_inputs(node, [node.inputs[0], weight, *node.inputs[2:]])


@graph_optimizer(registry=Registry())
def scale_both_factors(graph):
    for node in graph.nodes:
        if node.op_type == "Mul":
            two = graph.add_constant(np.float32(2.0))
            half = graph.add_constant(np.float32(0.5))
            left = graph.add("Mul", [node.inputs[0], two]).value()
            right = graph.add("Mul", [node.inputs[1], half]).value()
            graph.set_inputs(node, [left, right])
            return True
    return False


GRAPH_ROWS = [
    (
        "(float[N] x, float[N] z) => (float[N] y) { a = Add (x, z) y = Relu (a) }",
        drop_second_addend,
        "caught",
    ),
    ("(float[N, 6] x) => (float[N, 6] y) { y = Gemm (x, k) }", transpose_weights_in_place, "passed"),
    ("(float[N, 6] x) => (float[N, 6] y) { y = Gemm (x, k) }", forget_to_say_so, "caught"),
    ("(float[N] x, float[N] z) => (float[N] y) { y = Mul (x, z) }", scale_both_factors, "passed"),
]


@pytest.mark.parametrize(("text", "declared", "expected"), GRAPH_ROWS, ids=[r[1].name for r in GRAPH_ROWS])
def test_functions_of_a_graph(text: str, declared, expected: str) -> None:
    model = parse(f"{HEAD} g {text}", {"k": K} if "k)" in text else {})
    assert verdict(model, declared) == expected


# -------------------------------------------------------------------- what a rewrite may rest on


@rule(P.Abs("x"), tag="E0")
def drop_abs(m, rw):
    m.require(m.producer(m.x) is not None and m.producer(m.x).op_type == "Relu", "it may be negative")
    return m.x


@rule(P.Abs("x"), tag="E0")
def drop_any_abs(m, rw):
    return m.x


def test_a_rewrite_may_rest_on_what_is_above_it() -> None:
    text = "(float[N] x) => (float[N] y) {{ r = {op} (x) y = Abs (r) }}"
    assert verdict(parse(f"{HEAD} g {text.format(op='Relu')}"), drop_abs) == "passed"
    assert verdict(parse(f"{HEAD} g {text.format(op='Neg')}"), drop_any_abs) == "caught"


def test_bodies_are_checked_too() -> None:
    model = parse(
        f"""{HEAD} g (float[N] x, bool c) => (float[n] y) {{
            y = If (c) <then_branch = t () => (float[p] a) {{ q = Neg (x) a = Abs (q) }},
                        else_branch = e () => (float[p] b) {{ b = Identity (x) }}> }}"""
    )
    ctx, _ = run(model, drop_any_abs)
    (rejected,) = ctx.rejected
    assert rejected.application.scope


def test_an_operator_nothing_can_run_is_counted_not_judged() -> None:
    @rule(P.Magic("x", domain="my.ops"), tag="E0")
    def drop_magic(m, rw):
        return m.x

    head = HEAD.replace("]", ', "my.ops" : 1]')
    model = parse(f"{head} g (float[N] x) => (float[N] y) {{ t = my.ops.Magic (x) y = Relu (t) }}")
    check = LocalCheck()
    ctx, _ = run(model, drop_magic, check)
    assert not ctx.rejected
    assert "no kernel for my.ops::Magic" in next(iter(check.skipped))


@rule(P.Identity("x"), tag="E0")
def drop_identity(m, rw):
    return m.x


def test_regions_that_look_alike_are_checked_once() -> None:
    steps = " ".join(f"v{i + 1} = Identity (v{i})" for i in range(9))
    model = parse(f"{HEAD} g (float[N] v0) => (float[N] y) {{ {steps} y = Relu (v9) }}")
    _, check = run(model, drop_identity)
    assert check.checked["drop-identity"] == 1
    assert check.skipped["the same as others that were checked"] == 8


def test_no_work_left_means_no_check_and_is_said() -> None:
    check = LocalCheck(work=0)
    ctx, _ = run(conv_bn(), fold_batchnorm(one_weight), check)
    assert not ctx.rejected
    assert check.skipped == {"the work for all checks is used up": 1}
