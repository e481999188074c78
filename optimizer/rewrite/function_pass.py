"""A user's ``@graph_optimizer def f(graph)`` as a pass: each finished edit is one application."""

from __future__ import annotations

from optimizer.ir import Change, Graph
from optimizer.rewrite.context import Context
from optimizer.rewrite.failure import rule_failed
from optimizer.rewrite.journal import Application
from optimizer.rewrite.rule import GraphPass


class FunctionPass:
    """Runs a function of one graph in every scope and has each of its edits checked."""

    def __init__(self, declared: GraphPass) -> None:
        self.name = declared.name
        self._declared = declared

    def run(self, ctx: Context) -> bool:
        """Runs the function; edits found wrong are undone with all later ones, and it runs no more."""
        changed = False
        for path, graph in ctx.scopes():
            if self._is_out(ctx) or not ctx.settings.admits(self._declared.tag):
                break
            with ctx.application(self.name, graph, graph.sink, self._declared.tag, path) as entry:
                said = self._edit(graph, path)
            if entry.changes:
                parts = _parts_of(entry)
                ctx.journal.split(entry, parts)
                ctx.stats[self.name].fired += len(parts)
                changed |= _judge(ctx, parts)
            changed |= said and bool(entry.changes)
        return changed

    def _edit(self, graph: Graph, path: tuple[str, ...]) -> bool:
        """Calls the function on one scope; what it returns.

        Raises:
            RuleFailed: it raised.
        """
        try:
            return bool(self._declared.function(graph))
        except Exception as error:
            inside = f" in {'/'.join(path)}" if path else ""
            raise rule_failed(f"pass {self.name} failed{inside}", self._declared.function, error) from error

    def _is_out(self, ctx: Context) -> bool:
        return self.name in ctx.banned or any(rule == self.name for rule, _, _ in ctx.excluded)


def _parts_of(whole: Application) -> list[Application]:
    """Cuts an entry where a new node follows a redirected use: there one edit ends."""
    parts: list[Application] = []
    redirected = True
    for graph, change in whole.changes:
        if redirected and (change.before is None or not parts):
            parts.append(Application(whole.rule, whole.tag, whole.scope, "", whole.graph))
            redirected = False
        parts[-1].changes.append((graph, change))
        redirected |= change.before is not None
    for number, part in enumerate(parts):
        part.anchor = _first_name(part) or f"edit {number}"
    return parts


def _first_name(part: Application) -> str:
    def names(change: Change) -> list[str]:
        nodes = [node for node in (change.before, change.after) if node is not None and node.is_operator]
        return [info.name for node in nodes for info in node.outputs if info.name]

    return next((name for _, change in part.changes for name in names(change)), "")


def _judge(ctx: Context, parts: list[Application]) -> bool:
    """Replays the edits one by one under the check; true where one of them stands."""
    if ctx.check is None:
        return True
    start = ctx.journal.cursor - len(parts)
    ctx.journal.seek(start)
    for number, part in enumerate(parts):
        ctx.journal.seek(start + number + 1)
        fault = ctx.check(ctx, part)
        if fault is not None:
            ctx.journal.seek(start + number)
            ctx.journal.forget_undone()
            ctx.forget_facts()
            ctx.exclude(part, fault)
            return number > 0
    return True
