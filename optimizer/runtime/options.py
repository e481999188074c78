"""How a session runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from optimizer.ir import Attribute, Graph, Node

MissingPolicy = Literal["error", "allow", "placeholder"]
Placeholder = Literal["zeros", "ones"] | Callable[[str, "np.dtype[Any]", tuple[int, ...]], "np.ndarray"]
BeforeNode = Callable[[Node, Sequence[Any]], None]
AfterNode = Callable[[Node, Sequence[Any], Sequence[Any], float], None]
BeforeBody = Callable[[Graph, Sequence[Any], Mapping[str, Attribute]], None]


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a ``Session``.

    Attributes:
        verbose: print one line per executed node.
        allow_missing_kernels: what happens where nothing can run an op. ``error``: raise
            ``MissingKernel`` when the session is compiled. ``allow``: run what is reachable; outputs
            that are not are ``MISSING``. ``placeholder``: zeros of the declared type take the place of
            the outputs, and ``Session.placeholders`` names them.
        placeholder_inputs: fills graph inputs that are not fed; unknown dims are 1. A callable gets
            name, dtype and shape.
        max_nodes: stop with ``LimitReached`` after so many nodes (those of bodies count).
        max_bytes: stop with ``LimitReached`` when live intermediates exceed so many bytes.
        deadline_s: stop with ``LimitReached`` after so many seconds.
        max_loop_iterations: a Loop that runs longer is an error.
        profile_memory: keep ``Session.context.memory``, live and peak bytes of intermediates.
        cache_bytes: budget for derived forms of constants (see ``Call.derived``).
        seed: of random ops.
        truth: compute every float tensor in float64.
        before_node: called with (node, inputs) before each node.
        after_node: called with (node, inputs, outputs, seconds) after each node.
        before_body: called with (graph, values, attributes) each time that a body or a function of the model
            starts: its inputs and behind them its captures; the attributes a function was called with.
        reuse_memory: write outputs over inputs that nobody needs any more. Not done where ``after_node``
            is to see both.
    """

    verbose: bool = False
    allow_missing_kernels: MissingPolicy = "error"
    placeholder_inputs: Placeholder | None = None
    max_nodes: int | None = None
    max_bytes: int | None = None
    deadline_s: float | None = None
    max_loop_iterations: int = 1_000_000
    profile_memory: bool = False
    cache_bytes: int = 256 << 20
    seed: int = 0
    truth: bool = False
    before_node: BeforeNode | None = None
    after_node: AfterNode | None = None
    before_body: BeforeBody | None = None
    reuse_memory: bool = True

    @property
    def reuses_memory(self) -> bool:
        """Whether outputs may be written over dead inputs."""
        return self.reuse_memory and self.after_node is None

    @property
    def counts_memory(self) -> bool:
        """Whether live bytes are kept."""
        return self.profile_memory or self.max_bytes is not None

    @property
    def watched(self) -> bool:
        """Whether every node needs looking at, so that the short loop does not do."""
        return bool(
            self.verbose
            or self.allow_missing_kernels != "error"
            or self.max_nodes is not None
            or self.max_bytes is not None
            or self.deadline_s is not None
            or self.profile_memory
            or self.before_node
            or self.after_node
        )
