"""``oinfer`` and its commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from optimizer.cli import parsing
from optimizer.cli.bisect import bisect
from optimizer.cli.check import check
from optimizer.cli.check_rules import check_rules
from optimizer.cli.errors import reported, spelled
from optimizer.cli.process import run_process
from optimizer.cli.reduce import reduce
from optimizer.cli.replay import replay

_FILL_HELP = (
    "What inputs not given are drawn from [normal]: uniform, positive, zeros, signed-zeros, ones, large, "
    "denormal, nonfinite or edges. Indices, masks, shapes and scales stay what they have to be."
)
_DEBUG = click.option("--debug", is_flag=True, help="Print the traceback of an error.")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="oinfer-opt")
def main() -> None:
    """Tools around ONNX models; ``oinfer COMMAND --help`` tells more of each."""


def command() -> None:
    """The entry of the console script: ``main`` in a process of its own."""
    run_process(main)


@main.command()
@click.argument("name", metavar="[PASS|RULE]", default="")
@click.option("--markdown", is_flag=True, help="Print the page of documentation.")
@_DEBUG
def passes(name: str, markdown: bool, debug: bool) -> None:
    """Lists every pass and rule with what it does; with a name, tells all about that one."""
    with reported(debug):
        from optimizer.api import describe_passes, rules_page

        click.echo(rules_page() if markdown else describe_passes(name), nl=not markdown)


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
        text = inspection.describe_tensor(loaded, tensor) if tensor else inspection.describe(loaded, nodes)
        click.echo(spelled(text))


@main.command()
@click.argument("model", metavar="MODEL")
@click.option("--input", "inputs", multiple=True, metavar="NAME=FILE", help="Feed this .npy file or picture.")
@click.option("--mean", default="0", metavar="M,...", help="Subtracted from a picture in 0..1 [0].")
@click.option("--std", default="1", metavar="S,...", help="What it is divided by then [1].")
@click.option("--layout", type=click.Choice(["NCHW", "NHWC"]), help="Of a picture [by its input's shape].")
@click.option("--seed", type=int, default=0, metavar="N", help="Seed of the inputs not given [0].")
@click.option("--fill", default="normal", metavar="NAME", help=_FILL_HELP)
@click.option(
    "--engine",
    type=click.Choice(["numpy", "onnxruntime", "both"]),
    default="numpy",
    help="What runs it [numpy]; both: every tensor of one is compared with the other's.",
)
@click.option("--trace", is_flag=True, help="Print time, type, shape and range of every node's results.")
@click.option("--memory", is_flag=True, help="Print the most memory that intermediates took.")
@click.option("--stop-at", metavar="TENSOR", help="Run only what this tensor needs, and print it.")
@click.option("--max-nodes", type=click.IntRange(min=1), metavar="N", help="Stop after this many nodes.")
@click.option("--save", "folder", metavar="DIR", help="Write the outputs as .npy files there.")
@click.option("--allow-missing-kernels", is_flag=True, help="Run what can be run.")
@click.option("-v", "--verbose", is_flag=True, help="Print a line for each node, those of bodies too.")
@_DEBUG
def run(
    model: str,
    inputs: tuple[str, ...],
    mean: str,
    std: str,
    folder: str | None,
    debug: bool,
    **options: Any,
) -> None:
    """Runs a model and prints each output's type, shape and range; inputs not given come from the seed.

    With --engine both, all tensors are computed by the NumPy executor and by onnxruntime, and the
    first node where they part is shown; exit code 1 then.
    """
    with reported(debug):
        from optimizer.cli.running import RunOptions, print_outputs, run_model, write_arrays

        files = parsing.assignments(inputs)
        wanted = RunOptions(files, parsing.numbers(mean), parsing.numbers(std), **options)
        outputs, agree = run_model(model, wanted)
        print_outputs(outputs)
        if folder is not None:
            write_arrays(outputs, Path(folder))
        if not agree:
            raise click.exceptions.Exit(1)


for _command, _summary in {
    passes: "List the passes and rules, or tell about one.",
    inspect: "Show what a model is made of.",
    run: "Run a model and show its outputs.",
    bisect: "Name the first rewrite of a model that is wrong.",
    check: "Compare two models.",
    check_rules: "Try rules on graphs made to break them.",
    reduce: "Shrink a model that shows a fault.",
    replay: "Apply a saved log of rewrites again.",
}.items():
    _command.short_help = _summary
    main.add_command(_command)
