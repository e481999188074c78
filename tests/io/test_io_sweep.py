"""A long run, ``pytest -m sweep``: a model of more than 2 GB."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

pytestmark = pytest.mark.sweep

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
    session = onnxruntime.InferenceSession(str(tmp_path / "saved.onnx"))
    (found,) = session.run(None, {"i": np.array([0])})
    assert np.asarray(found)[0, -1] == 7
    assert np.count_nonzero(found) == 1
