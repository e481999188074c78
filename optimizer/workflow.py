"""One run: load, optimize, write to a temporary folder, verify what was written, publish.

Where the verification fails, the journal is bisected, the guilty rewrite undone and excluded, and
the run goes on from there.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from optimizer.analysis.specialize import specialize
from optimizer.io import Staged, convert_opset, fuse_opset, load, stage
from optimizer.io.pause import no_garbage_collection
from optimizer.ir import Model, OptimizerError, UsageError
from optimizer.options import Options, Source, check_target, comparable, size_of
from optimizer.report import ModelStats, Report, collect, measure
from optimizer.rewrite import (
    Application,
    ApplicationCheck,
    Context,
    Declared,
    Pass,
    Pipeline,
    RewriteLog,
    Settings,
    default_registry,
    extensions,
)

if TYPE_CHECKING:
    from optimizer.verify import Focus, Judge, LocalCheck

MAX_ROLLBACKS = 8
"""Whole-model failures answered by undoing one rewrite; after that the input is given back."""

_LESS = {"off": ("none", "not asked for"), "local": ("local", "only single rewrites were checked, as asked")}


class VerificationFailed(OptimizerError):
    """A comparison failed and could not be, or was not to be, rolled back."""

    exit_code = 1


class Catalogue(Protocol):
    """Where the passes come from: the module ``passes.pipelines``."""

    PASSES: Mapping[str, tuple[Pass, ...]]

    def passes_of(self, name: str) -> tuple[Pass, ...]:
        """What a name stands for; ``UsageError`` where it is nothing."""
        ...

    def default_pipeline(self, extra_rules: Iterable[Declared], skip: Iterable[str]) -> Pipeline:
        """The pipeline that runs to a fixpoint."""
        ...

    def named_pipeline(self, names: Sequence[str], extra_rules: Iterable[Declared]) -> Pipeline:
        """These passes, once each, in this order."""
        ...


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
    if wanted is not None:
        check_target(source, wanted)
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


class _Run:
    """The state of one run."""

    def __init__(self, source: Source, options: Options, target: Path, catalogue: Catalogue) -> None:
        self._source = source
        self._options = options
        self._target = target
        self._catalogue = catalogue
        self._seconds: dict[str, float] = {}
        self._loaded: Model | None = None
        self._relied: Mapping[str, tuple[str, Application]] = {}
        self._known_judge: Judge | None = None
        self._local: LocalCheck | None = None
        self._asked_for: tuple[str, ...] = ()

    def execute(self, publish: bool) -> tuple[Model, Report]:
        """Runs all phases; the file gets its name last."""
        with self._phase("load"):
            model = self._load()
        before = measure(model, size_of(self._source))
        report = Report(before, before)
        ctx = Context(model, self._settings(before))
        log = self._options.replay
        ctx.only = None if log is None else frozenset(log.applications)
        pipeline = self._pipeline(ctx)
        with self._phase("optimize"), no_garbage_collection():
            self._watch(ctx)
            report.rounds = pipeline.run(ctx, self._options.instruments)
        staged = self._settle(ctx, pipeline, report)
        try:
            collect(report, ctx, self._asked_for)
            report.local = self._local.to_dict() if self._local is not None else {}
            model = model.pruned()
            report.after = measure(model)
            with self._phase("save"):
                report.after = self._close(staged, report, publish)
        except BaseException:
            staged.discard()
            raise
        report.seconds = self._seconds
        self._keep_log(ctx, report)
        ctx.journal.detach()
        return model, report

    def first_wrong(self) -> tuple[Application, str] | None:
        """Runs the pipeline without checks, then looks for the first application that is wrong."""
        from optimizer.verify import first_wrong

        model = self._load()
        ctx = Context(model, self._settings(measure(model, size_of(self._source))))
        with no_garbage_collection():
            self._pipeline(ctx).run(ctx, self._options.instruments)
        return first_wrong(ctx, self._judge())

    def _keep_log(self, ctx: Context, report: Report) -> None:
        """Writes the log, and says what of a log that was replayed could not be applied."""
        options, entries = self._options, ctx.journal.entries
        if options.save_log is not None:
            RewriteLog.of(entries, options.recorded()).write(options.save_log)
        missing = [] if options.replay is None else options.replay.missing(entries)
        if missing:
            rule, _, anchor = missing[0]
            report.warnings.append(
                f"{len(missing)} rewrites of the log do not apply, first {rule} at {anchor}"
            )

    # ---------------------------------------------------------------- before

    def _load(self) -> Model:
        options = self._options
        model = load(self._source, freeze_initializers=options.freeze_initializers)
        if options.verify not in ("off", "local"):
            self._loaded = model.copy()
        if options.opset == "fused":
            model = self._with_fused_operators(model)
        elif isinstance(options.opset, int):
            model = convert_opset(model, options.opset)
        specialize(model, options.input_shapes, options.sizes, options.ranges)
        return model

    def _with_fused_operators(self, model: Model) -> Model:
        """The model at the opset of the fused operators, or as it is where that cannot be."""
        try:
            return fuse_opset(model)
        except UsageError as reason:
            # The attempt may have changed the model.
            model = load(self._source, freeze_initializers=self._options.freeze_initializers)
            return replace(model, warnings=[*model.warnings, f"kept its opset: {reason}"])

    def _settings(self, before: ModelStats) -> Settings:
        options = self._options
        growth = options.size_limit
        if growth is not None and growth < 0:
            size = before.constant_bytes if before.file_bytes is None else before.file_bytes
            growth = (1 << 20) + size // 10
        return Settings(
            fp=options.fp,
            objective=options.optimize_for,
            target=options.target,
            layout=options.layout,
            growth=growth,
            keep=tuple(options.keep),
            keep_functions=tuple(options.keep_functions),
            dims=options.ranges,
            nonzero_dims=options.assume_nonzero_dims,
        )

    def _pipeline(self, ctx: Context) -> Pipeline:
        """The passes to run; rules to skip are banned for the run."""
        options = self._options
        extra = extensions(options.rules, options.plugins)
        self._asked_for = tuple(item.name for item in extra) if options.replay is None else ()
        ctx.banned |= {item.name for item in (*default_registry, *extra)} & set(options.skip)
        ctx.forgiven = frozenset(item.name for item in default_registry) - {item.name for item in extra}
        skip = [name for name in options.skip if name not in ctx.banned or name in self._catalogue.PASSES]
        if options.passes is None:
            return self._catalogue.default_pipeline(extra, skip)
        return self._catalogue.named_pipeline([n for n in options.passes if n not in skip], extra)

    def _watch(self, ctx: Context) -> None:
        """Has each application checked, and close choices timed, where the options ask for that."""
        mode, measured = self._options.verify, self._options.measure
        if mode in ("off", "whole") and not measured:
            return
        from optimizer.verify import LocalCheck, ModelRace, SavedModelCheck

        if mode in ("full", "local"):
            self._local = LocalCheck()
            ctx.check = self._guarded(self._local)
        elif mode == "each":
            ctx.check = self._guarded(SavedModelCheck(ctx, self._judge()))
        if measured:
            ctx.race = ModelRace(lambda: next((c.feeds for c in self._judge().reference.cases), None))

    def _guarded(self, check: ApplicationCheck) -> ApplicationCheck:
        """The check itself, or one that ends the run at the first fault."""
        if self._options.rollback:
            return check

        def judge(ctx: Context, application: Application) -> str | None:
            fault = check(ctx, application)
            if fault is not None:
                where = f"{application.rule} at {application.anchor}"
                raise VerificationFailed(f"rewrite {where} is wrong: {fault}; {self._advice()}")
            return None

        return judge

    def _advice(self) -> str:
        """What to do about a comparison that failed."""
        ceiling = self._options.max_abs_error
        if ceiling is None:
            return "leave the rewrite out with option 'skip'"
        return f"option 'max_abs_error' allows {ceiling:g}: raise it, or set option 'fp' to strict"

    # ---------------------------------------------------------------- after

    def _settle(self, ctx: Context, pipeline: Pipeline, report: Report) -> Staged:
        """Writes and verifies; undoes what is guilty and goes on, until the result passes."""
        for _ in range(MAX_ROLLBACKS):
            with self._phase("save"):
                staged = stage(
                    ctx.model.pruned(),
                    self._target,
                    external_data=self._options.external_data,
                    annotate=self._options.annotate,
                )
            try:
                fault, focus = self._verify(ctx, staged, report)
            except BaseException:
                staged.discard()
                raise
            if fault is None:
                return staged
            staged.discard()
            if not self._options.rollback:
                raise VerificationFailed(f"the result differs from the original: {fault}; {self._advice()}")
            with self._phase("roll back"):
                self._undo(ctx, fault, focus)
                report.rounds += pipeline.run(ctx, self._options.instruments)
        raise VerificationFailed(
            f"still different after {MAX_ROLLBACKS} roll backs: {fault}; {self._advice()}"
        )

    def _verify(self, ctx: Context, staged: Staged, report: Report) -> tuple[str | None, Focus | None]:
        """The first fault of the written file and where it showed; fills in the report."""
        if self._options.verify in _LESS:
            report.verified, report.reason = _LESS[self._options.verify]
        else:
            from optimizer.verify import relied_on

            with self._phase("verify"):
                self._relied = relied_on(ctx, staged.names)
                kinds = {name: kind for name, (kind, _) in self._relied.items()}
                found = self._judge().judge(os.fspath(staged.path), relied=kinds)
            report.verified, report.reason = found.verified, found.reason
            report.verification = found.to_dict()
            if not found.ok:
                return found.faults[0], found.focus
        self._require(report)
        return None, None

    def _require(self, report: Report) -> None:
        if self._options.require_verified and report.verified != "full":
            raise VerificationFailed(f"not fully verified, only '{report.verified}': {report.reason}")

    def _judge(self) -> Judge:
        """The judge of this run's results; the original is run once, when it is first needed."""
        if self._known_judge is None:
            from optimizer.verify import Judge, Reference

            options = self._options
            reference = Reference(
                comparable(self._source),
                seeds=options.seeds,
                input_shapes=options.input_shapes,
                dims=options.sizes,
                ranges=options.ranges,
                freeze_initializers=options.freeze_initializers,
                data=options.input_data,
                model=self._loaded,
            )
            self._known_judge = Judge(reference, options.max_abs_error, local=options.verify == "full")
        return self._known_judge

    def _undo(self, ctx: Context, fault: str, focus: Focus | None) -> None:
        from optimizer.verify import undo_culprit

        if undo_culprit(ctx, self._judge(), fault, focus, self._relied) is None:
            advice = "" if self._options.max_abs_error is None else f"; {self._advice()}"
            raise VerificationFailed(
                f"the model differs from itself when only loaded and saved: {fault}{advice}"
            )

    def _close(self, staged: Staged, report: Report, publish: bool) -> ModelStats:
        """Gives the file its name (or removes it, where nobody asked for a file)."""
        size = staged.commit().bytes if publish else staged.path.stat().st_size
        staged.discard()  # where it has no name of its own
        return replace(report.after, file_bytes=size)

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        """Times a phase and tells the caller that it begins."""
        if self._options.progress is not None:
            self._options.progress(name)
        start = time.perf_counter()
        try:
            yield
        finally:
            self._seconds[name] = self._seconds.get(name, 0.0) + time.perf_counter() - start
