"""Long runs, ``pytest -m sweep``: every backend node model through load and save, and more than 2 GB."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from optimizer.io import load, save, to_proto
from optimizer.ir import verify_graph

pytestmark = pytest.mark.sweep

RANDOM = {"Bernoulli", "Dropout", "Multinomial"} | {
    f"Random{kind}{like}" for kind in ("Normal", "Uniform") for like in ("", "Like")
}
NOT_FED = frozenset(range(TensorProto.BFLOAT16, TensorProto.INT2 + 1))
"""Element types that onnxruntime's Python interface does not take."""
NEWEST_OPSET, NEWEST_IR = 25, 11


def run(path: str | bytes, feeds: dict[str, object]) -> list[object]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    return list(onnxruntime.InferenceSession(path, options).run(None, feeds))


def runnable(model: onnx.ModelProto, inputs: list[object]) -> dict[str, object]:
    """Changes a model so that onnxruntime's Python interface can run it; returns its feeds."""
    feeds: dict[str, object] = {}
    for info, value in zip(list(model.graph.input), inputs, strict=False):
        if isinstance(value, onnx.TensorProto):
            value = numpy_helper.to_array(value)
        if isinstance(value, list):
            feeds[info.name] = [np.asarray(item) for item in value]
        elif value is not None and info.type.tensor_type.elem_type in NOT_FED:
            model.graph.initializer.append(numpy_helper.from_array(np.asarray(value), info.name))
            model.graph.input.remove(info)
        else:
            feeds[info.name] = None if value is None else np.asarray(value)
    for info in model.graph.output:
        if info.type.tensor_type.elem_type in NOT_FED:
            wide = f"{info.name}_as_float"
            model.graph.node.append(helper.make_node("Cast", [info.name], [wide], to=TensorProto.FLOAT))
            info.name, info.type.tensor_type.elem_type = wide, TensorProto.FLOAT
    for entry in model.opset_import:
        if not entry.domain:
            entry.version = min(entry.version, NEWEST_OPSET)
    model.ir_version = min(model.ir_version, NEWEST_IR)
    return feeds


def same(got: object, want: object) -> bool:
    if isinstance(want, list):
        return isinstance(got, list) and len(got) == len(want) and all(map(same, got, want))
    if isinstance(want, dict):
        return isinstance(got, dict) and list(got) == list(want) and all(same(got[k], want[k]) for k in want)
    if want is None:
        return got is None
    a, b = np.asarray(got), np.asarray(want)
    return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")


def case_result(model: onnx.ModelProto, inputs: list[object], path: Path) -> str:
    """What load -> save does to one model, in a word."""
    loaded = load(model)
    for _, graph in loaded.graphs():
        verify_graph(graph)
    once = to_proto(loaded)
    if to_proto(load(once)) != once:
        return "DIFFERENT after a second round"
    try:
        feeds = runnable(model, inputs)
        wanted = run(model.SerializeToString(), feeds)
    except Exception:
        return "onnxruntime cannot run the original"
    save(load(model), path)
    found = run(str(path), feeds)
    if any(node.op_type in RANDOM for node in model.graph.node):
        return "random"
    return "same" if same(found, wanted) else "DIFFERENT"


def test_backend_node_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALLOW_RELEASED_ONNX_OPSET_ONLY", "0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        cases = collect_testcases(None)
    counts: Counter[str] = Counter()
    failed: list[str] = []
    for case in cases:
        result = case_result(case.model, list(case.data_sets[0][0]), tmp_path / "m.onnx")
        counts[result] += 1
        failed += [case.name] if result.startswith("DIFFERENT") else []
    print(dict(counts))
    assert failed == []
    assert counts["same"] >= 1700


LARGE = """
import resource, sys
from pathlib import Path
import numpy as np
from optimizer.io import load, save

folder = Path(sys.argv[1])
model = load(folder / "large.onnx")
graph = model.graph
tensors = {graph.info(v).name: graph.tensor(v) for v in graph.constants}
assert tensors["w1"].array[0, -1] == 7
loaded = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
result = save(model, folder / "saved.onnx")
print(loaded, result.bytes, result.data_path.name)
"""


def test_more_than_two_gigabytes(tmp_path: Path) -> None:
    """Weights of 2.5 GB, in a sparse file: mapped in, streamed out, automatically as external data."""
    rows, columns, count = 1 << 14, 10000, 4
    size = rows * columns * 4
    with (tmp_path / "w.bin").open("wb") as file:
        file.truncate(size * count)
        file.seek(size + (columns - 1) * 4)
        file.write(np.float32(7).tobytes())
    weights = []
    for index in range(count):
        tensor = TensorProto(name=f"w{index}", data_type=TensorProto.FLOAT, dims=[rows, columns])
        tensor.data_location = TensorProto.EXTERNAL
        places = {"location": "w.bin", "offset": str(index * size), "length": str(size)}
        for key, value in places.items():
            tensor.external_data.add(key=key, value=value)
        weights.append(tensor)
    nodes = [helper.make_node("Gather", [f"w{i}", "i"], [f"g{i}"]) for i in range(count)]
    nodes.append(helper.make_node("Sum", [f"g{i}" for i in range(count)], ["y"]))
    graph = helper.make_graph(
        nodes,
        "large",
        [helper.make_tensor_value_info("i", TensorProto.INT64, [1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, columns])],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    (tmp_path / "large.onnx").write_bytes(model.SerializeToString())
    process = subprocess.run(
        [sys.executable, "-c", LARGE, str(tmp_path)], capture_output=True, text=True, check=True
    )
    loaded_kib, written, data = process.stdout.split()
    print(f"peak memory after loading: {int(loaded_kib) >> 10} MiB, written: {int(written) >> 20} MiB")
    assert int(loaded_kib) < 400 << 10
    assert int(written) > 2**31
    assert (tmp_path / data).stat().st_size == size * count
    (found,) = run(str(tmp_path / "saved.onnx"), {"i": np.array([0])})
    assert np.asarray(found)[0, -1] == 7
    assert np.count_nonzero(found) == 1
