"""``python -m benchmarks.probes``: small patterns, and how close each optimizer comes to the fewest nodes."""

from __future__ import annotations

import argparse
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper, parser

from benchmarks import models, nodes, peer_tools, process, rows
from benchmarks.probe_list import INPUTS, Probe, probes

_LITERAL = re.compile(r"\b(f32|i64|bool)\(((?:[^()]|\([^()]*\))*)\)")
_TYPES: dict[str, Any] = {"f32": np.float32, "i64": np.int64, "bool": np.bool_}


def main() -> None:
    reader = argparse.ArgumentParser(prog="python -m benchmarks.probes", description=__doc__)
    reader.add_argument("--command", default="oinfer-opt", help="the optimizer, called with IN OUT")
    reader.add_argument("--only", default="", metavar="TEXT", help="patterns with this in their name")
    reader.add_argument("--peers", metavar="PYTHON", help="a Python that has other optimizers installed")
    options = reader.parse_args()
    chosen = [probe for probe in probes() if options.only in probe.name]
    reached: dict[str, int] = {}
    with tempfile.TemporaryDirectory(prefix="oinfer-probes-") as folder:
        plan = rows.Plan(process.command_of(options.command), Path(folder), 0, 120, options.peers or "")
        for probe in chosen:
            source = plan.scratch / "probe.onnx"
            onnx.save(model_of(probe), source)
            counts = _counts(plan, probe, source)
            for tool, count in counts.items():
                reached[tool] = reached.get(tool, 0) + (count is not None and count <= probe.nodes)
            cells = "  ".join(f"{tool} {'-' if count is None else count}" for tool, count in counts.items())
            mark = "" if (counts["ours"] or 0) <= probe.nodes and counts["ours"] is not None else "  MISSED"
            print(f"{probe.name:<36} {probe.nodes}  {cells}{mark}", flush=True)
    print(f"{len(chosen)} patterns reached: {', '.join(f'{tool} {n}' for tool, n in reached.items())}")


def _counts(plan: rows.Plan, probe: Probe, source: Path) -> dict[str, int | None]:
    """Nodes of each tool's result; none where it fails or is wrong."""
    target = plan.scratch / "result.onnx"
    candidate = models.Candidate(probe.name, source)
    commands = {"ours": [*plan.command, str(source), str(target), "-q", *probe.options]}
    if plan.peers_python:
        for peer in peer_tools.TOOLS:
            commands[peer] = [plan.peers_python, peer_tools.__file__, peer, str(source), str(target)]
    found: dict[str, int | None] = {}
    for tool, command in commands.items():
        target.unlink(missing_ok=True)
        failed = process.run(command, timeout=plan.timeout).failure or not target.exists()
        right = not failed and (
            tool == "ours"
            or rows.compare_with(plan, candidate, target).get("max_rel", 1.0) <= rows.WRONG_FROM
        )
        found[tool] = nodes.count(target) if right else None
    return found


def model_of(probe: Probe) -> onnx.ModelProto:
    """The pattern as a model."""
    body, constants = with_literals(probe.body)
    words = set(re.findall(r"\b\w+\b", body))
    made = set(re.findall(r"\b(\w+)(?=(?:, \w+)* = )", body))
    inputs = ", ".join(f"{kind} {name}" for name, kind in INPUTS.items() if name in words - made)
    outputs = ", ".join(name for name in ("y", "y2") if name in made)
    text = f'<ir_version: 9, opset_import: ["" : 17]> probe ({inputs}) => ({outputs}) {{ {body} }}'
    model = parser.parse_model(text)
    model.graph.initializer.extend(numpy_helper.from_array(a, name) for name, a in constants.items())
    return onnx.shape_inference.infer_shapes(model)


def with_literals(body: str) -> tuple[str, dict[str, np.ndarray]]:
    """A text with names in the place of literals such as ``f32([1, 2])``, and what they stand for."""
    constants: dict[str, np.ndarray] = {}

    def literal(found: re.Match[str]) -> str:
        names = {
            "n": lambda *shape: np.random.default_rng(len(constants) + 3).standard_normal(shape),
            "u": lambda *shape: np.random.default_rng(len(constants) + 3).uniform(0.5, 2, shape),
            "ones": lambda *shape: np.ones(shape),
        }
        name = f"constant_{len(constants)}"
        # The texts are those of this package.
        constants[name] = np.asarray(eval(found[2], names), _TYPES[found[1]])
        return name

    return _LITERAL.sub(literal, body), constants


if __name__ == "__main__":
    main()
