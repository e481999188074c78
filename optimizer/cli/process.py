"""A command as a process of its own: how it ends, and how signals end it."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import NoReturn


class Stopped(BaseException):
    """A signal asks the process to end; no handler of errors is to take it for one."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def run_process(main: Callable[[], object]) -> NoReturn:
    """Runs a command and ends the process.

    SIGINT, SIGTERM and SIGHUP unwind it, so that what is half written is removed; the exit code is 128
    and the signal's number then. A second signal ends it at once.
    """
    gc.disable()  # it ends soon: walking its millions of objects would free next to nothing
    for number in _stopping():
        signal.signal(number, _stop)
    try:
        main()
        code = 0
    except Stopped as stop:
        print(f"error: stopped by {signal.Signals(stop.number).name}", file=sys.stderr)
        code = 128 + stop.number
    except SystemExit as end:
        if isinstance(end.code, str):
            raise
        code = end.code or 0
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # taking them apart one by one takes longer than saving the model


def _stopping() -> list[int]:
    """The signals to stop on; what a shell or ``nohup`` has us ignore stays ignored."""
    known = [getattr(signal, name, None) for name in ("SIGINT", "SIGTERM", "SIGHUP")]
    return [s for s in known if s is not None and signal.getsignal(s) is not signal.SIG_IGN]


def _stop(number: int, _: FrameType | None) -> NoReturn:
    for other in _stopping():
        signal.signal(other, signal.SIG_DFL)
    raise Stopped(number)
