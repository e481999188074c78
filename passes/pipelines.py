"""What runs, in which order: every pass of the catalogue by name, and the default pipeline."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType

from optimizer.ir import UsageError
from optimizer.rewrite import Declared, Group, Pass, Pipeline, Rule, RulePass, default_registry, pass_of
from passes import (
    algebra,
    arithmetic,
    attention,
    attention_bias,
    attention_cache,
    attention_heads,
    boolean,
    branches,
    cast,
    channel_order,
    clip,
    commute,
    contrib,
    contrib_attention,
    control,
    cse,
    dce,
    dead_channels,
    einsum,
    enclosing,
    fewer_nodes,
    fold,
    fuse_affine,
    fuse_branches,
    fuse_concat,
    fuse_conv,
    fuse_fire,
    fuse_focus,
    fuse_gate,
    fuse_linear,
    fuse_matrix,
    fuse_pad,
    fuse_rows,
    fuse_siblings,
    fuse_view,
    identity,
    idiom_activation,
    idiom_elu,
    idiom_gelu,
    idiom_group,
    idiom_norm,
    idiom_pixel,
    idiom_reduce,
    idiom_rms,
    idiom_softmax,
    idle_clamps,
    infer,
    inline,
    keepdims,
    latency_forms,
    layout,
    lift,
    masks,
    merge_siblings,
    pick_tokens,
    picks,
    quantize,
    quantize_moves,
    recurrent,
    rotary,
    sequence,
    shape,
    shape_sources,
    shape_vectors,
    slice_concat,
    strength,
    stretches,
    target,
    transpose,
    transposed_products,
    truth,
    view,
    view_chain,
)
from passes.choose import ChoosePass


def rules_of(*families: ModuleType) -> list[Rule]:
    """The rules that the families declare, in their order; what is an alternative only is not among them."""
    declared = [item for family in families for item in default_registry.of_module(family.__name__)]
    return [item for item in declared if isinstance(item, Rule) and item not in ALTERNATIVES]


ALTERNATIVES: tuple[Rule, ...] = (
    latency_forms.spell_mish,
    latency_forms.spell_softplus,
    latency_forms.spell_prelu,
    latency_forms.widen_depthwise_conv,
    idiom_activation.fuse_softplus,
    idiom_softmax.replace_expectation_by_product,
    masks.replace_infinite_mask_by_sum,
    masks.replace_finite_mask_by_sum,
    einsum.replace_einsum_by_matmul,
)
"""Rules that are applied where what they cost is less: see ``passes.choose``."""
FOLLOWING = (
    transpose.merge_transposes,
    transpose.replace_transpose_by_reshape,
    view.merge_views,
)
"""Rules that an alternative is judged with."""


PASSES: Mapping[str, tuple[Pass, ...]] = {
    "infer": (infer.INFER,),
    "inline": (inline.INLINE,),
    "eliminate": (
        RulePass(
            "eliminate",
            rules_of(identity, arithmetic, cast, boolean, truth, clip, idle_clamps, quantize, quantize_moves),
        ),
    ),
    "dce": (dce.DCE,),
    "fold": (fold.BIND, fold.FOLD),
    "shape": (
        RulePass(
            "shape",
            rules_of(
                target,
                shape,
                view,
                view_chain,
                slice_concat,
                picks,
                stretches,
                keepdims,
                fuse_view,
                recurrent,
            ),
        ),
        shape.SHARE,
        shape_vectors.REBUILD,
        shape_sources.SOURCES,
    ),
    "control": (control.CONTROL, branches.BRANCHES, lift.LIFT, RulePass("control", rules_of(sequence))),
    "idiom": (
        RulePass(
            "idiom",
            rules_of(
                idiom_norm,
                idiom_group,
                idiom_rms,
                idiom_softmax,
                idiom_gelu,
                idiom_activation,
                idiom_elu,
                idiom_reduce,
                idiom_pixel,
                rotary,
                attention,
                attention_bias,
                attention_heads,
                attention_cache,
                contrib_attention,
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
                fuse_concat,
                fuse_linear,
                fuse_matrix,
                algebra,
                fuse_rows,
                transposed_products,
                fuse_affine,
                fuse_siblings,
                fuse_fire,
                channel_order,
                fewer_nodes,
                commute,
                pick_tokens,
            ),
        ),
        dead_channels.DEAD_CHANNELS,
    ),
    "strength": (RulePass("strength", rules_of(strength, einsum, masks)),),
    "choose": (
        ChoosePass("choose", ALTERNATIVES, FOLLOWING),
        RulePass("for-the-target", rules_of(contrib)),
        merge_siblings.MERGE_SIBLINGS,
    ),
    "cse": (cse.CSE, enclosing.ENCLOSING),
    "arrange": (
        layout.ARRANGE,
        RulePass(
            "arrange",
            [transpose.merge_transposes, transpose.replace_transpose_by_reshape, *rules_of(view)],
        ),
    ),
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
