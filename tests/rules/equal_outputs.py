"""Runs two models in two engines and holds their outputs to what an exactness tag promises."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from optimizer.io import to_proto
from optimizer.ir import DType, Model, SequenceType, TensorType
from optimizer.rewrite import Exactness

_SIZES = ((2, 3, 5, 7, 11), (5, 1, 4, 2, 3))


class Runs(Protocol):
    """What to feed, see ``harness.Setup``."""

    sizes: Sequence[Mapping[str, int]]
    feeds: Mapping[str, Any]
    rtol: float
    special: bool
    ort: bool


def compare(original: Model, result: Model, setup: Runs, tag: Exactness) -> None:
    """Runs both in the executor and in onnxruntime and holds the outputs to what ``tag`` promises."""
    engines = [_executor, _onnxruntime] if setup.ort else [_executor]
    for engine in engines:
        before, after = engine(original), engine(result)
        for feeds in feeds_of(original, setup, tag):
            for name, want, got in zip(*_outputs(before(feeds), after(feeds)), strict=True):
                _compare_value(f"{engine.__name__} {name}", want, got, tag, setup.rtol)


def _outputs(want: Mapping[str, Any], got: Mapping[str, Any]) -> tuple[list[str], list[Any], list[Any]]:
    assert list(want) == list(got)
    return list(want), list(want.values()), list(got.values())


def _compare_value(name: str, want: Any, got: Any, tag: Exactness, rtol: float) -> None:
    if isinstance(want, (list, tuple)):
        assert len(want) == len(got), name
        for a, b in zip(want, got, strict=True):
            _compare_value(name, a, b, tag, rtol)
        return
    want, got = np.asarray(want), np.asarray(got)
    assert (want.dtype, want.shape) == (got.dtype, got.shape), name
    if want.dtype.kind not in "fV" or tag <= Exactness.E1:
        np.testing.assert_array_equal(got, want, err_msg=name)
        if tag is Exactness.E0 and want.dtype.kind in "fV":
            np.testing.assert_array_equal(np.signbit(got), np.signbit(want), err_msg=f"{name}: sign of zero")
        return
    scale = np.abs(want.astype(np.float64)).max(initial=0.0)
    unit = {2: 400.0}.get(want.dtype.itemsize, 1.0)
    np.testing.assert_allclose(
        got.astype(np.float64), want.astype(np.float64), rtol=0, atol=rtol * unit * scale, err_msg=name
    )


def _executor(model: Model) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    from optimizer.runtime import Session

    return Session(model).run


def _onnxruntime(model: Model) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    session = ort.InferenceSession(to_proto(model).SerializeToString(), options, ["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    known = {given.name for given in session.get_inputs()}

    def run(feeds: Mapping[str, Any]) -> Mapping[str, Any]:
        given = {name: value for name, value in feeds.items() if name in known}
        return dict(zip(names, session.run(names, given), strict=True))

    return run


def feeds_of(model: Model, setup: Runs, tag: Exactness) -> Iterator[dict[str, Any]]:
    """Seeded inputs at each size; last, where bits count, with NaN, infinities and -0 in them."""
    infos = [model.graph.info(value) for value in model.graph.inputs]
    sizes = setup.sizes or [_Sizes(drawn) for drawn in _SIZES]
    runs = [(size, False) for size in sizes]
    if tag is Exactness.E0 and setup.special:
        runs.append((sizes[0], True))
    for seed, (size, special) in enumerate(runs):
        rng = np.random.default_rng(seed)
        drawn = {info.name: _feed(info.type, size, rng, special) for info in infos}
        yield drawn | dict(setup.feeds)


class _Sizes(dict[str, int]):
    """Gives each dim name, in the order they are asked for, the next of some numbers."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self._numbers = numbers

    def __missing__(self, name: str) -> int:
        self[name] = self._numbers[len(self) % len(self._numbers)]
        return self[name]


def _feed(declared: Any, sizes: Mapping[str, int], rng: np.random.Generator, special: bool) -> Any:
    if isinstance(declared, SequenceType):
        return [_feed(declared.elem, sizes, rng, special) for _ in range(3)]
    assert isinstance(declared, TensorType)
    dims = (2, 3) if declared.shape is None else declared.shape
    shape = tuple(dim if isinstance(dim, int) else sizes[str(dim)] for dim in dims)
    dtype = declared.dtype.numpy
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        return rng.integers(0 if dtype.kind == "u" else -5, 6, shape).astype(dtype)
    if declared.dtype is DType.STRING:
        return rng.choice(np.array(["a", "b", "ab", ""], dtype=object), shape)
    drawn = np.asarray(rng.standard_normal(shape) * 2).astype(dtype)
    if special and drawn.size:
        flat = drawn.reshape(-1)
        for place, odd in enumerate((np.nan, np.inf, -np.inf, -0.0)[: flat.size]):
            flat[place] = odd
    return drawn
