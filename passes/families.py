"""The rules of each pass, family by family, in the order in which they are tried at a node.

The order only counts where rules of one pass match at the same operator: the first that applies wins,
and the others are tried on what it made. So a family stands behind those whose operands it would take.
"""

from __future__ import annotations

from types import ModuleType

from optimizer.rewrite import Rule, default_registry
from passes import (
    algebra,
    arithmetic,
    attention,
    attention_bias,
    attention_cache,
    attention_heads,
    blocks,
    boolean,
    cast,
    channel_order,
    clip,
    commute,
    contrib,
    contrib_attention,
    einsum,
    fewer_nodes,
    fuse_affine,
    fuse_branches,
    fuse_concat,
    fuse_conv,
    fuse_focus,
    fuse_gate,
    fuse_kernel_sizes,
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
    keepdims,
    largest,
    latency_forms,
    masks,
    pick_tokens,
    picks,
    quantize,
    quantize_moves,
    recurrent,
    rotary,
    sequence,
    shape,
    slice_concat,
    strength,
    stretches,
    target,
    transpose,
    transposed_products,
    view,
    view_chain,
)

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
"""Rules that are applied only where what they cost is less (``passes.choose``), whatever their family."""

FOLLOWING: tuple[Rule, ...] = (
    transpose.merge_transposes,
    transpose.replace_transpose_by_reshape,
    view.merge_views,
)
"""Rules that an alternative is judged with: what they save counts for it."""


def rules_of(*families: ModuleType) -> list[Rule]:
    """The rules that the families declare, in their order; what is an alternative only is not among them."""
    declared = [item for family in families for item in default_registry.of_module(family.__name__)]
    return [item for item in declared if isinstance(item, Rule) and item not in ALTERNATIVES]


ELIMINATE = rules_of(
    identity,
    arithmetic,
    cast,
    boolean,
    largest,
    clip,
    idle_clamps,
    quantize,
    quantize_moves,
)
"""What can go, or be done in fewer steps, by a look at the operators alone."""

SHAPE = rules_of(
    target,
    shape,
    view,
    view_chain,
    slice_concat,
    picks,
    stretches,
    blocks,
    keepdims,
    fuse_view,
    recurrent,
)
"""Shapes as constants first (``target``), then the views and cuts that can be judged by them."""

CONTROL = rules_of(sequence)
"""Sequences that only hold tensors for a while, as decided control flow leaves them."""

IDIOM = rules_of(
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
)
"""Operators spelled out in others; Attention last, which is made of Softmax and RotaryEmbedding."""

TRANSPOSE = rules_of(transpose)
"""Single Transposes; what is between several of them is the pass ``layout``'s."""

FUSE = rules_of(
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
    fuse_kernel_sizes,
    channel_order,
    fewer_nodes,
    commute,
    pick_tokens,
)
"""Constants into weights, and operators into each other.

Into a Conv or MatMul first: what these cannot take, ``fuse_affine`` merges among itself. Moving an
operator (``commute``, ``pick_tokens``) comes last, where nothing takes it up.
"""

STRENGTH = rules_of(strength, einsum, masks)
"""The same in a cheaper operator, always."""

TARGET = rules_of(contrib)
"""Operators of com.microsoft, for the target onnxruntime: last, since no other rule knows them."""

ARRANGE = [transpose.merge_transposes, transpose.replace_transpose_by_reshape, *rules_of(view)]
"""What tidies up around the Transposes that a wanted layout needs."""
