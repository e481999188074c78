"""Transposes between views: the views take over what only splits or drops axes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from optimizer.analysis import Dim, product
from optimizer.analysis.atoms import Atom
from optimizer.ir import Node, Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.known import axes_of, constant_of, ints_of, known_sizes, rank_of, readers_of, shape_of
from passes.target import reshape_target

VIEWS = ("Reshape", "Squeeze", "Unsqueeze", "Flatten")


@graph_optimizer(
    P.one_of(*VIEWS)(
        P.Transpose(P.one_of(*VIEWS)("x", P.rest("there"), name="inner").once(), name="transpose").once(),
        P.rest("back"),
    ),
    tag="E0",
)
def split_axes_before_transpose(m: Match, rw: Rewriter) -> Value:
    """Reshape(Transpose(Reshape(x))) -> Transpose(Reshape(x)), or Transpose(x)

    Where the outer view only splits axes, or puts in and takes out axes of size 1: the inner one does
    that as well.
    """
    middle, final = shape_of(m, m.inner.value()), shape_of(m, m.root.value())
    perm = perm_of(m.transpose, len(middle))
    middle = _where_it_works(m, middle)
    groups = split_into(final, [middle[axis] for axis in perm])
    if groups is None:
        m.refuse("the outer view merges axes")
    by_axis = dict(zip(perm, groups, strict=True))
    order = [place for axis in sorted(by_axis) for place in by_axis[axis]]
    source, wanted = shape_of(m, m.x), [final[place] for place in order]
    inner: Value = m.x
    if list(source) != wanted:
        inner = rw.op.Reshape(m.x, rw.const(np.array(reshape_target(m, source, wanted, None), np.int64)))
    new_perm = [order.index(place) for place in range(len(final))]
    return inner if new_perm == sorted(new_perm) else rw.op.Transpose(inner, perm=new_perm)


@graph_optimizer(
    P.Transpose(P.Unsqueeze("x", P.maybe("axes"), name="inner").once(), name="transpose"), tag="E0"
)
def drop_transpose_of_new_axes(m: Match, rw: Rewriter) -> Value:
    """Transpose(Unsqueeze(x)) -> Unsqueeze(x), where only the new axes change their places"""
    rank = rank_of(m, m.root.value())
    new = axes_of(m, m.inner, 1, rank)
    perm = perm_of(m.transpose, rank)
    old = [axis for axis in perm if axis not in (new or ())]
    m.require(new and old == sorted(old), "it moves data")
    places = [place for place, axis in enumerate(perm) if axis in (new or ())]
    if m.opset() < 13:
        return rw.op.Unsqueeze(m.x, axes=places)
    return rw.op.Unsqueeze(m.x, rw.const(np.array(places, np.int64)))


def _where_it_works(m: Match, middle: Sequence[Dim]) -> tuple[Dim, ...]:
    """The dimensions of the inner view, given that the outer one does not fail.

    A target that may be 0 where the operand has no axis to copy fails when it is: so it is not 0.
    """
    outer = m.root
    if outer.op_type != "Reshape" or outer.attr("allowzero", 0):
        return tuple(middle)
    given = m.facts.value(_given(outer.inputs[1]))
    entries = [] if given is None else given.dims()[len(middle) :]
    sizes = {entry for entry in entries if entry is not None and entry.bounds[0] >= 0}
    atoms = {atom for dim in middle for atom in _atoms(dim)}
    known = {a: a.args[0] for a in atoms if a.kind == "orelse" and a.args[0] in sizes}
    return tuple(dim.substitute(known) for dim in middle) if known else tuple(middle)


def _atoms(dim: Dim) -> Iterator[Atom]:
    for monomial in dim.terms:
        for atom in monomial:
            yield atom
            for argument in atom.args:
                yield from _atoms(argument)


def _given(value: Value | None) -> Value:
    assert value is not None
    return value


def perm_of(transpose: Node, rank: int) -> tuple[int, ...]:
    """The permutation of a Transpose; it reverses the axes where none is given."""
    return tuple(transpose.attr("perm", range(rank)[::-1]))


def split_into(fine: Sequence[Dim], coarse: Sequence[Dim]) -> list[list[int]] | None:
    """For each axis of ``coarse`` the axes of ``fine`` whose product it is; ``None`` where there are none.

    An axis of size 1 may be the product of no axes.
    """
    groups: list[list[int]] = []
    place = 0
    for dim in coarse:
        group: list[int] = []
        while product(tuple(fine[i] for i in group)) != dim:
            if place == len(fine):
                return None
            group.append(place)
            place += 1
        groups.append(group)
    rest = list(range(place, len(fine)))
    if any(fine[i] != 1 for i in rest) or not groups:
        return None
    groups[-1] += rest
    return groups


# -------------------------------------------------------------------- parts of a last axis


@graph_optimizer(
    P.Gather(
        P.any_of(
            P.Transpose(P.Reshape("x", P.rest("there"), name="inner").once(), name="transpose"),
            P.Reshape("x", P.rest("there"), name="inner"),
        ),
        "i",
        name="gather",
    ),
    constants="i",
    tag="E0",
)
def replace_gather_of_split_axis_by_slice(m: Match, rw: Rewriter) -> Value:
    """Gather(Transpose(Reshape(x, [.., 3, n]), [2, 0, 1, 3]), i) -> Slice(x, [i * n], [(i + 1) * n])

    Where the Reshape splits an axis in two, the Transpose at most brings the parts to the front, and
    whatever reads them gathers one of them.
    """
    index = constant_of(m, m.i)
    m.require(not index.shape, "the index is no scalar")
    source, middle = shape_of(m, m.x), shape_of(m, m.inner.value())
    along = m.gather.attr("axis", 0) % len(middle)
    perm = perm_of(m.transpose, len(middle)) if hasattr(m, "transpose") else tuple(range(len(middle)))
    axis = perm[along]
    rest = [a for a in perm if a != axis]
    m.require(rest == sorted(rest), "the other axes are permuted")
    m.require(axis + 1 < len(middle) and axis < len(source), "no axis is split in two")
    left = (*source[:axis], *source[axis + 1 :])
    split = len(middle) == len(source) + 1 and left == (*middle[:axis], *middle[axis + 2 :])
    count, size = middle[axis].value, middle[axis + 1].value
    m.require(split and count and size, "no axis is split in two")
    assert count is not None
    assert size is not None
    for reader, slot in readers_of(m, m.gather.inputs[0]):
        scalar = reader.op_type == "Gather" and slot == 0 and m.array(reader.input(1)) is not None
        m.require(scalar and reader.attr("axis", 0) % len(middle) == along, "the parts are read otherwise")
    start = int(index.array) % count * size
    return sliced(m, rw, m.x, axis, start, start + size)


def sliced(m: Match, rw: Rewriter, x: Value, axis: int, start: int, end: int, step: int = 1) -> Value:
    """``x[start:end:step]`` along one axis; a step of its own needs opset 10."""
    bounds = [[start], [end], [axis], *([[step]] if step != 1 else [])]
    if m.opset() < 10:
        return rw.op.Slice(x, starts=bounds[0], ends=bounds[1], axes=bounds[2])
    return rw.op.Slice(x, *(rw.const(np.array(bound, np.int64)) for bound in bounds))


@graph_optimizer(P.Slice("x", P.rest("bounds"), name="slice"), tag="E0")
def merge_slices_into_split(m: Match, rw: Rewriter) -> Value:
    """Slice(x, [0], [2]), Slice(x, [2], [6]) beside it -> Split(x, [2, 4])

    Where the Slices of x along one axis are all of it, without gaps and without overlap.
    """
    shape = shape_of(m, m.x)
    own = slice_cut(m, m.slice, shape)
    m.require(own is not None, "it does not cut out a part of one axis")
    assert own is not None
    axis = own[0]
    existing = _split_of(m, m.x, axis)
    cuts = _cuts_along(m, axis) if existing is None else existing[1]
    edges = [0, *(end for _, end in cuts)]
    tiles = [start for start, _ in cuts] == edges[:-1] and edges[-1] == shape[axis].value
    m.require(len(cuts) > 1 and tiles and own[1:] in cuts, "the parts are not the whole")
    place = cuts.index(own[1:])
    if existing is not None:
        return existing[0].value(place)
    sizes = [end - start for start, end in cuts]
    if m.opset() < 13:
        made = rw.op.Split(m.x, outputs=len(cuts), axis=axis, split=sizes)
    else:
        made = rw.op.Split(m.x, rw.const(np.array(sizes, np.int64)), outputs=len(cuts), axis=axis)
    replaced: Value = made[place]
    return replaced


def _cuts_along(m: Match, axis: int) -> list[tuple[int, int]]:
    """What the Slices of x along one axis cut out of it, in order."""
    slices = [node for node, slot in readers_of(m, m.x) if node.op_type == "Slice" and not slot]
    found = [slice_cut(m, node, shape_of(m, m.x)) for node in slices]
    return sorted({cut[1:] for cut in found if cut is not None and cut[0] == axis})


def slice_cut(m: Match, node: Node, shape: Sequence[Dim]) -> tuple[int, int, int] | None:
    """(axis, start, end) of a Slice in steps of 1 along one axis of known size."""
    if node.input(4) is not None:
        steps = m.array(node.input(4))
        if steps is None or (steps != 1).any():
            return None
    if any(m.array(v) is None for v in node.inputs[1:4]) or any(
        a.reference for a in node.attributes.values()
    ):
        return None
    starts, ends = ints_of(m, node, "starts", 1), ints_of(m, node, "ends", 2)
    axes = ints_of(m, node, "axes", 3)
    if starts is None or ends is None or len(starts) != 1:
        return None
    axis = (axes[0] if axes else 0) % len(shape)
    size = shape[axis].value
    if size is None:
        return None
    start, end = (min(max(b + size if b < 0 else b, 0), size) for b in (starts[0], ends[0]))
    return (axis, start, end) if start < end else None


def _split_of(m: Match, x: Value, axis: int) -> tuple[Node, list[tuple[int, int]]] | None:
    """A Split of ``x`` along ``axis`` into parts of known sizes, with where each begins and ends."""
    for node, slot in readers_of(m, x):
        if node.op_type != "Split" or node.domain or slot:
            continue
        if node.attr("axis", 0) % rank_of(m, x) != axis or any(a.reference for a in node.attributes.values()):
            continue
        sizes = known_sizes(shape_of(m, node.value(i))[axis] for i in range(len(node.outputs)))
        if sizes is not None:
            ends = [int(e) for e in np.cumsum(sizes)]
            return node, list(zip([0, *ends[:-1]], ends, strict=True))
    return None
