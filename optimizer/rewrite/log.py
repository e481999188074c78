"""The log of a run: which rules were applied where, under which options, as JSON to apply again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from optimizer.ir import UsageError
from optimizer.rewrite.journal import Application

VERSION = 1
Key: TypeAlias = tuple[str, tuple[str, ...], str]


@dataclass(frozen=True, slots=True)
class RewriteLog:
    """What was applied, in order: (rule, scope, anchor), anchors by original tensor names.

    Attributes:
        options: those of the run that decide which rewrites are possible, as plain data.
    """

    applications: tuple[Key, ...]
    options: Mapping[str, Any]

    @classmethod
    def of(cls, entries: Iterable[Application], options: Mapping[str, Any]) -> RewriteLog:
        """The log of a finished run."""
        return cls(tuple(entry.key for entry in entries), options)

    def missing(self, entries: Iterable[Application]) -> list[Key]:
        """What the log has and ``entries`` have not."""
        done = {entry.key for entry in entries}
        return [key for key in dict.fromkeys(self.applications) if key not in done]

    def write(self, path: str | PathLike[str]) -> None:
        """Writes the log as JSON."""
        applications = [{"rule": r, "scope": list(s), "anchor": a} for r, s, a in self.applications]
        data = {"oinfer-log": VERSION, "options": self.options, "applications": applications}
        Path(path).write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def read_log(path: str | PathLike[str]) -> RewriteLog:
    """Reads what ``RewriteLog.write`` wrote.

    Raises:
        UsageError: it is not such a file.
    """
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:  # bytes that are no text, or text that is no JSON
        raise UsageError(f"{path} is no JSON file, so no log of a run") from error
    try:
        if data["oinfer-log"] != VERSION:
            raise UsageError(f"{path} is a log of version {data['oinfer-log']}, not {VERSION}")
        applications = tuple((a["rule"], tuple(a["scope"]), a["anchor"]) for a in data["applications"])
        return RewriteLog(applications, dict(data["options"]))
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path} is no log of a run: {type(error).__name__}: {error}") from error
