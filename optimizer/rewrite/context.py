"""What a run shares: settings, facts, journal, statistics, exclusions, the growth budget."""

from __future__ import annotations

import fnmatch
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from optimizer.analysis import Facts, SizeRange
from optimizer.ir import Graph, Model, Node, Value
from optimizer.rewrite.exactness import FP_LEVELS, Exactness
from optimizer.rewrite.journal import Application, Journal, Recording


@dataclass(frozen=True, slots=True)
class Settings:
    """What the user asked for.

    Attributes:
        fp: floating-point level: ``strict``, ``default`` or ``fast``.
        objective: ``balanced``, ``latency`` or ``nodes``.
        target: ``onnxruntime`` admits its contrib operators; empty means standard ONNX only.
        growth: bytes the constants may grow in all, ``None`` for no limit.
        keep: patterns of node or output names that no rewrite may match or absorb.
        max_rounds: how often the default pipeline repeats its groups at most.
        keep_functions: domains whose functions are not inlined; ``"*"`` for all.
        dims: sizes that open dims may have, by name (``input:axis`` for an unnamed one).
        nonzero_dims: the other open dims are never 0.
        layout: ``nchw`` or ``nhwc``, what the operators between convolutions are to run in; empty: whichever
            moves the least data.
    """

    fp: str = "default"
    objective: str = "balanced"
    target: str = ""
    growth: int | None = 1 << 20
    keep: tuple[str, ...] = ()
    max_rounds: int = 8
    keep_functions: tuple[str, ...] = ()
    dims: Mapping[str, SizeRange] = field(default_factory=dict)
    nonzero_dims: bool = False
    layout: str = ""

    def admits(self, tag: Exactness) -> bool:
        """Whether the floating-point level allows rewrites of this tag."""
        return tag <= FP_LEVELS[self.fp]


class ApplicationCheck(Protocol):
    """Judges one application right after it happened. See ``optimizer.verify``."""

    def __call__(self, ctx: Context, application: Application) -> str | None:
        """``None`` where it is right, else one line saying what is wrong."""
        ...


class Race(Protocol):
    """Times two states of the model where costs cannot tell. See ``optimizer.verify``.

    Attributes:
        decisions: what has been found out, by rule; ``None``: nothing certain.
    """

    decisions: dict[str, bool | None]

    def snapshot(self, ctx: Context) -> bytes:
        """The model as it is now."""
        ...

    def is_faster(self, before: bytes, after: bytes) -> bool | None:
        """Whether the second takes less time; ``None`` where that is not certain."""
        ...


@dataclass(slots=True)
class RuleStats:
    """How one rule fared."""

    tried: int = 0
    fired: int = 0
    seconds: float = 0.0
    refused: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Rejected:
    """An application that a check found wrong and that was taken back."""

    application: Application
    fault: str


class Context:
    """One run over one model."""

    def __init__(self, model: Model, settings: Settings | None = None) -> None:
        self.model = model
        self.settings = settings or Settings()
        self.journal = Journal(model)
        self.stats: defaultdict[str, RuleStats] = defaultdict(RuleStats)
        self.excluded: set[tuple[str, tuple[str, ...], str]] = set()
        self.declined: dict[tuple[str, Graph, int], str] = {}  # what rules could do at a vertex, and why not
        self.banned: set[str] = set()
        self.forgiven: frozenset[str] = frozenset()  # rules whose failures only leave them out
        self.only: frozenset[tuple[str, tuple[str, ...], str]] | None = None
        self.rejected: list[Rejected] = []
        self.warnings: list[str] = []
        self.check: ApplicationCheck | None = None
        self.race: Race | None = None
        self._start_bytes = self.journal.constant_bytes
        self._facts: dict[Graph, Facts] = {}
        self._marks: dict[tuple[object, Graph], int] = {}
        self._kept_names: dict[str, bool] = {}

    # ---------------------------------------------------------------- scopes and facts

    def scopes(self) -> Iterator[tuple[tuple[str, ...], Graph]]:
        """Every graph of the model with its path, outer ones first.

        Bodies are looked up when their turn comes: those of nodes that a pass erased before are not seen.
        """
        return self.model.graphs()

    def facts(self, graph: Graph) -> Facts:
        """What is known about the values of one scope; a body sees the facts around it."""
        found = self._facts.get(graph)
        if found is None:
            self._find_facts()
            found = self._facts[graph]
        return found

    def forget_facts(self) -> None:
        """Drops all facts: after an undo they may rest on a rewrite that was wrong."""
        self._facts.clear()

    def _find_facts(self) -> None:
        roots = [self.model.graph, *(f.graph for f in self.model.functions.values())]
        for root in roots:
            if root not in self._facts:
                least = int(self.settings.nonzero_dims)
                facts = Facts(root, self.model.functions, dims=self.settings.dims, least=least)
                self._facts[root] = facts.settle() if root is self.model.graph else facts
            self._find_body_facts(root)

    def _find_body_facts(self, graph: Graph) -> None:
        for node in graph.nodes:
            for position, (_, body) in enumerate(node.bodies):
                if body not in self._facts:
                    self._facts[body] = self._facts[graph].body(node, position)
                self._find_body_facts(body)

    # ---------------------------------------------------------------- what passes have seen

    def mark(self, step: object, graph: Graph) -> int | None:
        """How much of the graph's log ``step`` had seen when it last ran; ``None`` at first."""
        return self._marks.get((step, graph))

    def set_mark(self, step: object, graph: Graph) -> None:
        """``step`` has now seen everything that happened in ``graph``."""
        self._marks[step, graph] = len(self.journal.touched[graph])

    # ---------------------------------------------------------------- applying

    def application(
        self, rule: str, graph: Graph, node: Node, tag: Exactness = Exactness.E0, scope: tuple[str, ...] = ()
    ) -> Recording:
        """Records the edits made inside ``with`` as one application of ``rule`` at ``node``."""
        entry = Application(rule, tag, scope, anchor_of(graph, node), graph)
        return self.journal.application(entry)

    def redirect(self, graph: Graph, old: Value, new: Value) -> None:
        """Makes the users of ``old`` read ``new``, which computes the same; joins what is known of both."""
        facts = self.facts(graph)
        before = facts.of(old)
        facts.tighten(new, before)
        graph.replace_uses(old, new)
        if facts.of(new) != before:
            facts.spread(new)

    def accept(self, entry: Application) -> bool:
        """Has the check judge the application just made; a wrong one is undone and excluded.

        So is one that is not among ``only``, where a log says what to apply.
        """
        if self.only is not None and entry.changes and entry.key not in self.only:
            self.journal.retract(entry)
            self.excluded.add(entry.key)
            return False
        if self.check is None or not entry.changes:
            return True
        fault = self.check(self, entry)
        if fault is None:
            return True
        self.reject(entry, fault)
        return False

    def reject(self, entry: Application, fault: str) -> None:
        """Undoes the last application, excludes it, and bans a rule that fails twice."""
        self.journal.retract(entry)
        self.forget_facts()
        self.exclude(entry, fault)

    def exclude(self, entry: Application, fault: str) -> None:
        """Keeps ``entry`` from happening again; a rule found wrong twice is out for the run."""
        if any(r.application.rule == entry.rule for r in self.rejected):
            self.banned.add(entry.rule)
        self.excluded.add(entry.key)
        self.rejected.append(Rejected(entry, fault))

    def allows(self, rule: str, scope: tuple[str, ...], graph: Graph, node: Node) -> bool:
        """Whether ``rule`` may be applied at ``node``: not excluded there, not banned."""
        if not self.excluded and not self.banned:
            return True
        return rule not in self.banned and (rule, scope, anchor_of(graph, node)) not in self.excluded

    def erase_dead(self, graph: Graph, key: int) -> int:
        """Erases a vertex that nothing reads and, in turn, what only it read. Returns the count."""
        erased = 0
        stack = [key]
        while stack:
            key = stack.pop()
            if key not in graph or graph.fan_out(key):
                continue
            node = graph.node(key)
            removable = (node.is_operator and not self.is_kept(node)) or node.op_type == "Constant"
            if removable:
                graph.erase(node)
                erased += 1
                stack.extend(v.node for v in reversed(node.operands) if v is not None)
        return erased

    # ---------------------------------------------------------------- limits

    def is_kept(self, node: Node) -> bool:
        """Whether the user asked to leave this node alone."""
        if not self.settings.keep:
            return False
        return any(self._name_is_kept(name) for name in (node.name, *(o.name for o in node.outputs)))

    def _name_is_kept(self, name: str) -> bool:
        if name not in self._kept_names:
            keep = self.settings.keep
            self._kept_names[name] = bool(name) and any(fnmatch.fnmatchcase(name, p) for p in keep)
        return self._kept_names[name]

    def may_grow(self, extra: int) -> bool:
        """Whether the constants may grow by ``extra`` bytes more (negative: shrink) than now."""
        limit = self.settings.growth
        if limit is None or extra <= 0:
            return True
        return self.journal.constant_bytes - self._start_bytes + extra <= limit


def anchor_of(graph: Graph, node: Node) -> str:
    """A name for the place: the node's first named output, else that of its nearest named user."""
    seen: set[int] = set()
    queue = [node]
    for current in queue:
        for info in current.outputs:
            if info.name:
                return info.name if current is node else f"before {info.name} ({node.op})"
        for output in range(len(current.outputs)):
            for use in graph.uses(current.value(output)):
                if use.node not in seen:
                    seen.add(use.node)
                    queue.append(graph.node(use.node))
    return f"{node.op} #{node.id}"
