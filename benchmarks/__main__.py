"""``python -m benchmarks``: node counts, cost, error and latency, model by model."""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks import models, peer_tools, process, rows, tables


def main() -> None:
    options = _options()
    peers = _installed_peers(options.peers) if options.peers else {}
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="oinfer-bench-") as folder:
        plan = rows.Plan(
            command=process.command_of(options.command),
            scratch=Path(folder),
            pairs=options.latency_pairs,
            timeout=options.timeout,
            peers_python=options.peers or "",
            peers=tuple(peers),
        )
        chosen = models.candidates(options.models, plan.scratch, options.only)
        if not chosen:
            raise SystemExit(f"benchmarks: no model is named like '{options.only}'")
        for number, model in enumerate(chosen, 1):
            print(f"[{number}/{len(chosen)}] {model.name}", file=sys.stderr, flush=True)
            found.append(rows.measure(model, plan))
            _write(options, found, peers)
    tables.print_tables(found, tuple(peers))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    add = parser.add_argument
    add("--models", type=Path, metavar="DIR", help="measure DIR/*.onnx (default: installed and made ones)")
    add("--only", default="", metavar="PATTERN", help="models with such a name (wildcards, or a part)")
    add("--command", default="oinfer-opt", help="the optimizer, called with IN OUT [--no-verify]")
    add("--latency-pairs", type=int, default=30, metavar="N", help="timed pairs; 0: no latency (default: 30)")
    add("--peers", metavar="PYTHON", help="a Python that has other optimizers installed: measure them too")
    add("--timeout", type=float, default=600, metavar="S", help="seconds for one process (default: 600)")
    add("--json", type=Path, metavar="FILE", help="write everything measured")
    add("--write", type=Path, metavar="FILE", help="write the page of results (docs/results.md)")
    return parser.parse_args()


def _installed_peers(python: str) -> dict[str, str]:
    run = process.run([python, peer_tools.__file__, "--list"], timeout=60)
    if run.failure:
        raise SystemExit(f"benchmarks: {python} does not work: {run.failure}")
    found: dict[str, str] = json.loads(run.stdout)
    return found


def _write(options: argparse.Namespace, found: list[dict[str, Any]], peers: dict[str, str]) -> None:
    """After every model, so that an interrupted run leaves what it has."""
    machine = _machine()
    if options.json:
        everything = {"machine": machine, "peers": peers, "models": found}
        text = json.dumps(_strict(everything), indent=1, allow_nan=False)
        options.json.write_text(text + "\n", encoding="utf-8")
    if options.write:
        options.write.write_text(tables.markdown(found, peers, machine), encoding="utf-8")


def _strict(value: Any) -> Any:
    """JSON has no infinity: a text says it."""
    if isinstance(value, dict):
        return {key: _strict(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_strict(item) for item in value]
    return value if not isinstance(value, float) or math.isfinite(value) else str(value)


def _machine() -> dict[str, str]:
    versions = {name: metadata.version(name) for name in ("onnx", "onnxruntime", "numpy")}
    system = f"{platform.system()} {platform.machine()}"
    return {"Python": platform.python_version(), **versions, "on": f"{system}, {os.cpu_count()} cores"}


if __name__ == "__main__":
    main()
