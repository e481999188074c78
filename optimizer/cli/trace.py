"""What happens in each node of a run: time, results, and the first NaN."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import click
import numpy as np

from optimizer.ir import Node

Array = np.ndarray[Any, np.dtype[Any]]


class Trace:
    """Prints a line per result as nodes finish, and finds where the first NaN comes from.

    Attributes:
        seconds: of all nodes so far, those of bodies counted with their owners.
        nan: what to say about the first NaN, if there was one.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self.nan: str | None = None

    def after_node(
        self, node: Node, inputs: Sequence[Any], outputs: Sequence[Any], seconds: float | None
    ) -> None:
        """The hook of ``Options.after_node``; ``seconds`` is ``None`` where the time is not known."""
        self.seconds += seconds or 0.0
        time = "         -" if seconds is None else f"{seconds * 1e3:10.3f}"
        label = f"{node.op} '{node.name}'" if node.name else node.op
        for index, value in enumerate(outputs):
            if value is not None and index < len(node.outputs):
                name = node.outputs[index].name or f"output {index}"
                click.echo(f"{time} ms  {label} -> {describe_output(name, value)}")
                time = " " * 10
                self._look_for_nan(label, name, inputs, value)

    def _look_for_nan(self, label: str, name: str, inputs: Sequence[Any], value: Any) -> None:
        place = first_nan([value]) if self.nan is None else None
        if place is not None:
            origin = "came with its inputs" if first_nan(inputs) is not None else "was made there"
            self.nan = f"first NaN: {label} -> {name} at {list(place)}; it {origin}"

    def finish(self) -> None:
        """Prints the totals."""
        click.echo(f"{self.seconds * 1e3:10.3f} ms  all nodes")
        click.echo(self.nan or "no NaN")


def first_nan(values: Iterable[Any]) -> tuple[int, ...] | None:
    """The index of the first NaN in any of the float tensors."""
    for value in values:
        if isinstance(value, np.ndarray) and value.dtype.kind in "fcV":
            wrong = np.isnan(value if value.dtype.kind != "V" else value.astype(np.float32))
            if wrong.any():
                return tuple(int(i) for i in np.unravel_index(int(wrong.argmax()), wrong.shape))
    return None


def _kind(value: Any) -> str:
    """``float32``, ``map of 3``, ``empty optional``."""
    if isinstance(value, np.ndarray):
        return "string" if value.dtype == object else value.dtype.name
    if isinstance(value, dict):
        return f"map of {len(value)}"
    if value is None or type(value).__name__ == "Nothing":
        return "empty optional"
    return "sequence" if isinstance(value, list) else repr(value)


def describe_output(name: str, value: Any) -> str:
    """``name: dtype [shape] min .. max`` in one line, over the finite elements."""
    if isinstance(value, list):
        kinds = dict.fromkeys(_kind(item) for item in value)
        return f"{name}: sequence of {len(value)}" + (f" {', '.join(kinds)}" if kinds else "")
    if not isinstance(value, np.ndarray):
        return f"{name}: {_kind(value)}"
    text = f"{name}: {_kind(value)} {list(value.shape)}"
    if not value.size or value.dtype.kind not in "fiubV":
        return text
    wide = value.astype(np.float64) if value.dtype.kind in "fV" else value
    finite = wide[np.isfinite(wide)] if wide.dtype.kind == "f" else wide
    if finite.size:
        text += f" min {finite.min():.6g} max {finite.max():.6g}"
    bad = wide.size - finite.size
    return text + (f" ({bad} not finite)" if bad else "")
