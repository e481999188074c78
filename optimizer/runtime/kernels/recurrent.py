"""RNN, GRU and LSTM: the input products of all steps at once, then one small product per step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps

import numpy as np

from optimizer.runtime.call import Call
from optimizer.runtime.kernels.erf import sigmoid_into
from optimizer.runtime.precision import Array, computed_wide
from optimizer.runtime.registry import KernelFunction, kernel

Activation = Callable[[Array], Array]
State = tuple[Array, ...]
Step = Callable[[Array, State], State]
"""The next state, from a step's input products and the state before; the output is its first part."""


def _sigmoid(x: Array) -> Array:
    y = np.empty_like(x)
    sigmoid_into(x, y)
    return y


def _activation(name: str, alpha: float | None, beta: float | None) -> Activation:
    """An activation of the operators' list; None stands for its own default parameter.

    Raises:
        ValueError: unknown name.
    """

    def a(default: float) -> float:
        return default if alpha is None else alpha

    def b(default: float) -> float:
        return default if beta is None else beta

    table: dict[str, Activation] = {
        "sigmoid": _sigmoid,
        "tanh": lambda x: np.asarray(np.tanh(x)),
        "relu": lambda x: np.maximum(x, 0),
        "affine": lambda x: a(1.0) * x + b(0.0),
        "leakyrelu": lambda x: np.where(x >= 0, x, a(0.01) * x),
        "thresholdedrelu": lambda x: np.where(x >= a(1.0), x, 0).astype(x.dtype),
        "scaledtanh": lambda x: a(1.0) * np.tanh(b(1.0) * x),
        "hardsigmoid": lambda x: np.clip(a(0.2) * x + b(0.5), 0, 1),
        "elu": lambda x: np.where(x >= 0, x, a(1.0) * np.expm1(np.minimum(x, 0))),
        "softsign": lambda x: x / (1 + np.abs(x)),
        "softplus": lambda x: np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0),
    }
    if name.lower() not in table:
        raise ValueError(f"unknown activation {name!r}")
    return table[name.lower()]


_TAKES = {"affine": 2, "leakyrelu": 1, "thresholdedrelu": 1, "scaledtanh": 2, "hardsigmoid": 2, "elu": 1}
"""How many of alpha and beta an activation consumes from the attribute lists."""


def _activations(call: Call, default: tuple[str, ...], directions: int) -> list[list[Activation]]:
    """Per direction, in the order of the attribute.

    activation_alpha and activation_beta hold values only for the functions that have them, in order.
    """
    names = [
        n if isinstance(n, str) else n.decode() for n in call.attr("activations") or default * directions
    ]
    if len(names) != len(default) * directions:
        raise ValueError(f"{len(names)} activations for {directions} directions of {len(default)}")
    alphas, betas = list(call.attr("activation_alpha") or ()), list(call.attr("activation_beta") or ())
    made = []
    for name in names:
        takes = _TAKES.get(name.lower(), 0)
        alpha = alphas.pop(0) if takes >= 1 and alphas else None
        beta = betas.pop(0) if takes >= 2 and betas else None
        made.append(_activation(name, alpha, beta))
    return [made[d * len(default) : (d + 1) * len(default)] for d in range(directions)]


def _clipper(call: Call) -> Activation:
    limit = call.attr("clip")
    return (lambda x: np.clip(x, -limit, limit)) if limit else (lambda x: x)


@dataclass
class _Run:
    """What all three operators share, in the layout [steps, batch, ...].

    Attributes:
        directions: 1, 2, or -1 for reverse.
        functions: the activations of each direction.
        clip: applied to what goes into the gates.
    """

    call: Call
    x: Array
    w: Array
    r: Array
    bias: Array | None
    lengths: Array | None
    peepholes: Array | None
    hidden: int
    directions: int
    functions: list[list[Activation]]
    clip: Activation

    def halves(self, d: int, gates: int) -> tuple[Array, Array]:
        """(bias of the input, bias of the recurrence) of a direction, zeros where omitted."""
        if self.bias is None:
            zeros = np.zeros(gates * self.hidden, self.x.dtype)
            return zeros, zeros
        return self.bias[d, : gates * self.hidden], self.bias[d, gates * self.hidden :]

    def initial(self, given: Array | None, d: int) -> Array:
        if given is None:
            return np.zeros((self.x.shape[1], self.hidden), self.x.dtype)
        return np.asarray(given[d])


def _scan(run: _Run, d: int, projected: Array, step: Step, state: State) -> tuple[Array, State]:
    """(outputs [steps, batch, hidden], last state) of one direction over its input products.

    A sequence shorter than the batch's longest keeps its last state and puts out zeros behind its
    end. The reverse direction starts each sequence at its own end.
    """
    steps, batch = projected.shape[:2]
    outputs = np.zeros((steps, batch, run.hidden), projected.dtype)
    reverse = d == 1 or run.directions == -1
    ragged = run.lengths is not None and bool((run.lengths != steps).any())
    for t in range(steps - 1, -1, -1) if reverse else range(steps):
        new = step(projected[t], state)
        if ragged:
            assert run.lengths is not None
            alive = (t < run.lengths)[:, None]
            outputs[t] = np.where(alive, new[0], 0)
            state = tuple(np.where(alive, n, s) for n, s in zip(new, state, strict=True))
        else:
            outputs[t] = new[0]
            state = new
    return outputs, state


Cell = Callable[[_Run, int], tuple[Array, Step]]
"""Of a direction: a bias to add to the input products, and the function of one step."""


def _recurrent(gates: int, activations: tuple[str, ...], states: int = 1) -> Callable[[Cell], KernelFunction]:
    """Makes a kernel of a cell: all steps of all directions of it.

    Args:
        gates: blocks of weights.
        activations: the default ones.
        states: how many parts the state has.
    """

    def make(cell: Cell) -> KernelFunction:
        @wraps(cell)
        def run_cell(
            call: Call,
            x: Array,
            w: Array,
            r: Array,
            b: Array | None = None,
            sequence_lens: Array | None = None,
            initial_h: Array | None = None,
            initial_c: Array | None = None,
            p: Array | None = None,
        ) -> tuple[Array, ...]:
            batch_major = bool(call.attr("layout", 0))
            x = x.transpose(1, 0, 2) if batch_major else x
            hidden, directions = _sizes(call, x, w, r, gates)
            functions = _activations(call, activations, abs(directions))
            run = _Run(call, x, w, r, b, sequence_lens, p, hidden, directions, functions, _clipper(call))
            return _all_directions(run, batch_major, [initial_h, initial_c][:states], cell)

        return computed_wide(run_cell)

    return make


def _sizes(call: Call, x: Array, w: Array, r: Array, gates: int) -> tuple[int, int]:
    """(hidden size, directions), the latter -1 for reverse.

    Raises:
        ValueError: the weights have other shapes.
    """
    hidden: int = call.attr("hidden_size") or r.shape[-1]
    direction = call.attr("direction", "forward")
    if direction not in ("forward", "reverse", "bidirectional"):
        raise ValueError(f"unknown direction {direction!r}")
    expected = 2 if direction == "bidirectional" else 1
    if w.shape != (expected, gates * hidden, x.shape[2]) or r.shape != (expected, gates * hidden, hidden):
        raise ValueError(f"X {list(x.shape)}, W {list(w.shape)}, R {list(r.shape)} and {direction} disagree")
    return hidden, -1 if direction == "reverse" else expected


def _all_directions(
    run: _Run, batch_major: bool, states: list[Array | None], cell: Cell
) -> tuple[Array, ...]:
    """(Y, last states...) of every direction, in the node's layout."""
    ys, lasts = [], []
    if batch_major:
        states = [None if s is None else s.transpose(1, 0, 2) for s in states]
    flat = np.ascontiguousarray(run.x).reshape(-1, run.x.shape[2])
    for d in range(abs(run.directions)):
        bias, step = cell(run, d)
        projected = flat @ run.w[d].T
        projected += bias
        projected = projected.reshape(*run.x.shape[:2], -1)
        start = tuple(run.initial(s, d) for s in states)
        y, last = _scan(run, d, projected, step, start)
        ys.append(y)
        lasts.append(last)
    finals = [np.stack([last[i] for last in lasts]) for i in range(len(states))]
    y = np.stack(ys, 1)  # [steps, directions, batch, hidden]
    if batch_major:
        return y.transpose(2, 0, 1, 3), *(f.transpose(1, 0, 2) for f in finals)
    return y, *finals


@kernel("RNN", since=1)
@kernel("RNN", since=7)
@_recurrent(1, ("Tanh",))
def rnn(run: _Run, d: int) -> tuple[Array, Step]:
    """H = f(X W' + H R' + bias)."""
    recurrence, (f,), clip = run.r[d].T, run.functions[d], run.clip
    first, second = run.halves(d, 1)
    return first + second, lambda gates, state: (f(clip(gates + state[0] @ recurrence)),)


@kernel("GRU", since=1)
@kernel("GRU", since=3)
@kernel("GRU", since=7)
@_recurrent(3, ("Sigmoid", "Tanh"))
def gru(run: _Run, d: int) -> tuple[Array, Step]:
    """Gates z, r, h; with linear_before_reset the reset gate scales the recurrence's product."""
    (f, g), clip, n = run.functions[d], run.clip, run.hidden
    linear = run.call.attr("linear_before_reset", 0)
    first, second = run.halves(d, 3)
    gates_r, candidate_r, candidate_bias = run.r[d][: 2 * n].T, run.r[d][2 * n :].T, second[2 * n :]
    bias = first.copy()
    bias[: 2 * n] += second[: 2 * n]
    if not linear:
        bias[2 * n :] += candidate_bias

    def step(gates: Array, state: State) -> State:
        h = state[0]
        zr = f(clip(gates[:, : 2 * n] + h @ gates_r))
        z, reset = zr[:, :n], zr[:, n:]
        if linear:
            inner = gates[:, 2 * n :] + reset * (h @ candidate_r + candidate_bias)
        else:
            inner = gates[:, 2 * n :] + (reset * h) @ candidate_r
        candidate = g(clip(inner))
        return (candidate + z * (h - candidate),)

    return bias, step


@kernel("LSTM", since=1)
@kernel("LSTM", since=7)
@_recurrent(4, ("Sigmoid", "Tanh", "Tanh"), states=2)
def lstm(run: _Run, d: int) -> tuple[Array, Step]:
    """Gates i, o, f, c; peepholes P for i, o, f; with input_forget f is 1 - i."""
    (f, g, h_function), clip, n, p = run.functions[d], run.clip, run.hidden, run.peepholes
    coupled = run.call.attr("input_forget", 0)
    recurrence = np.ascontiguousarray(run.r[d].T)
    first, second = run.halves(d, 4)
    peep = None if p is None else (p[d, :n], p[d, n : 2 * n], p[d, 2 * n :])

    def step(gates: Array, state: State) -> State:
        h, c = state
        total = gates + h @ recurrence
        if peep is None:
            iof = f(clip(total[:, : 3 * n]))
            i, o, forget = iof[:, :n], iof[:, n : 2 * n], iof[:, 2 * n :]
        else:
            i = f(clip(total[:, :n] + peep[0] * c))
            forget = f(clip(total[:, 2 * n : 3 * n] + peep[2] * c))
        if coupled:
            forget = 1 - i
        c = forget * c + i * g(clip(total[:, 3 * n :]))
        if peep is not None:
            o = f(clip(total[:, n : 2 * n] + peep[1] * c))
        return o * h_function(c), c

    return first + second, step
