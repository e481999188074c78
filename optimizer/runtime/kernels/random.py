"""Random ops: they draw from the node's own generator, seeded by the session. Never folded."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from optimizer.ir import Graph, Node
from optimizer.runtime.call import Call
from optimizer.runtime.precision import Array, widen
from optimizer.runtime.registry import kernel

random_kernel = partial(kernel, deterministic=False, foldable=False)


def _uniform(call: Call, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    call.context.check_size(shape, np.dtype(np.float64))
    drawn = call.random().random(shape)
    low, high = call.attr("low", 0.0), call.attr("high", 1.0)
    return np.asarray(low + (high - low) * drawn).astype(dtype)


def _normal(call: Call, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    call.context.check_size(shape, np.dtype(np.float64))
    drawn = call.random().standard_normal(shape)
    return np.asarray(call.attr("mean", 0.0) + call.attr("scale", 1.0) * drawn).astype(dtype)


@random_kernel("RandomUniform")
def random_uniform(call: Call) -> Array:
    """Uniform on [low, high)."""
    return _uniform(call, call.attr("shape"), call.dtype(call.attr("dtype", 1)))


@random_kernel("RandomUniformLike")
def random_uniform_like(call: Call, x: Array) -> Array:
    """Uniform on [low, high), in the shape of the input."""
    return _uniform(call, x.shape, call.dtype(call.attr("dtype", 0), x.dtype))


@random_kernel("RandomNormal")
def random_normal(call: Call) -> Array:
    """Normal with the given mean and standard deviation."""
    return _normal(call, call.attr("shape"), call.dtype(call.attr("dtype", 1)))


@random_kernel("RandomNormalLike")
def random_normal_like(call: Call, x: Array) -> Array:
    """Normal, in the shape of the input."""
    return _normal(call, x.shape, call.dtype(call.attr("dtype", 0), x.dtype))


@random_kernel("Bernoulli", 15)
def bernoulli(call: Call, x: Array) -> Array:
    """One with probability ``x``, else zero."""
    dtype = call.dtype(call.attr("dtype", 0), x.dtype)
    return np.asarray(call.random().random(x.shape) < widen(x)).astype(dtype)


@random_kernel("Multinomial", 7)
def multinomial(call: Call, x: Array) -> Array:
    """Class indices drawn from unnormalized log-probabilities [batch, classes]."""
    logits = widen(x).astype(np.float64)
    weights = np.exp(logits - logits.max(1, keepdims=True))
    bounds = np.cumsum(weights, 1) / weights.sum(1, keepdims=True)
    drawn = call.random().random((len(x), call.attr("sample_size", 1)))
    chosen = (drawn[:, :, None] >= bounds[:, None, :]).sum(-1)
    return np.asarray(np.minimum(chosen, x.shape[1] - 1), call.dtype(call.attr("dtype", 6)))


# ---------------------------------------------------------------- Dropout


def _is_test(node: Node, graph: Graph) -> bool:
    return bool(node.attr("is_test", 0))


def _never_trains(node: Node, graph: Graph) -> bool:
    """Whether training mode is off for sure."""
    mode = node.input(2)
    if mode is None:
        return True
    known = graph.const(mode)
    return known is not None and not known.reshape(-1)[0]


@kernel("Dropout", 1, exact=True, may_alias=True, foldable=_is_test)
@kernel("Dropout", 6, exact=True, may_alias=True, foldable=_is_test)
def dropout_by_attribute(call: Call, x: Array) -> tuple[Array, Array]:
    """Drops by chance unless ``is_test``; the mask has the type of the data."""
    if call.attr("is_test", 0):
        return x, np.ones(x.shape, x.dtype)
    out, mask = _dropped(call, x, call.attr("ratio", 0.5))
    return out, mask.astype(x.dtype)


@kernel("Dropout", 7, exact=True, may_alias=True, foldable=False)
def dropout_7(call: Call, x: Array) -> tuple[Array, Array]:
    """The identity; the mask has the type of the data."""
    return x, np.ones(x.shape, x.dtype)


@kernel("Dropout", 10, exact=True, may_alias=True, foldable=False)
def dropout_10(call: Call, x: Array) -> tuple[Array, Array]:
    """The identity; the mask is boolean."""
    return x, np.ones(x.shape, bool)


@kernel("Dropout", 12, exact=True, may_alias=True, foldable=_never_trains)
def dropout(
    call: Call, x: Array, ratio: Array | None = None, training_mode: Array | None = None
) -> tuple[Array, Array]:
    """The identity, unless ``training_mode`` is true."""
    if training_mode is None or not training_mode.reshape(-1)[0]:
        return x, np.ones(x.shape, bool)
    return _dropped(call, x, 0.5 if ratio is None else float(ratio.reshape(-1)[0]))


def _dropped(call: Call, x: Array, ratio: float) -> tuple[Array, Array]:
    if ratio == 0:
        return x, np.ones(x.shape, bool)
    mask = np.asarray(call.random().random(x.shape) >= ratio)
    kept = widen(x) * mask
    return np.asarray(kept / (1 - ratio) if ratio < 1 else kept).astype(x.dtype), mask
