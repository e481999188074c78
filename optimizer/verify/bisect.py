"""Finding the application that broke a result, and taking it back."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from optimizer.io import save
from optimizer.ir import OptimizerError
from optimizer.rewrite import Application, Context
from optimizer.verify.local import LocalCheck
from optimizer.verify.verification import Focus
from optimizer.verify.whole import Judge

IsGood = Callable[[], bool]
Relied = Mapping[str, tuple[str, Application]]
"""What ``upstream.relied_on`` gives."""


def find_culprit(ctx: Context, is_good: IsGood) -> Application | None:
    """The first application after which the model is bad, by bisecting the journal.

    O(log applications) calls of ``is_good``; the model is left as it was, with all applied.

    Args:
        is_good: judges the model as it is when called. It is taken to be bad with all applied.

    Returns:
        ``None`` where the model is bad even with nothing applied.
    """
    journal = ctx.journal
    entries = list(journal.entries)
    end = journal.cursor
    good, bad = 0, end
    try:
        journal.seek(0)
        if not end or not is_good():
            return None
        while bad - good > 1:
            middle = (good + bad) // 2
            journal.seek(middle)
            if is_good():
                good = middle
            else:
                bad = middle
        return entries[bad - 1]
    finally:
        journal.seek(end)


def roll_back(ctx: Context, culprit: Application, fault: str) -> int:
    """Undoes ``culprit`` and all that came after it, and keeps it from happening again.

    What came after is lost on purpose: it may rest on what was wrong. Run the pipeline again.

    Returns:
        How many applications were undone.
    """
    journal = ctx.journal
    position = journal.entries.index(culprit)
    undone = journal.cursor - position
    journal.seek(position)
    journal.forget_undone()
    ctx.forget_facts()
    ctx.exclude(culprit, fault)
    return undone


class SavedModelCheck:
    """Judges the model of a run as it is now: saved to a temporary file, compared with the original.

    An instance is an ``ApplicationCheck`` too (``verify="each"``): it judges after every application.
    """

    def __init__(self, ctx: Context, judge: Judge, focus: Focus | None = None) -> None:
        self._ctx = ctx
        self._judge = judge
        self._focus = focus

    def fault(self) -> str:
        """What is wrong with the model as it is; empty where nothing is."""
        with tempfile.TemporaryDirectory(prefix="oinfer-") as folder:
            path = Path(folder) / "model.onnx"
            try:
                save(self._ctx.model, path)
                found = self._judge.judge(path, self._focus)
            except OptimizerError as error:
                return str(error)
        return found.faults[0] if found.faults else ""

    def is_good(self) -> bool:
        """Whether nothing is wrong."""
        return not self.fault()

    def __call__(self, ctx: Context, application: Application) -> str | None:
        """Judges the whole model after ``application``."""
        return self.fault() or None


def first_wrong(ctx: Context, judge: Judge) -> tuple[Application, str] | None:
    """The first application that is wrong, with what is wrong about it; the model is left as it was.

    Each is checked where it happened; where all of those are right, or could not be judged, and the
    result still differs from the original, the journal is bisected.
    """
    journal = ctx.journal
    entries, check = list(journal.entries), LocalCheck()
    try:
        journal.seek(0)
        ctx.forget_facts()
        for number, entry in enumerate(entries):
            journal.seek(number + 1)
            fault = check(ctx, entry)
            if fault is not None:
                return entry, fault
    finally:
        journal.seek(len(entries))
        ctx.forget_facts()
    saved = SavedModelCheck(ctx, judge)
    fault = saved.fault()
    culprit = find_culprit(ctx, saved.is_good) if fault else None
    return None if culprit is None else (culprit, fault)


def undo_culprit(
    ctx: Context, judge: Judge, fault: str, focus: Focus | None, relied: Relied | None = None
) -> Application | None:
    """Finds, undoes and excludes the application that a failed whole check is owed to.

    Args:
        fault: what the check said.
        focus: the case and engine it said it about.
        relied: which application relied on a fact about which tensor.

    Returns:
        The culprit; ``None`` where the model fails with nothing applied as well.
    """
    if focus is not None and relied and focus.relied in relied:
        culprit: Application | None = relied[focus.relied][1]
    else:
        culprit = find_culprit(ctx, SavedModelCheck(ctx, judge, focus).is_good)
    if culprit is not None:
        roll_back(ctx, culprit, fault)
    return culprit
