"""What is checked in a run, and what a fault leads to; ``optimizer.verify`` loads when it is needed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from optimizer.io import Staged
from optimizer.ir import Model, OptimizerError
from optimizer.options import Options, Source, comparable
from optimizer.report import Report
from optimizer.rewrite import Application, ApplicationCheck, Context
from optimizer.workflow.phases import Phases

if TYPE_CHECKING:
    from optimizer.verify import Focus, Judge, LocalCheck

_LESS = {"off": ("none", "not asked for"), "local": ("local", "only single rewrites were checked, as asked")}


class VerificationFailed(OptimizerError):
    """A comparison failed and could not be, or was not to be, rolled back."""

    exit_code = 1


class Checks:
    """The checks of one run: of each application, and of each file that is written."""

    def __init__(self, source: Source, options: Options, phases: Phases) -> None:
        self._source = source
        self._options = options
        self._phase = phases
        self._original: Model | None = None
        self._judge: Judge | None = None
        self._local: LocalCheck | None = None
        self._relied: Mapping[str, tuple[str, Application]] = {}

    def remember(self, model: Model) -> None:
        """Keeps a copy of the loaded model where written files will be compared with it."""
        if self._options.verify not in _LESS:
            self._original = model.copy()

    def read_data(self) -> None:
        """Runs the original on the inputs that were given, so that what does not suit it is found first.

        Raises:
            UsageError, StorageError: as ``optimizer.io.read_data_sets``, or the model cannot take them.
        """
        if self._options.input_data is not None and self._options.verify not in _LESS:
            with self._phase("verify"):
                _ = self.judge().reference.cases

    def watch(self, ctx: Context) -> None:
        """Has each application checked, and close choices timed, where the options ask for that."""
        mode, measured = self._options.verify, self._options.measure
        if mode in ("off", "whole") and not measured:
            return
        from optimizer.verify import LocalCheck, ModelRace, SavedModelCheck

        if mode in ("full", "local"):
            self._local = LocalCheck()
            ctx.check = self._guarded(self._local)
        elif mode == "each":
            ctx.check = self._guarded(SavedModelCheck(ctx, self.judge()))
        if measured:
            ctx.race = ModelRace(lambda: next((c.feeds for c in self.judge().reference.cases), None))

    def _guarded(self, check: ApplicationCheck) -> ApplicationCheck:
        """The check itself, or one that ends the run at the first fault."""
        if self._options.rollback:
            return check

        def judge(ctx: Context, application: Application) -> str | None:
            fault = check(ctx, application)
            if fault is not None:
                where = f"{application.rule} at {application.anchor}"
                raise VerificationFailed(f"rewrite {where} is wrong: {fault}; {self.advice()}")
            return None

        return judge

    def verify(self, ctx: Context, staged: Staged, report: Report) -> tuple[str | None, Focus | None]:
        """The first fault of the written file and where it showed; fills in the report.

        Raises:
            VerificationFailed: the file passes, but less was verified than the options require.
        """
        if self._options.verify in _LESS:
            report.verified, report.reason = _LESS[self._options.verify]
        else:
            from optimizer.verify import relied_on

            with self._phase("verify"):
                self._relied = relied_on(ctx, staged.names)
                kinds = {name: kind for name, (kind, _) in self._relied.items()}
                found = self.judge().judge(os.fspath(staged.path), relied=kinds)
            report.verified, report.reason = found.verified, found.reason
            report.verification = found.to_dict()
            if not found.ok:
                return found.faults[0], found.focus
        if self._options.require_verified and report.verified != "full":
            raise VerificationFailed(f"not fully verified, only '{report.verified}': {report.reason}")
        return None, None

    def undo(self, ctx: Context, fault: str, focus: Focus | None) -> None:
        """Takes back and excludes what caused the fault that ``verify`` found last.

        Raises:
            VerificationFailed: the model is wrong without any rewrite.
        """
        from optimizer.verify import undo_culprit

        if undo_culprit(ctx, self.judge(), fault, focus, self._relied) is None:
            advice = "" if self._options.max_abs_error is None else f"; {self.advice()}"
            raise VerificationFailed(
                f"the model differs from itself when only loaded and saved: {fault}{advice}"
            )

    def judge(self) -> Judge:
        """The judge of this run's results; the original is run once, when it is first needed."""
        if self._judge is None:
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
                model=self._original,
            )
            self._judge = Judge(reference, options.max_abs_error, local=options.verify == "full")
        return self._judge

    def advice(self) -> str:
        """What to do about a comparison that failed."""
        ceiling = self._options.max_abs_error
        if ceiling is None:
            return "leave the rewrite out with option 'skip'"
        return f"option 'max_abs_error' allows {ceiling:g}: raise it, or set option 'fp' to strict"

    def local_summary(self) -> dict[str, Any]:
        """What the checks of single applications came to; empty where there were none."""
        return self._local.to_dict() if self._local is not None else {}
