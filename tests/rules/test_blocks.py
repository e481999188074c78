"""Steps over blocks of pixels that are taken back, or done at once."""

from __future__ import annotations

from harness import Setup, rows, table_test

from passes.blocks import drop_blocks_there_and_back, merge_pools

X = Setup("float[N,4,6,6] x, float[N,4,12,12] p")

ROWS = [
    *rows(
        drop_blocks_there_and_back,
        X,
        [
            (
                "there",
                "a = DepthToSpace<blocksize=2>(x) b = SpaceToDepth<blocksize=2>(a) y = Relu(b)",
                "y = Relu(x)",
            ),
            (
                "back",
                "a = SpaceToDepth<blocksize=3>(x) b = DepthToSpace<blocksize=3>(a) y = Relu(b)",
                "y = Relu(x)",
            ),
        ],
        [
            (
                "blocks",
                "a = SpaceToDepth<blocksize=6>(x) y = DepthToSpace<blocksize=2>(a)",
                "the blocks differ",
            ),
            (
                "mode",
                'a = DepthToSpace<blocksize=2, mode="CRD">(x) y = SpaceToDepth<blocksize=2>(a)',
                "the channels are in another order",
            ),
        ],
    ),
    *rows(
        merge_pools,
        X,
        [
            (
                "maxima",
                (
                    "a = MaxPool<kernel_shape=[2,3], strides=[2,3]>(p) y = "
                    "MaxPool<kernel_shape=[2,1], strides=[2,1]>(a)"
                ),
                "y = MaxPool<kernel_shape=[4,3], strides=[4,3]>(p)",
            ),
            (
                "means",
                (
                    "a = AveragePool<kernel_shape=[2,2], strides=[2,2]>(p) "
                    "y = AveragePool<kernel_shape=[3,3], strides=[3,3]>(a)"
                ),
                "y = AveragePool<kernel_shape=[6,6], strides=[6,6]>(p)",
            ),
        ],
        [
            (
                "kinds",
                (
                    "a = MaxPool<kernel_shape=[2,2], strides=[2,2]>(p) "
                    "y = AveragePool<kernel_shape=[2,2], strides=[2,2]>(a)"
                ),
                "they are of two kinds",
            ),
            (
                "indices",
                (
                    "a = MaxPool<kernel_shape=[2,2], strides=[2,2]>(p) "
                    "y, y2 = MaxPool<kernel_shape=[2,2], strides=[2,2]>(a)"
                ),
                "indices are used",
            ),
            (
                "overlap",
                "a = MaxPool<kernel_shape=[2,2]>(p) y = MaxPool<kernel_shape=[2,2], strides=[2,2]>(a)",
                "the windows are not side by side",
            ),
            (
                "pads",
                (
                    "a = MaxPool<kernel_shape=[2,2], strides=[2,2], pads=[1,1,1,1]>(p) "
                    "y = MaxPool<kernel_shape=[2,2], strides=[2,2]>(a)"
                ),
                "they pad",
            ),
        ],
    ),
]

test_rows = table_test(ROWS)
