"""Errors as one line and an exit code; ``--debug`` adds the traceback."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import click

from optimizer.ir import OptimizerError

INTERNAL = 70
"""Exit code for a fault of this project itself (sysexits.h EX_SOFTWARE)."""


@contextmanager
def reported(debug: bool) -> Iterator[None]:
    """Turns exceptions into ``error: ...`` on stderr and the exit code that belongs to them."""
    try:
        yield
    except OptimizerError as error:
        _fail(str(error), error.exit_code, debug)
    except MemoryError:
        _fail("out of memory; try --size-limit, --verify local or a machine with more", 4, debug)
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
    click.echo(f"error: {' '.join(text.split())}", err=True)
    raise click.exceptions.Exit(code)
