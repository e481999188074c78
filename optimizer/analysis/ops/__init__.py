"""The inference rules, one file per family. Importing this package declares them all."""

from optimizer.analysis.ops import (
    attention,
    classical,
    contrib,
    control_flow,
    convolution,
    creation,
    elementwise,
    images,
    matmul,
    movement,
    normalization,
    quantization,
    recurrent,
    reduction,
    sequences,
    views,
)

__all__ = [
    "attention",
    "classical",
    "contrib",
    "control_flow",
    "convolution",
    "creation",
    "elementwise",
    "images",
    "matmul",
    "movement",
    "normalization",
    "quantization",
    "recurrent",
    "reduction",
    "sequences",
    "views",
]
