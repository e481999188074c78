"""``python -m benchmarks.shape_nodes``: nodes that only compute shapes, left by this optimizer and others.

A node counts where everything it reads comes from constants and from the shapes of other tensors:
Shape and Size themselves, the integer arithmetic on them, and the ranges and masks made from that.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import onnx

from benchmarks import models, peer_tools, process

OURS = "oinfer-opt"
PAGE = """\
# Nodes that only compute shapes

Made by `python -m benchmarks.shape_nodes`; everything on this page is measured, nothing is typed in.

A node counts where everything it reads comes from constants and from the shapes of other tensors: Shape
and Size themselves, the integer arithmetic on them, and the ranges and masks made from that. Bodies of If,
Loop and Scan are counted, each optimizer runs with its defaults, models where none of them leaves any are
left out.

{table}
"""
SOURCES = ("Shape", "Size")


def main() -> None:
    options = _options()
    peers = list(peer_tools.TOOLS) if options.peers else []
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory(prefix="oinfer-shapes-") as scratch:
        kept = options.keep or Path(scratch)
        kept.mkdir(exist_ok=True)
        for candidate in models.candidates(options.models, Path(scratch), options.only):
            print(candidate.name, file=sys.stderr, flush=True)
            before = count(onnx.load(candidate.path, load_external_data=False))
            found = {
                OURS: _run([*process.command_of(options.command), "--no-verify", "-q"], candidate, kept, OURS)
            }
            for tool in peers:
                command = [options.peers, peer_tools.__file__, tool]
                found[tool] = _run(command, candidate, kept, tool)
            rows.append([candidate.name, *(_cell(n) for n in (before, *found.values()))])
    table = _table(rows, ["model", "original", OURS, *peers])
    print(table)
    if options.write:
        options.write.write_text(PAGE.format(table=table), encoding="utf-8")
    sys.exit(_verdict(rows))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shape_nodes", description=__doc__)
    add = parser.add_argument
    add("--models", type=Path, metavar="DIR", help="DIR/*.onnx (default: installed and made ones)")
    add("--only", default="", metavar="PATTERN", help="models with such a name")
    add("--command", default="oinfer-opt", help="the optimizer, called with --no-verify -q IN OUT")
    add("--peers", metavar="PYTHON", help="a Python that has other optimizers installed")
    add("--write", type=Path, metavar="FILE", help="write the page of results")
    add("--keep", type=Path, metavar="DIR", help="keep the others' results there, and use those found there")
    return parser.parse_args()


def _run(command: list[str], candidate: models.Candidate, kept: Path, tool: str) -> int | None:
    """Shape nodes of a tool's result; ``None`` where it makes none."""
    target = kept / f"{candidate.name}.{tool}.onnx"
    failed = target.with_suffix(".failed")
    if tool == OURS or not (target.exists() or failed.exists()):
        made = process.run([*command, str(candidate.path), str(target)], timeout=600)
        if made.failure:
            failed.write_text(made.failure, encoding="utf-8")
    return count(onnx.load(target, load_external_data=False)) if target.exists() else None


def _table(rows: list[list[str]], head: list[str]) -> str:
    shown = [row for row in rows if any(cell not in ("0", "fails") for cell in row[1:])]
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *shown]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(number: int | None) -> str:
    return "fails" if number is None else str(number)


def _verdict(rows: list[list[str]]) -> int:
    """1 where another tool leaves fewer, with one line for each such model."""
    worse = 0
    for name, _, ours, *others in rows:
        best = min((int(n) for n in others if n != "fails"), default=None)
        if best is not None and (ours == "fails" or int(ours) > best):
            print(f"{name}: {ours}, another leaves {best}", file=sys.stderr)
            worse = 1
    return worse


# ------------------------------------------------------------------ counting


def count(model: onnx.ModelProto) -> int:
    """Nodes that only compute shapes, bodies included."""
    return sum(histogram(model).values())


def histogram(model: onnx.ModelProto) -> Counter[str]:
    """The same by operator."""
    found: Counter[str] = Counter()
    constants = {tensor.name for tensor in model.graph.initializer}
    _count(model.graph.node, constants, set(), found)
    return found


def _count(
    nodes: Iterable[onnx.NodeProto], constants: set[str], shapes: set[str], found: Counter[str]
) -> None:
    constants, shapes = set(constants), set(shapes)
    for node in nodes:
        reads = {name for name in node.input if name}
        bodies = [a.g for a in node.attribute if a.HasField("g")]
        if node.op_type == "Constant" or (reads and reads <= constants and not bodies):
            constants.update(node.output)
        elif not bodies and (node.op_type in SOURCES or (reads and reads <= constants | shapes)):
            shapes.update(node.output)
            found[node.op_type] += 1
        for body in bodies:
            inner = constants | {tensor.name for tensor in body.initializer}
            _count(body.node, inner, shapes, found)


if __name__ == "__main__":
    main()
