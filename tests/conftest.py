"""What all tests share."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy: test workers share the cores
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import onnx
import pytest
from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")

Run = Callable[["onnx.ModelProto | bytes | str | Path", Mapping[str, np.ndarray]], dict[str, np.ndarray]]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20240229)


@pytest.fixture(scope="session")
def ort_run() -> Run:
    """``ort_run(model, feeds)``: outputs by name in onnxruntime, which may not optimize anything."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4

    def run(
        model: onnx.ModelProto | bytes | str | Path, feeds: Mapping[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        if isinstance(model, onnx.ModelProto):
            model = model.SerializeToString()
        source = str(model) if isinstance(model, Path) else model
        session = ort.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        return dict(zip(names, session.run(names, dict(feeds)), strict=True))

    return run
