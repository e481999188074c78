"""Runs a command and says what it cost."""

from __future__ import annotations

import os
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
PINNED_BLAS = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
"""A pin would have NumPy run the kernels of another processor, while onnxruntime picks its own."""
_MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True)
class Run:
    """A finished process. ``cpu`` is user + system seconds with its children, ``peak`` is bytes."""

    status: int
    cpu: float
    seconds: float
    peak: int
    stdout: str
    stderr: str
    timed_out: bool

    @property
    def failure(self) -> str:
        """Empty where it ended well, else one line."""
        if self.timed_out:
            return f"no end within {self.seconds:.0f} s"
        if self.status == 0:
            return ""
        lines = [line for line in self.stderr.splitlines() if line.strip()]
        kind = f"signal {-self.status}" if self.status < 0 else f"exit code {self.status}"
        return f"{kind}: {lines[-1].strip()[:200]}" if lines else kind


def restart_on_one_thread(module: str) -> None:
    """Starts ``python -m module`` over again where BLAS has several threads or a pinned processor.

    BLAS reads its variables once, when NumPy is imported.
    """
    if ONE_THREAD.items() <= os.environ.items() and not any(name in os.environ for name in PINNED_BLAS):
        return
    kept = {name: value for name, value in os.environ.items() if name not in PINNED_BLAS}
    os.execve(sys.executable, [sys.executable, "-m", module, *sys.argv[1:]], {**kept, **ONE_THREAD})


def run(command: Sequence[str], *, timeout: float, cwd: Path | None = None) -> Run:
    """Runs ``command`` to its end, or kills it after ``timeout`` seconds."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        start = time.monotonic()
        child = subprocess.Popen(command, stdout=out, stderr=err, stdin=subprocess.DEVNULL, cwd=cwd)
        status, usage, timed_out = _wait(child, start + timeout)
        seconds = time.monotonic() - start
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read().decode("utf-8", "replace"))
    return Run(
        status=status,
        cpu=usage.ru_utime + usage.ru_stime,
        seconds=seconds,
        peak=usage.ru_maxrss * _MAXRSS_UNIT,
        stdout=texts[0],
        stderr=texts[1],
        timed_out=timed_out,
    )


def _wait(child: subprocess.Popen[bytes], deadline: float) -> tuple[int, resource.struct_rusage, bool]:
    timed_out = False
    pause = 0.001
    while True:
        pid, status, usage = os.wait4(child.pid, 0 if timed_out else os.WNOHANG)
        if pid:
            child.returncode = os.waitstatus_to_exitcode(status)  # Popen must not wait again
            return child.returncode, usage, timed_out
        if time.monotonic() > deadline:
            child.kill()
            timed_out = True
            continue
        time.sleep(pause)
        pause = min(2 * pause, 0.05)


def command_of(text: str) -> list[str]:
    """Splits a command line; a script of this Python's environment needs no path."""
    words = shlex.split(text)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    found = shutil.which(words[0], path=path)
    if found is None:
        raise SystemExit(f"benchmarks: no command '{words[0]}'")
    return [found, *words[1:]]
