"""``python -m benchmarks.micro``: how much faster each rewrite makes a model of its own.

The ratio original / result is measured in onnxruntime, all its optimizations on, one thread, in turns.
A row is good where ``ratio - 1 >= 0.8 * (expected - 1)``.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import onnx

from benchmarks import latency, process
from benchmarks.micro_models import MICRO_MODELS, Micro

SHARE = 0.8
"""What part of the expected gain has to be found."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.micro", description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="rows with this in their name")
    parser.add_argument("--command", default="oinfer-opt", help="the optimizer, called with IN OUT")
    parser.add_argument("--pairs", type=int, default=41, metavar="N", help="timed pairs (default: 41)")
    options = parser.parse_args()
    command = process.command_of(options.command)
    rows = [row for row in MICRO_MODELS if options.only in row[0]]
    good = 0
    with tempfile.TemporaryDirectory(prefix="oinfer-micro-") as folder:
        for row in rows:
            good += _measure(row, command, Path(folder), options.pairs)
    print(f"{good} of {len(rows)} good")


def _measure(row: Micro, command: list[str], folder: Path, pairs: int) -> bool:
    name, expected, options, build = row
    source, target = folder / "before.onnx", folder / "after.onnx"
    target.unlink(missing_ok=True)
    model = build()
    onnx.save(model, source)
    run = process.run([*command, str(source), str(target), "-q", *options], timeout=300)
    if run.failure:
        print(f"{name:<52} FAILS {run.failure}", flush=True)
        return False
    found = latency.compare_latency(source, target, _feeds(model), pairs)
    ratio = 1 / found.ratio
    is_good = ratio - 1 >= SHARE * (expected - 1)
    ops = " ".join(node.op_type for node in onnx.load(target).graph.node)
    mark = "" if is_good else "  TOO LITTLE"
    print(f"{name:<52} {ratio:6.2f}  expected {expected:5.2f}{mark}  {ops[:90]}", flush=True)
    return is_good


def _feeds(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    random = np.random.default_rng(3)
    feeds = {}
    for value in model.graph.input:
        shape = [dim.dim_value or 2 for dim in value.type.tensor_type.shape.dim]
        array = random.standard_normal(shape)
        is_bool = value.type.tensor_type.elem_type == onnx.TensorProto.BOOL
        feeds[value.name] = array > 0 if is_bool else array.astype(np.float32)
    return feeds


if __name__ == "__main__":
    main()
