"""How many versions of the operators have a test of this project. Long: ``pytest -m sweep``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import op_coverage
import pytest

TESTS = Path(__file__).parents[1] / "runtime"


@pytest.mark.sweep
def test_nearly_every_operator_version_has_a_passing_test(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = tmp_path / "ran.json"
    folder = str(Path(__file__).parent)
    environment = {**os.environ, op_coverage.FILE: str(listed), "PYTHONPATH": folder}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "op_coverage",
        "-p",
        "no:cacheprovider",
        str(TESTS),
    ]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-2000:]
    wanted = set(op_coverage.schema_versions())
    have = wanted & op_coverage.covered([tuple(entry) for entry in json.loads(listed.read_text())])
    missing = sorted(f"{op}-{version}" for _, op, version in wanted - have)
    with capsys.disabled():
        print(f"\n{len(have)} of {len(wanted)} operator versions tested; missing: {', '.join(missing)}")
    assert len(have) >= 0.95 * len(wanted)
