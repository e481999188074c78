"""Pixels moved by views, transposes and expansions: Resize, DepthToSpace, SpaceToDepth."""

from __future__ import annotations

import numpy as np

from optimizer.ir import DType, Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.known import shape_of
from passes.view_chain import perm_of


@graph_optimizer(P.Reshape(P.Expand("x", "to", name="expand").once(), "target"), tag="E0")
def fuse_upsampling(m: Match, rw: Rewriter) -> Value:
    """Reshape(Expand(x [n, c, h, 1, w, 1], [.., 2, .., 2])) -> Resize(Squeeze(x), scales=[1, 1, 2, 2])"""
    m.require(m.opset() >= 13, "Resize needs a region before opset 13")
    m.require(m.dtype(m.x) is DType.FLOAT, "not float32")
    before, wide = shape_of(m, m.x), shape_of(m, m.expand.value())
    fits = len(before) == len(wide) == 6 and before[3] == before[5] == 1
    m.require(
        fits and (*wide[:3], wide[4]) == (*before[:3], before[4]), "it is not each pixel that is repeated"
    )
    factors = wide[3].value, wide[5].value
    m.require(all(factors), "it is not each pixel that is repeated")
    n, c, h, s, w, t = wide
    m.require(shape_of(m, m.root.value()) == (n, c, h * s, w * t), "it is not each pixel that is repeated")
    scales = rw.const(np.array([1, 1, *factors], np.float32))
    image = rw.op.Squeeze(m.x, rw.const(np.array([3, 5], np.int64)))
    return rw.op.Resize(
        image, None, scales, mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"
    )


_SHUFFLES: dict[tuple[int, ...], tuple[str, str]] = {
    (0, 1, 4, 2, 5, 3): ("DepthToSpace", "CRD"),
    (0, 3, 4, 1, 5, 2): ("DepthToSpace", "DCR"),
    (0, 3, 5, 1, 2, 4): ("SpaceToDepth", ""),
}


@graph_optimizer(
    P.Reshape(P.Transpose(P.Reshape("x", "split", name="inner").once(), name="transpose").once(), "joined"),
    tag="E0",
)
def fuse_pixel_shuffle(m: Match, rw: Rewriter) -> Value:
    """Reshape(Transpose(Reshape(x))) -> DepthToSpace(x), or SpaceToDepth(x)

    Where square blocks of pixels become channels, or channels become such blocks.
    """
    shape, middle, final = (shape_of(m, v) for v in (m.x, m.inner.value(), m.root.value()))
    found = _SHUFFLES.get(perm_of(m.transpose, len(middle)))
    m.require(len(shape) == len(final) == 4 and found, "no blocks are moved")
    assert found is not None
    kind, mode = found
    m.require(m.opset() >= (11 if mode == "CRD" else 1), "DepthToSpace has one mode before opset 11")
    n = shape[0]
    size = middle[2 if mode == "CRD" else 3 if kind == "SpaceToDepth" else 1].value
    m.require(size and size > 1, "no blocks are moved")
    assert size is not None
    fine = final if kind == "DepthToSpace" else shape
    coarse = shape if kind == "DepthToSpace" else final
    m.require(fine[2] == coarse[2] * size and fine[3] == coarse[3] * size, "the blocks are not square")
    m.require(coarse[1] == fine[1] * size * size and n == coarse[0], "no blocks are moved")
    rows, columns = coarse[2], coarse[3]
    expected = {
        "CRD": (n, fine[1], size, size, rows, columns),
        "DCR": (n, size, size, fine[1], rows, columns),
        "": (n, fine[1], rows, size, columns, size),
    }
    m.require(all(a == b for a, b in zip(middle, expected[mode], strict=True)), "no blocks are moved")
    if kind == "SpaceToDepth":
        return rw.op.SpaceToDepth(m.x, blocksize=size)
    return rw.op.DepthToSpace(m.x, blocksize=size, mode=mode if m.opset() >= 11 else None)
