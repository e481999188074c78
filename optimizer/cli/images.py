"""A picture as the input of a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from optimizer.ir import DType, StorageError, TensorType, UsageError, ValueInfo

if TYPE_CHECKING:
    from PIL.Image import Image

SUFFIXES = frozenset((".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff"))
_MODES = {1: "L", 3: "RGB", 4: "RGBA"}

Sizes = Sequence[Any]


def is_image(path: str) -> bool:
    """Whether the file name is that of a picture."""
    return PurePath(path).suffix.lower() in SUFFIXES


def read_image(
    path: str, info: ValueInfo, mean: Sequence[float], std: Sequence[float], layout: str | None
) -> np.ndarray[Any, np.dtype[Any]]:
    """The picture in the type, layout and size that the input declares, as a batch of one.

    It is resized (bilinear) where the input says a size. Integers get 0..255; floats get 0..1, minus
    ``mean``, divided by ``std``, per channel.

    Args:
        mean, std: one number, or one per channel.
        layout: ``NCHW`` or ``NHWC``; ``None``: where the declared shape has 1, 3 or 4 channels.

    Raises:
        UsageError: the input takes no picture, Pillow is missing, or mean and std do not fit.
        StorageError: the file is missing or no picture.
    """
    declared = info.type
    if not isinstance(declared, TensorType) or declared.shape is None or len(declared.shape) != 4:
        raise UsageError(f"input '{info.name}' takes no picture: its shape has to have four dims")
    layout = layout or _layout_of(info.name, declared.shape)
    channels, height, width = (declared.shape[layout.index(letter)] for letter in "CHW")
    mode = _MODES.get(channels if isinstance(channels, int) else 3)
    if mode is None:
        raise UsageError(f"input '{info.name}' has {channels} channels; a picture has 1, 3 or 4")
    pixels = np.asarray(_opened(path, mode, width, height))
    pixels = pixels.reshape(*pixels.shape[:2], -1)
    if not declared.dtype.is_integer:
        pixels = (pixels / 255 - _per_channel("mean", mean, pixels)) / _per_channel("std", std, pixels)
    elif declared.dtype.bits < 8 or declared.dtype is DType.INT8:
        raise UsageError(f"input '{info.name}' of {declared.dtype.name} cannot hold 0..255")
    ordered = pixels.transpose(2, 0, 1) if layout == "NCHW" else pixels
    return np.ascontiguousarray(ordered[None]).astype(declared.dtype.numpy)


def _layout_of(name: str, shape: Sizes) -> str:
    for channels in (3, 1, 4):
        for layout in ("NCHW", "NHWC"):
            if shape[layout.index("C")] == channels:
                return layout
    raise UsageError(f"input '{name}': say --layout NCHW or NHWC, its shape does not tell")


def _opened(path: str, mode: str, width: Any, height: Any) -> Image:
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        raise UsageError(
            f"reading {path} needs Pillow: pip install 'oinfer-opt[images]', or give a .npy file"
        ) from error
    try:
        with Image.open(path) as opened:
            image = opened.convert(mode)
    except (OSError, UnidentifiedImageError, Image.DecompressionBombError) as error:
        raise StorageError(f"cannot read a picture from {path}: {error}") from error
    size = tuple(d if isinstance(d, int) else s for d, s in zip((width, height), image.size, strict=True))
    return image if size == image.size else image.resize((size[0], size[1]), Image.Resampling.BILINEAR)


def _per_channel(name: str, values: Sequence[float], pixels: np.ndarray) -> np.ndarray:
    if len(values) not in (1, pixels.shape[2]):
        raise UsageError(f"--{name} has {len(values)} numbers, the picture {pixels.shape[2]} channels")
    if name == "std" and 0 in values:
        raise UsageError("--std has a zero")
    return np.asarray(values, np.float64)
