"""Which models are measured, and what can be counted in a model file."""

from __future__ import annotations

import fnmatch
import importlib.util
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import process

if TYPE_CHECKING:
    import onnx

LIGHT = Path("backend/test/data/light")  # published classification nets inside the onnx package


@dataclass(frozen=True)
class Candidate:
    """A model file under the name the tables give it."""

    name: str
    path: Path


def candidates(folder: Path | None, scratch: Path, only: str) -> list[Candidate]:
    """The models of ``folder``; without one, models of installed packages and some made here."""
    if folder is not None:
        found = [Candidate(path.stem, path) for path in sorted(folder.glob("*.onnx"))]
        if not found:
            raise SystemExit(f"benchmarks: no *.onnx in {folder}")
    else:
        found = [*_of_the_onnx_package(), *_made_here(scratch)]
    pattern = only if any(sign in only for sign in "*?[") else f"*{only}*"
    return [candidate for candidate in found if fnmatch.fnmatch(candidate.name, pattern)]


def _of_the_onnx_package() -> Iterator[Candidate]:
    spec = importlib.util.find_spec("onnx")
    if spec is not None and spec.origin is not None:
        for path in sorted((Path(spec.origin).parent / LIGHT).glob("light_*.onnx")):
            yield Candidate(path.stem, path)


def _made_here(scratch: Path) -> Iterator[Candidate]:
    folder = scratch / "made"
    made = process.run([sys.executable, "-m", "benchmarks.synthetic", str(folder)], timeout=120)
    if made.failure:
        raise SystemExit(f"benchmarks: cannot make models: {made.failure}")
    for path in sorted(folder.glob("*.onnx")):
        yield Candidate(path.stem, path)


# ------------------------------------------------------------------ for the measuring processes


def node_count(model: onnx.ModelProto) -> int:
    """Nodes of the graph, its nested bodies and the local functions; Constant nodes not counted."""
    bodies = [model.graph.node, *(function.node for function in model.functions)]
    return sum(_count(nodes) for nodes in bodies)


def _count(nodes: Iterable[onnx.NodeProto]) -> int:
    total = 0
    for node in nodes:
        total += node.op_type != "Constant" or node.domain not in ("", "ai.onnx")
        for attribute in node.attribute:
            graphs = [attribute.g] if attribute.HasField("g") else attribute.graphs
            total += sum(_count(graph.node) for graph in graphs)
    return total


def file_bytes(path: Path, model: onnx.ModelProto) -> int:
    """Size of a model file with the external data it points to."""
    locations = {
        entry.value
        for tensor in model.graph.initializer
        for entry in tensor.external_data
        if entry.key == "location"
    }
    return sum(file.stat().st_size for file in (path, *(path.parent / name for name in locations)))
