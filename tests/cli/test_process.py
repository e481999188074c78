"""The commands as processes: signals end them cleanly."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import signal, sys, time
from pathlib import Path
import click
from optimizer.cli.errors import reported
from optimizer.cli.process import run_process
from optimizer.io import parse, stage

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have had them ignored
signal.signal(signal.SIGHUP, signal.SIG_DFL)

@click.command()
def main():
    with reported(False):
        model = parse('<ir_version: 10, opset_import: ["" : 20]> g (float[2] x) => (y) { y = Relu (x) }')
        staged = stage(model, Path(sys.argv[1], "out.onnx"))
        try:
            print("written", flush=True)
            time.sleep(60)
        except BaseException:
            staged.discard()
            raise

run_process(lambda: main([]))
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_removes_what_is_half_written(tmp_path: Path, name: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "written\n"
    (temporary,) = tmp_path.iterdir()
    assert temporary.name.startswith(".out.onnx.oinfer-")
    process.send_signal(getattr(signal, name))
    _, said = process.communicate(timeout=30)
    assert process.returncode == 128 + getattr(signal, name)
    assert said == f"error: stopped by {name}\n"
    assert not list(tmp_path.iterdir())
