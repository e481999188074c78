"""What is added to all keys or all values alike: the first makes no difference, the second one at the end."""

from __future__ import annotations

import numpy as np

from optimizer.ir import Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.attention_mask import is_far_below
from passes.heads import Rows, rows_of, rows_of_swapped
from passes.known import FLOATS, shape_of
from passes.scores import scores_of, unscaled
from passes.view_chain import perm_of


@graph_optimizer(P.Softmax("scores", name="softmax"), tag="E2")
def drop_bias_of_keys(m: Match, rw: Rewriter) -> Value:
    """Softmax(MatMul(q, Transpose(k + b))) -> Softmax(MatMul(q, Transpose(k)))

    b, the same for all tokens, adds the same to all scores of a query, which the Softmax takes off again.
    Scores may be scaled and masked in between, but not bounded. Where fewer nodes are wanted, the biases
    of queries, keys and values are one.
    """
    parts = scores_of(m, m.scores)
    if parts is None or parts.bound is not None:
        m.refuse("no product of queries and keys is found")
    hidden = parts.hidden
    m.require(hidden is None or is_far_below(m, m.scores, hidden.fill), "what is hidden is not far below")
    m.require(m.ctx.settings.objective != "nodes", "the bias is joined with others")
    m.require(m.rank(m.scores) == 4 and m.opset() >= 13, "the operands do not have four axes")
    m.require(m.softmax.attr("axis", -1) in (-1, 3), "the softmax runs over another axis")
    keys, factor = unscaled(m, parts.product.inputs[1])
    row = rows_of_swapped(m, keys)
    found = None if row is None else _biased(m, row)
    if row is None or found is None:
        m.refuse("nothing is added to all keys alike")
    bare = _from(m, rw, keys, row.value, found[0])
    if factor != 1:
        bare = rw.op.Mul(bare, rw.const(np.array(factor), like=m.scores))
    product = rw.op.MatMul(parts.product.inputs[0], bare)
    made: Value = rw.op.Softmax(_again(m, rw, m.scores, product), **m.softmax.attributes)
    return made


def _biased(m: Match, row: Rows) -> tuple[Value, Value] | None:
    """``(x, b)`` where rows are x + b, with a constant b for the last axis, and nothing else reads them."""
    node = m.producer(row.value)
    plain = row.rotary is None and row.part == (0, 1) and m.single_use(row.value)
    if node is None or node.op_type != "Add" or not plain or m.dtype(row.value) not in FLOATS:
        return None
    size = shape_of(m, row.value)[-1]
    for x, bias in zip(node.inputs, node.inputs[::-1], strict=True):
        shape = None if m.tensor(bias) is None else m.shape(bias)
        alike = shape and shape[-1] == size and all(dim == 1 for dim in shape[:-1])
        if alike and x is not None and bias is not None and m.same_shape(x, row.value):
            return x, bias
    return None


def _from(m: Match, rw: Rewriter, value: Value, old: Value, new: Value) -> Value:
    """``value``, made by views and Transposes of ``old``, made of ``new`` instead."""
    node = m.producer(value)
    if value == old or node is None or node.inputs[0] is None:
        return new
    made: Value = getattr(rw.op, node.op_type)(
        _from(m, rw, node.inputs[0], old, new), *node.inputs[1:], **node.attributes
    )
    return made


def _again(m: Match, rw: Rewriter, value: Value, product: Value) -> Value:
    """The scores, with another product of queries and keys."""
    node = m.producer(value)
    if node is None or node.op_type == "MatMul":
        return product
    operands = list(node.inputs)
    place = next(i for i, v in enumerate(operands) if scores_of(m, v) is not None)
    inner = operands[place]
    assert inner is not None
    operands[place] = _again(m, rw, inner, product)
    made: Value = getattr(rw.op, node.op_type)(*operands, **node.attributes)
    return made


# -------------------------------------------------------------------- of values

MIXED = P.MatMul(P.Softmax("scores", name="softmax"), "v", name="mixed").once()
JOINED = P.Reshape(P.Transpose(MIXED, name="transpose").once(), "target", name="joined").once()


@graph_optimizer(
    P.Add(P.MatMul(JOINED, P.const("w")).once(), P.const("b")).commutes(), constants="w b", tag="E2"
)
def move_bias_of_values(m: Match, rw: Rewriter) -> Value:
    """MatMul(Softmax(s) * (v + c), w) + b -> MatMul(Softmax(s) * v, w) + (MatMul(c, w) + b)

    With the heads side by side before and after it: the weights of a query sum up to 1, if there is a key.
    """
    m.require(m.ctx.settings.objective != "nodes", "the bias is joined with others")
    shape = shape_of(m, m.v)
    m.require(len(shape) == 4 and m.opset() >= 13, "the operands do not have four axes")
    m.require(m.softmax.attr("axis", -1) in (-1, 3), "the softmax runs over another axis")
    row = rows_of(m, m.v)
    found = None if row is None or row.tokens_first else _biased(m, row)
    if row is None or found is None:
        m.refuse("nothing is added to all values alike")
    side_by_side = perm_of(m.transpose, 4) == (0, 2, 1, 3)
    whole = (*shape_of(m, m.transpose.value())[:2], shape[1] * shape[3])
    same = (
        side_by_side
        and shape_of(m, m.joined.value()) == whole
        and shape_of(m, m.mixed.value())[1] == shape[1]
    )
    m.require(same, "heads and tokens are not swapped")
    m.require(shape[2].ge(1), "a tensor may be empty")
    w, b = m.f64(m.w), m.f64(m.b)
    m.require(w.ndim == 2 and b.shape[-1:] == w.shape[1:], "the bias is broadcast")
    moved = rw.const(b + m.f64(found[1]).reshape(-1) @ w, like=m.b)
    mixed = rw.op.MatMul(m.softmax.value(), _from(m, rw, m.v, row.value, found[0]))
    transposed = rw.op.Transpose(mixed, **m.transpose.attributes)
    joined = rw.op.Reshape(transposed, m.target, **m.joined.attributes)
    return rw.op.Add(rw.op.MatMul(joined, m.w), moved)
