"""The public functions: optimize, check, load, save, Session."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optimizer.analysis import SizeRange
from optimizer.io import load, save, to_proto
from optimizer.ir import Model
from optimizer.options import Options, Source, comparable
from optimizer.report import Report
from optimizer.rewrite import (
    Declared,
    GraphPass,
    Instrument,
    Pass,
    RewriteLog,
    Rule,
    RulePass,
    graph_optimizer,
)
from optimizer.runtime import Session
from optimizer.workflow import Catalogue, find_first_wrong, run

if TYPE_CHECKING:
    from onnx import ModelProto

    from optimizer.verify import Comparison

__all__ = [
    "GraphPass",
    "Options",
    "Result",
    "Rule",
    "Session",
    "SizeRange",
    "bisect",
    "check",
    "graph_optimizer",
    "load",
    "optimize",
    "save",
]


class Result:
    """An optimized model.

    Attributes:
        report: what was done and found: node counts, rules that fired or refused, checks, warnings, seconds.
    """

    def __init__(self, model: Model, report: Report, external_data: bool | None = None) -> None:
        self._model = model
        self._external_data = external_data
        self.report = report

    def __repr__(self) -> str:
        before, after = self.report.before.nodes, self.report.after.nodes
        return f"<Result: {before} -> {after} nodes, verified: {self.report.verified}>"

    @property
    def model(self) -> ModelProto:
        """The model as a protobuf message with all weights inside, made anew at each call. O(size)."""
        return to_proto(self._model)

    @property
    def verified(self) -> str:
        """How far the result was checked; ``report.reason`` says why it is not ``full``.

        ``full``: in both engines; ``numpy-only`` or ``onnxruntime-only``: in one of them; ``local``:
        single rewrites only; ``none``: not at all.
        """
        return self.report.verified

    def save(self, path: str | PathLike[str]) -> Path:
        """Writes the model, atomically; an earlier file survives any failure.

        Weights go beside it into a file of their own as ``external_data`` of the run says.

        Returns:
            The path as given.

        Raises:
            StorageError: it cannot be written.
        """
        save(self._model, path, external_data=self._external_data)
        return Path(path)


def optimize(
    source: Source,
    passes: Sequence[str] | None = None,
    skip: Sequence[str] = (),
    rules: Iterable[Declared | str | PathLike[str]] = (),
    *,
    output: str | PathLike[str] | None = None,
    plugins: Sequence[str] = (),
    fp: str = "default",
    optimize_for: str = "balanced",
    target: str = "",
    layout: str = "",
    measure: bool = False,
    size_limit: int | None = -1,
    opset: int | str | None = None,
    keep: Sequence[str] = (),
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    dims: Mapping[str, int | SizeRange] | None = None,
    assume_nonzero_dims: bool = False,
    freeze_initializers: bool = False,
    keep_functions: Sequence[str] = (),
    annotate: bool = False,
    external_data: bool | None = None,
    verify: str = "full",
    seeds: int = 2,
    max_abs_error: float | None = None,
    input_data: str | PathLike[str] | None = None,
    save_log: str | PathLike[str] | None = None,
    replay: RewriteLog | None = None,
    rollback: bool = True,
    require_verified: bool = False,
    instruments: Sequence[Instrument] = (),
    progress: Callable[[str], None] | None = None,
) -> Result:
    """Optimizes a model and checks that its outputs are the same.

    Inputs and outputs keep names, order, element types and declared shapes, open dims included. Beside
    the passes it takes the time of a few runs of the model in each engine, fewer with less to ``verify``.

    Args:
        source: a path, a serialized model or a ``ModelProto``; it is never changed.
        output: where to write the result, once verified; the file appears whole or not at all.
        rules: further rules and passes (``graph_optimizer``), or paths of Python files with some.

    The other arguments are described at ``optimizer.options.Options``.

    Returns:
        The result and its report; ``verified`` says how far it was checked.

    Raises:
        InvalidModel: the model is ill-formed; the message names the node or tensor.
        UsageError: an option or name makes no sense for it, or one of ``rules`` failed (``RuleFailed``).
        StorageError: a file cannot be read or written.
        VerificationFailed: a comparison failed and could not be, or was not to be, rolled back.
        OptimizerError: nothing of the log to ``replay`` applies.
    """
    options = Options(
        passes, skip, tuple(rules), plugins, fp, optimize_for, target, layout, measure, size_limit, opset,
        keep, dict(input_shapes or {}), dict(dims or {}), assume_nonzero_dims, freeze_initializers,
        keep_functions, annotate, external_data, verify, seeds, max_abs_error, input_data, save_log,
        replay, rollback, require_verified, instruments, progress,
    )  # fmt: skip
    return Result(*run(source, options, output, _catalogue()), external_data)


def check(
    a: Source,
    b: Source,
    *,
    max_abs_error: float | None = None,
    seeds: int = 2,
    thresholds: str | PathLike[str] | None = None,
    baseline: str | PathLike[str] | None = None,
    input_data: str | PathLike[str] | None = None,
) -> Comparison:
    """Compares two models on seeded inputs at several sizes; falsy where they differ, or nothing ran.

    Args:
        a: the reference.
        b: the model under test.
        max_abs_error: ceiling on the absolute error of any output, besides the tolerance that
            follows from the models' own rounding noise.
        thresholds: TOML file of limits per output (``[outputs."NAME"]``, ``max_abs_error = 1e-3``, ...).
        baseline: an earlier result in JSON; an output whose max-abs-error exceeds that one fails.
        input_data: folder of .npy, .npz or .pb inputs to take instead of made ones.

    Returns:
        The errors of each output, the faults, and how far both models could be run.

    Raises:
        InvalidModel, StorageError: a model cannot be loaded.
        UsageError: a file does not say what it should, or the inputs do not suit the model.
    """
    from optimizer.verify import check_models
    from optimizer.verify.limits import read_baseline, read_limits

    return check_models(
        comparable(a),
        comparable(b),
        max_abs_error=max_abs_error,
        seeds=seeds,
        limits=None if thresholds is None else read_limits(thresholds),
        baseline=None if baseline is None else read_baseline(baseline),
        data=input_data,
    )


def bisect(
    source: Source, rules: Iterable[Declared | str | PathLike[str]] = (), **options: Any
) -> tuple[str, str, str] | None:
    """Finds the first rewrite of a run that is wrong.

    Args:
        options: further fields of ``Options``.

    Returns:
        Its rule, the tensor it is anchored at, and what is wrong; ``None`` where nothing is.

    Raises:
        InvalidModel, UsageError, StorageError: see ``optimize``.
    """
    found = find_first_wrong(source, Options(rules=tuple(rules), **options), _catalogue())
    return None if found is None else (found[0].rule, found[0].anchor, found[1])


def pass_names() -> list[tuple[str, str]]:
    """Every pass by name, with the number of its rules or its kind.

    All but ``infer``, which runs only where it is named, are in the order of the default pipeline.
    """
    return [(name, _kind_of(steps)) for name, steps in _catalogue().PASSES.items()]


def steps_of(name: str) -> tuple[str, ...]:
    """Names of the steps that a pass consists of, which is what instruments are told.

    Raises:
        UsageError: there is no pass of this name.
    """
    return tuple(step.name for step in _catalogue().passes_of(name))


def describe_passes(name: str = "") -> str:
    """Every pass and rule with what it does; with a name, all about that one.

    Raises:
        UsageError: there is no pass or rule of this name.
    """
    from optimizer.report import catalogue

    passes = _catalogue().PASSES
    return catalogue.describe(passes, name) if name else catalogue.listing(passes)


def rules_page() -> str:
    """The page of documentation that lists all passes and rules, as Markdown."""
    from optimizer.report import catalogue

    return catalogue.markdown(_catalogue().PASSES)


def _kind_of(steps: Sequence[Pass]) -> str:
    rules = sum(len(step.rules) for step in steps if isinstance(step, RulePass))
    return f"{rules} rules" if rules else "whole graph"


def _catalogue() -> Catalogue:
    """The rewrites; the one place where the engine learns that there are any."""
    from passes import pipelines

    return pipelines
