"""Watching a pipeline from outside: printing, timing."""

from __future__ import annotations

import difflib
import time
from collections import defaultdict
from collections.abc import Callable, Collection
from typing import Protocol

from optimizer.ir.text import dump
from optimizer.rewrite.context import Context


class Instrument(Protocol):
    """Is told before and after each pass."""

    def before_pass(self, ctx: Context, name: str) -> None:
        """A pass is about to run."""
        ...

    def after_pass(self, ctx: Context, name: str, changed: bool) -> None:
        """A pass has run."""
        ...


class PrintAfter:
    """Prints what a pass changed, as a diff of the model's text.

    Args:
        wanted: names of the passes to print after; ``all`` stands for every one.
        write: takes each text.
    """

    def __init__(self, wanted: Collection[str], write: Callable[[str], None]) -> None:
        self._wanted = wanted
        self._write = write
        self._before: list[str] = []

    def before_pass(self, ctx: Context, name: str) -> None:
        """Takes down the text before."""
        if self._is_wanted(name):
            self._before = dump(ctx.model).splitlines()

    def after_pass(self, ctx: Context, name: str, changed: bool) -> None:
        """Prints the difference."""
        if changed and self._is_wanted(name):
            after = dump(ctx.model).splitlines()
            diff = difflib.unified_diff(
                self._before, after, f"before {name}", f"after {name}", lineterm="", n=1
            )
            self._write("\n".join(diff))

    def _is_wanted(self, name: str) -> bool:
        return name in self._wanted or "all" in self._wanted


class TimePasses:
    """Adds up the seconds and runs of each pass.

    Attributes:
        seconds: wall seconds by pass name.
        runs: how often each pass ran.
    """

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.runs: defaultdict[str, int] = defaultdict(int)
        self._start = 0.0

    def before_pass(self, ctx: Context, name: str) -> None:
        """Starts the clock."""
        self._start = time.perf_counter()

    def after_pass(self, ctx: Context, name: str, changed: bool) -> None:
        """Stops the clock."""
        self.seconds[name] += time.perf_counter() - self._start
        self.runs[name] += 1
