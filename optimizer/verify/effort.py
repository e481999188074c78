"""What running a node costs, told from the shapes of its operands: the same on every machine.

Limits in these units, unlike those of a clock, stop the same run at the same node wherever it runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from optimizer.ir import Node
from optimizer.runtime import LimitReached

PER_SECOND = 2_000_000_000
"""Multiplications that the executor does in about a second, in large products."""
NUMPY_LIMIT = 120 * PER_SECOND
"""Work after which the executor gives up on a run: about two minutes."""
_PER_NODE = 4_000
_PER_ELEMENT = 4
"""An elementwise operator moves memory: one element costs as much as several multiplications."""
_RECURRENT = {"LSTM", "GRU", "RNN"}


def node_work(node: Node, inputs: Sequence[Any]) -> int:
    """About how many multiplications a node takes; for cheap ones, the time of so many."""
    shapes = [np.shape(x) if isinstance(x, np.ndarray) else () for x in inputs]
    work = _PER_NODE + _PER_ELEMENT * sum(math.prod(shape) for shape in shapes)
    if len(shapes) < 2 or not shapes[0] or not shapes[1]:
        return work
    x, w = shapes[:2]
    if node.op_type in ("Conv", "FusedConv", "ConvInteger", "QLinearConv") and len(x) > 2:
        strides = node.attr("strides") or ()
        kernel = shapes[3] if node.op_type == "QLinearConv" and len(shapes) > 3 else w
        work += math.prod(kernel) * x[0] * math.prod(x[2:]) // max(1, math.prod(strides))
    elif node.op_type == "ConvTranspose" and len(x) > 2:
        work += math.prod(w) * x[0] * math.prod(x[2:])
    elif node.op_type in ("MatMul", "MatMulInteger", "FusedMatMul"):
        work += math.prod(x) * w[-1]
    elif node.op_type == "Gemm":
        work += math.prod(x) * w[0 if node.attr("transB", 0) else -1]
    elif node.op_type in _RECURRENT and len(x) == 3:
        work += x[0] * x[1] * sum(math.prod(shape) for shape in shapes[1:3])
    return work


class Meter:
    """Adds up the work of a run; an ``Options.before_node``.

    Args:
        limit: raise ``LimitReached`` above this, ``None`` for no limit.

    Attributes:
        work: multiplications so far.
    """

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
        self.work = 0

    def __call__(self, node: Node, inputs: Sequence[Any]) -> None:
        """Counts one node.

        Raises:
            LimitReached: it is too much.
        """
        self.work += node_work(node, inputs)
        if self.limit is not None and self.work > self.limit:
            seconds = self.limit / PER_SECOND
            raise LimitReached(f"it takes longer than about {seconds:.0f} s")
