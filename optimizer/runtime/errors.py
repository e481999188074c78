"""What can go wrong while a model runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from optimizer.ir import OptimizerError, UsageError, Value

if TYPE_CHECKING:
    from optimizer.runtime.call import Call


class MissingKernel(OptimizerError):
    """Nothing here can run an operator of the model."""

    @classmethod
    def of(cls, op: str, opset: int, label: str) -> MissingKernel:
        """The error for one node; ``label`` is how the graph calls it."""
        return cls(f"{label}: no kernel for {op} version {opset}")


class ExecutionError(OptimizerError):
    """A kernel refused its inputs. The cause is the kernel's own exception."""

    @classmethod
    def at(cls, call: Call, inputs: Sequence[Any], error: Exception) -> ExecutionError:
        """The error for one node: node, op, version, inputs, and what the kernel said."""
        made = next((o.name for o in call.outputs if o.name), "")
        op = f"{call.domain}::{call.op_type}" if call.domain else call.op_type
        names = [*call.inputs, *[""] * len(inputs)]
        shown = ", ".join(
            f"{name}: {describe(value)}" if name and value is not None else describe(value)
            for name, value in zip(names, inputs, strict=False)
        )
        said = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        name = f" '{call.name}'" if call.name else ""
        target = f" -> '{made}'" if made else ""
        return cls(f"{op}-{call.opset}{name}{target} failed on ({shown}): {said}")


class LimitReached(OptimizerError):
    """A run was stopped by ``max_nodes``, ``max_bytes`` or ``deadline_s``.

    Attributes:
        live: the values of the main graph that were live when it stopped.
        partial: the same by tensor name, where they have one.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.live: dict[Value, Any] = {}
        self.partial: dict[str, Any] = {}


class BadFeed(UsageError):
    """An input is missing, unknown, or of the wrong type or shape."""


def describe(value: Any) -> str:
    """``float32[2,3]``, ``sequence of 4``, ``-`` for an omitted input."""
    if value is None:
        return "-"
    if isinstance(value, (np.ndarray, np.generic)):
        name = "string" if value.dtype == object else value.dtype.name
        return f"{name}[{','.join(map(str, value.shape))}]"
    return f"sequence of {len(value)}" if isinstance(value, list) else repr(value)
