"""``oinfer``: inspect, check, run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from optimizer.cli import parsing
from optimizer.cli.errors import reported

_DEBUG = click.option("--debug", is_flag=True, help="Print the traceback of an error.")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="oinfer-opt")
def main() -> None:
    """Tools around ONNX models: look into one, compare two, run one."""


@main.command()
@click.argument("model", metavar="MODEL")
@click.option("--tensor", metavar="NAME", help="Tell about this tensor only.")
@click.option("--nodes", type=click.IntRange(min=0), default=8, metavar="N", help="Nodes to preview [8].")
@click.option("--shapes", is_flag=True, help="Print what is inferred about every tensor.")
@click.option("--check-shapes", is_flag=True, help="Beside it what onnxruntime produces at two sizes.")
@_DEBUG
def inspect(
    model: str, tensor: str | None, nodes: int, shapes: bool, check_shapes: bool, debug: bool
) -> None:
    """Prints what a model is made of: versions, inputs, outputs, operators, constants, first nodes.

    With --check-shapes, exit code 1 where a run disproves what is inferred.
    """
    with reported(debug):
        from optimizer.io import load
        from optimizer.report import inspection

        if shapes or check_shapes:
            from optimizer.report import shapes as of_tensors

            found = of_tensors.check_shapes(model) if check_shapes else of_tensors.infer_shapes(load(model))
            click.echo(str(found))
            if found.wrong:
                raise click.exceptions.Exit(1)
            return

        loaded = load(model)
        click.echo(
            inspection.describe_tensor(loaded, tensor) if tensor else inspection.describe(loaded, nodes)
        )


@main.command()
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option("--max-abs-error", type=float, metavar="E", help="Fail above this absolute error.")
@click.option(
    "--check", "seeds", type=click.IntRange(min=1), default=2, metavar="N", help="Inputs per size [2]."
)
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON.")
@_DEBUG
def check(a: str, b: str, max_abs_error: float | None, seeds: int, as_json: bool, debug: bool) -> None:
    """Compares model B with the reference A; exit code 1 where their outputs differ."""
    with reported(debug):
        from optimizer.api import check as compare

        comparison = compare(a, b, max_abs_error=max_abs_error, seeds=seeds)
        click.echo(json.dumps(comparison.to_dict(), indent=2, default=str) if as_json else str(comparison))
        if not comparison:
            raise click.exceptions.Exit(1)


@main.command()
@click.argument("model", metavar="MODEL")
@click.option("--input", "inputs", multiple=True, metavar="NAME=FILE.npy", help="Feed this array.")
@click.option("--seed", type=int, default=0, metavar="N", help="Seed of the inputs not given [0].")
@click.option("--save", "folder", metavar="DIR", help="Write the outputs as .npy files there.")
@click.option("--max-nodes", type=click.IntRange(min=1), metavar="N", help="Stop after this many nodes.")
@click.option("--allow-missing-kernels", is_flag=True, help="Run what can be run.")
@click.option("-v", "--verbose", is_flag=True, help="Print a line for each node.")
@_DEBUG
def run(
    model: str, inputs: tuple[str, ...], seed: int, folder: str | None, debug: bool, **options: Any
) -> None:
    """Runs a model in the NumPy executor and prints each output's type, shape and range."""
    with reported(debug):
        from optimizer.cli.running import describe_output, read_arrays, run_model, write_arrays

        outputs = run_model(model, read_arrays(parsing.assignments(inputs)), seed, **options)
        for name, value in outputs.items():
            click.echo(describe_output(name, value))
        if folder is not None:
            write_arrays(outputs, Path(folder))
