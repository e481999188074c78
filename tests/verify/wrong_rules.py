"""Ten rules that are wrong, each in a way that rules are wrong in practice."""

from __future__ import annotations

from optimizer.rewrite import P, Registry, graph_optimizer

WRONG = Registry()


def rule(pattern, **options):
    return graph_optimizer(pattern, registry=WRONG, **options)


@rule(P.Transpose(P.Transpose("x")), tag="E0")
def cancel_any_transposes(m, rw):
    """Transpose(Transpose(x)) -> x, whatever the permutations"""
    return m.x


@rule(P.Relu("x"), tag="E0")
def drop_relu(m, rw):
    """Relu(x) -> x"""
    return m.x


@rule(P.Add("x", "c"), constants="c", tag="E1")
def drop_addition_of_any_constant(m, rw):
    """Add(x, c) -> x"""
    return m.x


@rule(P.Mul("x", "c"), constants="c", tag="E1")
def drop_ones_that_grow(m, rw):
    """Mul(x, ones) -> x, though the ones may have a larger shape"""
    m.require((m.array(m.c) == 1).all(), "not ones")
    return m.x


@rule(P.Concat("a", "b", name="concat"), tag="E0")
def swap_joined(m, rw):
    """Concat(a, b) -> Concat(b, a)"""
    return rw.op.Concat(m.b, m.a, **m.concat.attributes)


@rule(P.Softmax("x"), tag="E2")
def softmax_on_the_last_axis(m, rw):
    """Softmax(x) -> Softmax(x, axis=-1)"""
    return rw.op.Softmax(m.x, axis=-1)


@rule(P.MatMul(P.Mul("x", "s").once(), "w"), constants="s w", tag="E2")
def fold_scale_into_columns(m, rw):
    """MatMul(x * s, w) -> MatMul(x, w * s), which scales the outputs instead of the inputs"""
    return rw.op.MatMul(m.x, rw.const(m.f64(m.w) * m.f64(m.s), like=m.w))


@rule(
    P.BatchNormalization(P.Conv("x", "w", name="conv").once(), "scale", "shift", "mean", "var"),
    constants="w scale shift mean var",
    tag="E2",
)
def fold_batchnorm_without_epsilon(m, rw):
    """BatchNormalization(Conv(x, w)) -> Conv(x, w * k, shift - mean * k), k without the epsilon"""
    k = m.f64(m.scale) / m.f64(m.var) ** 0.5
    weight = m.f64(m.w)
    folded = weight * k.reshape(-1, *[1] * (weight.ndim - 1))
    bias = m.f64(m.shift) - m.f64(m.mean) * k
    return rw.op.Conv(m.x, rw.const(folded, like=m.w), rw.const(bias, like=m.w), **m.conv.attributes)


@rule(P.Cast(P.Cast("x", name="first"), name="second"), tag="E0")
def drop_cast_between(m, rw):
    """Cast(Cast(x)) -> Cast(x), though the first one may narrow"""
    return rw.op.Cast(m.x, **m.second.attributes)


@rule(P.Squeeze(P.Unsqueeze("x", P.maybe("a")), P.maybe("b")), tag="E0")
def cancel_views(m, rw):
    """Squeeze(Unsqueeze(x)) -> x, whatever the axes"""
    return m.x
