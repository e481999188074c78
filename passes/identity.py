"""Operators that return one of their inputs unchanged."""

from __future__ import annotations

import numpy as np

from optimizer.ir import Node, Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.known import constant_of, shape_of
from passes.results import only_names_results


@graph_optimizer(P.Identity("x"), tag="E0")
def drop_identity(m: Match, rw: Rewriter) -> Value:
    """Identity(x) -> x

    Unless all it does is to give an output a name that its operand cannot bear: the file needs it.
    """
    m.require(not only_names_results(m.graph, m.root), "it only gives an output its name")
    return m.x


@graph_optimizer(P.Dropout("x", P.maybe("ratio"), P.maybe("training")), tag="E0")
def drop_dropout(m: Match, rw: Rewriter) -> Value:
    """Dropout(x) -> x

    Outside of training. Up to opset 6 an attribute tells, from 12 on an input; in between it never trains.
    """
    m.require(m.opset() >= 7 or m.root.attr("is_test", 0), "dropout is in training mode")
    training = m.array(m.training)
    m.require(m.training is None or training is not None, "whether dropout trains is not known")
    m.require(training is None or not training.any(), "dropout is in training mode")
    m.require(len(m.root.outputs) < 2 or not m.graph.has_uses(m.root.value(1)), "the mask is used")
    return m.x


@graph_optimizer(
    P.one_of("Reshape", "Flatten", "Expand", "Squeeze", "Unsqueeze", "Tile")("x", P.rest("more")), tag="E0"
)
def drop_noop_view(m: Match, rw: Rewriter) -> Value:
    """Reshape|Flatten|Expand|Squeeze|Unsqueeze|Tile(x) -> x

    None of them moves an element unless the shape changes; a Tile that keeps the shape repeats once,
    or an empty axis.
    """
    m.require(m.same_shape(m.root.value(), m.x), "the shape may change")
    return m.x


@graph_optimizer(P.Transpose("x"), tag="E0")
def drop_noop_transpose(m: Match, rw: Rewriter) -> Value:
    """Transpose<perm=[0, 1, ...]>(x) -> x"""
    perm = m.root.attr("perm")
    if perm is None:
        m.require(m.rank(m.x) in (0, 1), "without perm the axes are reversed")
    else:
        m.require(list(perm) == list(range(len(perm))), "the axes are permuted")
    return m.x


@graph_optimizer(P.Slice("x", P.rest("bounds")), tag="E0")
def drop_noop_slice(m: Match, rw: Rewriter) -> Value:
    """Slice(x, everything) -> x"""
    steps = m.array(m.root.input(4))
    m.require(m.root.input(4) is None or steps is not None, "the steps are not known")
    m.require(steps is None or (steps > 0).all(), "a step is negative")
    m.require(m.same_shape(m.root.value(), m.x), "something may be cut off")
    return m.x


@graph_optimizer(P.Pad("x", P.rest("more")), tag="E0")
def drop_noop_pad(m: Match, rw: Rewriter) -> Value:
    """Pad<pads=0>(x) -> x"""
    given = m.root.attr("pads", m.root.attr("paddings"))
    pads = m.array(m.root.input(1)) if given is None else np.asarray(given)
    m.require(pads is not None, "the pads are not known")
    m.require(not np.any(pads), "something is padded")
    return m.x


@graph_optimizer(P.one_of("Concat", "Sum", "Mean", "Max", "Min")("x"), tag="E0")
def drop_single_operand(m: Match, rw: Rewriter) -> Value:
    """Concat|Sum|Mean|Max|Min(x) -> x"""
    return m.x


@graph_optimizer(P.Split("x", P.rest("sizes")), tag="E0")
def drop_single_split(m: Match, rw: Rewriter) -> Value:
    """Split(x) -> x, where x stays in one piece"""
    m.require(len(m.root.outputs) == 1, "there are several pieces")
    return m.x


@graph_optimizer(P.Concat(P.rest("parts", least=2), name="concat"), tag="E0")
def drop_empty_operands(m: Match, rw: Rewriter) -> Value:
    """Concat(x, empty, y) -> Concat(x, y)"""
    shapes = [shape_of(m, part) for part in m.parts]
    axis = m.concat.attr("axis", 1) % max(len(shapes[0]), 1)
    full = [part for part, shape in zip(m.parts, shapes, strict=True) if shape[axis].value != 0]
    m.require(0 < len(full) < len(m.parts), "no operand is proven empty")
    return full[0] if len(full) == 1 else rw.op.Concat(*full, **m.concat.attributes)


@graph_optimizer(P.Gather("x", "i"), constants="i", tag="E0")
def drop_gather_of_everything(m: Match, rw: Rewriter) -> Value:
    """Gather(x, [0, 1, ..., n - 1]) -> x"""
    shape, index = shape_of(m, m.x), constant_of(m, m.i)
    length = shape[m.root.attr("axis", 0) % len(shape)].value or 0
    m.require(length and index.shape == (length,), "not every index is taken")
    m.require(np.array_equal(index.array % length, np.arange(length)), "the order changes")
    return m.x


@graph_optimizer(P.one_of("Resize", "Upsample")("x", P.rest("more")), tag="E0")
def drop_noop_resize(m: Match, rw: Rewriter) -> Value:
    """Resize<scales=1>(x) -> x"""
    m.require(m.root.attr("coordinate_transformation_mode") != "tf_crop_and_resize", "a region is cropped")
    scales = _scales_of(m, m.root)
    if scales is None:
        m.require(m.root.attr("keep_aspect_ratio_policy", "stretch") == "stretch", "the aspect ratio is kept")
        m.require(m.same_shape(m.root.value(), m.x), "the shape may change")
    else:
        m.require((scales == 1).all(), "it is scaled")
    return m.x


def _scales_of(m: Match, node: Node) -> np.ndarray | None:
    """The constant scales; ``None`` where the result is given by its sizes."""
    if "scales" in node.attributes:
        return np.asarray(node.attr("scales"))
    slot = 1 if node.op_type == "Upsample" or m.opset() < 11 else 2
    tensor = m.tensor(node.input(slot))
    if node.input(slot) is None or (tensor is not None and not tensor.size and node.input(3) is not None):
        return None
    return m.refuse("the scales are not known") if tensor is None else tensor.array


@graph_optimizer(P.one_of("DepthToSpace", "SpaceToDepth")("x", blocksize=1), tag="E0")
def drop_unit_blocks(m: Match, rw: Rewriter) -> Value:
    """DepthToSpace|SpaceToDepth<blocksize=1>(x) -> x"""
    return m.x


@graph_optimizer(P.one_of("MaxPool", "AveragePool")("x", name="pool"), tag="E1")
def drop_unit_pool(m: Match, rw: Rewriter) -> Value:
    """MaxPool|AveragePool<kernel_shape=1>(x) -> x"""
    m.require(all(k == 1 for k in m.pool.attr("kernel_shape", ())), "the window holds several elements")
    m.require(all(s == 1 for s in m.pool.attr("strides", ())), "it skips elements")
    m.require(not any(m.pool.attr("pads", ())), "it is padded")
    m.require(len(m.pool.outputs) < 2 or not m.graph.has_uses(m.pool.value(1)), "the indices are used")
    return m.x


_EMPTY_REDUCTIONS = ("ReduceMax", "ReduceMin", "ReduceProd", "ReduceMean", "ReduceSum")


@graph_optimizer(
    P.one_of(*_EMPTY_REDUCTIONS, "GlobalAveragePool", "GlobalMaxPool")("x", P.rest("axes")), tag="E1"
)
def drop_reduction_of_nothing(m: Match, rw: Rewriter) -> Value:
    """Reduce(x) over axes of size 1 -> x

    A reduction that keeps the shape only joins single elements. A sum may turn -0 into 0.
    """
    m.require(m.same_shape(m.root.value(), m.x), "the shape may change")
    return m.x


_ROUNDED = P.one_of("Ceil", "Floor", "Round")("x", name="inner")


@graph_optimizer(
    P.any_of(
        P.Relu(P.Relu("x", name="inner")),
        P.Abs(P.Abs("x", name="inner")),
        P.Sign(P.Sign("x", name="inner")),
        P.one_of("Ceil", "Floor", "Round")(_ROUNDED),
    ),
    tag="E0",
)
def drop_repeated_operator(m: Match, rw: Rewriter) -> Value:
    """Relu(Relu(x)) -> Relu(x), and Abs, Sign, Ceil|Floor|Round likewise

    What is rounded already stays as it is, whichever way it is rounded again.
    """
    return m.inner.value()


@graph_optimizer(P.any_of(P.Neg(P.Neg("x")), P.Not(P.Not("x")), P.BitwiseNot(P.BitwiseNot("x"))), tag="E0")
def drop_involution(m: Match, rw: Rewriter) -> Value:
    """Neg(Neg(x)) -> x, and Not, BitwiseNot likewise"""
    return m.x
