"""Texts of options turned into values, with an error that says what is expected."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

import click

from optimizer.analysis import SizeRange
from optimizer.ir import StorageError, UsageError

_DIM = r"(.+?)(?:%([1-9]\d*)=0|=(?:(\d+)|(\d*)\.\.(\d*)))"
_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def bound(_: click.Context, __: click.Parameter, value: float | None) -> float | None:
    """What an error may reach, as the callback of an option.

    Raises:
        click.BadParameter: negative, which nothing would pass, or NaN, which everything would.
    """
    if value is not None and not value >= 0:
        raise click.BadParameter(f"{value} is not a number from 0 on, as in 1e-5")
    return value


def opset(text: str | None) -> int | str | None:
    """``17`` -> 17, ``fused`` as it is.

    Raises:
        click.BadParameter: neither a positive number nor ``fused``.
    """
    if text is None or text == "fused":
        return text
    if not text.isdigit() or not int(text):
        raise click.BadParameter(f"'{text}' is neither an opset number nor 'fused'")
    return int(text)


def input_shapes(texts: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """``x:1,3,224,224`` -> {"x": (1, 3, 224, 224)}; ``s:`` is a scalar.

    Raises:
        click.BadParameter: not of that form.
    """
    found = {}
    for text in texts:
        name, colon, sizes = text.rpartition(":")
        try:
            shape = tuple(int(size) for size in sizes.split(",") if size.strip())
        except ValueError:
            shape = (-1,)
        if not colon or not name or min(shape, default=0) < 0:
            raise click.BadParameter(f"'{text}' is not NAME:SIZE,SIZE,... as in x:1,3,224,224")
        found[name] = shape
    return found


def dims(texts: Iterable[str]) -> dict[str, int | SizeRange]:
    """``batch=8`` -> 8, ``batch=1..64``, ``seq=1..`` and ``seq%8=0`` -> ``SizeRange``; several are joined.

    Raises:
        click.BadParameter: not of that form, or no size is left.
    """
    found: dict[str, SizeRange] = {}
    for text in texts:
        parsed = re.fullmatch(_DIM, text)
        if parsed is None:
            raise click.BadParameter(f"'{text}' is not NAME=SIZE, NAME=FROM..TO or NAME%DIVISOR=0")
        name, divisor, size, low, high = parsed.groups()
        low, high = (size, size) if size else (low, high)
        try:
            stated = SizeRange(int(low or 0), int(high) if high else None, int(divisor or 1))
            found[name] = stated & found.get(name, SizeRange())
        except UsageError as error:
            raise click.BadParameter(f"'{text}': {error}") from None
    return {name: limits if limits.only is None else limits.only for name, limits in found.items()}


def byte_count(text: str) -> int | None:
    """``none`` -> None, ``4MiB`` or ``4M`` -> 4194304, ``1000`` -> 1000.

    Raises:
        click.BadParameter: not of that form.
    """
    if text.lower() == "none":
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgb]?)(?:i?b)?", text.lower())
    if found is None:
        raise click.BadParameter(f"'{text}' is neither 'none' nor a size as in 4MiB")
    return int(float(found[1]) * _UNITS[found[2]])


def names(text: str | None) -> list[str] | None:
    """``fold,fuse,dce`` -> ["fold", "fuse", "dce"]."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def numbers(text: str) -> list[float]:
    """``0.485,0.456`` -> [0.485, 0.456].

    Raises:
        click.BadParameter: not of that form.
    """
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise click.BadParameter(f"'{text}' is not a list of numbers as in 0.5,0.5,0.5") from None


def assignments(texts: Iterable[str]) -> dict[str, str]:
    """``x=x.npy`` -> {"x": "x.npy"}.

    Raises:
        click.BadParameter: not of that form.
    """
    found = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not equals or not name or not path:
            raise click.BadParameter(f"'{text}' is not NAME=FILE as in x=x.npy")
        found[name] = path
    return found


def check_writable(name: str | Path) -> None:
    """Refuses a file that could not be written later, when the work is done.

    Raises:
        StorageError: it is a folder, or in none that exists.
    """
    file = Path(name)
    if file.is_dir() or str(name).endswith(("/", os.sep)):
        raise StorageError(f"{name}: is a folder; name a file to write")
    if not file.parent.is_dir():
        raise StorageError(f"{file}: cannot be written: there is no folder {file.parent}")
