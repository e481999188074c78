"""onnxruntime asked to run, and told to stop where that takes too long or the user interrupts."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from threading import Event, Thread, get_ident
from typing import Any

from optimizer.ir import OptimizerError

GRACE = 10.0
"""Seconds that it may take to stop: it looks between two nodes."""


class TooLong(OptimizerError):
    """A run was stopped."""


def run_within(
    session: Any, names: Sequence[str], feeds: Mapping[str, Any], seconds: float | None
) -> list[Any]:
    """What ``session`` computes.

    Python handles no signal while the main thread is inside of onnxruntime, and nothing else could
    stop it there: so it runs in another thread, and this one waits.

    Args:
        seconds: of processor time after which to stop it (a busy machine changes nothing), ``inf`` for never;
            ``None`` runs it in this thread to the end.

    Raises:
        TooLong: it was not done by then.
        Exception: whatever onnxruntime raises.
    """
    if seconds is None:
        found: list[Any] = session.run(names, feeds)
        return found
    import onnxruntime

    options = onnxruntime.RunOptions()
    options.log_severity_level = 4
    done = Event()
    clock: list[int] = []
    made: list[Any] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            if hasattr(time, "pthread_getcpuclockid"):  # not everywhere
                clock.append(time.pthread_getcpuclockid(get_ident()))
            made.extend(session.run(names, feeds, options))
        except BaseException as error:  # to be raised where somebody waits for it
            failed.append(error)
        finally:
            done.set()

    thread = Thread(target=run, name="onnxruntime", daemon=True)
    thread.start()
    in_time = False
    try:
        in_time = _is_done(done, clock, seconds)
    finally:
        if not in_time:
            options.terminate = True
        thread.join(GRACE)
    if not in_time:
        raise TooLong(f"it was still running after {seconds:g} s")
    if failed:
        raise failed[0]
    return made


def _is_done(done: Event, clock: list[int], seconds: float) -> bool:
    """Waits until it is done; False where its thread has taken so many seconds before."""
    start, left = time.monotonic(), seconds
    while left > 0:
        if done.wait(None if left == math.inf else max(left, 0.05)):
            return True
        left = seconds - (time.clock_gettime(clock[0]) if clock else time.monotonic() - start)
    return done.is_set()
