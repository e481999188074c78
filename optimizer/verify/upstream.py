"""Facts that rewrites relied on, tested on the intermediates of whole runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from optimizer.analysis.proofs import NON_NEGATIVE
from optimizer.ir import Graph, Node, Value
from optimizer.rewrite import Application, Context

Names = Mapping[tuple[str, ...], Mapping[Value, str]]
"""Scope path to value to name."""


class Watch:
    """Looks at named tensors while the executor runs.

    Args:
        relied: kind of fact that must hold, by tensor name.

    Attributes:
        relied: the same.
        seen: the tensors met.
        broken: what does not hold, by tensor, in words.
    """

    def __init__(self, relied: Mapping[str, str]) -> None:
        self.relied = relied
        self.seen: set[str] = set()
        self.broken: dict[str, str] = {}

    def __call__(self, node: Node, inputs: Sequence[Any], outputs: Sequence[Any], seconds: float) -> None:
        """An ``Options.after_node``."""
        for info, value in zip(node.outputs, outputs, strict=False):
            if info.name in self.relied and isinstance(value, np.ndarray):
                self.seen.add(info.name)
                if self.relied[info.name] == NON_NEGATIVE and value.size and value.dtype.kind in "fi":
                    with np.errstate(all="ignore"):
                        least = float(np.fmin.reduce(value, axis=None))
                    if least < 0:
                        self.broken.setdefault(
                            info.name, f"'{info.name}' is taken for {NON_NEGATIVE}, but it has {least:.6g}"
                        )


def relied_on(ctx: Context, names: Names) -> dict[str, tuple[str, Application]]:
    """The facts that a run relied on: tensor name to kind of fact, and the first application that did.

    Args:
        names: of the values that are left, by scope, in the file that is to be run. A value that is gone
            goes by the name that it had: what took its place may have it now, or the original.
    """
    entries = ctx.journal.entries[: ctx.journal.cursor]
    found: dict[str, tuple[str, Application]] = {}
    if not any(entry.facts for entry in entries):
        return found
    had: dict[tuple[Graph, Value], str] = {}
    for entry in entries:
        for graph, change in entry.changes:
            if change.before is not None:
                named = ((change.before.value(i), info.name) for i, info in enumerate(change.before.outputs))
                had.update(((graph, value), name) for value, name in named if name)
    for entry in entries:
        for value, kind in entry.facts:
            is_left = value.node in entry.graph
            name = names.get(entry.scope, {}).get(value) if is_left else had.get((entry.graph, value))
            if name:
                found.setdefault(name, (kind, entry))
    return found
