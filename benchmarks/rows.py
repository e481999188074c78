"""One row per model: what it takes to optimize it, and what comes out."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import peer_tools, process
from benchmarks.models import Candidate

WRONG_FROM = 1e-3
"""A peer's result that is further off than this, relative to the largest output, counts as wrong."""


@dataclass(frozen=True)
class Plan:
    """How to measure."""

    command: Sequence[str]
    scratch: Path
    pairs: int
    timeout: float
    peers_python: str = ""
    peers: tuple[str, ...] = ()


def measure(model: Candidate, plan: Plan) -> dict[str, Any]:
    """The whole row of one model, as plain data."""
    unverified = plan.scratch / "unverified.onnx"
    verified = plan.scratch / "verified.onnx"
    runs = {
        "unverified": _optimize(plan, model.path, unverified, "--no-verify"),
        "verified": _optimize(plan, model.path, verified),
    }
    row: dict[str, Any] = {"model": model.name, "runs": runs}
    result = verified if verified.exists() else unverified
    if result.exists():
        row |= _against(plan, model, result, plan.pairs)
    else:
        row |= {"before": _describe(plan, model)}
    if plan.peers:
        row["peers"] = {peer: _peer(plan, model, peer, row) for peer in plan.peers}
    _remove(unverified, verified)
    return row


def _optimize(plan: Plan, source: Path, target: Path, *options: str) -> dict[str, Any]:
    _remove(target)
    run = process.run([*plan.command, str(source), str(target), *options], timeout=plan.timeout)
    return _cost(run) | ({"failure": run.failure} if run.failure else {})


def _peer(plan: Plan, model: Candidate, peer: str, row: dict[str, Any]) -> dict[str, Any]:
    target = plan.scratch / "peer.onnx"
    _remove(target)
    command = [plan.peers_python, peer_tools.__file__, peer, str(model.path), str(target)]
    run = process.run(command, timeout=plan.timeout)
    found = _cost(run)
    if run.failure or not target.exists():
        return found | {"failure": run.failure or "wrote no file"}
    compared = compare_with(plan, model, target)
    found |= {key: compared[key] for key in ("max_abs", "max_rel", "failure") if key in compared}
    found |= compared.get("after", {})
    found["wrong"] = found.get("max_rel", 0.0) > WRONG_FROM
    _remove(target)
    return found


def compare_with(plan: Plan, model: Candidate, result: Path) -> dict[str, Any]:
    """Nodes, bytes and error of another result, not timed."""
    return _against(plan, model, result, pairs=0)


def time_against(plan: Plan, model: Candidate, result: Path) -> dict[str, Any]:
    """Error and latency of another result."""
    return _against(plan, model, result, pairs=plan.pairs)


def _cost(run: process.Run) -> dict[str, Any]:
    return {"cpu": run.cpu, "seconds": run.seconds, "peak": run.peak}


def _against(plan: Plan, model: Candidate, result: Path, pairs: int) -> dict[str, Any]:
    return _measuring_process(plan, model, str(result), "--pairs", str(pairs))


def _describe(plan: Plan, model: Candidate) -> dict[str, Any]:
    return _measuring_process(plan, model)


def _measuring_process(plan: Plan, model: Candidate, *more: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.measure", str(model.path), *more, "--name", model.name]
    run = process.run(command, timeout=plan.timeout)
    if run.failure:
        return {"failure": f"measuring failed: {run.failure}"}
    found: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return found


def _remove(*paths: Path) -> None:
    for path in paths:
        for part in (path, *path.parent.glob(path.name + "*data")):
            part.unlink(missing_ok=True)
