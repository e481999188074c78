"""Constant affine steps: ``y = scale * x + shift`` read from the graph, composed, put back.

Everything is float64 here; the rewriter rounds once, when a constant is made.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from optimizer.ir import Node, Value
from optimizer.rewrite import Match, P, Rewriter
from optimizer.rewrite.pattern import AnyOf, Op, Term
from passes.known import FLOATS, constant_of, rank_of


@dataclass(frozen=True, slots=True)
class Affine:
    """``scale * x + shift``; both broadcast against ``x`` as ONNX's elementwise operators do."""

    scale: np.ndarray
    shift: np.ndarray

    def after(self, first: Affine) -> Affine:
        """``self(first(x))``."""
        return Affine(self.scale * first.scale, self.scale * first.shift + self.shift)

    def along(self, m: Match, axis: int, rank: int, size: int) -> Affine:
        """The same as two vectors of ``size`` along ``axis`` of a tensor of ``rank`` axes.

        Raises:
            Refusal: it varies along another axis, or would change the tensor's shape.
        """
        scale, shift = (_along(m, a, axis, rank, size) for a in (self.scale, self.shift))
        return Affine(scale, shift)

    @property
    def is_shift(self) -> bool:
        """Whether it only adds."""
        return bool((self.scale == 1).all())

    @property
    def is_scale(self) -> bool:
        """Whether it only multiplies."""
        return bool((self.shift == 0).all())


def _along(m: Match, constant: np.ndarray, axis: int, rank: int, size: int) -> np.ndarray:
    m.require(constant.ndim <= rank, "the constant has more axes than the value")
    shape = (1,) * (rank - constant.ndim) + constant.shape
    m.require(
        all(n == 1 or (i == axis and n == size) for i, n in enumerate(shape)),
        "the constant is not one number per channel",
    )
    return np.broadcast_to(constant.reshape(-1), (size,))


# -------------------------------------------------------------------- reading


def elementwise_step(inner: Term | str, name: str = "step") -> tuple[Op, ...]:
    """Terms for ``inner`` with a constant added, subtracted, multiplied, divided by, or negated."""
    return (*shift_step(inner, name), *scale_step(inner, name), P.Neg(inner, name=name))


def shift_step(inner: Term | str, name: str = "step") -> tuple[Op, ...]:
    """Terms for ``inner`` with a constant added or subtracted, or subtracted from one."""
    c = P.const("")
    return (
        P.Add(inner, c, name=name).commutes(),
        P.Sub(inner, c, name=name),
        P.Sub(c, inner, name=name),
    )


def scale_step(inner: Term | str, name: str = "step") -> tuple[Op, ...]:
    """Terms for ``inner`` multiplied or divided by a constant."""
    c = P.const("")
    return P.Mul(inner, c, name=name).commutes(), P.Div(inner, c, name=name)


def batchnorm_step(inner: Term | str, name: str = "step") -> Op:
    """A term for BatchNormalization of ``inner`` with constant parameters."""
    return P.BatchNormalization(inner, *(P.const("") for _ in range(4)), name=name)


def once(terms: tuple[Op, ...]) -> AnyOf:
    """Any of ``terms``, where its value has a single use."""
    return P.any_of(*(term.once() for term in terms))


def scale_and_bias_behind(m: Match, rw: Rewriter) -> tuple[Value, Value]:
    """Scale and bias of ``norm``, of one number per channel each, that do ``step`` as well.

    Raises:
        Refusal: ``step`` does not act on channels, or the new constants would take too much room.
    """
    rank, channels = rank_of(m, m.x), constant_of(m, m.scale).size
    affine = affine_of(m, m.step, m.norm.value(), rank).along(m, 1, rank, channels)
    require_room(m, m.scale)
    scale = rw.const(m.f64(m.scale) * affine.scale, like=m.scale)
    return scale, rw.const(m.f64(m.bias) * affine.scale + affine.shift, like=m.scale)


def affine_of(m: Match, step: Node, x: Value, rank: int) -> Affine:
    """What a step does to its operand ``x``, a tensor of ``rank`` axes.

    Raises:
        Refusal: it is no affine function with float constants.
    """
    if step.op_type == "BatchNormalization":
        return _affine_of_batchnorm(m, step, rank)
    m.require(m.opset() >= 7, "elementwise operators broadcast differently before opset 7")
    one, zero = np.ones(()), np.zeros(())
    if step.op_type == "Neg":
        m.require(m.dtype(x) in FLOATS, "not a float")
        return Affine(-one, zero)
    left, right = step.inputs
    m.require(constant_of(m, right if left == x else left).dtype in FLOATS, "not a float")
    c = m.f64(right if left == x else left)
    recognised = step.op_type in ("Mul", "Div") and _ends_idiom(m, x, c)
    m.require(not recognised or m.ctx.settings.objective == "nodes", "runtimes recognise what it ends")
    with np.errstate(divide="ignore"):
        known = {
            "Mul": lambda: Affine(c, zero),
            "Div": lambda: Affine(1 / c, zero),
            "Add": lambda: Affine(one, c),
            "Sub": lambda: Affine(one, -c) if left == x else Affine(-one, c),
        }
        found = known[step.op_type]()
    m.require(np.isfinite(found.scale).all() and np.isfinite(found.shift).all(), "the constant is not finite")
    return found


def _ends_idiom(m: Match, x: Value, c: np.ndarray) -> bool:
    """Whether scaling ``x`` is the end of a Gelu or of a normalization that runtimes will fuse."""
    last = m.producer(x)
    if last is None or last.op_type not in ("Mul", "Div"):
        return False
    factors = [m.producer(v) for v in last.inputs]
    if any(f is not None and f.op_type in ("Sqrt", "Reciprocal") for f in factors):
        return True
    sums = [f for f in factors if f is not None and f.op_type == "Add"]
    below = [m.producer(v) for f in sums for v in f.inputs]
    return c.size == 1 and any(b is not None and b.op_type in ("Erf", "Tanh") for b in below)


def _affine_of_batchnorm(m: Match, bn: Node, rank: int) -> Affine:
    require_inference(m, bn)
    scale, shift, mean, var = (m.f64(v) for v in bn.inputs[1:5])
    with np.errstate(invalid="ignore", divide="ignore"):
        k = scale / np.sqrt(var + float(bn.attr("epsilon", 1e-5)))
    m.require(np.isfinite(k).all(), "the variance is not positive")
    spread = (-1, *(1,) * (rank - 2))
    return Affine(k.reshape(spread), (shift - mean * k).reshape(spread))


def require_inference(m: Match, bn: Node) -> None:
    """Refuses a BatchNormalization that computes statistics, in any of its four forms."""
    more_outputs = any(m.graph.has_uses(bn.value(i)) for i in range(1, len(bn.outputs)))
    m.require(not bn.attr("training_mode", 0), "batch norm is in training mode")
    m.require(bn.attr("spatial", 1) == 1, "batch norm is not per channel")
    m.require(m.opset() >= 14 or len(bn.outputs) == 1, "batch norm is in training mode")
    m.require(not more_outputs, "the statistics are used")
    m.require(m.opset() >= 7 or bn.attr("is_test", 0), "batch norm is in training mode")


# -------------------------------------------------------------------- writing


def require_room(m: Match, old: Value, extra: int | None = None) -> None:
    """Refuses to copy a constant that others read as well, where the growth budget is used up.

    ``extra`` is by how many bytes the new constant is larger than the old one.
    """
    tensor = m.tensor(old)
    copied = 0 if tensor is None or m.single_use(old) else tensor.nbytes
    m.require(
        m.ctx.may_grow(copied + (extra or 0)), "copying a shared constant would exceed the growth budget"
    )


def as_batchnorm(rw: Rewriter, x: Value, affine: Affine, like: Value) -> Value:
    """``affine``, one number per channel, as BatchNormalization with mean 0, variance 1, epsilon 0."""
    size = affine.scale.shape
    parts = (affine.scale, affine.shift, np.zeros(size), np.ones(size))
    made: Value = rw.op.BatchNormalization(x, *(rw.const(a, like=like) for a in parts), epsilon=0.0)
    return made


def as_elementwise(m: Match, rw: Rewriter, x: Value, affine: Affine, size: int) -> Value:
    """``affine`` as Mul and Add (or Sub where the scale is -1).

    Raises:
        Refusal: nothing is left but a change of shape, or the constants would need more than
            ``size`` numbers.
    """
    shape = np.broadcast_shapes(affine.scale.shape, affine.shift.shape)
    keeps_shape = m.same_shape(x, m.root.value())
    mirrored = bool((affine.scale == -1).all()) and not affine.is_scale
    parts = [not affine.is_shift and not mirrored, not affine.is_scale]
    m.require(any(parts) or keeps_shape, "the constants may change the shape")
    m.require(sum(parts) * math.prod(shape) <= max(size, 1), "the merged constants would be larger")
    # A constant that only one of the two keeps still has to stretch the result to its shape.
    scale, shift = (a if keeps_shape else np.broadcast_to(a, shape) for a in (affine.scale, affine.shift))
    if parts[0]:
        x = rw.op.Mul(x, rw.const(scale, like=x))
    if parts[1]:
        constant = rw.const(shift, like=m.root.value())
        x = rw.op.Sub(constant, x) if mirrored else rw.op.Add(x, constant)
    return x
