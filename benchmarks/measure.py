"""``python -m benchmarks.measure ORIGINAL [RESULT]``: measures one pair of files, prints JSON.

Runs in a process of its own for each pair, so that a file that brings onnxruntime down costs its
row only.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import onnx
import onnxruntime as ort

from benchmarks import compare, inputs, latency, models

INPUTS_COMPARED = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("original", type=Path)
    parser.add_argument("result", type=Path, nargs="?")
    parser.add_argument("--name", required=True)
    parser.add_argument("--pairs", type=int, default=0, help="pairs of timed runs; 0: no timing")
    options = parser.parse_args()
    found = describe(options.original)
    if options.result is not None:
        found = {"before": found, "after": describe(options.result)}
        found |= against(options.original, options.result, options.name, options.pairs)
    print(json.dumps(found))


def describe(path: Path) -> dict[str, int]:
    model = onnx.load(path, load_external_data=False)
    return {"nodes": models.node_count(model), "bytes": models.file_bytes(path, model)}


def against(original: Path, result: Path, name: str, pairs: int) -> dict[str, Any]:
    """Error on two inputs that the original accepts, of different sizes; latency ratio on the first."""
    off = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    model = onnx.load(original, load_external_data=False)
    try:
        reference = latency.session(original, off)
    except Exception as error:
        return {"failure": f"onnxruntime does not load the original: {_line(error)}"}
    accepted = _accepted(reference, inputs.candidates(model, name))
    first = next(accepted, None)
    if first is None:
        return {"failure": "the original rejects all sizes tried"}
    found: dict[str, Any] = {"sizes": []}
    names = [output.name for output in reference.get_outputs()]
    try:
        changed = latency.session(result, off)
        total = compare.Difference()
        for sizes, feeds, expected in (first, *_first(accepted, INPUTS_COMPARED - 1)):
            total = total.merge(compare.difference(expected, changed.run(names, feeds)))
            found["sizes"].append(sizes)
        found |= asdict(total)
        del changed, reference
        if pairs:
            found["latency"] = asdict(latency.compare_latency(original, result, first[1], pairs))
    except Exception as error:
        found["failure"] = f"onnxruntime fails on the result: {_line(error)}"
    return found


Accepted = tuple[str, inputs.Feeds, list[Any]]


def _accepted(
    reference: ort.InferenceSession, candidates: Iterator[tuple[str, inputs.Feeds]]
) -> Iterator[Accepted]:
    for sizes, feeds in candidates:
        try:
            yield sizes, feeds, reference.run(None, feeds)
        except Exception:  # onnxruntime's own classes; another size may suit it
            continue


def _first(items: Iterator[Accepted], count: int) -> list[Accepted]:
    return [item for _, item in zip(range(count), items, strict=False)]


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:160]


if __name__ == "__main__":
    main()
