"""Softmax and LogSoftmax spelled out."""

from __future__ import annotations

from optimizer.ir import Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.known import FLOATS, axes_of, rank_of, shape_of

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
