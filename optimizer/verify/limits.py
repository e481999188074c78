"""What a user allows of each output: from options, a TOML file, or an earlier comparison."""

from __future__ import annotations

import difflib
import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from os import PathLike
from pathlib import Path
from typing import Any

from optimizer.ir import UsageError
from optimizer.verify.engines import OnnxRuntime
from optimizer.verify.metrics import OutputError


@dataclass(frozen=True, slots=True)
class Limit:
    """Limits of one output; ``None``: none.

    Attributes:
        max_abs_error, max_rel_error: the largest ones allowed.
        cosine, top1, top5: the smallest ones allowed.
    """

    max_abs_error: float | None = None
    max_rel_error: float | None = None
    cosine: float | None = None
    top1: float | None = None
    top5: float | None = None

    def fault(self, found: OutputError) -> str:
        """What exceeds a limit (but the absolute one, which comparing sees to); empty where nothing does."""
        if self.max_rel_error is not None and (found.max_rel or 0.0) > self.max_rel_error:
            return f"max-rel {found.max_rel:.6g} is above {self.max_rel_error:g}"
        for name in ("cosine", "top1", "top5"):
            least, value = getattr(self, name), getattr(found, name)
            if least is not None and value is not None and value < least:
                return f"{name} {value:.6g} is below {least:g}"
        return ""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for all outputs, and others for some of them.

    Attributes:
        source: the file they are from.
    """

    every: Limit = Limit()
    single: Mapping[str, Limit] = field(default_factory=dict)
    source: str = ""

    def of(self, output: str) -> Limit:
        """What counts for one output."""
        return self.single.get(output, self.every)

    def fault(self, output: str, found: OutputError) -> str:
        """What exceeds a limit; empty where nothing does."""
        return self.of(output).fault(found)

    def check_outputs(self, names: Sequence[str]) -> None:
        """Refuses limits for an output that there is not.

        Raises:
            UsageError: no output is called so.
        """
        for name in self.single:
            if name not in names:
                near = difflib.get_close_matches(name, names, 1)
                others = f"did you mean '{near[0]}'?" if near else f"there are {', '.join(map(repr, names))}"
                raise UsageError(f"{self.source or 'limits'}: no output is called '{name}'; {others}")


def read_limits(path: str | PathLike[str]) -> Limits:
    """Limits from a TOML file: those at the top for all outputs, ``[outputs.NAME]`` for one.

    Raises:
        UsageError: not TOML, or a limit that does not exist.
    """
    try:
        data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is no TOML file: {error}") from error
    single = data.pop("outputs", {})
    if not isinstance(single, dict) or not all(isinstance(limit, dict) for limit in single.values()):
        raise UsageError(f"{path}: 'outputs' must be tables, [outputs.NAME]")
    for name, own in single.items():
        whole = _dotted(name, own)
        if whole != name:
            raise UsageError(
                f"{path}: [outputs.{whole}] is a table in that of output '{name}';"
                f' a name with dots is quoted: [outputs."{whole}"]'
            )
    every = _limit(path, data)
    return Limits(every, {name: _limit(path, data | own) for name, own in single.items()}, str(path))


def _dotted(name: str, table: Mapping[str, Any]) -> str:
    """The name with those of the tables in its table."""
    inner = next((item for item in table.items() if isinstance(item[1], dict)), None)
    return name if inner is None else _dotted(f"{name}.{inner[0]}", inner[1])


def _limit(path: object, data: Mapping[str, Any]) -> Limit:
    known = [item.name for item in fields(Limit)]
    for name, value in data.items():
        if name not in known:
            raise UsageError(f"{path}: no limit is called '{name}'; there are {', '.join(known)}")
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise UsageError(f"{path}: {name} = {value!r} is no number")
        if math.isnan(value):
            raise UsageError(f"{path}: {name} = nan would allow anything")
    return Limit(**{name: float(value) for name, value in data.items()})


def read_baseline(path: str | PathLike[str]) -> dict[str, float]:
    """The max-abs-error of each output in a result of a comparison that was written as JSON.

    That in onnxruntime, where it ran; else that in the NumPy executor.

    Raises:
        UsageError: it is no such file.
    """
    try:
        outputs = json.loads(Path(path).read_text(encoding="utf-8"))["outputs"]
        in_runtime = [output for output in outputs if output["engine"] == OnnxRuntime.name]
        found = {o["name"]: float(o["error"]["max_abs"]) for o in in_runtime or outputs}
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path} is no result of a comparison: {type(error).__name__}: {error}") from error
    return found
