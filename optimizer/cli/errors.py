"""Errors as one line and an exit code; ``--debug`` adds the traceback."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import click

from optimizer.ir import InvalidModel, OptimizerError

INTERNAL = 70
"""Exit code for a fault of this project itself (sysexits.h EX_SOFTWARE)."""


_FLAGS = {
    "dims": "dim",
    "input_shapes": "input-shape",
    "plugins": "plugin",
    "rollback": "no-rollback",
    "seeds": "check",
}
"""Options of the engine whose flag is not their own name."""


def spelled(text: str) -> str:
    """A message of the engine, which names options as ``optimize`` does, with flags instead."""

    def flag(found: re.Match[str]) -> str:
        return "--" + _FLAGS.get(found[1], found[1].replace("_", "-"))

    return re.sub(r"option '(\w+)'", flag, text)


@contextmanager
def reported(debug: bool) -> Iterator[None]:
    """Turns exceptions into ``error: ...`` on stderr and the exit code that belongs to them."""
    try:
        yield
    except OptimizerError as error:
        _fail(str(error), error.exit_code, debug)
    except RecursionError:
        _fail("functions or bodies of the model are nested too deep", InvalidModel.exit_code, debug)
    except MemoryError:
        _fail(
            "out of memory; try smaller inputs (option 'input_shapes', option 'dims'), or check less",
            4,
            debug,
        )
    except OSError as error:
        _fail(f"{error.strerror or error}: {error.filename or ''}".rstrip(": "), 4, debug)
    except (click.ClickException, click.exceptions.Exit, click.Abort, KeyboardInterrupt):
        raise
    except Exception as error:
        text = f"internal error: {type(error).__name__}: {error}; run with --debug and report it, please"
        _fail(text, INTERNAL, debug)


def _fail(text: str, code: int, debug: bool) -> None:
    if debug:
        traceback.print_exc()
    click.echo(f"error: {spelled(' '.join(text.split()))}", err=True)
    raise click.exceptions.Exit(code)
