"""What the kernel tests share: run one kernel, run one node in onnxruntime, compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper

from optimizer.ir import DType, ValueInfo
from optimizer.runtime.call import Call
from optimizer.runtime.kernels import load_kernels
from optimizer.runtime.registry import REGISTRY

load_kernels()

_TOLERANCES: dict[Any, tuple[float, float, float]] = {
    np.dtype(np.float64): (1e-9, 1e-12, 64 * 2.0**-53),
    np.dtype(np.float32): (1e-5, 1e-7, 64 * 2.0**-24),
    np.dtype(np.float16): (2e-3, 1e-6, 2.0**-10),
    np.dtype(ml_dtypes.bfloat16): (1.6e-2, 1e-6, 2.0**-7),
}
"""dtype -> (relative, absolute, relative to the largest magnitude) for one node."""


def run_kernel(
    op_type: str,
    inputs: Sequence[Any],
    attributes: Mapping[str, Any] | None = None,
    *,
    opset: int,
    domain: str = "",
    outputs: int = 1,
    constant: bool = False,
) -> list[Any]:
    """Runs the registered kernel on read-only copies of the inputs, as the session does."""
    found = REGISTRY.find(domain, op_type, opset)
    assert found is not None, f"no kernel for {domain}::{op_type}-{opset}"
    call = Call(
        op_type,
        {k: tuple(v) if isinstance(v, list) else v for k, v in (attributes or {}).items()},
        opset=opset,
        domain=domain,
        since=found.since,
        outputs=tuple(ValueInfo(f"y{i}") for i in range(outputs)),
        constant_inputs=frozenset(range(len(inputs))) if constant else frozenset(),
    )
    feeds = []
    for x in inputs:
        if isinstance(x, np.ndarray):
            x = x.copy()
            x.flags.writeable = False
        feeds.append(x)
    with np.errstate(all="ignore"):
        result = found.run(call, *feeds)
    results = list(result)[:outputs] if isinstance(result, tuple) else [result]
    return [np.asarray(r) if isinstance(r, np.generic) else r for r in results]


def run_onnxruntime(
    op_type: str,
    inputs: Sequence[np.ndarray | None],
    attributes: Mapping[str, Any] | None = None,
    *,
    opset: int,
    domain: str = "",
    outputs: int = 1,
) -> list[np.ndarray]:
    """Runs one node in onnxruntime with all optimizations off, one thread."""
    session, feeds = onnxruntime_node(
        op_type, inputs, attributes, opset=opset, domain=domain, outputs=outputs
    )
    return list(session.run(None, feeds))


def onnxruntime_node(
    op_type: str,
    inputs: Sequence[np.ndarray | None],
    attributes: Mapping[str, Any] | None = None,
    *,
    opset: int,
    domain: str = "",
    outputs: int = 1,
    optimize: bool = False,
) -> tuple[Any, dict[str, np.ndarray]]:
    """A session of one node and its feeds."""
    import onnxruntime as ort

    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op_type, names, results, domain=domain, **(attributes or {}))
    arrays = {n: x for n, x in zip(names, inputs, strict=True) if x is not None}
    declared = [
        helper.make_tensor_value_info(n, int(DType.from_numpy(x.dtype)), x.shape) for n, x in arrays.items()
    ]
    graph = helper.make_graph([node], "g", declared, [onnx.ValueInfoProto(name=r) for r in results])
    imports = [helper.make_opsetid("", opset if not domain else 20)]
    if domain:
        imports.append(helper.make_opsetid(domain, opset))
    model = helper.make_model(graph, opset_imports=imports, ir_version=10)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    if not optimize:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session, arrays


def assert_close(actual: Any, expected: Any, scale: float = 1.0) -> None:
    """The one-node rule: dtype, shape, NaN and Inf exactly, values within their dtype's tolerance."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    if expected.dtype not in _TOLERANCES:
        np.testing.assert_array_equal(actual, expected)
        return
    rtol, atol, srel = _TOLERANCES[expected.dtype]
    a, e = actual.astype(np.float64), expected.astype(np.float64)
    np.testing.assert_array_equal(np.isnan(a), np.isnan(e))
    finite = np.isfinite(e)
    np.testing.assert_array_equal(a[~finite], e[~finite])
    a, e = a[finite], e[finite]
    if e.size:
        bound = scale * (atol + rtol * abs(e) + srel * abs(e).max())
        worst = int(np.argmax(abs(a - e) - bound))
        assert abs(a[worst] - e[worst]) <= bound[worst], f"{a[worst]} instead of {e[worst]}"


def check(
    op_type: str,
    inputs: Sequence[np.ndarray | None],
    attributes: Mapping[str, Any] | None = None,
    *,
    opset: int,
    domain: str = "",
    outputs: int = 1,
    scale: float = 1.0,
) -> list[Any]:
    """Asserts that the kernel gives what onnxruntime gives; returns the kernel's results."""
    expected = run_onnxruntime(op_type, inputs, attributes, opset=opset, domain=domain, outputs=outputs)
    actual = run_kernel(op_type, inputs, attributes, opset=opset, domain=domain, outputs=outputs)
    for a, e in zip(actual, expected, strict=True):
        assert_close(a, e, scale)
    return actual


__all__ = ["TensorProto", "assert_close", "check", "onnxruntime_node", "run_kernel", "run_onnxruntime"]
