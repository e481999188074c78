"""What a run can be asked for."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from optimizer.analysis import SizeRange
from optimizer.ir import StorageError, UsageError
from optimizer.rewrite import Declared, Instrument, RewriteLog

if TYPE_CHECKING:
    from onnx import ModelProto

Source: TypeAlias = "str | PathLike[str] | bytes | ModelProto"
"""A model: its path, its bytes, or the message itself."""


RECORDED = (
    "passes", "skip", "plugins", "fp", "optimize_for", "target", "layout", "size_limit", "opset", "keep",
    "assume_nonzero_dims", "freeze_initializers", "keep_functions", "annotate", "external_data",
)  # fmt: skip
"""Options that a log takes over as they are."""

CHOICES = {
    "fp": ("strict", "default", "fast"),
    "optimize_for": ("balanced", "latency", "nodes"),
    "target": ("", "onnxruntime"),
    "layout": ("", "nchw", "nhwc"),
    "verify": ("full", "local", "whole", "each", "off"),
}
"""Options that are one of a few words."""


def recorded_options(data: Mapping[str, Any]) -> dict[str, Any]:
    """Keywords for ``Options`` out of what ``Options.recorded`` gave and JSON kept.

    Raises:
        UsageError: there is no such option.
    """
    found = dict(data)
    unknown = found.keys() - {*RECORDED, "rules", "dims", "input_shapes"}
    if unknown:
        raise UsageError(f"the log has options that do not exist: {', '.join(sorted(unknown))}")
    found["dims"] = {
        name: dim if isinstance(dim, int) else SizeRange(*dim) for name, dim in found.get("dims", {}).items()
    }
    return found


@dataclass(frozen=True, slots=True)
class Options:
    """What a run is asked for; ``optimize`` takes each field as a keyword.

    Attributes:
        passes: names of passes to run once each, in this order; ``None``: the default pipeline.
        skip: names of passes or rules to leave out.
        rules: further rules and passes, or paths of Python files that declare some.
        plugins: entry points of the group ``oinfer_opt.passes`` whose rules are to run.
        fp: ``strict`` (every bit stays), ``default`` (rounding may differ) or ``fast``.
        optimize_for: ``balanced``, ``latency`` or ``nodes``.
        target: ``onnxruntime`` admits com.microsoft operators; empty: standard ONNX only.
        layout: ``nchw`` or ``nhwc``: what the operators between convolutions are to run in; empty:
            whichever moves the least data.
        measure: where the table of costs cannot tell which form is faster, time both in onnxruntime.
        size_limit: bytes the file may grow; ``None`` for no limit, -1 for 1 MiB + 10 %.
        opset: version of the default domain to convert to first, ``fused`` for the one that has all
            fused operators; ``None``: none.
        keep: fnmatch patterns of node or output names to leave alone.
        input_shapes: input name -> shape it is fixed to.
        dims: dim name (``input:axis`` for an unnamed one) -> size it is fixed to, or the sizes it may
            have.
        assume_nonzero_dims: no open dim is ever 0.
        freeze_initializers: treat overridable initializers (IR >= 4) as constants.
        keep_functions: domains whose functions stay functions; ``("*",)`` for all.
        annotate: write the rule that made a node into its ``metadata_props``.
        external_data: constants in a file beside the model; ``None``: above protobuf's 2 GB.
        verify: ``full``, ``local``, ``whole``, ``each`` or ``off``.
        seeds: random inputs per size in the whole check.
        max_abs_error: further ceiling on the absolute error of any output.
        input_data: folder of .npy, .npz or .pb inputs that the whole check takes instead of made ones.
        save_log: where to write which rule was applied where, to be applied again with ``replay``.
        replay: apply what this log has, and nothing else.
        rollback: undo a rewrite found wrong and go on; else fail.
        require_verified: fail unless everything could be verified in both engines.
        instruments: told before and after each pass.
        progress: called with a word for each phase.
    """

    passes: Sequence[str] | None = None
    skip: Sequence[str] = ()
    rules: Sequence[Declared | str | PathLike[str]] = ()
    plugins: Sequence[str] = ()
    fp: str = "default"
    optimize_for: str = "balanced"
    target: str = ""
    layout: str = ""
    measure: bool = False
    size_limit: int | None = -1
    opset: int | str | None = None
    keep: Sequence[str] = ()
    input_shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    dims: Mapping[str, int | SizeRange] = field(default_factory=dict)
    assume_nonzero_dims: bool = False
    freeze_initializers: bool = False
    keep_functions: Sequence[str] = ()
    annotate: bool = False
    external_data: bool | None = None
    verify: str = "full"
    seeds: int = 2
    max_abs_error: float | None = None
    input_data: str | PathLike[str] | None = None
    save_log: str | PathLike[str] | None = None
    replay: RewriteLog | None = None
    rollback: bool = True
    require_verified: bool = False
    instruments: Sequence[Instrument] = ()
    progress: Callable[[str], None] | None = None

    def __post_init__(self) -> None:
        """Refuses a word that is none of those an option may be.

        Raises:
            UsageError: naming the option and its words.
        """
        for name, words in CHOICES.items():
            if getattr(self, name) not in words:
                known = ", ".join(repr(word) for word in words)
                raise UsageError(f"{name}={getattr(self, name)!r}: it is one of {known}")
        if isinstance(self.opset, str) and self.opset != "fused":
            raise UsageError(f"opset={self.opset!r}: it is a number or 'fused'")

    def recorded(self) -> dict[str, Any]:
        """The options that decide which rewrites are possible, as plain data for a log.

        Raises:
            UsageError: rules were given as objects, which no log can name.
        """
        found = {name: getattr(self, name) for name in RECORDED}
        if not all(isinstance(rule, (str, PathLike)) for rule in self.rules):
            raise UsageError("a log can only name rules that come from files: give their paths")
        found["rules"] = [os.fspath(rule) for rule in self.rules if isinstance(rule, (str, PathLike))]
        found["dims"] = {
            name: dim if isinstance(dim, int) else [dim.lo, dim.hi, dim.divisor]
            for name, dim in self.dims.items()
        }
        found["input_shapes"] = {name: list(shape) for name, shape in self.input_shapes.items()}
        return found

    @property
    def sizes(self) -> dict[str, int]:
        """The dims that are fixed."""
        given = {name: dim if isinstance(dim, int) else dim.only for name, dim in self.dims.items()}
        return {name: size for name, size in given.items() if size is not None}

    @property
    def ranges(self) -> dict[str, SizeRange]:
        """The dims that stay open within limits."""
        return {
            name: dim for name, dim in self.dims.items() if isinstance(dim, SizeRange) and dim.only is None
        }


def comparable(source: Source) -> str | bytes:
    """A model in a form that both engines load: a path or bytes."""
    if isinstance(source, bytes):
        return source
    return os.fspath(source) if isinstance(source, (str, os.PathLike)) else source.SerializeToString()


def size_of(source: Source) -> int:
    """Bytes of a model; external data is not among them."""
    if isinstance(source, (str, os.PathLike)):
        return Path(source).stat().st_size
    return len(source) if isinstance(source, bytes) else source.ByteSize()


def check_target(source: Source, target: str | PathLike[str]) -> None:
    """Refuses a target that would touch the input or cannot be a file.

    Raises:
        UsageError, StorageError: saying what to choose instead.
    """
    output = Path(target)
    given = Path(source) if isinstance(source, (str, PathLike)) else None
    if given is not None and given.exists() and output.exists() and os.path.samefile(given, output):
        raise UsageError(f"{output} is the input itself; choose another file to write")
    if output.is_dir() or os.fspath(target).endswith(("/", os.sep)):
        raise UsageError(f"{target} is the name of a directory; name a file to write")
    if not output.parent.is_dir():
        raise StorageError(f"{output.parent} is not a directory; create it first")
    if not os.access(output.parent, os.W_OK):
        raise StorageError(f"{output.parent} cannot be written to")
