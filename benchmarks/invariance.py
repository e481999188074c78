"""``python -m benchmarks.invariance``: what must not matter.

A result is optimized again, which must change nothing. The original with its nodes in another order, and
with all inner tensors renamed, must come out with as many nodes.
"""

from __future__ import annotations

import argparse
import random
import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path

import onnx

from benchmarks import models, nodes, process


def main() -> None:
    options = _options()
    command = process.command_of(options.command)
    bad = 0
    with tempfile.TemporaryDirectory(prefix="oinfer-invariance-") as name:
        folder = Path(name)
        for model in models.candidates(options.models, folder, options.only):
            faults = check(model, command, folder, shlex.split(options.options))
            bad += bool(faults)
            print(f"{model.name:<52} {'; '.join(faults) or 'ok'}", flush=True)
    print(f"{bad} bad")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.invariance", description=__doc__)
    add = parser.add_argument
    add("--models", type=Path, metavar="DIR", help="check DIR/*.onnx (default: installed and made ones)")
    add("--only", default="", metavar="PATTERN", help="models with such a name")
    add("--command", default="oinfer-opt", help="the optimizer, called with IN OUT")
    add("--options", default="", metavar="TEXT", help="further options for it, in one text")
    return parser.parse_args()


def check(model: models.Candidate, command: Sequence[str], folder: Path, options: Sequence[str]) -> list[str]:
    """What does matter although it must not; empty where all is well."""
    once, twice, other = (folder / f"{name}.onnx" for name in ("once", "twice", "other"))
    more = ["--size-limit", "none", "--verify", "off", "-q", *options]
    if fault := _run(command, model.path, once, more):
        return [fault]
    faults = []
    if fault := _run(command, once, twice, more):
        faults.append(fault)
    elif _content(once) != _content(twice):
        faults.append(f"again: {nodes.count(once)} -> {nodes.count(twice)} nodes, another graph")
    disguised = folder / "disguised.onnx"
    onnx.save(disguise(onnx.load(model.path), random.Random(5)), disguised)
    if fault := _run(command, disguised, other, more):
        faults.append(fault)
    elif nodes.count(other) != nodes.count(once):
        faults.append(f"disguised: {nodes.count(other)} instead of {nodes.count(once)} nodes")
    return faults


def _run(command: Sequence[str], source: Path, target: Path, options: Sequence[str]) -> str:
    target.unlink(missing_ok=True)
    return process.run([*command, str(source), str(target), *options], timeout=600).failure


def _content(path: Path) -> bytes:
    """The file without what says who made it."""
    model = onnx.load(path)
    model.ClearField("producer_name")
    model.ClearField("producer_version")
    return model.SerializeToString(deterministic=True)


# ------------------------------------------------------------------ the same model, looking different


def disguise(model: onnx.ModelProto, chance: random.Random) -> onnx.ModelProto:
    """The model with its nodes in another valid order and its inner tensors under other names."""
    _shuffle(model.graph, chance)
    _rename(model.graph, {})
    return model


def _shuffle(graph: onnx.GraphProto, chance: random.Random) -> None:
    made = {name for node in graph.node for name in node.output if name}
    left, order = list(graph.node), []
    known: set[str] = set()
    while left:
        ready = [node for node in left if all(name in known or name not in made for name in _reads(node))]
        node = chance.choice(ready[:50])
        order.append(node)
        left.remove(node)
        known.update(node.output)
    del graph.node[:]
    graph.node.extend(order)


def _reads(node: onnx.NodeProto) -> set[str]:
    """All that a node reads, its bodies included."""
    found = set(node.input)
    for body in _bodies(node):
        for inner in body.node:
            found |= _reads(inner)
        found |= {output.name for output in body.output}
    return found


def _bodies(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    return [graph for a in node.attribute for graph in ([a.g] if a.HasField("g") else a.graphs)]


def _rename(graph: onnx.GraphProto, outer: dict[str, str], depth: str = "") -> None:
    fixed = {value.name for value in [*graph.input, *graph.output]} if not depth else set()
    names = dict(outer)
    inner = [*(t.name for t in graph.initializer), *(t.values.name for t in graph.sparse_initializer)]
    inner += [value.name for value in graph.input] if depth else []
    inner += [name for node in graph.node for name in node.output]
    for number, name in enumerate(inner):
        if name and name not in fixed:
            names[name] = f"t{depth}_{number}"
    for tensor in graph.initializer:
        tensor.name = names.get(tensor.name, tensor.name)
    for sparse in graph.sparse_initializer:
        sparse.values.name = names.get(sparse.values.name, sparse.values.name)
    for number, node in enumerate(graph.node):
        node.name = f"n{depth}_{number}"
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
        for position, body in enumerate(_bodies(node)):
            _rename(body, names, f"{depth}_{number}x{position}")
    for value in [*graph.value_info, *(graph.input if depth else ()), *(graph.output if depth else ())]:
        value.name = names.get(value.name, value.name)
    for note in graph.quantization_annotation:
        note.tensor_name = names.get(note.tensor_name, note.tensor_name)
        for entry in note.quant_parameter_tensor_names:
            entry.value = names.get(entry.value, entry.value)


if __name__ == "__main__":
    main()
