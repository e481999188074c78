"""Which code runs an operator: own kernel, onnx.reference where trusted, the op's function body."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from optimizer.runtime.kernels import load_kernels
from optimizer.runtime.registry import REGISTRY, Kernel


def opset_of(opsets: Mapping[str, int], domain: str) -> int:
    """The imported version of ``domain``; 1 where the model forgot to import it."""
    plain = "" if domain == "ai.onnx" else domain
    return opsets.get(plain) or (opsets.get("ai.onnx", 0) if not plain else 0) or 1


def find_kernel(domain: str, op_type: str, opset: int) -> Kernel | None:
    """The kernel for an operator, or ``None`` where nothing here can run it."""
    load_kernels()
    return REGISTRY.find(domain, op_type, opset) or _borrowed(domain, op_type, opset)


@cache
def _borrowed(domain: str, op_type: str, opset: int) -> Kernel | None:
    from optimizer.runtime.delegate import find_delegate
    from optimizer.runtime.function_body import find_function_body

    return find_delegate(domain, op_type, opset) or find_function_body(domain, op_type, opset)
