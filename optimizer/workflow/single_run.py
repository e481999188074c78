"""From a source to a published file: the phases of one run in their order."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path

from optimizer.io import Staged, stage
from optimizer.io.pause import no_garbage_collection
from optimizer.ir import Model, OptimizerError
from optimizer.options import Options, Source, check_target, size_of
from optimizer.report import ModelStats, Report, collect, measure
from optimizer.rewrite import Application, Context, Pipeline, RewriteLog, extensions
from optimizer.rewrite.log import Key
from optimizer.workflow.checks import Checks, VerificationFailed
from optimizer.workflow.phases import Phases
from optimizer.workflow.preparation import Catalogue, load_source, pipeline_of, prepare, settings_of

MAX_ROLLBACKS = 8
"""Whole-model failures answered by undoing one rewrite; after that the run fails."""


def run(
    source: Source, options: Options, output: str | PathLike[str] | None, catalogue: Catalogue
) -> tuple[Model, Report]:
    """Optimizes ``source`` and, with ``output``, writes the result there once it is verified.

    Raises:
        InvalidModel: the model cannot mean anything.
        UsageError: an option makes no sense for it.
        StorageError: a file cannot be read or written.
        VerificationFailed: a comparison failed and could not be, or was not to be, rolled back.
    """
    wanted = None if output is None else Path(output)
    if output is not None:
        check_target(source, output)
    with tempfile.TemporaryDirectory(prefix="oinfer-") as folder:
        target = wanted or Path(folder, "result.onnx")
        return _Run(source, options, target, catalogue).execute(wanted is not None)


def find_first_wrong(
    source: Source, options: Options, catalogue: Catalogue
) -> tuple[Application, str] | None:
    """Optimizes ``source`` without checks and finds the first application that is wrong, if any is.

    Raises:
        InvalidModel, UsageError, StorageError: see ``run``.
    """
    return _Run(source, replace(options, verify="off"), Path(), catalogue).first_wrong()


class ForeignLog(OptimizerError):
    """Nothing of a log that was to be replayed could be applied."""

    exit_code = 1


class _Run:
    """The state of one run."""

    def __init__(self, source: Source, options: Options, target: Path, catalogue: Catalogue) -> None:
        self._source = source
        self._options = options
        self._target = target
        self._catalogue = catalogue
        self._phase = Phases(options.progress)
        self._checks = Checks(source, options, self._phase)
        self._asked_for: tuple[str, ...] = ()

    def execute(self, publish: bool) -> tuple[Model, Report]:
        """Runs all phases; the file gets its name last."""
        with self._phase("load"):
            model = self._load()
        before = measure(model, size_of(self._source))
        report = Report(before, before)
        ctx = Context(model, settings_of(self._options, before))
        log = self._options.replay
        ctx.only = None if log is None else frozenset(log.applications)
        pipeline = self._pipeline(ctx)
        self._checks.read_data()
        with self._phase("optimize"), no_garbage_collection():
            self._checks.watch(ctx)
            report.rounds = pipeline.run(ctx, self._options.instruments)
        self._require_replayed(ctx)
        staged = self._settle(ctx, pipeline, report)
        try:
            collect(report, ctx, self._asked_for)
            report.local = self._checks.local_summary()
            model = model.pruned()
            report.after = measure(model)
            with self._phase("save"):
                report.after = self._close(staged, report, publish)
        except BaseException:
            staged.discard()
            raise
        report.seconds = self._phase.seconds
        self._keep_log(ctx, report)
        ctx.journal.detach()
        return model, report

    def first_wrong(self) -> tuple[Application, str] | None:
        """Runs the pipeline without checks, then looks for the first application that is wrong."""
        from optimizer.verify import first_wrong

        model = self._load()
        ctx = Context(model, settings_of(self._options, measure(model, size_of(self._source))))
        with no_garbage_collection():
            self._pipeline(ctx).run(ctx, self._options.instruments)
        return first_wrong(ctx, self._checks.judge())

    def _load(self) -> Model:
        model = load_source(self._source, self._options)
        self._checks.remember(model)
        return prepare(model, self._source, self._options)

    def _pipeline(self, ctx: Context) -> Pipeline:
        extra = extensions(self._options.rules, self._options.plugins)
        self._asked_for = tuple(item.name for item in extra) if self._options.replay is None else ()
        return pipeline_of(ctx, self._options, extra, self._catalogue)

    def _settle(self, ctx: Context, pipeline: Pipeline, report: Report) -> Staged:
        """Writes and verifies; undoes what is guilty and goes on, until the result passes."""
        for _ in range(MAX_ROLLBACKS):
            staged = self._stage(ctx.model)
            try:
                fault, focus = self._checks.verify(ctx, staged, report)
            except BaseException:
                staged.discard()
                raise
            if fault is None:
                return staged
            staged.discard()
            advice = self._checks.advice()
            if not self._options.rollback:
                raise VerificationFailed(f"the result differs from the original: {fault}; {advice}")
            with self._phase("roll back"):
                self._checks.undo(ctx, fault, focus)
                report.rounds += pipeline.run(ctx, self._options.instruments)
        raise VerificationFailed(f"still different after {MAX_ROLLBACKS} roll backs: {fault}; {advice}")

    def _stage(self, model: Model) -> Staged:
        """The model as a temporary file beside its target."""
        with self._phase("save"):
            return stage(
                model.pruned(),
                self._target,
                external_data=self._options.external_data,
                annotate=self._options.annotate,
            )

    def _close(self, staged: Staged, report: Report, publish: bool) -> ModelStats:
        """Gives the file its name (or removes it, where nobody asked for a file)."""
        size = staged.commit().bytes if publish else staged.path.stat().st_size
        staged.discard()  # where it has no name of its own
        return replace(report.after, file_bytes=size)

    def _require_replayed(self, ctx: Context) -> None:
        """Refuses a log of which nothing applies: it is one of another model."""
        log = self._options.replay
        missing = [] if log is None else log.missing(ctx.journal.entries)
        if log is not None and missing and not ctx.rejected and len(missing) == len(set(log.applications)):
            raise ForeignLog(f"{_unapplied(missing, log)}: the log is that of another model")

    def _keep_log(self, ctx: Context, report: Report) -> None:
        """Writes the log, and says what of a log that was replayed could not be applied."""
        options, entries = self._options, ctx.journal.entries
        if options.save_log is not None:
            RewriteLog.of(entries, options.recorded()).write(options.save_log)
        missing = [] if options.replay is None else options.replay.missing(entries)
        if options.replay is not None and missing:
            report.warnings.append(_unapplied(missing, options.replay))


def _unapplied(missing: Sequence[Key], log: RewriteLog) -> str:
    rule, _, anchor = missing[0]
    total = len(set(log.applications))
    return f"{len(missing)} of {total} rewrites of the log do not apply, first {rule} at {anchor}"
