"""``oinfer reduce``: the smallest model that still fails."""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from optimizer.cli.errors import reported
from optimizer.cli.parsing import check_writable

if TYPE_CHECKING:
    from optimizer.ir import Model


@click.command()
@click.argument("model", metavar="MODEL")
@click.option(
    "--check",
    "command",
    required=True,
    metavar="COMMAND",
    help="Exits with another code than 0 on MODEL; {} is the file, else it comes last.",
)
@click.option("--output", metavar="OUT", help="Where to write it [MODEL with .reduced.onnx].")
@click.option("-q", "--quiet", is_flag=True, help="Print errors only.")
@click.option("--debug", is_flag=True, help="Print the traceback of an error.")
def reduce(model: str, command: str, output: str | None, quiet: bool, debug: bool) -> None:
    """Shrinks MODEL as long as COMMAND exits with the same code: nodes, outputs, bodies, inputs, dims,
    constants. What is left makes a bug report.
    """
    with reported(debug):
        from optimizer.io import load, save
        from optimizer.verify.reduce import Reducer

        target = Path(output) if output else Path(model).with_suffix(".reduced.onnx")
        check_writable(output or target)
        failure = Command(command)
        loaded = load(model)
        reducer = Reducer(failure, None if quiet else click.echo)
        smallest = reducer.reduce(loaded)
        save(smallest, target)
        if not quiet:
            nodes = sum(smallest.histogram().values())
            click.echo(f"{target}: {nodes} nodes, after {reducer.asked} runs of the command")


class Command:
    """A command that fails on a model: with the exit code of its first run."""

    def __init__(self, text: str) -> None:
        self._words = shlex.split(text)
        if not any("{}" in word for word in self._words):
            self._words.append("{}")
        self._code: int | None = None

    def __call__(self, model: Model) -> bool:
        """Whether the command fails on ``model`` as it did the first time."""
        from optimizer.io import save
        from optimizer.ir import OptimizerError

        with tempfile.TemporaryDirectory(prefix="oinfer-") as folder:
            path = Path(folder) / "model.onnx"
            try:
                save(model, path)
            except OptimizerError:
                return False
            words = [word.replace("{}", str(path)) for word in self._words]
            try:
                code = subprocess.run(words, capture_output=True, cwd=Path.cwd()).returncode
            except OSError as error:
                raise click.UsageError(f"cannot run {words[0]}: {error.strerror}") from error
        if self._code is None:
            self._code = code
        return code != 0 and code == self._code
