"""``python -m benchmarks.inference``: how many dims are known, and how long it takes, beside others.

A dim of a tensor of the main graph counts as known where it is a number or an expression of the dims
of the graph inputs, and where onnxruntime produces that number at two input sizes (one, where there
is no open dim). Declared types of intermediate values are removed first; open dims are all named.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import onnx

from benchmarks import dim_algebra, inference_models
from benchmarks.dim_expressions import evaluate
from optimizer.analysis import Facts
from optimizer.io import load

PEERS = ("symbolic_shape_infer", "onnx_shape_inference")
OURS = "oinfer-opt"
PAGE = """\
# Dims known by inference

Made by `python -m benchmarks.inference`; everything on this page is measured, nothing is typed in.

A dim of a tensor of the main graph counts as known where it is a number or an expression of the dims of
the graph inputs, and onnxruntime produces that number at two input sizes (one, where no dim is open). A
dim that is claimed otherwise than onnxruntime produces it is wrong. Declared types of intermediate values
are removed first. `symbolic_shape_infer` runs with `auto_merge`. Times are of inference alone.

{table}

The same arithmetic on dims: {times}.
"""
Shapes = Mapping[str, "list[Any] | None"]
Group = dict[str, inference_models.Prepared]


def main() -> None:
    options = _options()
    with tempfile.TemporaryDirectory(prefix="oinfer-inference-") as scratch:
        groups = {
            "onnx's node models, as given": inference_models.node_models(open_dims=False),
            "onnx's node models, input dims open": inference_models.node_models(open_dims=True),
        }
        if options.models is not None:
            groups["corpus"] = inference_models.folder(options.models, options.only)
        rows = []
        for number, (name, group) in enumerate(groups.items()):
            rows += _measure(name, group, Path(scratch, str(number)), options.peers)
        speed = _speed(Path(scratch, "speed"), options.peers, options.nodes)
        algebra = _algebra(options.peers)
    table = _report(rows, speed)
    times = ", ".join(f"{tool} {seconds:.3f} s" for tool, seconds in algebra.items())
    print(f"{table}\n\narithmetic on dims: {times}")
    if options.write:
        options.write.write_text(PAGE.format(table=table, times=times), encoding="utf-8")
    if options.json:
        options.json.write_text(
            json.dumps({"dims": rows, "speed": speed, "algebra": algebra}, indent=1), encoding="utf-8"
        )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.inference", description=__doc__)
    add = parser.add_argument
    add("--models", type=Path, metavar="DIR", help="DIR/*.onnx as well")
    add("--only", default="", metavar="PART", help="only those models of DIR with this in their name")
    add("--peers", metavar="PYTHON", help="a Python that has the other tools installed")
    add("--nodes", type=int, default=10_000, help="size of the timed graph (default: 10000)")
    add("--write", type=Path, metavar="FILE", help="write the page of results")
    add("--json", type=Path, metavar="FILE", help="write everything measured")
    return parser.parse_args()


# ------------------------------------------------------------------ dims


def _measure(group_name: str, group: Group, folder: Path, python: str | None) -> list[dict[str, Any]]:
    folder.mkdir()
    for name, prepared in group.items():
        onnx.save(prepared.model(), folder / f"{name}.onnx")
    claims = {OURS: _ours(folder)}
    claims |= _of_peers(folder, python)
    tallies: dict[str, Counter[str]] = {tool: Counter() for tool in claims}
    rows: list[dict[str, Any]] = []
    for name, prepared in group.items():
        print(f"{group_name}: {name}", file=sys.stderr, flush=True)
        runs = list(prepared.runs())
        row: dict[str, Any] = {"group": group_name, "model": name}
        for tool, found in claims.items():
            shapes = found["models"].get(name, {}).get("shapes", {})
            row[tool] = dict(_tally(shapes, runs))
            tallies[tool].update(row[tool])
        rows.append(row)
    total = {tool: dict(tally) for tool, tally in tallies.items()}
    seconds = {tool: sum(m["seconds"] for m in found["models"].values()) for tool, found in claims.items()}
    summary = {"group": group_name, "model": "", "total": total, "seconds": seconds, "models": len(group)}
    return [summary, *rows]


def _ours(folder: Path) -> dict[str, Any]:
    found = {}
    for path in sorted(folder.glob("*.onnx")):
        model = load(path)
        start = time.perf_counter()
        facts = Facts(model.graph, model.functions).settle()
        seconds = time.perf_counter() - start
        shapes: dict[str, Any] = {}
        constants = [model.graph.node(value) for value in model.graph.constants]
        for node in (*constants, *model.graph.topological()):
            for index, info in enumerate(node.outputs):
                shape = facts.shape(node.value(index))
                if info.name and shape is not None:
                    shapes[info.name] = shape
        found[path.stem] = {"shapes": shapes, "seconds": seconds}
    return {"models": found}


def _of_peers(folder: Path, python: str | None) -> dict[str, Any]:
    found = {}
    for tool in PEERS if python else ():
        target = folder / f"{tool}.json"
        subprocess.run(
            [
                str(python),
                str(Path(__file__).with_name("inference_peers.py")),
                tool,
                str(folder),
                str(target),
            ],
            check=True,
            capture_output=True,
        )
        made = json.loads(target.read_text(encoding="utf-8"))
        found[f"{tool} {made['version']}"] = made
    return found


def _tally(shapes: Shapes, runs: list[inference_models.Run]) -> Counter[str]:
    """Dims that exist, those known and right, those claimed and wrong."""
    tally: Counter[str] = Counter()
    if not runs:
        return tally
    for name, real in runs[0].shapes.items():
        tally["dims"] += len(real)
        claimed = shapes.get(name)
        if claimed is None:
            continue
        if len(claimed) != len(real):
            tally["wrong"] += len(real)
            continue
        for axis, dim in enumerate(claimed):
            verdict = _verdict(dim, ((run.shapes[name][axis], run.sizes) for run in runs))
            tally[verdict] += 1
    return tally


def _verdict(dim: Any, observed: Iterable[tuple[int, Mapping[str, int]]]) -> str:
    known = "known"
    for real, sizes in observed:
        value = evaluate(dim, sizes) if isinstance(dim, (int, str)) or dim is None else dim.evaluate(sizes)
        if value is None:
            known = "unknown"
        elif value != real:
            return "wrong"
    return known


# ------------------------------------------------------------------ time


def _speed(folder: Path, python: str | None, nodes: int) -> dict[str, float]:
    """Seconds of inference alone; the fastest of three for ours, one for the others."""
    folder.mkdir()
    onnx.save(inference_models.dynamic_graph(nodes), folder / "graph.onnx")
    ours = min(_ours(folder)["models"]["graph"]["seconds"] for _ in range(3))
    found = {OURS: ours}
    for tool, made in _of_peers(folder, python).items():
        found[tool] = made["models"]["graph"]["seconds"]
    return found


def _algebra(python: str | None) -> dict[str, float]:
    """Seconds of the same arithmetic on dims."""
    script = str(Path(__file__).with_name("dim_algebra.py"))
    found = {OURS: dim_algebra.seconds(dim_algebra.dims())}
    if python:
        made = subprocess.run([python, script, "sympy"], check=True, capture_output=True, text=True)
        found["sympy"] = float(made.stdout)
    return found


def _report(rows: list[dict[str, Any]], speed: Mapping[str, float]) -> str:
    tools = list(speed)
    lines = [f"| models | dims | {' | '.join(tools)} |", f"| --- | ---: |{' ---: |' * len(tools)}"]
    for row in rows:
        counts = row.get("total", row)
        if "total" not in row and row["group"] != "corpus":
            continue
        name = f"**{row['group']} ({row['models']})**" if "total" in row else row["model"]
        cells = [_cell(counts.get(tool, {})) for tool in tools]
        lines.append(f"| {name} | {counts[OURS].get('dims', 0)} | {' | '.join(cells)} |")
        if "total" in row:
            seconds = [f"{row['seconds'].get(tool, 0):.2f} s" for tool in tools]
            lines.append(f"| its time | | {' | '.join(seconds)} |")
    lines.append(f"| time of a dynamic graph | | {' | '.join(f'{s:.2f} s' for s in speed.values())} |")
    return "\n".join(lines)


def _cell(counts: Mapping[str, int]) -> str:
    wrong = counts.get("wrong", 0)
    return f"{counts.get('known', 0)}" + (f" ({wrong} wrong)" if wrong else "")


if __name__ == "__main__":
    main()
