"""What runs, in which order: every pass of the catalogue by name, and the default pipeline."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType

from optimizer.ir import UsageError
from optimizer.rewrite import Declared, Group, Pass, Pipeline, Rule, RulePass, default_registry, pass_of
from passes import (
    arithmetic,
    attention,
    boolean,
    cast,
    clip,
    commute,
    contrib,
    control,
    cse,
    dce,
    einsum,
    fold,
    fuse_affine,
    fuse_branches,
    fuse_conv,
    fuse_focus,
    fuse_gate,
    fuse_linear,
    fuse_pad,
    fuse_rows,
    fuse_siblings,
    fuse_view,
    identity,
    idiom_activation,
    idiom_gelu,
    idiom_norm,
    idiom_pixel,
    idiom_rms,
    idiom_softmax,
    infer,
    inline,
    keepdims,
    latency_forms,
    layout,
    lift,
    masks,
    merge_siblings,
    pick_tokens,
    quantize,
    recurrent,
    sequence,
    shape,
    shape_vectors,
    slice_concat,
    strength,
    target,
    transpose,
    view,
    view_chain,
)


def rules_of(*families: ModuleType) -> list[Rule]:
    """The rules that the families declare, in their order."""
    declared = [item for family in families for item in default_registry.of_module(family.__name__)]
    return [item for item in declared if isinstance(item, Rule)]


PASSES: Mapping[str, tuple[Pass, ...]] = {
    "infer": (infer.INFER,),
    "inline": (inline.INLINE,),
    "eliminate": (RulePass("eliminate", rules_of(identity, arithmetic, cast, boolean, clip, quantize)),),
    "dce": (dce.DCE,),
    "fold": (fold.BIND, fold.FOLD),
    "shape": (
        RulePass(
            "shape", rules_of(target, shape, view, view_chain, slice_concat, keepdims, fuse_view, recurrent)
        ),
        shape.SHARE,
        shape_vectors.REBUILD,
    ),
    "control": (control.CONTROL, lift.LIFT, RulePass("control", rules_of(sequence))),
    "idiom": (
        RulePass(
            "idiom",
            rules_of(
                idiom_norm, idiom_rms, idiom_softmax, idiom_gelu, idiom_activation, idiom_pixel, attention
            ),
        ),
    ),
    "transpose": (RulePass("transpose", rules_of(transpose)),),
    "layout": (layout.LAYOUT,),
    "fuse": (
        RulePass(
            "fuse",
            rules_of(
                fuse_pad,
                fuse_focus,
                fuse_gate,
                fuse_branches,
                fuse_conv,
                fuse_linear,
                fuse_rows,
                fuse_affine,
                fuse_siblings,
                commute,
                pick_tokens,
            ),
        ),
    ),
    "strength": (RulePass("strength", rules_of(strength, einsum, masks)),),
    "choose": (RulePass("choose", rules_of(latency_forms, contrib)), merge_siblings.MERGE_SIBLINGS),
    "cse": (cse.CSE,),
}
"""What each name stands for, in the order in which its parts run."""

_GROUPS = {
    "clean": ("inline", "eliminate", "dce"),
    "fold": ("fold", "shape", "control"),
    "idiom": ("idiom",),
    "rules": (),
    "layout": ("transpose", "layout"),
    "fuse": ("fuse",),
    "choose": ("strength", "choose"),
    "share": ("cse", "dce"),
}


def default_pipeline(extra_rules: Iterable[Declared] = (), skip: Iterable[str] = ()) -> Pipeline:
    """All groups, repeated until nothing changes; ``extra_rules`` run after the idioms.

    Raises:
        UsageError: ``skip`` names no pass.
    """
    left_out = {name for name in skip if passes_of(name)}
    extra = tuple(pass_of(item) for item in extra_rules)
    groups = [
        Group(group, tuple(p for name in names if name not in left_out for p in PASSES[name]))
        for group, names in _GROUPS.items()
    ]
    return Pipeline([Group(g.name, extra) if g.name == "rules" else g for g in groups])


def named_pipeline(names: Sequence[str], extra_rules: Iterable[Declared] = ()) -> Pipeline:
    """These passes, once each, in this order; a name may be that of one of ``extra_rules``.

    Raises:
        UsageError: there is no such pass.
    """
    extra = {item.name: (pass_of(item),) for item in extra_rules}
    return Pipeline([Group(name, extra.get(name) or passes_of(name)) for name in names], repeat=False)


def passes_of(name: str) -> tuple[Pass, ...]:
    """What a name stands for.

    Raises:
        UsageError: there is no such pass; the message suggests what may have been meant.
    """
    if name in PASSES:
        return PASSES[name]
    near = difflib.get_close_matches(name, [*PASSES, *(item.name for item in default_registry)], n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(PASSES)}"
    raise UsageError(f"no pass '{name}'; {hint}")
