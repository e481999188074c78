"""oinfer-opt: optimizes ONNX models and checks that their outputs stay the same.

``optimize``, ``check``, ``load``, ``save``, ``Session`` and ``graph_optimizer`` are the public API;
each is loaded when first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optimizer.api import Result, Session, check, graph_optimizer, load, optimize, save
    from optimizer.ir import OptimizerError
    from optimizer.rewrite import Match, P, Rewriter

__all__ = [
    "Match",
    "OptimizerError",
    "P",
    "Result",
    "Rewriter",
    "Session",
    "SizeRange",
    "check",
    "graph_optimizer",
    "load",
    "optimize",
    "save",
]

_HOMES = {
    "OptimizerError": "optimizer.ir",
    "Match": "optimizer.rewrite",
    "P": "optimizer.rewrite",
    "Rewriter": "optimizer.rewrite",
}


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(importlib.import_module(_HOMES.get(name, "optimizer.api")), name)
    raise AttributeError(f"module 'optimizer' has no attribute '{name}'")
