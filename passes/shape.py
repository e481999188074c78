"""The operator Shape, and what is computed from it."""

from __future__ import annotations

from collections.abc import Hashable

from optimizer.ir import DType, Graph, Node, Value
from optimizer.rewrite import Context, Match, P, Rewriter, ScopePass, graph_optimizer
from passes.known import constant_of, rank_of
from passes.results import only_names_results

_SHAPE = P.Shape("x", name="told")


def _part(m: Match, rw: Rewriter, start: int, end: int) -> Value:
    """Dimensions ``start`` to ``end`` of what the matched Shape gives."""
    m.require(m.opset() >= 15, "Shape has no start and end before opset 15")
    first, last = _extent(m, m.told)
    length = max(last - first, 0)
    start, end = (min(max(i + length if i < 0 else i, 0), length) for i in (start, end))
    return rw.op.Shape(m.x, start=first + start, end=first + max(start, end))


def _extent(m: Match, shape: Node) -> tuple[int, int]:
    """The axes that a Shape tells, from and to."""
    rank = rank_of(m, shape.inputs[0]) if shape.inputs[0] is not None else 0
    start, end = shape.attr("start", 0), shape.attr("end", rank)
    start, end = (min(max(i + rank if i < 0 else i, 0), rank) for i in (start, end))
    return start, end


@graph_optimizer(
    P.Slice(_SHAPE, "starts", "ends", P.maybe("axes"), P.maybe("steps")),
    constants="starts ends axes steps",
    tag="E0",
)
def fold_slice_into_shape(m: Match, rw: Rewriter) -> Value:
    """Slice(Shape(x), [a], [b]) -> Shape<start=a, end=b>(x)"""
    m.require(m.steps is None or (constant_of(m, m.steps).array == 1).all(), "it skips dimensions")
    bounds = [constant_of(m, v).array for v in (m.starts, m.ends)]
    m.require(all(bound.size == 1 for bound in bounds), "it has not one start and one end")
    start, end = (int(bound.item()) for bound in bounds)
    return _part(m, rw, start, end)


@graph_optimizer(P.Gather(_SHAPE, "indices"), constants="indices", tag="E0")
def fold_gather_into_shape(m: Match, rw: Rewriter) -> Value:
    """Gather(Shape(x), [a, a + 1, ...]) -> Shape<start=a, end=...>(x)"""
    indices = constant_of(m, m.indices).array
    m.require(indices.ndim == 1 and indices.size, "a dimension is taken as a scalar")
    first = int(indices[0])
    in_order = indices.tolist() == list(range(first, first + len(indices)))
    m.require(in_order and (first < 0) == (indices[-1] < 0), "the dimensions are taken in another order")
    last = first + len(indices)
    return _part(m, rw, first, last if last else 1 << 30)


@graph_optimizer(
    P.one_of("Unsqueeze", "Reshape")(P.Gather(_SHAPE, "index").once(), P.rest("axes")),
    constants="index",
    tag="E0",
)
def fold_single_dimension_into_shape(m: Match, rw: Rewriter) -> Value:
    """Unsqueeze(Gather(Shape(x), i)) -> Shape<start=i, end=i + 1>(x)"""
    m.require(constant_of(m, m.index).size == 1, "several dimensions are taken")
    m.require(m.rank(m.root.value()) == 1, "the result is no vector")
    index = int(constant_of(m, m.index).array.item())
    return _part(m, rw, index, index + 1 if index != -1 else 1 << 30)


@graph_optimizer(P.Concat(P.rest("parts", least=2), name="concat"), tag="E0")
def join_shape_parts(m: Match, rw: Rewriter) -> Value:
    """Concat(Shape<start=a, end=b>(x), Shape<start=b, end=c>(x)) -> Shape<start=a, end=c>(x)"""
    m.require(m.opset() >= 15, "Shape has no start and end before opset 15")
    groups: list[list[tuple[Value, Node | None]]] = []
    for part in m.parts:
        node = m.producer(part)
        told = node if node is not None and node.op == "Shape" and m.single_use(part) else None
        if groups and told is not None and _goes_on(m, groups[-1][-1][1], told):
            groups[-1].append((part, told))
        else:
            groups.append([(part, told)])
    m.require(len(groups) < len(m.parts), "no neighbours are parts of one shape that only this reads")
    parts = [_joined(m, rw, group) for group in groups]
    return parts[0] if len(parts) == 1 else rw.op.Concat(*parts, **m.concat.attributes)


def _goes_on(m: Match, before: Node | None, node: Node) -> bool:
    """Whether ``node`` tells the dimensions of the same tensor that follow those ``before`` tells."""
    same = before is not None and before.inputs == node.inputs
    return same and before is not None and _extent(m, before)[1] == _extent(m, node)[0]


def _joined(m: Match, rw: Rewriter, group: list[tuple[Value, Node | None]]) -> Value:
    first, last = group[0][1], group[-1][1]
    if len(group) == 1 or first is None or last is None:
        return group[0][0]
    return rw.op.Shape(first.inputs[0], start=_extent(m, first)[0], end=_extent(m, last)[1])


@graph_optimizer(P.Shape("y", name="told"), tag="E0")
def read_shape_from_source(m: Match, rw: Rewriter) -> Value:
    """Shape(f(x)) -> Shape(x), where f keeps the shape and is computed for nothing but its shape"""
    node = m.producer(m.y)
    m.require(node is not None and len(node.outputs) == 1, "no operator makes it alone")
    assert node is not None
    readers = (m.graph.node(key) for key in m.graph.users(node.id))
    m.require(all(reader.op == "Shape" for reader in readers), "it is computed for more than its shape")
    sources = (v for v in node.inputs if v is not None and m.same_shape(v, m.y))
    source = next(sources, None)
    m.require(source is not None, "no operand is proven to have this shape")
    return rw.op.Shape(source, **m.told.attributes)


# -------------------------------------------------------------------- by value, not by form


def share_by_contents(ctx: Context, path: tuple[str, ...], graph: Graph) -> bool:
    """Merges integer values whose symbolic contents are the same, however they are computed. O(nodes)."""
    facts = ctx.facts(graph)
    firsts: dict[Hashable, Value] = {}
    changed = False
    for key in [node.id for node in graph.topological()]:
        if key not in graph or len(graph.node(key).outputs) != 1:
            continue
        node = graph.node(key)
        if only_names_results(graph, node):
            continue
        fact = facts.of(node.value())
        if fact.value is None or fact.dtype not in (DType.INT64, DType.INT32) or None in fact.value.items:
            continue
        contents = (fact.dtype, fact.value.shape, tuple(fact.value.items))
        first = firsts.get(contents)
        if first is None or first not in graph:
            firsts[contents] = node.value()
        elif not ctx.is_kept(node) and ctx.allows("share-by-contents", path, graph, node):
            changed |= _merge(ctx, path, graph, node, first)
    return changed


def _merge(ctx: Context, path: tuple[str, ...], graph: Graph, node: Node, first: Value) -> bool:
    with ctx.application("share-by-contents", graph, node, scope=path) as entry:
        ctx.redirect(graph, node.value(), first)
        entry.pairs.append((node.value(), first))
        ctx.erase_dead(graph, node.id)
    ctx.stats["share-by-contents"].fired += 1
    return ctx.accept(entry)


SHARE = ScopePass("share-by-contents", share_by_contents)
