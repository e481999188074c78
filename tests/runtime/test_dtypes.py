"""Element types that operators take: declared for every kernel, and others refused by name before it runs."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import defs

from optimizer.io import parse
from optimizer.ir import DType
from optimizer.runtime import REGISTRY, ExecutionError, Session
from optimizer.runtime.dtypes import signature
from optimizer.runtime.evaluate import evaluate
from optimizer.runtime.kernels import load_kernels

load_kernels()

F2, I2 = np.float32([1, 2]), np.int64([1, 0])
WRONG: tuple[tuple[int, str, dict[str, Any], str], ...] = (
    (13, "Gather (x, i)", {"x": F2, "i": F2}, "input 1 'i' is float32; version 13 takes int32 or int64"),
    (14, "Add (x, i)", {"x": F2, "i": I2}, "input 1 'i' is int64; input 0 is float32, and both"),
    (13, "Add (x, i)", {"x": F2 > 1, "i": F2 > 1}, "input 0 'x' is bool; version 13 takes"),
    (13, "Relu (x)", {"x": I2}, "input 0 'x' is int64; version 13 takes float32, float16"),
    (13, "MatMul (x, i)", {"x": F2 > 1, "i": F2 > 1}, "input 0 'x' is bool"),
    (13, "Concat <axis = 0> (x, x, i)", {"x": F2, "i": I2}, "input 2 'i' is int64; input 0 is float32"),
    (13, "Where (x, i, i)", {"x": F2, "i": I2}, "input 0 'x' is float32; version 9 takes bool there"),
    (13, "Not (x)", {"x": I2}, "input 0 'x' is int64; version 1 takes bool there"),
    (13, "Clip (x, , i)", {"x": F2, "i": np.int64(1)}, "input 2 'i' is int64; input 0 is float32"),
    (13, "ConcatFromSequence <axis = 0> (x)", {"x": F2}, "input 0 'x' is float32; version 11 takes seq"),
    (13, "Size (x)", {"x": [F2]}, "input 0 'x' is a sequence of float32; version 13 takes"),
    (13, "SequenceInsert (x, i)", {"x": [F2], "i": ml_dtypes.bfloat16(F2)}, "input 1 'i' is bfloat16"),
    (13, "com.microsoft.BiasGelu (x, i)", {"x": F2, "i": I2}, "input 1 'i' is int64; version 1 takes"),
    (13, "com.microsoft.QuickGelu (x)", {"x": I2}, "input 0 'x' is int64; version 1 takes"),
)  # fmt: skip


def model_of(opset: int, node: str, feeds: dict[str, Any]) -> Any:
    """One node; the types of its inputs are not declared, so that nothing but a run can tell."""
    header = f'<ir_version: 10, opset_import: ["" : {opset}, "com.microsoft" : 1]>'
    return parse(f"{header} g ({', '.join(feeds)}) => (y) {{ [here] y = {node} }}")


@pytest.mark.parametrize(("opset", "node", "feeds", "said"), WRONG)
def test_a_wrong_type_is_refused_by_name(opset: int, node: str, feeds: dict[str, Any], said: str) -> None:
    op = node.split()[0].replace("com.microsoft.", "com.microsoft::")
    version = 1 if "::" in op else opset
    with pytest.raises(ExecutionError, match=f"^{op}-{version} 'here' -> 'y' failed on .*: {said}"):
        Session(model_of(opset, node, feeds)).run(feeds)


def test_what_a_later_version_takes_runs_there() -> None:
    feeds = {"x": np.int32([-1, 2])}
    assert Session(model_of(14, "Relu (x)", feeds)).run(feeds)["y"].tolist() == [0, 2]


def test_types_are_looked_at_again_where_others_come_in() -> None:
    session = Session(parse('<ir_version: 10, opset_import: ["" : 13]> g (x) => (y) { y = Relu (x) }'))
    for _ in range(2):
        assert session.run({"x": F2})["y"].tolist() == [1, 2]
        with pytest.raises(ExecutionError, match=r"Relu-13 .* 'x' is int64"):
            session.run({"x": I2})


def test_bodies_are_checked() -> None:
    text = """ g (n, x) => (y) {
      y = Loop (n, , x) <body = b (i, c, s) => (d, t) { d = Identity (c) [here] t = Add (s, i) }>
    }"""
    session = Session(parse('<ir_version: 10, opset_import: ["" : 13]>' + text))
    with pytest.raises(ExecutionError, match=r"Add-13 'here' -> 't' failed on .* 'i' is int64"):
        session.run({"n": np.int64(2), "x": F2})


def test_folding_does_not_compute_what_is_no_operator() -> None:
    graph = model_of(13, "Relu (x)", {"x": I2}).graph
    with pytest.raises(ExecutionError, match="'x' is int64; version 13 takes"):
        evaluate(graph, graph.topological()[0], [I2])


def test_truth_mode_computes_float16_in_float64() -> None:
    node = "com.microsoft.DequantizeLinear (q, s)"
    feeds = {"q": np.int8([1, 2]), "s": np.float16(2)}
    assert Session(model_of(13, node, feeds), truth=True).run(feeds)["y"].dtype == np.float64


def test_every_kernel_says_what_it_takes() -> None:
    newest = defs.onnx_opset_version()
    silent = [k.op_type for k in REGISTRY if k.takes(k.since) is None and k.takes(newest) is None]
    assert silent == []


def test_declarations_are_those_of_onnxruntime() -> None:
    from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema

    schemas = {(s.domain, s.name): s for s in get_all_operator_schema()}
    declaring = [kernel for kernel in REGISTRY if kernel.dtypes]
    assert len(declaring) > 25
    for kernel in declaring:
        schema = schemas[kernel.domain, kernel.op_type]
        allowed = {c.type_param_str: set(c.allowed_type_strs) for c in schema.type_constraints}
        found = signature(kernel.dtypes, kernel.domain, kernel.op_type, 1)
        assert found is not None
        assert found.repeats or len(found.formals) == len(schema.inputs), kernel.op_type
        for position, formal in enumerate(schema.inputs):
            ours = found.formals[min(position, len(found.formals) - 1)]
            theirs = allowed.get(formal.typeStr, {formal.typeStr})
            where = f"{kernel.op_type} input {position}"
            assert {f"tensor({DType.from_numpy(t).name.lower()})" for t in ours.tensors} == theirs, where
