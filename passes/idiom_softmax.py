"""Softmax and LogSoftmax spelled out, and an expectation over a Softmax."""

from __future__ import annotations

from optimizer.ir import Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.known import FLOATS, axes_of, constant_of, rank_of, shape_of

EXP = P.Exp(P.Sub("x", P.ReduceMax("x", P.maybe("max_axes"), name="max").once()).once(), name="exp")
SUM = P.ReduceSum(EXP, P.maybe("sum_axes"), name="sum").once()


@graph_optimizer(P.Div(EXP, SUM), tag="E2")
def fuse_softmax(m: Match, rw: Rewriter) -> Value:
    """Exp(x - ReduceMax(x)) / ReduceSum(Exp(x - ReduceMax(x))) -> Softmax(x)

    Both reductions are over the same single axis. Before opset 13 Softmax flattens what follows
    its axis, which is the same thing only for the last one.
    """
    m.require(len(m.graph.uses(m.exp.value())) == 2, "the exponentials have other readers")
    m.require(m.dtype(m.x) in FLOATS, "not a float")
    rank = rank_of(m, m.x)
    axes = {axes_of(m, node, 1, rank) for node in (m.max, m.sum)}
    m.require(m.max.attr("keepdims", 1) and m.sum.attr("keepdims", 1), "an axis is dropped")
    m.require(len(axes) == 1, "the reductions are over different axes")
    (over,) = axes
    if over is None or len(over) != 1:
        m.refuse("the reductions are not over one axis")
    m.require(m.opset() >= 13 or over[0] == rank - 1, "Softmax flattens before opset 13")
    return rw.op.Softmax(m.x, axis=over[0] - rank if m.opset() >= 13 else over[0])


@graph_optimizer(P.Log(P.Softmax("x", name="softmax").once()), tag="E2")
def fuse_logsoftmax(m: Match, rw: Rewriter) -> Value:
    """Log(Softmax(x)) -> LogSoftmax(x)"""
    made: Value = rw.op.LogSoftmax(m.x, **m.softmax.attributes)
    return made


SHIFTED = P.Sub("x", P.ReduceMax("x", P.maybe("max_axes"), name="max").once(), name="shifted")


@graph_optimizer(
    P.any_of(
        P.Sub(SHIFTED, P.Log(P.ReduceSum(P.Exp(SHIFTED).once(), P.maybe("axes"), name="sum").once()).once()),
        P.Sub("x", P.ReduceLogSumExp("x", P.maybe("axes"), name="sum").once()),
    ),
    tag="E2",
)
def fuse_logsoftmax_of_reductions(m: Match, rw: Rewriter) -> Value:
    """x - ReduceLogSumExp(x) -> LogSoftmax(x)

    And (x - ReduceMax(x)) - Log(ReduceSum(Exp(x - ReduceMax(x)))) likewise.
    """
    m.require(m.dtype(m.x) in FLOATS, "not a float")
    rank = rank_of(m, m.x)
    reductions = [m.sum, *([m.max] if hasattr(m, "max") else [])]
    m.require(all(node.attr("keepdims", 1) for node in reductions), "an axis is dropped")
    axes = {axes_of(m, node, 1, rank) for node in reductions}
    m.require(len(axes) == 1, "the reductions are over different axes")
    (over,) = axes
    if over is None or len(over) != 1:
        m.refuse("the reductions are not over one axis")
    if hasattr(m, "shifted"):
        m.require(len(m.graph.uses(m.shifted.value())) == 2, "the differences have other readers")
    m.require(m.opset() >= 13 or over[0] == rank - 1, "Softmax flattens before opset 13")
    return rw.op.LogSoftmax(m.x, axis=over[0])


@graph_optimizer(
    P.Reshape(
        P.one_of("Softmax", "LogSoftmax")(
            P.one_of("Reshape", "Flatten")("x", P.rest("there"), name="rows").once(), name="softmax"
        ).once(),
        P.rest("back"),
    ),
    tag="E2",
)
def drop_views_around_softmax(m: Match, rw: Rewriter) -> Value:
    """Reshape(Softmax(Flatten(x))) -> Softmax(x), where each row is one axis of x"""
    m.require(m.opset() >= 13, "Softmax flattens before opset 13")
    m.require(m.same_shape(m.x, m.root.value()), "the result has another shape")
    shape, rows = shape_of(m, m.x), shape_of(m, m.rows.value())
    last = m.softmax.attr("axis", -1) % len(rows) == len(rows) - 1
    wide = [axis for axis, dim in enumerate(shape) if dim != 1]
    m.require(last and wide and shape[wide[-1]] == rows[-1], "a row is more than one axis")
    made: Value = getattr(rw.op, m.softmax.op_type)(m.x, axis=wide[-1])
    return made


# -------------------------------------------------------------------- an expectation over a softmax


@graph_optimizer(P.Conv(P.Softmax("x", name="softmax").once(), "w", name="conv"), constants="w", tag="E2")
def replace_expectation_by_product(m: Match, rw: Rewriter) -> Value:
    """Conv(Softmax<axis=1>(x), w) -> Transpose(MatMul(Softmax(Transpose(x)), w)), of one output channel

    A softmax over the last axis is much faster; where x is transposed already, it is no more to do.
    """
    w = constant_of(m, m.w)
    m.require(
        len(w.shape) == 4 and w.shape[0] == 1 and w.shape[2:] == (1, 1), "not a weight for each channel"
    )
    plain = not any(m.conv.attr("pads", ())) and set(m.conv.attr("strides", (1,))) == {1}
    m.require(plain and m.conv.attr("auto_pad", "NOTSET") == "NOTSET", "not a weight for each channel")
    m.require(m.conv.attr("group", 1) == 1 and rank_of(m, m.x) == 4, "not a weight for each channel")
    m.require(m.opset() >= 13, "Softmax flattens before opset 13")
    m.require(m.softmax.attr("axis", -1) in (1, -3), "the softmax runs over another axis")
    rows = rw.op.Softmax(rw.op.Transpose(m.x, perm=[0, 2, 3, 1]), axis=-1)
    product = rw.op.MatMul(rows, rw.const(w.array.reshape(-1, 1)))
    return rw.op.Transpose(product, perm=[0, 3, 1, 2])
