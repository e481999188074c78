"""What runs, in which order and why: every pass of the catalogue by name, and the default pipeline.

Which rules a pass has, and in which order it tries them, is in ``passes.families``; ``oinfer-opt
--print-after all`` shows what each pass does to a model.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence

from optimizer.ir import UsageError
from optimizer.rewrite import Declared, Group, Pass, Pipeline, RulePass, default_registry, pass_of
from passes import families
from passes.branches import BRANCHES
from passes.choose import ChoosePass
from passes.control import CONTROL
from passes.cse import CSE
from passes.dce import DCE
from passes.dead_channels import DEAD_CHANNELS
from passes.enclosing import ENCLOSING
from passes.fold import BIND, FOLD
from passes.infer import INFER
from passes.inline import INLINE
from passes.layout import ARRANGE, LAYOUT
from passes.lift import LIFT
from passes.merge_siblings import MERGE_SIBLINGS
from passes.shape import SHARE
from passes.shape_sources import SOURCES
from passes.shape_vectors import REBUILD

PASSES: Mapping[str, tuple[Pass, ...]] = {
    "infer": (INFER,),
    "inline": (INLINE,),
    "eliminate": (RulePass("eliminate", families.ELIMINATE),),
    "dce": (DCE,),
    "fold": (BIND, FOLD),
    "shape": (RulePass("shape", families.SHAPE), SHARE, REBUILD, SOURCES),
    "control": (CONTROL, BRANCHES, LIFT, RulePass("control", families.CONTROL)),
    "idiom": (RulePass("idiom", families.IDIOM),),
    "transpose": (RulePass("transpose", families.TRANSPOSE),),
    "layout": (LAYOUT,),
    "fuse": (RulePass("fuse", families.FUSE), DEAD_CHANNELS),
    "strength": (RulePass("strength", families.STRENGTH),),
    "choose": (
        ChoosePass("choose", families.ALTERNATIVES, families.FOLLOWING),
        RulePass("for-the-target", families.TARGET),
        MERGE_SIBLINGS,
    ),
    "cse": (CSE, ENCLOSING),
    "arrange": (ARRANGE, RulePass("arrange", families.ARRANGE)),
}
"""What each name stands for, in the order in which its parts run."""

_GROUPS = {
    # A smaller graph for all that follows, and no calls that hide operators.
    "clean": ("inline", "eliminate", "dce"),
    # From here on constants and shapes are known, and what they decide is decided.
    "fold": ("fold", "shape", "control"),
    # Before "fuse", which merges the constants that idioms are known by.
    "idiom": ("idiom",),
    # Those of the user: they see whole operators, and what they make is fused.
    "rules": (),
    # Before "fuse": constants along the last axis come to lie along the channels.
    "layout": ("transpose", "layout"),
    "fuse": ("fuse",),
    # After "fuse": what is left is what a cheaper form is chosen for.
    "choose": ("strength", "choose"),
    # After "fuse": a value that is shared has several uses, and most fusions want one.
    "share": ("cse", "dce"),
}
"""The default pipeline, repeated until a whole round changes nothing."""

_LAST = {
    "arrange": ("arrange",),
    **{name: _GROUPS[name] for name in ("clean", "fold", "idiom", "fuse", "choose", "share")},
}
"""What runs then, repeated as well, for the layout that is wanted: the layout group would take it back."""


def default_pipeline(extra_rules: Iterable[Declared] = (), skip: Iterable[str] = ()) -> Pipeline:
    """All groups, repeated until nothing changes; ``extra_rules`` run after the idioms.

    Raises:
        UsageError: ``skip`` names no pass.
    """
    left_out = {name for name in skip if passes_of(name)}
    extra = tuple(pass_of(item) for item in extra_rules)
    groups, last = (
        [
            Group(group, tuple(p for name in names if name not in left_out for p in PASSES[name]))
            for group, names in table.items()
        ]
        for table in (_GROUPS, _LAST)
    )
    return Pipeline([Group(g.name, extra) if g.name == "rules" else g for g in groups], last=last)


def named_pipeline(names: Sequence[str], extra_rules: Iterable[Declared] = ()) -> Pipeline:
    """These passes or rules, once each, in this order; a name may be that of one of ``extra_rules``.

    Raises:
        UsageError: there is no such pass.
    """
    extra = {item.name: (pass_of(item),) for item in extra_rules}
    return Pipeline([Group(name, extra.get(name) or passes_of(name)) for name in names], repeat=False)


def passes_of(name: str) -> tuple[Pass, ...]:
    """What a name stands for: a pass, or a single rule.

    Raises:
        UsageError: there is no such pass; the message suggests what may have been meant.
    """
    if name in PASSES:
        return PASSES[name]
    for item in default_registry:
        if item.name == name:
            return (pass_of(item),)
    near = difflib.get_close_matches(name, [*PASSES, *(item.name for item in default_registry)], n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(PASSES)}"
    raise UsageError(f"no pass '{name}'; {hint}")
