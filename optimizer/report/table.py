"""The report on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from optimizer.report.summary import Report

if TYPE_CHECKING:
    from rich.console import Console

SHOWN_REFUSALS = 5
SHOWN_NOTES = 3


def print_report(report: Report, console: Console, *, verbose: bool = False) -> None:
    """Prints the before/after table and what else is worth a line.

    Args:
        verbose: operators that stay as they are too, what held rewrites back, and all notes.
    """
    console.print(op_table(report, everything=verbose))
    console.print(Text(totals(report)))
    for rejected in report.rejected:
        console.print(
            Text(f"left out: {rejected.rule} at {rejected.anchor}: {rejected.fault}"), style="yellow"
        )
    if report.refused and verbose:
        console.print(refusal_table(report))
    for warning in report.warnings:
        console.print(Text(f"warning: {warning}"), style="yellow")
    if report.local:
        console.print(Text(local_summary(report)))
    console.print(Text(verdict(report)), style="green" if report.verified == "full" else "yellow")
    for note in notes(report, everything=verbose):
        console.print(Text(f"note: {note}"))


def op_table(report: Report, *, everything: bool = False) -> Table:
    """Operator counts before and after; only those that changed, unless ``everything``."""
    table = Table("op", box=None, pad_edge=False)
    for title in ("before", "after", "change"):
        table.add_column(title, justify="right")
    before, after = report.before.histogram, report.after.histogram
    same = 0
    for op in sorted(set(before) | set(after)):
        old, new = before.get(op, 0), after.get(op, 0)
        if old == new and not everything:
            same += new
        else:
            table.add_row(op, str(old), str(new), f"{new - old:+d}" if new != old else "")
    if same:
        table.add_row("unchanged", str(same), str(same), "")
    old, new = report.before.nodes, report.after.nodes
    table.add_row("all nodes", str(old), str(new), f"{new - old:+d}", style="bold")
    return table


def totals(report: Report) -> str:
    """Bytes and seconds in one line."""
    parts = [f"constants {size(report.before.constant_bytes)} -> {size(report.after.constant_bytes)}"]
    if report.before.file_bytes is not None and report.after.file_bytes is not None:
        parts.append(f"file {size(report.before.file_bytes)} -> {size(report.after.file_bytes)}")
    parts.append("time " + ", ".join(f"{name} {spent:.2f} s" for name, spent in report.seconds.items()))
    return "; ".join(parts)


def verdict(report: Report) -> str:
    """What the verification found, in one line."""
    text = f"verified: {report.verified}"
    if report.max_abs_error is not None:
        text += f", max-abs-error {report.max_abs_error:.3g}"
    for key, title in (("max_rel_error", "max-rel"), ("cosine", "cosine"), ("top5", "top-5 agreement")):
        found = report.verification.get(key)
        # Not every output is a list of scores: that all rows agree is no news, that some do not is.
        if found is not None and not (key == "top5" and found == 1.0):
            text += f", {title} {found:.6g}"
    if report.bit_exact:
        text += ", bit-exact rewrites only"
    return text + (f" ({report.reason})" if report.reason else "")


def local_summary(report: Report) -> str:
    """How many rewrites were checked one by one, how many of them briefly, and why others were not."""
    text = f"rewrites checked one by one: {report.local['checked']}"
    if briefly := report.local["briefly"]:
        text += f" ({briefly} of them at one size and scale, as others like them had passed at several)"
    reasons = [f"{count} ({reason})" for reason, count in report.local["skipped"].items()]
    return text + (f"; not checked: {', '.join(reasons)}" if reasons else "")


def notes(report: Report, *, everything: bool = False) -> list[str]:
    """What else the verification says: a few lines, all of them with ``everything``."""
    found = list(report.verification.get("notes", ()))
    if everything:
        across = report.verification.get("across_engines")
        if across is not None:
            found.append(
                f"the NumPy executor against the original in onnxruntime: max-abs-error {across:.3g}"
            )
        return found
    more = len(found) - SHOWN_NOTES
    return found if more <= 1 else [*found[:SHOWN_NOTES], f"and {more} more with -v"]


def refusal_table(report: Report) -> Table:
    """The rewrites held back most often, with the reason."""
    table = Table("most often held back", "reason", box=None, pad_edge=False)
    table.add_column("times", justify="right")
    for rule, reason, times in report.refused[:SHOWN_REFUSALS]:
        table.add_row(rule, reason, str(times))
    return table


def rule_table(report: Report) -> Table:
    """Tries, hits and time per rule, the slowest first."""
    table = Table("rule", box=None, pad_edge=False)
    for title in ("tried", "fired", "seconds"):
        table.add_column(title, justify="right")
    for name, (tried, fired, seconds) in sorted(report.rules.items(), key=lambda r: -r[1][2]):
        table.add_row(name, str(tried), str(fired), f"{seconds:.3f}")
    return table


def pass_table(report: Report) -> Table:
    """Seconds per pass."""
    table = Table("pass", box=None, pad_edge=False)
    table.add_column("seconds", justify="right")
    for name, seconds in report.passes.items():
        table.add_row(name, f"{seconds:.3f}")
    return table


def size(count: int) -> str:
    """Bytes in a unit a person reads."""
    amount = float(count)
    for unit in ("B", "KiB", "MiB"):
        if amount < 1024:
            return f"{count} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.2f} GiB"
