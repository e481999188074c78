"""Reading and writing arrays, and running a model on them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from optimizer.io import load
from optimizer.ir import StorageError, UsageError

if TYPE_CHECKING:
    from optimizer.runtime.options import MissingPolicy


def read_arrays(files: Mapping[str, str]) -> dict[str, np.ndarray]:
    """Reads one ``.npy`` file per input.

    Raises:
        StorageError: a file is missing or not an array.
    """
    arrays = {}
    for name, path in files.items():
        try:
            arrays[name] = np.load(path, allow_pickle=False)
        except (OSError, ValueError) as error:
            raise StorageError(f"input '{name}': cannot read an array from {path}: {error}") from error
        if not isinstance(arrays[name], np.ndarray):
            raise StorageError(f"input '{name}': {path} holds several arrays, one .npy is needed")
    return arrays


def run_model(
    path: str,
    given: Mapping[str, np.ndarray],
    seed: int,
    *,
    max_nodes: int | None,
    allow_missing_kernels: bool,
    verbose: bool,
) -> dict[str, Any]:
    """Runs a model; inputs not given are made from the seed.

    Raises:
        UsageError: an input of that name does not exist.
    """
    from optimizer.runtime import Options, Session
    from optimizer.verify import make_feeds

    model = load(path)
    names = [model.graph.info(value).name for value in model.graph.inputs]
    for name in given:
        if name not in names:
            raise UsageError(f"no input is called '{name}'; the inputs are {', '.join(names) or 'none'}")
    feeds = make_feeds(model, seed) | dict(given) if set(names) - set(given) else dict(given)
    policy: MissingPolicy = "allow" if allow_missing_kernels else "error"
    options = Options(verbose=verbose, max_nodes=max_nodes, allow_missing_kernels=policy, seed=seed)
    return Session(model, options).run(feeds)


def describe_output(name: str, value: Any) -> str:
    """``name: dtype [shape] min .. max`` in one line."""
    if not isinstance(value, np.ndarray):
        count = f" of {len(value)}" if isinstance(value, list) else ""
        return f"{name}: {type(value).__name__}{count}"
    text = f"{name}: {value.dtype} {list(value.shape)}"
    if value.size and value.dtype.kind in "fiub":
        wide = value.astype(np.float64)
        text += f" min {wide.min():.6g} max {wide.max():.6g}"
        bad = int(np.count_nonzero(~np.isfinite(wide)))
        text += f" ({bad} not finite)" if bad else ""
    return text


def write_arrays(outputs: Mapping[str, Any], folder: Path) -> None:
    """Writes each array output as ``NAME.npy``; characters that no file name takes become ``_``."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in outputs.items():
        if isinstance(value, np.ndarray) and value.dtype != object:
            safe = "".join(c if c.isalnum() or c in "._-" else "_" for c in name)
            np.save(folder / f"{safe}.npy", value)
            click.echo(f"wrote {folder / f'{safe}.npy'}")
