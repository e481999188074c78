"""Pixels moved by views, transposes and expansions."""

from __future__ import annotations

from harness import Setup, rows, table_test

from passes.idiom_pixel import fuse_pixel_shuffle, fuse_upsampling

X = Setup(
    "float[N,3,H,1,W,1] x, float[N,3,1,1,1,1] one, double[2,3,4,1,5,1] d, float[N,8,4,6] p, "
    "float[N,4,A] head",
    sizes=[{"N": 2, "H": 4, "W": 5, "A": 5}],
    rtol=1e-5,
)
OLD = Setup("float[2,3,4,1,5,1] x, float[2,8,4,6] p", opset=10)
UP = "e = Expand({0}, i64([1,1,1,2,1,3])) "
SHUFFLE = "r = Reshape(p, i64([{0}])) t = Transpose<perm=[{1}]>(r) y = Reshape(t, i64([{2}]))"

ROWS = [
    *rows(
        fuse_upsampling,
        Setup(
            "float[N,3,4,1,5,1] x, float[N,3,H,1,W,1] open, double[2,3,4,1,5,1] d, float[N,3,1,1,1,1] one",
            sizes=X.sizes,
        ),
        [
            (
                "twice",
                UP.format("x") + "y = Reshape(e, i64([0,3,8,15]))",
                (
                    's = Squeeze(x, i64([3,5])) y = Resize<mode="nearest", '
                    'coordinate_transformation_mode="asymmetric", '
                    'nearest_mode="floor">(s, , f32([1,1,2,3]))'
                ),
            )
        ],
        [
            ("double", UP.format("d") + "y = Reshape(e, i64([2,3,8,15]))", "not float32"),
            (
                "pixels-too",
                "e = Expand(one, i64([1,1,4,2,1,3])) y = Reshape(e, i64([0,3,8,3]))",
                "it is not each pixel that is repeated",
            ),
            (
                "joined-otherwise",
                UP.format("x") + "y = Reshape(e, i64([0,3,15,8]))",
                "it is not each pixel that is repeated",
            ),
        ],
    ),
    *rows(
        fuse_upsampling,
        OLD,
        (),
        [
            (
                "old",
                UP.format("x") + "y = Reshape(e, i64([2,3,8,15]))",
                "Resize needs a region before opset 13",
            )
        ],
    ),
    *rows(
        fuse_pixel_shuffle,
        X,
        [
            (
                "crd",
                SHUFFLE.format("0,2,2,2,4,6", "0,1,4,2,5,3", "0,2,8,12"),
                'y = DepthToSpace<blocksize=2, mode="CRD">(p)',
            ),
            (
                "dcr",
                SHUFFLE.format("0,2,2,2,4,6", "0,3,4,1,5,2", "0,2,8,12"),
                'y = DepthToSpace<blocksize=2, mode="DCR">(p)',
            ),
            (
                "space-to-depth",
                SHUFFLE.format("0,8,2,2,3,2", "0,3,5,1,2,4", "0,32,2,3"),
                "y = SpaceToDepth<blocksize=2>(p)",
            ),
        ],
        [
            ("other-order", SHUFFLE.format("0,2,2,2,4,6", "0,1,4,3,5,2", "0,2,8,12"), "no blocks are moved"),
            (
                "not-square",
                SHUFFLE.format("0,1,2,4,4,6", "0,1,4,2,5,3", "0,1,8,24"),
                "the blocks are not square",
            ),
            (
                "joined-otherwise",
                SHUFFLE.format("0,2,2,2,4,6", "0,1,4,2,5,3", "0,4,8,6"),
                "the blocks are not square",
            ),
        ],
    ),
    *rows(
        fuse_pixel_shuffle,
        OLD,
        [
            (
                "old-dcr",
                SHUFFLE.format("2,2,2,2,4,6", "0,3,4,1,5,2", "2,2,8,12"),
                "y = DepthToSpace<blocksize=2>(p)",
            )
        ],
        [
            (
                "old-crd",
                SHUFFLE.format("2,2,2,2,4,6", "0,1,4,2,5,3", "2,2,8,12"),
                "DepthToSpace has one mode before opset 11",
            )
        ],
    ),
]

test_rows = table_test(ROWS)
