"""The NumPy executor: runs models, parts of models and single nodes. Needs no other runtime."""

from optimizer.runtime.call import NONE, Call
from optimizer.runtime.context import ExecutionContext
from optimizer.runtime.errors import BadFeed, ExecutionError, LimitReached, MissingKernel
from optimizer.runtime.evaluate import evaluate, is_exact, is_foldable
from optimizer.runtime.options import Options
from optimizer.runtime.plan import MISSING
from optimizer.runtime.registry import REGISTRY, Kernel, KernelRegistry, kernel
from optimizer.runtime.resolve import find_kernel
from optimizer.runtime.session import Session, run_between

__all__ = [
    "MISSING",
    "NONE",
    "REGISTRY",
    "BadFeed",
    "Call",
    "ExecutionContext",
    "ExecutionError",
    "Kernel",
    "KernelRegistry",
    "LimitReached",
    "MissingKernel",
    "Options",
    "Session",
    "evaluate",
    "find_kernel",
    "is_exact",
    "is_foldable",
    "kernel",
    "run_between",
]
