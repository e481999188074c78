"""A rule or pass that raises what is no refusal, and the line of its source where it does."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable
from typing import Any

from optimizer.ir import OptimizerError, UsageError


class RuleFailed(UsageError):
    """A rule or pass given by the caller raised something else than a refusal."""


def rule_failed(what: str, function: Callable[..., Any], error: Exception) -> RuleFailed:
    """The error to raise for ``error``, which came out of ``function``; ``what`` says what failed where."""
    kind = "" if isinstance(error, OptimizerError) else f"{type(error).__name__}: "
    return RuleFailed(f"{what}{_line(function, error)}: {kind}{error}")


def _line(function: Callable[..., Any], error: Exception) -> str:
    """`` (FILE, line N)``: the innermost call of the file that declares the function."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return ""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == code.co_filename]
    return f" ({code.co_filename}, line {lines[-1] if lines else code.co_firstlineno})"
