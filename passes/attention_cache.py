"""Keys and values kept from earlier tokens: Attention puts the new ones behind them and returns all."""

from __future__ import annotations

from collections.abc import Sequence

import networkx as nx
import numpy as np

from optimizer.ir import DType, Node, Value
from optimizer.rewrite import Match, P, Rewriter, graph_optimizer
from passes.attention_mask import as_hidden
from passes.causal import looks_ahead
from passes.known import shape_of
from passes.scores import Hidden

ALL_KEYS = P.Concat("past_key", "k", name="keys")
ALL_VALUES = P.Concat("past_value", "v", name="values")


@graph_optimizer(P.Attention("q", ALL_KEYS, ALL_VALUES, P.maybe("mask"), name="attention"), tag="E0")
def give_cache_to_attention(m: Match, rw: Rewriter) -> Value:
    """Attention(q, Concat(past_key, k), Concat(past_value, v)) -> Attention(q, k, v, , past_key, past_value)

    What else reads all keys and values then reads them from Attention; onnxruntime fails where nobody does.
    """
    m.require(len(m.attention.outputs) == 1, "it has a cache")
    for joined, new in ((m.keys, m.k), (m.values, m.v)):
        rank = len(shape_of(m, new))
        m.require(rank == 4 and joined.attr("axis") in (2, -2), "it is not tokens that are joined")
        m.require(all(dim.ge(1) for dim in shape_of(m, new)), "a tensor may be empty")
        m.require(not m.single_use(joined.value()), "nothing else reads all keys and values")
        m.require(not leads_to(m, joined, m.attention, m.attention), "it depends on all keys otherwise too")
    m.require(not m.attention.attr("is_causal", 0), "the mask counts from the first key")
    cache = (m.past_key, m.past_value)
    made = rw.op.Attention(m.q, m.k, m.v, m.mask, *cache, outputs=3, **m.attention.attributes)
    for joined, present in ((m.keys, made[1]), (m.values, made[2])):
        rw.replace_too(joined.value(), present)
    return made[0]


def leads_to(m: Match, source: Node, reader: Node, target: Node) -> bool:
    """Whether ``target`` depends on ``source`` by other ways than through ``reader``."""
    others = [key for key in m.graph.users(source.id) if key != reader.id]
    return any(key == target.id or nx.has_path(m.graph.dag, key, target.id) for key in others)


@graph_optimizer(
    P.Attention("q", "k", "v", "mask", "past_key", "past_value", name="attention"),
    tag="E2",
)
def replace_mask_by_is_causal(m: Match, rw: Rewriter) -> Sequence[Value]:
    """Attention(q, k, v, Range(keys) <= Range(past, keys), ...) -> Attention<is_causal=1>(q, k, v, , ...)

    Where the mask hides the keys that come later than the query, the first of which comes right behind
    the cache.
    """
    hidden = as_hidden(m, m.mask) if m.dtype(m.mask) is not DType.BOOL else Hidden(m.mask, False, -np.inf)
    m.require(hidden is not None and not m.attention.attr("is_causal", 0), "the mask is no condition")
    assert hidden is not None
    past = shape_of(m, m.past_key)[2]
    queries, keys = (shape_of(m, v)[-2 if m.rank(v) == 4 else 1] for v in (m.q, m.k))
    m.require(looks_ahead(m, hidden, (queries, past + keys), past), "it hides other keys than the later ones")
    attributes = {**m.attention.attributes, "is_causal": 1}
    count = len(m.attention.outputs)
    made = rw.op.Attention(m.q, m.k, m.v, None, m.past_key, m.past_value, outputs=count, **attributes)
    return [made] if isinstance(made, Value) else made
