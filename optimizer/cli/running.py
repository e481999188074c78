"""Running a model: inputs from files or a seed, one engine or both, outputs on the screen and in files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from optimizer.cli.images import is_image, read_image
from optimizer.cli.trace import Trace, describe_output
from optimizer.io import load
from optimizer.ir import Graph, Model, StorageError, UsageError, Value

if TYPE_CHECKING:
    from optimizer.cli.walk import Parting
    from optimizer.cli.walk_bodies import BodyWalk
    from optimizer.runtime import Options

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class RunOptions:
    """What the command line asks for.

    Attributes:
        files: a file for each input that is given.
        mean, std, layout: how a picture becomes a tensor.
        fill: what inputs that are not given are drawn from.
        stop_at: run only what this tensor needs.
    """

    files: Mapping[str, str]
    mean: Sequence[float] = (0.0,)
    std: Sequence[float] = (1.0,)
    layout: str | None = None
    seed: int = 0
    fill: str = "normal"
    engine: str = "numpy"
    trace: bool = False
    memory: bool = False
    stop_at: str | None = None
    max_nodes: int | None = None
    allow_missing_kernels: bool = False
    verbose: bool = False


def run_model(path: str, options: RunOptions) -> tuple[dict[str, Any], bool]:
    """Runs a model and prints what was asked for on the way.

    Returns:
        The outputs by name, and whether the engines agree (True where only one ran).

    Raises:
        UsageError: there is no such input or tensor, or a file does not fit.
        OptimizerError: the model cannot be loaded or run.
    """
    model = load(path)
    feeds = _feeds(model, options)
    if options.engine == "numpy":
        return _run_numpy(model, feeds, options), True
    return _run_compared(model, feeds, options)


# -------------------------------------------------------------------- inputs


def _feeds(model: Model, options: RunOptions) -> dict[str, Any]:
    from optimizer.verify import FILLS, make_feeds

    fill = next((fill for fill in FILLS if fill == options.fill), None)
    if fill is None:
        raise UsageError(f"there is no fill '{options.fill}'; there are {', '.join(FILLS)}")
    infos = {model.graph.info(value).name: model.graph.info(value) for value in model.graph.inputs}
    given = {name: _read_array(name, file) for name, file in options.files.items() if not is_image(file)}
    for name in options.files:
        if name not in infos:
            raise UsageError(f"no input is called '{name}'; the inputs are {', '.join(infos) or 'none'}")
    for name, file in options.files.items():
        if is_image(file):
            given[name] = read_image(file, infos[name], options.mean, options.std, options.layout)
    if set(infos) <= set(given):
        return given
    return make_feeds(model, options.seed, _sizes(model, given, options), fill) | given


def _read_array(name: str, path: str) -> Array:
    try:
        found = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise StorageError(f"input '{name}': cannot read an array from {path}: {error}") from error
    if not isinstance(found, np.ndarray):
        raise StorageError(f"input '{name}': {path} holds several arrays, one .npy is needed")
    return found


def _sizes(model: Model, given: Mapping[str, Array], options: RunOptions) -> dict[str, int]:
    """Sizes for the open dims of inputs that are not given: those of the given ones, or what runs."""
    from optimizer.verify import EngineError, NumPy, find_sizes, make_feeds
    from optimizer.verify.effort import NUMPY_LIMIT
    from optimizer.verify.feeds import symbols_of

    symbols = symbols_of(model)
    fixed = {
        key: given[info.name].shape[axis]
        for key, places in symbols.items()
        for info, axis in places
        if info.name in given and 0 <= axis < given[info.name].ndim
    }
    if set(symbols) <= set(fixed):
        return fixed
    try:
        engine = NumPy(model, limit=NUMPY_LIMIT)
    except EngineError:  # an operator without a kernel: nothing can be tried
        return fixed

    def run(sizes: Mapping[str, int]) -> object:
        return engine.run(make_feeds(model, options.seed, {**sizes, **fixed}) | dict(given))

    accepted = find_sizes(model, run, wanted=1).accepted
    return {**accepted[0], **fixed} if accepted else fixed


# -------------------------------------------------------------------- one engine


def _executor_options(options: RunOptions, trace: Trace | None = None) -> Options:
    from optimizer.runtime import Options

    return Options(
        verbose=options.verbose,
        max_nodes=options.max_nodes,
        allow_missing_kernels="allow" if options.allow_missing_kernels else "error",
        seed=options.seed,
        profile_memory=options.memory,
        after_node=trace.after_node if trace else None,
    )


def _run_numpy(model: Model, feeds: Mapping[str, Any], options: RunOptions) -> dict[str, Any]:
    from optimizer.runtime import LimitReached, Session

    trace = Trace() if options.trace else None
    session = Session(model, _executor_options(options, trace))
    try:
        outputs = session.run(feeds, stop_at=options.stop_at)
    except LimitReached as limit:
        click.echo(f"{limit}; of what they made these tensors were live:")
        outputs = _made(session.graph, limit.live)
    if trace:
        trace.finish()
    if options.memory:
        _print_memory(model, session.context.memory.peak, session.context.memory.peak_at)
    return outputs


def _made(graph: Graph, live: Mapping[Value, Any]) -> dict[str, Any]:
    """What nodes have computed, by name: neither constants nor what was fed."""
    made = {v: x for v, x in live.items() if v in graph and graph.node(v.node).is_operator}
    return {graph.info(v).name: x for v, x in made.items() if graph.info(v).name}


def _print_memory(model: Model, peak: int, peak_at: str) -> None:
    tensors = [model.graph.tensor(value) for value in model.graph.constants]
    weights = sum(tensor.nbytes for tensor in tensors if tensor is not None)
    place = f", reached at {peak_at}" if peak_at else ""
    click.echo(f"memory: {peak / 1e6:.2f} MB of intermediates at most{place}")
    click.echo(f"memory: {weights / 1e6:.2f} MB of constants")


# -------------------------------------------------------------------- the other engine


def _run_compared(model: Model, feeds: Mapping[str, Any], options: RunOptions) -> tuple[dict[str, Any], bool]:
    """onnxruntime alone, or both with every tensor compared."""
    from optimizer.cli import walk
    from optimizer.cli.walk_bodies import BodyWalk
    from optimizer.runtime import Session

    if options.memory and options.engine == "onnxruntime":
        raise UsageError("--memory is a profile of the NumPy executor: use --engine numpy")
    stop = _named(model, options.stop_at) if options.stop_at else None
    nodes = walk.chosen_nodes(model, stop, options.max_nodes)
    ours: dict[Value, Any] = {}
    bodies = BodyWalk(model)
    if options.engine == "both":
        watching = bodies.options(replace(_executor_options(options), max_nodes=None))
        ours = walk.numpy_values(model, nodes, feeds, watching)
    theirs, seconds = walk.onnxruntime_values(model, nodes, feeds, walk.not_given(model.graph, ours))
    if options.trace:
        trace = Trace()
        for node in nodes:
            made = [theirs.get(node.value(i)) for i in range(len(node.outputs))]
            trace.after_node(node, [theirs.get(v) for v in node.operands if v], made, seconds.get(node.id))
        trace.finish()
    agree = True
    if options.engine == "both":
        given = walk.given_values(Session(model), feeds)
        found = walk.find_parting(nodes, ours, theirs)
        found = bodies.first(replace(found, scope=walk.Scope(model.graph, given, model.opsets)), nodes)
        agree = not found.fault
        _print_walk(model, found, bodies)
    return _results(model, stop, options, ours or theirs), agree


def _print_walk(model: Model, found: Parting, bodies: BodyWalk) -> None:
    from optimizer.cli import walk

    close = f"largest difference {found.largest:.2g} of the largest magnitude in a tensor"
    close += f", at {found.where}" if found.where else ""
    if found.node is None or found.scope is None:
        inner = f" and {bodies.compared} in bodies and functions" if bodies.compared else ""
        click.echo(f"both engines agree on all {found.compared} tensors{inner}; {close}")
    else:
        place = f"in {found.scope.place} " if found.scope.place else ""
        click.echo(
            f"the engines part {place}at {found.scope.graph.label(found.node)} -> {found.fault}; "
            f"the {found.compared - 1} tensors before it agree ({close})"
        )
        if not found.scope.place and bodies.entered(found.node):
            click.echo("on the same inputs, every tensor inside it is the same in both")
        if nearer := walk.nearer_to_truth(model, found):
            click.echo(f"computed in float64, {nearer} is the nearer one there")
    for place, reason in bodies.left_out.items():
        click.echo(f"not compared: the inside of {place}: {reason}")


def _named(model: Model, name: str) -> Value:
    graph = model.graph
    for node in graph.nodes:
        for index, info in enumerate(node.outputs):
            if info.name == name:
                return node.value(index)
    for info, value in zip(graph.sink.outputs, graph.outputs, strict=True):
        if info.name == name:
            return value
    raise UsageError(f"no node of the main graph makes a tensor '{name}'")


def _results(
    model: Model, stop: Value | None, options: RunOptions, values: Mapping[Value, Any]
) -> dict[str, Any]:
    if stop is not None:
        return {str(options.stop_at): values[stop]} if stop in values else {}
    graph = model.graph
    named = zip(graph.sink.outputs, graph.outputs, strict=True)
    return {info.name: values[value] for info, value in named if value in values}


# -------------------------------------------------------------------- outputs


def print_outputs(outputs: Mapping[str, Any]) -> None:
    """One line per output."""
    for name, value in outputs.items():
        click.echo(describe_output(name, value))


def write_arrays(outputs: Mapping[str, Any], folder: Path) -> None:
    """Writes each array output as ``NAME.npy``; characters that no file name takes become ``_``."""
    folder.mkdir(parents=True, exist_ok=True)
    taken: set[str] = set()
    for name, value in outputs.items():
        if isinstance(value, np.ndarray) and value.dtype != object:
            safe = "".join(c if c.isalnum() or c in "._-" else "_" for c in name) or "_"
            while safe in taken:
                safe += "_"
            taken.add(safe)
            np.save(folder / f"{safe}.npy", value)
            click.echo(f"wrote {folder / f'{safe}.npy'}")
