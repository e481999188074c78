"""Every backend node model, saved and optimized, still gives the original's outputs in onnxruntime."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable

import numpy as np
import onnx
import pytest
from backend_cases import Case, load_cases

from optimizer import optimize
from optimizer.io import load, to_proto
from optimizer.ir import DType
from optimizer.verify import EngineError, OnnxRuntime, compare_values, node_tolerance
from optimizer.verify.engines import NOT_FED
from optimizer.verify.random_ops import random_outputs

pytestmark = pytest.mark.sweep


def load_and_save(model: bytes) -> bytes:
    return to_proto(load(model)).SerializeToString()


def optimized(model: bytes) -> bytes:
    return optimize(model, verify="off", size_limit=None).model.SerializeToString()


def fed_as_defaults(case: Case) -> bytes:
    """The model with its inputs as overridable defaults, and what Python cannot hold cast to float.

    onnxruntime's Python interface takes and gives no bfloat16, float8, 4-bit and 2-bit arrays.
    """
    model = onnx.ModelProto.FromString(case.model)
    for info, value in zip(model.graph.input, case.data_sets[0][0], strict=True):
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(value), info.name))
    for info in model.graph.output:
        if info.type.tensor_type.elem_type in NARROW:
            inner = f"{info.name}_narrow"
            for node in model.graph.node:
                node.output[:] = [inner if name == info.name else name for name in node.output]
                node.input[:] = [inner if name == info.name else name for name in node.input]
            cast = onnx.helper.make_node("Cast", [inner], [info.name], to=onnx.TensorProto.FLOAT)
            model.graph.node.append(cast)
            info.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    return model.SerializeToString()


NARROW = {int(DType.from_numpy(dtype)) for dtype in NOT_FED}


def runnable(case: Case) -> tuple[bytes, dict[str, object], OnnxRuntime]:
    """A form of the case that onnxruntime runs, its inputs, and its session."""
    names = [info.name for info in onnx.ModelProto.FromString(case.model).graph.input]
    given = [np.asarray(v) if isinstance(v, np.generic) else v for v in case.data_sets[0][0]]
    feeds = {name: value for name, value in zip(names, given, strict=True) if value is not None}
    try:
        engine = OnnxRuntime(case.model)
        engine.run(feeds)
        return case.model, feeds, engine
    except EngineError as error:
        if error.stage != "feed":
            raise
    model = fed_as_defaults(case)
    return model, {}, OnnxRuntime(model)


def verdict(case: Case, change: Callable[[bytes], bytes]) -> str:
    """``same``, why the case does not count, or ``FAULT: ...``."""
    if random_outputs(load(case.model)):
        return "random"
    try:
        model, feeds, original = runnable(case)
        expected = original.run(feeds)
    except EngineError as error:
        return f"not run by onnxruntime ({error.stage})"
    try:
        actual = OnnxRuntime(change(model)).run(feeds)
    except Exception as error:
        return f"FAULT: {type(error).__name__}: {error}"
    for name, value in expected.items():
        found = compare_values(value, actual[name], node_tolerance)
        if not found.ok:
            return f"FAULT: output '{name}': {found.fault}"
    return "same"


@pytest.mark.parametrize("change", [load_and_save, optimized], ids=["load-save", "default-pipeline"])
def test_outputs_stay(change: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "ALLOW_RELEASED_ONNX_OPSET_ONLY", "0")
    cases = load_cases("node")
    verdicts = {case.name: verdict(case, change) for case in cases}
    counts = Counter(text.partition(":")[0] for text in verdicts.values())
    print(f"\n{change.__name__}: {len(cases)} models, {dict(counts)}")
    faults = {name: text for name, text in verdicts.items() if text.startswith("FAULT")}
    assert not faults, "\n".join(f"{name}: {text}" for name, text in faults.items())
    assert counts["same"] > 1500
