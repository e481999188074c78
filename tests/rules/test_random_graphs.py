"""Random graphs of images: whatever the passes do to them, they compute the same, with no more nodes."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
from equal_outputs import compare
from harness import Setup

from optimizer.ir import verify_graph
from optimizer.rewrite import Context, Exactness, Pass, RulePass, Settings
from passes import transpose
from passes.families import rules_of
from passes.layout import ARRANGE, LAYOUT
from passes.pipelines import default_pipeline

RNG = np.random.default_rng(8)
SHAPES = {
    "w": (4, 4, 3, 3),
    "p": (4, 4, 1, 1),
    "wg": (4, 2, 3, 3),
    "wd": (4, 1, 3, 3),
    "wt": (4, 4, 2, 2),
    "square": (6, 6),
    "b": (4,),
    "s": (4,),
    "h": (4,),
    "m": (4,),
}
CONSTANTS = {name: RNG.standard_normal(shape).astype(np.float32) for name, shape in SHAPES.items()}
CONSTANTS["v"] = np.abs(CONSTANTS["b"]) + 0.5
PERMS = ([0, 2, 3, 1], [0, 3, 1, 2], [0, 2, 3, 1], [0, 3, 1, 2], [0, 1, 3, 2])
PAD = "i64([0,0,1,1,0,0,1,1])"


class Text:
    """A graph in the making: its values with their shapes, and its lines."""

    def __init__(self, rng: random.Random, shapes: dict[str, tuple[int, ...]]) -> None:
        self.rng, self.shapes, self.lines = rng, dict(shapes), list[str]()
        self.inputs = len(shapes)

    def add(self, line: str, shape: tuple[int, ...] | None) -> str:
        """Adds ``line``; without a shape its value is only for the next line."""
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {line}")
        if shape is not None:
            self.shapes[name] = shape
        return name

    def pick(self, newest: int = 4) -> str:
        return self.rng.choice(list(self.shapes)[-newest:])

    def body(self) -> str:
        made = list(self.shapes)[self.inputs :]
        outputs = [made[-1], self.rng.choice(made)]
        return " ".join([*self.lines, *(f"y{i + 1} = Abs({name})" for i, name in enumerate(outputs))])


def add_any_order(text: Text) -> None:
    """One operator of a graph in many orders of axes."""
    rng, x = text.rng, text.pick(6)
    shape = text.shapes[x]
    rank = len(shape)
    axis = rng.randrange(rank)
    halved = tuple(1 if i == axis else n for i, n in enumerate(shape))
    perm = rng.choice(PERMS) if rank == 4 else rng.sample(range(rank), rank)
    same = rng.choice([name for name, other in text.shapes.items() if other == shape])
    constant = rng.choice([shape[-1:], (shape[axis], *(1,) * (rank - axis - 1)), shape])
    drawn = f"f32(normal({','.join(map(str, constant))}))"
    choices: list[tuple[str, tuple[int, ...]]] = [
        (f"Transpose<perm={list(perm)}>({x})", tuple(shape[i] for i in perm)),
        (f"Relu({x})", shape),
        (f"Sub({x}, {same})", shape),
        (f"Mul({drawn}, {x})", shape),
        (f"Softmax<axis={axis - rank}>({x})", shape),
        (f"ReduceMax<axes=[{axis}]>({x})", halved),
        (f"Concat<axis={axis}>({x}, {x})", tuple(2 * n if i == axis else n for i, n in enumerate(shape))),
    ]
    odds = rng.random()
    line, result = rng.choice(choices if odds < 0.4 else choices[:1] if odds < 0.75 else views_of(text, x))
    if max(result) < 40 and 1 < len(result) < 6:
        text.add(line, result)


def views_of(text: Text, x: str) -> list[tuple[str, tuple[int, ...]]]:
    """Operators that join axes of ``x``, take one apart, put one in or drop one."""
    shape = text.shapes[x]
    axis = text.rng.randrange(len(shape) - 1)
    size = shape[axis]
    factor = next((n for n in (2, 3, 5) if size % n == 0 and size > n), size)
    joined = (*shape[:axis], size * shape[axis + 1], *shape[axis + 2 :])
    apart = (*shape[:axis], factor, size // factor, *shape[axis + 1 :])
    less = (*shape[:axis], *shape[axis + 1 :])
    return [
        (f"Reshape({x}, i64({list(joined)}))", joined),
        (f"Reshape({x}, i64({list(apart)}))", apart),
        (f"Unsqueeze({x}, i64([{axis}]))", (*shape[:axis], 1, *shape[axis:])),
        (f"ReduceMax<axes=[{axis}], keepdims=0>({x})", less),
        *([(f"Squeeze({x}, i64([{axis}]))", less)] if size == 1 else []),
    ]


def add_convolutional(text: Text) -> None:
    """One operator, or an idiom of several, of a convolutional net; all values are images of one size."""
    rng, x = text.rng, text.pick(3)
    other = rng.choice(list(text.shapes))
    shape = text.shapes["x"]
    c = rng.choice(["f32(normal(4,1,1))", "f32(normal(1,4,1,1))", "f32(1.5)", "f32([3])", "f32(normal(6))"])
    operator = rng.choice(("Mul", "Add", "Sub"))
    plain = [
        f"Conv<pads=[1,1,1,1]>({x}, w, b)",
        f"Conv({x}, p)",
        f"Conv<pads=[1,1,1,1], group=2>({x}, wg)",
        f"Conv<pads=[1,1,1,1], group=4>({x}, wd, b)",
        f"BatchNormalization({x}, s, h, m, v)",
        f"{operator}({x}, {c})",
        f"{operator}({c}, {x})",
        f"Div({x}, {c})",
        f"Add({x}, {other})",
        f"Relu({x})",
        f"MatMul({x}, square)",
    ]
    kind = rng.randrange(len(plain) + 4)
    if kind < len(plain):
        text.add(plain[kind], shape)
    elif kind == len(plain):
        padded = text.add(f"Pad({x}, {PAD})", None)
        text.add(f"Conv({padded}, w)", shape)
    elif kind == len(plain) + 1:
        larger = text.add(f"ConvTranspose<strides=[2,2]>({x}, wt, b)", None)
        text.add(f"MaxPool<kernel_shape=[2,2], strides=[2,2]>({larger})", shape)
    elif kind == len(plain) + 2:
        clipped = text.add(f"Clip({text.add(f'Add({x}, f32(3))', None)}, f32(0), f32(6))", None)
        text.add(f"Div({text.add(f'Mul({x}, {clipped})', None)}, f32(6))", shape)
    else:
        gate = text.add(f"Conv({text.add(f'GlobalAveragePool({x})', None)}, p, b)", None)
        gated = text.add(f"Mul({text.add(f'HardSigmoid({gate})', None)}, {x})", None)
        text.add(f"Add({gated}, {x})", shape)


def _check(setup: Setup, body: str, run: Callable[[Context], object]) -> None:
    original, model = setup.model(body), setup.model(body)
    ctx = Context(model, setup.settings)
    run(ctx)
    verify_graph(model.graph)
    assert len(model.graph) <= len(original.graph), body
    assert not ctx.warnings, body
    compare(original, model, setup, Exactness.E2)


@pytest.mark.parametrize("seed", range(60))
def test_order_of_axes(seed: int) -> None:
    shapes = {"x": (2, 4, 3, 5), "z": (2, 3, 5, 4)}
    text = Text(random.Random(seed), shapes)
    while len(text.lines) < 16:
        add_any_order(text)
    passes: list[Pass] = [LAYOUT, RulePass("transpose", rules_of(transpose))]
    objective = ("balanced", "nodes", "latency")[seed % 3]
    setup = Setup("float[2,4,3,5] x, float[2,3,5,4] z", settings=Settings(fp="fast", objective=objective))
    _check(setup, text.body(), lambda ctx: [p.run(ctx) for _ in range(3) for p in passes])


@pytest.mark.parametrize("seed", range(30))
def test_wanted_layout(seed: int) -> None:
    text = Text(random.Random(seed), {"x": (2, 4, 6, 6)})
    while len(text.lines) < 12:
        add_convolutional(text)
    setup = Setup("float[2,4,6,6] x", constants=CONSTANTS, rtol=2e-4)
    body = text.body()
    original, model = setup.model(body), setup.model(body)
    for layout in ("nhwc", "nchw", "nhwc"):
        ctx = Context(model, Settings(layout=layout))
        ARRANGE.run(ctx)
        verify_graph(model.graph)
        compare(original, model, setup, Exactness.E2)
        assert not ARRANGE.run(Context(model, ctx.settings)), layout


@pytest.mark.parametrize("seed", range(40))
def test_convolutional(seed: int) -> None:
    text = Text(random.Random(seed), {"x": (2, 4, 6, 6)})
    while len(text.lines) < 12:
        add_convolutional(text)
    setup = Setup(
        "float[N,4,6,6] x",
        opset=(12, 17)[seed % 2],
        constants=CONSTANTS,
        settings=Settings(growth=None),
        rtol=2e-4,
    )
    _check(setup, text.body(), default_pipeline().run)
