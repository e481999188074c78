"""LSTM, GRU and RNN."""

from __future__ import annotations

from optimizer.analysis.context import Inconsistent, InferContext
from optimizer.analysis.dims import Dim
from optimizer.analysis.fact import Fact, Shape
from optimizer.analysis.registry import infer

__all__: list[str] = []


@infer("LSTM", "GRU", "RNN")
def recurrent(context: InferContext) -> list[Fact]:
    """Y [seq, directions, batch, hidden] and the last states [directions, batch, hidden].

    With ``layout=1`` the batch comes first.
    """
    dtype, x, r, state = context.dtype(0), context.shape(0), context.shape(2), context.shape(5)
    if x is not None and len(x) != 3:
        raise Inconsistent(f"an input of rank {len(x)}")
    batch_first = bool(context.attr("layout", 0))
    directions = Dim.of(2 if context.attr("direction", "forward") == "bidirectional" else 1)
    given = context.attr("hidden_size")
    hidden = Dim.of(given) if given else r[2] if r is not None and len(r) == 3 else Dim.fresh("hidden")
    if x is not None and len(x) == 3:
        batch, steps = (x[0], x[1]) if batch_first else (x[1], x[0])
        _demand_sizes(context, x, batch, batch_first)
    else:
        steps = Dim.fresh("steps")
        known = state is not None and len(state) == 3
        batch = state[0 if batch_first else 1] if known and state is not None else Dim.fresh("batch")
    everything: Shape = (steps, directions, batch, hidden)
    last: Shape = (directions, batch, hidden)
    if batch_first:
        everything, last = (batch, steps, directions, hidden), (batch, directions, hidden)
    return [Fact(dtype, everything), Fact(dtype, last), Fact(dtype, last)]


def _demand_sizes(context: InferContext, x: Shape, batch: Dim, batch_first: bool) -> None:
    """The input's width is that of the weights, the batch that of the initial state."""
    w, state = context.shape(1), context.shape(5)
    if w is not None and len(w) == 3:
        context.demand(x[2], w[2])
    if state is not None and len(state) == 3:
        context.demand(batch, state[0 if batch_first else 1])
