"""The rows as a terminal table, and as the Markdown of docs/results.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

Row = dict[str, Any]
Cells = list[str]

HEAD = ["model", "nodes", "MB", "CPU s", "peak MB", "max abs error", "max rel error", "latency ratio"]

EXPLANATION = """\
- **nodes**, **MB**: before -> after. Nested bodies and local functions are counted, Constant nodes are not.
- **CPU s**, **peak MB**: user and system time and peak memory of the whole process
  `oinfer-opt IN OUT`, with `--no-verify` / with verification.
- **max abs error**: largest difference between result and original, in onnxruntime with its optimizations
  off, on two inputs (of two sizes where dims are free); **max rel error** is relative to the largest
  magnitude of that output.
- **latency ratio**: result / original, below 1 is faster; onnxruntime with all its optimizations on, one
  thread, CPU time of that thread, both in turns in one process. Median of the pairs' ratios, with
  distribution-free 95 % bounds.
"""

PEERS_EXPLANATION = """\
{versions}, each with its defaults; onnxruntime is its offline BASIC level. Nodes of the result, with the CPU
seconds of the whole process (ours with `--no-verify`). **Bold**: fewest nodes among valid results."""


def main_table(rows: Sequence[Row]) -> list[Cells]:
    return [
        [
            row["model"],
            _change(row, "nodes", "{}"),
            _change(row, "bytes", "{:.2f}", 1e6),
            _both_runs(row, "cpu", "{:.2f}"),
            _both_runs(row, "peak", "{:.0f}", 1e6),
            _error(row.get("max_abs")),
            _error(row.get("max_rel")),
            _latency(row.get("latency")),
        ]
        for row in rows
    ]


def peer_table(rows: Sequence[Row], peers: Sequence[str]) -> list[Cells]:
    """Nodes of each result, with CPU seconds of the whole process; the fewest nodes in bold."""
    table = []
    for row in rows:
        contenders = {"oinfer-opt": _own_result(row), **row.get("peers", {})}
        valid = [found["nodes"] for found in contenders.values() if _is_valid(found)]
        cells = [_peer(contenders[name], min(valid, default=-1)) for name in ("oinfer-opt", *peers)]
        table.append([row["model"], str(row.get("before", {}).get("nodes", "?")), *cells])
    return table


def failures(rows: Sequence[Row]) -> list[str]:
    found = []
    for row in rows:
        sources = {"": row, **{f", {k}": v for k, v in row["runs"].items()}, **_named(row.get("peers", {}))}
        found += [f"{row['model']}{who}: {v['failure']}" for who, v in sources.items() if v.get("failure")]
    return found


def print_tables(rows: Sequence[Row], peers: Sequence[str]) -> None:
    console = Console()
    if not console.is_terminal:
        console = Console(width=200)
    tables = [(HEAD, main_table(rows))]
    if peers:
        tables.append((_peer_head(peers), peer_table(rows, peers)))
    for head, body in tables:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for i, title in enumerate(head):
            table.add_column(title, justify="right" if i else "left", no_wrap=True)
        for cells in body:
            table.add_row(*(cell.replace("**", "") for cell in cells))
        console.print(table)
        console.print()
    for failure in failures(rows):
        console.print(failure, markup=False, highlight=False)


def markdown(rows: Sequence[Row], peers: dict[str, str], machine: dict[str, str]) -> str:
    """The page of results: how it was measured, the tables, and what failed."""
    made_with = ", ".join(f"{name} {version}" for name, version in machine.items())
    parts = [
        "# Results",
        "Made by `python -m benchmarks`; everything on this page is measured, nothing is typed in.",
        f"Measured with {made_with}.",
        EXPLANATION.rstrip(),
        _grid(HEAD, main_table(rows)),
    ]
    if peers:
        versions = ", ".join(f"{name} {version}" for name, version in peers.items())
        parts += [
            "## Others on the same models",
            PEERS_EXPLANATION.format(versions=versions),
            _grid(_peer_head(tuple(peers)), peer_table(rows, tuple(peers))),
        ]
    if found := failures(rows):
        parts += ["## Failures", "\n".join(f"- {line}" for line in found)]
    return "\n\n".join(parts) + "\n"


# ------------------------------------------------------------------ cells


def _change(row: Row, key: str, form: str, unit: float = 1) -> str:
    values = [row.get(when, {}).get(key) for when in ("before", "after")]
    if unit != 1:
        values = [None if value is None else value / unit for value in values]
    return " -> ".join("?" if value is None else form.format(value) for value in values)


def _both_runs(row: Row, key: str, form: str, unit: float = 1) -> str:
    runs = row["runs"]
    return " / ".join(
        "fails" if "failure" in runs[kind] else form.format(runs[kind][key] / unit)
        for kind in ("unverified", "verified")
    )


def _error(value: float | None) -> str:
    if value is None:
        return ""
    return "0" if value == 0 else f"{value:.1e}"


def _latency(found: Row | None) -> str:
    return f"{found['ratio']:.3f} [{found['low']:.3f}, {found['high']:.3f}]" if found else ""


def _own_result(row: Row) -> Row:
    own = {key: row[key] for key in ("failure", "max_abs", "max_rel") if key in row}
    return own | row.get("after", {}) | {"cpu": row["runs"]["unverified"]["cpu"]}


def _is_valid(found: Row) -> bool:
    return "nodes" in found and not found.get("failure") and not found.get("wrong")


def _peer(found: Row, fewest: int) -> str:
    if "nodes" not in found:
        return "fails"
    nodes = str(found["nodes"])
    if found.get("failure"):
        nodes += " does not run"
    elif found.get("wrong"):
        nodes += " wrong"
    elif found["nodes"] == fewest:
        nodes = f"**{nodes}**"
    return f"{nodes} ({found['cpu']:.1f})"


def _named(peers: dict[str, Row]) -> dict[str, Row]:
    return {f", {name}": found for name, found in peers.items()}


def _peer_head(peers: Sequence[str]) -> list[str]:
    return ["model", "original", "oinfer-opt", *peers]


def _grid(head: Sequence[str], body: Sequence[Cells]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
